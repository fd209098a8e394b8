# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/rl/evaluate/test_results
