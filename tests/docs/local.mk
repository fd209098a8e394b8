# SPDX-License-Identifier: Apache-2.0
dt_scripts += tests/docs/readme.sh
tests/docs/readme.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
