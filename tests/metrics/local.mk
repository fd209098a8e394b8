# SPDX-License-Identifier: Apache-2.0
# dt_tests += tests/metrics/test_x
