# SPDX-License-Identifier: Apache-2.0
dt_whole_run_scripts += tests/abi/exports.sh
dt_source_scripts += \
	tests/abi/headers_c.sh \
	tests/abi/headers_cxx.sh \
	tests/abi/headers_cuda.sh \
	tests/abi/members.sh
EXTRA_DIST += tests/abi/headers.inc tests/abi/contract.awk

# sizes and offsets of every public struct; test_abi.c says what to do when it fails
dt_tests += tests/abi/test_abi
tests_abi_test_abi_SOURCES = tests/abi/test_abi.c tests/abi/structs.def
EXTRA_DIST += tests/abi/abi-1.0.txt

tests/abi/exports.log: $(plugin_LTLIBRARIES)
