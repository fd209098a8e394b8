# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/graph/test_graph tests/graph/test_params
