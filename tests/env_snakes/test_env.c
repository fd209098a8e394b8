/* SPDX-License-Identifier: Apache-2.0
 *
 * env_snakes as an environment: its contract with the host, terms of reward, masks, sides, advice, pictures, refusals.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */
#include "../../plugins/env_snakes/rivals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dtrain/ext/scene.h"

enum { AGENTS = 3, PLACES = 6, OBS = 1300, ADVICE = 24, METRICS = 9, STEPS = 200 };
enum { SCORE, RIVAL_SCORE, WIN, LOSS, DEATHS, RIVAL_DEATHS, BEANS, SNAKE_LENGTH, RIVAL };

typedef struct rig {
    mock_host host;
    const dt_component *component;
    const dt_env_ops *ops;
    void *config, *self;
    dt_env_spec spec;
    dt_env_io io;
    void *obs_list[2];
    float obs[PLACES * OBS], advice[PLACES * ADVICE], reward[PLACES];
    int32_t act_i[PLACES];
    uint8_t alive[PLACES], terminated[PLACES], truncated[PLACES], mask[PLACES * CELLS_DIRECTIONS];
    double metric[METRICS];
} rig;

static void rig_open(rig *r, const char *const *set)
{
    memset(r, 0, sizeof(*r));
    mock_host_init(&r->host);
    r->component = mock_load("plugins", "env_snakes", "env_snakes");
    assert_non_null(r->component);
    r->ops = r->component->ops;
    r->config = mock_config(r->component, set);
    r->self = calloc(1, r->component->state_size);
    assert_int_equal(r->ops->create(r->self, &r->host.host, r->config), DT_OK);
    r->spec.struct_size = sizeof(r->spec);
    assert_int_equal(r->ops->spec(r->self, &r->spec), DT_OK);
    r->obs_list[0] = r->obs;
    r->obs_list[1] = r->advice;
    r->io = (dt_env_io){.struct_size = sizeof(r->io),
                        .n_obs = r->spec.n_obs,
                        .obs = r->obs_list,
                        .alive = r->alive,
                        .mask = r->mask,
                        .reward = r->reward,
                        .terminated = r->terminated,
                        .truncated = r->truncated,
                        .metric = r->metric};
}

static void rig_close(rig *r)
{
    r->ops->destroy(r->self);
    free(r->self);
    free(r->config);
    assert_int_equal(r->host.n_live, 0);
}

static void rig_clear(rig *r)
{
    memset(r->obs, 0, sizeof(r->obs));
    memset(r->advice, 0, sizeof(r->advice));
    memset(r->reward, 0, sizeof(r->reward));
    memset(r->alive, 0, sizeof(r->alive));
    memset(r->terminated, 0, sizeof(r->terminated));
    memset(r->truncated, 0, sizeof(r->truncated));
    memset(r->mask, 1, sizeof(r->mask));
    memset(r->metric, 0, sizeof(r->metric));
}

static void rig_reset(rig *r, uint64_t seed)
{
    rig_clear(r);
    r->io.act_i = NULL;
    assert_int_equal(r->ops->reset(r->self, &r->io, seed), DT_OK);
    assert_int_equal(r->alive[0] + r->alive[1] + r->alive[2], AGENTS);
}

static bool rig_step(rig *r)
{
    rig_clear(r);
    r->io.act_i = r->act_i;
    const dt_status st = r->ops->step(r->self, &r->io);
    assert_true(st == DT_OK || st == DT_DONE);
    for (int i = 0; i < AGENTS; i++) {
        assert_int_equal(r->alive[i], st == DT_OK);
        assert_int_equal(r->terminated[i], st == DT_DONE);
        assert_int_equal(r->truncated[i], 0);
        assert_true(isfinite(r->reward[i]));
    }
    return st == DT_DONE;
}

/* What rule k advises the places [begin, end). */
static void follow_in(rig *r, uint32_t rule, int begin, int end)
{
    for (int i = begin; i < end; i++) {
        float sum = 0;
        for (int a = 0; a < CELLS_DIRECTIONS; a++) {
            const float one = r->advice[i * ADVICE + (int)rule * CELLS_DIRECTIONS + a];
            sum += one;
            r->act_i[i] = one == 1.0F ? a : r->act_i[i];
        }
        assert_true(sum == 1.0F);
    }
}

