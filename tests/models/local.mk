# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/models/test_models
tests_models_test_models_SOURCES = tests/models/test_models.c $(mock_sources)
tests_models_test_models_CPPFLAGS = $(mock_cppflags)
tests_models_test_models_LDADD = $(mock_libs)
