# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/checkpoint/test_checkpoint tests/checkpoint/test_ckpt_faults tests/checkpoint/test_powerloss \
	tests/checkpoint/test_safetensors
small_run_sources = tests/checkpoint/small_run.c tests/checkpoint/small_run.h
tests_checkpoint_test_checkpoint_SOURCES = tests/checkpoint/test_checkpoint.c $(small_run_sources)
tests_checkpoint_test_ckpt_faults_SOURCES = tests/checkpoint/test_ckpt_faults.c $(small_run_sources)
tests_checkpoint_test_safetensors_SOURCES = tests/checkpoint/test_safetensors.c tests/guarded.h
tests_checkpoint_test_safetensors_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
EXTRA_DIST += tests/fixtures/safetensors/ORIGIN.md tests/fixtures/safetensors/python.safetensors
