/* SPDX-License-Identifier: Apache-2.0
 *
 * Stored rollouts: rounds that are written are read as they were, old ones leave, and a file that was changed in one
 * value is rejected, naming what is wrong.
 */
#include <config.h>

#include "worlds.h"

#define sample       stored_sample
#define read_samples read_stored_samples
#include "../../../core/rl/offline/round_reader.c"
#undef sample
#undef read_samples

#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "rl/offline/stored.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { STEPS = 8, M = 2, SAMPLES = STEPS * M, MOST = 32 };

static char run_dir[64];

static void open_world(world *w, const char *keep)
{
    char kept[40];
    snprintf(kept, sizeof(kept), "rollouts.keep=%s", keep);
    const char *const settings[] = {"env.id=counter", "env.instances=2", "tiny.transitions=2", kept, NULL};
    world_open(w, settings, NULL);
    w->run_dir = run_dir;
    world_start(w);
}

static const char *round_path(int round)
{
    static char path[160];
    snprintf(path, sizeof(path), "%s/rollouts/tiny-1/round-%012d.safetensors", run_dir, round);
    return path;
}

static dt_status open_replay(const world *w, const char *path, dt_replay **out)
{
    const dt_replay_desc d = {.struct_size = sizeof(d), .gamma = 0.5, .beta = 1, .draw = 12, .stored = path};
    return dt_replay_create(&w->stage->host, w->phase->r, &d, &dt_stored_store, out);
}

