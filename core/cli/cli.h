/* SPDX-License-Identifier: Apache-2.0
 *
 * Command line: verbs, options and help from the tables of cli_table.h, so that help, parsing and completion cannot
 * disagree. Nothing is interpreted here; verbs get plain words. Errors: DT_ECONFIG, exit code 2. Threads: [main].
 */
#ifndef DTRAIN_CORE_CLI_CLI_H
#define DTRAIN_CORE_CLI_CLI_H

#include "dtrain/status.h"
#include "cli/cli_table.h"

/* Parse; the default verb is run. */
dt_status dt_cli_parse(int argc, char *const *argv, dt_args *out) DT_NODISCARD;
/* Help of a verb, or of the program (verb NULL), to standard output. */
void dt_cli_help(const char *verb);
bool dt_cli_is_verb(const char *word);
/* Calls fn with each verb, those of plugins among them (verb NULL), or with each form and option of a verb. */
void dt_cli_visit_words(const char *verb, void (*fn)(void *user, const char *word), void *user);
/* A file that --out names: its folder is there, and it takes the place of none. Before the work whose result it is. */
dt_status dt_cli_check_out(const char *path) DT_NODISCARD;
/* Of the verb that was parsed: do all of several processes run it; may a plugin end it? */
bool dt_cli_is_for_all(const dt_args *a);
bool dt_cli_is_free(const dt_args *a);

/* Runs the form that was parsed. */
dt_status dt_cli_call(const dt_args *a, int *code_p);
/* complete.c: what a shell offers for a word that begins so, a line each; kinds: ids, phases, envs, profiles, runs, set
 * (KEY= or KEY=VALUE), verbs, and verb:NAME (its forms and options). */
dt_status dt_cli_complete(const char *kind, const char *prefix);

#endif
