/* SPDX-License-Identifier: Apache-2.0
 *
 * env_traffic as an environment: its contract with the host, what agents see, determinism, refusals.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */
#include "../../plugins/env_traffic/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "traffic/features/features.h"
#include "dtrain/ext/scene.h"
#include "dtrain/traffic/features.h"

enum { COSTS = 5, METRICS = 15 };

typedef struct rig {
    mock_host host;
    const dt_env_ops *ops;
    void *config, *self;
    dt_env_spec spec;
    dt_env_io io;
    size_t obs_bytes[DT_ENV_MAX_OBS];
    uint32_t n_choices, n_signals; /* control = both: the first agents */
    int32_t *act_i;
    float *act_f;
} rig;

static dt_status features_frame(const dt_host *h, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max,
                                float *node, int32_t *rowptr, int32_t *col, float *edge)
{
    return dt_features_frame(NULL, v, n, radius_m, k_max, node, rowptr, col, edge, NULL);
}

static const dt_features_api features = {.struct_size = sizeof(features), .frame = features_frame};

static dt_status rig_create(rig *r, const char *const *set)
{
    memset(r, 0, sizeof(*r));
    mock_host_init(&r->host);
    mock_host_serve(&r->host, DT_SVC_FEATURES, &features);
    const dt_component *c = mock_load("plugins", "env_traffic", "env_traffic");
    assert_non_null(c);
    r->ops = c->ops;
    r->config = mock_config(c, set);
    r->self = calloc(1, c->state_size);
    return r->ops->create(r->self, &r->host.host, r->config);
}

/* Rows of a port, from its dims. */
static int64_t rows_of(const rig *r, const dt_port *p, int64_t *per_row_p)
{
    char dims[64];
    snprintf(dims, sizeof(dims), "%s", p->dims);
    int64_t rows = r->spec.n_agents;
    *per_row_p = 1;
    char *save = NULL, *token = strtok_r(dims, " ", &save);
    for (uint32_t k = 0; k < r->spec.n_symbols; k++) {
        if (token[0] == r->spec.symbols[k].name[0]) {
            rows = r->spec.symbols[k].size + (token[1] == '+');
        }
    }
    while ((token = strtok_r(NULL, " ", &save)) != NULL) {
        *per_row_p *= strtol(token, NULL, 10);
    }
    return rows;
}

static void rig_open(rig *r, const char *const *set)
{
    if (rig_create(r, set) != DT_OK) {
        print_error("%s\n", r->host.message);
        fail();
    }
    r->spec.struct_size = sizeof(r->spec);
    assert_int_equal(r->ops->spec(r->self, &r->spec), DT_OK);
    void **obs = calloc(r->spec.n_obs, sizeof(*obs));
    for (uint32_t k = 0; k < r->spec.n_obs; k++) {
        int64_t per_row;
        const int64_t rows = rows_of(r, &r->spec.obs[k], &per_row);
        r->obs_bytes[k] = (size_t)(rows * per_row) * 4;
        obs[k] = calloc(1, r->obs_bytes[k]);
    }
    const uint32_t n = r->spec.n_agents;
    for (uint32_t k = 0; k < r->spec.n_heads; k++) {
        r->n_choices += (uint32_t)r->spec.choices[k];
    }
    assert_int_equal(r->spec.n_costs, COSTS);
    assert_int_equal(r->spec.n_metrics, METRICS);
    r->act_i = calloc(n * (r->spec.n_heads + 1), sizeof(*r->act_i));
    r->act_f = calloc(n * (r->spec.n_continuous + 1), sizeof(*r->act_f));
    r->io = (dt_env_io){.struct_size = sizeof(r->io),
                        .n_obs = r->spec.n_obs,
                        .obs = obs,
                        .size = calloc(4, sizeof(int64_t)),
                        .alive = calloc(n, 1),
                        .mask = calloc(n * (r->n_choices + 1), 1),
                        .reward = calloc(n, sizeof(float)),
                        .cost = calloc(n * COSTS, sizeof(float)),
                        .terminated = calloc(n, 1),
                        .truncated = calloc(n, 1),
                        .metric = calloc(METRICS, sizeof(double))};
}

static void rig_close(rig *r)
{
    r->ops->destroy(r->self);
    for (uint32_t k = 0; k < r->spec.n_obs; k++) {
        free(r->io.obs[k]);
    }
    void *const owned[] = {(void *)r->io.obs, r->io.size,   r->io.alive,      r->io.mask,      r->io.reward,
                           r->io.cost,        r->io.metric, r->io.terminated, r->io.truncated, r->act_i,
                           r->act_f,          r->self,      r->config};
    for (size_t k = 0; k < sizeof(owned) / sizeof(owned[0]); k++) {
        free(owned[k]);
    }
    assert_int_equal(r->host.n_live, 0);
}

static void rig_clear(rig *r)
{
    const uint32_t n = r->spec.n_agents;
    for (uint32_t k = 0; k < r->spec.n_obs; k++) {
        memset(r->io.obs[k], 0, r->obs_bytes[k]);
    }
    memset(r->io.alive, 0, n);
    memset(r->io.mask, 1, n * r->n_choices);
    memset(r->io.reward, 0, n * sizeof(float));
    memset(r->io.cost, 0, n * COSTS * sizeof(float));
    memset(r->io.terminated, 0, n);
    memset(r->io.truncated, 0, n);
}

