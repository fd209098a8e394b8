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

/* The verbs; each returns the status of the whole command, results on standard output. */
dt_status dt_verb_run(const dt_args *a, int *exit_code_p);
dt_status dt_verb_bench(const dt_args *a, int *exit_code_p);
dt_status dt_verb_eval(const dt_args *a);
dt_status dt_verb_export(const dt_args *a);
dt_status dt_verb_list(const dt_args *a);
dt_status dt_verb_show(const dt_args *a);
dt_status dt_verb_check(const dt_args *a);
dt_status dt_verb_new(const dt_args *a);
dt_status dt_verb_config(const dt_args *a);
dt_status dt_verb_data(const dt_args *a);
dt_status dt_verb_ckpt(const dt_args *a);
dt_status dt_verb_doctor(const dt_args *a);
dt_status dt_verb_runs(const dt_args *a);
dt_status dt_verb_report(const dt_args *a);
dt_status dt_verb_render(const dt_args *a);
dt_status dt_verb_watch(const dt_args *a);

#endif
