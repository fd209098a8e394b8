/* SPDX-License-Identifier: Apache-2.0
 *
 * The replay (svc/replay.h): what is drawn is what was collected, several steps add up as they would by hand, draws
 * have the frequencies and weights that they say, and a run that was stopped anywhere goes on with the same bits.
 */
#include <config.h>

#include "worlds.h"

#include "base/err.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/mem.h"
#include "rl/replay/replay.h"
#include "state/snapshot/snapshot.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { M = 6, STEPS = 8, ROUNDS = 4, DRAW = 36 };

/* ---- what is drawn is what was collected ------------------------------------------------------------------------- */

typedef struct kept { /* samples of all rounds, one by one, as the rollout had them */
    sample s[ROUNDS * M * STEPS];
    int64_t key[ROUNDS * M * STEPS]; /* of the first row; -1: nobody acted */
    uint64_t n;
} kept;

static const dt_samples *rollout_of(const world *w)
{
    return &w->phase->rollout->data(w->phase->r)->source;
}

static void read_one(const dt_samples *s, uint64_t index, sample *out)
{
    const uint64_t key = 0;
    memset(out, 0, sizeof(*out));
    assert_done(s->ops->sizes(s->self, &index, 1, out->size));
    out->size[s->n_symbols] = 1;
    for (uint32_t f = 0; f < s->n_fields; f++) {
        out->at[f] = calloc(1, dt_samples_field_bytes(s, f, out->size) + 1);
    }
    assert_done(s->ops->read(s->self, &index, &key, 1, (void *const *)out->at));
}

static const char *data_of(const dt_samples *s, const sample *x, const char *name)
{
    for (uint32_t f = 0; f < s->n_fields; f++) {
        if (strcmp(s->field[f].name, name) == 0) {
            return x->at[f];
        }
    }
    fail_msg("no field %s", name);
    return NULL;
}

static void keep_round(const world *w, kept *k)
{
    const dt_samples *s = rollout_of(w);
    for (uint64_t i = 0; i < s->count; i++, k->n++) {
        read_one(s, i, &k->s[k->n]);
        k->key[k->n] = k->s[k->n].size[0] > 0 ? *(const int64_t *)(const void *)data_of(s, &k->s[k->n], "row_key") : -1;
    }
}

static void drop_kept(const world *w, kept *k)
{
    for (uint64_t i = 0; i < k->n; i++) {
        for (uint32_t f = 0; f < rollout_of(w)->n_fields; f++) {
            free(k->s[i].at[f]);
        }
    }
    k->n = 0;
}

static uint64_t find(const kept *k, int64_t key)
{
    for (uint64_t i = 0; i < k->n; i++) {
        if (k->key[i] == key) {
            return i;
        }
    }
    fail_msg("row_key %lld was never collected", (long long)key);
    return 0;
}

/* Fields that a draw makes itself, and those that are normalised by other statistics. */
static bool is_made(const char *name, bool is_normalised)
{
    return strcmp(name, "weight") == 0 || strcmp(name, "discount") == 0 ||
           (is_normalised && strstr(name, "state") != NULL);
}

