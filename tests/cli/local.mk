# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/cli/test_tools
dt_scripts += tests/cli/cli.sh tests/cli/terminal.sh tests/cli/trust.sh tests/cli/suggest.sh
tests/cli/cli.log tests/cli/terminal.log tests/cli/trust.log tests/cli/suggest.log: \
	dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
dt_scripts += tests/cli/bench_gpu.sh
dt_whole_run_scripts += tests/cli/bench.sh
tests/cli/bench.log tests/cli/bench_gpu.log: dtrain
dt_scripts += tests/cli/manual.sh tests/cli/zsh.sh tests/cli/fish.sh
tests/cli/manual.log: dtrain $(plugin_LTLIBRARIES) core/cli/dtrain.1 core/cli/dtrain.cfg.5 core/cli/dtrain.bash
tests/cli/zsh.log: dtrain $(plugin_LTLIBRARIES) core/cli/dtrain.zsh
tests/cli/fish.log: dtrain $(plugin_LTLIBRARIES) core/cli/dtrain.fish

# a plugin that a run's folder names
check_LTLIBRARIES += tests/cli/intruder.la
tests_cli_intruder_la_SOURCES = tests/cli/intruder.c
tests_cli_intruder_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests/cli/trust.log: tests/cli/intruder.la

# a plugin that adds a verb
dt_scripts += tests/cli/plugin_verbs.sh
check_LTLIBRARIES += tests/cli/extra.la
tests_cli_extra_la_SOURCES = tests/cli/extra.c
tests_cli_extra_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=extra
tests_cli_extra_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_cli_extra_la_LDFLAGS = $(PLUGIN_LINK) -rpath /nowhere
tests/cli/manual.log tests/cli/plugin_verbs.log: dtrain $(plugin_LTLIBRARIES) tests/cli/extra.la
