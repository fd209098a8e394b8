/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "links.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

dt_status dt_links_init(dt_links *l, const dt_links_desc *d, uint32_t size, uint64_t seed)
{
    *l = (dt_links){0};
    if (!(d->latency_s >= 0) || !(d->bytes_per_s >= 0) || !(d->jitter >= 0) || !(d->loss >= 0 && d->loss <= 1) ||
        (d->loss > 0 && !(d->resend_s > 0))) {
        return DT_FAIL(DT_EINVAL,
                       "links with latency %g s, %g bytes/s, jitter %g, loss %g, sent again after %g s: expected none "
                       "below 0, loss up to 1, and with loss a time above 0",
                       d->latency_s, d->bytes_per_s, d->jitter, d->loss, d->resend_s);
    }
    *l = (dt_links){.d = *d, .seed = seed, .size = size};
    l->out_free = dt_alloc_n((size_t)size * 4, sizeof(double));
    l->is_cut = dt_alloc_n(size, sizeof(bool));
    if (l->out_free == NULL || l->is_cut == NULL) {
        dt_links_fini(l);
        return DT_FAIL(DT_ENOMEM, "out of memory for the links of %u virtual ranks", size);
    }
    l->in_free = l->out_free + size;
    l->now = l->in_free + size;
    l->next = l->now + size;
    return DT_OK;
}

void dt_links_fini(dt_links *l)
{
    dt_free(l->out_free);
    dt_free(l->is_cut);
    l->out_free = NULL;
    l->is_cut = NULL;
}

double dt_links_draw(dt_links *l)
{
    const dt_rng_key key = {.seed = l->seed, .op = 77};
    return dt_rng_uniform(&key, l->draws++);
}

static double max2(double a, double b)
{
    return a > b ? a : b;
}

/* When what rank from sends at a moment has arrived. A lost message keeps no way busy. */
static double arrival(dt_links *l, uint32_t from, uint32_t to, uint64_t bytes, double at)
{
    const dt_links_desc *d = &l->d;
    double takes = d->latency_s, late = 0, wait = d->resend_s;
    if (l->is_cut[from] || l->is_cut[to] || d->loss >= 1) {
        return INFINITY;
    }
    if (d->jitter > 0) {
        takes += d->latency_s * d->jitter * dt_links_draw(l);
    }
    if (d->bytes_per_s > 0) {
        takes += (double)bytes / d->bytes_per_s;
    }
    while (d->loss > 0 && dt_links_draw(l) < d->loss) {
        late += wait;
        wait *= 2;
    }
    const double begin = max2(max2(at, l->out_free[from]), l->in_free[to]);
    if (isinf(begin)) {
        return INFINITY;
    }
    l->out_free[from] = begin + takes;
    l->in_free[to] = begin + takes;
    return begin + takes + late;
}

/* Who has from's message goes on when it is there; who sends, when it has left. */
static void carry_one(dt_links *l, uint32_t from, uint32_t to, uint64_t bytes)
{
    const double there = arrival(l, from, to, bytes, l->now[from]);
    l->next[to] = max2(l->next[to], there);
    l->next[from] = max2(l->next[from], isinf(there) ? l->now[from] : l->out_free[from]);
}

static void end_round(dt_links *l)
{
    memcpy(l->now, l->next, l->size * sizeof(double));
}

/* size - 1 rounds, each to the next rank. bytes[r]: what is on its way and began at rank r; NULL: each the same. */
static void carry_ring(dt_links *l, const uint32_t *floats, uint64_t each)
{
    for (uint32_t k = 1; k < l->size; k++) {
        for (uint32_t r = 0; r < l->size; r++) {
            const uint32_t which = (r + l->size - k + 1) % l->size;
            carry_one(l, r, (r + 1) % l->size, floats != NULL ? floats[which] * sizeof(float) : each);
        }
        end_round(l);
    }
}

static void carry_swaps(dt_links *l, const dt_rendezvous *m)
{
    for (uint32_t k = 1; k < l->size; k++) {
        for (uint32_t r = 0; r < l->size; r++) {
            const uint32_t to = (r + k) % l->size;
            if (m->call[r]->out[to].bytes > 0) {
                carry_one(l, r, to, m->call[r]->out[to].bytes);
            }
        }
        end_round(l);
    }
}

static void carry_tree(dt_links *l, uint32_t root, uint64_t bytes)
{
    for (uint32_t have = 1; have < l->size; have *= 2) {
        for (uint32_t k = 0; k < have && k + have < l->size; k++) {
            carry_one(l, (root + k) % l->size, (root + k + have) % l->size, bytes);
        }
        end_round(l);
    }
}

static void carry_everywhere(dt_links *l)
{
    for (uint32_t far = 1; far < l->size; far *= 2) {
        for (uint32_t r = 0; r < l->size; r++) {
            carry_one(l, r, (r + far) % l->size, 0);
        }
        end_round(l);
    }
}

void dt_links_carry(dt_links *l, const dt_rendezvous *m, const double *begin, double *done)
{
    const dt_comm_call *k = m->call[0];
    memcpy(l->now, begin, l->size * sizeof(double));
    memcpy(l->next, begin, l->size * sizeof(double));
    switch (k->op) {
    case DT_COMM_ALL_GATHER:
        carry_ring(l, NULL, k->bytes);
        break;
    case DT_COMM_ALL_TO_ALL:
        carry_swaps(l, m);
        break;
    case DT_COMM_BROADCAST:
        carry_tree(l, k->root, k->bytes);
        break;
    case DT_COMM_REDUCE_SCATTER:
        carry_ring(l, k->n, 0);
        break;
    default:
        carry_everywhere(l);
        break;
    }
    memcpy(done, l->now, l->size * sizeof(double));
}
