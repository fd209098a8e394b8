# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/trial/test_trial
