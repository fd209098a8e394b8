# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/study/test_seeds tests/study/test_sweep tests/study/test_sweep_page
tests_study_test_seeds_SOURCES = tests/study/test_seeds.c
tests_study_test_sweep_SOURCES = tests/study/test_sweep.c
tests_study_test_sweep_page_SOURCES = tests/study/test_sweep_page.c
dt_scripts += tests/study/compare.sh tests/study/seeds.sh tests/study/sweep.sh
tests/study/compare.log tests/study/seeds.log tests/study/sweep.log: dtrain $(plugin_LTLIBRARIES)
EXTRA_DIST += tests/study/study.inc
