/* SPDX-License-Identifier: Apache-2.0 */
#include "belief.h"

#include "dtrain/helpers.h"

#include <math.h>

typedef struct span { /* of samples */
    int32_t from, to;
} span;

static span sample_span(const belief_tables *t, int32_t from, int32_t to)
{
    return (span){(from + t->stride - 1) / t->stride, (to + t->stride - 1) / t->stride};
}

int64_t belief_samples(const belief_tables *t, int32_t half)
{
    const int64_t side = 2 * (int64_t)half / t->stride + 2;
    return side * side;
}

static int32_t within_limit(int32_t limit, int32_t odds)
{
    odds = odds < limit ? odds : limit;
    return odds > -limit ? odds : -limit;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* bits that L = to has less than L = from */
static double entropy_drop(const belief_tables *t, int32_t from, int32_t to)
{
    return field_entropy_bits(field_probability(from)) -
           field_entropy_bits(field_probability(within_limit(t->limit, to)));
}

static void fill_gain(const belief_tables *t, const field *f, const field_level *level, int16_t *gain)
{
    for (int32_t odds = -t->limit; odds <= t->limit; odds++) {
        const double p = field_probability(odds), one = p * (1 - level->error) + (1 - p) * level->error;
        const double bits =
            one * entropy_drop(t, odds, odds + level->odds) + (1 - one) * entropy_drop(t, odds, odds - level->odds);
        gain[odds + t->limit] = (int16_t)lround(0.5 * field_weight(f, odds) * bits * FIELD_ONE);
    }
}

static void fill_tiles(belief_tables *t, double step)
{
    for (int32_t i = 0; i < t->n; i++) {
        const int32_t at = (int32_t)((i * t->stride + 0.5) / step + 0.5);
        t->tile[i] = (uint8_t)(at < t->points ? at : t->points - 1);
    }
    for (int32_t i = 0; i < t->n; i++) {
        t->end[t->tile[i]] = i + 1;
    }
    for (int32_t y = 0; y < t->n; y++) {
        for (int32_t x = 0; x < t->n; x++) {
            t->count[t->tile[y] * t->points + t->tile[x]]++;
        }
    }
}

dt_status belief_tables_init(belief_tables *t, const dt_host *h, const field *f, const field_level *level,
                             int32_t stride, int32_t points, double step)
{
    const uint64_t n_odds = 2 * (uint64_t)f->limit + 1;
    t->cells = f->cells;
    t->stride = stride;
    t->n = (f->cells + stride - 1) / stride;
    t->points = points;
    t->limit = f->limit;
    t->tile = h->alloc(h, (uint64_t)t->n * sizeof(*t->tile));
    t->count = h->alloc(h, (uint64_t)points * (uint64_t)points * sizeof(*t->count));
    t->both = h->alloc(h, n_odds * sizeof(*t->both));
    t->end = h->alloc(h, (uint64_t)points * sizeof(*t->end));
    bool is_there = t->tile != NULL && t->end != NULL && t->count != NULL && t->both != NULL;
    for (int k = 0; k < FIELD_LEVELS; k++) {
        t->gain[k] = h->alloc(h, n_odds * sizeof(*t->gain[k]));
        is_there = is_there && t->gain[k] != NULL;
    }
    if (!is_there) {
        return DT_FAIL_H(h, DT_ENOMEM, "out of memory for the tables of a UAV's belief");
    }
    fill_tiles(t, step);
    for (int32_t odds = -t->limit; odds <= t->limit; odds++) {
        const uint64_t p = (uint64_t)lround(field_probability(odds) * FIELD_ONE);
        t->both[odds + t->limit] = p << 32 | (uint64_t)f->entropy[odds + t->limit];
    }
    for (int k = 0; k < FIELD_LEVELS; k++) {
        fill_gain(t, f, &level[k], t->gain[k]);
    }
    return DT_OK;
}

void belief_tables_fini(belief_tables *t, const dt_host *h)
{
    h->release(h, t->tile);
    h->release(h, t->end);
    h->release(h, t->count);
    h->release(h, t->both);
    for (int k = 0; k < FIELD_LEVELS; k++) {
        h->release(h, t->gain[k]);
    }
}

/* ---- a belief ---------------------------------------------------------------------------------------------------- */

dt_status belief_init(belief *b, const dt_host *h, const belief_tables *t)
{
    b->odds = h->alloc(h, (uint64_t)t->n * (uint64_t)t->n * sizeof(*b->odds));
    b->sum = h->alloc(h, (uint64_t)t->points * (uint64_t)t->points * sizeof(*b->sum));
    if (b->odds == NULL || b->sum == NULL) {
        return DT_FAIL_H(h, DT_ENOMEM, "out of memory for a UAV's belief of %d by %d cells", t->n, t->n);
    }
    return DT_OK;
}

void belief_fini(belief *b, const dt_host *h)
{
    h->release(h, b->odds);
    h->release(h, b->sum);
}

void belief_reset(belief *b, const belief_tables *t)
{
    memset(b->odds, 0, (size_t)t->n * (size_t)t->n * sizeof(*b->odds));
    for (int32_t i = 0; i < t->points * t->points; i++) {
        b->sum[i] = t->both[t->limit] * (uint64_t)t->count[i];
    }
}

/* L += seen, within the limit; was: L before */
static void add_row(int16_t *restrict odds, const int16_t *restrict seen, int16_t *restrict was, int32_t n,
                    int16_t limit)
{
    for (int32_t i = 0; i < n; i++) {
        const int16_t L = (int16_t)(odds[i] + seen[i]), low = L > (int16_t)-limit ? L : (int16_t)-limit;
        was[i] = odds[i];
        odds[i] = low < limit ? low : limit;
    }
}

void belief_add(belief *b, const belief_tables *t, const field_view *view)
{
    const span x = sample_span(t, view->at.x0, view->at.x1), y = sample_span(t, view->at.y0, view->at.y1);
    const int16_t *seen = view->seen;
    const uint64_t *both = t->both + t->limit;
    int16_t was[FIELD_MAX_CELLS];
    for (int32_t j = y.from; j < y.to; j++, seen += x.to - x.from) {
        int16_t *odds = b->odds + (int64_t)j * t->n;
        uint64_t *sum = b->sum + (int64_t)t->tile[j] * t->points;
        add_row(odds + x.from, seen, was + x.from, x.to - x.from, t->limit);
        for (int32_t i = x.from; i < x.to;) {
            const uint8_t tile = t->tile[i];
            const int32_t to = t->end[tile] < x.to ? t->end[tile] : x.to;
            uint64_t more = 0; /* modulo 2^64: the sum is never negative */
            for (; i < to; i++) {
                more += both[odds[i]] - both[was[i]];
            }
            sum[tile] += more;
        }
    }
}

void belief_tile(const belief *b, const belief_tables *t, int32_t point, float *p_p, float *H_p)
{
    const double whole = (double)FIELD_ONE * (t->count[point] > 0 ? t->count[point] : 1);
    *p_p = (float)((double)(b->sum[point] >> 32) / whole);
    *H_p = (float)((double)(uint32_t)b->sum[point] / whole);
}

double belief_gain(const belief *b, const belief_tables *t, const field_rect *at, int32_t level)
{
    const span x = sample_span(t, at->x0, at->x1), y = sample_span(t, at->y0, at->y1);
    const int16_t *gain = t->gain[level] + t->limit;
    int64_t sum = 0;
    for (int32_t j = y.from; j < y.to; j++) {
        const int16_t *odds = b->odds + (int64_t)j * t->n;
        int32_t row = 0;
        for (int32_t i = x.from; i < x.to; i++) {
            row += gain[odds[i]];
        }
        sum += row;
    }
    return (double)sum / FIELD_ONE;
}
