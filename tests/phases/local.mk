# SPDX-License-Identifier: Apache-2.0
# dt_tests += tests/phases/test_x
