# SPDX-License-Identifier: Apache-2.0
dt_doc_scripts = tests/docs/readme.sh tests/docs/examples.sh tests/docs/recipes.sh tests/docs/names.sh tests/docs/benches.sh \
	tests/docs/docker.sh tests/docs/words.sh
tests/docs/readme.log tests/docs/examples.log tests/docs/recipes.log tests/docs/names.log tests/docs/benches.log tests/docs/docker.log: \
	dtrain options_doc$(EXEEXT) $(plugin_LTLIBRARIES) share/demo.store/store.json
dt_slow_tests += tests/docs/recipes.sh
# what `make docs` builds; the gate has a stage for it
dt_long_scripts += tests/docs/site.sh
# make lint
EXTRA_DIST += tests/docs/paths.sh tests/shipped.sh
EXTRA_DIST += tests/docs/tested.sh Dockerfile .dockerignore
