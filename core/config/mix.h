/* SPDX-License-Identifier: Apache-2.0
 *
 * Several environments in one phase: the list env.mix. An entry is the id of an environment, and after a colon options
 * that hold for this entry alone, option=value separated by semicolons: "snakes:opponent=l2;max_steps=16". Each value
 * is checked as if it stood in the environment's own section, with the origin of the list. Threads: [main].
 */
#ifndef DTRAIN_CORE_CONFIG_MIX_H
#define DTRAIN_CORE_CONFIG_MIX_H

#include "config/schema.h"

enum { DT_MIX_OPTIONS = 16 }; /* of an entry */

/* Entry i of the list in a phase, whole and its id alone; NULL past the last one, or where it is no list,
 * which checks report. Texts live as long as the configuration. */
const char *dt_config_mix_entry(dt_config *c, int64_t phase, uint32_t i);
const char *dt_config_mix_id(dt_config *c, int64_t phase, uint32_t i);
/* The options that entry i gives the environment, whose declared section this is. Errors: DT_ECONFIG, DT_EABI: an
 * option that runs code, which only the configuration of a run sets. */
dt_status dt_config_mix_options(dt_config *c, int64_t phase, uint32_t i, const char *section,
                                dt_setting out[DT_MIX_OPTIONS], uint32_t *n_p) DT_NODISCARD;

#endif
