/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "dtrain.panels/1" of a component or plugin: parts of the HTML report, drawn from what runs recorded. Each
 * function is called for every phase that a report shows, and writes nothing where it finds nothing of its own.
 * `dtrain report` calls all plugins; the report at the end of a run calls those that the run used. Threads: [main].
 */
#ifndef DTRAIN_EXT_PANELS_H
#define DTRAIN_EXT_PANELS_H

#include "dtrain/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_EXT_PANELS "dtrain.panels/1"

typedef struct dt_panel_curve { /* of a chart whose numbers are no recorded metric */
    const double *x, *y;        /* [n], finite, x rising; at most 300 */
    const char *label;          /* text at its end; NULL: none */
    uint32_t n;
    int32_t run; /* drawn in the colour of this run; -1: a dashed reference line */
} dt_panel_curve;

typedef struct dt_panel_view dt_panel_view;
struct dt_panel_view {
    uint32_t struct_size, n_runs;
    void *priv;
    const char *phase; /* id of the phase */
    /* ---- reading; run is an index below n_runs ---- */
    const char *(*run_name)(const dt_panel_view *p, uint32_t run);
    /* Markup that names the run by its colour and name; "" where the report has one run only. */
    const char *(*run_label)(const dt_panel_view *p, uint32_t run);
    /* Is it the first of the runs that share its configuration? */
    uint8_t (*is_first_of_group)(const dt_panel_view *p, uint32_t run);
    /* The values of a metric ("losses/policy") in order of recording, NAN where one was not finite; step: the step that
     * each was recorded at. Returns how many, 0: the run has none in this phase. The arrays live until draw returns. */
    uint32_t (*series)(const dt_panel_view *p, uint32_t run, const char *metric, const double **value,
                       const uint64_t **step);
    /* A result of the last evaluation ("metrics/delay_s/mean"); NAN: it did not report it. */
    double (*evaluated)(const dt_panel_view *p, uint32_t run, const char *result);
    /* Tables of the last evaluation (dt_metrics_api.picture): calls each for every number whose path ("paths/0/3/1":
     * row 3, column 1 of table "paths/0") begins with prefix, in the order of the file. DT_EDATA: the file is damaged.
     * */
    dt_status (*pictures)(const dt_panel_view *p, uint32_t run, const char *prefix,
                          void (*each)(void *user, const char *path, double value), void *user);
    /* ---- writing ---- */
    void (*text)(const dt_panel_view *p, const char *text); /* escaped */
    void (*html)(const dt_panel_view *p,
                 const char *html); /* not escaped: balanced XHTML elements without external resources */
    /* A chart of a metric with a curve per run that has it; nothing if no run has it. */
    dt_status (*chart)(const dt_panel_view *p, const char *metric);
    /* A chart of curves; nothing where none has a point. Errors: DT_EINVAL (more than 33 curves). */
    dt_status (*curves)(const dt_panel_view *p, const char *title, const char *unit, const char *x_name,
                        const dt_panel_curve *curve, uint32_t n);
};

enum { DT_PANEL_LAST, DT_PANEL_FIRST }; /* after the host's panels of a phase, or before them */

typedef struct dt_panels_api {
    uint32_t struct_size, place; /* DT_PANEL_*, of draw */
    dt_status (*draw)(const dt_host *h, const dt_panel_view *p);
    /* Optional: one sentence that sums up the phase, at the top of the report of a single run. */
    dt_status (*summarise)(const dt_host *h, const dt_panel_view *p);
    /* Optional: a sentence below the host's chart of a metric; leaves out empty where it has none. */
    dt_status (*note)(const dt_host *h, const dt_panel_view *p, const char *metric, char *out, uint64_t bytes);
} dt_panels_api;

#ifdef __cplusplus
}
#endif
#endif