/* Drawn samples are the kept ones, field by field; the newest of them alone, and after a while each of those. */
static void drawn_is_collected(const char *const *settings, bool is_normalised)
{
    static kept k;
    static bool was_drawn[ROUNDS * M * STEPS];
    world w;
    memset(was_drawn, 0, sizeof(was_drawn));
    world_begin(&w, settings);
    const tiny *p = w.phase;
    for (int round = 0; round < ROUNDS; round++) {
        world_collect(&w);
        keep_round(&w, &k);
        assert_done(p->replay->add(p->p));
    }
    uint64_t live = 0, first = k.n;
    while (first > 0 && live < p->replay->count(p->p)) {
        live += k.key[--first] >= 0;
    }
    assert_int_equal(live, p->replay->count(p->p));
    const dt_samples *drawn = world_source(&w), *own = rollout_of(&w);
    for (int d = 0; d < 40; d++) {
        assert_done(p->replay->draw(p->p));
        for (uint64_t i = 0; i < drawn->count; i++) {
            sample s;
            read_one(drawn, i, &s);
            const uint64_t at = find(&k, *(const int64_t *)(const void *)data_of(drawn, &s, "row_key"));
            assert_true(at >= first);
            was_drawn[at] = true;
            assert_memory_equal(s.size, k.s[at].size, drawn->n_symbols * sizeof(int64_t));
            for (uint32_t f = 0; f < drawn->n_fields; f++) {
                if (!is_made(drawn->field[f].name, is_normalised)) {
                    assert_memory_equal(s.at[f], data_of(own, &k.s[at], drawn->field[f].name),
                                        dt_samples_field_bytes(drawn, f, s.size));
                }
                free(s.at[f]);
            }
        }
    }
    assert_int_equal(p->replay->draws(p->p), 40);
    for (uint64_t i = first; i < k.n; i++) {
        assert_true(was_drawn[i] || k.key[i] < 0);
    }
    drop_kept(&w, &k);
    world_close(&w);
}

static void test_drawn_is_collected(void **state)
{
    static const char *const counter[] = {"env.id=counter", "tiny.transitions=2", "tiny.replay=100", NULL};
    static const char *const large[] = {"env.id=counter", "tiny.transitions=2", "tiny.replay=1000", NULL};
    static const char *const small[] = {"env.id=counter", "tiny.transitions=2", "tiny.replay=7", NULL};
    static const char *const crowd[] = {"env.id=crowd", "tiny.transitions=2", "tiny.replay=70", "tiny.window=3", NULL};
    static const char *const graphs[] = {"env.id=crowd", "tiny.transitions=3", "tiny.replay=70", NULL};
    static const char *const relay[] = {"env.id=relay", "tiny.transitions=2", "tiny.replay=70", "tiny.annotation=A 2",
                                        NULL};
    static const char *const torque[] = {"env.id=torque", "tiny.transitions=2", "tiny.replay=64",
                                         "tiny.normalise_obs=true", NULL};
    drawn_is_collected(counter, false);
    drawn_is_collected(large, false);
    drawn_is_collected(small, false);
    drawn_is_collected(crowd, false);
    drawn_is_collected(graphs, false);
    drawn_is_collected(relay, false);
    drawn_is_collected(torque, true);
}

