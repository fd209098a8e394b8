# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/host/baselines.c core/host/baselines.h \
	core/host/bind.c core/host/bind_env.c \
	core/host/env_judge.c core/host/env_judge.h \
	core/host/env_worker.c core/host/env_worker.h \
	core/host/check.c \
	core/host/cli.c core/host/cli.h core/host/cli_table.h \
	core/host/course.c core/host/course.h \
	core/host/event_files.c core/host/event_files.h core/host/event_pictures.c core/host/event_pictures.h \
	core/host/device_watch.c core/host/device_watch.h \
	core/host/doctor.h core/host/doctor_device.c core/host/doctor_machine.c \
	core/host/eval.c core/host/eval.h \
	core/host/exit.h core/host/exit_guard.c core/host/exit_guard.h \
	core/host/forecast.c core/host/forecast.h \
	core/host/fit.c core/host/fit.h core/host/fit_seek.c \
	core/host/film.c core/host/film.h \
	core/host/handover.c core/host/handover.h \
	core/host/profile_steps.c core/host/profile_steps.h \
	core/host/memory_watch.c core/host/memory_watch.h \
	core/host/report.c \
	core/host/rank.c core/host/rank.h core/host/rank_evaluate.c core/host/rank_loop.c core/host/rank_phase.c \
	core/host/rank_save.c core/host/rank_show.c \
	core/host/resume.c core/host/resume.h \
	core/host/roles.c core/host/roles.h \
	core/host/run.c core/host/run.h \
	core/host/evaluation.c core/host/evaluation.h \
	core/host/room.c core/host/room.h \
	core/host/rundir.c core/host/rundir.h \
	core/host/services.c \
	core/host/session.c core/host/session.h \
	core/host/sight.c core/host/sight.h \
	core/host/signals.c core/host/signals.h \
	core/host/snapshot.c core/host/snapshot.h \
	core/host/stage.c core/host/stage.h \
	core/host/rollout_eval.c core/host/rollout_impl.h core/host/rollout_need.c \
	core/host/rollout_ranks.c \
	core/host/rollout_state.c \
	core/host/svc_rollout.c \
	core/host/svc_train.c \
	core/host/plugin_memory.c core/host/plugin_memory.h \
	core/host/probe.c core/host/probe.h \
	core/host/probe_data.c core/host/probe_data.h \
	core/host/probe_env.c core/host/probe_env.h \
	core/host/take_out.c core/host/take_out.h \
	core/host/trial.c core/host/trial.h \
	core/host/template_text.h core/host/tools.h \
	core/host/verb_check.c core/host/verb_ckpt.c core/host/verb_data.c \
	core/host/verb_doctor.c core/host/verb_eval.c core/host/verb_export.c \
	core/host/verb_list.c core/host/verb_new.c core/host/verb_render.c core/host/verb_report.c core/host/verb_run.c core/host/verb_runs.c \
	core/host/verb_show.c core/host/verb_watch.c

# the files that `dtrain new` writes, as C strings
template_files = \
	plugins/template/phase.c plugins/template/model.c plugins/template/env.c plugins/template/project.mk \
	plugins/template/README.phase.md plugins/template/README.model.md plugins/template/README.env.md
EXTRA_DIST += $(template_files)
nodist_core_libdtcore_la_SOURCES += core/host/template_text.c
CLEANFILES += core/host/template_text.c
core/host/template_text.c: $(template_files)
	$(AM_V_GEN)$(MKDIR_P) core/host && { \
	  echo '/* SPDX-License-Identifier: Apache-2.0'; \
	  echo ' * Made from plugins/template by core/host/local.mk. */'; \
	  echo '#include "host/template_text.h"'; \
	  for f in $(notdir $(template_files)); do \
	    echo "const char dt_template_`echo $$f | tr . _`[] ="; \
	    sed -e 's/[\\"]/\\&/g' -e 's/	/\\t/g' -e 's/^/    "/' -e 's/$$/\\n"/' $(srcdir)/plugins/template/$$f; \
	    echo '    ;'; \
	  done; } >$@.tmp && mv $@.tmp $@

# the manual page and the completion, written by a program of the build machine from the tables of the command line
EXTRA_DIST += core/host/cli_doc.c
CLEANFILES += core/host/cli_doc core/host/dtrain.1 core/host/dtrain.bash
core/host/cli_doc: core/host/cli_doc.c core/host/cli_table.h core/host/cli.h
	$(AM_V_GEN)$(MKDIR_P) core/host && $(CC_FOR_BUILD) -std=c11 -I. -I$(srcdir)/include -I$(srcdir)/core \
	  -o $@ $(srcdir)/core/host/cli_doc.c
core/host/dtrain.1: core/host/cli_doc
	$(AM_V_GEN)core/host/cli_doc man >$@.tmp && mv $@.tmp $@
core/host/dtrain.bash: core/host/cli_doc
	$(AM_V_GEN)core/host/cli_doc bash >$@.tmp && mv $@.tmp $@
nodist_man1_MANS = core/host/dtrain.1
noinst_DATA = core/host/dtrain.bash
install-data-local:
	$(MKDIR_P) '$(DESTDIR)$(bashcompletiondir)'
	$(INSTALL_DATA) core/host/dtrain.bash '$(DESTDIR)$(bashcompletiondir)/dtrain'
uninstall-local:
	rm -f '$(DESTDIR)$(bashcompletiondir)/dtrain'
