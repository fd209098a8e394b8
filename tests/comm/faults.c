/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks in a simulated world (world.h) where every seed is another mishap: "faults FIRST COUNT" runs so many seeds and
 * prints what was reached; "faults SEED" runs one and prints all that happens.
 *
 * Whatever strikes, all ranks end within the time limit; a rank that ends well has the right numbers, to the bit, and
 * one that does not names the rank that was struck, or nobody where nobody can know; nothing is left in memory, and the
 * same seed does the same again.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "comm/tree_sum.h"
#include "world.h"

enum { MOST_RANKS = 256, LEAVES = 64, PARTS = 2, COUNT = 4100, CALLS = 20, TOGETHER = 17, WORDS = 5, STEPS = 3 };
enum { NOTHING = DT_FATE_KINDS };
#define TIMEOUT_S 5.0

typedef struct scenario {
    dt_world_desc d;
    dt_fate fate;
    uint32_t kind;     /* of the fate; NOTHING */
    uint32_t what;     /* which body */
    bool has_harm;     /* a rank may fail */
    const float *want; /* what the training ends in */
} scenario;

static double draw(uint64_t seed, uint64_t i)
{
    const dt_rng_key key = {.seed = seed, .op = 5};
    return dt_rng_uniform(&key, i);
}

static dt_status wrong(const char *what, uint32_t number)
{
    return DT_FAIL(DT_EPLUGIN, "wrong: %s %u", what, number);
}

/* ---- a mix of calls ---------------------------------------------------------------------------------------------- */

typedef struct mixed {
    dt_comm_request request;
    uint32_t op, number;
    uint32_t mine[WORDS], all[MOST_RANKS * WORDS], cut[MOST_RANKS];
    float x[MOST_RANKS], sum[WORDS];
    dt_comm_out out[MOST_RANKS];
    dt_comm_in in[MOST_RANKS];
} mixed;

static uint32_t word(uint32_t rank, uint32_t number, uint32_t i)
{
    return (rank * 1000 + number) * 10 + i;
}

static dt_status begin_mixed(dt_comm *c, mixed *m)
{
    const uint32_t me = dt_comm_rank(c), size = dt_comm_size(c);
    for (uint32_t i = 0; i < WORDS; i++) {
        m->mine[i] = word(me, m->number, i);
    }
    for (uint32_t r = 0; r < size; r++) {
        m->x[r] = (float)(me + r + m->number);
        m->cut[r] = (r + m->number) % 2;
        m->out[r] = (dt_comm_out){m->mine, (me + r) % (WORDS + 1) * sizeof(uint32_t)};
        m->in[r] = (dt_comm_in){m->all + (size_t)r * WORDS, (me + r) % (WORDS + 1) * sizeof(uint32_t)};
    }
    uint32_t n = 0;
    for (uint32_t r = 0; r < size; r++) {
        n += m->cut[r];
    }
    switch (m->op) {
    case DT_COMM_ALL_GATHER:
        return dt_comm_start_all_gather(c, m->mine, sizeof(m->mine), m->all, &m->request);
    case DT_COMM_ALL_TO_ALL:
        return dt_comm_start_all_to_all(c, m->out, m->in, &m->request);
    case DT_COMM_BROADCAST:
        return dt_comm_start_broadcast(c, m->number % size, m->mine, sizeof(m->mine), &m->request);
    case DT_COMM_REDUCE_SCATTER:
        return n > 0 ? dt_comm_start_reduce_scatter(c, m->x, m->cut, m->sum, &m->request)
                     : dt_comm_start_barrier(c, &m->request);
    default:
        return dt_comm_start_barrier(c, &m->request);
    }
}

/* The sum over all ranks of what they brought for element i. */
static float sum_at(uint32_t size, uint32_t number, uint32_t i)
{
    float sum = 0;
    for (uint32_t r = 0; r < size; r++) {
        sum += (float)(r + i + number);
    }
    return sum;
}