/* Several samples packed are the samples one after another, rows named by the use of the sample where it has a name. */
static void packed(const char *transitions, bool is_joined)
{
    const char *const settings[] = {"env.id=crowd", transitions, "tiny.replay=70", "tiny.window=3", NULL};
    uint64_t index[DRAW], key[DRAW];
    int64_t row = 0, node = 0, edge = 0;
    world w;
    sample all;
    world_begin(&w, settings);
    world_collect(&w);
    assert_done(w.phase->replay->add(w.phase->p));
    assert_done(w.phase->replay->draw(w.phase->p));
    const dt_samples *s = world_source(&w);
    for (uint64_t i = 0; i < DRAW; i++) {
        index[i] = DRAW - 1 - i;
        key[i] = 1000 * i + 1;
    }
    read_samples(&w, index, DRAW, &all);
    assert_done(s->ops->read(s->self, index, key, DRAW, (void *const *)all.at));
    for (int i = 0; i < DRAW; i++) {
        sample x;
        read_samples(&w, &index[i], 1, &x);
        const int64_t A = x.size[0], n = x.size[1], e = x.size[2];
        for (int64_t a = 0; a < A; a++) {
            const int64_t *keys = (const int64_t *)(const void *)all.at[field_of(&w, "row_key")];
            assert_int_equal(keys[row + a], 1000 * i + 1 + i32(&w, &x, "place", a));
            assert_true(f32(&w, &all, "own", 2 * (row + a)) == f32(&w, &x, "own", 2 * a));
            assert_int_equal(i32(&w, &all, "node", row + a), i32(&w, &x, "node", a) + node);
            for (int64_t place = 0; place < 4; place++) {
                const int32_t other = i32(&w, &x, "team_rows", 4 * a + place);
                assert_int_equal(other < 0 ? place : i32(&w, &x, "place", other), place);
                assert_int_equal(i32(&w, &all, "team_rows", 4 * (row + a) + place), other < 0 ? -1 : other + row);
            }
            if (is_joined) {
                const int32_t next = i32(&w, &x, "next_node", a);
                assert_int_equal(i32(&w, &all, "next_node", row + a), next < 0 ? -1 : next + node);
            }
            for (int64_t t = 0; t < 3; t++) {
                assert_true(f32(&w, &all, "own_history", 2 * (t * all.size[0] + row + a)) ==
                            f32(&w, &x, "own_history", 2 * (t * A + a)));
                assert_true(f32(&w, &all, "own_steps", 2 * (t * all.size[0] + row + a)) ==
                            f32(&w, &x, "own_steps", 2 * (t * A + a)));
            }
        }
        for (int64_t k = 0; k < n; k++) {
            assert_int_equal(i32(&w, &all, "rowptr", node + k), i32(&w, &x, "rowptr", k) + edge);
            const int32_t driver = i32(&w, &x, "driver", k);
            assert_int_equal(i32(&w, &all, "driver", node + k), driver < 0 ? -1 : driver + row);
        }
        for (int64_t k = 0; k < e; k++) {
            assert_int_equal(i32(&w, &all, "col", edge + k), i32(&w, &x, "col", k) + node);
        }
        row += A;
        node += n;
        edge += e;
        drop_sample(&w, &x);
    }
    assert_int_equal(i32(&w, &all, "rowptr", node), edge);
    drop_sample(&w, &all);
    world_close(&w);
}

static void test_packed(void **state)
{
    packed("tiny.transitions=2", false);
    packed("tiny.transitions=3", true);
}

/* Raw observations, by the statistics of the draw: those of all rounds so far, and not of the one they came from. */
static void test_normalised(void **state)
{
    const char *const settings[] = {"env.id=torque", "tiny.transitions=2", "tiny.replay=64", "tiny.normalise_obs=true",
                                    NULL};
    world w;
    world_begin(&w, settings);
    const tiny *p = w.phase;
    world_collect(&w); /* the first round sees them as they are */
    assert_done(p->replay->add(p->p));
    assert_done(p->replay->draw(p->p));
    double sum = 0, squares = 0, ended = 0;
    uint64_t rows = 0;
    for (int d = 0; d < 50; d++) {
        assert_done(p->replay->draw(p->p));
        for (uint64_t i = 0; i < DRAW; i++) {
            sample s;
            read_samples(&w, &i, 1, &s);
            const double x = (double)f32(&w, &s, "state", 0), next = (double)f32(&w, &s, "next_state", 0);
            sum += x;
            squares += x * x;
            rows++;
            ended += next < x; /* the next step's is one more, in the same units; nothing is terminated here */
            drop_sample(&w, &s);
        }
    }
    assert_true(ended == 0);
    assert_true(fabs(sum / (double)rows) < 0.15 && fabs(squares / (double)rows - 1) < 0.3); /* 100 .. 105 as it is */
    world_close(&w);
}

