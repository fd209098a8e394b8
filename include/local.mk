# SPDX-License-Identifier: Apache-2.0
# The public contract; every header listed here is installed and compiled alone as C11, C++17 and CUDA C++ by a test.
dtrainincludedir = $(includedir)/dtrain
dtraininclude_HEADERS = \
	include/dtrain/status.h \
	include/dtrain/plugin.h \
	include/dtrain/helpers.h \
	include/dtrain/shapes.h \
	include/dtrain/abi_log.h \
	include/dtrain/ops.def

# one table per host service
dtrainsvcdir = $(dtrainincludedir)/svc
dtrainsvc_HEADERS = include/dtrain/svc/graph.h \
	include/dtrain/svc/bind.h \
	include/dtrain/svc/train.h \
	include/dtrain/svc/metrics.h \
	include/dtrain/svc/comm.h \
	include/dtrain/svc/rng.h \
	include/dtrain/svc/store.h \
	include/dtrain/svc/features.h
