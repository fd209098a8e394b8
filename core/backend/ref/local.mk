# SPDX-License-Identifier: Apache-2.0
# The reference lane: the same files compiled twice, storing doubles and floats.

ref_sources = core/backend/ref/ref.h \
	core/backend/ref/axis.c \
	core/backend/ref/binary.c \
	core/backend/ref/copy.c \
	core/backend/ref/cumsum.c \
	core/backend/ref/dropout.c \
	core/backend/ref/gat.c \
	core/backend/ref/graph_qk.c \
	core/backend/ref/gru.c \
	core/backend/ref/layernorm.c \
	core/backend/ref/linear.c \
	core/backend/ref/loss.c \
	core/backend/ref/lstm.c \
	core/backend/ref/policy.c \
	core/backend/ref/reduce.c \
	core/backend/ref/segment_mean.c \
	core/backend/ref/softmax.c \
	core/backend/ref/unary.c

noinst_LTLIBRARIES += core/backend/ref/libref64.la core/backend/ref/libref32.la
core_backend_ref_libref64_la_SOURCES = $(ref_sources)
core_backend_ref_libref64_la_CPPFLAGS = $(AM_CPPFLAGS) -DDT_REF=64
core_backend_ref_libref32_la_SOURCES = $(ref_sources)
core_backend_ref_libref32_la_CPPFLAGS = $(AM_CPPFLAGS) -DDT_REF=32
core_libdtcore_la_LIBADD += core/backend/ref/libref64.la core/backend/ref/libref32.la
