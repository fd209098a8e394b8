# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/ops/test_ops tests/ops/test_policy tests/ops/test_vmath
tests_ops_test_ops_SOURCES = tests/ops/test_ops.c tests/ops/cases.c tests/ops/harness.c tests/ops/harness.h
tests_ops_test_ops_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests

if DT_HAVE_AVX2_FLAGS
dt_tests += tests/ops/test_widths
widths_sources = tests/ops/test_widths.c tests/ops/cases.c tests/ops/harness.c tests/ops/harness.h
tests_ops_test_widths_SOURCES = $(widths_sources)
tests_ops_test_widths_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests

# The kernels once more, in portable vectors of 16 and of 4 lanes with one rounding per multiply-add: any processor with
# FMA can check whether results depend on the width. Not optimised like the real ones, which changes no bit.
if HAVE_CMOCKA
EXTRA_PROGRAMS += tests/ops/test_widths_portable
endif
CLEANFILES += tests/ops/test_widths_portable$(EXEEXT)
dt_long_scripts += tests/ops/widths_portable.sh
EXTRA_DIST += tests/ops/widths_portable.sh
tests/ops/widths_portable.log: tests/ops/test_widths_portable$(EXEEXT)
tests_ops_test_widths_portable_SOURCES = $(widths_sources)
tests_ops_test_widths_portable_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -DPORTABLE_WIDTHS
tests_ops_test_widths_portable_LDADD = tests/ops/libcpu_wide.la tests/ops/libcpu_narrow.la $(LDADD)
EXTRA_LTLIBRARIES += tests/ops/libcpu_wide.la tests/ops/libcpu_narrow.la
# -O1 of gcc 12 loses stores of vectors wider than the processor's
cpu_width_cflags = $(cpu_isa_cflags) -mavx2 -mfma -O2 -Wno-psabi
tests_ops_libcpu_wide_la_SOURCES = $(cpu_isa_sources)
tests_ops_libcpu_wide_la_CPPFLAGS = $(AM_CPPFLAGS) -DDT_ISA=wide -DDT_ISA_LANES=16 -DDT_ISA_FMA
tests_ops_libcpu_wide_la_CFLAGS = $(cpu_width_cflags)
tests_ops_libcpu_narrow_la_SOURCES = $(cpu_isa_sources)
tests_ops_libcpu_narrow_la_CPPFLAGS = $(AM_CPPFLAGS) -DDT_ISA=narrow -DDT_ISA_LANES=4 -DDT_ISA_FMA
tests_ops_libcpu_narrow_la_CFLAGS = $(cpu_width_cflags)
endif