/* Agents that are there are nodes of the graph, the others are none. */
static void rig_check_nodes(const rig *r)
{
    for (uint32_t k = 0; r->spec.n_symbols == 2 && k < r->spec.n_agents; k++) {
        const int32_t node = ((const int32_t *)r->io.obs[4])[k];
        const int is_there = k >= r->n_signals && (r->io.alive[k] || r->io.terminated[k] || r->io.truncated[k]);
        assert_true(node >= -1 && node < r->io.size[0]);
        assert_true(!is_there || node >= 0);
    }
}

static void rig_reset(rig *r, uint64_t seed)
{
    rig_clear(r);
    r->io.act_i = NULL;
    r->io.act_f = NULL;
    assert_int_equal(r->ops->reset(r->self, &r->io, seed), DT_OK);
    rig_check_nodes(r);
}

/* What holds after every step of every scenario. */
static int rig_step(rig *r)
{
    const uint32_t n = r->spec.n_agents;
    uint8_t acted[256];
    assert_true(n <= sizeof(acted));
    memcpy(acted, r->io.alive, n);
    rig_clear(r);
    r->io.act_i = r->act_i;
    r->io.act_f = r->act_f;
    const dt_status st = r->ops->step(r->self, &r->io);
    assert_true(st == DT_OK || st == DT_DONE);
    rig_check_nodes(r);
    for (uint32_t k = 0; k < n; k++) {
        const int ended = r->io.terminated[k] + r->io.truncated[k];
        assert_true(ended <= acted[k]);
        assert_true(!ended || !r->io.alive[k]);
        assert_true(!acted[k] || ended || r->io.alive[k]);
        assert_true(acted[k] || r->io.reward[k] == 0);
        for (int c = 0; c < COSTS; c++) {
            assert_true(r->io.cost[k * COSTS + (uint32_t)c] >= 0);
        }
    }
    return st == DT_DONE;
}

/* FNV-1a over all that was written. */
static uint64_t rig_hash(const rig *r, uint64_t hash)
{
    const uint32_t n = r->spec.n_agents;
    const struct {
        const void *p;
        size_t bytes;
    } part[] = {{r->io.alive, n}, {r->io.reward, n * 4}, {r->io.cost, n * COSTS * 4}, {r->io.mask, n * r->n_choices}};
    for (size_t k = 0; k < sizeof(part) / sizeof(part[0]) + r->spec.n_obs; k++) {
        const int is_obs = k < r->spec.n_obs;
        const uint8_t *p = is_obs ? r->io.obs[k] : part[k - r->spec.n_obs].p;
        const size_t bytes = is_obs ? r->obs_bytes[k] : part[k - r->spec.n_obs].bytes;
        for (size_t i = 0; i < bytes; i++) {
            hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
        }
    }
    return hash;
}

/* Random actions within the bounds; hash of the whole episode. */
static uint64_t play(rig *r, uint64_t seed)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325), x = 88172645463325252;
    rig_reset(r, seed);
    for (int over = 0; !over;) {
        hash = rig_hash(r, hash);
        for (uint32_t k = 0; k < r->spec.n_agents; k++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            const float u = (float)(x >> 40) / (float)(1 << 24);
            for (uint32_t c = 0; c < r->spec.n_continuous; c++) {
                r->act_f[k * r->spec.n_continuous + c] = r->spec.low[c] + u * (r->spec.high[c] - r->spec.low[c]);
            }
            const uint8_t *mask = r->io.mask + k * r->n_choices;
            for (uint32_t c = 0; c < r->spec.n_heads; mask += r->spec.choices[c++]) {
                int32_t *act = &r->act_i[k * r->spec.n_heads + c];
                *act = (int32_t)(x >> (33 + c)) % r->spec.choices[c];
                while (!mask[*act]) {
                    *act = (*act + 1) % r->spec.choices[c];
                }
            }
        }
        over = rig_step(r);
    }
    return rig_hash(r, hash);
}

static const char *const *const worlds[] = {
    (const char *const[]){"scenario=ring", "agents=8", "penetration=0.3", "episode_s=300", "end_at_collision=false",
                          NULL},
    (const char *const[]){"scenario=grid", "control=both", "agents=30", "penetration=0.3", "episode_s=100",
                          "lane_actions=true", "end_at_collision=false", NULL},
};

static void test_same_seed_same_bits(void **test)
{
    for (size_t k = 0; k < sizeof(worlds) / sizeof(worlds[0]); k++) {
        rig a, b;
        rig_open(&a, worlds[k]);
        a.n_signals = a.spec.n_heads > 1 ? 4 : 0;
        const uint64_t first = play(&a, 5), other = play(&a, 6);
        assert_true(first != other);
        assert_true(play(&a, 5) == first); /* whatever the instance did before */
        rig_open(&b, worlds[k]);
        b.n_signals = a.n_signals;
        assert_true(play(&b, 5) == first);
        rig_close(&b);
        rig_close(&a);
    }
}

