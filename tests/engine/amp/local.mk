# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/engine/amp/test_scaler
