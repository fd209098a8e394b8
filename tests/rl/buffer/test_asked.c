/* SPDX-License-Identifier: Apache-2.0
 *
 * Acting on a device, here one of host memory (tests/engine/device/host_device.h) whose kernels are the CPU's: rounds
 * have the CPU's bits however many batches are in flight and however they are cut; how often it is launched and waited
 * for; what fails in the middle of a round.
 */
#include <config.h>

#include "worlds.h"

#include "base/err.h"
#include "engine/device/host_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 3, STEPS = 12, INSTANCES = 6 };

typedef struct seen { /* what is left of some rounds */
    float params[2048];
    dt_rollout_report report;
} seen;

typedef struct way { /* to act */
    const char *in_flight, *workers, *graphs;
    uint32_t threads;
    bool on_cpu, is_ahead;
} way;

static const char *alpha; /* of a replay that is learnt from; NULL: from each round alone */

static void open_world(world *w, const char *env, const way *how)
{
    char text[7][64];
    const char *settings[15] = {"engine.synchronous=false", "engine.slice_rows=4096"};
    snprintf(text[0], sizeof(text[0]), "env.id=%s", env);
    snprintf(text[1], sizeof(text[1]), "tiny.steps=%d", STEPS);
    snprintf(text[2], sizeof(text[2]), "engine.in_flight=%s", how->in_flight);
    snprintf(text[3], sizeof(text[3]), "env.workers=%s", how->workers);
    snprintf(text[4], sizeof(text[4]), "engine.graphs=%s", how->graphs);
    snprintf(text[5], sizeof(text[5]), "tiny.ahead=%s", how->is_ahead ? "true" : "false");
    for (int i = 0; i < 6; i++) {
        settings[2 + i] = text[i];
    }
    if (alpha != NULL) {
        snprintf(text[6], sizeof(text[6]), "tiny.alpha=%s", alpha);
        settings[8] = text[6];
        settings[9] = "tiny.transitions=2";
        settings[10] = "tiny.replay=100";
        settings[11] = "tiny.normalise_obs=true";
    } else if (strcmp(env, "relay") == 0) { /* with opponents */
        settings[8] = "relay.teams=two";
        settings[9] = "opponents.learner=1";
        settings[10] = "opponents.every=1";
        settings[11] = "opponents.pool=2";
    }
    if (strcmp(env, "herd") == 0) {
        settings[12] = "models.controller=herd_net";
        settings[13] = "tiny.transitions=3";
        for (int i = 8; alpha == NULL && i < 12; i++) {
            settings[i] = settings[12];
        }
    }
    world_open(w, settings, NULL);
    w->threads = how->threads;
    if (!how->on_cpu) {
        w->device_ops = host_device_ops();
        w->device = host_device();
    }
}

static void act(const char *env, const way *how, seen *out)
{
    world w;
    memset(out, 0, sizeof(*out));
    host_device_reset(UINT64_C(1) << 32);
    open_world(&w, env, how);
    world_start(&w);
    for (int i = 0; i < ROUNDS; i++) {
        assert_done(world_iterate(&w));
    }
    assert_done(dt_trainer_synchronize(w.stage->trainer));
    world_keep(&w, out->params, &out->report);
    world_close(&w);
    assert_int_equal(host_device_read().live_bytes, 0);
}

static void test_bits(void **state)
{
    static const char *const env[] = {"counter", "crowd", "torque", "relay", "herd"};
    static const way ways[] = {{"1", "0", "true", 1, false, false},  {"2", "0", "true", 1, false, false},
                               {"4", "0", "false", 1, false, false}, {"8", "0", "true", 1, false, false},
                               {"1", "2", "true", 2, false, false},  {"2", "3", "true", 2, false, false},
                               {"3", "1", "false", 3, false, false}, {"2", "0", "true", 4, false, false}};
    static seen cpu, device;
    for (size_t e = 0; e < 2 * sizeof(env) / sizeof(env[0]); e++) {
        const bool is_ahead = e % 2 != 0; /* between the steps of learning, by the parameters of before it */
        const way first = {"1", "0", "true", 2, true, is_ahead};
        act(env[e / 2], &first, &cpu);
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
            way how = ways[i];
            how.is_ahead = is_ahead;
            act(env[e / 2], &how, &device);
            if (memcmp(&cpu, &device, sizeof(cpu)) != 0) {
                fail_msg("%s%s: other bits with %s in flight, %s workers, graphs %s, %u threads", env[e / 2],
                         is_ahead ? ", ahead" : "", how.in_flight, how.workers, how.graphs, how.threads);
            }
        }
    }
}

