/* SPDX-License-Identifier: Apache-2.0
 *
 * Panels: the pieces a report is put together from (page.c has the list). Each writes what it has to show of all runs
 * side by side, or nothing. A new picture is one more function here and one more line there. Threads: any.
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_PANEL_H
#define DTRAIN_CORE_TELEMETRY_REPORT_PANEL_H

#include "base/str.h"
#include "telemetry/report/curve.h"
#include "telemetry/report/logbook.h"
#include "telemetry/report/page.h"

enum { DT_PAGE_MAX_RUNS = 16, DT_PAGE_COLORS = 8 };

typedef struct dt_page {
    const dt_logbook *run;
    uint32_t n_runs;
    dt_curve *curve;                            /* room for DT_CHART_MAX_CURVES of them */
    dt_curve *member;                           /* and for one of each run */
    uint32_t group[DT_PAGE_MAX_RUNS], n_groups; /* runs of one configuration (group.h) */
    dt_str *out;
    const dt_plugin_panels *plugins; /* NULL: none */
} dt_page;

typedef struct dt_page_phase { /* one phase, in every run that has it */
    const char *id;
    int32_t at[DT_PAGE_MAX_RUNS];         /* index of the run's phase, -1: it has none such */
    bool is_over_env_steps;               /* curves are drawn over these: all runs record how many they had */
    bool has_env_steps;                   /* some do */
    uint32_t evaluated[DT_PAGE_MAX_RUNS]; /* the record of the run's last evaluation, UINT32_MAX: none */
} dt_page_phase;

typedef dt_status dt_panel(const dt_page *p);
typedef dt_status dt_phase_panel(const dt_page *p, const dt_page_phase *phase);

dt_panel dt_panel_write_head;    /* title, runs, their state */
dt_panel dt_panel_write_groups;  /* final results of configurations trained with several seeds */
dt_panel dt_panel_write_config;  /* values and where they came from */
dt_panel dt_panel_write_machine; /* version, plugins, host */

/* Policies compared with baselines, with intervals; n phases */
dt_status dt_panel_write_summary(const dt_page *p, const dt_page_phase *phase, uint32_t n) DT_NODISCARD;

dt_phase_panel dt_panel_write_film;       /* frames of an evaluated episode, from above */
dt_phase_panel dt_panel_write_evaluation; /* results of evaluations, with their history */
dt_phase_panel dt_panel_write_baselines;  /* the policy compared with rule-based controllers */
dt_phase_panel dt_panel_write_costs;      /* costs compared with their limits */
dt_phase_panel dt_panel_write_training;   /* return of rounds, or loss; and the environment's headline metric */
dt_phase_panel dt_panel_write_curves;     /* everything else that was recorded */
dt_phase_panel dt_panel_write_memory;     /* memory compared with the plan */
dt_phase_panel dt_panel_write_time;       /* what the time went into */

/* A run's series of this phase; NULL where it has none. */
const dt_series *dt_page_find_series(const dt_page *p, const dt_page_phase *phase, uint32_t run, const char *name);
/* A number of the run's last evaluation; NAN where that one did not report it, whatever earlier ones did. */
double dt_page_last_evaluated(const dt_page *p, const dt_page_phase *phase, uint32_t run, const char *name);
/* Is it the first run of its group? */
bool dt_page_is_first_of_group(const dt_page *p, uint32_t run);
/* The curves of one name into out: of each group one, of runs that have no stretch in common one each. How many. */
uint32_t dt_page_make_curves(const dt_page *p, const dt_page_phase *phase, const char *name, dt_curve *out);
/* A series of a run as a curve in its colour, over what the phase's curves are drawn over. */
void dt_page_make_curve(const dt_page *p, const dt_page_phase *phase, uint32_t run, const dt_series *s, dt_curve *out);
const char *dt_page_x_name(const dt_page_phase *phase); /* and what that is */
/* The names of all runs in this phase, each once, in order of appearance. Free the list with dt_free. */
dt_status dt_page_list_names(const dt_page *p, const dt_page_phase *phase, const char ***out_p, uint32_t *n_p)
    DT_NODISCARD;
/* Has it one value everywhere, or none that is a number? */
bool dt_page_is_constant(const dt_page *p, const dt_page_phase *phase, const char *name, double *value_p);
/* Does a run have more than two values of it, which differ: is there a curve to draw? */
bool dt_page_has_course(const dt_page *p, const dt_page_phase *phase, const char *name);
/* A chart of one name, a curve for each run that has it, with a sentence where the curve would mislead. */
dt_status dt_page_write_chart(const dt_page *p, const dt_page_phase *phase, const char *name) DT_NODISCARD;
/* Baselines of a run in this phase (panel_baselines.c): how many, and a number of one of them, NAN if it has none. */
uint32_t dt_page_count_baselines(const dt_flat *f);
double dt_page_baseline_value(const dt_flat *f, uint32_t i, const char *name);
const char *dt_page_baseline_name(const dt_flat *f, uint32_t i); /* "fixed" of controller_fixed */
/* Is it of a shield, where no run has one: nothing to show? */
bool dt_page_is_unused(const dt_page *p, const char *name);
/* Is it shown by the panel of memory? */
bool dt_page_is_memory(const char *name);
/* The dot in a run's colour, and its name; nothing where there is one run only. */
void dt_page_write_dot(const dt_page *p, uint32_t run);
void dt_page_write_run_name(const dt_page *p, uint32_t run);

#endif
