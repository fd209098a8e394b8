# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/telemetry/report/chart.c core/telemetry/report/chart.h \
	core/telemetry/report/curve.c core/telemetry/report/curve.h \
	core/telemetry/report/film.c core/telemetry/report/film.h \
	core/telemetry/report/film_page.c core/telemetry/report/film_page.h \
	core/telemetry/report/flat.c core/telemetry/report/flat.h \
	core/telemetry/report/group.c core/telemetry/report/group.h \
	core/telemetry/report/html.c core/telemetry/report/html.h \
	core/telemetry/report/iqm.c core/telemetry/report/iqm.h \
	core/telemetry/report/logbook.c core/telemetry/report/logbook.h \
	core/telemetry/report/page.c core/telemetry/report/page.h \
	core/telemetry/report/panel.h \
	core/telemetry/report/panel_baselines.c core/telemetry/report/panel_config.c core/telemetry/report/panel_costs.c core/telemetry/report/panel_curves.c \
	core/telemetry/report/panel_evaluation.c core/telemetry/report/panel_groups.c core/telemetry/report/panel_head.c \
	core/telemetry/report/panel_machine.c core/telemetry/report/panel_memory.c core/telemetry/report/panel_summary.c core/telemetry/report/panel_time.c core/telemetry/report/panel_film.c \
	core/telemetry/report/plugin_panels.c core/telemetry/report/plugin_panels.h \
	core/telemetry/report/ranks_text.c core/telemetry/report/ranks_text.h \
	core/telemetry/report/records.c core/telemetry/report/records.h \
	core/telemetry/report/scale.c core/telemetry/report/scale.h \
	core/telemetry/report/state.c core/telemetry/report/state.h \
	core/telemetry/report/unit.c core/telemetry/report/unit.h \
	core/telemetry/report/watch.c core/telemetry/report/watch.h

# style and script of a page, as C strings
page_files = core/telemetry/report/palette.css core/telemetry/report/style.css core/telemetry/report/film.css core/telemetry/report/hover.js \
	core/telemetry/report/film.js
EXTRA_DIST += $(page_files)
nodist_core_libdtcore_la_SOURCES += core/telemetry/report/page_text.c
CLEANFILES += core/telemetry/report/page_text.c
core/telemetry/report/page_text.c: $(page_files)
	$(AM_V_GEN)$(MKDIR_P) core/telemetry/report && { \
	  echo '/* SPDX-License-Identifier: Apache-2.0'; \
	  echo ' * Made from the files beside it by core/telemetry/report/local.mk. */'; \
	  echo '#include "telemetry/report/page.h"'; \
	  for f in palette.css style.css film.css hover.js film.js; do \
	    case $$f in hover.js) n=script;; film.js) n=film_script;; film.css) n=film_style;; *) n=$${f%.*};; esac; \
	    echo "const char dt_page_$$n[] ="; \
	    sed -e 's/[\\"?]/\\&/g' -e 's/^/    "/' -e 's/$$/\\n"/' $(srcdir)/core/telemetry/report/$$f; \
	    echo '    ;'; \
	  done; } >$@.tmp && mv $@.tmp $@
