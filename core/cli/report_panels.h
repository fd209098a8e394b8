/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a report that plugins draw (dtrain/ext/panels.h). Threads: [main].
 */
#ifndef DTRAIN_CORE_CLI_REPORT_PANELS_H
#define DTRAIN_CORE_CLI_REPORT_PANELS_H

#include "plugin/loader/loader.h"
#include "telemetry/report/page.h"

typedef struct dt_report_panels {
    dt_loader *loader; /* its components so far draw */
    const dt_host *host;
} dt_report_panels;

/* A dt_page_more; user is a dt_report_panels. A component that fails costs its own part, with a warning. */
dt_status dt_report_panels_draw(void *user, const dt_page *p, const dt_page_phase *phase);

#endif
