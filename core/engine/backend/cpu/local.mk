# SPDX-License-Identifier: Apache-2.0
# CPU kernels: the same files are compiled once per instruction set with -DDT_ISA=<name> (names of functions end in
# it); which set runs is decided at start. Sources that must not be compiled several times go into
# core_libdtcore_la_SOURCES like everywhere else.

core_libdtcore_la_SOURCES += core/engine/backend/cpu/isa.c core/engine/backend/cpu/isa.h

# all builds of the kernels, for whoever links them
cpu_kernel_libs =

cpu_isa_sources = core/engine/backend/cpu/attention.h core/engine/backend/cpu/cpu.h core/engine/backend/cpu/gemm.h \
	core/engine/backend/cpu/philox.h core/engine/backend/cpu/scratch.h core/engine/backend/cpu/simd.h core/engine/backend/cpu/turn.h \
	core/engine/backend/cpu/vmath.h \
	core/engine/backend/cpu/axis.c \
	core/engine/backend/cpu/batch_norm.c \
	core/engine/backend/cpu/binary.c \
	core/engine/backend/cpu/conv.c \
	core/engine/backend/cpu/copy.c \
	core/engine/backend/cpu/dropout.c \
	core/engine/backend/cpu/gat.c \
	core/engine/backend/cpu/gemm.c \
	core/engine/backend/cpu/graph_qk.c \
	core/engine/backend/cpu/gru.c \
	core/engine/backend/cpu/layernorm.c \
	core/engine/backend/cpu/linear.c \
	core/engine/backend/cpu/loss.c \
	core/engine/backend/cpu/lstm.c \
	core/engine/backend/cpu/noise.c \
	core/engine/backend/cpu/policy.c \
	core/engine/backend/cpu/reduce.c \
	core/engine/backend/cpu/softmax.c \
	core/engine/backend/cpu/unary.c

# no errno from sqrtf and no trapping arithmetic, or gcc does not vectorise; no change of results. Where each variable
# lives in unrolled loops is a third of gcc's time and helps no debugger; lines and functions are still known.
cpu_isa_cflags = -O3 $(base_cflags) -fopenmp-simd -fno-math-errno -fno-trapping-math -fno-var-tracking $(DT_KERNEL)

noinst_LTLIBRARIES += core/engine/backend/cpu/libcpu_base.la
core_engine_backend_cpu_libcpu_base_la_SOURCES = $(cpu_isa_sources)
core_engine_backend_cpu_libcpu_base_la_CPPFLAGS = $(AM_CPPFLAGS) -DDT_ISA=base
core_engine_backend_cpu_libcpu_base_la_CFLAGS = $(cpu_isa_cflags)
cpu_kernel_libs += core/engine/backend/cpu/libcpu_base.la

if DT_HAVE_AVX2_FLAGS
noinst_LTLIBRARIES += core/engine/backend/cpu/libcpu_avx2.la
core_engine_backend_cpu_libcpu_avx2_la_SOURCES = $(cpu_isa_sources)
core_engine_backend_cpu_libcpu_avx2_la_CPPFLAGS = $(AM_CPPFLAGS) -DDT_ISA=avx2 -DDT_ISA_AVX2
core_engine_backend_cpu_libcpu_avx2_la_CFLAGS = $(cpu_isa_cflags) -mavx2 -mfma
cpu_kernel_libs += core/engine/backend/cpu/libcpu_avx2.la
endif

if DT_HAVE_AVX512_FLAGS
noinst_LTLIBRARIES += core/engine/backend/cpu/libcpu_avx512.la
core_engine_backend_cpu_libcpu_avx512_la_SOURCES = $(cpu_isa_sources)
core_engine_backend_cpu_libcpu_avx512_la_CPPFLAGS = $(AM_CPPFLAGS) -DDT_ISA=avx512 -DDT_ISA_AVX512
core_engine_backend_cpu_libcpu_avx512_la_CFLAGS = $(cpu_isa_cflags) -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma
cpu_kernel_libs += core/engine/backend/cpu/libcpu_avx512.la
endif

# The bf16 kernels of products: the same sources with another gemm, once with vectors and once with tiles.
cpu_bf16_sources = \
	core/engine/backend/cpu/conv.c \
	core/engine/backend/cpu/gemm_bf16.c \
	core/engine/backend/cpu/gru.c \
	core/engine/backend/cpu/linear.c \
	core/engine/backend/cpu/lstm.c \
	core/engine/backend/cpu/unary.c
cpu_bf16_cflags = $(cpu_isa_cflags) -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma -mavx512bf16
EXTRA_DIST += core/engine/backend/cpu/gemm_bf16.c

if DT_HAVE_BF16_FLAGS
noinst_LTLIBRARIES += core/engine/backend/cpu/libcpu_avx512_bf16.la
core_engine_backend_cpu_libcpu_avx512_bf16_la_SOURCES = $(cpu_bf16_sources)
core_engine_backend_cpu_libcpu_avx512_bf16_la_CPPFLAGS = $(AM_CPPFLAGS) -DDT_ISA=avx512_bf16 -DDT_ISA_AVX512
core_engine_backend_cpu_libcpu_avx512_bf16_la_CFLAGS = $(cpu_bf16_cflags)
cpu_kernel_libs += core/engine/backend/cpu/libcpu_avx512_bf16.la
endif

if DT_HAVE_AMX_FLAGS
noinst_LTLIBRARIES += core/engine/backend/cpu/libcpu_amx_bf16.la
core_engine_backend_cpu_libcpu_amx_bf16_la_SOURCES = $(cpu_bf16_sources)
core_engine_backend_cpu_libcpu_amx_bf16_la_CPPFLAGS = $(AM_CPPFLAGS) -DDT_ISA=amx_bf16 -DDT_ISA_AVX512 -DDT_ISA_AMX
core_engine_backend_cpu_libcpu_amx_bf16_la_CFLAGS = $(cpu_bf16_cflags) -mamx-tile -mamx-bf16
cpu_kernel_libs += core/engine/backend/cpu/libcpu_amx_bf16.la
endif
core_libdtcore_la_LIBADD += $(cpu_kernel_libs)
