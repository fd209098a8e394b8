# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/amp/test_monitor tests/amp/test_scaler
