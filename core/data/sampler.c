/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of samples. See sampler.h.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "data/sampler.h"
#include "base/err.h"
#include "base/rng.h"

#include <inttypes.h>

enum { OP_ORDER = 0x53414d50 }; /* stream of the permutation, apart from every op of a graph */

dt_status dt_sampler_check(const dt_sampler *s)
{
    if (s->n == 0 || s->batch == 0) {
        return DT_FAIL(DT_EINVAL, "%" PRIu64 " samples in batches of %" PRIu64 ": both must be at least 1", s->n,
                       s->batch);
    }
    if (s->tail == DT_TAIL_DROP && s->n < s->batch) {
        return DT_FAIL(DT_EINVAL, "%" PRIu64 " samples are less than one batch of %" PRIu64, s->n, s->batch);
    }
    return DT_OK;
}

uint64_t dt_sampler_batches(const dt_sampler *s)
{
    return s->n / s->batch + (s->tail != DT_TAIL_DROP && s->n % s->batch != 0);
}

uint64_t dt_sampler_positions(const dt_sampler *s)
{
    return s->tail == DT_TAIL_SHORT ? s->n : dt_sampler_batches(s) * s->batch;
}

uint64_t dt_sampler_index(const dt_sampler *s, uint64_t epoch, uint64_t position)
{
    position %= s->n;
    if (s->is_ordered) {
        return position;
    }
    dt_rng_key key = {.seed = s->seed, .phase = s->phase, .op = OP_ORDER, .step = epoch, .sample = 0};
    return dt_permute(position, s->n, &key);
}

uint64_t dt_sampler_key(const dt_sampler *s, uint64_t epoch, uint64_t position)
{
    return epoch * dt_sampler_positions(s) + position + 1;
}