static void follow(rig *r, uint32_t rule)
{
    follow_in(r, rule, 0, AGENTS);
}

static void test_spec(void **state)
{
    static const char *const set[][3] = {{NULL},
                                         {"features=numbers26", NULL},
                                         {"features=numbers30", "advice=true", NULL},
                                         {"features=planes", NULL},
                                         {"features=planes", "view_rows=7", NULL}};
    static const char *const dims[] = {"A 49", "A 26", "A 30", "A 1209", "A 849"};
    for (int k = 0; k < 5; k++) {
        rig r;
        rig_open(&r, set[k]);
        assert_string_equal(r.spec.obs[0].name, "obs");
        assert_string_equal(r.spec.obs[0].dims, dims[k]);
        assert_int_equal(r.spec.n_obs, k == 2 ? 2 : 1);
        assert_int_equal(r.spec.n_agents, AGENTS);
        assert_int_equal(r.spec.n_heads, 1);
        assert_int_equal(r.spec.choices[0], 4);
        assert_int_equal(r.spec.n_metrics, METRICS);
        assert_int_equal(r.spec.max_steps, STEPS);
        rig_close(&r);
    }
    assert_string_equal(
        ((const char *const *)mock_load("plugins", "env_snakes", "env_snakes")->extension(DT_EXT_BASELINES))[0],
        "controller_snakes");
}

/* One seed one game, whatever came before; another seed another game. */
static void test_same(void **state)
{
    static const char *const set[] = {"opponent=random", "side=random", "features=planes", NULL};
    rig a, b;
    rig_open(&a, set);
    rig_open(&b, set);
    rig_reset(&a, 9);
    for (int t = 0; t < 30; t++) {
        a.act_i[0] = a.act_i[1] = t % 4;
        (void)rig_step(&a);
    }
    uint32_t other = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        rig_reset(&a, seed);
        rig_reset(&b, seed);
        for (int t = 0; t < STEPS; t++) {
            for (int i = 0; i < AGENTS; i++) {
                a.act_i[i] = b.act_i[i] = (t * 7 + i * (int)seed) % 4;
            }
            assert_int_equal(rig_step(&a), rig_step(&b));
            assert_memory_equal(a.obs, b.obs, sizeof(a.obs));
            assert_memory_equal(a.reward, b.reward, sizeof(a.reward));
        }
        assert_memory_equal(a.metric, b.metric, sizeof(a.metric));
        rig_reset(&b, seed + 1);
        rig_reset(&a, seed);
        other += memcmp(a.obs, b.obs, sizeof(a.obs)) != 0;
    }
    assert_int_equal(other, 20);
    rig_close(&a);
    rig_close(&b);
}

/* Greedy against greedy and random by advice: the sums of rewards and the metrics of a game say the same. */
static void test_scores(void **state)
{
    static const char *const sides[] = {"side=first", "side=second", "side=random"};
    for (int side = 0; side < 3; side++) {
        const char *const set[] = {"advice=true", "opponent=l1", sides[side], NULL};
        double wins = 0, losses = 0;
        rig r;
        rig_open(&r, set);
        for (uint64_t seed = 0; seed < 40; seed++) {
            double sum = 0;
            int t = 1;
            rig_reset(&r, seed);
            for (follow(&r, RIVAL_L2); !rig_step(&r); t++, follow(&r, RIVAL_L2)) {
                sum += (double)r.reward[0] + (double)r.reward[1] + (double)r.reward[2];
            }
            sum += (double)r.reward[0] + (double)r.reward[1] + (double)r.reward[2];
            assert_int_equal(t, STEPS);
            assert_true(sum == r.metric[SCORE]); /* it telescopes */
            assert_true(fabs(r.metric[SNAKE_LENGTH] - 3 - sum / 3) < 1e-9);
            assert_true(r.metric[WIN] == (r.metric[SCORE] > r.metric[RIVAL_SCORE]));
            assert_true(r.metric[LOSS] == (r.metric[SCORE] < r.metric[RIVAL_SCORE]));
            assert_true(r.metric[RIVAL] == RIVAL_L1);
            assert_true(r.metric[BEANS] >= sum);
            wins += r.metric[WIN];
            losses += r.metric[LOSS];
        }
        assert_true(wins >= 28 && losses <= 8); /* measured: .90 and .075 */
        rig_close(&r);
    }
}

