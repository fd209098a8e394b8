# SPDX-License-Identifier: Apache-2.0
dt_scripts += tests/docs/readme.sh tests/docs/recipes.sh tests/docs/benches.sh
tests/docs/readme.log tests/docs/recipes.log tests/docs/benches.log: \
	dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
