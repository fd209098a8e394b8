# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/comm/launch/test_listen
dt_tests += tests/comm/launch/test_lives
dt_tests += tests/comm/launch/test_hosts
dt_tests += tests/comm/launch/test_cause
dt_tests += tests/comm/launch/test_notes
dt_tests += tests/comm/launch/test_hostfile
