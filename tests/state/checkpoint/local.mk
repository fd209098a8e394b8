# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/state/checkpoint/test_checkpoint tests/state/checkpoint/test_ckpt_faults tests/state/checkpoint/test_powerloss \
	tests/state/checkpoint/test_safetensors
small_run_sources = tests/state/checkpoint/small_run.c tests/state/checkpoint/small_run.h
tests_state_checkpoint_test_checkpoint_SOURCES = tests/state/checkpoint/test_checkpoint.c $(small_run_sources)
tests_state_checkpoint_test_ckpt_faults_SOURCES = tests/state/checkpoint/test_ckpt_faults.c $(small_run_sources)
tests_state_checkpoint_test_safetensors_SOURCES = tests/state/checkpoint/test_safetensors.c tests/guarded.h
tests_state_checkpoint_test_safetensors_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
EXTRA_DIST += tests/fixtures/safetensors/ORIGIN.md tests/fixtures/safetensors/python.safetensors
