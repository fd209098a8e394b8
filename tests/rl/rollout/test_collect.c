/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds as they are collected, in tiny worlds: what the state after the last step is worth, which random numbers
 * rounds draw, steps and priorities over several rounds, what a saved rollout says of its episodes; and one instance's
 * numbers.
 */
#include <config.h>

#include "worlds.h"

#include "rl/experience/service.h"

#include "rl/buffer/buffer_internal.h"
#include "rl/replay/replay.h"
#include "rl/rollout/opponents.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { M = 6, STEPS = 8 };

static void test_rounds(void **state)
{
    static const char *const settings[] = {"env.id=counter", NULL};
    int32_t drawn[STEPS * M];
    uint64_t steps = 0;
    int n_valued = 0, n_equal = 0;
    world w;
    world_begin(&w, settings);
    const dt_rollout *r = w.phase->r;
    for (int round = 0; round < 2; round++) {
        world_collect(&w);
        const dt_buffer *b = r->all;
        const size_t first = dt_buffer_slot(b, 0, 0);
        steps += dt_round_count_env_steps(b);
        for (size_t i = 0; i < STEPS * M; i++) {
            n_equal += round == 1 && b->act_i[first + i] == drawn[i];
            drawn[i] = b->act_i[first + i];
        }
        for (uint32_t i = 0; i < M; i++) { /* agents that go on have a value there */
            n_valued += (double)b->value[dt_buffer_slot(b, STEPS, i)] != 0;
        }
    }
    assert_true(n_valued > 0);
    assert_true(n_equal < STEPS * M * 5 / 6); /* other numbers than in the round before */
    assert_int_equal(dt_rollout_env_steps(r), steps);
    world_close(&w);
}

/* Each instance: episode, steps, whether it is over; then its actions. */
static void test_saved_episodes(void **state)
{
    static const char *const settings[] = {"env.id=counter", NULL};
    dt_str saved = {0};
    int n_over = 0;
    world w;
    world_begin(&w, settings);
    const dt_rollout *r = w.phase->r;
    for (int round = 0; round < 6 && n_over == 0; round++) { /* until one ends with a round */
        world_collect(&w);
        for (uint32_t i = 0; i < M; i++) {
            n_over += r->episodes.log[i].is_over;
        }
    }
    assert_true(n_over > 0);
    assert_int_equal(dt_rollout_save(r, &saved), DT_OK);
    const char *at = dt_str_text(&saved) + (4 + M) * sizeof(uint64_t);
    for (uint32_t i = 0; i < M; i++) {
        const dt_episode_log *l = &r->episodes.log[i];
        uint64_t v[3];
        memcpy(v, at, sizeof(v));
        assert_true(v[0] == l->episode && v[1] == l->steps && v[2] == l->is_over);
        at += sizeof(v) + l->steps * r->episodes.action_bytes;
    }
    dt_str_fini(&saved);
    world_close(&w);
}

/* A saved episode is at most as long as those of the environment: 7 steps of the counter. */
static void test_saved_episode_is_too_long(void **state)
{
    static const char *const settings[] = {"env.id=counter", NULL};
    static const char actions[4096] = {0};
    world w;
    world_begin(&w, settings);
    dt_rollout *r = w.phase->r;
    for (uint64_t steps = 7; steps <= 8; steps++) {
        const uint64_t head[4] = {1, M, 1, r->episodes.action_bytes}, empty[3] = {0}, first[3] = {0, steps, 0};
        dt_str saved = {0};
        dt_str_add_n(&saved, (const char *)head, sizeof(head));
        dt_str_add_n(&saved, actions, M * sizeof(double)); /* returns so far */
        dt_str_add_n(&saved, (const char *)first, sizeof(first));
        dt_str_add_n(&saved, actions, steps * r->episodes.action_bytes);
        for (uint32_t i = 1; i < M; i++) {
            dt_str_add_n(&saved, (const char *)empty, sizeof(empty));
        }
        assert_int_equal(dt_rollout_load(r, dt_str_text(&saved), saved.bytes), steps > 7 ? DT_EDATA : DT_OK);
        dt_str_fini(&saved);
    }
    world_close(&w);
}

