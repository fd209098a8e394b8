/* SPDX-License-Identifier: Apache-2.0
 *
 * The command after "--" of verbs that train several times: checked once, then completed for each training. Threads:
 * [main].
 */
#ifndef DTRAIN_CORE_CLI_STUDY_COMMAND_H
#define DTRAIN_CORE_CLI_STUDY_COMMAND_H

#include "run/args.h"
#include "study/plan.h"

typedef struct dt_study_command {
    const char *program;
    char *const *arg; /* of `dtrain run`, without the verb */
    uint32_t n;
    bool has_threads;           /* --threads is among them */
    uint32_t parallel, threads; /* trainings at the same time, and workers of each */
} dt_study_command;

/* Errors: DT_ECONFIG: it is missing, is no training, or has what the verb itself sets (--seed, --run-dir, ...). */
dt_status dt_study_command_read(const dt_args *a, char *const *arg, uint32_t n, dt_study_command *out) DT_NODISCARD;
/* Plans one training (dt_study_plan_read) with these further words, and divides the machine among n of them, or as
 * --parallel asks. code_p other than 0: the command was rejected, which it reported. Errors: DT_ECONFIG. */
dt_status dt_study_command_plan(const dt_args *a, const dt_words *further, uint32_t n, dt_study_command *c, int *code_p)
    DT_NODISCARD;
/* "content of FILE = HASH" for each configuration file among the arguments: with another content, results of two
 * configurations would be mixed. Comments and layout do not count. Errors: DT_ENOTFOUND, DT_EIO, DT_ENOMEM. */
dt_status dt_study_command_add_contents(const dt_study_command *c, dt_words *identity) DT_NODISCARD;
/* "dtrain run ARGS", quiet; out is empty. */
void dt_study_command_begin(const dt_study_command *c, dt_words *out);
/* Continues in a folder or begins there, on its share of the cores. */
void dt_study_command_end(const dt_study_command *c, const char *run, dt_words *out);

#endif
