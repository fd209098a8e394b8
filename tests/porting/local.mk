# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/porting/test_porting
dt_scripts += tests/porting/import.sh tests/porting/names.sh
tests/porting/import.log tests/porting/names.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
EXTRA_DIST += tests/porting/guides
