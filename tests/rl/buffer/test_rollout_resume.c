/* SPDX-License-Identifier: Apache-2.0
 *
 * Rollouts continue from a checkpoint.
 */
#include <config.h>

#include "worlds.h"

#include "base/err.h"
#include "base/fs.h"
#include "rl/rollout/rollout.h"
#include "rl/experience/service.h"
#include "state/snapshot/snapshot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Stopped after two of four rounds and gone on from the checkpoint: the same bits as without a stop. */
static void resumed_equals_uninterrupted(const char *const *settings)
{
    char dir[64];
    static float whole[2048], resumed[2048];
    dt_rollout_report a, b;
    world w;
    snprintf(dir, sizeof(dir), "test_rollout.%ld.tmp", (long)getpid());
    world_begin(&w, settings);
    for (int k = 0; k < 4; k++) {
        assert_done(world_iterate(&w));
        if (k == 1) {
            const dt_snapshot_desc d = {.run_dir = dir, .ranks = 1};
            assert_done(dt_fs_mkdirs(dir));
            assert_done(dt_snapshot_save(w.stage, &d, NULL));
        }
    }
    world_keep(&w, whole, &a);
    world_close(&w);
    dt_ckpt *c = NULL;
    assert_done(dt_ckpt_open(dir, true, NULL, &c));
    world_begin(&w, settings);
    assert_done(dt_snapshot_load(w.stage, c));
    assert_done(world_iterate(&w));
    assert_done(world_iterate(&w));
    assert_int_equal(world_iterate(&w), DT_DONE);
    world_keep(&w, resumed, &b);
    assert_memory_equal(whole, resumed, (size_t)w.stage->params.total * sizeof(float));
    assert_memory_equal(&a, &b, sizeof(a));
    world_close(&w);
    dt_ckpt_close(c);
    assert_done(dt_fs_remove_tree(dir));
}

static void test_resume(void **state)
{
    static const char *const settings[][8] = {
        {"env.id=counter", "tiny.steps=9"},
        {"env.id=counter", "tiny.steps=4", "tiny.window=5", "tiny.normalise_obs=true"},
        {"env.id=counter", "tiny.carried=true", "tiny.window=3"},
        {"env.id=crowd", "tiny.steps=9", "tiny.normalise_advantage=true"},
        {"env.id=torque", "tiny.steps=9", "tiny.normalise_obs=true", "tiny.normalise_reward=true", "tiny.shield=true"},
        {"env.id=torque", "tiny.steps=9", "tiny.transitions=2", "tiny.squash=true"},
        {"env.id=relay", "tiny.carried=true", "tiny.steps=5"},
        {"env.id=relay", "tiny.steps=9", "tiny.transitions=2", "tiny.annotation=A 2"},
        {"env.id=relay", "relay.teams=two", "tiny.steps=9", "tiny.window=3", "opponents.latest=0", "opponents.pool=2",
         "opponents.every=1"},
        {"env.id=relay", "relay.teams=two", "tiny.ahead=true", "opponents.learner=1", "tiny.steps=9",
         "opponents.pool=1"},
        {"env.id=herd", "models.controller=herd_net", "tiny.steps=9", "tiny.window=3", "tiny.transitions=3"}};
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        resumed_equals_uninterrupted(settings[i]);
    }
}

/* A checkpoint of more instances is that of another round: they begin again, and the number of rounds goes on. */
static void test_other_instances(void **state)
{
    dt_str saved = {0};
    world w;
    world_begin_env(&w, "counter", "tiny.steps=2");
    assert_done(world_iterate(&w));
    assert_done(dt_rollout_save(w.stage->rollout, &saved));
    world_close(&w);
    world_begin_env(&w, "counter", "env.instances=5");
    assert_done(dt_rollout_load(w.stage->rollout, saved.text, saved.bytes));
    assert_false(w.stage->rollout->acting.is_restored);
    assert_int_equal(w.stage->rollout->collects, 1);
    assert_done(world_iterate(&w));
    world_close(&w);
    world_begin_env(&w, "counter", "tiny.steps=2");
    assert_done(dt_rollout_load(w.stage->rollout, saved.text, saved.bytes));
    assert_true(w.stage->rollout->acting.is_restored);
    world_close(&w);
    dt_str_fini(&saved);
}

/* Actions in a checkpoint are foreign: what no policy could have done is not played again. */
static void test_foreign_actions(void **state)
{
    enum { HEAD = 4 * 8 };
    static const int32_t wrong[] = {-1, 3, INT32_MAX};
    static const float beyond[] = {1.5F, -INFINITY, NAN};
    const char *const env[] = {"counter", "torque"};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 4; i++) {
            dt_str saved = {0};
            world w;
            world_begin_env(&w, env[k], "tiny.steps=2"); /* an episode has three at least */
            assert_done(world_iterate(&w));
            assert_done(dt_rollout_save(w.stage->rollout, &saved));
            const size_t at =
                HEAD + w.stage->rollout->split.instances * sizeof(double) + 3 * 8; /* of the first action */
            world_close(&w);
            if (i < 3) {
                memcpy(saved.text + at, k == 0 ? (const void *)&wrong[i] : (const void *)&beyond[i], 4);
            }
            world_begin_env(&w, env[k], "tiny.steps=2");
            assert_done(dt_rollout_load(w.stage->rollout, saved.text, saved.bytes));
            assert_int_equal(world_iterate(&w), i < 3 ? DT_EDATA : DT_OK);
            dt_error_clear();
            world_close(&w);
            dt_str_fini(&saved);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_other_instances),
        cmocka_unit_test(test_foreign_actions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
