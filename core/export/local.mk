# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/export/bundle.c core/export/bundle.h \
	core/export/from_stage.c core/export/from_stage.h \
	core/export/onnx.c core/export/onnx.h \
	core/export/onnx_graph.c core/export/onnx_graph.h \
	core/export/onnx_ops.c \
	core/export/policy_check.c core/export/policy_check.h \
	core/export/policy_file.c core/export/policy_file.h \
	core/export/policy_load.h \
	core/export/policy_read.c

# The small inference library: the rooms that run a recorded graph on the CPU, without plugins, configuration or
# trainer. The objects are those of the program; what nothing calls is left out by the linker.
lib_LTLIBRARIES = libdtrain-policy.la
libdtrain_policy_la_SOURCES = \
	core/export/policy.c \
	core/export/policy_check.c \
	plugins/traffic/policy_host.c \
	core/export/policy_read.c \
	core/engine/backend/cpu/isa.c \
	core/engine/backend/kernel.c \
	core/engine/backend/user.c \
	core/base/call_watch.c \
	core/base/clock.c \
	core/base/err.c \
	core/base/fault.c \
	core/base/beneath.c core/base/crash.c core/base/fs.c core/base/fs_read.c core/base/mapping.c \
	core/base/hash.c \
	core/base/number.c \
	core/base/json_read.c \
	core/base/json_write.c \
	core/base/log.c \
	core/base/mem.c \
	core/base/print.c \
	core/base/rng.c \
	core/base/str.c \
	core/base/name.c \
	core/base/text.c \
	core/base/trace.c \
	core/state/checkpoint/safetensors.c \
	core/state/checkpoint/safetensors_load.c \
	plugins/traffic/features/features.c \
	plugins/traffic/features/features_graph.c plugins/traffic/features/nearby.c \
	plugins/traffic/features/pairs.c \
	core/engine/graph/derive.c \
	core/engine/graph/exec.c \
	core/engine/graph/passes.c \
	core/engine/graph/graph.c \
	core/engine/graph/infer.c \
	core/engine/graph/ir.c \
	core/engine/graph/memory_plan.c \
	core/engine/graph/op.c \
	core/engine/graph/op_attention.c \
	core/engine/graph/op_axis.c \
	core/engine/graph/op_conv.c \
	core/engine/graph/op_elementwise.c \
	core/engine/graph/op_layout.c \
	core/engine/graph/op_linear.c \
	core/engine/graph/op_loss.c \
	core/engine/graph/op_norm.c \
	core/engine/graph/op_policy.c \
	core/engine/graph/op_recurrent.c \
	core/engine/graph/op_user.c \
	core/engine/graph/params.c \
	core/engine/graph/plan.c \
	core/engine/graph/print.c \
	core/engine/graph/recompute.c \
	core/engine/graph/storage.c \
	core/rl/buffer/dist.c \
	core/engine/tensor/dtype.c \
	core/engine/tensor/shape.c
libdtrain_policy_la_LIBADD = $(cpu_kernel_libs) core/engine/backend/ref/libref64.la core/engine/backend/ref/libref32.la
libdtrain_policy_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined $(DT_ZDEFS) -Wl,--gc-sections \
	-Wl,--version-script=$(srcdir)/core/export/policy.map
libdtrain_policy_la_DEPENDENCIES = $(libdtrain_policy_la_LIBADD) core/export/policy.map
EXTRA_DIST += core/export/policy.map
