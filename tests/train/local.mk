# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/train/test_samples tests/train/test_trainer
tests_train_test_trainer_SOURCES = tests/train/test_trainer.c tests/train/toy.c tests/train/toy.h
dt_tests += tests/train/test_device
tests_train_test_device_SOURCES = tests/train/test_device.c tests/train/toy.c tests/train/toy.h \
	tests/device/host_device.c tests/device/host_device.h
tests_train_test_device_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/tests/train
dt_tests += tests/train/test_precision
tests_train_test_precision_SOURCES = tests/train/test_precision.c tests/train/toy.c tests/train/toy.h
dt_scripts += tests/train/crash.sh
