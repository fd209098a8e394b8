# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/config/test_reader tests/config/test_config tests/config/test_options tests/config/test_writer
EXTRA_DIST += tests/config/fixture.h
