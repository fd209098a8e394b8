# SPDX-License-Identifier: Apache-2.0
dt_scripts += tests/abi/exports.sh
dt_source_scripts += \
	tests/abi/headers_c.sh \
	tests/abi/headers_cxx.sh \
	tests/abi/headers_cuda.sh
EXTRA_DIST += tests/abi/headers.inc

# sizes and offsets of every public struct; test_abi.c says what to do when it fails
dt_tests += tests/abi/test_abi
tests_abi_test_abi_SOURCES = tests/abi/test_abi.c tests/abi/structs.def
EXTRA_DIST += tests/abi/abi-1.0.txt tests/abi/abi-1.1.txt tests/abi/abi-1.2.txt

tests/abi/exports.log: $(plugin_LTLIBRARIES)
