# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/engine/device/test_open
tests_engine_device_test_open_SOURCES = tests/engine/device/test_open.c

# NVIDIA's management library, as tests want it, and NCCL, as doctor asks it
check_LTLIBRARIES += tests/engine/device/libnvidia-ml.la tests/engine/device/fake_nvml_old.la tests/engine/device/fake_nvml_useless.la
tests_engine_device_libnvidia_ml_la_SOURCES = tests/engine/device/fake_nvml.c
tests_engine_device_libnvidia_ml_la_LDFLAGS = -shared -version-info 1:0:0 -rpath /nowhere
tests_engine_device_fake_nvml_old_la_SOURCES = tests/engine/device/fake_nvml.c
tests_engine_device_fake_nvml_old_la_CPPFLAGS = $(AM_CPPFLAGS) -DFAKE_NVML_OLD
tests_engine_device_fake_nvml_old_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests_engine_device_fake_nvml_useless_la_SOURCES = tests/engine/device/fake_nvml.c
tests_engine_device_fake_nvml_useless_la_CPPFLAGS = $(AM_CPPFLAGS) -DFAKE_NVML_USELESS
tests_engine_device_fake_nvml_useless_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
dt_tests += tests/engine/device/test_nvml
host_device_sources = tests/engine/device/host_device.c tests/engine/device/host_device.h tests/engine/device/host_work.c
tests_engine_device_test_nvml_SOURCES = tests/engine/device/test_nvml.c $(host_device_sources)
tests_engine_device_test_nvml_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests

# whole runs on the device path without a GPU
check_LTLIBRARIES += tests/engine/device/backend_cuda.la
tests_engine_device_backend_cuda_la_SOURCES = $(host_device_sources)
tests_engine_device_backend_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_engine_device_backend_cuda_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere $(DT_SAN) \
	-export-symbols-regex '^dt_device_module$$'
tests_engine_device_backend_cuda_la_LIBADD = core/libdtcore.la
dt_scripts += tests/engine/device/run.sh tests/engine/device/ranks.sh tests/engine/device/stream.sh
tests/engine/device/run.log tests/engine/device/ranks.log tests/engine/device/stream.log: tests/engine/device/backend_cuda.la tests/engine/device/libnvidia-ml.la dtrain \
	$(plugin_LTLIBRARIES) share/demo.store/store.json
