# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/host/test_tools
dt_scripts += tests/host/cli.sh tests/host/faults.sh tests/host/profiles.sh
tests/host/cli.log tests/host/faults.log tests/host/profiles.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