/* Learning from a replay, whose samples a device is fed ahead of steps. */
static void test_replay(void **state)
{
    static const char *const alphas[] = {"0", "0.6"}, *const env[] = {"counter", "relay", "torque", "herd"};
    static const way ways[] = {{"1", "0", "true", 2, true, false}, {"2", "2", "true", 2, false, false}};
    static seen done[2];
    for (size_t e = 0; e < 2 * sizeof(env) / sizeof(env[0]); e++) {
        alpha = alphas[e % 2];
        for (int i = 0; i < 2; i++) {
            act(env[e / 2], &ways[i], &done[i]);
        }
        if (memcmp(&done[0], &done[1], sizeof(done[0])) != 0) {
            fail_msg("%s, alpha %s: other bits on a device", env[e / 2], alpha);
        }
    }
    alpha = NULL;
}

/* Once warm, a batch is one launch of a graph and one wait, and only the last wait of a round leaves the device with
 * nothing to do; nothing is allocated. */
static void test_waits(void **state)
{
    static const struct {
        way how;
        uint32_t groups, drains;
    } cases[] = {
        {{"1", "0", "true", 1, false, false}, 1, STEPS + 1}, {{"2", "0", "true", 1, false, false}, 2, 1},
        {{"3", "0", "true", 1, false, false}, 3, 1},         {{"2", "2", "true", 3, false, false}, 4, 1},
        {{"8", "0", "true", 1, false, false}, INSTANCES, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        world w;
        dt_rollout_report r = {.struct_size = sizeof(r)};
        host_device_reset(UINT64_C(1) << 32);
        open_world(&w, "torque", &cases[i].how); /* an agent in every instance, but for resets */
        world_start(&w);
        for (int k = 0; k < 3; k++) {
            assert_done(w.phase->rollout->collect(w.phase->r, w.phase->t, &r));
        }
        const host_device_counts before = host_device_read();
        assert_done(w.phase->rollout->collect(w.phase->r, w.phase->t, &r));
        const host_device_counts after = host_device_read();
        const uint64_t batches = after.graph_launches - before.graph_launches;
        assert_in_range(batches, 1, (STEPS + 1) * cases[i].groups);
        assert_int_equal(after.syncs - before.syncs, batches);
        assert_in_range(after.drains - before.drains, 1, cases[i].drains);
        assert_int_equal(after.launches, before.launches);
        assert_int_equal(after.captures, before.captures);
        assert_int_equal(after.allocations, before.allocations);
        world_close(&w);
    }
}

static dt_status try_rounds(world *w, const way *how)
{
    host_device_reset(UINT64_C(1) << 32);
    open_world(w, "crowd", how);
    dt_status st = world_create(w);
    for (int i = 0; i < ROUNDS && st >= 0; i++) {
        st = world_iterate(w);
    }
    return st;
}

/* Whatever launch fails, the first reason is reported, nothing is under way any more, and nothing leaks. */
static void test_failed_launches(void **state)
{
    static const way how = {"2", "1", "true", 2, false, true};
    uint32_t n_failed = 0;
    for (uint32_t n = 1;; n += 7) {
        world w;
        host_device_fail_launch(n);
        const dt_status st = try_rounds(&w, &how);
        host_device_fail_launch(0);
        if (st < 0) {
            assert_int_equal(st, DT_ECUDA);
            assert_non_null(strstr(dt_error_text(), "host memory refuses a "));
            n_failed++;
        }
        world_close(&w);
        assert_int_equal(host_device_read().live_bytes, 0);
        if (st >= 0) {
            break;
        }
    }
    assert_in_range(n_failed, 20, 10000);
}

static void test_failed_allocations(void **state)
{
    static const way how = {"4", "0", "true", 1, false, true};
    uint32_t n_failed = 0;
    world w;
    assert_done(try_rounds(&w, &how));
    const uint64_t all = host_device_read().allocations;
    world_close(&w);
    for (uint32_t n = 1; n <= all; n++) {
        host_device_fail_alloc(n);
        const dt_status st = try_rounds(&w, &how);
        host_device_fail_alloc(0);
        if (st < 0) { /* a smaller group of shards may have been enough */
            assert_int_equal(st, DT_ENOMEM);
            n_failed++;
        }
        world_close(&w);
        assert_int_equal(host_device_read().live_bytes, 0);
    }
    assert_in_range(n_failed, 5, all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_failed_launches),
        cmocka_unit_test(test_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
