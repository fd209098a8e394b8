/* SPDX-License-Identifier: Apache-2.0
 *
 * Command line: verbs, options and help from two tables, so that help, parsing and completion cannot disagree.
 * Nothing is interpreted here; verbs get plain words. Errors: DT_ECONFIG, exit code 2. Threads: [main].
 */
#ifndef DTRAIN_CORE_CLI_CLI_H
#define DTRAIN_CORE_CLI_CLI_H

#include "dtrain/status.h"
#include "run/args.h"

/* Parse; the default verb is run. */
dt_status dt_cli_parse(int argc, char *const *argv, dt_args *out) DT_NODISCARD;
/* Help of a verb, or of the program (verb NULL), to standard output. */
void dt_cli_help(const char *verb);
/* Does this verb belong to later work? Its text or NULL. */
const char *dt_cli_later(const char *verb);
bool dt_cli_is_verb(const char *word);
/* Calls fn with each verb, those of plugins among them (verb NULL), or with each form and option of a verb. */
void dt_cli_words(const char *verb, void (*fn)(void *user, const char *word), void *user);
/* A file that --out names: its folder is there, and it takes the place of none. Before the work whose result it is. */
dt_status dt_cli_check_out(const char *path) DT_NODISCARD;
/* Of the verb that was parsed: do all of several processes run it; may a plugin end it? */
bool dt_cli_is_for_all(const dt_args *a);
bool dt_cli_is_free(const dt_args *a);
/* Does a command line train or measure, which an early end of its reader does not end? */
bool dt_cli_trains(int argc, char *const *argv);

/* Verbs, and the ways to call them, as the tables of cli_table.h describe them. */
/* clang-format off */
#define DT_CLI_VERBS(V) \
    V(RUN, run) V(EVAL, eval) V(EXPORT, export) V(LIST, list) V(SHOW, show) V(CHECK, check) V(NEW, new) \
    V(CONFIG, config) V(CKPT, ckpt) V(DOCTOR, doctor) V(RUNS, runs) V(REPORT, report) V(RENDER, render) \
    V(WATCH, watch) V(BENCH, bench)
/* clang-format on */
#define DT_CLI_ID_(NAME, FN) DT_VERB_##NAME,
enum { DT_CLI_VERBS(DT_CLI_ID_) DT_N_VERBS };
enum {
    DT_FORM_RUN,
    DT_FORM_EVAL,
    DT_FORM_EXPORT,
    DT_FORM_LIST,
    DT_FORM_SHOW,
    DT_FORM_CHECK,
    DT_FORM_NEW_PHASE,
    DT_FORM_NEW_POLICY,
    DT_FORM_NEW_MODEL,
    DT_FORM_NEW_ENV,
    DT_FORM_NEW_DATA,
    DT_FORM_CONFIG_IMPORT,
    DT_FORM_CONFIG_TEMPLATE,
    DT_FORM_CONFIG_KEYS,
    DT_FORM_CKPT_LIST,
    DT_FORM_CKPT_INSPECT,
    DT_FORM_CKPT_VERIFY,
    DT_FORM_DOCTOR,
    DT_FORM_RUNS,
    DT_FORM_REPORT,
    DT_FORM_RENDER,
    DT_FORM_WATCH,
    DT_FORM_BENCH_COMM,
    DT_FORM_BENCH_GPU,
    DT_N_FORMS
};

/* Runs the verb that was parsed; results on standard output. code_p: the exit code where the status does not say it. */
dt_status dt_cli_call(const dt_args *a, int *code_p);
/* Each verb returns the status of the whole command; a->form selects its form. */
#define DT_CLI_DECLARE_(NAME, FN) dt_status dt_verb_##FN(const dt_args *a, int *code_p);
DT_CLI_VERBS(DT_CLI_DECLARE_)

/* complete.c: what a shell offers for a word that begins so, a line each; kinds: ids, phases, envs, profiles, runs, set
 * (KEY= or KEY=VALUE), verbs, and verb:NAME (its forms and options). */
dt_status dt_cli_complete(const char *kind, const char *prefix);

#endif
