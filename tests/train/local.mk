# SPDX-License-Identifier: Apache-2.0
toy_sources = tests/train/toy.c tests/train/toy.h tests/train/outcome.c tests/train/outcome.h
dt_tests += tests/train/test_sampler tests/train/test_samples tests/train/test_join tests/train/test_trainer
tests_train_test_trainer_SOURCES = tests/train/test_trainer.c $(toy_sources)
dt_tests += tests/train/test_groups
tests_train_test_groups_SOURCES = tests/train/test_groups.c $(toy_sources)
dt_tests += tests/train/test_shadow
tests_train_test_shadow_SOURCES = tests/train/test_shadow.c $(toy_sources)
dt_tests += tests/train/test_sums
tests_train_test_sums_SOURCES = tests/train/test_sums.c $(toy_sources)
dt_tests += tests/train/test_mixed
tests_train_test_mixed_SOURCES = tests/train/test_mixed.c $(toy_sources)
dt_tests += tests/train/test_vector
tests_train_test_vector_SOURCES = tests/train/test_vector.c $(toy_sources) \
	tests/engine/device/host_device.c tests/engine/device/host_device.h \
	tests/engine/device/host_work.c tests/engine/device/host_work.h
tests_train_test_vector_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/tests/train
dt_tests += tests/train/test_constant
tests_train_test_constant_SOURCES = tests/train/test_constant.c $(toy_sources) \
	tests/engine/device/host_device.c tests/engine/device/host_device.h \
	tests/engine/device/host_work.c tests/engine/device/host_work.h
tests_train_test_constant_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/tests/train
dt_tests += tests/train/test_device
tests_train_test_device_SOURCES = tests/train/test_device.c $(toy_sources) \
	tests/engine/device/host_device.c tests/engine/device/host_device.h \
	tests/engine/device/host_work.c tests/engine/device/host_work.h
tests_train_test_device_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/tests/train
dt_tests += tests/train/test_device_groups
tests_train_test_device_groups_SOURCES = tests/train/test_device_groups.c $(toy_sources) \
	tests/engine/device/host_device.c tests/engine/device/host_device.h \
	tests/engine/device/host_work.c tests/engine/device/host_work.h
tests_train_test_device_groups_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/tests/train
dt_tests += tests/train/test_precision
tests_train_test_precision_SOURCES = tests/train/test_precision.c $(toy_sources)
dt_scripts += tests/train/crash.sh tests/train/schedules.sh
