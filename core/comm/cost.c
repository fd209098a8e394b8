/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "comm/cost.h"
#include "comm/tree_sum.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the formulas ------------------------------------------------------------------------------------------------ */

static uint32_t count_leaves(const dt_cost_model *m, uint32_t ranks)
{
    uint32_t leaves = m->leaves;
    while (leaves < ranks) {
        leaves *= 2;
    }
    return leaves;
}

void dt_cost_predict(const dt_cost_links *l, const dt_cost_model *m, uint32_t ranks, dt_cost_step *out)
{
    const double R = ranks, P = m->parameters, leaves = count_leaves(m, ranks);
    const double buckets = ceil(4 * P / m->bucket_bytes);
    const double each = m->half != DT_HALF_NONE ? 2 : 4; /* bytes of a number of the gradient */
    const double latency = buckets * (R - 1) * l->latency_s, others = P * (R - 1) / R;
    const double sums = latency + each * others / l->bytes_per_s, shares = latency + 4 * others / l->bytes_per_s;
    const double window = m->step_s / leaves * 2 / 3;
    out->compute_s = m->step_s / R;
    out->exchange_s = sums + shares;
    out->hidden_s = sums < window ? sums : window;
    out->step_s = out->compute_s + out->exchange_s;
    out->overlapped_s = out->step_s - out->hidden_s;
    out->sent_bytes = (each + 4) * others;
    out->memory_bytes = 4 * P * (2 + log2(leaves / R)) + 8 * P / R; /* one sum of each height waits for its sibling */
}