/* Agents of the other team that do what a rule would do play the game of that rule, and earn from their side of it. */
static void test_self_play(void **state)
{
    static const char *const sides[] = {"side=first", "side=second", "side=random"};
    for (int side = 0; side < 3; side++) {
        rig rule, self;
        rig_open(&rule, (const char *const[]){"advice=true", "opponent=l3", "reward_score=1", sides[side], NULL});
        rig_open(&self, (const char *const[]){"advice=true", "self_play=1", "reward_score=1", sides[side], NULL});
        assert_int_equal(rule.spec.n_agents, AGENTS);
        assert_null(rule.spec.team);
        assert_int_equal(self.spec.n_agents, PLACES);
        const size_t seen = 49 * AGENTS;
        for (uint64_t seed = 0; seed < 6; seed++) {
            bool is_over = false;
            rig_reset(&rule, seed);
            rig_reset(&self, seed);
            while (!is_over) {
                assert_memory_equal(rule.obs, self.obs, seen * sizeof(float));
                assert_memory_not_equal(self.obs, self.obs + seen, seen * sizeof(float));
                follow(&rule, RIVAL_L2);
                follow(&self, RIVAL_L2);
                follow_in(&self, RIVAL_L3, AGENTS, PLACES);
                is_over = rig_step(&rule);
                assert_int_equal(rig_step(&self), is_over);
                assert_memory_equal(rule.reward, self.reward, AGENTS * sizeof(float));
                for (int i = AGENTS; i < PLACES; i++) {
                    assert_int_equal(self.alive[i], !is_over);
                    assert_int_equal(self.terminated[i], is_over);
                }
            }
            assert_memory_equal(rule.metric, self.metric, RIVAL * sizeof(double));
            assert_true(self.metric[RIVAL] == RIVALS);
        }
        rig_close(&rule);
        rig_close(&self);
    }
}

/* What one team's lead is the other's arrears; and a share of games, in which the rest is as without. */
static void test_self_play_share(void **state)
{
    rig rule, some;
    uint32_t n = 0;
    rig_open(&rule, (const char *const[]){"features=numbers26", NULL});
    rig_open(&some,
             (const char *const[]){"features=numbers26", "self_play=0.3", "reward_own=0", "reward_score=1", NULL});
    for (int a = 0; a < PLACES; a++) {
        assert_int_equal(some.spec.team[a], a / AGENTS);
    }
    for (uint64_t seed = 0; seed < 400; seed++) {
        rig_reset(&rule, seed);
        rig_reset(&some, seed);
        n += some.alive[AGENTS] != 0;
        assert_memory_equal(rule.obs, some.obs, sizeof(float) * 26 * AGENTS);
        (void)rig_step(&rule);
        (void)rig_step(&some);
        if (some.alive[AGENTS] == 0) {
            assert_memory_equal(rule.obs, some.obs, sizeof(rule.obs));
            assert_true(some.reward[AGENTS] == 0);
        } else {
            assert_true(some.reward[AGENTS] == -some.reward[0]);
        }
    }
    assert_in_range(n, 90, 150); /* .3 of 400, 3 deviations */
    some.act_i[AGENTS] = 4;
    for (uint64_t seed = 0; some.alive[AGENTS] == 0; seed++) {
        rig_reset(&some, seed);
    }
    some.io.act_i = some.act_i;
    assert_int_equal(some.ops->step(some.self, &some.io), DT_EINVAL);
    assert_non_null(strstr(some.host.message, "snake 3"));
    rig_close(&rule);
    rig_close(&some);
}