/* One that is too large for memory lies in a file without a name, which changes nothing. */
static void test_in_a_file(void **state)
{
    static const char *const given[] = {"env.id=relay", "tiny.transitions=2", "tiny.replay=70", "data.replay_mb=0",
                                        NULL};
    static float params[2][2048];
    dt_rollout_report r[2];
    char dir[64], **names = NULL;
    size_t n = 0;
    snprintf(dir, sizeof(dir), "test_replay.%ld.tmp", (long)getpid());
    assert_done(dt_fs_mkdirs(dir));
    for (int k = 0; k < 2; k++) {
        world w;
        world_open(&w, given, NULL);
        w.run_dir = k == 1 ? dir : NULL;
        world_start(&w);
        assert_int_equal(w.stage->rollout->replay->is_in_file, k);
        for (int i = 0; i < 3; i++) {
            assert_done(world_iterate(&w));
        }
        world_keep(&w, params[k], &r[k]);
        assert_done(dt_fs_list(dir, &names, &n));
        assert_int_equal(n, 0);
        dt_fs_list_free(names, n);
        dt_replay *p = w.stage->rollout->replay;
        for (uint64_t slot = 0; slot < dt_replay_size(p) && k == 1; slot++) { /* the disk damages all of it */
            dt_replay_slot_at(p, slot)[p->stride / 2] ^= 1;
        }
        assert_int_equal(world_iterate(&w), k == 1 ? DT_EDATA : DT_OK);
        dt_error_clear();
        world_close(&w);
    }
    assert_memory_equal(params[0], params[1], sizeof(params[0]));
    assert_memory_equal(&r[0], &r[1], sizeof(r[0]));
    world w;
    world_open(&w, given, NULL);
    w.run_dir = dir;
    dt_fault_reset("fs.write:1");
    const dt_status st = world_create(&w);
    dt_fault_reset(NULL);
    assert_int_equal(st, DT_EIO);
    assert_non_null(strstr(dt_error_text(), "cannot reserve"));
    assert_non_null(strstr(dt_error_text(), "data.replay_mb"));
    world_close(&w);
    assert_done(dt_fs_remove_tree(dir));
}

/* ---- several steps ----------------------------------------------------------------------------------------------- */

/* The row of an agent, forwards through what was collected: sums of 0.5^i r_i, and what follows the last step. */
static void check_row(const world *w, const kept *k, uint64_t at, int64_t r, const sample *s, int n_step)
{
    const dt_samples *own = rollout_of(w);
    const int32_t place = i32(w, s, "place", r);
    double sum = 0, worth = 1;
    int64_t row = r;
    for (int step = 1;; step++, at += M) {
        const sample *x = &k->s[at];
        const float *terminated = (const void *)data_of(own, x, "terminated");
        const float *truncated = (const void *)data_of(own, x, "truncated");
        const bool is_end = terminated[row] != 0 || truncated[row] != 0 || step == n_step;
        sum += worth * (double)((const float *)(const void *)data_of(own, x, "reward"))[row];
        worth *= 0.5;
        if (is_end) {
            const float *next = (const void *)data_of(own, x, "next_state");
            const float *next_mask = (const void *)data_of(own, x, "next_mask");
            assert_true(f32(w, s, "terminated", r) == terminated[row]);
            assert_true(f32(w, s, "truncated", r) == truncated[row]);
            assert_true(f32(w, s, "discount", r) == (terminated[row] != 0 ? 0 : (float)worth));
            for (int d = 0; d < 3; d++) {
                assert_true(f32(w, s, "next_state", 3 * r + d) == next[3 * row + d]);
                assert_true(f32(w, s, "next_mask", 3 * r + d) == next_mask[3 * row + d]);
            }
            break;
        }
        const sample *after = &k->s[at + M];
        const int32_t *places = (const void *)data_of(own, after, "place");
        row = 0;
        while (row < after->size[0] && places[row] != place) {
            row++;
        }
        assert_true(row < after->size[0]);
    }
    assert_true(f32(w, s, "reward", r) == (float)sum);
}

