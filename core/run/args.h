/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line, as plain words: cli/cli.c fills it, and run start-up reads it. Threads: [main].
 */
#ifndef DTRAIN_CORE_RUN_ARGS_H
#define DTRAIN_CORE_RUN_ARGS_H

#include <stdbool.h>
#include <stdint.h>

enum { DT_CLI_MAX_REPEAT = 64, DT_CLI_MAX_WORDS = 1024, DT_CLI_MAX_EXTRA = 64 };

typedef struct dt_extra_option { /* of a verb that a plugin adds */
    const char *name, *value;    /* value "": a flag */
} dt_extra_option;

typedef struct dt_args {
    const char *verb;
    int form;                           /* row of dt_cli_forms (cli/cli_table.h) */
    bool is_run;                        /* the verb is run: the session trains */
    const char *word[DT_CLI_MAX_WORDS]; /* positional, after the verb; the first one may name the form */
    const char *config[DT_CLI_MAX_REPEAT], *set[DT_CLI_MAX_REPEAT];
    const char *plugin, *phase, *profile, *run_dir, *name, *resume, *init_from, *device, *nproc, *check_sync, *threads,
        *seed;
    const char *every;
    const char *max_steps, *max_time, *profile_steps, *checkpoint, *env, *episodes, *seeds, *out, *format, *store;
    const char *parallel, *metric, *steps;
    const char *print_graph, *max_restarts, *hostfile, *nnodes, *parameters, *step_time, *predict, *language;
    dt_extra_option extra[DT_CLI_MAX_EXTRA];
    uint32_t n_words, n_config, n_set, n_extra;
    bool has_resume, is_array, dry_run, no_graphs, trust_plugins, json, quiet, verbose, help;
    int argc;
    char *const *argv;
    char *const *rest; /* words after "--", of verbs that run other commands */
    uint32_t n_rest;
} dt_args;

#endif
