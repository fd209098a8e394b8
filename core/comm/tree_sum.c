/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums across ranks. See tree_sum.h.
 */
#include <config.h>

#include "comm/tree_sum.h"
#include "base/err.h"
#include "base/mem.h"

#include <string.h>

/* A node on the way up: its numbers over this rank's slice. */
typedef struct part {
    uint32_t height, index;
    float *value;
} part;

struct dt_tree_sum {
    dt_tree_shape shape;
    uint32_t ranks, rank;             /* the shape's */
    uint32_t n_mine, n_most, n_nodes; /* canonical nodes: of this rank, of a rank at most, of all */
    int64_t most;
    uint32_t *first;     /* [ranks + 1] each rank's among all */
    dt_tree_node *node;  /* [n_nodes] of all ranks, left to right */
    part *parts;         /* [n_nodes] */
    dt_comm_out *out;    /* [n_most, ranks] */
    dt_comm_in *in;      /* [n_most, ranks] */
    float *theirs;       /* slices of nodes that come in */
    uint16_t *halves;    /* the same as they come, where they are halves */
    uint16_t *packed;    /* [n_mine, most] halves of this rank's nodes */
    int64_t n_came;      /* numbers that come in */
    size_t theirs_bytes; /* mapped for the three */
    uint32_t half;       /* in force; made_for or none */
    uint32_t made_for;
    bool is_fast;
    uint32_t *count; /* [ranks] fast: elements of each rank's slice */
    float *sum;      /* fast: this rank's nodes, added up */
    dt_range own;    /* of the sum in flight */
    dt_comm *comm;
    dt_comm_request request[DT_TREE_MAX_NODES]; /* [n_begun] */
    uint32_t n_begun;
};

/* ---- slices ------------------------------------------------------------------------------------------------------ */

static int64_t clamp_index(int64_t at, dt_range whole)
{
    return at < whole.begin ? whole.begin : at > whole.end ? whole.end : at;
}

dt_range dt_rank_slice(dt_range whole, uint32_t ranks, uint32_t rank)
{
    const int64_t first = whole.begin / DT_SLICE_UNIT;
    const int64_t n = whole.end > whole.begin ? (whole.end + DT_SLICE_UNIT - 1) / DT_SLICE_UNIT - first : 0;
    return (dt_range){.begin = clamp_index((first + n * rank / ranks) * DT_SLICE_UNIT, whole),
                      .end = clamp_index((first + n * (rank + (int64_t)1) / ranks) * DT_SLICE_UNIT, whole)};
}

static size_t range_bytes(dt_range r)
{
    return (size_t)(r.end - r.begin) * sizeof(float);
}

