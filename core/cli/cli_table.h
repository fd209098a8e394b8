/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of the command line: verbs, their forms, options, environment, files. cli.c parses, calls and helps by
 * them; cli_doc.c writes the manual page and the completion. A verb is a row of verbs, one of forms for each way to
 * call it, and the function that the latter names. Threads: [main].
 */
#ifndef DTRAIN_CORE_CLI_CLI_TABLE_H
#define DTRAIN_CORE_CLI_CLI_TABLE_H

#include "dtrain/ext/verbs.h"
#include "dtrain/status.h"
#include "run/args.h"

#include <stddef.h>

/* Room for the host's rows and those of plugins, which follow them (dt_cli_add_verb). */
enum { DT_CLI_MAX_VERBS = 64, DT_CLI_MAX_FORMS = 64, DT_CLI_MAX_OPTIONS = 192 };

/* Returns the status of the whole command; results on standard output. code_p: the exit code where the status does not
 * say it. */
typedef dt_status dt_cli_fn(const dt_args *a, int *code_p);
dt_cli_fn dt_verb_run, dt_verb_eval, dt_verb_export, dt_verb_list, dt_verb_show, dt_verb_check, dt_verb_new,
    dt_verb_config_import, dt_verb_config_template, dt_verb_config_keys, dt_verb_ckpt_list, dt_verb_ckpt_inspect,
    dt_verb_ckpt_verify, dt_verb_doctor, dt_verb_runs, dt_verb_report, dt_verb_render, dt_verb_watch, dt_verb_seeds,
    dt_verb_sweep, dt_verb_compare, dt_verb_bench_comm, dt_verb_bench_gpu;

typedef struct dt_cli_verb {
    const char *name, *summary, *examples;
    bool is_all;   /* of several processes all do it, not only the first */
    bool is_free;  /* a plugin may end it: no report of a crash */
    bool has_rest; /* "-- ARGS" follows: of dtrain run, which the verb starts */
} dt_cli_verb;
enum { DT_CLI_RUN = 0 }; /* the first row, and the default verb */

/* What the shell offers for a word or a value. */
enum {
    DT_CLI_WORD_NONE,
    DT_CLI_WORD_FILE,
    DT_CLI_WORD_FOLDER,
    DT_CLI_WORD_CHOICE,
    DT_CLI_WORD_ID,
    DT_CLI_WORD_PHASE,
    DT_CLI_WORD_ENV,
    DT_CLI_WORD_RUN,
    DT_CLI_WORD_PROFILE,
    DT_CLI_WORD_SET
};

/* The ways to call a verb: its first word where it has several (""), the words after it, how many of them. */
typedef struct dt_cli_form {
    int verb;
    dt_cli_fn *run; /* NULL: of_plugin */
    const char *name, *words, *help;
    uint32_t least, most;
    int complete; /* the words after the name */
    const dt_verb_form *of_plugin;
} dt_cli_form;

/* A row for each text that an option has: one of the same name may mean other things elsewhere. */
enum { DT_CLI_FLAG, DT_CLI_VALUE, DT_CLI_REPEAT, DT_CLI_OPTIONAL };
#define DT_CLI_OF_PLUGIN SIZE_MAX /* kept in dt_args.extra */
#define DT_CLI_ALL_FORMS (~UINT64_C(0))
typedef struct dt_cli_option {
    const char *name;
    char letter;
    int kind;
    uint64_t forms;
    size_t member, count; /* offsets in dt_args, or DT_CLI_OF_PLUGIN */
    const char *value, *help;
    int complete;
} dt_cli_option;

extern dt_cli_verb dt_cli_verbs[DT_CLI_MAX_VERBS];
extern dt_cli_form dt_cli_forms[DT_CLI_MAX_FORMS];
extern dt_cli_option dt_cli_options[DT_CLI_MAX_OPTIONS]; /* the last one has no name */
extern int dt_cli_n_verbs, dt_cli_n_forms;

/* A verb of a plugin; the host's and those of earlier ones take precedence. */
void dt_cli_add_verb(const dt_verb *v);
uint64_t dt_cli_forms_of(int v); /* all forms of a verb */
bool dt_cli_has_forms(int v);    /* has it several, each with a first word? */

/* Rows of two texts; the last one has no name. */
typedef struct dt_cli_pair {
    const char *name, *text;
} dt_cli_pair;
extern const dt_cli_pair dt_cli_variables[], dt_cli_files[];

#endif
