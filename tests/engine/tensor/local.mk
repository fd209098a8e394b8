# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/engine/tensor/test_port tests/engine/tensor/test_shape
