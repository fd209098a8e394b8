# SPDX-License-Identifier: Apache-2.0
# The public contract; every header listed here is installed and compiled alone as C11, C++17 and CUDA C++ by a test.
dtrainincludedir = $(includedir)/dtrain
dtraininclude_HEADERS = \
	include/dtrain/status.h

# one table per host service
dtrainsvcdir = $(dtrainincludedir)/svc
dtrainsvc_HEADERS =