static void test_ring_is_seen_as_it_is(void **test)
{
    static const char *const set[] = {"vehicles=10", "length_m=200", "jitter_m=0", "penetration=0.1", NULL};
    rig r;
    rig_open(&r, set);
    assert_int_equal(r.spec.n_agents, 1);
    assert_int_equal(r.spec.max_steps, 1000);
    rig_reset(&r, 1);
    assert_int_equal(r.io.alive[0], 1);
    assert_int_equal(r.io.size[0], 10);
    const float *node = r.io.obs[0], *ego = r.io.obs[5];
    const int32_t me = *(const int32_t *)r.io.obs[4];
    assert_true(node[9 * me + 8] == 1);
    float controlled = 0;
    for (int k = 0; k < 10; k++) {
        controlled += node[9 * k + 8];
        assert_true(fabs(hypot(node[9 * k], node[9 * k + 1]) - 200 / 6.283185307) < 1e-3);
    }
    assert_true(controlled == 1);
    assert_true(fabsf(ego[1] - 15) < 1e-4f && fabsf(ego[3] - 15) < 1e-4f);
    assert_true(fabsf(ego[8] - (1.f - 4.f / 225.f)) < 1e-5f); /* a [1 - (s0 / s)^2] from rest */
    assert_int_equal(r.spec.n_obs, 8);
    assert_string_equal(r.spec.obs[7].name, "centre"); /* of the ring */
    assert_true(fabsf(((const float *)r.io.obs[7])[0]) < 1e-3F && fabsf(((const float *)r.io.obs[7])[19]) < 1e-3F);
    assert_string_equal(r.spec.obs[6].name, "ahead");
    static const float ahead[21] = {15,   0, 9, 0, 3, 0.5F, 0, /* the one ahead; then neither a line nor a junction */
                                    1000, 0, 9, 0, 3, 0.5F, 0, 1000, 0, 9, 0, 3, 0.5F, 0};
    for (int d = 0; d < 21; d++) {
        assert_true(fabsf(((const float *)r.io.obs[6])[d] - ahead[d]) < 1e-4F);
    }
    r.act_f[0] = 1;
    rig_step(&r);
    ego = r.io.obs[5];
    assert_true(fabsf(ego[0] - 0.5f) < 1e-6f && fabsf(ego[7] - 1) < 1e-6f);
    assert_true(((const float *)r.io.obs[6])[3] == ego[0] && ((const float *)r.io.obs[6])[0] == ego[1]);
    assert_true(r.io.reward[0] > 0.03f && r.io.reward[0] < 0.05f); /* 0.5 of 13.89 m/s, all alike */
    rig_close(&r);
}

static void test_a_collision_terminates(void **test)
{
    static const char *const set[] = {"vehicles=5", "length_m=150", "penetration=0.4", "agents=2", NULL};
    rig r;
    rig_open(&r, set);
    rig_reset(&r, 1);
    int over = 0;
    for (int k = 0; !over; k++) {
        assert_true(k < 1000);
        r.act_f[0] = 1.5f; /* one drives on, the other brakes: a vehicle is hit */
        r.act_f[1] = -3;
        over = rig_step(&r);
    }
    assert_int_equal(r.io.terminated[0] + r.io.terminated[1], r.io.cost[0] + r.io.cost[COSTS]);
    assert_true(r.io.terminated[0]);
    assert_true(r.io.truncated[0] + r.io.terminated[0] == 1 && r.io.truncated[1] + r.io.terminated[1] == 1);
    assert_true(r.io.metric[9] >= 1);
    rig_close(&r);
    static const char *const lasting[] = {"vehicles=5", "length_m=150", "episode_s=50", NULL};
    rig_open(&r, lasting); /* without a collision the end is a truncation */
    rig_reset(&r, 1);
    int steps = 1;
    for (; !rig_step(&r); steps++) {
    }
    assert_int_equal(steps, 100);
    assert_true(isnan(r.io.metric[1]) && r.io.metric[6] == 5 && r.io.metric[9] == 0);
    rig_close(&r);
}

/* An agent moves between lanes as it says, where the mask lets it, and not otherwise. */
static void test_lanes_as_actions(void **test)
{
    static const char *const set[] = {"scenario=bottleneck", "agents=4", "penetration=1",    "lane_actions=true",
                                      "flow_vph=60",         "lanes=3",  "arrivals=uniform", NULL};
    rig r;
    rig_open(&r, set);
    assert_int_equal(r.spec.n_heads, 1);
    assert_int_equal(r.spec.choices[0], 3);
    rig_reset(&r, 1);
    while (!r.io.alive[0]) {
        rig_step(&r);
    }
    assert_int_equal(r.io.mask[1], 0); /* where roads begin, who comes behind is not seen */
    while (((const float *)r.io.obs[0])[0] < -370) {
        rig_step(&r);
    }
    static const int32_t plan[] = {0, 1, 1, 1, 0, 2, 2, 2};
    const float *node = r.io.obs[0];
    const int lane = (int)lroundf(node[1] / 3.2f);
    assert_int_equal(lane, 0); /* an empty road is entered on the right */
    int at = lane;
    for (size_t k = 0; k < 8; k++) {
        r.act_f[0] = 0;
        r.act_i[0] = r.io.mask[plan[k]] ? plan[k] : 0;
        assert_int_equal(r.io.mask[1], at < 2);
        assert_int_equal(r.io.mask[2], at > 0);
        at += r.act_i[0] == 1 ? 1 : r.act_i[0] == 2 ? -1 : 0;
        rig_step(&r);
        assert_true(fabsf(node[1] - 3.2f * (float)at) < 1e-4f);
    }
    rig_close(&r);
}