static void several_steps(const char *env, int n_step)
{
    static kept k;
    char id[32], steps[32];
    snprintf(id, sizeof(id), "env.id=%s", env);
    snprintf(steps, sizeof(steps), "tiny.n_step=%d", n_step);
    const char *const settings[] = {id, steps, "tiny.transitions=2", "tiny.replay=300", NULL};
    world w;
    uint64_t worth[2] = {0};
    world_begin(&w, settings);
    const tiny *p = w.phase;
    for (int round = 0; round < 2; round++) {
        world_collect(&w);
        keep_round(&w, &k);
        assert_done(p->replay->add(p->p));
    }
    for (int d = 0; d < 20; d++) {
        assert_done(p->replay->draw(p->p));
        for (uint64_t i = 0; i < DRAW; i++) {
            sample s;
            read_samples(&w, &i, 1, &s);
            const uint64_t at = find(&k, *(const int64_t *)(const void *)data_of(world_source(&w), &s, "row_key"));
            for (int64_t r = 0; r < s.size[0]; r++) {
                check_row(&w, &k, at, r, &s, n_step);
                worth[0] += f32(&w, &s, "discount", r) == powf(0.5f, (float)n_step);
                worth[1] += f32(&w, &s, "discount", r) != powf(0.5f, (float)n_step);
            }
            drop_sample(&w, &s);
        }
    }
    assert_true(worth[0] > 20 && worth[1] > 20);
    drop_kept(&w, &k);
    world_close(&w);
}

static void test_several_steps(void **state)
{
    several_steps("counter", 2);
    several_steps("counter", 5);
    several_steps("relay", 3);
    several_steps("relay", 1);
}

/* ---- how often --------------------------------------------------------------------------------------------------- */

static int64_t first_key(const world *w, uint64_t i)
{
    sample s;
    read_samples(w, &i, 1, &s);
    const int64_t key = *(const int64_t *)(const void *)s.at[field_of(w, "row_key")];
    drop_sample(w, &s);
    return key;
}

/* Chi-square of how often each sample is drawn: of k - 1 degrees, its mean k - 1 and its deviation sqrt(2 (k - 1)). */
static double chi_square(const uint64_t *n, const double *share, uint64_t k, uint64_t all)
{
    double sum = 0;
    for (uint64_t i = 0; i < k; i++) {
        const double want = share[i] * (double)all;
        sum += ((double)n[i] - want) * ((double)n[i] - want) / want;
    }
    return (sum - (double)(k - 1)) / sqrt(2.0 * (double)(k - 1));
}

static uint64_t number_of(int64_t *keys, uint64_t *n_p, int64_t key)
{
    uint64_t i = 0;
    while (i < *n_p && keys[i] != key) {
        i++;
    }
    if (i == *n_p) {
        keys[(*n_p)++] = key;
    }
    return i;
}

/* Nothing said is what a step of its trainer takes: data.batch, or the trainer's own. */
static void test_of_a_step(void **state)
{
    static const char *const settings[] = {"env.id=counter", "tiny.transitions=2",      "tiny.replay=100",
                                           "tiny.draw=0",    "training.accumulation=2", NULL};
    uint64_t n = 0;
    world w;
    world_begin(&w, settings);
    const dt_samples *s = world_source(&w);
    assert_int_equal(w.phase->replay->draw_size(w.phase->p), 24);
    assert_done(s->ops->count(s->self, &n));
    assert_int_equal(n, 24);
    world_close(&w);
    static const char *const own[] = {"env.id=counter", "tiny.transitions=2", "tiny.replay=100",
                                      "tiny.draw=0",    "tiny.batch=18",      NULL};
    world_begin(&w, own);
    s = world_source(&w);
    assert_int_equal(w.phase->replay->draw_size(w.phase->p), 18);
    assert_int_equal(s->count, 18);
    world_collect(&w);
    assert_done(w.phase->replay->add(w.phase->p));
    assert_done(w.phase->replay->draw(w.phase->p));
    dt_step_report r = {.struct_size = sizeof(r)};
    assert_done(w.phase->train->step(w.phase->t, &r));
    assert_int_equal(r.samples, 18);
    world_close(&w);
}

