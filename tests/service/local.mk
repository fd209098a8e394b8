# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/service/test_plugin_memory
