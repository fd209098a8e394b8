# SPDX-License-Identifier: Apache-2.0
# dt_tests += tests/checkpoint/test_x