static void test_uniform(void **state)
{
    enum { DRAWS = 300 };
    const char *const settings[] = {"env.id=counter", "tiny.transitions=2", "tiny.replay=32", NULL};
    int64_t keys[256];
    uint64_t n[256] = {0}, n_keys = 0;
    double share[256];
    world w;
    world_begin(&w, settings);
    world_collect(&w);
    assert_done(w.phase->replay->add(w.phase->p));
    for (int d = 0; d < DRAWS; d++) {
        assert_done(w.phase->replay->draw(w.phase->p));
        for (uint64_t i = 0; i < DRAW; i++) {
            n[number_of(keys, &n_keys, first_key(&w, i))]++;
        }
    }
    assert_int_equal(n_keys, 32);
    for (uint64_t i = 0; i < n_keys; i++) {
        share[i] = 1.0 / 32;
    }
    const double far = chi_square(n, share, n_keys, (uint64_t)DRAWS * DRAW);
    assert_true(far > -3 && far < 3);
    world_close(&w);
}

/* p_i = (|error| + 1e-6)^alpha, P(i) = p_i / sum, w_i = (N P(i))^-beta over the greatest of the draw. */
static void test_priorities(void **state)
{
    enum { N = 32, DRAWS = 400 };
    const double alpha = 0.6, beta = 0.5;
    const char *const settings[] = {"env.id=counter", "tiny.transitions=2", "tiny.replay=32", "tiny.alpha=0.6", NULL};
    int64_t keys[256];
    uint64_t n[256] = {0}, n_keys = 0;
    double p[256], share[256], all = 0;
    float error[DRAW];
    world w;
    world_begin(&w, settings);
    world_collect(&w);
    const dt_replay_api *api = w.phase->replay;
    assert_done(api->add(w.phase->p));
    for (int i = 0; i < 256; i++) {
        p[i] = 1; /* what a sample comes with, while nothing greater was reported */
    }
    for (int d = 0; d < 20; d++) { /* until each was drawn and given an error */
        assert_done(api->draw(w.phase->p));
        double most = 0, want[DRAW], sum = 0;
        uint64_t at[DRAW];
        for (uint64_t i = 0; i < DRAW; i++) {
            at[i] = number_of(keys, &n_keys, first_key(&w, i));
        }
        for (int i = 0; i < N; i++) {
            sum += p[i];
        }
        for (uint64_t i = 0; i < DRAW; i++) {
            want[i] = pow(N * p[at[i]] / sum, -beta);
            most = want[i] > most ? want[i] : most;
        }
        for (uint64_t i = 0; i < DRAW; i++) {
            sample s;
            read_samples(&w, &i, 1, &s);
            assert_true(fabs((double)f32(&w, &s, "weight", 0) - want[i] / most) < 1e-6);
            drop_sample(&w, &s);
            error[i] = (float)(at[i] % 3 == 0 ? -1 : 1) * (0.25f + (float)(at[i] % 5));
        }
        assert_done(api->priority(w.phase->p, error, DRAW));
        for (uint64_t i = 0; i < DRAW; i++) {
            p[at[i]] = pow(fabs((double)error[i]) + 1e-6, alpha);
        }
    }
    assert_int_equal(n_keys, N);
    for (int i = 0; i < N; i++) {
        all += p[i];
    }
    for (int i = 0; i < N; i++) {
        share[i] = p[i] / all;
    }
    for (int d = 0; d < DRAWS; d++) {
        assert_done(api->draw(w.phase->p));
        for (uint64_t i = 0; i < DRAW; i++) {
            n[number_of(keys, &n_keys, first_key(&w, i))]++;
        }
    }
    assert_true(chi_square(n, share, N, (uint64_t)DRAWS * DRAW) < 3); /* drawn from equal parts: less scattered */
    world_collect(&w); /* who comes in has the greatest priority so far */
    assert_done(api->add(w.phase->p));
    assert_done(api->draw(w.phase->p));
    for (uint64_t i = 0; i < DRAW; i++) {
        sample s;
        read_samples(&w, &i, 1, &s);
        assert_true(f32(&w, &s, "weight", 0) == 1);
        drop_sample(&w, &s);
    }
    world_close(&w);
}

