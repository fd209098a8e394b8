# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/device/test_open
tests_device_test_open_SOURCES = tests/device/test_open.c