/* Every term alone, against what the game's own numbers say it is; and all of them together are their sum. */
static void test_terms(void **state)
{
    static const char *const one[][3] = {
        {"reward_own=1", NULL, NULL},
        {"reward_own=0", "reward_score=1", NULL},
        {"reward_own=0", "reward_ate=20", NULL},
        {"reward_own=0", "reward_death=-10", NULL},
        {"reward_own=0", "reward_alive=0.5", NULL},
        {"reward_own=0", "reward_distance=-1", NULL},
        {"reward_own=0", "reward_win=50", NULL},
        {"reward_own=0", "reward_loss=-25", NULL},
        {"reward_own=0", "reward_lead=10", NULL},
        {"reward_own=0", "reward_trail=-5", NULL},
        {"reward_ate=20", "reward_death=-10", NULL},
    };
    enum { TERMS = 10 };
    rig r[TERMS + 1];
    uint32_t ate = 0, died = 0, leads = 0, trails = 0, ends = 0;
    for (int k = 0; k <= TERMS; k++) {
        rig_open(&r[k], (const char *const[]){"opponent=l3", "advice=true", one[k][0], one[k][1], NULL});
    }
    for (uint64_t seed = 0; seed < 10; seed++) {
        int32_t lead = 0;
        bool is_over = false;
        for (int k = 0; k <= TERMS; k++) {
            rig_reset(&r[k], seed);
        }
        for (int t = 1; !is_over; t++) {
            follow(&r[0], seed % 2 == 0 ? RIVAL_L2 : RIVAL_RANDOM);
            for (int k = 0; k <= TERMS; k++) {
                memcpy(r[k].act_i, r[0].act_i, sizeof(r[k].act_i));
                is_over = rig_step(&r[k]);
            }
            lead += (int32_t)r[1].reward[0];
            for (int i = 0; i < AGENTS; i++) {
                const float own = r[0].reward[i];
                assert_true(own == 1 || own <= 0);
                assert_true(r[1].reward[i] == r[1].reward[0]);
                assert_true(r[2].reward[i] == (own > 0 ? 20.0F : 0.0F));
                /* the sign that the original has wrong: the dead pay, the living do not, each always one of them */
                assert_true(r[3].reward[i] == 0 || r[3].reward[i] == -10);
                assert_true((r[3].reward[i] == 0) == (r[4].reward[i] == 0.5F));
                assert_true(own >= 0 || r[3].reward[i] == -10);
                assert_true(own <= 0 ? r[5].reward[i] <= 0 : r[5].reward[i] == 0);
                assert_true(r[5].reward[i] > -11.2F); /* half of the torus: sqrt(5^2 + 10^2) */
                assert_true(r[6].reward[i] == (is_over && lead > 0 ? 50.0F : 0.0F));
                assert_true(r[7].reward[i] == (is_over && lead < 0 ? -25.0F : 0.0F));
                assert_true(r[8].reward[i] == (!is_over && lead > 0 ? 10.0F : 0.0F));
                assert_true(r[9].reward[i] == (!is_over && lead < 0 ? -5.0F : 0.0F));
                assert_true(r[TERMS].reward[i] == own + r[2].reward[i] + r[3].reward[i]);
                ate += own > 0;
                died += r[3].reward[i] != 0;
            }
            leads += lead > 0;
            trails += lead < 0;
            assert_int_equal(is_over, t == STEPS);
        }
        ends += lead != 0;
        assert_true(r[0].metric[SCORE] - r[0].metric[RIVAL_SCORE] == lead);
    }
    assert_true(ate > 50 && died > 100 && leads > 100 && trails > 100 && ends > 5);
    for (int k = 0; k <= TERMS; k++) {
        rig_close(&r[k]);
    }
}

/* The action backwards is forbidden and no other, and the heading in the observation says which. */
static void test_mask(void **state)
{
    enum { HEADING = 36 + 4 };
    rig r;
    rig_open(&r, (const char *const[]){"mask_back=true", "opponent=evasion", "max_steps=50", NULL});
    for (uint64_t seed = 0; seed < 5; seed++) {
        rig_reset(&r, seed);
        for (bool is_over = false; !is_over;) {
            for (int i = 0; i < AGENTS; i++) {
                for (int a = 0; a < CELLS_DIRECTIONS; a++) {
                    const float heads = r.obs[i * 49 + HEADING + (int)cells_opposite((uint32_t)a)];
                    assert_int_equal(r.mask[i * CELLS_DIRECTIONS + a], heads == 0.0F);
                }
                r.act_i[i] = (int32_t)(seed + (uint64_t)i) % 4;
                while (!r.mask[i * CELLS_DIRECTIONS + r.act_i[i]]) {
                    r.act_i[i] = (r.act_i[i] + 1) % 4;
                }
            }
            int32_t asked[AGENTS];
            memcpy(asked, r.act_i, sizeof(asked));
            is_over = rig_step(&r);
            /* what is allowed is done: an agent that did not die heads where it was asked to */
            for (int i = 0; i < AGENTS && !is_over; i++) {
                assert_true(r.reward[i] < 0 || r.obs[i * 49 + HEADING + asked[i]] == 1.0F || r.reward[i] == 0);
            }
        }
    }
    rig_close(&r);
}

