# SPDX-License-Identifier: Apache-2.0
dt_scripts += tests/plugins/template.sh