/* ---- stopped and gone on with ------------------------------------------------------------------------------------ */

typedef struct outcome {
    float params[2048];
    char *field[64];
    size_t bytes[64];
} outcome;

static void keep_outcome(const world *w, outcome *o)
{
    const dt_samples *s = world_source(w);
    const dt_samples_part all = {.n = s->count}, part[4] = {all, all, all, all};
    uint64_t index[DRAW];
    dt_rollout_report r;
    sample x;
    world_keep(w, o->params, &r);
    assert_done(dt_samples_fetch_parts(s, part));
    for (uint64_t i = 0; i < DRAW; i++) {
        index[i] = i;
    }
    read_samples(w, index, DRAW, &x);
    for (uint32_t f = 0; f < s->n_fields; f++) {
        o->field[f] = x.at[f];
        o->bytes[f] = dt_samples_field_bytes(s, f, x.size);
    }
}

static void assert_same(const outcome *a, const outcome *b)
{
    assert_memory_equal(a->params, b->params, sizeof(a->params));
    for (int f = 0; f < 64; f++) {
        assert_int_equal(a->bytes[f], b->bytes[f]);
        assert_true(a->bytes[f] == 0 || memcmp(a->field[f], b->field[f], a->bytes[f]) == 0);
    }
}

static void drop_outcome(outcome *o)
{
    for (int f = 0; f < 64; f++) {
        free(o->field[f]);
    }
    memset(o, 0, sizeof(*o));
}

typedef struct job { /* a rank, or the only one */
    world w;
    outcome o;
    pthread_t thread;
    const char *dir;
    const char *const *settings;
    int stop; /* where: before add, between add and draw, behind draw, in the middle of steps */
    bool is_resumed;
} job;
enum { BEFORE_ADD, BEFORE_DRAW, BEHIND_DRAW, AMONG_STEPS, STOPS };

static void steps_of(const job *j, int n)
{
    const tiny *p = j->w.phase;
    for (int i = 0; i < n; i++) {
        dt_step_report r = {.struct_size = sizeof(r)};
        assert_done(p->train->step(p->t, &r));
    }
}

static void save(const job *j, int here)
{
    const uint32_t ranks = dt_comm_size(j->w.comm);
    const dt_snapshot_desc d = {.run_dir = j->dir, .ranks = ranks, .comm = j->w.comm};
    if (here != j->stop || j->is_resumed) {
        return;
    }
    assert_done(dt_rollout_prepare_replay(j->w.stage->rollout));
    assert_done(dt_trainer_open_moments(j->w.stage->trainer, true));
    assert_int_equal(dt_snapshot_is_shared(j->w.stage, &d), ranks > 1);
    if (dt_comm_rank(j->w.comm) == 0) {
        assert_done(dt_fs_mkdirs(j->dir));
        assert_done(dt_snapshot_save(j->w.stage, &d, NULL));
    } else {
        assert_done(dt_snapshot_save_shard(j->w.stage, &d));
    }
    dt_trainer_close_moments(j->w.stage->trainer, false);
    assert_done(dt_comm_barrier(j->w.comm));
}