static bool is_mixed_right(dt_comm *c, const mixed *m)
{
    const uint32_t me = dt_comm_rank(c), size = dt_comm_size(c);
    bool is_right = true;
    uint32_t at = 0;
    for (uint32_t r = 0; r < size; r++) {
        const uint32_t n = m->op == DT_COMM_ALL_GATHER   ? WORDS
                           : m->op == DT_COMM_ALL_TO_ALL ? (me + r) % (WORDS + 1)
                                                         : 0;
        for (uint32_t i = 0; i < n; i++) {
            is_right = is_right && m->all[r * WORDS + i] == word(r, m->number, i);
        }
        at += r < me ? m->cut[r] : 0;
    }
    for (uint32_t i = 0; i < WORDS && m->op == DT_COMM_BROADCAST; i++) {
        is_right = is_right && m->mine[i] == word(m->number % size, m->number, i);
    }
    return is_right && (m->op != DT_COMM_REDUCE_SCATTER || m->cut[me] == 0 || m->sum[0] == sum_at(size, m->number, at));
}

static dt_status end_mixed(dt_comm *c, mixed *m, bool waits)
{
    bool is_done = false;
    while (!waits && !is_done) {
        DT_TRY(dt_comm_test(c, &m->request, &is_done));
    }
    DT_TRY(dt_comm_wait(c, &m->request));
    return is_mixed_right(c, m) ? DT_OK : wrong("call", m->number);
}

/* Up to 17 are under way, the same on all ranks; each rank ends them in an order of its own. */
static dt_status mix(dt_comm *c, const scenario *s, mixed *m)
{
    const uint64_t seed = s->d.seed, own = seed * 1000 + dt_comm_rank(c);
    for (uint32_t done = 0; done < CALLS;) {
        const uint32_t left = CALLS - done, most = left < TOGETHER ? left : TOGETHER;
        const uint32_t n = 1 + (uint32_t)(draw(seed, 100 + done) * draw(seed, 200 + done) * most);
        uint32_t order[TOGETHER];
        for (uint32_t k = 0; k < n; k++) {
            m[k].number = done + k;
            m[k].op = (uint32_t)(draw(seed, 300 + done + k) * 5);
            order[k] = k;
            DT_TRY(begin_mixed(c, &m[k]));
            DT_TRY(dt_world_work(c, draw(own, done + k) * 1e-3));
        }
        for (uint32_t k = n; k-- > 0;) {
            const uint32_t other = (uint32_t)(draw(own, 100 + done + k) * (k + 1)), which = order[other];
            order[other] = order[k];
            DT_TRY(end_mixed(c, &m[which], draw(own, 200 + done + k) < 0.8));
        }
        done += n;
    }
    return dt_comm_agree(c, DT_OK);
}

static dt_status mix_body(dt_comm *c, const scenario *s)
{
    mixed *m = dt_alloc_n(TOGETHER, sizeof(*m));
    const dt_status st = m != NULL ? mix(c, s, m) : DT_FAIL(DT_ENOMEM, "out of memory");
    dt_free(m);
    return st;
}

/* ---- training, summed by the tree -------------------------------------------------------------------------------- */

static float gradient(const float *weight, uint32_t leaf, uint32_t i, uint32_t step)
{
    const float target = (float)((leaf * 7919u + i * 104729u + step) % 1009u) * 0.01f;
    return (weight[i] - target) * (i % 3 == 0 ? 1e-4f : 1);
}

static void update(float *weight, const float *sum, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        weight[i] -= 0.1f / LEAVES * sum[i];
    }
}

static void add(float *to, const float *from)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        to[i] += from[i];
    }
}

/* In one go, the sum being left half plus right half. */
static const float *trained_alone(void)
{
    static float sum[LEAVES][COUNT], weight[COUNT];
    memset(weight, 0, sizeof(weight));
    for (uint32_t step = 0; step < STEPS; step++) {
        for (uint32_t leaf = 0; leaf < LEAVES; leaf++) {
            for (uint32_t i = 0; i < COUNT; i++) {
                sum[leaf][i] = gradient(weight, leaf, i, step);
            }
        }
        for (uint32_t width = 1; width < LEAVES; width *= 2) {
            for (uint32_t leaf = 0; leaf < LEAVES; leaf += 2 * width) {
                add(sum[leaf], sum[leaf + width]);
            }
        }
        update(weight, sum[0], 0, COUNT);
    }
    return weight;
}

typedef struct trained { /* by one rank */
    dt_tree *tree;
    dt_tree_sum *sum[PARTS]; /* both are under way at once */
    float *buffer, *weight;  /* [leaves + 1, COUNT] */
} trained;