/* Of the vehicles on a lane of a straight road, the nearest before (sign 1) or behind a place; its node, -1. */
static int nearest(const rig *r, float x, int lane, float sign)
{
    const float *node = r->io.obs[0];
    int best = -1;
    for (int k = 0; k < (int)r->io.size[0]; k++) {
        const float away = sign * (node[9 * k] - x);
        if ((int)lroundf(node[9 * k + 1] / 3.2f) == lane && away > 0 &&
            (best < 0 || away < sign * (node[9 * best] - x))) {
            best = k;
        }
    }
    return best;
}

/* one row of ahead or beside against the vehicles that are there */
static void check_pair(const rig *r, const float *row, int leader, int follower)
{
    const float *node = r->io.obs[0];
    const float gap = leader < 0 || follower < 0 ? 1000 : node[9 * leader] - node[9 * follower] - 5;
    assert_true(fabsf(row[0] - gap) < 1e-2f);
    assert_true(leader < 0 || follower < 0 || fabsf(row[1] - node[9 * leader + 2]) < 1e-4f);
    assert_true(follower < 0 || fabsf(row[3] - node[9 * follower + 2]) < 1e-4f);
    assert_true(row[5] == 0.5F && row[6] == 0);
}

/* Into one gap at most one agent moves in a step: what beside said holds. lane: of each agent before, -1 unknown. */
static int check_gaps(const rig *r, const int *lane)
{
    const float *node = r->io.obs[0];
    const int32_t *at = r->io.obs[4];
    int n_moved = 0;
    for (uint32_t k = 0; k < r->spec.n_agents; k++) {
        const int now = r->io.alive[k] ? (int)lroundf(node[9 * at[k] + 1] / 3.2f) : -1;
        if (now < 0 || lane[k] < 0 || now == lane[k]) {
            continue;
        }
        n_moved++;
        const int before = nearest(r, node[9 * at[k]], now, 1);
        for (uint32_t i = 0; i < r->spec.n_agents; i++) {
            assert_true(at[i] < 0 || at[i] != before || lane[i] < 0 || lane[i] == now);
        }
    }
    return n_moved;
}

/* Two lanes of which the left one ends: what is ahead and beside, against the positions of all. */
static void test_what_shields_read(void **test)
{
    static const char *const set[] = {"scenario=bottleneck",
                                      "agents=40",
                                      "penetration=0.5",
                                      "lane_actions=true",
                                      "flow_vph=1500",
                                      "lanes=2",
                                      "episode_s=200",
                                      "end_at_collision=false",
                                      "speed_dev=0.1",
                                      "low_mps2=-6.5",
                                      NULL};
    rig r;
    rig_open(&r, set);
    assert_int_equal(r.spec.n_obs, 9);
    assert_string_equal(r.spec.obs[7].name, "beside");
    assert_string_equal(r.spec.obs[7].dims, "A 4 7");
    int n_ends = 0, n_sides = 0, n_moved = 0, was[40];
    memset(was, -1, sizeof(was));
    rig_reset(&r, 1);
    for (int over = 0, n_steps = 0; !over; over = rig_step(&r), n_steps++) {
        n_moved += check_gaps(&r, was);
        memset(was, -1, sizeof(was));
        const float *node = r.io.obs[0];
        for (uint32_t k = 0; k < r.spec.n_agents; k++) {
            const int me = ((const int32_t *)r.io.obs[4])[k];
            const float *ahead = (const float *)r.io.obs[6] + (size_t)21 * k;
            const float *beside = (const float *)r.io.obs[7] + (size_t)28 * k;
            const uint8_t *mask = r.io.mask + (size_t)3 * k;
            r.act_f[k] = 0.2F;
            r.act_i[k] = 0;
            if (!r.io.alive[k] || node[9 * me] > -20) { /* who is near sees past the end of the lane */
                continue;
            }
            const float x = node[9 * me];
            const int lane = (int)lroundf(node[9 * me + 1] / 3.2f), leader = nearest(&r, x, lane, 1);
            was[k] = lane;
            assert_true(ahead[4] == 6.5F && ahead[2] == 9 && ahead[14] == 1000);
            if (leader >= 0 && node[9 * leader] - x < 100) {
                check_pair(&r, ahead, leader, me);
            }
            if (lane == 1 && x > -100) { /* the end of the lane */
                assert_true(fabsf(ahead[7] - (-x - 2.5F)) < 1e-2f && ahead[8] == 0);
                n_ends++;
            } else if (lane == 0) {
                assert_true(ahead[7] == 1000);
            }
            for (int side = 0; side < 2; side++) { /* 0 left, 1 right */
                const float *row = beside + (size_t)14 * (size_t)side;
                const int there = side == 0 ? lane + 1 : lane - 1;
                if (!mask[1 + side]) {
                    assert_true(row[0] == 0 && row[7] == 0);
                    continue;
                }
                const int before = nearest(&r, x, there, 1), after = nearest(&r, x, there, -1);
                if (before >= 0 && node[9 * before] - x < 100) {
                    check_pair(&r, row, before, me);
                    n_sides++;
                }
                check_pair(&r, row + 7, me, after);
                assert_true(row[11] == 9 && row[9] == 6.5F);
                r.act_i[k] = side == 1 && n_steps % 40 == 0 ? 2 : 0; /* all who can at once, even into one gap */
            }
        }
    }
    assert_true(n_ends > 100 && n_sides > 100 && n_moved > 10);
    rig_close(&r);
}

