# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/plan/machine/test_doctor
tests_plan_machine_test_doctor_SOURCES = tests/plan/machine/test_doctor.c tests/engine/device/host_device.c tests/engine/device/host_device.h \
	tests/engine/device/host_work.c tests/engine/device/host_work.h
tests_plan_machine_test_doctor_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
