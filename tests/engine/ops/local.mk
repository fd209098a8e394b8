# SPDX-License-Identifier: Apache-2.0
dt_source_scripts += tests/engine/ops/table.sh
dt_tests += tests/engine/ops/test_ops tests/engine/ops/test_policy tests/engine/ops/test_vmath
tests_engine_ops_test_ops_SOURCES = tests/engine/ops/test_ops.c tests/engine/ops/cases.c tests/engine/ops/harness.c tests/engine/ops/harness.h
tests_engine_ops_test_ops_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests

if DT_HAVE_AVX2_FLAGS
dt_tests += tests/engine/ops/test_widths
widths_sources = tests/engine/ops/test_widths.c tests/engine/ops/cases.c tests/engine/ops/harness.c tests/engine/ops/harness.h
tests_engine_ops_test_widths_SOURCES = $(widths_sources)
tests_engine_ops_test_widths_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests

# The kernels once more, in portable vectors of 16 and of 4 lanes with one rounding per multiply-add: any processor with
# FMA can check whether results depend on the width. Not optimised like the real ones, which changes no bit.
if HAVE_CMOCKA
EXTRA_PROGRAMS += tests/engine/ops/test_widths_portable
endif
CLEANFILES += tests/engine/ops/test_widths_portable$(EXEEXT)
dt_long_scripts += tests/engine/ops/widths_portable.sh
EXTRA_DIST += tests/engine/ops/widths_portable.sh
tests/engine/ops/widths_portable.log: tests/engine/ops/test_widths_portable$(EXEEXT)
tests_engine_ops_test_widths_portable_SOURCES = $(widths_sources)
tests_engine_ops_test_widths_portable_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -DPORTABLE_WIDTHS
tests_engine_ops_test_widths_portable_LDADD = tests/engine/ops/libcpu_wide.la tests/engine/ops/libcpu_narrow.la $(LDADD)
EXTRA_LTLIBRARIES += tests/engine/ops/libcpu_wide.la tests/engine/ops/libcpu_narrow.la
# -O1 of gcc 12 loses stores of vectors wider than the processor's
cpu_width_cflags = $(cpu_isa_cflags) -mavx2 -mfma -O2 -Wno-psabi
tests_engine_ops_libcpu_wide_la_SOURCES = $(cpu_isa_sources)
tests_engine_ops_libcpu_wide_la_CPPFLAGS = $(AM_CPPFLAGS) -DDT_ISA=wide -DDT_ISA_LANES=16 -DDT_ISA_FMA
tests_engine_ops_libcpu_wide_la_CFLAGS = $(cpu_width_cflags)
tests_engine_ops_libcpu_narrow_la_SOURCES = $(cpu_isa_sources)
tests_engine_ops_libcpu_narrow_la_CPPFLAGS = $(AM_CPPFLAGS) -DDT_ISA=narrow -DDT_ISA_LANES=4 -DDT_ISA_FMA
tests_engine_ops_libcpu_narrow_la_CFLAGS = $(cpu_width_cflags)
endif
