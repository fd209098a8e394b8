# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/graph/dead.c \
	core/graph/derive.c core/graph/derive.h \
	core/graph/device_exec.c core/graph/device_exec.h \
	core/graph/exec.c \
	core/graph/fuse.c \
	core/graph/graph.c core/graph/graph.h \
	core/graph/infer.c core/graph/infer.h \
	core/graph/ir.c core/graph/ir.h \
	core/graph/leaf_grads.c core/graph/leaf_grads.h \
	core/graph/memory.c core/graph/memory.h \
	core/graph/op.c core/graph/op.h \
	core/graph/op_attention.c \
	core/graph/op_axis.c \
	core/graph/op_elementwise.c \
	core/graph/op_layout.c \
	core/graph/op_linear.c \
	core/graph/op_loss.c \
	core/graph/op_norm.c \
	core/graph/op_policy.c \
	core/graph/op_recurrent.c \
	core/graph/params.c core/graph/params.h \
	core/graph/part.c core/graph/part.h \
	core/graph/passes.h \
	core/graph/plan.c core/graph/plan.h core/graph/plan_impl.h \
	core/graph/print.c \
	core/graph/recompute.c \
	core/graph/record.h \
	core/graph/store.c core/graph/store.h
