# SPDX-License-Identifier: Apache-2.0
# not under the sanitizers, whose libraries Python would have to load first
dt_doc_scripts += tests/python/envs.sh tests/python/examples.sh
dt_long_scripts += tests/python/wheel.sh
tests/python/envs.log tests/python/examples.log: dtrain libdtrain-env.la libdtrain-policy.la $(plugin_LTLIBRARIES)
EXTRA_DIST += tests/python/python.inc tests/python/envs.py tests/python/old.py tests/python/runs.py tests/python/states.py tests/python/parallel.py
