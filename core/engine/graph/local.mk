# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/engine/graph/derive.c core/engine/graph/derive.h \
	core/engine/graph/device_exec.c core/engine/graph/device_exec.h \
	core/engine/graph/exec.c \
	core/engine/graph/graph.c core/engine/graph/graph.h core/engine/graph/fingerprint.h \
	core/engine/graph/infer.c core/engine/graph/infer.h \
	core/engine/graph/ir.c core/engine/graph/ir.h \
	core/engine/graph/leaf_grads.c core/engine/graph/leaf_grads.h \
	core/engine/graph/memory_plan.c core/engine/graph/memory_plan.h \
	core/engine/graph/op.c core/engine/graph/op.h \
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
	core/engine/graph/op_user.c core/engine/graph/op_user.h \
	core/engine/graph/op_user_check.c \
	core/engine/graph/params.c core/engine/graph/params.h \
	core/engine/graph/select.c core/engine/graph/select.h \
	core/engine/graph/passes.c core/engine/graph/passes.h \
	core/engine/graph/plan.c core/engine/graph/plan.h core/engine/graph/plan_internal.h \
	core/engine/graph/print.c \
	core/engine/graph/recompute.c \
	core/engine/graph/recorder.h \
	core/engine/graph/storage.c core/engine/graph/storage.h
