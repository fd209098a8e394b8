# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/host/test_tools
dt_scripts += tests/host/cli.sh
