/* SPDX-License-Identifier: Apache-2.0
 *
 * core/state/snapshot with the tiny phase of tests/rl/buffer/worlds.h: every field of state.json and every blob that is
 * saved is loaded again; copies before an iteration; which checkpoint a phase hands over; options that differ.
 */
#include "worlds.h"

#include "base/fs.h"
#include "rl/experience/service.h"
#include "state/snapshot/weight_sources.h"
#include "state/snapshot/mismatch.h"
#include "state/snapshot/snapshot.h"
#include "state/snapshot/snapshot_state.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const char *const counter[] = {"env.id=counter", "tiny.steps=9", "tiny.normalise_obs=true", NULL};
static const char *const replay[] = {"env.id=counter", "tiny.transitions=2", "tiny.replay=64", "tiny.iterations=9",
                                     NULL};
static char dir[64];

static int begin(void **state)
{
    snprintf(dir, sizeof(dir), "test_snapshot.%ld.tmp", (long)getpid());
    return dt_fs_mkdirs(dir) != DT_OK;
}

static int end(void **state)
{
    return dt_fs_remove_tree(dir) != DT_OK;
}

static dt_ckpt *save(world *w, const dt_snapshot_desc *d, dt_ckpt_info *info)
{
    dt_ckpt *c = NULL;
    assert_done(dt_snapshot_save(w->stage, d, info));
    assert_done(dt_ckpt_open(info->path, false, NULL, &c));
    return c;
}

/* ---- state.json -------------------------------------------------------------------------------------------------- */

/* The stage has the statistics of observations of a checkpoint. */
static void assert_normaliser(world *w, const dt_ckpt *c)
{
    dt_str now = {0};
    dt_ckpt_blob saved;
    assert_true(dt_ckpt_blob_find(c, dt_ckpt_blob_name(DT_BLOB_NORMALISER), &saved));
    assert_done(dt_rollout_save_normaliser(w->stage->rollout, &now));
    assert_int_equal(now.bytes, saved.bytes);
    assert_memory_equal(now.text, saved.data, now.bytes);
    dt_str_fini(&now);
}

/* The list of stores of a checkpoint that the stage saves. */
static void assert_stores(world *w, const char *expected)
{
    const dt_snapshot_desc d = {.run_dir = dir, .ranks = 1};
    dt_ckpt_info info;
    dt_state v;
    dt_ckpt *c = save(w, &d, &info);
    assert_done(dt_state_read(c, &v));
    assert_string_equal(dt_str_text(&v.stores.lines), expected);
    dt_state_fini(&v);
    dt_ckpt_close(c);
}

/* Open stores, then those that the weights were trained on before; each once. */
static void test_stores(void **state)
{
    world w;
    world_begin(&w, counter);
    assert_int_equal(w.stage->n_datasets, 0);
    w.stage->dataset[0].digest = 0xabc;
    w.stage->dataset[1].digest = 0x123456789abcdef0;
    w.stage->n_datasets = 2;
    assert_stores(&w, "0000000000000abc\n123456789abcdef0\n");
    dt_str_add(&w.stage->seen_before, "123456789abcdef0\n00000000000000ff\n");
    assert_stores(&w, "0000000000000abc\n123456789abcdef0\n00000000000000ff\n");
    w.stage->n_datasets = 0;
    assert_stores(&w, "123456789abcdef0\n00000000000000ff\n");
    world_close(&w);
}

