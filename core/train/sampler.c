/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "train/sampler.h"

#include "engine/backend/cpu/isa.h"
#include "base/err.h"
#include "base/plugin_call.h"
#include "base/mem.h"
#include "train/order.h"

#include <math.h>
#include <string.h>

enum { STREAM_ORDER = 0x6f726472, STREAM_KEY = 0x6b657973, STREAM_DRAW = 0x64726177 }; /* "ordr", "keys", "draw" */

static dt_status check_weight(double w, uint64_t sample)
{
    if (!isfinite(w) || w < 0) {
        return DT_FAIL(DT_EPLUGIN,
                       "the data gives sample %llu the weight %g; weights are numbers that are not negative",
                       (unsigned long long)sample, w);
    }
    return DT_OK;
}

/* Running sums, so that a uniform number finds its sample by bisection. */
static dt_status accumulate_weights(dt_sampler *p, const dt_samples *s)
{
    if (s->ops->weights == NULL) {
        return DT_FAIL(DT_ECONFIG, "data.sampling = \"weighted\", but the data component has no weights for its "
                                   "samples; use \"shuffled\" or \"sequential\"");
    }
    p->sum = dt_alloc_n(p->count, sizeof(*p->sum));
    if (p->sum == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the weights of %llu samples", (unsigned long long)p->count);
    }
    dt_status st = DT_OK;
    DT_CALL_PLUGIN(st, "the data source", "weights", s->ops->weights(s->self, p->sum, p->count));
    DT_TRY(st);
    double sum = 0;
    for (uint64_t i = 0; i < p->count; i++) {
        DT_TRY(check_weight(p->sum[i], i));
        sum += p->sum[i];
        p->sum[i] = sum;
    }
    if (!isfinite(sum) || sum <= 0) {
        return DT_FAIL(
            DT_EPLUGIN,
            "the weights of the data's %llu samples add up to %g; they must be finite, and one of them above 0",
            (unsigned long long)p->count, sum);
    }
    return DT_OK;
}

dt_status dt_sampler_init(dt_sampler *p, const dt_samples *s, uint64_t batch, dt_sampling kind, bool drop_last)
{
    *p = (dt_sampler){.count = s->count, .batch = batch, .kind = kind, .drop_last = drop_last};
    p->is_streamed = s->turn != NULL;
    if (p->is_streamed && kind == DT_SAMPLING_WEIGHTED) {
        return DT_FAIL(DT_ECONFIG, "data.sampling = \"weighted\" draws by the weights of all samples, and data.stream "
                                   "has no end; use \"shuffled\" or \"sequential\"");
    }
    return kind == DT_SAMPLING_WEIGHTED ? accumulate_weights(p, s) : DT_OK;
}

void dt_sampler_fini(dt_sampler *p)
{
    dt_free(p->sum);
    p->sum = NULL;
}

uint64_t dt_sampler_steps(const dt_sampler *p)
{
    return p->count / p->batch + (!p->drop_last && p->count % p->batch > 0);
}

uint64_t dt_sampler_batch(const dt_sampler *p, uint64_t step)
{
    const uint64_t left = p->count - step % dt_sampler_steps(p) * p->batch;
    return left < p->batch ? left : p->batch;
}

void dt_sampler_begin_epoch(dt_sampler_epoch *e, const dt_sampler *p, uint64_t seed, uint32_t phase, uint64_t epoch)
{
    const dt_rng_key order = {.seed = seed, .phase = phase, .op = STREAM_ORDER, .step = epoch};
    const dt_rng_key draw_weighted = {.seed = seed, .phase = phase, .op = STREAM_DRAW, .step = epoch};
    const dt_rng_key key = {.seed = seed, .phase = phase, .op = STREAM_KEY, .step = epoch};
    e->sampler = p;
    e->base = p->is_streamed ? epoch * p->count : 0;
    dt_permutation_init(&e->order, p->count, &order);
    dt_rng_stream_init(&e->draw, &draw_weighted);
    dt_rng_stream_init(&e->key, &key);
}

/* The first sample whose running sum is above u of the whole: one of weight 0 never is. */
static uint64_t draw_weighted(const dt_sampler_epoch *e, uint64_t position)
{
    const dt_sampler *p = e->sampler;
    uint32_t r[4];
    dt_rng_stream_block(&e->draw, position, 0, r);
    const double u = (double)(((uint64_t)r[0] << 32 | r[1]) >> 11) * 0x1p-53 * p->sum[p->count - 1];
    uint64_t low = 0, high = p->count - 1;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (p->sum[middle] > u) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

uint64_t dt_sampler_sample_at(const dt_sampler_epoch *e, uint64_t position)
{
    switch (e->sampler->kind) {
    case DT_SAMPLING_SEQUENTIAL:
        return e->base + position;
    case DT_SAMPLING_WEIGHTED:
        return draw_weighted(e, position);
    default:
        return e->base + dt_permutation_at(&e->order, position);
    }
}

static dt_order_run *map_stream_run(void)
{
    switch (dt_cpu_isa_index()) {
#ifdef DT_HAVE_CPU_AVX512
    case DT_CPU_ISA_AVX512:
    case DT_CPU_ISA_AVX512_BF16:
    case DT_CPU_ISA_AMX_BF16:
        return dt_order_run_avx512;
#endif
#ifdef DT_HAVE_CPU_AVX2
    case DT_CPU_ISA_AVX2:
        return dt_order_run_avx2;
#endif
    default:
        return dt_order_run_base;
    }
}

void dt_sampler_list_samples(const dt_sampler_epoch *e, uint64_t first, uint64_t n, uint64_t *sample)
{
    if (e->sampler->kind == DT_SAMPLING_SHUFFLED) {
        map_stream_run()(&e->order, first, n, sample);
        for (uint64_t i = 0; i < n && e->base > 0; i++) {
            sample[i] += e->base;
        }
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        sample[i] = dt_sampler_sample_at(e, first + i);
    }
}

uint64_t dt_sampler_key(const dt_sampler_epoch *e, uint64_t position)
{
    uint32_t r[4];
    dt_rng_stream_block(&e->key, position, 0, r);
    return ((uint64_t)r[0] << 32 | r[1]) | 1u;
}
