# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/cli/cli.c core/cli/cli.h \
	core/cli/cli_table.c core/cli/cli_table.h \
	core/cli/complete.c \
	core/cli/out_file.c \
	core/cli/plugin_verbs.c core/cli/plugin_verbs.h \
	core/cli/phase_trial.c core/cli/phase_trial.h \
	core/cli/show_env.c \
	core/cli/study_command.c core/cli/study_command.h \
	core/cli/template_text.h \
	core/cli/tools.h \
	core/cli/verb_bench.c \
	core/cli/verb_check.c \
	core/cli/verb_ckpt.c \
	core/cli/verb_config.c \
	core/cli/verb_doctor.c \
	core/cli/verb_eval.c \
	core/cli/verb_export.c \
	core/cli/verb_list.c \
	core/cli/verb_new.c \
	core/cli/verb_render.c \
	core/cli/verb_report.c \
	core/cli/verb_run.c \
	core/cli/verb_runs.c \
	core/cli/verb_seeds.c \
	core/cli/verb_show.c \
	core/cli/sweep_table.c core/cli/sweep_table.h core/cli/verb_sweep.c \
	core/cli/verb_compare.c \
	core/cli/verb_watch.c

# the files that `dtrain new` writes, as C strings
template_files = \
	plugins/template/phase.c plugins/template/policy.c plugins/template/model.c plugins/template/env.c \
	plugins/template/data.c plugins/template/project.mk plugins/template/project_cxx.mk \
	plugins/template/README.phase.md plugins/template/README.policy.md plugins/template/README.model.md \
	plugins/template/README.env.md plugins/template/README.data.md
EXTRA_DIST += $(template_files)
nodist_core_libdtcore_la_SOURCES += core/cli/template_text.c
CLEANFILES += core/cli/template_text.c
core/cli/template_text.c: $(template_files)
	$(AM_V_GEN)$(MKDIR_P) core/cli && { \
	  echo '/* SPDX-License-Identifier: Apache-2.0'; \
	  echo ' * Made from plugins/template by core/cli/local.mk. */'; \
	  echo '#include "cli/template_text.h"'; \
	  for f in $(notdir $(template_files)); do \
	    echo "const char dt_template_`echo $$f | tr . _`[] ="; \
	    sed -e 's/[\\"]/\\&/g' -e 's/	/\\t/g' -e 's/^/    "/' -e 's/$$/\\n"/' $(srcdir)/plugins/template/$$f; \
	    echo '    ;'; \
	  done; } >$@.tmp && mv $@.tmp $@

# dtrain(1) and completion, written by a program from the tables of the command line
noinst_PROGRAMS += cli_doc
cli_doc_SOURCES = $(traffic_builtin) core/cli/cli_doc.c core/cli/roff.h
cli_doc_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la
cli_docs = core/cli/dtrain.1 core/cli/dtrain.bash core/cli/dtrain.zsh core/cli/dtrain.fish
CLEANFILES += $(cli_docs)
core/cli/dtrain.1: cli_doc$(EXEEXT)
	$(AM_V_GEN)./cli_doc$(EXEEXT) man >$@.tmp && mv $@.tmp $@
core/cli/dtrain.bash: cli_doc$(EXEEXT)
	$(AM_V_GEN)./cli_doc$(EXEEXT) bash >$@.tmp && mv $@.tmp $@
core/cli/dtrain.zsh: cli_doc$(EXEEXT)
	$(AM_V_GEN)./cli_doc$(EXEEXT) zsh >$@.tmp && mv $@.tmp $@
core/cli/dtrain.fish: cli_doc$(EXEEXT)
	$(AM_V_GEN)./cli_doc$(EXEEXT) fish >$@.tmp && mv $@.tmp $@
nodist_man1_MANS = core/cli/dtrain.1
noinst_DATA = core/cli/dtrain.bash core/cli/dtrain.zsh core/cli/dtrain.fish

# dtrain.cfg(5), written by a program of the host from the tables of options, those of plugins among them
noinst_PROGRAMS += cfg_doc
cfg_doc_SOURCES = $(traffic_builtin) core/cli/cfg_doc.c core/cli/built_plugins.h core/cli/roff.h
cfg_doc_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la
CLEANFILES += core/cli/dtrain.cfg.5
core/cli/dtrain.cfg.5: cfg_doc$(EXEEXT) $(plugin_LTLIBRARIES)
	$(AM_V_GEN)env -u DTRAIN_PLUGIN_PATH ./cfg_doc$(EXEEXT) >$@.tmp && mv $@.tmp $@
nodist_man5_MANS = core/cli/dtrain.cfg.5

# docs/reference/options-*.md from the same tables; they are committed, and tests/docs/names.sh compares them
noinst_PROGRAMS += options_doc
options_doc_SOURCES = $(traffic_builtin) core/cli/options_doc.c core/cli/built_plugins.h
options_doc_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la
options: options_doc$(EXEEXT) $(plugin_LTLIBRARIES)
	for kind in host phase model environment data; do \
	  env -u DTRAIN_PLUGIN_PATH ./options_doc$(EXEEXT) $$kind >options.tmp && \
	  mv options.tmp $(srcdir)/docs/reference/options-$$kind.md || exit 1; done
.PHONY: options

install-data-local:
	$(MKDIR_P) '$(DESTDIR)$(bashcompletiondir)' '$(DESTDIR)$(zshcompletiondir)' '$(DESTDIR)$(fishcompletiondir)'
	$(INSTALL_DATA) core/cli/dtrain.bash '$(DESTDIR)$(bashcompletiondir)/dtrain'
	$(INSTALL_DATA) core/cli/dtrain.zsh '$(DESTDIR)$(zshcompletiondir)/_dtrain'
	$(INSTALL_DATA) core/cli/dtrain.fish '$(DESTDIR)$(fishcompletiondir)/dtrain.fish'
uninstall-local:
	rm -f '$(DESTDIR)$(bashcompletiondir)/dtrain' '$(DESTDIR)$(zshcompletiondir)/_dtrain' \
	  '$(DESTDIR)$(fishcompletiondir)/dtrain.fish'
