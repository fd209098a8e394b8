# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/machine/test_doctor
tests_machine_test_doctor_SOURCES = tests/machine/test_doctor.c tests/device/host_device.c tests/device/host_device.h \
	tests/device/host_work.c tests/device/host_work.h
tests_machine_test_doctor_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
