# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/plan/test_forecast
tests_plan_test_forecast_SOURCES = tests/plan/test_forecast.c $(rollout_worlds)
tests_plan_test_forecast_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/rl/buffer