static void test_signals_as_agents(void **test)
{
    static const char *const set[] = {
        "scenario=grid", "control=signals", "rows=2",     "cols=3",          "episode_s=300",
        "flow_vph=600",  "starvation_s=30", "action_s=5", "max_green_s=600", NULL};
    rig r;
    rig_open(&r, set);
    assert_int_equal(r.spec.n_agents, 6);
    assert_int_equal(r.spec.n_heads, 1);
    assert_int_equal(r.spec.choices[0], 4);
    assert_string_equal(r.spec.obs[1].dims, "A 4 17");
    assert_int_equal(r.spec.max_steps, 60);
    rig_reset(&r, 1);
    const int32_t *neighbour = r.io.obs[2]; /* arms from west, south, east, north; junctions in rows from the south */
    static const int32_t first[4] = {0, 0, 1, 3}, last[4] = {4, 2, 5, 5};
    assert_memory_equal(neighbour, first, sizeof(first));
    assert_memory_equal(neighbour + 20, last, sizeof(last));
    int over = 0, steps = 0;
    float starved = 0, waited = 0;
    for (; !over; steps++) { /* all stay in the first phase */
        for (uint32_t k = 0; k < 6; k++) {
            const float *signal = (const float *)r.io.obs[0] + (size_t)59 * k;
            const uint8_t *mask = r.io.mask + (size_t)4 * k;
            assert_true(signal[0] == 1 && signal[4] == 0 && signal[10] == 4);
            assert_true(fabsf(signal[5] - 5 * (float)steps) < 1e-4f);
            assert_int_equal(mask[0], 1); /* the others after min_green_s */
            assert_int_equal(mask[1] + mask[2] + mask[3], steps == 0 ? 0 : 3);
            assert_true(r.io.reward[k] <= 0);
            const float *phase = (const float *)r.io.obs[1] + (size_t)4 * 17 * k;
            for (int p = 0; p < 4; p++, phase += 17) {
                assert_true(phase[0] >= phase[1] && phase[0] >= phase[5] && phase[1] >= phase[2]);
                assert_true(phase[4] == mask[p] && phase[7] == (p == 0));
                assert_true(phase[8] <= phase[0] && phase[9] <= phase[5] && phase[10] <= phase[6]);
                assert_true(phase[11] == 0 && phase[12] == (p == 0 ? signal[5] : -1));
                waited = phase[10] > waited ? phase[10] : waited;
                assert_true(phase[3] == (p == (int)fmod(steps * 5. / 43, 2) * 2 + (fmod(steps * 5., 43) >= 29)));
            }
        }
        over = rig_step(&r);
        for (uint32_t k = 0; k < 6; k++) {
            starved += r.io.cost[k * COSTS + 4];
            assert_true(r.io.cost[k * COSTS + 3] == 0);
            assert_int_equal(r.io.truncated[k], over);
        }
    }
    assert_int_equal(steps, 60);
    assert_true(starved > 100 && waited > 100);
    rig_close(&r);
}

/* Rewards of all signals together are the delay, apart from what is lost on the way out of the network. */
static void test_reward_is_delay(void **test)
{
    static const char *const set[] = {"scenario=intersection", "control=signals", "episode_s=600", "baseline=true",
                                      NULL};
    rig r;
    rig_open(&r, set);
    rig_reset(&r, 1);
    double lost = 0;
    for (int over = 0; !over;) {
        over = rig_step(&r);
        lost += -10 * r.spec.step_s * (double)r.io.reward[0];
    }
    const double delay = r.io.metric[0] * r.io.metric[6];
    assert_true(lost <= delay * 1.0001 && lost > 0.8 * delay);
    assert_true(r.io.metric[11] == 0 && r.io.metric[9] == 0);
    rig_close(&r);
}