static void test_scene(void **state)
{
    dt_scene_vehicle vehicle[64];
    dt_scene_point point[8];
    rig r;
    rig_open(&r, (const char *const[]){"side=second", NULL});
    const dt_scene_api *api = r.component->extension(DT_EXT_SCENE);
    assert_non_null(api);
    dt_scene_roads roads = {.struct_size = sizeof(roads), .cap = 8, .point = point};
    api->roads(r.self, &roads);
    assert_int_equal(roads.n, 20); /* more than fit: it says how many */
    rig_reset(&r, 3);
    dt_scene s = {.struct_size = sizeof(s), .cap_vehicles = 64, .vehicle = vehicle};
    api->capture(r.self, &s);
    assert_int_equal(s.n_vehicles, 6 * 3 + 5);
    uint32_t agents = 0, rivals = 0;
    for (uint32_t i = 0; i < s.n_vehicles; i++) {
        assert_true(vehicle[i].x >= 0 && vehicle[i].x <= 20 && vehicle[i].y >= 0 && vehicle[i].y <= 10);
        agents += vehicle[i].agent >= 0;
        rivals += vehicle[i].agent == -1 && i < 18;
        assert_int_equal(vehicle[i].agent >= 0, i >= 9 && i < 18);
    }
    assert_int_equal(agents, 9);
    assert_int_equal(rivals, 9);
    s.cap_vehicles = 2;
    vehicle[2].id = -7;
    api->capture(r.self, &s);
    assert_int_equal(s.n_vehicles, 23);
    assert_int_equal(vehicle[2].id, -7);
    rig_close(&r);
}

/* The rival follows from the number of the episode. */
static void test_schedule(void **state)
{
    static const char *const set[] = {"schedule=curriculum", "schedule_episodes=20", "max_steps=1", NULL};
    static const uint32_t want[] = {RIVAL_RANDOM, RIVAL_RANDOM, RIVAL_L1, RIVAL_L1, RIVAL_L1, RIVAL_L1, RIVAL_L3};
    rig r;
    rig_open(&r, set);
    for (uint64_t seed = 0; seed < 30; seed++) {
        const uint64_t episode = seed < 7 ? seed : seed * 1000003;
        r.io.episode = episode;
        rig_reset(&r, seed % 3); /* the seed has no part in it */
        assert_true(rig_step(&r));
        assert_true(r.metric[RIVAL] == (seed < 7 ? want[seed] : RIVAL_L2));
    }
    rig_close(&r);
}

static void test_refusals(void **state)
{
    static const int32_t wrong[] = {4, -1, INT32_MAX, INT32_MIN};
    rig r;
    rig_open(&r, NULL);
    rig_reset(&r, 1);
    r.io.act_i = r.act_i;
    for (int i = 0; i < 4; i++) {
        r.act_i[2] = wrong[i];
        assert_int_equal(r.ops->step(r.self, &r.io), DT_EINVAL);
        assert_non_null(strstr(r.host.message, "of snake 2, expected 0 (up), 1 (down)"));
    }
    r.act_i[2] = 0; /* and nothing has happened to the game */
    rig same;
    rig_open(&same, NULL);
    rig_reset(&same, 1);
    (void)rig_step(&r);
    (void)rig_step(&same);
    assert_memory_equal(r.obs, same.obs, sizeof(r.obs));
    rig_close(&r);
    rig_close(&same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec),
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_self_play),
        cmocka_unit_test(test_self_play_share),
        cmocka_unit_test(test_terms),
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_scene),
        cmocka_unit_test(test_schedule),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
