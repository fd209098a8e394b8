# SPDX-License-Identifier: Apache-2.0
# dt_tests += tests/abi/test_x
