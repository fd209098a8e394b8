# SPDX-License-Identifier: Apache-2.0
# dt_tests += tests/config/test_x
