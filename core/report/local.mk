# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/report/chart.c core/report/chart.h \
	core/report/curve.c core/report/curve.h \
	core/report/film_page.c core/report/film_page.h \
	core/report/flat.c core/report/flat.h \
	core/report/group.c core/report/group.h \
	core/report/html.c core/report/html.h \
	core/report/iqm.c core/report/iqm.h \
	core/report/logbook.c core/report/logbook.h \
	core/report/page.c core/report/page.h \
	core/report/panel.h \
	core/report/panel_baselines.c core/report/panel_config.c core/report/panel_costs.c core/report/panel_curves.c \
	core/report/panel_evaluation.c core/report/panel_futures.c core/report/panel_groups.c core/report/panel_head.c core/report/panel_horizon.c \
	core/report/panel_machine.c core/report/panel_memory.c core/report/panel_summary.c core/report/panel_time.c core/report/panel_traffic.c core/report/panel_trajectories.c \
	core/report/ranks_text.c core/report/ranks_text.h \
	core/report/records.c core/report/records.h \
	core/report/scale.c core/report/scale.h \
	core/report/state.c core/report/state.h \
	core/report/street.c core/report/street.h \
	core/report/unit.c core/report/unit.h \
	core/report/watch.c core/report/watch.h

# style and script of a page, as C strings
page_files = core/report/palette.css core/report/style.css core/report/street.css core/report/hover.js \
	core/report/film.js
EXTRA_DIST += $(page_files)
nodist_core_libdtcore_la_SOURCES += core/report/page_text.c
CLEANFILES += core/report/page_text.c
core/report/page_text.c: $(page_files)
	$(AM_V_GEN)$(MKDIR_P) core/report && { \
	  echo '/* SPDX-License-Identifier: Apache-2.0'; \
	  echo ' * Made from the files beside it by core/report/local.mk. */'; \
	  echo '#include "report/page.h"'; \
	  for f in palette.css style.css street.css hover.js film.js; do \
	    case $$f in hover.js) n=script;; *) n=$${f%.*};; esac; \
	    echo "const char dt_page_$$n[] ="; \
	    sed -e 's/[\\"?]/\\&/g' -e 's/^/    "/' -e 's/$$/\\n"/' $(srcdir)/core/report/$$f; \
	    echo '    ;'; \
	  done; } >$@.tmp && mv $@.tmp $@
