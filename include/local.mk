# SPDX-License-Identifier: Apache-2.0
# The public contract; tests/abi compiles every installed header alone as C11, C++17 and CUDA C++.
dtrainincludedir = $(includedir)/dtrain
dtraininclude_HEADERS = \
	include/dtrain/abi_log.h \
	include/dtrain/checked.h \
	include/dtrain/helpers.h \
	include/dtrain/net.h \
	include/dtrain/ops.def \
	include/dtrain/plugin.h \
	include/dtrain/policy.h \
	include/dtrain/random.h \
	include/dtrain/row_buffer.h \
	include/dtrain/roles.h \
	include/dtrain/status.h

# optional interfaces of plugins, by id
dtrainextdir = $(dtrainincludedir)/ext
dtrainext_HEADERS = \
	include/dtrain/ext/dataset.h \
	include/dtrain/ext/doctor.h \
	include/dtrain/ext/foresight.h \
	include/dtrain/ext/isolated.h \
	include/dtrain/ext/keys.h \
	include/dtrain/ext/ops.h \
	include/dtrain/ext/panels.h \
	include/dtrain/ext/scene.h \
	include/dtrain/ext/verbs.h

# what plugins of traffic share
dtraintrafficdir = $(dtrainincludedir)/traffic
dtraintraffic_HEADERS = \
	include/dtrain/traffic/features.h \
	include/dtrain/traffic/labels.h \
	include/dtrain/traffic/motion.h \
	include/dtrain/traffic/normalise.h \
	include/dtrain/traffic/ports.h \
	include/dtrain/traffic/store.h

# one table per host service
dtrainsvcdir = $(dtrainincludedir)/svc
dtrainsvc_HEADERS = \
	include/dtrain/svc/bind.h \
	include/dtrain/svc/comm.h \
	include/dtrain/svc/datasets.h \
	include/dtrain/svc/graph.h \
	include/dtrain/svc/metrics.h \
	include/dtrain/svc/rng.h \
	include/dtrain/svc/replay.h \
	include/dtrain/svc/rollout.h \
	include/dtrain/svc/rounds.h \
	include/dtrain/svc/train.h \
	include/dtrain/svc/wiring.h

# dtrain.pc is all a third party needs. It stands for headers alone, but names plugindir, which lies below libdir: so it
# is no file for every architecture and belongs there, too. dtrain-uninstalled.pc serves PKG_CONFIG_PATH=<build folder>
pkgconfig_DATA = dtrain.pc dtrain-policy.pc
