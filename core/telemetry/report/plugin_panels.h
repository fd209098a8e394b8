/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a report that plugins draw (dtrain/ext/panels.h). Threads: [main].
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_PLUGIN_PANELS_H
#define DTRAIN_CORE_TELEMETRY_REPORT_PLUGIN_PANELS_H

#include "dtrain/ext/panels.h"
#include "dtrain/ext/scene.h"
#include "plugin/loader/loader.h"
#include "telemetry/report/panel.h"

struct dt_plugin_panels {
    dt_loader *loader; /* its plugins so far draw */
    const dt_host *host;
};

/* Without plugins (p->plugins is NULL) nothing is written. A plugin that fails loses its own part, with a warning.
 * place: DT_PANEL_*. */
void dt_plugin_panels_draw(const dt_page *p, const dt_page_phase *phase, uint32_t place);
void dt_plugin_panels_draw_one(const dt_page *p, const dt_page_phase *phase, const dt_panels_api *api,
                               const char *name); /* of one plugin, which is named in warnings */
void dt_plugin_panels_summarise(const dt_page *p, const dt_page_phase *phase);
/* Labels of the first environment of a run that has some; NULL: none does. */
const dt_scene_labels *dt_plugin_panels_labels(const dt_page *p, uint32_t run);
/* The first note of a plugin on the chart of a metric; "" where none has one. */
void dt_plugin_panels_note(const dt_page *p, const dt_page_phase *phase, const char *metric, char *out, size_t bytes);

#endif
