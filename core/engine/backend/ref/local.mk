# SPDX-License-Identifier: Apache-2.0
# The reference kernels: the same files compiled twice, storing doubles and floats.

ref_sources = core/engine/backend/ref/ref.h \
	core/engine/backend/ref/axis.c \
	core/engine/backend/ref/batch_norm.c \
	core/engine/backend/ref/binary.c \
	core/engine/backend/ref/conv.c \
	core/engine/backend/ref/copy.c \
	core/engine/backend/ref/dropout.c \
	core/engine/backend/ref/gat.c \
	core/engine/backend/ref/graph_qk.c \
	core/engine/backend/ref/gru.c \
	core/engine/backend/ref/layernorm.c \
	core/engine/backend/ref/linear.c \
	core/engine/backend/ref/loss.c \
	core/engine/backend/ref/lstm.c \
	core/engine/backend/ref/policy.c \
	core/engine/backend/ref/reduce.c \
	core/engine/backend/ref/softmax.c \
	core/engine/backend/ref/unary.c

noinst_LTLIBRARIES += core/engine/backend/ref/libref64.la core/engine/backend/ref/libref32.la
core_engine_backend_ref_libref64_la_SOURCES = $(ref_sources)
core_engine_backend_ref_libref64_la_CPPFLAGS = $(AM_CPPFLAGS) -DDT_REF=64
core_engine_backend_ref_libref32_la_SOURCES = $(ref_sources)
core_engine_backend_ref_libref32_la_CPPFLAGS = $(AM_CPPFLAGS) -DDT_REF=32
core_libdtcore_la_LIBADD += core/engine/backend/ref/libref64.la core/engine/backend/ref/libref32.la
