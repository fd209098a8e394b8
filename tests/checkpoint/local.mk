# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/checkpoint/test_checkpoint tests/checkpoint/test_powerloss \
	tests/checkpoint/test_safetensors
EXTRA_DIST += tests/fixtures/safetensors/ORIGIN.md tests/fixtures/safetensors/python.safetensors
