# SPDX-License-Identifier: Apache-2.0
dt_whole_run_scripts += tests/abi/exports.sh
dt_source_scripts += \
	tests/abi/diff.sh \
	tests/abi/headers_c.sh \
	tests/abi/headers_cxx.sh \
	tests/abi/headers_cuda.sh
EXTRA_DIST += tests/abi/headers.inc tests/abi/contract.awk

# sizes and offsets of every public struct; test_abi.c says what to do when it fails
dt_tests += tests/abi/test_abi
tests_abi_test_abi_SOURCES = tests/abi/test_abi.c tests/abi/structs.def
EXTRA_DIST += tests/abi/abi-1.0.txt tests/abi/abi-1.1.txt tests/abi/abi-1.2.txt

tests/abi/exports.log: $(plugin_LTLIBRARIES)

# plugins compiled with the headers of older minors
dt_scripts += tests/abi/older.sh
tests/abi/older.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
older_headers = \
	tests/abi/older/1.0/drive.c \
	tests/abi/older/1.0/dtrain/abi_log.h \
	tests/abi/older/1.0/dtrain/helpers.h \
	tests/abi/older/1.0/dtrain/ops.def \
	tests/abi/older/1.0/dtrain/plugin.h \
	tests/abi/older/1.0/dtrain/shapes.h \
	tests/abi/older/1.0/dtrain/status.h \
	tests/abi/older/1.0/dtrain/svc/bind.h \
	tests/abi/older/1.0/dtrain/svc/comm.h \
	tests/abi/older/1.0/dtrain/svc/features.h \
	tests/abi/older/1.0/dtrain/svc/graph.h \
	tests/abi/older/1.0/dtrain/svc/metrics.h \
	tests/abi/older/1.0/dtrain/svc/rng.h \
	tests/abi/older/1.0/dtrain/svc/store.h \
	tests/abi/older/1.0/dtrain/svc/train.h \
	tests/abi/older/1.0/fit.c \
	tests/abi/older/1.1/dtrain/abi_log.h \
	tests/abi/older/1.1/dtrain/ext/scene.h \
	tests/abi/older/1.1/dtrain/helpers.h \
	tests/abi/older/1.1/dtrain/motion.h \
	tests/abi/older/1.1/dtrain/ops.def \
	tests/abi/older/1.1/dtrain/plugin.h \
	tests/abi/older/1.1/dtrain/random.h \
	tests/abi/older/1.1/dtrain/shapes.h \
	tests/abi/older/1.1/dtrain/status.h \
	tests/abi/older/1.1/dtrain/svc/bind.h \
	tests/abi/older/1.1/dtrain/svc/comm.h \
	tests/abi/older/1.1/dtrain/svc/features.h \
	tests/abi/older/1.1/dtrain/svc/graph.h \
	tests/abi/older/1.1/dtrain/svc/metrics.h \
	tests/abi/older/1.1/dtrain/svc/rng.h \
	tests/abi/older/1.1/dtrain/svc/rollout.h \
	tests/abi/older/1.1/dtrain/svc/store.h \
	tests/abi/older/1.1/dtrain/svc/train.h \
	tests/abi/older/README.md
EXTRA_DIST += $(older_headers)
