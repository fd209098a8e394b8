/* SPDX-License-Identifier: Apache-2.0
 *
 * Within this room: the checker of a plugin, its verdicts, and what each kind of component goes through. check.h is the
 * face. Threads: [main].
 */
#ifndef DTRAIN_CORE_PLUGIN_TRIAL_CHECKER_H
#define DTRAIN_CORE_PLUGIN_TRIAL_CHECKER_H

#include "base/str.h"
#include "plugin/trial/check.h"
#include "plugin/trial/probe.h"

typedef struct dt_checker {
    const dt_check_desc *desc;
    dt_str out; /* lines that are not reported yet */
    uint32_t n_pass, n_skip, n_fail;
    dt_probe_host quiet;   /* serves nothing, for check() of components */
    const dt_config *tree; /* texts of the options of the component on trial */
    dt_trial *trial;       /* in the process where a component is on trial, else NULL */
    dt_str *reported;      /* of the component on trial: lines that are not reported again; NULL: all are */
} dt_checker;

/* A line each: printed at once, and counted where it is printed. */
void dt_check_pass(dt_checker *k, const dt_component *c, const char *fmt, ...) DT_PRINTF(3, 4);
void dt_check_skip(dt_checker *k, const dt_component *c, const char *fmt, ...) DT_PRINTF(3, 4);
/* Returns false, for the caller to return. */
bool dt_check_fail(dt_checker *k, const dt_component *c, const char *fmt, ...) DT_PRINTF(3, 4);
/* "shapes do not fit" of the step named, with the reason recorded */
bool dt_check_fail_status(dt_checker *k, const dt_component *c, const char *step, dt_status st);
/* Prints the complete lines of out. */
void dt_check_print_complete_lines(dt_checker *k);

/* May the component be called now? Not where it never returned before, which was reported then; nor without what it
 * needs, which is reported here. */
bool dt_check_may_call(dt_checker *k, const dt_component *c, const char *step, bool has_needs);

/* The life of a component whose options are good. config: filled by its option table; it outlives the call. */
void dt_check_model(dt_checker *k, const dt_loaded *m, const void *config);
void dt_check_data(dt_checker *k, const dt_loaded *d, const void *config);
void dt_check_env(dt_checker *k, const dt_loaded *e, const void *config);
void dt_check_phase(dt_checker *k, const dt_loaded *p);
/* Is it tried in the environment that the user names? */
bool dt_check_is_acting(const dt_checker *k, const dt_component *c);
void dt_check_acting(dt_checker *k, const dt_loaded *m);

/* Ops that the plugin brings along (dtrain/ext/ops.h); afterwards its models may record them. */
void dt_check_ops(dt_checker *k, const dt_loaded_plugin *p);
/* Extensions that its plugin or a component of another kind returns, where the host does not ask for them. */
void dt_check_extensions(dt_checker *k, const dt_loaded_plugin *p);

#endif