static const dt_range part_of_vector[PARTS] = {{0, COUNT / 3}, {COUNT / 3, COUNT}};

/* The slice that this rank owns. */
static dt_status update_part(dt_comm *c, trained *t, const float *sum, uint32_t part)
{
    const dt_range own = dt_rank_slice(part_of_vector[part], dt_comm_size(c), dt_comm_rank(c));
    DT_TRY(dt_tree_sum_finish(t->sum[part]));
    update(t->weight, sum, own.begin, own.end);
    return DT_OK;
}

static dt_tree_shape shape_of(const dt_comm *c)
{
    return (dt_tree_shape){.leaves = LEAVES, .ranks = dt_comm_size(c), .rank = dt_comm_rank(c)};
}

static dt_status train_step(dt_comm *c, trained *t, uint32_t step)
{
    const dt_tree_shape s = shape_of(c);
    const uint32_t begin = dt_tree_leaf_begin(&s, s.rank), end = dt_tree_leaf_begin(&s, s.rank + 1);
    dt_tree_node mine[DT_TREE_MAX_NODES];
    dt_tree_reset(t->tree);
    for (uint32_t leaf = begin; leaf < end; leaf++) {
        float *value = t->buffer + (size_t)(leaf - begin) * COUNT;
        for (uint32_t i = 0; i < COUNT; i++) {
            value[i] = gradient(t->weight, leaf, i, step);
        }
        dt_tree_node node = {.index = leaf, .value = value};
        dt_tree_merge m;
        while (dt_tree_insert(t->tree, 0, &node, &m)) {
            add(m.left, m.right);
            node = m.parent;
        }
        DT_TRY(dt_world_work(c, 1e-4));
    }
    const uint32_t n = dt_tree_list_nodes(t->tree, 0, mine);
    for (uint32_t k = 0; k < PARTS; k++) {
        DT_TRY(dt_tree_sum_start(t->sum[k], c, mine, n, part_of_vector[k]));
    }
    for (uint32_t k = 0; k < PARTS; k++) {
        DT_TRY(update_part(c, t, mine[0].value, k));
    }
    for (uint32_t k = 0; k < PARTS; k++) {
        DT_TRY(dt_tree_sum_all_gather(t->sum[k], c, t->weight, part_of_vector[k]));
    }
    for (uint32_t k = 0; k < PARTS; k++) {
        DT_TRY(dt_tree_sum_discard(t->sum[k]));
    }
    return dt_comm_agree(c, DT_OK);
}

static dt_status train(dt_comm *c, const scenario *s, trained *t)
{
    const dt_tree_shape shape = shape_of(c);
    const uint32_t R = shape.ranks;
    DT_TRY(dt_tree_create(&shape, 1, &t->tree));
    for (uint32_t k = 0; k < PARTS; k++) {
        DT_TRY(dt_tree_sum_create(&(dt_tree_sum_desc){.shape = shape, .most = COUNT}, &t->sum[k]));
    }
    t->buffer = dt_alloc_n((size_t)(LEAVES / R + 2) * COUNT, sizeof(float));
    if (t->buffer == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory");
    }
    t->weight = t->buffer + (size_t)(LEAVES / R + 1) * COUNT;
    DT_TRY(dt_comm_broadcast(c, 0, t->weight, COUNT * sizeof(float)));
    for (uint32_t step = 0; step < STEPS; step++) {
        DT_TRY(train_step(c, t, step));
    }
    return memcmp(t->weight, s->want, COUNT * sizeof(float)) == 0 ? DT_OK : wrong("weights after step", STEPS);
}

static dt_status train_body(dt_comm *c, const scenario *s)
{
    trained t = {0};
    const dt_status st = train(c, s, &t);
    for (uint32_t k = 0; k < PARTS; k++) {
        dt_tree_sum_destroy(t.sum[k]);
    }
    dt_tree_destroy(t.tree);
    dt_free(t.buffer);
    return st;
}

static dt_status run_body(dt_comm *c, void *user)
{
    const scenario *s = user;
    return s->what == 0 ? mix_body(c, s) : train_body(c, s);
}

/* ---- a seed ------------------------------------------------------------------------------------------------------ */