static bool stop_now(void *user)
{
    return true;
}

/* A round asks before each of its steps whether to stop. */
static void test_stop_within_round(void **state)
{
    static const char *const settings[] = {"env.id=counter", NULL};
    world w;
    world_begin(&w, settings);
    w.stage->d.stops = stop_now;
    assert_int_equal(world_iterate(&w), DT_EINTERRUPTED);
    assert_non_null(strstr(dt_error_text(), "step 0"));
    w.stage->d.stops = NULL;
    dt_error_clear();
    world_close(&w);
}

/* An instance on trial is only given choices that its mask permits: the relay fails at others. */
static void test_trial_obeys_masks(void **state)
{
    static const char *const settings[] = {"env.id=relay", NULL};
    uint32_t n = 0;
    world w;
    world_begin(&w, settings);
    assert_true(dt_rollout_measure_speed(w.stage->rollout, 10, &n) > 0);
    assert_true(n > 20);
    world_close(&w);
}

static void test_priorities_of_new_samples(void **state)
{
    static const char *const settings[] = {"env.id=counter", "tiny.transitions=2", "tiny.replay=100", "tiny.alpha=1",
                                           NULL};
    static const float errors[36] = {0};
    world w;
    world_begin(&w, settings);
    dt_replay *p = w.phase->p;
    world_collect(&w);
    assert_int_equal(dt_replay_add_round(p), DT_OK);
    assert_int_equal(dt_replay_draw_samples(p), DT_OK);
    const double most = p->most;
    assert_int_equal(dt_replay_set_priorities(p, errors, 36), DT_OK);
    assert_true(p->most == most);                      /* they come with the greatest so far, not with the last */
    for (uint64_t i = 0; i < dt_replay_size(p); i++) { /* without history no age is reported */
        dt_replay_note note;
        memcpy(&note, dt_replay_slot_at(p, i) + p->n_sizes * sizeof(int32_t), sizeof(note));
        assert_int_equal(note.age, 0);
    }
    world_close(&w);
}

/* How many instances play against the policy itself (0) with this share of it; a round that is acted again, after a
 * resume, takes no second snapshot. */
static void check_opponents(const char *latest, uint32_t want_latest)
{
    const char *const settings[] = {
        "env.id=relay", "relay.teams=two", "opponents.learner=1", "opponents.every=1", latest, NULL};
    uint32_t n = 0;
    world w;
    world_begin(&w, settings);
    const dt_rollout *r = w.phase->r;
    world_collect(&w);
    world_collect(&w);
    for (uint32_t i = 0; i < M; i++) {
        n += dt_vector_instance(r->acting.vector, i)->opponent == 0;
    }
    assert_int_equal(n, want_latest);
    assert_int_equal(r->opponents->added, 2);
    assert_done(dt_opponents_begin_round(r->opponents));
    assert_int_equal(r->opponents->added, 3);
    assert_done(dt_opponents_begin_round(r->opponents));
    assert_int_equal(r->opponents->added, 3);
    world_close(&w);
}

static void test_opponents(void **state)
{
    check_opponents("opponents.latest=1", M);
    check_opponents("opponents.latest=0", 0);
}

/* ---- an instance ------------------------------------------------------------------------------------------------- */

static const dt_port state_port = {"state", "A 1", DT_F32, 0};
static const int32_t choices[] = {2};
static const char *const costs[] = {"hits"};
static const dt_env_spec spec = {.struct_size = sizeof(spec),
                                 .n_agents = 2,
                                 .obs = &state_port,
                                 .n_obs = 1,
                                 .choices = choices,
                                 .n_heads = 1,
                                 .costs = costs,
                                 .n_costs = 1};