/* Formulas see the same traffic as the observations and the built-in rewards. */
static void test_formulas(void **test)
{
    enum { SIGNAL, TABLE, STEPS = 30, COLUMNS = 17 };
    enum { QUEUE, EXIT, PRESSURE, WAITING, DIFF, DELAY, THROUGHPUT, CHANGES, SHOWN, VEHICLES, RELATIVE, LONGEST, NEAR };
    static const char row[] =
        "observation=queue, exit_queue, pressure, waiting_s, diff_waiting_s, delay_s, throughput, "
        "changed_phase, shown_s, vehicles, relative_speed, longest_wait_s, phase.near";
#define WORLD "scenario=intersection", "control=signals", "episode_s=300", "flow_vph=600"
    static const char *const plain[] = {WORLD, NULL}, *const own[] = {WORLD, "reward=-delay_s/10", row, NULL};
    static const char *const both[] = {"scenario=intersection", "control=both", "agents=5", "episode_s=100", row,
                                       "reward=-queue",         "action_s=1",   NULL};
    static const char *const all[] = {WORLD, row, "reward=queue", NULL};
#undef WORLD
    rig a, b;
    rig_open(&a, plain);
    rig_open(&b, own);
    assert_string_equal(b.spec.obs[SIGNAL].dims, "A 16"); /* twelve numbers and four phases */
    rig_reset(&a, 3);
    rig_reset(&b, 3);
    double waiting = 0, passed = 0;
    float phase = -1;
    for (int i = 0, over = 0; !over; i++) {
        const int32_t action = i / 2 % 4;
        a.act_i[0] = b.act_i[0] = ((const uint8_t *)a.io.mask)[action] ? action : 0;
        over = rig_step(&a);
        assert_int_equal(rig_step(&b), over);
        const float *q = b.io.obs[SIGNAL], *table = b.io.obs[TABLE];
        assert_true(fabsf(a.io.reward[0] - b.io.reward[0]) < 1e-5F);
        assert_memory_equal(a.io.obs[TABLE], table, a.obs_bytes[TABLE]);
        assert_memory_equal(a.io.mask, b.io.mask, 4);
        assert_true(q[PRESSURE] == q[QUEUE] - q[EXIT] && q[LONGEST] <= q[WAITING]);
        assert_true(fabs((double)q[DIFF] - (waiting - (double)q[WAITING])) < 1e-3);
        assert_true(q[RELATIVE] >= 0 && q[RELATIVE] < 1.2F && q[VEHICLES] >= q[NEAR]);
        waiting = (double)q[WAITING];
        passed += (double)q[THROUGHPUT];
        float shown = 0;
        for (int p = 0; p < 4; p++) {
            assert_true(q[NEAR + p] == table[p * COLUMNS + 5]);
            shown = table[p * COLUMNS + 7] != 0 ? (float)p : shown;
        }
        assert_true(i == 0 || q[CHANGES] == (shown != phase));
        phase = shown;
    }
    assert_true(waiting > 0 && passed > 20);
    rig_close(&a);
    rig_close(&b);
    rig_open(&a, both); /* rows of signals come first */
    a.n_signals = 1;
    const uint64_t first = play(&a, 5);
    (void)play(&a, 6);
    assert_true(play(&a, 5) == first); /* numbers of vehicles begin again with every episode */
    rig_close(&a);
    rig_open(&a, all);
    rig_reset(&a, 1);
    for (int over = 0; !over;) {
        over = rig_step(&a);
        assert_true(a.io.reward[0] == (float)(0.1 * -(double)((const float *)a.io.obs[SIGNAL])[QUEUE]));
    }
    rig_close(&a);
}

/* Signals and vehicles at once: each has its own choices, and of the others one alone. */
static void test_both_as_agents(void **test)
{
    enum { AGENTS = 40, LEVELS = 7, EGO = 5, SIGNAL = 8, NEIGHBOUR = 10, PHASES = 4 };
    static const char *const set[] = {"scenario=intersection",
                                      "end_at_collision=false",
                                      "control=both",
                                      "agents=40",
                                      "penetration=0.5",
                                      "action_s=1",
                                      "episode_s=300",
                                      "flow_vph=300",
                                      NULL};
    rig r;
    rig_open(&r, set);
    r.n_signals = 1;
    assert_int_equal(r.spec.n_agents, 1 + AGENTS);
    assert_int_equal(r.spec.n_continuous, 0);
    assert_int_equal(r.spec.n_heads, 2);
    assert_int_equal(r.spec.choices[0], PHASES);
    assert_int_equal(r.spec.choices[1], LEVELS);
    assert_string_equal(r.spec.obs[EGO].name, "ego");
    assert_string_equal(r.spec.obs[SIGNAL].name, "signal");
    assert_string_equal(r.spec.obs[NEIGHBOUR].name, "neighbour");
    rig_reset(&r, 1);
    int braked = 0, went_on = 0, changed = 0, over = 0;
    for (int step = 0; !over; step++) {
        float asked[1 + AGENTS] = {0};
        const uint8_t *mask = r.io.mask;
        int n_legal = 0;
        assert_int_equal(r.io.alive[0], 1);
        for (int c = 0; c < PHASES; c++) {
            n_legal += mask[c];
            r.act_i[0] = mask[c] && (step / 20) % PHASES == c ? c : r.act_i[0];
        }
        assert_true(n_legal > 0 && mask[r.act_i[0]]);
        for (int c = 0; c < LEVELS; c++) {
            assert_int_equal(mask[PHASES + c], c == 0);
        }
        r.act_i[1] = 0;
        for (int k = 1; k <= AGENTS; k++) {
            mask = r.io.mask + (ptrdiff_t)k * (PHASES + LEVELS);
            for (int c = 0; r.io.alive[k] && c < PHASES + LEVELS; c++) {
                assert_int_equal(mask[c], c == 0 || c >= PHASES);
            }
            const int level = r.io.alive[k] ? ((step + k) % 4 == 0 ? (step + k) / 4 % LEVELS : 6) : 0;
            r.act_i[2 * k] = 0;
            r.act_i[2 * k + 1] = level;
            asked[k] = -3 + 0.75f * (float)level;
            assert_int_equal(((const int32_t *)r.io.obs[NEIGHBOUR])[4 * k], k);
            assert_true(((const float *)r.io.obs[SIGNAL])[59 * k + 2] == 0);
        }
        uint8_t acted[1 + AGENTS];
        memcpy(acted, r.io.alive, sizeof(acted));
        const float *before = r.io.obs[SIGNAL];
        const int shown = before[0] > 0 ? 0 : before[1] > 0 ? 1 : before[2] > 0 ? 2 : 3;
        over = rig_step(&r);
        assert_int_equal(((const int32_t *)r.io.obs[4])[0], -1);
        const float *light = r.io.obs[SIGNAL];
        changed += light[shown] == 0;
        assert_true(r.io.reward[0] <= 0);
        for (int k = 1; k <= AGENTS && !over; k++) {
            const float *ego = (const float *)r.io.obs[EGO] + (ptrdiff_t)9 * k;
            if (!acted[k] || r.io.truncated[k]) {
                continue;
            }
            assert_true(r.io.reward[k] > 0 && r.io.reward[k] <= 1);
            /* its acceleration, unless a line or the speed it wants came first */
            assert_true(ego[7] <= asked[k] + 1e-4f || (ego[0] == 0 && asked[k] < 0));
            braked += asked[k] < 0 && fabsf(ego[7] - asked[k]) < 1e-4f;
            went_on += asked[k] > 0 && fabsf(ego[7] - asked[k]) < 1e-4f;
        }
    }
    assert_true(braked > 100 && went_on > 100 && changed > 5);
    assert_int_equal(r.io.truncated[0] + r.io.terminated[0], 1);
    rig_close(&r);
}

