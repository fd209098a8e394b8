# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/engine/graph/test_derive tests/engine/graph/test_passes tests/engine/graph/test_graph \
	tests/engine/graph/test_leaf_grads tests/engine/graph/test_memory_plan tests/engine/graph/test_params tests/engine/graph/test_select tests/engine/graph/test_plan \
	tests/engine/graph/test_storage tests/engine/graph/test_user_op
tests_engine_graph_test_derive_SOURCES = tests/engine/graph/test_derive.c tests/engine/graph/harness.h
tests_engine_graph_test_passes_SOURCES = tests/engine/graph/test_passes.c tests/engine/graph/harness.h
tests_engine_graph_test_leaf_grads_SOURCES = tests/engine/graph/test_leaf_grads.c tests/engine/graph/harness.h
tests_engine_graph_test_memory_plan_SOURCES = tests/engine/graph/test_memory_plan.c tests/engine/graph/harness.h
tests_engine_graph_test_select_SOURCES = tests/engine/graph/test_select.c tests/engine/graph/harness.h
tests_engine_graph_test_plan_SOURCES = tests/engine/graph/test_plan.c tests/engine/graph/harness.h
tests_engine_graph_test_storage_SOURCES = tests/engine/graph/test_storage.c tests/engine/graph/harness.h
tests_engine_graph_test_user_op_SOURCES = tests/engine/graph/test_user_op.c tests/engine/graph/harness.h