static dt_status pair_spec(const void *self, dt_env_spec *out)
{
    *out = spec;
    return DT_OK;
}

static dt_status pair_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    io->alive[0] = io->alive[1] = 1;
    return DT_OK;
}

static dt_status pair_step(void *self, const dt_env_io *io)
{
    for (int a = 0; a < 2; a++) {
        io->alive[a] = 1;
        io->reward[a] = (float)(1 + a);
        io->cost[a] = (float)(10 + a);
    }
    return DT_OK;
}

static uint64_t no_seed(void *user, uint32_t number, uint64_t episode)
{
    return number + episode;
}

static void test_numbers_of_an_episode(void **state)
{
    static const dt_env_ops ops = {
        .struct_size = sizeof(ops), .spec = pair_spec, .reset = pair_reset, .step = pair_step};
    const dt_vector_kind kind = {.id = "pair", .ops = &ops, .max_steps = 2};
    void *self[1] = {NULL};
    dt_layout l;
    dt_vector *v = NULL;
    assert_int_equal(dt_layout_init(&l, "pair", &spec), DT_OK);
    const dt_vector_desc d = {.kind = &kind,
                              .n_kinds = 1,
                              .layout = &l,
                              .self = self,
                              .n = 1,
                              .groups = 1,
                              .max_steps_from = "",
                              .seed = no_seed};
    assert_int_equal(dt_vector_create(&d, &v), DT_OK);
    const dt_instance *x = dt_vector_instance(v, 0);
    for (int t = 0; t < 3; t++) { /* a reset, then the two steps that kind allows */
        assert_int_equal(dt_vector_step(v), DT_OK);
    }
    assert_true(x->has_ended && x->is_cut && x->episode == 0 && x->episode_step == 2);
    assert_true(x->earned[0] == 6 && x->earned[1] == 2 && x->earned[2] == 42);
    assert_int_equal(dt_vector_step(v), DT_OK);
    assert_true(!x->has_ended && x->episode == 1 && x->episode_step == 0 && x->earned[2] == 0);
    dt_vector_destroy(v);
    dt_layout_fini(&l);
}

/* Of the step after there is a list where the agent went on into it: not where it was terminated. */
static void test_lists_of_the_step_after(void **state)
{
    static uint8_t flag[2] = {DT_STEP_ACTED, 0}, row[2] = {DT_ROW_ACTS, DT_ROW_ACTS};
    static int32_t length[2] = {3, 5};
    dt_layout l = {.spec = {.n_agents = 1}};
    const dt_buffer b = {.l = &l, .d = {.instances = 1}, .row = row, .flag = flag, .length = {NULL, length}};
    const dt_buffer_reader r = {.b = &b, .which = DT_ROW_ACTS};
    assert_int_equal(dt_reader_list_length(&r, 1, 0, false), 3);
    assert_int_equal(dt_reader_list_length(&r, 1, 0, true), 5);
    flag[0] = DT_STEP_ACTED | DT_STEP_TRUNCATED;
    assert_int_equal(dt_reader_list_length(&r, 1, 0, true), 5);
    flag[0] = DT_STEP_ACTED | DT_STEP_TERMINATED;
    assert_int_equal(dt_reader_list_length(&r, 1, 0, true), 0);
    row[0] = DT_ROW_OPPONENT; /* not of the rows that are read */
    assert_int_equal(dt_reader_list_length(&r, 1, 0, false), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_saved_episodes),
        cmocka_unit_test(test_saved_episode_is_too_long),
        cmocka_unit_test(test_stop_within_round),
        cmocka_unit_test(test_trial_obeys_masks),
        cmocka_unit_test(test_priorities_of_new_samples),
        cmocka_unit_test(test_opponents),
        cmocka_unit_test(test_numbers_of_an_episode),
        cmocka_unit_test(test_lists_of_the_step_after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
