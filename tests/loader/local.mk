# SPDX-License-Identifier: Apache-2.0
# dt_tests += tests/loader/test_x
