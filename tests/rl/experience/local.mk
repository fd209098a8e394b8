# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/rl/experience/test_evaluation