/* Of every seven seeds one has no mishap, one loses everything or nobody hears of deaths; kinds and points go round. */
static void imagine(uint64_t seed, scenario *s)
{
    static const float *want;
    want = want != NULL ? want : trained_alone();
    static const uint32_t sizes[] = {2, 2, 3, 3, 4, 4, 4, 5, 6, 7, 8, 13};
    const bool is_large = draw(seed, 12) < 0.03;
    const uint32_t R = is_large && draw(seed, 13) < 0.2 ? MOST_RANKS
                       : is_large                       ? 16 + (uint32_t)(49 * draw(seed, 13))
                                                        : sizes[(uint32_t)(draw(seed, 1) * 12)];
    *s = (scenario){.want = want};
    const uint32_t where = (uint32_t)(seed / DT_FATE_KINDS % DT_WORLD_POINTS);
    s->what = where / DT_WORLD_PHASES <= DT_COMM_BROADCAST && draw(seed, 14) < 0.5 && R <= LEAVES ? 1 : 0;
    s->kind = seed % 7 == 0 ? NOTHING : (uint32_t)(seed % DT_FATE_KINDS);
    const bool is_long = draw(seed, 2) < 0.5;
    s->fate = (dt_fate){.kind = (dt_fate_kind)s->kind,
                        .rank = (uint32_t)(draw(seed, 3) * R),
                        .visit = 1 + (uint64_t)(draw(seed, 4) * draw(seed, 5) * CALLS),
                        .where = where,
                        .seconds = !is_long                                          ? draw(seed, 6) * 0.02
                                   : s->kind == DT_FATE_STOPS && draw(seed, 6) < 0.5 ? INFINITY
                                                                                     : 3 * TIMEOUT_S};
    s->d = (dt_world_desc){.seed = seed,
                           .ranks = R,
                           .timeout_s = TIMEOUT_S,
                           .detect_s = draw(seed, 7) < 0.2 ? INFINITY : draw(seed, 7),
                           .links = {.latency_s = 1e-6 + 1e-4 * draw(seed, 8),
                                     .bytes_per_s = draw(seed, 9) < 0.3 ? 0 : 1e7 / (draw(seed, 9) + 0.01),
                                     .jitter = draw(seed, 10) < 0.5 ? 0 : 20 * draw(seed, 10),
                                     .loss = draw(seed, 11) < 0.5 ? 0 : 0.1 * draw(seed, 11),
                                     .resend_s = 1e-3},
                           .fate = &s->fate,
                           .n_fates = s->kind != NOTHING};
    if (s->kind == NOTHING && seed % 5 == 0) {
        s->d.links.loss = 1;
    }
    const bool may_pass = s->kind == NOTHING || s->kind == DT_FATE_SLOW || s->kind == DT_FATE_STOPS;
    s->has_harm = s->d.links.loss >= 1 || !may_pass || (s->kind != NOTHING && is_long);
}

/* "for rank 3 7 12" names 7. */
static bool is_listed(const char *text, uint32_t rank)
{
    const char *at = strstr(text, "waiting for rank");
    for (char *end = NULL; at != NULL; at = end) {
        at += strcspn(at, "0123456789");
        if (*at == '\0') {
            return false;
        }
        if (strtoul(at, &end, 10) == rank) {
            return true;
        }
    }
    return false;
}

/* Does it name the rank that was struck? Where nobody hears of it, nobody may be named, but no other rank alone. */
static bool blames(const scenario *s, const char *text)
{
    char died[40], failed[40];
    snprintf(died, sizeof(died), "rank %u died", s->fate.rank);
    snprintf(failed, sizeof(failed), "rank %u fails", s->fate.rank);
    return strstr(text, died) != NULL || strstr(text, failed) != NULL || is_listed(text, s->fate.rank) ||
           ((s->kind == DT_FATE_CUT || s->kind == NOTHING || isinf(s->d.detect_s)) &&
            strstr(text, "what others send") != NULL);
}

