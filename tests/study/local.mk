# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/study/test_seeds
tests_study_test_seeds_SOURCES = tests/study/test_seeds.c
dt_scripts += tests/study/seeds.sh
tests/study/seeds.log: dtrain $(plugin_LTLIBRARIES)
EXTRA_DIST += tests/study/study.inc
