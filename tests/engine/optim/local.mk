# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/engine/optim/test_optim
