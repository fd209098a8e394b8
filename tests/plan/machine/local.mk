# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/plan/machine/test_doctor
tests_plan_machine_test_doctor_SOURCES = tests/plan/machine/test_doctor.c $(host_device_sources)
tests_plan_machine_test_doctor_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
