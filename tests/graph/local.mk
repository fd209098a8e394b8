# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/graph/test_dead tests/graph/test_derive tests/graph/test_fuse tests/graph/test_graph \
	tests/graph/test_leaf_grads tests/graph/test_memory tests/graph/test_params tests/graph/test_part tests/graph/test_plan \
	tests/graph/test_recompute tests/graph/test_store
tests_graph_test_dead_SOURCES = tests/graph/test_dead.c tests/graph/harness.h
tests_graph_test_derive_SOURCES = tests/graph/test_derive.c tests/graph/harness.h
tests_graph_test_fuse_SOURCES = tests/graph/test_fuse.c tests/graph/harness.h
tests_graph_test_leaf_grads_SOURCES = tests/graph/test_leaf_grads.c tests/graph/harness.h
tests_graph_test_memory_SOURCES = tests/graph/test_memory.c tests/graph/harness.h
tests_graph_test_part_SOURCES = tests/graph/test_part.c tests/graph/harness.h
tests_graph_test_plan_SOURCES = tests/graph/test_plan.c tests/graph/harness.h
tests_graph_test_recompute_SOURCES = tests/graph/test_recompute.c tests/graph/harness.h
tests_graph_test_store_SOURCES = tests/graph/test_store.c tests/graph/harness.h
