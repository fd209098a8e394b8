# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/rl/rollout/test_round
