# SPDX-License-Identifier: Apache-2.0
# tests/host/cli.sh joins when every verb is wired