static void test_fields(void **state)
{
    world w;
    dt_ckpt_info info;
    dt_state v;
    dt_snapshot_place place;
    dt_roles roles;
    world_begin(&w, counter);
    assert_done(dt_roles_add(&w.stage->d.loaded, "controller"));
    assert_done(dt_roles_add(&w.stage->d.loaded, "world"));
    assert_done(world_iterate(&w));
    const dt_scaler scaler = {.scale = 1024, .good = 5, .tolerance = 2, .skips = 3, .overflows = 6};
    const uint64_t updates = dt_trainer_updates(w.stage->trainer), step = dt_trainer_step_number(w.stage->trainer);
    dt_trainer_scaler_set(w.stage->trainer, updates, &scaler);
    dt_trainer_bypassed_steps_set(w.stage->trainer, 4);
    dt_snapshot_backup backup = {.is_valid = false};
    dt_snapshot_back_up(w.stage, &backup);
    backup.scaler.scale = 1024; /* without mixed precision the trainer's own stays 1 */
    const dt_snapshot_desc d = {.run_dir = dir,
                                .backup = &backup,
                                .base_step = 40,
                                .epoch = 2,
                                .phase_ms = 1234,
                                .ranks = 1,
                                .pending = DT_PENDING_END,
                                .phase_end = true};
    dt_ckpt *c = save(&w, &d, &info);
    dt_snapshot_backup_fini(&backup);
    assert_done(dt_state_read(c, &v));
    assert_int_equal(v.step, step);
    assert_int_equal(v.base_step, 40);
    assert_int_equal(v.phase_index, 0);
    assert_int_equal(v.updates, updates);
    assert_int_equal(v.passed, 4);
    assert_float_equal(v.loss_scale, 1024, 0);
    assert_int_equal(v.good_steps, 5);
    assert_int_equal(v.tolerance, 2);
    assert_int_equal(v.skips, 3);
    assert_int_equal(v.overflows, 6);
    assert_int_equal(v.steps_per_epoch, dt_trainer_steps_per_epoch(w.stage->trainer));
    assert_int_equal(v.seed, 77);
    assert_int_equal(v.pending, DT_PENDING_END);
    assert_int_equal(v.env_steps, dt_rollout_env_steps(w.stage->rollout));
    assert_string_equal(dt_str_text(&v.models.lines), "tiny_net\n");
    assert_true(v.stores.is_there && v.stores.lines.bytes == 0);
    assert_false(v.stream.is_there);
    assert_string_equal(dt_str_text(&v.loaded_roles.lines), "controller\nworld\n");
    dt_state_fini(&v);
    assert_int_equal(info.step, 40 + step);
    assert_int_equal(info.epoch, 2);
    assert_int_equal(info.phase_ms, 1234);
    assert_true(info.phase_end);
    assert_done(dt_snapshot_read_position(c, &place));
    assert_int_equal(place.step, step);
    assert_int_equal(place.base_step, 40);
    assert_int_equal(place.pending, DT_PENDING_END);
    assert_true(place.phase_end);
    assert_done(dt_snapshot_loaded_roles(c, &roles));
    assert_int_equal(roles.n, 2);
    assert_true(dt_roles_contain(&roles, "controller") && dt_roles_contain(&roles, "world"));
    const uint64_t env_steps = dt_rollout_env_steps(w.stage->rollout);
    static float params[2048];
    dt_rollout_report report;
    world_keep(&w, params, &report);
    world_close(&w);

    world_begin(&w, counter);
    assert_done(dt_snapshot_load(w.stage, c));
    assert_normaliser(&w, c);
    assert_int_equal(dt_trainer_step_number(w.stage->trainer), step);
    assert_int_equal(dt_trainer_updates(w.stage->trainer), updates);
    assert_int_equal(dt_trainer_bypassed_steps(w.stage->trainer), 4);
    const dt_scaler *loaded = dt_trainer_scaler(w.stage->trainer);
    assert_int_equal(loaded->good, 5);
    assert_int_equal(loaded->tolerance, 2);
    assert_int_equal(loaded->skips, 3);
    assert_int_equal(loaded->overflows, 6);
    assert_int_equal(dt_rollout_env_steps(w.stage->rollout), env_steps);
    assert_memory_equal(dt_trainer_params(w.stage->trainer), params, (size_t)w.stage->params.total * sizeof(float));
    world_close(&w);
    dt_ckpt_close(c);
}

/* A checkpoint by hand: one tensor, and this text as its state.json. */
static dt_ckpt_save_desc by_hand(const char *text)
{
    static float value[2] = {1, 2};
    static const int64_t dim[1] = {2};
    static dt_ckpt_tensor t[2];
    t[0] = (dt_ckpt_tensor){.name = "controller.w", .dim = dim, .n_dims = 1, .data = value};
    t[1] = (dt_ckpt_tensor){.name = "world.w", .dim = dim, .n_dims = 1, .data = value};
    return (dt_ckpt_save_desc){
        .run_dir = dir,
        .model = t,
        .n_model = 2,
        .state_json = text,
        .info = {.phase = "tiny", .step = 5, .ranks = 1, .metric_name = "return/mean", .metric = NAN}};
}

static dt_ckpt *save_by_hand(const dt_ckpt_save_desc *d)
{
    dt_ckpt *c = NULL;
    dt_ckpt_info info;
    assert_done(dt_ckpt_save(d, &info));
    assert_done(dt_ckpt_open(info.path, false, NULL, &c));
    return c;
}

static void assert_pending(const char *text, uint32_t pending)
{
    dt_snapshot_place place;
    const dt_ckpt_save_desc d = by_hand(text);
    dt_ckpt *c = save_by_hand(&d);
    assert_done(dt_snapshot_read_position(c, &place));
    assert_int_equal(place.pending, pending);
    dt_ckpt_close(c);
}

