/* SPDX-License-Identifier: Apache-2.0
 *
 * Which sample is at which position of an epoch, and how epochs are cut into batches. It follows from the seed,
 * the phase and the epoch alone: no worker, rank or resume changes it.
 *
 *   shuffled    the keyed permutation of all samples: each once an epoch
 *   sequential  in their order: each once an epoch
 *   weighted    as many draws as there are samples, with replacement, each by its weight
 * Of a stream an epoch is a window of it, drawn from as above: shuffled or sequential.
 * An epoch has so many whole batches; with drop_last false what is left over is a last, smaller one.
 * Threads: [any] after init.
 */
#ifndef DTRAIN_CORE_TRAIN_SAMPLER_H
#define DTRAIN_CORE_TRAIN_SAMPLER_H

#include "base/choices.h"
#include "train/samples.h"

typedef struct dt_sampler {
    uint64_t count, batch;
    dt_sampling kind;
    bool drop_last, is_streamed;
    double *sum; /* [count] weighted: of the weights up to and with this sample */
} dt_sampler;

/* batch: in [1, count]. Errors: DT_ECONFIG (weighted, and the data has no weights, or is a stream), DT_EPLUGIN (weights
 * that are negative, not finite, or all 0), DT_ENOMEM. To be given to fini in either case. */
dt_status dt_sampler_init(dt_sampler *p, const dt_samples *s, uint64_t batch, dt_sampling kind, bool drop_last)
    DT_NODISCARD;
void dt_sampler_fini(dt_sampler *p); /* zeroed: fine */

uint64_t dt_sampler_steps(const dt_sampler *p);                /* batches of an epoch */
uint64_t dt_sampler_batch(const dt_sampler *p, uint64_t step); /* samples in the batch of this step of the run */

/* One epoch: the sample at a position, and its key for augmentation (never 0). */
typedef struct dt_sampler_epoch {
    const dt_sampler *sampler;
    dt_permutation order;
    dt_rng_stream draw, key;
    uint64_t base; /* of a stream: its first sample */
} dt_sampler_epoch;
void dt_sampler_begin_epoch(dt_sampler_epoch *e, const dt_sampler *p, uint64_t seed, uint32_t phase, uint64_t epoch);
uint64_t dt_sampler_sample_at(const dt_sampler_epoch *e, uint64_t position);
void dt_sampler_list_samples(const dt_sampler_epoch *e, uint64_t first, uint64_t n,
                             uint64_t *sample); /* n positions in a row */
uint64_t dt_sampler_key(const dt_sampler_epoch *e, uint64_t position);

#endif
