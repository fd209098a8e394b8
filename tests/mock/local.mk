# SPDX-License-Identifier: Apache-2.0
# The fake host, for tests of plugins; it needs include/dtrain alone.
mock_la = tests/mock/libmock.la
EXTRA_LTLIBRARIES += $(mock_la)
tests_mock_libmock_la_SOURCES = tests/mock/mock.c tests/mock/mock.h tests/mock/recorded.h tests/mock/options.h
mock_cppflags = -D_GNU_SOURCE -I$(top_srcdir)/include -I$(top_srcdir)/tests $(CMOCKA_CFLAGS)
mock_libs = $(CMOCKA_LIBS) -ldl -lm
tests_mock_libmock_la_CPPFLAGS = $(mock_cppflags)
