# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/base/test_checked tests/base/test_clock tests/base/test_err tests/base/test_exit tests/base/test_fs tests/base/test_hash \
	tests/base/test_json_read tests/base/test_json_write tests/base/test_lock tests/base/test_log tests/base/test_logfile tests/base/test_mem tests/base/test_name \
	tests/base/test_random tests/base/test_rng tests/base/test_str tests/base/test_trace
dt_tests += tests/base/test_beneath tests/base/test_crash tests/base/test_mapping