static void test_who_leaves_is_truncated(void **test)
{
    static const char *const set[] = {"scenario=merge", "agents=40",    "penetration=1", "baseline=true",
                                      "flow_vph=600",   "ramp_vph=100", "episode_s=400", NULL};
    rig r;
    rig_open(&r, set);
    rig_reset(&r, 3);
    int left = 0, over = 0;
    while (!over) {
        over = rig_step(&r);
        for (uint32_t k = 0; k < r.spec.n_agents && !over; k++) {
            assert_int_equal(r.io.terminated[k], 0);
            if (!r.io.truncated[k]) {
                continue;
            }
            left++; /* its last observation is true: past the end of the road */
            const float *node = (const float *)r.io.obs[0] + (ptrdiff_t)9 * ((const int32_t *)r.io.obs[4])[k];
            assert_true(node[0] > 400 + 250 - 5 && node[8] == 1 && node[2] > 5);
        }
    }
    assert_int_equal(left, r.io.metric[7]); /* finished */
    assert_true(left > 50);
    rig_close(&r);
}

static void refuse(const char *const *set, dt_status st, const char *text)
{
    rig r;
    assert_int_equal(rig_create(&r, set), st);
    if (strstr(r.host.message, text) == NULL) {
        print_error("\"%s\" lacks \"%s\"\n", r.host.message, text);
        fail();
    }
    r.ops->destroy(r.self);
    assert_int_equal(r.host.n_live, 0);
    free(r.self);
    free(r.config);
}

static void test_refusals(void **test)
{
    refuse((const char *const[]){"action_s=0.7", NULL}, DT_ECONFIG, "not a multiple of dt_s = 0.5");
    refuse((const char *const[]){"episode_s=1", "action_s=5", NULL}, DT_ECONFIG, "shorter than one action of 5 s");
    refuse((const char *const[]){"vehicles=100", NULL}, DT_ECONFIG,
           "100 vehicles of 5 m do not fit on a ring of 230 m");
    refuse((const char *const[]){"control=signals", NULL}, DT_ECONFIG,
           "control = \"signals\" needs signals: scenario \"intersection\"");
    refuse((const char *const[]){"control=both", NULL}, DT_ECONFIG, "control = \"both\" needs signals");
    refuse((const char *const[]){"control=signals", "scenario=grid", "signals=false", NULL}, DT_ECONFIG,
           "signals = true");
    refuse((const char *const[]){"left_share=0.6", "right_share=0.5", NULL}, DT_ECONFIG, "more than all traffic");
    refuse((const char *const[]){"max_green_s=4", NULL}, DT_ECONFIG, "max_green_s = 4 s is below min_green_s = 5 s");
    refuse((const char *const[]){"length_m=10", NULL}, DT_ECONFIG, "length_m = 10 m is shorter than 20 m");
    refuse((const char *const[]){"scenario=merge", "lanes=3", NULL}, DT_ECONFIG,
           "at most 2 lanes before the ramp, not 3");
    refuse((const char *const[]){"scenario=bottleneck", "lanes=1", NULL}, DT_ECONFIG, "at least 2 lanes, not 1");
    refuse((const char *const[]){"lanes=2", NULL}, DT_ECONFIG, "a ring has 1 lane, not 2");
    refuse((const char *const[]){"reward=-queue", NULL}, DT_ECONFIG, "env_traffic.reward is for signals that learn");
    refuse((const char *const[]){"observation=queue", NULL}, DT_ECONFIG,
           "env_traffic.observation is for signals that learn");
    refuse((const char *const[]){"scenario=grid", "control=signals", "reward=", NULL}, DT_ECONFIG, "reward is empty");
}

static void count_call(void *user)
{
    ++*(int *)user;
}

