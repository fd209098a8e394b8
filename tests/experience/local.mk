# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/experience/test_evaluation
