# SPDX-License-Identifier: Apache-2.0
dt_scripts += \
	tests/abi/exports.sh \
	tests/abi/headers_c.sh \
	tests/abi/headers_cxx.sh \
	tests/abi/headers_cuda.sh
EXTRA_DIST += tests/abi/headers.inc

tests/abi/exports.log: $(plugin_LTLIBRARIES)