static void test_older_and_damaged(void **state)
{
    assert_pending("{\"step\":5,\"base_step\":0}", DT_PENDING_NONE);
    assert_pending("{\"step\":5,\"base_step\":0,\"owed\":0}", DT_PENDING_NONE);
    assert_pending("{\"step\":5,\"base_step\":0,\"owed\":1}", DT_PENDING_EVALUATION);
    assert_pending("{\"step\":5,\"base_step\":0,\"owed\":2,\"new\":{\"step\":9}}", DT_PENDING_END);
    assert_pending("{\"step\":5,\"base_step\":0,\"owed\":7}", DT_PENDING_EVALUATION);
    static const char *const bad[] = {"{\"step\":-1,\"base_step\":0}", "{\"base_step\":0}",
                                      "{\"step\":5,\"base_step\":-1}", "{\"step\":5.5,\"base_step\":0}",
                                      "{\"step\":\"5\",\"base_step\":0}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dt_snapshot_place place;
        const dt_ckpt_save_desc d = by_hand(bad[i]);
        dt_ckpt *c = save_by_hand(&d);
        assert_int_equal(dt_snapshot_read_position(c, &place), DT_EDATA);
        dt_ckpt_close(c);
    }
    dt_str stores = {0};
    bool is_known = false;
    dt_ckpt_save_desc d = by_hand("{\"step\":5,\"base_step\":0,\"stores\":[\"0123456789abcdef\",\"short\","
                                  "\"0123456789abcdef0\",7]}");
    dt_ckpt *c = save_by_hand(&d);
    assert_done(dt_snapshot_list_stores(c, &stores, &is_known));
    assert_true(is_known);
    assert_string_equal(dt_str_text(&stores), "0123456789abcdef\n");
    dt_ckpt_close(c);
    dt_str_clear(&stores);
    is_known = false;
    d = by_hand("{\"step\":5,\"base_step\":0,\"stores\":[]}");
    c = save_by_hand(&d);
    assert_done(dt_snapshot_list_stores(c, &stores, &is_known));
    assert_true(is_known && stores.bytes == 0);
    dt_ckpt_close(c);
    is_known = false;
    d = by_hand("{\"step\":5,\"base_step\":0}");
    c = save_by_hand(&d);
    assert_done(dt_snapshot_list_stores(c, &stores, &is_known));
    assert_false(is_known);
    dt_ckpt_close(c);
    dt_str_fini(&stores);
    d = by_hand(
        "{\"loaded_roles\":[\"a_role_with_a_name_that_is_far_too_long_for_any_table_of_roles_here_or_there\"]}");
    c = save_by_hand(&d);
    dt_roles roles;
    assert_int_equal(dt_snapshot_loaded_roles(c, &roles), DT_EDATA);
    dt_ckpt_close(c);
}

static void test_refusals(void **state)
{
    world w;
    dt_ckpt_save_desc d = by_hand("{\"step\":5,\"base_step\":0}");
    world_begin(&w, counter);
    dt_ckpt *c = save_by_hand(&d);
    assert_int_equal(dt_snapshot_load(w.stage, c), DT_ESHAPE); /* other tensors */
    dt_ckpt_close(c);
    snprintf(d.info.phase, sizeof(d.info.phase), "other");
    c = save_by_hand(&d);
    assert_int_equal(dt_snapshot_load(w.stage, c), DT_ECONFIG);
    dt_ckpt_close(c);
    dt_snapshot_desc gone = {.run_dir = "test_snapshot.none", .ranks = 1};
    assert_int_equal(dt_snapshot_save(w.stage, &gone, NULL), DT_EIO);
    dt_trainer_params(w.stage->trainer)[0] = NAN;
    gone.run_dir = dir;
    assert_int_equal(dt_snapshot_save(w.stage, &gone, NULL), DT_EDIVERGED);
    world_close(&w);
}

/* ---- copies before an iteration ---------------------------------------------------------------------------------- */