/* A round in steps of its own: 3 of a batch of 12 to a draw of 36. A resume begins where the checkpoint was made. */
static void *job_main(void *arg)
{
    job *j = arg;
    const int from = j->is_resumed ? j->stop : -1;
    world_start(&j->w);
    const tiny *p = j->w.phase;
    if (j->is_resumed) {
        dt_ckpt *c = NULL;
        assert_done(dt_ckpt_open(j->dir, false, NULL, &c));
        assert_done(dt_snapshot_load(j->w.stage, c));
        dt_ckpt_close(c);
    } else {
        assert_done(world_iterate(&j->w));
        save(j, BEFORE_ADD);
    }
    if (from < BEFORE_DRAW) {
        world_collect(&j->w);
        assert_done(p->replay->add(p->p));
        save(j, BEFORE_DRAW);
    }
    if (from < BEHIND_DRAW) {
        assert_done(p->replay->draw(p->p));
        save(j, BEHIND_DRAW);
    }
    if (from < AMONG_STEPS) {
        steps_of(j, 1);
        save(j, AMONG_STEPS);
    }
    steps_of(j, 2);
    assert_done(world_iterate(&j->w));
    keep_outcome(&j->w, &j->o);
    return NULL;
}

static void run_jobs(const job *what, uint32_t ranks, outcome *out)
{
    static job j[3];
    dt_comm *comm[3] = {NULL};
    assert_true(ranks <= 3);
    if (ranks > 1) {
        assert_done(dt_comm_create_simulated(ranks, 60, comm));
    }
    for (uint32_t i = 0; i < ranks; i++) {
        j[i] = *what;
        world_open(&j[i].w, what->settings, comm[i]);
    }
    for (uint32_t i = 0; i < ranks; i++) {
        assert_int_equal(pthread_create(&j[i].thread, NULL, job_main, &j[i]), 0);
    }
    for (uint32_t i = 0; i < ranks; i++) {
        pthread_join(j[i].thread, NULL);
    }
    for (uint32_t i = 0; i < ranks; i++) {
        if (i > 0) {
            assert_same(&j[0].o, &j[i].o);
            drop_outcome(&j[i].o);
        }
        world_close(&j[i].w);
    }
    *out = j[0].o;
}

/* Saved by so many ranks, gone on with by others. */
static void goes_on(const char *const *settings)
{
    char dir[64];
    outcome whole, resumed;
    snprintf(dir, sizeof(dir), "test_replay.%ld.tmp", (long)getpid());
    for (int stop = 0; stop < STOPS; stop++) {
        job j = {.dir = dir, .settings = settings, .stop = stop};
        const uint32_t before = 1 + (uint32_t)stop % 3, after = 1 + (uint32_t)(stop + 1) % 3;
        run_jobs(&j, before, &whole);
        j.is_resumed = true;
        run_jobs(&j, after, &resumed);
        assert_same(&whole, &resumed);
        drop_outcome(&resumed);
        run_jobs(&j, 1, &resumed);
        assert_same(&whole, &resumed);
        drop_outcome(&resumed);
        drop_outcome(&whole);
        assert_done(dt_fs_remove_tree(dir));
    }
}

static void test_resume(void **state)
{
    static const char *const counter[] = {"env.id=counter", "tiny.transitions=2", "tiny.replay=64", "tiny.iterations=9",
                                          NULL};
    static const char *const crowd[] = {"env.id=crowd",
                                        "tiny.transitions=2",
                                        "tiny.replay=50",
                                        "tiny.iterations=9",
                                        "tiny.window=3",
                                        "tiny.n_step=2",
                                        NULL};
    static const char *const relay[] = {"env.id=relay",
                                        "tiny.transitions=2",
                                        "tiny.replay=200",
                                        "tiny.alpha=0.7",
                                        "tiny.iterations=9",
                                        "tiny.normalise_obs=true",
                                        NULL};
    static const char *const herd[] = {"env.id=herd",    "models.controller=herd_net", "tiny.transitions=3",
                                       "tiny.replay=50", "tiny.iterations=9",          NULL};
    goes_on(herd);
    goes_on(counter);
    goes_on(crowd);
    goes_on(relay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drawn_is_collected),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_normalised),
        cmocka_unit_test(test_several_steps),
        cmocka_unit_test(test_in_a_file),
        cmocka_unit_test(test_of_a_step),
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_priorities),
        cmocka_unit_test(test_resume),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
