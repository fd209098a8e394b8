# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/config/port/test_porting
dt_scripts += tests/config/port/import.sh tests/config/port/names.sh
tests/config/port/import.log tests/config/port/names.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
EXTRA_DIST += tests/config/port/guides