static const char *check_rank(const scenario *s, const dt_world_end *end, uint32_t r)
{
    const bool is_struck = s->fate.is_struck && r == s->fate.rank;
    if (end->error.status == DT_OK) {
        return NULL;
    }
    if (strstr(end->error.text, "wrong") != NULL) {
        return "wrong numbers";
    }
    if (!s->has_harm || (s->kind != NOTHING && !s->fate.is_struck)) {
        return "failed, though nothing was the matter";
    }
    if (end->error.status != DT_EPEER && end->error.status != DT_ECOMM && !is_struck) {
        return "another code than those of peers and communication";
    }
    return is_struck || blames(s, end->error.text) ? NULL : "does not name the rank that was struck";
}

static const char *check_outcome(const scenario *s, const dt_world_report *o, uint32_t *rank_p)
{
    const double wait = isinf(s->d.detect_s) ? 0 : s->d.detect_s, nap = isinf(s->fate.seconds) ? 0 : s->fate.seconds;
    for (*rank_p = 0; *rank_p < s->d.ranks; ++*rank_p) {
        const char *bad = check_rank(s, &o->end[*rank_p], *rank_p);
        if (bad != NULL) {
            return bad;
        }
    }
    /* the struck one wakes, and goes through at most all its points */
    const double limit = s->fate.at_s + 4 * TIMEOUT_S + 2 * wait + (s->kind == DT_FATE_SLOW ? 8 * CALLS : 1) * nap;
    return o->seconds > limit ? "took longer than the time limit allows" : NULL;
}

typedef struct tally {
    uint64_t events, failed, ended_well;
    double simulated;
    bool hit[DT_FATE_KINDS][DT_WORLD_POINTS];
} tally;

static bool run_seed(uint64_t seed, tally *t, void (*notify)(void *user, const char *line))
{
    static dt_world_end end[MOST_RANKS];
    static scenario s;
    dt_world_report out = {.end = end};
    const uint64_t live = dt_alloc_live_bytes();
    uint32_t rank = 0;
    imagine(seed, &s);
    s.d.notify = notify;
    const dt_status st = dt_world_run(&s.d, run_body, &s, &out);
    const char *bad = st < 0 ? dt_error_text() : check_outcome(&s, &out, &rank);
    if (bad == NULL && dt_alloc_live_bytes() != live) {
        bad = "memory is left";
    }
    if (bad == NULL && seed % 8 == 0) {
        const uint64_t trace = out.trace;
        s.fate.is_struck = false;
        if (dt_world_run(&s.d, run_body, &s, &out) != DT_OK || out.trace != trace) {
            bad = "another trace the second time";
        }
    }
    t->events += out.events;
    t->simulated += out.seconds;
    t->ended_well += end[0].error.status == DT_OK;
    if (s.fate.is_struck) {
        t->hit[s.fate.kind][s.fate.point] = true;
    }
    if (bad != NULL) {
        t->failed++;
        printf("FAIL: seed %llu, %u ranks, rank %u: %s: %s %s\n    replay it with: faults %llu\n",
               (unsigned long long)seed, s.d.ranks, rank, bad, dt_status_name(end[rank % MOST_RANKS].error.status),
               end[rank % MOST_RANKS].error.text, (unsigned long long)seed);
    }
    return bad == NULL;
}

static void say(void *user, const char *line)
{
    puts(line);
}

static uint32_t points_hit(const tally *t)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < DT_FATE_KINDS; k++) {
        for (uint32_t p = 0; p < DT_WORLD_POINTS; p++) {
            n += t->hit[k][p];
        }
    }
    return n;
}

int main(int argc, char **argv)
{
    static tally t;
    const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    if (argc == 2) {
        const bool is_well = run_seed(first, &t, say);
        printf("seed %llu: %s\n", (unsigned long long)first, is_well ? "as it should be" : "FAIL");
        return !is_well;
    }
    const uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 300;
    const double begin = dt_clock_s();
    for (uint64_t seed = first; seed < first + count; seed++) {
        (void)run_seed(seed, &t, NULL);
    }
    printf("%llu seeds, %llu failed; %llu went through; points hit %u / points total %d; %llu events, %.0f s simulated "
           "in %.1f s\n",
           (unsigned long long)count, (unsigned long long)t.failed, (unsigned long long)t.ended_well, points_hit(&t),
           DT_FATE_KINDS * DT_WORLD_POINTS, (unsigned long long)t.events, t.simulated, dt_clock_s() - begin);
    return t.failed != 0;
}