static dt_status check_ranks(const dt_tree_sum *s, const dt_comm *c)
{
    if (dt_comm_size(c) != s->ranks || dt_comm_rank(c) != s->rank) {
        return DT_FAIL(DT_EINVAL, "a sum of rank %u of %u met a communicator of rank %u of %u", s->rank, s->ranks,
                       dt_comm_rank(c), dt_comm_size(c));
    }
    return DT_OK;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void count_nodes(dt_tree_sum *s)
{
    dt_tree_node node[DT_TREE_MAX_NODES];
    for (uint32_t r = 0; r < s->ranks; r++) {
        const uint32_t n = dt_tree_list_cover(&s->shape, r, node);
        s->n_nodes += n;
        s->n_most = n > s->n_most ? n : s->n_most;
        s->n_mine = r == s->rank ? n : s->n_mine;
    }
}

/* What comes in and, for halves, what goes out. */
static dt_status map_slice_buffers(dt_tree_sum *s)
{
    const dt_range longest = {.begin = 0, .end = (s->most + DT_SLICE_UNIT - 1) / DT_SLICE_UNIT + 1};
    const int64_t slice = (longest.end / s->ranks + 1) * DT_SLICE_UNIT; /* elements, wherever a range begins */
    const uint32_t n_in = s->is_fast ? s->ranks > 1 : s->n_nodes - s->n_mine;
    const bool has_halves = s->made_for != DT_HALF_NONE && s->ranks > 1;
    size_t in = 0, out = 0;
    if (!dt_mul_size((size_t)(slice < s->most ? slice : s->most), n_in, &in) || in > SIZE_MAX / 16 ||
        !dt_mul_size((size_t)s->most, has_halves ? s->n_mine : 0, &out) || out > SIZE_MAX / 16) {
        return DT_FAIL(DT_ENOMEM, "a sum of %lld numbers over %u ranks does not fit in memory", (long long)s->most,
                       s->ranks);
    }
    void *p = NULL;
    const size_t bytes = in * sizeof(float) + (has_halves ? in + out : 0) * sizeof(uint16_t);
    DT_TRY(bytes > 0 ? dt_arena_map(bytes, &p) : DT_OK);
    s->theirs_bytes = bytes;
    s->theirs = p;
    s->halves = has_halves ? (uint16_t *)(void *)(s->theirs + in) : NULL;
    s->packed = has_halves ? s->halves + in : NULL;
    return DT_OK;
}

static dt_status allocate_buffers(dt_tree_sum *s)
{
    const size_t lists = (size_t)s->n_most * s->ranks;
    s->first = dt_alloc_n(s->ranks + (size_t)1, sizeof(*s->first));
    s->node = dt_alloc_n(s->n_nodes, sizeof(*s->node));
    s->parts = dt_alloc_n(s->n_nodes, sizeof(*s->parts));
    s->out = dt_alloc_n(lists, sizeof(*s->out));
    s->in = dt_alloc_n(lists, sizeof(*s->in));
    s->count = dt_alloc_n(s->ranks, sizeof(*s->count));
    if (s->first == NULL || s->node == NULL || s->parts == NULL || s->out == NULL || s->in == NULL ||
        s->count == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for sums over %u ranks", s->ranks);
    }
    DT_TRY(map_slice_buffers(s));
    s->n_nodes = 0;
    for (uint32_t r = 0; r < s->ranks; r++) {
        dt_tree_node node[DT_TREE_MAX_NODES];
        const uint32_t n = dt_tree_list_cover(&s->shape, r, node);
        s->first[r] = s->n_nodes;
        memcpy(s->node + s->n_nodes, node, n * sizeof(*node));
        s->n_nodes += n;
    }
    s->first[s->ranks] = s->n_nodes;
    return DT_OK;
}

dt_status dt_tree_sum_create(const dt_tree_sum_desc *d, dt_tree_sum **out_p)
{
    const uint32_t leaves = d->shape.leaves, ranks = d->shape.ranks, rank = d->shape.rank;
    if (ranks == 0 || ranks > leaves || rank >= ranks || leaves > DT_TREE_MAX_LEAVES || d->most < 0) {
        return DT_FAIL(DT_EINVAL, "a sum of %lld numbers by rank %u of %u over %u shards (at most %d)",
                       (long long)d->most, rank, ranks, leaves, DT_TREE_MAX_LEAVES);
    }
    if (d->is_fast && d->half != DT_HALF_NONE) {
        return DT_FAIL(DT_EINVAL, "fast sums are of fp32: the library does not sum half precision");
    }
    dt_tree_sum *s = dt_alloc(sizeof(*s));
    if (s == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for sums over %u ranks", ranks);
    }
    s->shape = d->shape;
    s->ranks = ranks;
    s->rank = rank;
    s->most = d->most;
    s->is_fast = d->is_fast;
    s->half = s->made_for = d->half;
    count_nodes(s);
    const dt_status st = allocate_buffers(s);
    if (st < 0) {
        dt_tree_sum_destroy(s);
        return st;
    }
    *out_p = s;
    return DT_OK;
}

void dt_tree_sum_destroy(dt_tree_sum *s)
{
    if (s == NULL) {
        return;
    }
    dt_arena_unmap(s->theirs, s->theirs_bytes);
    dt_free(s->count);
    dt_free(s->in);
    dt_free(s->out);
    dt_free(s->parts);
    dt_free(s->node);
    dt_free(s->first);
    dt_free(s);
}

uint64_t dt_tree_sum_buffer_bytes(const dt_tree_sum *s)
{
    return s->theirs_bytes > 0 ? dt_arena_bytes(s->theirs_bytes) : 0;
}

/* ---- values of nodes --------------------------------------------------------------------------------------------- */

void dt_tree_sum_half_set(dt_tree_sum *s, uint32_t half)
{
    s->half = half != DT_HALF_NONE ? s->made_for : DT_HALF_NONE;
}

void dt_tree_round_leaf(const dt_tree_shape *s, uint32_t half, float *value, dt_range at)
{
    dt_optim_round(s->leaves > 1 ? half : DT_HALF_NONE, value, at.begin, at.end);
}

void dt_tree_add_siblings(const dt_tree_shape *s, uint32_t half, uint32_t height, float *left, const float *right,
                          dt_range at)
{
    enum { AT_ONCE = 4096 }; /* elements, which are still in the cache when they are rounded */
    const bool is_root = s->leaves >> height == 1;
    if (half == DT_HALF_NONE || is_root) {
        dt_optim_add(left, right, at.begin, at.end);
        return;
    }
    for (int64_t i = at.begin; i < at.end; i += AT_ONCE) {
        const int64_t end = at.end - i < AT_ONCE ? at.end : i + AT_ONCE;
        dt_optim_add(left, right, i, end);
        dt_optim_round(half, left, i, end);
    }
}

/* ---- a sum ------------------------------------------------------------------------------------------------------- */

/* What goes out of this rank's node k: a part of its range. */
static dt_comm_out find_node_part(const dt_tree_sum *s, const dt_tree_node *mine, uint32_t k, dt_range range,
                                  dt_range at)
{
    if (s->half == DT_HALF_NONE) {
        return (dt_comm_out){(const float *)mine[k].value + at.begin, range_bytes(at)};
    }
    const size_t i = (size_t)k * (size_t)s->most + (size_t)(at.begin - range.begin);
    return (dt_comm_out){s->packed + i, range_bytes(at) / sizeof(float) * sizeof(uint16_t)};
}

/* What comes in for this rank's slice, the i-th number of all that do. */
static dt_comm_in find_receive_buffer(const dt_tree_sum *s, int64_t i)
{
    return s->half != DT_HALF_NONE ? (dt_comm_in){s->halves + i, range_bytes(s->own) / 2}
                                   : (dt_comm_in){s->theirs + i, range_bytes(s->own)};
}

/* Node k of every rank, if it has that many: this rank's slice of it comes here. */
static void prepare_node_exchange(dt_tree_sum *s, const dt_tree_node *mine, uint32_t k, dt_range range)
{
    dt_comm_out *out = s->out + (size_t)k * s->ranks;
    dt_comm_in *in = s->in + (size_t)k * s->ranks;
    if (s->half != DT_HALF_NONE && k < s->n_mine) {
        dt_half_from_f32(s->half, (const float *)mine[k].value + range.begin, s->packed + (size_t)k * (size_t)s->most,
                         range.end - range.begin);
    }
    for (uint32_t r = 0; r < s->ranks; r++) {
        const dt_range theirs = dt_rank_slice(range, s->ranks, r);
        const bool is_me = r == s->rank, has_it = s->first[r] + k < s->first[r + 1];
        out[r] = (dt_comm_out){0};
        in[r] = (dt_comm_in){0};
        if (!is_me && k < s->n_mine) {
            out[r] = find_node_part(s, mine, k, range, theirs);
        }
        if (has_it) {
            const dt_tree_node *node = &s->node[s->first[r] + k];
            s->parts[s->first[r] + k] = (part){node->height, node->index,
                                               is_me ? (float *)mine[k].value + s->own.begin : s->theirs + s->n_came};
        }
        if (has_it && !is_me) {
            in[r] = find_receive_buffer(s, s->n_came);
            s->n_came += s->own.end - s->own.begin;
        }
    }
}

static dt_status start_exchange(dt_tree_sum *s, dt_comm *c, uint32_t k)
{
    s->comm = c;
    DT_TRY(dt_comm_start_all_to_all(c, s->out + (size_t)k * s->ranks, s->in + (size_t)k * s->ranks,
                                    &s->request[s->n_begun]));
    s->n_begun++;
    return DT_OK;
}

static dt_status check_range(const dt_tree_sum *s, const dt_comm *c, dt_range range)
{
    DT_TRY(check_ranks(s, c));
    if (range.begin < 0 || range.end < range.begin || range.end - range.begin > s->most) {
        return DT_FAIL(DT_EINVAL, "a sum over the elements %lld to %lld; at most %lld are possible",
                       (long long)range.begin, (long long)range.end, (long long)s->most);
    }
    return DT_OK;
}

/* Every rank has one vector, of which all slices go to the library. */
static dt_status start_fast(dt_tree_sum *s, dt_comm *c, const float *vector, dt_range range)
{
    for (uint32_t r = 0; r < s->ranks; r++) {
        const dt_range theirs = dt_rank_slice(range, s->ranks, r);
        s->count[r] = (uint32_t)(theirs.end - theirs.begin);
    }
    s->comm = c;
    DT_TRY(dt_comm_start_reduce_scatter(c, vector + range.begin, s->count, s->theirs, &s->request[s->n_begun]));
    s->n_begun++;
    return DT_OK;
}

static dt_status start_exact(dt_tree_sum *s, dt_comm *c, const dt_tree_node *mine, dt_range range)
{
    s->n_came = 0;
    for (uint32_t k = 0; k < s->n_most; k++) {
        prepare_node_exchange(s, mine, k, range);
        DT_TRY(start_exchange(s, c, k));
    }
    return DT_OK;
}

dt_status dt_tree_sum_start(dt_tree_sum *s, dt_comm *c, const dt_tree_node *mine, uint32_t n_mine, dt_range range)
{
    DT_TRY(check_range(s, c, range));
    if (n_mine != s->n_mine) {
        return DT_FAIL(DT_EINVAL, "a sum before all shards have arrived: %u of %u nodes of rank %u", n_mine, s->n_mine,
                       s->rank);
    }
    s->own = dt_rank_slice(range, s->ranks, s->rank);
    s->sum = mine[0].value;
    for (uint32_t k = 1; k < n_mine && s->is_fast; k++) {
        dt_optim_add(s->sum, mine[k].value, range.begin, range.end);
    }
    return s->ranks == 1 ? DT_OK : s->is_fast ? start_fast(s, c, s->sum, range) : start_exact(s, c, mine, range);
}

dt_status dt_tree_sum_participate(dt_tree_sum *s, dt_comm *c, const float *any, dt_range range)
{
    dt_tree_node mine[DT_TREE_MAX_NODES];
    DT_TRY(check_range(s, c, range));
    for (uint32_t k = 0; k < s->n_mine; k++) {
        mine[k] = s->node[s->first[s->rank] + k];
        mine[k].value = (float *)any; /* read alone, since the sum is dropped */
    }
    s->own = dt_rank_slice(range, s->ranks, s->rank);
    return s->ranks == 1 ? DT_OK : s->is_fast ? start_fast(s, c, any, range) : start_exact(s, c, mine, range);
}

dt_status dt_tree_sum_all_gather(dt_tree_sum *s, dt_comm *c, float *vector, dt_range range)
{
    DT_TRY(check_ranks(s, c));
    const dt_range own = dt_rank_slice(range, s->ranks, s->rank);
    for (uint32_t r = 0; r < s->ranks; r++) {
        const dt_range theirs = dt_rank_slice(range, s->ranks, r);
        s->out[r] = (dt_comm_out){vector + own.begin, range_bytes(own)};
        s->in[r] = (dt_comm_in){vector + theirs.begin, range_bytes(theirs)};
    }
    return s->ranks > 1 ? start_exchange(s, c, 0) : DT_OK;
}

dt_status dt_tree_sum_test(dt_tree_sum *s, bool *done_p)
{
    *done_p = true;
    for (uint32_t k = 0; k < s->n_begun && *done_p; k++) {
        DT_TRY(dt_comm_test(s->comm, &s->request[k], done_p));
    }
    return DT_OK;
}

dt_status dt_tree_sum_discard(dt_tree_sum *s)
{
    const uint32_t n = s->n_begun;
    s->n_begun = 0;
    for (uint32_t k = 0; k < n; k++) {
        DT_TRY(dt_comm_wait(s->comm, &s->request[k]));
    }
    return DT_OK;
}

/* Nodes left to right that cover all leaves: add siblings as they meet; the root is the first, which is this rank's
 * only on rank 0. */
static const float *finish_tree(const dt_tree_sum *s)
{
    part *parts = s->parts;
    const int64_t n = s->own.end - s->own.begin;
    uint32_t top = 0; /* parts[0..top) are done and wait for their right sibling */
    for (uint32_t k = 0; k < s->n_nodes; k++) {
        parts[top++] = parts[k];
        while (top > 1 && parts[top - 2].height == parts[top - 1].height && (parts[top - 2].index & 1) == 0) {
            const uint32_t height = parts[top - 1].height + 1;
            dt_tree_add_siblings(&s->shape, s->half, height, parts[top - 2].value, parts[top - 1].value,
                                 (dt_range){0, n});
            top--;
            parts[top - 1].height = height;
            parts[top - 1].index /= 2;
        }
    }
    return parts[0].value;
}

dt_status dt_tree_sum_finish(dt_tree_sum *s)
{
    DT_TRY(dt_tree_sum_discard(s));
    if (s->ranks == 1) {
        return DT_OK;
    }
    if (s->is_fast) {
        memcpy(s->sum + s->own.begin, s->theirs, range_bytes(s->own));
        return DT_OK;
    }
    if (s->half != DT_HALF_NONE) {
        dt_half_to_f32(s->half, s->halves, s->theirs, s->n_came);
    }
    float *mine = s->parts[s->first[s->rank]].value;
    const float *sum = finish_tree(s);
    if (sum != mine) {
        memcpy(mine, sum, range_bytes(s->own));
    }
    return DT_OK;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------ */

/* Of each node all but the own slice goes to others; the library counts one vector. */
uint64_t dt_tree_sum_sent_bytes(const dt_tree_sum *s, dt_range range)
{
    const uint64_t others = range_bytes(range) - range_bytes(dt_rank_slice(range, s->ranks, s->rank));
    return s->is_fast ? others : s->half != DT_HALF_NONE ? others / 2 * s->n_mine : others * s->n_mine;
}

uint64_t dt_tree_all_gather_sent_bytes(const dt_tree_sum *s, dt_range range)
{
    return (uint64_t)range_bytes(dt_rank_slice(range, s->ranks, s->rank)) * (s->ranks - 1);
}

/* ---- doubles ----------------------------------------------------------------------------------------------------- */

/* Leaves of a rank at most. */
static size_t max_leaves_of_rank(const dt_tree_shape *s)
{
    uint32_t most = 0;
    for (uint32_t r = 0; r < s->ranks; r++) {
        const uint32_t n = dt_tree_leaf_begin(s, r + 1) - dt_tree_leaf_begin(s, r);
        most = n > most ? n : most;
    }
    return most;
}

size_t dt_tree_sum_f64_workspace(const dt_tree_shape *s, uint32_t n)
{
    const size_t all = s->leaves;
    return s->ranks == 1 ? all * n : ((s->ranks + (size_t)1) * max_leaves_of_rank(s) + all) * n;
}

/* Leaves are few and so are their numbers: every rank gets all of them and adds level by level. */
dt_status dt_tree_sum_f64(dt_comm *c, const dt_tree_shape *s, const double *mine, uint32_t n, double *room, double *out)
{
    const uint32_t R = s->ranks;
    if (n == 0) {
        return DT_OK;
    }
    const size_t own = dt_tree_leaf_begin(s, s->rank + 1) - dt_tree_leaf_begin(s, s->rank);
    const size_t per_rank = max_leaves_of_rank(s) * n;
    double *sum = room;
    if (R > 1) {
        double *sent = room + (size_t)s->leaves * n, *all = sent + per_rank;
        memset(sent, 0, per_rank * sizeof(*sent));
        memcpy(sent, mine, own * n * sizeof(*sent));
        DT_TRY(dt_comm_all_gather(c, sent, per_rank * sizeof(*sent), all));
        for (uint32_t r = 0; r < R; r++) {
            const size_t start_exchange = dt_tree_leaf_begin(s, r), end = dt_tree_leaf_begin(s, r + 1);
            memcpy(sum + start_exchange * n, all + r * per_rank, (end - start_exchange) * n * sizeof(*sum));
        }
    } else {
        memcpy(sum, mine, own * n * sizeof(*sum));
    }
    for (size_t width = s->leaves / 2; width > 0; width /= 2) {
        for (size_t i = 0; i < width; i++) {
            for (size_t k = 0; k < n; k++) {
                sum[i * n + k] = sum[2 * i * n + k] + sum[(2 * i + 1) * n + k];
            }
        }
    }
    memcpy(out, sum, n * sizeof(*out));
    return DT_OK;
}
