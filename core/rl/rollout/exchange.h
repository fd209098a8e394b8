/* SPDX-License-Identifier: Apache-2.0
 *
 * The samples of a round as data, on one rank or several. A rank keeps the wide arrays of its own instances' rows.
 * Before others read some of these (train/samples.h: bring) it sends them, in one exchange of all with all: the places
 * that act, of the arrays that are read, slots of history and of the next step included. What arrives is laid out as a
 * buffer of its own whose instances are the samples, so that reading is the same as on one rank.
 *
 * Messages have no headers: every rank knows which samples the others read, which rank has them, and how large they
 * are. Threads: [main]; data is read by [worker] while no one writes.
 */
#ifndef DTRAIN_CORE_RL_ROLLOUT_EXCHANGE_H
#define DTRAIN_CORE_RL_ROLLOUT_EXCHANGE_H

#include "rl/buffer/buffer.h"
#include "rl/rollout/partition.h"
#include "train/trainer.h"

typedef struct dt_exchange {
    const dt_partition *split;
    dt_buffer *own;               /* of this rank's instances */
    dt_buffer *rows;              /* of all instances, without wide arrays; on one rank own */
    dt_buffer batch;              /* on several ranks: the samples that this one reads now */
    uint32_t *place;              /* [samples] of the round: instance of batch */
    uint64_t room, sent;          /* samples that fit into batch and in, into out */
    uint64_t agreed, agreed_sent; /* and that fit on all ranks, as all of them know */
    char *in, *out;               /* arenas of in_bytes, out_bytes */
    size_t in_bytes, out_bytes;
    dt_comm_out *to;       /* [ranks] */
    dt_comm_in *from;      /* [ranks] */
    dt_samples_part *last; /* [ranks] the samples of batch, if has_last */
    uint64_t last_skipped;
    bool has_last;
} dt_exchange;

/* Memory for the samples that the trainer reads at a time. Errors: DT_ENOMEM, those of buffers. */
dt_status dt_exchange_prepare(dt_exchange *x, const dt_trainer *t) DT_NODISCARD;
void dt_exchange_fini(dt_exchange *x);
/* [collective] dt_samples.bring; self is the exchange. */
dt_status dt_exchange_fetch_samples(void *self, uint64_t skipped, const dt_samples_part *part) DT_NODISCARD;
/* The round, or how it is read, changes: samples are sent again. */
static inline void dt_exchange_invalidate(dt_exchange *x)
{
    x->has_last = false;
}
/* Until end, observations are read without normalisation. saved: [DT_ENV_MAX_OBS]. */
void dt_exchange_begin_raw(dt_exchange *x, dt_buffer_scale *saved);
void dt_exchange_end_raw(dt_exchange *x, const dt_buffer_scale *saved);
extern const dt_data_ops dt_exchange_data_ops; /* self is the exchange */

#endif
