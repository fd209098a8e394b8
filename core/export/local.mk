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
	core/export/policy_host.c \
	core/export/policy_read.c \
	core/backend/cpu/isa.c \
	core/backend/kernel.c \
	core/base/clock.c \
	core/base/err.c \
	core/base/fault.c \
	core/base/beneath.c core/base/crash.c core/base/fs.c core/base/mapping.c \
	core/base/hash.c \
	core/base/json_number.c \
	core/base/json_read.c \
	core/base/json_write.c \
	core/base/log.c \
	core/base/mem.c \
	core/base/print.c \
	core/base/rng.c \
	core/base/str.c \
	core/base/text.c \
	core/base/trace.c \
	core/checkpoint/safetensors.c \
	core/data/features.c \
	core/data/features_graph.c core/data/nearby.c \
	core/data/pairs.c \
	core/graph/dead.c \
	core/graph/derive.c \
	core/graph/exec.c \
	core/graph/fuse.c \
	core/graph/graph.c \
	core/graph/infer.c \
	core/graph/ir.c \
	core/graph/memory.c \
	core/graph/op.c \
	core/graph/op_attention.c \
	core/graph/op_axis.c \
	core/graph/op_elementwise.c \
	core/graph/op_layout.c \
	core/graph/op_linear.c \
	core/graph/op_loss.c \
	core/graph/op_norm.c \
	core/graph/op_policy.c \
	core/graph/op_recurrent.c \
	core/graph/params.c \
	core/graph/plan.c \
	core/graph/print.c \
	core/graph/recompute.c \
	core/graph/store.c \
	core/rollout/dist.c \
	core/tensor/dtype.c \
	core/tensor/shape.c
libdtrain_policy_la_LIBADD = $(cpu_kernel_libs) core/backend/ref/libref64.la core/backend/ref/libref32.la
libdtrain_policy_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined $(DT_ZDEFS) -Wl,--gc-sections \
	-Wl,--version-script=$(srcdir)/core/export/policy.map
libdtrain_policy_la_DEPENDENCIES = $(libdtrain_policy_la_LIBADD) core/export/policy.map
EXTRA_DIST += core/export/policy.map
