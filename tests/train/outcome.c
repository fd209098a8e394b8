/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "outcome.h"

#include "base/err.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 8, RANK_TIMEOUT_S = 30 };

/* Of moments without target networks. */
static size_t arena_size(const toy *t, int i)
{
    return (size_t)(i == 0 ? t->params.total : t->params.base_total) * sizeof(float);
}

static float *arena(toy *t, int i)
{
    return i == 0 ? dt_trainer_params(t->trainer) : dt_trainer_moment(t->trainer, (uint32_t)i - 1);
}

void outcome_run(toy *t, outcome *o, int from, int to)
{
    if (from == 0) {
        memset(o, 0, sizeof(*o));
    }
    for (int i = from; i < to; i++) {
        dt_step_report r = {.struct_size = sizeof(r)};
        const dt_status st = toy_step(t, &r);
        if (st != DT_OK) {
            print_message("%s\n", dt_error_text());
        }
        assert_int_equal(st, DT_OK);
        assert_int_equal(r.step, i + 1);
        o->loss[i] = r.loss;
        o->norm[i] = r.grad_norm;
        o->rate[i] = r.learning_rate;
        o->scale[i] = dt_trainer_scaler(t->trainer)->scale;
    }
}

void outcome_keep(toy *t, outcome *o)
{
    assert_int_equal(dt_trainer_synchronize(t->trainer), DT_OK);
    assert_int_equal(dt_trainer_open_moments(t->trainer, true), DT_OK);
    o->bytes = (size_t)t->params.total * sizeof(float);
    for (int i = 0; i < 3; i++) {
        o->state[i] = calloc(1, o->bytes);
        if (arena(t, i) != NULL) {
            memcpy(o->state[i], arena(t, i), arena_size(t, i));
        }
    }
    dt_trainer_close_moments(t->trainer, false);
    o->early = dt_trainer_times_get(t->trainer).early;
    o->updates = dt_trainer_updates(t->trainer);
    const dt_group_state *group = NULL;
    for (uint32_t g = 0; g < dt_trainer_groups(t->trainer, &group); g++) {
        o->of_group[g] = group[g].updates;
    }
    o->scaler = *dt_trainer_scaler(t->trainer);
}

void outcome_drop(outcome *o)
{
    for (int i = 0; i < 3; i++) {
        free(o->state[i]);
    }
}

void outcome_restore(toy *t, const outcome *half, int step)
{
    assert_int_equal(dt_trainer_synchronize(t->trainer), DT_OK);
    assert_int_equal(dt_trainer_open_moments(t->trainer, false), DT_OK);
    for (int i = 0; i < 3; i++) {
        if (arena(t, i) != NULL) {
            memcpy(arena(t, i), half->state[i], arena_size(t, i));
        }
    }
    dt_trainer_close_moments(t->trainer, true);
    dt_trainer_step_number_set(t->trainer, (uint64_t)step);
    dt_trainer_scaler_set(t->trainer, half->updates, &half->scaler);
    const dt_group_state *unused = NULL;
    for (uint32_t g = 0; g < dt_trainer_groups(t->trainer, &unused); g++) {
        dt_trainer_group_updates_set(t->trainer, g, half->of_group[g]);
    }
}

void outcome_same_state(const outcome *a, const outcome *b)
{
    assert_int_equal(a->bytes, b->bytes);
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(a->state[i], b->state[i], a->bytes);
    }
    assert_int_equal(a->updates, b->updates);
    assert_memory_equal(a->of_group, b->of_group, sizeof(a->of_group));
}

void outcome_same_reports(const outcome *a, const outcome *b)
{
    assert_memory_equal(a->loss, b->loss, sizeof(a->loss));
    assert_memory_equal(a->norm, b->norm, sizeof(a->norm));
    assert_memory_equal(a->rate, b->rate, sizeof(a->rate));
    assert_memory_equal(a->scale, b->scale, sizeof(a->scale));
}

void outcome_same(const outcome *a, const outcome *b)
{
    outcome_same_state(a, b);
    outcome_same_reports(a, b);
    assert_memory_equal(&a->scaler, &b->scaler, sizeof(a->scaler));
}

static void change_toy(toy_change *change, toy *t)
{
    toy_init(t);
    if (change != NULL) {
        change(t);
    }
}

void outcome_train(toy_change *change, int steps, outcome *o)
{
    toy t;
    change_toy(change, &t);
    toy_start(&t);
    outcome_run(&t, o, 0, steps);
    outcome_keep(&t, o);
    toy_fini(&t);
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

typedef struct rank_run {
    toy t;
    outcome o;
    const outcome *half;
    int from, to;
    pthread_t thread;
} rank_run;

static void *rank_main(void *arg)
{
    rank_run *r = arg;
    toy_start(&r->t);
    if (r->half != NULL) {
        outcome_restore(&r->t, r->half, r->from);
        r->o = *r->half; /* the reports up to here */
    }
    const uint64_t before = dt_comm_sent_bytes(r->t.comm);
    outcome_run(&r->t, &r->o, r->from, r->to);
    r->o.sent = (dt_comm_sent_bytes(r->t.comm) - before) / (uint64_t)(r->to - r->from);
    r->o.announced = dt_trainer_sent_bytes(r->t.trainer);
    outcome_keep(&r->t, &r->o);
    return NULL;
}

void outcome_of_ranks(toy_change *change, const outcome *half, int from, int to, uint32_t n, outcome *out)
{
    rank_run *r = calloc(n, sizeof(*r));
    dt_comm *comm[MAX_RANKS];
    assert_in_range(n, 1, MAX_RANKS);
    assert_int_equal(dt_comm_create_simulated(n, RANK_TIMEOUT_S, comm), DT_OK);
    for (uint32_t i = 0; i < n; i++) {
        change_toy(change, &r[i].t);
        r[i].half = half;
        r[i].from = from;
        r[i].to = to;
        r[i].t.comm = comm[i];
        r[i].t.config.threads = 1 + i % 2;
        assert_int_equal(pthread_create(&r[i].thread, NULL, rank_main, &r[i]), 0);
    }
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(r[i].thread, NULL);
    }
    for (uint32_t i = 0; i < n; i++) {
        out[i] = r[i].o;
        toy_fini(&r[i].t);
    }
    free(r);
}

void outcome_on_ranks(toy_change *change, int steps, uint32_t n, const outcome *one)
{
    outcome o[MAX_RANKS];
    toy t;
    change_toy(change, &t);
    outcome_of_ranks(change, NULL, 0, steps, n, o);
    for (uint32_t i = 0; i < n; i++) {
        outcome_same(one, &o[i]);
        if (i % 2 == 0 && n > 1 && t.config.shards == 8) { /* one thread, and its last leaf is not empty */
            assert_true(o[i].early > 0);
        }
        outcome_drop(&o[i]);
    }
}

/* ---- resume ------------------------------------------------------------------------------------------------------ */

void outcome_resumed(toy_change *change, int steps, int cut, const outcome *whole)
{
    toy a, b;
    outcome half, resumed;
    change_toy(change, &a);
    toy_start(&a);
    outcome_run(&a, &half, 0, cut);
    outcome_keep(&a, &half);
    toy_fini(&a);
    change_toy(change, &b);
    b.config.threads = 1;
    toy_start(&b);
    outcome_restore(&b, &half, cut);
    resumed = half; /* the reports up to here */
    outcome_run(&b, &resumed, cut, steps);
    outcome_keep(&b, &resumed);
    outcome_same(whole, &resumed);
    outcome_drop(&half);
    outcome_drop(&resumed);
    toy_fini(&b);
}
