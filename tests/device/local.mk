# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/device/test_open
tests_device_test_open_SOURCES = tests/device/test_open.c

# whole runs on the device path without a GPU
check_LTLIBRARIES += tests/device/backend_cuda.la
tests_device_backend_cuda_la_SOURCES = tests/device/fake_cuda.c tests/device/host_device.c tests/device/host_device.h
tests_device_backend_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_device_backend_cuda_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere $(DT_SAN) \
	-export-symbols-regex '^dt_device_module$$'
tests_device_backend_cuda_la_LIBADD = core/libdtcore.la
dt_scripts += tests/device/run.sh
tests/device/run.log: tests/device/backend_cuda.la dtrain
