# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/collective/test_comm tests/collective/test_tree
