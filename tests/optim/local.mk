# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/optim/test_optim tests/optim/test_schedule
