# SPDX-License-Identifier: Apache-2.0
# EXTRA_DIST += bench/run

# make bench/kernels: speed of the CPU kernels
EXTRA_PROGRAMS = bench/kernels
bench_kernels_SOURCES = bench/kernels.c
bench_kernels_LDADD = core/libdtcore.la