/* 22 vehicles at rest on a circle, 10 of them agents; what is observed of them changes nothing. */
static void test_how_it_looks(void **state)
{
    static const char *const set[] = {"scenario=ring", "control=vehicles", "vehicles=22", "length_m=230",
                                      "agents=10",     "action_s=1",       "dt_s=0.25",   "jitter_m=0",
                                      "episode_s=60",  "penetration=1",    NULL};
    rig r;
    rig_open(&r, set);
    rig_reset(&r, 3);
    const dt_component *c = mock_load("plugins", "env_traffic", "env_traffic");
    const dt_scene_api *api = c->extension(DT_EXT_SCENE);
    assert_true(DT_HAS(api, roads) && DT_HAS(api, capture) && DT_HAS(api, set_observer));
    assert_null(c->extension("dtrain.nothing/1"));

    dt_scene_point point[512];
    dt_scene_roads roads = {.struct_size = sizeof(roads), .cap = 2, .point = point};
    api->roads(r.self, &roads);
    const uint32_t n = roads.n; /* there are more than fit */
    assert_in_range(n, 10, 512);
    roads.cap = 512;
    api->roads(r.self, &roads);
    assert_int_equal(roads.n, n);
    double cx = 0, cy = 0;
    const double radius = 230 / (2 * acos(-1));
    for (uint32_t i = 0; i < n; i++) { /* half a circle and its other half: the middle is that of opposite points */
        cx = fmax(cx, fabs((double)point[i].x - point[0].x));
        cy = fmax(cy, fabs((double)point[i].y - point[0].y));
    }
    assert_true(fabs(fmax(cx, cy) - 2 * radius) < 0.2);

    dt_scene_vehicle seen[32];
    dt_scene now = {.struct_size = sizeof(now), .cap_vehicles = 1, .vehicle = seen};
    api->capture(r.self, &now);
    assert_int_equal(now.n_vehicles, 22);
    now.cap_vehicles = 32;
    api->capture(r.self, &now);
    assert_int_equal(now.n_vehicles, 22);
    assert_int_equal(now.n_signals, 0);
    assert_true(now.time_s == 0);
    int n_agents = 0;
    for (uint32_t i = 0; i < 22; i++) {
        n_agents += seen[i].agent >= 0;
        assert_true(seen[i].risk == 0 && seen[i].length == 5 && seen[i].agent < 10);
        assert_in_range(seen[i].node, 1, 22);
        const float *node = (const float *)r.io.obs[0] + (size_t)(seen[i].node - 1) * 9;
        assert_true(node[2] == seen[i].speed && (node[8] > 0.5f) == (seen[i].agent >= 0));
        assert_true(fabs(hypot((double)(node[0] - seen[i].x), (double)(node[1] - seen[i].y)) - 2.5) < 0.1);
        for (uint32_t k = 0; k < i; k++) {
            assert_true(seen[i].id != seen[k].id);
        }
    }
    assert_int_equal(n_agents, 10);

    int calls = 0;
    api->set_observer(r.self, count_call, &calls);
    rig_step(&r);
    assert_int_equal(calls, 4); /* action_s / dt_s */
    api->set_observer(r.self, NULL, NULL);
    rig_step(&r);
    assert_int_equal(calls, 4);
    api->capture(r.self, &now);
    assert_true(now.time_s == 2);
    assert_true(now.delay_s > 0 && now.delay_s <= 2); /* time lost by each, of 2 s */
    rig_close(&r);
}

/* Who brakes gently for a red light, or the queue at it, is in no danger, though the time to it shrinks to nothing. */
static void test_risk_of_stopping(void **test)
{
    for (double gap = 0.1; gap < 60; gap *= 1.5) {
        assert_true(dt_scene_risk(gap, sqrt(2 * 2.9 * gap)) == 0);              /* stops at 2.9 m/s^2 */
        assert_true(dt_scene_risk(gap, -1) == 0 && dt_scene_risk(gap, 0) == 0); /* nothing closes in */
    }
    assert_true(dt_scene_risk(5, 10) == 1);                             /* 0.5 s, 10 m/s^2 */
    assert_true(fabs((double)dt_scene_risk(8, 8) - 1 / 3.0) < 1e-6);    /* 1 s is certain, 4 m/s^2 a third */
    assert_true(fabs((double)dt_scene_risk(40, 16) - 1 / 15.0) < 1e-6); /* 2.5 s is a quarter, 3.2 m/s^2 a fifteenth */
    assert_true(dt_scene_risk(0, 5) == 1 && dt_scene_risk(-1, 5) == 1); /* no room */
}

static void test_out_of_memory_anywhere(void **test)
{
    const dt_component *c = mock_load("plugins", "env_traffic", "env_traffic");
    static const char *const set[] = {"scenario=merge", NULL};
    void *config = mock_config(c, set), *self = calloc(1, c->state_size);
    const dt_env_ops *ops = c->ops;
    dt_status st = DT_ENOMEM;
    for (int64_t k = 1; st != DT_OK; k++) {
        mock_host h;
        mock_host_init(&h);
        mock_host_serve(&h, DT_SVC_FEATURES, &features);
        h.fail_alloc = k;
        memset(self, 0, c->state_size);
        st = ops->create(self, &h.host, config);
        ops->destroy(self);
        assert_int_equal(h.n_live, 0);
        assert_true(st == DT_OK || (st == DT_ENOMEM && strstr(h.message, "no memory") != NULL));
    }
    mock_host h;
    mock_host_init(&h);
    memset(self, 0, c->state_size);
    assert_int_equal(ops->create(self, &h.host, config), DT_EUNSUPPORTED);
    assert_non_null(strstr(h.message, DT_SVC_FEATURES));
    ops->destroy(self);
    free(self);
    free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_bits),     cmocka_unit_test(test_ring_is_seen_as_it_is),
        cmocka_unit_test(test_risk_of_stopping),        cmocka_unit_test(test_a_collision_terminates),
        cmocka_unit_test(test_lanes_as_actions),        cmocka_unit_test(test_what_shields_read),
        cmocka_unit_test(test_signals_as_agents),       cmocka_unit_test(test_both_as_agents),
        cmocka_unit_test(test_reward_is_delay),         cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_who_leaves_is_truncated), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_out_of_memory_anywhere),  cmocka_unit_test(test_how_it_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
