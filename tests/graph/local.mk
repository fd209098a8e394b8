# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/graph/test_graph tests/graph/test_params tests/graph/test_plan
tests_graph_test_plan_SOURCES = tests/graph/test_plan.c tests/graph/harness.h