static void drop_replay(const world *w)
{
    dt_replay_destroy(w->phase->r->replay);
    w->phase->r->replay = NULL;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static void test_rounds_are_kept(void **state)
{
    world w;
    dt_replay *p = NULL;
    uint64_t acted[3], rows = 0;
    dt_replay_stats report = {.struct_size = sizeof(report)};
    open_world(&w, "32"); /* two rounds */
    for (int i = 0; i < 3; i++) {
        world_collect(&w);
        acted[i] = dt_round_count_rows(w.phase->r->all);
    }
    assert_int_not_equal(access(round_path(1), F_OK), 0);
    assert_int_equal(access(round_path(2), F_OK), 0);
    assert_int_equal(access(round_path(3), F_OK), 0);
    char folder[128];
    snprintf(folder, sizeof(folder), "%s/rollouts/tiny-1", run_dir);
    if (open_replay(&w, folder, &p) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    assert_int_equal(dt_replay_count(p), acted[1] + acted[2]); /* one agent: a sample is a row */
    assert_int_equal(dt_replay_describe(p, &report), DT_OK);
    assert_true(report.samples == acted[1] + acted[2] && report.rows == report.samples && report.n_costs == 1);
    drop_replay(&w);

    /* the last round is in memory as well: reward, action and what follows are the same */
    assert_int_equal(open_replay(&w, round_path(3), &p), DT_OK);
    const dt_buffer *b = w.phase->r->all;
    const size_t first = dt_buffer_slot(b, 0, 0);
    double reward = 0, square = 0, cost = 0;
    for (size_t i = first; i < first + SAMPLES; i++) {
        if ((b->row[i] & DT_ROW_ACTS) != 0) {
            reward += (double)b->reward[i];
            square += (double)b->reward[i] * (double)b->reward[i];
            cost += (double)b->cost[i];
            rows++;
        }
    }
    report = (dt_replay_stats){.struct_size = sizeof(report)};
    assert_int_equal(dt_replay_describe(p, &report), DT_OK);
    assert_true(report.rows == rows && report.reward == reward && report.reward_squares == square &&
                report.cost[0] == cost);
    assert_int_equal(report.episodes, dt_round_count_episodes(b));
    uint64_t ended = 0;
    for (size_t i = first; i < first + SAMPLES; i++) {
        ended += (b->flag[i] & DT_STEP_TERMINATED) != 0;
    }
    assert_int_equal(report.terminated, ended);
    assert_int_equal(dt_replay_add_round(p), DT_EPLUGIN); /* nothing can be added to files */
    drop_replay(&w);
    world_close(&w);
}

/* A resumed run writes the same round again; files of later rounds, of the run before, are gone. */
static void test_rounds_of_a_resumed_run(void **state)
{
    world w;
    char path[160];
    snprintf(path, sizeof(path), "%s", round_path(1000));
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    snprintf(path, sizeof(path), "%s/rollouts/tiny-1/note.txt", run_dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    open_world(&w, "32");
    world_collect(&w);
    assert_int_equal(access(round_path(1), F_OK), 0);
    assert_int_not_equal(access(round_path(3), F_OK), 0);
    assert_int_not_equal(access(round_path(1000), F_OK), 0);
    assert_int_equal(access(path, F_OK), 0); /* not a round */
    world_close(&w);
}

static void test_less_than_a_round(void **state)
{
    const char *const settings[] = {"env.id=counter", "env.instances=2", "tiny.transitions=2", "rollouts.keep=15",
                                    NULL};
    world w;
    world_open(&w, settings, NULL);
    w.run_dir = run_dir;
    assert_int_equal(world_create(&w), DT_ECONFIG);
    assert_non_null(strstr(dt_error_text(), "rollouts.keep = 15"));
    assert_non_null(strstr(dt_error_text(), "at least 16"));
    world_close(&w);
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

typedef struct damage {
    const char *tensor; /* or a key of the metadata */
    int64_t at;         /* item; -1: the tensor, or the key, is missing; -2: value is the key's */
    double value;
    const char *text, *says; /* the key's; what the message names */
} damage;

static const char ACCEPTED[] = "";

/* The first round with one change, without its seal: as other programs write it. */
static void write_damaged(const dt_safetensors *s, const damage *d, const char *path)
{
    static const char *const keys[] = {"round", "episodes", "steps", "instances", "format", "environment"};
    dt_st_tensor t[MOST];
    const char *pair[MOST][2];
    uint32_t n = 0, m = 0;
    char *copy = NULL;
    for (uint32_t i = 0; i < dt_safetensors_count(s); i++) {
        const dt_st_tensor *x = dt_safetensors_at(s, i);
        const bool is_it = d->tensor != NULL && strcmp(x->name, d->tensor) == 0;
        if (is_it && d->at == -1) {
            continue;
        }
        t[n] = *x;
        if (is_it) {
            copy = malloc(x->bytes);
            memcpy(copy, x->data, x->bytes);
            if (x->dtype == DT_ST_F32) {
                ((float *)(void *)copy)[d->at] = (float)d->value;
            } else {
                ((int32_t *)(void *)copy)[d->at] = (int32_t)d->value;
            }
            t[n].data = copy;
        }
        n++;
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const bool is_it = d->tensor != NULL && strcmp(keys[i], d->tensor) == 0;
        if (!is_it || d->at == -2) {
            pair[m][0] = keys[i];
            pair[m++][1] = is_it ? d->text : dt_safetensors_metadata(s, keys[i]);
        }
    }
    pair[m][0] = "version";
    pair[m++][1] = d->tensor != NULL && strcmp(d->tensor, "version") == 0 ? d->text : "1";
    assert_int_equal(dt_safetensors_write(path, t, n, (const char *const(*)[2])pair, m), DT_OK);
    free(copy);
}

static int64_t last_of_step(const dt_safetensors *s, int32_t step)
{
    const dt_st_tensor *t = dt_safetensors_find(s, "sample/step");
    for (int64_t i = t->dim[0]; i-- > 0;) {
        if (((const int32_t *)t->data)[i] == step) {
            return i;
        }
    }
    fail_msg("no sample of step %d", (int)step);
    return 0;
}

static void test_damage(void **state)
{
    world w;
    dt_safetensors *s = NULL;
    dt_replay *p = NULL;
    char path[160];
    open_world(&w, "32");
    world_collect(&w);
    assert_int_equal(dt_safetensors_open(round_path(1), &s), DT_OK);
    snprintf(path, sizeof(path), "%s/damaged.safetensors", run_dir);
    const int64_t last = last_of_step(s, STEPS - 1);
    const float *ends = dt_safetensors_find(s, "terminated")->data;
    const float *cut = dt_safetensors_find(s, "truncated")->data;
    int64_t open = 0, ended = 0, truncated = 0;
    while (ends[open] != 0 || cut[open] != 0) {
        open++;
    }
    while (ended < SAMPLES - 1 && ends[ended] == 0) {
        ended++;
    }
    while (truncated < SAMPLES - 1 && cut[truncated] == 0) {
        truncated++;
    }
    assert_true(ends[ended] != 0 && cut[truncated] != 0);
    const damage d[] = {
        {NULL, 0, 0, NULL, NULL},
        {"reward", -1, 0, NULL, "reward"},
        {"sample/sizes", -1, 0, NULL, "sample/sizes"},
        {"reward", 0, (double)NAN, NULL, "reward is not finite (nan)"},
        {"terminated", open, 0.5, NULL, "terminated is 0.5"},
        {"truncated", ended, 1, NULL, "terminated and truncated"},
        {"terminated", open, 1, NULL, "next_present"},
        {"next_present", open, 0, NULL, "next_present is 0"},
        {"truncated", truncated, 0, NULL, NULL},
        {"action_i", 0, 3, NULL, "action_i"},
        {"action_i", 0, -1, NULL, "action_i"},
        {"place", 0, 1, NULL, "place"},
        {"log_prob", 0, 0.5, NULL, "log_prob"},
        {"mask", 0, 2, NULL, "mask is 2"},
        {"sample/sizes", 0, 2, NULL, "rows"},
        {"sample/step", 0, 1, NULL, "sample 1"},
        {"sample/step", last, STEPS, NULL, "step 8"},
        {"sample/instance", last, M, NULL, "instance 2"},
        {"sample/instance", 0, 1, NULL, "instance"},
        {"format", -2, 0, "other", "format"},
        {"environment", -2, 0, "crowd", "environment"},
        {"environment", -1, 0, NULL, "environment"},
        {"version", -2, 0, "3", "version"},
        {"version", -2, 0, "2", "checksum"}, /* which this file lacks */
        {"steps", -2, 0, "0", "steps"},
        {"steps", -2, 0, "7", "7 steps"},
        {"instances", -2, 0, "1", "1 instances"},
        {"round", -2, 0, "0", "round"},
        {"round", -2, 0, "1.5", "round"},
        {"episodes", -2, 0, "17", "17 episodes"},
        {"episodes", -2, 0, "16", ACCEPTED}, /* one in each step of an instance */
    };
    dt_log_level_set(DT_LOG_ERROR);
    for (size_t i = 0; i < sizeof(d) / sizeof(d[0]); i++) {
        write_damaged(s, &d[i], path);
        const dt_status st = open_replay(&w, path, &p), want = i == 0 || d[i].says == ACCEPTED ? DT_OK : DT_EDATA;
        const char *says = d[i].says == ACCEPTED ? NULL : d[i].says;
        if (st != want || (says != NULL && strcmp(says, "checksum") != 0 && strstr(dt_error_text(), says) == NULL)) {
            fail_msg("damage %zu of %s: %d, %s", i, d[i].tensor, (int)st, dt_error_text());
        }
        if (st == DT_OK) {
            drop_replay(&w);
        }
    }
    dt_safetensors_close(s);
    unlink(path);
    world_close(&w);
}

/* Of what is continuous log_prob is a density, which may be above 0; what was executed is within the bounds. */
static void test_damage_of_continuous_actions(void **state)
{
    static const char *const settings[] = {"env.id=torque", "env.instances=2", "tiny.transitions=2", "rollouts.keep=32",
                                           NULL};
    static const damage d[] = {{"executed", 1, 1.5, NULL, "executed"},
                               {"executed", 1, -1.5, NULL, "executed"},
                               {"executed", 1, -1, NULL, NULL},
                               {"log_prob", 0, 0.5, NULL, NULL}};
    world w;
    dt_safetensors *s = NULL;
    dt_replay *p = NULL;
    char path[160];
    world_open(&w, settings, NULL);
    w.run_dir = run_dir;
    world_start(&w);
    world_collect(&w);
    assert_int_equal(dt_safetensors_open(round_path(1), &s), DT_OK);
    snprintf(path, sizeof(path), "%s/damaged.safetensors", run_dir);
    for (size_t i = 0; i < sizeof(d) / sizeof(d[0]); i++) {
        write_damaged(s, &d[i], path);
        const dt_status st = open_replay(&w, path, &p);
        if (st != (d[i].says != NULL ? DT_EDATA : DT_OK) ||
            (d[i].says != NULL && strstr(dt_error_text(), d[i].says) == NULL)) {
            fail_msg("damage %zu of %s: %d, %s", i, d[i].tensor, (int)st, dt_error_text());
        }
        if (st == DT_OK) {
            drop_replay(&w);
        }
    }
    dt_safetensors_close(s);
    unlink(path);
    world_close(&w);
}

/* The same samples twice in a folder are an error, by whatever name. */
static void test_each_round_once(void **state)
{
    world w;
    dt_safetensors *s = NULL;
    dt_replay *p = NULL;
    char path[160], folder[128];
    open_world(&w, "32");
    world_collect(&w);
    assert_int_equal(dt_safetensors_open(round_path(1), &s), DT_OK);
    snprintf(folder, sizeof(folder), "%s/rollouts/tiny-1", run_dir);
    snprintf(path, sizeof(path), "%s/copy.safetensors", folder);
    write_damaged(s, &(damage){.tensor = NULL}, path);
    dt_log_level_set(DT_LOG_ERROR);
    assert_int_equal(open_replay(&w, folder, &p), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "round 1"));
    write_damaged(s, &(damage){"round", -2, 0, "2", NULL}, path); /* another round may be equal */
    assert_int_equal(open_replay(&w, folder, &p), DT_OK);
    drop_replay(&w);
    unlink(path);
    write_damaged(s, &(damage){.tensor = NULL}, path);
    assert_int_equal(unlink(round_path(1)), 0);
    assert_int_equal(rename(path, round_path(1)), 0);
    snprintf(path, sizeof(path), "%s/empty", run_dir);
    assert_int_equal(dt_fs_mkdirs(path), DT_OK);
    assert_int_equal(open_replay(&w, path, &p), DT_EDATA); /* no sample */
    dt_safetensors_close(s);
    world_close(&w);
}

static int make_dir(void **state)
{
    snprintf(run_dir, sizeof(run_dir), "/tmp/dtrain-stored-XXXXXX");
    return mkdtemp(run_dir) == NULL;
}

static int drop_dir(void **state)
{
    assert_int_equal(dt_fs_remove_tree(run_dir), DT_OK);
    return 0;
}

/* Sums of a sample of two rows, with two costs a row. */
static void test_sums(void **state)
{
    static dt_replay p;
    static dt_rollout r;
    static dt_buffer all;
    static dt_layout l;
    static const float terminated[] = {0, 1};
    float record[] = {1, -2, /* rewards */ 3, 4, 5, 6 /* costs */};
    const stored_sample x = {.size = {2}, .record = (char *)record, .terminated = terminated};
    const size_t at[] = {0, 2 * sizeof(float)};
    l.spec.n_costs = 2;
    all.l = &l;
    r.all = &all;
    p.r = &r;
    p.n_fields = 2;
    p.field[0].kind = DT_REPLAY_REWARD;
    p.field[1].kind = DT_REPLAY_COST;
    add_reward_sums(&p, &x, at);
    add_reward_sums(&p, &x, at);
    const dt_replay_stats *t = &p.totals;
    assert_true(t->samples == 2 && t->rows == 4 && t->terminated == 2);
    assert_true(t->reward == -2 && t->reward_squares == 10);
    assert_true(t->cost[0] == 16 && t->cost[1] == 20 && t->cost_squares[0] == 68 && t->cost_squares[1] == 104);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_rounds_are_kept),
        cmocka_unit_test(test_rounds_of_a_resumed_run),
        cmocka_unit_test(test_less_than_a_round),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_damage_of_continuous_actions),
        cmocka_unit_test(test_each_round_once),
    };
    return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
