# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/plugin/trial/test_trial
