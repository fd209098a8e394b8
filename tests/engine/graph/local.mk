# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/engine/graph/test_dead tests/engine/graph/test_derive tests/engine/graph/test_fuse tests/engine/graph/test_graph \
	tests/engine/graph/test_leaf_grads tests/engine/graph/test_memory tests/engine/graph/test_params tests/engine/graph/test_part tests/engine/graph/test_plan \
	tests/engine/graph/test_recompute tests/engine/graph/test_store
tests_engine_graph_test_dead_SOURCES = tests/engine/graph/test_dead.c tests/engine/graph/harness.h
tests_engine_graph_test_derive_SOURCES = tests/engine/graph/test_derive.c tests/engine/graph/harness.h
tests_engine_graph_test_fuse_SOURCES = tests/engine/graph/test_fuse.c tests/engine/graph/harness.h
tests_engine_graph_test_leaf_grads_SOURCES = tests/engine/graph/test_leaf_grads.c tests/engine/graph/harness.h
tests_engine_graph_test_memory_SOURCES = tests/engine/graph/test_memory.c tests/engine/graph/harness.h
tests_engine_graph_test_part_SOURCES = tests/engine/graph/test_part.c tests/engine/graph/harness.h
tests_engine_graph_test_plan_SOURCES = tests/engine/graph/test_plan.c tests/engine/graph/harness.h
tests_engine_graph_test_recompute_SOURCES = tests/engine/graph/test_recompute.c tests/engine/graph/harness.h
tests_engine_graph_test_store_SOURCES = tests/engine/graph/test_store.c tests/engine/graph/harness.h
