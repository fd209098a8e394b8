/* SPDX-License-Identifier: Apache-2.0
 *
 * What a file of stored rollouts declares in its metadata: of what round and environment it is, with which
 * options. Written and read here alone. Threads: [main].
 */
#ifndef DTRAIN_CORE_RL_OFFLINE_METADATA_H
#define DTRAIN_CORE_RL_OFFLINE_METADATA_H

#include "rl/rollout/rollout.h"

struct dt_safetensors;

enum { DT_STORED_NUMBERS = 4 };

typedef struct dt_stored_head { /* the numbers */
    uint64_t round, episodes;   /* its number, from 1; that ended in it */
    uint64_t steps, instances;  /* of the round: at most steps * instances samples */
    bool is_sealed;             /* it declares a seal */
} dt_stored_head;

typedef struct dt_stored_metadata { /* what is written; zeroed before make */
    char number[DT_STORED_NUMBERS][24];
    dt_str *text;           /* [n_texts] names of options, and env.mix */
    const char *(*pair)[2]; /* [n_pairs] for the writer of files: the numbers first, in the order of dt_stored_head */
    uint32_t n_texts, n_pairs;
} dt_stored_metadata;

/* All but the numbers, which change from round to round. Texts of the configuration are held, and read now. Errors:
 * DT_ENOMEM. */
dt_status dt_stored_metadata_make(const dt_rollout *r, dt_stored_metadata *m) DT_NODISCARD;
void dt_stored_metadata_number(dt_stored_metadata *m, const dt_stored_head *h);
void dt_stored_metadata_fini(dt_stored_metadata *m);

/* Errors: DT_EDATA naming the file, the key, what it has and what was expected. */
dt_status dt_stored_head_read(const dt_rollout *r, const struct dt_safetensors *s, const char *path,
                              dt_stored_head *out) DT_NODISCARD;
/* Options of the environment that the file has others of than this run, or does not have: one warning names them all.
 * False: there are none. */
bool dt_stored_warn_of_options(const dt_rollout *r, const struct dt_safetensors *s, const char *path);

#endif