static void test_backup(void **state)
{
    world w;
    dt_ckpt_info before, after;
    dt_snapshot_backup b = {.is_valid = false};
    world_begin(&w, counter);
    assert_done(world_iterate(&w));
    dt_snapshot_desc d = {.run_dir = dir, .ranks = 1};
    dt_ckpt_close(save(&w, &d, &before));
    dt_snapshot_back_up(w.stage, &b);
    assert_true(b.is_valid && !b.is_too_large);
    world_collect(&w); /* as an iteration does that fails later */
    dt_ckpt_close(save(&w, &d, &after));
    assert_string_not_equal(before.state_hash, after.state_hash);
    d.backup = &b;
    dt_ckpt_close(save(&w, &d, &after));
    assert_string_equal(before.state_hash, after.state_hash);
    dt_snapshot_backup_fini(&b);
    assert_false(b.is_valid);
    assert_false(dt_snapshot_is_shared(w.stage, &d));
    d.n_shards = 2;
    assert_true(dt_snapshot_is_shared(w.stage, &d));
    world_close(&w);
    world_begin(&w, replay);
    dt_snapshot_back_up(w.stage, &b);
    assert_true(!b.is_valid && b.is_too_large);
    d = (dt_snapshot_desc){.ranks = 1, .n_shards = 1};
    assert_false(dt_snapshot_is_shared(w.stage, &d));
    d.ranks = 2;
    assert_true(dt_snapshot_is_shared(w.stage, &d));
    dt_snapshot_backup_fini(&b);
    world_close(&w);
}

/* ---- handover ---------------------------------------------------------------------------------------------------- */

static void save_step(uint64_t step, uint32_t phase, bool is_end, double metric)
{
    dt_ckpt_save_desc d = by_hand("{}");
    d.info.step = step;
    d.info.phase_index = phase;
    d.info.phase_end = is_end;
    d.info.metric = metric;
    assert_done(dt_ckpt_save(&d, NULL));
}

static uint64_t handed_over(dt_config *c, int64_t index)
{
    dt_weight_sources *h = NULL;
    assert_done(dt_weight_sources_open_previous(dir, c, index, &h));
    const uint64_t step = dt_weight_sources_is_empty(h) ? 0 : dt_weight_sources_checkpoint(h)->step;
    assert_int_equal(dt_weight_sources_has_role(h, "world"), step > 0);
    assert_false(dt_weight_sources_has_role(h, "worl"));
    assert_false(dt_weight_sources_has_role(h, "world.w"));
    dt_weight_sources_close(h);
    return step;
}

static void test_which_checkpoint(void **state)
{
    dt_config *c = NULL;
    assert_done(dt_config_create(&c));
    assert_int_equal(handed_over(c, 0), 0);
    save_step(1, 0, false, 3);
    save_step(2, 0, false, 5);
    save_step(3, 0, false, NAN);
    assert_int_equal(handed_over(c, 1), 0); /* it is not over */
    save_step(4, 0, true, 4);
    assert_int_equal(handed_over(c, 0), 0);
    assert_int_equal(handed_over(c, 1), 4);
    assert_done(dt_config_set(c, "checkpoint.hand_on=best"));
    assert_done(dt_config_set(c, "checkpoint.best_by=return/mean"));
    assert_int_equal(handed_over(c, 1), 2);
    assert_done(dt_config_set(c, "checkpoint.best_by=min:return/mean"));
    assert_int_equal(handed_over(c, 1), 1);
    save_step(5, 0, true, 3); /* of equals the newest */
    assert_int_equal(handed_over(c, 1), 5);
    save_step(6, 1, true, NAN);
    assert_int_equal(handed_over(c, 1), 5);
    assert_int_equal(handed_over(c, 2), 6);
    dt_config_destroy(c);
}

static void test_wanted_roles(void **state)
{
    static const char *const fresh[] = {"controller", NULL}, *const unknown[] = {"contoller", NULL};
    world w;
    dt_weight_sources *h = NULL;
    dt_roles roles;
    dt_str stores = {0};
    bool is_known = true;
    static float before[2048], after[2048];
    dt_rollout_report report;
    world_begin(&w, counter);
    assert_done(world_iterate(&w));
    dt_ckpt_info info;
    const dt_snapshot_desc d = {.run_dir = dir, .ranks = 1};
    dt_ckpt_close(save(&w, &d, &info));
    world_keep(&w, before, &report);
    const size_t bytes = (size_t)w.stage->params.total * sizeof(float);
    world_close(&w);
    world_begin(&w, counter);
    assert_done(dt_weight_sources_open(dir, NULL, &h));
    assert_int_equal(dt_weight_sources_load(h, w.stage, unknown, DT_WEIGHTS_OPTIONAL), DT_ECONFIG);
    assert_done(dt_weight_sources_load(h, w.stage, fresh, DT_WEIGHTS_OPTIONAL));
    world_keep(&w, after, &report);
    assert_memory_not_equal(before, after, bytes);
    assert_int_equal(dt_weight_sources_load(h, w.stage, fresh, DT_WEIGHTS_SOME), DT_ESHAPE);
    assert_int_equal(dt_weight_sources_load(h, w.stage, fresh, DT_WEIGHTS_ALL), DT_ESHAPE);
    assert_done(dt_weight_sources_load(h, w.stage, NULL, DT_WEIGHTS_ALL));
    world_keep(&w, after, &report);
    assert_memory_equal(before, after, bytes);
    assert_int_equal(dt_trainer_step_number(w.stage->trainer), 0); /* weights alone */
    assert_done(dt_weight_sources_loaded_roles(h, &roles));
    assert_int_equal(roles.n, 0);
    assert_done(dt_weight_sources_list_stores(h, &stores, &is_known));
    assert_true(is_known && stores.bytes == 0);
    dt_weight_sources_close(h);
    assert_int_equal(dt_weight_sources_open("test_snapshot.none", NULL, &h), DT_ENOTFOUND);
    world_close(&w);
}

