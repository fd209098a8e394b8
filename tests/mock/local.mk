# SPDX-License-Identifier: Apache-2.0
# libdtmock: the fake host, compiled into the tests that use it; it needs include/dtrain alone.
mock_sources = tests/mock/mock.c tests/mock/mock.h tests/mock/recorded.h
mock_cppflags = -D_GNU_SOURCE -I$(top_srcdir)/include -I$(top_srcdir)/tests $(CMOCKA_CFLAGS)
mock_libs = $(CMOCKA_LIBS) -ldl -lm
