/* SPDX-License-Identifier: Apache-2.0
 *
 * What an environment's options are in evaluations: those that only help training (DT_OPT_TRAINING) have their
 * defaults again, and evaluation.env = "option=value, ..." overrides the environment's own section. Each value is
 * checked as if it stood in that section, with the origin of the list. Threads: [main].
 */
#ifndef DTRAIN_CORE_CONFIG_EVALUATION_ENV_H
#define DTRAIN_CORE_CONFIG_EVALUATION_ENV_H

#include "config/schema.h"

enum { DT_EVALUATION_OPTIONS_MAX = 64 };

typedef struct dt_evaluation_option {
    const dt_option *option;
    const char *value; /* canonical; lives as long as the configuration */
    dt_origin origin;
    bool is_said; /* by evaluation.env; else it is the default of an option for training */
} dt_evaluation_option;

/* Of a declared section of an environment, as a phase sees it; no option twice, in the order of its table. Errors:
 * DT_ECONFIG, DT_EABI: an option that runs code, which only the configuration of a run sets. */
dt_status dt_config_evaluation_env(dt_config *c, int64_t phase, const char *section,
                                   dt_evaluation_option out[DT_EVALUATION_OPTIONS_MAX], uint32_t *n_p) DT_NODISCARD;

#endif
