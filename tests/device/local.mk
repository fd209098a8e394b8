# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/device/test_open
tests_device_test_open_SOURCES = tests/device/test_open.c

# NVIDIA's management library, as tests want it
check_LTLIBRARIES += tests/device/libnvidia-ml.la tests/device/fake_nvml_old.la tests/device/fake_nvml_useless.la
tests_device_libnvidia_ml_la_SOURCES = tests/device/fake_nvml.c
tests_device_libnvidia_ml_la_LDFLAGS = -shared -version-info 1:0:0 -rpath /nowhere
tests_device_fake_nvml_old_la_SOURCES = tests/device/fake_nvml.c
tests_device_fake_nvml_old_la_CPPFLAGS = $(AM_CPPFLAGS) -DFAKE_NVML_OLD
tests_device_fake_nvml_old_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests_device_fake_nvml_useless_la_SOURCES = tests/device/fake_nvml.c
tests_device_fake_nvml_useless_la_CPPFLAGS = $(AM_CPPFLAGS) -DFAKE_NVML_USELESS
tests_device_fake_nvml_useless_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
# and NCCL, as doctor asks it
check_LTLIBRARIES += tests/device/fake_nccl.la
tests_device_fake_nccl_la_SOURCES = tests/device/fake_nccl.c
tests_device_fake_nccl_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
dt_tests += tests/device/test_nvml
tests_device_test_nvml_SOURCES = tests/device/test_nvml.c tests/device/host_device.c tests/device/host_device.h \
	tests/device/host_work.c tests/device/host_work.h
tests_device_test_nvml_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests

# whole runs on the device path without a GPU
check_LTLIBRARIES += tests/device/backend_cuda.la
tests_device_backend_cuda_la_SOURCES = tests/device/fake_cuda.c tests/device/host_device.c tests/device/host_device.h \
	tests/device/host_work.c tests/device/host_work.h
tests_device_backend_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_device_backend_cuda_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere $(DT_SAN) \
	-export-symbols-regex '^dt_device_module$$'
tests_device_backend_cuda_la_LIBADD = core/libdtcore.la
dt_scripts += tests/device/run.sh tests/device/ranks.sh tests/device/stream.sh
tests/device/run.log tests/device/ranks.log tests/device/stream.log: tests/device/backend_cuda.la tests/device/libnvidia-ml.la dtrain \
	$(plugin_LTLIBRARIES) share/demo.store/store.json