/* A whole evaluation needs the weights of every role but a shield, which guards without training too. */
static void test_untrained_shield(void **state)
{
    static const struct {
        const char *role;
        char param[16];
        dt_status st;
    } of[] = {{"shield", "shield.w", DT_OK}, {"shields", "shields.w", DT_ESHAPE}};
    const dt_snapshot_desc d = {.run_dir = dir, .ranks = 1};
    dt_weight_sources *h = NULL;
    dt_ckpt_info info;
    world w;
    world_begin(&w, counter);
    dt_ckpt_close(save(&w, &d, &info));
    assert_done(dt_weight_sources_open(dir, NULL, &h));
    dt_param *last = &w.stage->params.param[w.stage->params.n - 1];
    char *const name = last->name;
    w.stage->n_models = 2;
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        char param[16];
        memcpy(param, of[i].param, sizeof(param));
        last->name = param;
        w.stage->model[1] = w.stage->model[0];
        w.stage->model[1].role = of[i].role;
        assert_int_equal(dt_weight_sources_load(h, w.stage, NULL, DT_WEIGHTS_ALL), of[i].st);
        assert_done(dt_weight_sources_load(h, w.stage, NULL, DT_WEIGHTS_SOME));
    }
    dt_error_clear();
    last->name = name;
    w.stage->n_models = 1;
    dt_weight_sources_close(h);
    world_close(&w);
}

/* ---- options that differ ----------------------------------------------------------------------------------------- */

static void test_mismatch(void **state)
{
    world w;
    dt_mismatch m;
    dt_ckpt_info info;
    dt_str text = {0};
    const dt_snapshot_desc d = {.run_dir = dir, .ranks = 1};
    world_begin(&w, counter);
    dt_ckpt *c = save(&w, &d, &info);
    dt_mismatch_find(w.stage, &w.stage->model[0], NULL, &m);
    assert_true(m.model.bytes == 0 && m.data.bytes == 0);
    dt_mismatch_find(w.stage, &w.stage->model[0], c, &m);
    assert_true(m.model.bytes == 0 && m.data.bytes == 0);
    dt_mismatch_append(&m, &text);
    assert_int_equal(text.bytes, 0);
    assert_done(dt_config_set(w.config, "models.controller=herd_net"));
    dt_mismatch_find(w.stage, &w.stage->model[0], c, &m);
    assert_non_null(strstr(dt_str_text(&m.model), "models.controller"));
    dt_mismatch_append(&m, &text);
    assert_int_equal(text.bytes, m.model.bytes + 3); /* in brackets */
    dt_mismatch_fini(&m);
    assert_int_equal(dt_mismatch_explain(DT_EIO, w.stage, c), DT_EIO);
    assert_int_equal(dt_mismatch_explain(DT_FAIL(DT_ESHAPE, "shapes"), w.stage, c), DT_ESHAPE);
    assert_non_null(strstr(dt_error_text(), "models.controller"));
    dt_error_clear();
    dt_ckpt_close(c);
    for (uint32_t index = 0; index < 2; index++) { /* its configuration has one phase */
        dt_ckpt_save_desc other = by_hand("{}");
        other.info.phase_index = index;
        other.config = "phases = ({plugin = \"tiny\";});\nmodels = {controller = \"tiny_net\";};\n";
        c = save_by_hand(&other);
        dt_mismatch_find(w.stage, &w.stage->model[0], c, &m);
        assert_int_equal(m.model.bytes > 0, index == 0);
        dt_mismatch_fini(&m);
        dt_ckpt_close(c);
    }
    dt_str_fini(&text);
    world_close(&w);
}

#define OF(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {OF(test_fields),       OF(test_stores),           OF(test_older_and_damaged),
                                       OF(test_refusals),     OF(test_backup),           OF(test_which_checkpoint),
                                       OF(test_wanted_roles), OF(test_untrained_shield), OF(test_mismatch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