uint32_t dt_cost_find_useful_ranks(const dt_cost_links *l, const dt_cost_model *m)
{
    dt_cost_step now, twice;
    uint32_t ranks = 1;
    for (; ranks < 1u << 20; ranks *= 2) {
        dt_cost_predict(l, m, ranks, &now);
        dt_cost_predict(l, m, 2 * ranks, &twice);
        if (twice.step_s > 0.9 * now.step_s) {
            break;
        }
    }
    return ranks;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

enum { MOST_TIMES = 101, MOST_BYTES = 1 << 22, MOST_HELD = 1 << 26, MOST_MOVED = 1 << 28 };

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of_times(double *t, uint32_t n)
{
    qsort(t, n, sizeof(*t), compare_times);
    return t[n / 2];
}

typedef struct swaps {
    char *from, *to; /* [most], [ranks * most] */
    dt_comm_out *out;
    dt_comm_in *in;
} swaps;

static dt_status time_swaps(dt_comm *c, swaps *w, size_t bytes, double *median_p, double *best_p)
{
    const size_t in_all = bytes * dt_comm_size(c);
    uint32_t n = in_all > 0 ? (uint32_t)((size_t)MOST_MOVED / in_all) : MOST_TIMES;
    double t[MOST_TIMES];
    n = n > MOST_TIMES ? MOST_TIMES : n < 5 ? 5 : n;
    for (uint32_t r = 0; r < dt_comm_size(c); r++) {
        w->out[r] = (dt_comm_out){w->from, bytes};
        w->in[r] = (dt_comm_in){w->to + r * bytes, bytes};
    }
    for (uint32_t k = 0; k < n; k++) {
        DT_TRY(dt_comm_barrier(c));
        const double begin = dt_clock_s();
        DT_TRY(dt_comm_all_to_all(c, w->out, w->in));
        t[k] = dt_clock_s() - begin;
    }
    *median_p = median_of_times(t, n);
    *best_p = t[0]; /* they are in order now */
    return DT_OK;
}

static dt_status time_barriers(dt_comm *c, double *seconds_p)
{
    double t[MOST_TIMES];
    for (uint32_t k = 0; k < MOST_TIMES; k++) {
        const double begin = dt_clock_s();
        DT_TRY(dt_comm_barrier(c));
        t[k] = dt_clock_s() - begin;
    }
    *seconds_p = median_of_times(t, MOST_TIMES);
    return DT_OK;
}

/* The smallest swap is all latency, the largest nearly all bandwidth. */
static void fit_latency_and_bandwidth(uint32_t ranks, dt_cost_measured *m)
{
    const double others = ranks - 1, last = m->best_s[DT_COST_SIZES - 1], first = m->best_s[0];
    const double bytes = (double)(m->bytes[DT_COST_SIZES - 1] - m->bytes[0]);
    m->links.latency_s = first / others;
    m->links.bytes_per_s = last > first ? bytes * others / (last - first) : INFINITY;
}

static dt_status measure_links(dt_comm *c, swaps *w, size_t most, dt_cost_measured *out)
{
    DT_TRY(time_barriers(c, &out->barrier_s));
    for (uint32_t i = 0; i < DT_COST_SIZES; i++) {
        out->bytes[i] = i == 0 ? sizeof(uint64_t) : most >> (4 * (DT_COST_SIZES - 1 - i));
        DT_TRY(time_swaps(c, w, out->bytes[i], &out->swap_s[i], &out->best_s[i]));
    }
    fit_latency_and_bandwidth(dt_comm_size(c), out);
    return dt_comm_broadcast(c, 0, out, sizeof(*out));
}

static dt_status check_has_peers(const dt_comm *c)
{
    return dt_comm_size(c) > 1 ? DT_OK : DT_FAIL(DT_EINVAL, "one rank has no other rank to measure with");
}

dt_status dt_cost_measure(dt_comm *c, dt_cost_measured *out)
{
    const uint32_t R = dt_comm_size(c);
    DT_TRY(check_has_peers(c));
    const size_t share = (size_t)MOST_HELD / R, most = share < MOST_BYTES ? share : MOST_BYTES;
    swaps w = {.from = dt_alloc_n(most, (size_t)R + 1), .out = dt_alloc_n(R, sizeof(*w.out))};
    w.in = dt_alloc_n(R, sizeof(*w.in));
    w.to = w.from + most;
    dt_status st = w.from != NULL && w.out != NULL && w.in != NULL
                       ? DT_OK
                       : DT_FAIL(DT_ENOMEM, "out of memory for messages between %u ranks", R);
    st = dt_comm_agree(c, st);
    if (st == DT_OK) {
        memset(out, 0, sizeof(*out));
        st = measure_links(c, &w, most, out);
    }
    dt_free(w.from);
    dt_free(w.out);
    dt_free(w.in);
    return st;
}

/* ---- the exchange of a step -------------------------------------------------------------------------------------- */

enum { IN_FLIGHT = 4, EXCHANGES = 5 };

typedef struct exchange {
    uint32_t n_range, n_node;
    int64_t bucket;
    dt_range *range;
    dt_tree_sum *sum[IN_FLIGHT];
    dt_tree_node node[DT_TREE_MAX_NODES];
    void *memory;
} exchange;

static dt_status run_exchange_once(dt_comm *c, exchange *x)
{
    for (uint32_t k = 0; k < x->n_range + IN_FLIGHT; k++) {
        if (k >= IN_FLIGHT && k - IN_FLIGHT < x->n_range) {
            DT_TRY(dt_tree_sum_finish(x->sum[k % IN_FLIGHT]));
        }
        if (k < x->n_range) {
            DT_TRY(dt_tree_sum_start(x->sum[k % IN_FLIGHT], c, x->node, x->n_node, x->range[k]));
        }
    }
    for (uint32_t k = 0; k < x->n_range + IN_FLIGHT; k++) {
        if (k >= IN_FLIGHT && k - IN_FLIGHT < x->n_range) {
            DT_TRY(dt_tree_sum_discard(x->sum[k % IN_FLIGHT]));
        }
        if (k < x->n_range) {
            DT_TRY(dt_tree_sum_all_gather(x->sum[k % IN_FLIGHT], c, x->node[0].value, x->range[k]));
        }
    }
    return DT_OK;
}

static dt_status prepare_exchange(dt_comm *c, const dt_cost_model *m, exchange *x)
{
    const uint32_t R = dt_comm_size(c);
    const int64_t n = (int64_t)m->parameters;
    x->bucket = (int64_t)(m->bucket_bytes / sizeof(float));
    const dt_tree_sum_desc d = {.shape = {.leaves = count_leaves(m, R), .ranks = R, .rank = dt_comm_rank(c)},
                                .most = x->bucket,
                                .half = m->half};
    x->n_range = (uint32_t)((n + x->bucket - 1) / x->bucket);
    x->n_node = dt_tree_list_cover(&d.shape, d.shape.rank, x->node);
    x->range = dt_alloc_n(x->n_range, sizeof(*x->range));
    if (x->range == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u buckets", x->n_range);
    }
    DT_TRY(dt_arena_map((size_t)n * x->n_node * sizeof(float), &x->memory));
    memset(x->memory, 0, (size_t)n * x->n_node * sizeof(float));
    for (uint32_t k = 0; k < x->n_node; k++) {
        x->node[k].value = (float *)x->memory + (size_t)k * (size_t)n;
    }
    for (uint32_t k = 0; k < x->n_range; k++) {
        const int64_t begin = k * x->bucket, end = begin + x->bucket;
        x->range[k] = (dt_range){.begin = begin, .end = end < n ? end : n};
    }
    for (uint32_t k = 0; k < IN_FLIGHT; k++) {
        DT_TRY(dt_tree_sum_create(&d, &x->sum[k]));
    }
    return DT_OK;
}

static dt_status time_exchanges(dt_comm *c, exchange *x, double *seconds_p)
{
    double t[EXCHANGES];
    DT_TRY(run_exchange_once(c, x)); /* memory is touched for the first time */
    for (uint32_t k = 0; k < EXCHANGES; k++) {
        DT_TRY(dt_comm_barrier(c));
        const double begin = dt_clock_s();
        DT_TRY(run_exchange_once(c, x));
        t[k] = dt_clock_s() - begin;
    }
    *seconds_p = median_of_times(t, EXCHANGES);
    return dt_comm_broadcast(c, 0, seconds_p, sizeof(*seconds_p));
}

dt_status dt_cost_measure_exchange(dt_comm *c, const dt_cost_model *m, double *seconds_p)
{
    exchange x = {0};
    DT_TRY(check_has_peers(c));
    dt_status st = dt_comm_agree(c, prepare_exchange(c, m, &x));
    if (st == DT_OK) {
        st = time_exchanges(c, &x, seconds_p);
    }
    for (uint32_t k = 0; k < IN_FLIGHT; k++) {
        dt_tree_sum_destroy(x.sum[k]);
    }
    if (x.memory != NULL) {
        dt_arena_unmap(x.memory, (size_t)m->parameters * x.n_node * sizeof(float));
    }
    dt_free(x.range);
    return st;
}
