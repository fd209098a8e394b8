/* SPDX-License-Identifier: Apache-2.0
 *
 * Who does the work of a rollout changes nothing: workers, virtual ranks, processes, and those that are lost.
 */
#include <config.h>

#include "worlds.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "plugin/service/env_worker.h"
#include "rl/env/process.h"
#include "rl/env/process_log.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- who does the work changes nothing --------------------------------------------------------------------------- */

enum { RANKS = 4 }; /* at most */

typedef struct outcome {
    float params[2048];
    dt_rollout_report report, evaluated[2];
    char *field[64]; /* of all samples of the last round */
    size_t bytes[64];
    double seen[2], loss[2]; /* sums of what an evaluation over them shows; losses over them */
} outcome;

static dt_status add_up(void *user, const dt_rows *rows)
{
    outcome *o = user;
    const char *const name[] = {"target", "value"}; /* of the round, and as the policy has it now */
    for (int k = 0; k < 2; k++) {
        int64_t dim[DT_MAX_DIMS] = {0};
        uint32_t rank = 0;
        const float *x = dt_rows_get_output(rows, name[k], dim, &rank);
        assert_true(x != NULL && rank == 1);
        for (int64_t i = 0; i < dim[0]; i++) {
            o->seen[k] = 0.99 * o->seen[k] + (double)x[i]; /* in order */
        }
    }
    return DT_OK;
}

/* A phase may look at all samples, too. */
static void pass_over(const world *w, outcome *o)
{
    const tiny *p = w->phase;
    static const char *const loss[] = {"value", "policy"};
    assert_done(p->train->evaluate(p->t, p->p != NULL ? p->replay->data(p->p) : p->rollout->data(p->r), o, add_up));
    for (int again = 0; again < 2; again++) {
        assert_done(p->train->losses(p->t, loss, 2, o->loss));
    }
}

static void look(const world *w, outcome *o)
{
    const dt_samples *s = world_source(w);
    uint64_t index[512], key[512] = {0};
    int64_t size[8] = {0};
    assert_true(s->count <= 512);
    const dt_samples_part all = {.n = s->count}, part[RANKS] = {all, all, all, all};
    assert_done(dt_samples_fetch_parts(s, part));
    for (uint64_t i = 0; i < s->count; i++) {
        index[i] = i;
    }
    world_keep(w, o->params, &o->report);
    assert_done(s->ops->sizes(s->self, index, (uint32_t)s->count, size));
    size[s->n_symbols] = (int64_t)s->count;
    for (uint32_t f = 0; f < s->n_fields; f++) {
        o->bytes[f] = dt_samples_field_bytes(s, f, size);
        o->field[f] = calloc(1, o->bytes[f] + 1);
    }
    assert_done(s->ops->read(s->self, index, key, (uint32_t)s->count, (void *const *)o->field));
}

static void play(world *w, outcome *o)
{
    const uint64_t seed[] = {3, 8};
    memset(o, 0, sizeof(*o));
    world_start(w);
    for (int k = 0; k < 3; k++) {
        assert_done(world_iterate(w));
    }
    look(w, o);
    pass_over(w, o);
    for (int i = 0; i < 2; i++) {
        o->evaluated[i].struct_size = sizeof(o->evaluated[i]);
    }
    assert_done(w->phase->rollout->evaluate(w->phase->r, w->phase->t, seed, 2, 3, 0, o->evaluated));
    for (int i = 0; i < 2; i++) {
        o->evaluated[i].env_s = o->evaluated[i].total_s = 0;
    }
}

static void assert_same(const outcome *a, const outcome *b)
{
    assert_memory_equal(a->params, b->params, sizeof(a->params));
    assert_memory_equal(&a->report, &b->report, sizeof(a->report));
    assert_memory_equal(a->evaluated, b->evaluated, sizeof(a->evaluated));
    assert_memory_equal(a->seen, b->seen, sizeof(a->seen));
    assert_memory_equal(a->loss, b->loss, sizeof(a->loss));
    for (int f = 0; f < 64; f++) {
        assert_int_equal(a->bytes[f], b->bytes[f]);
        assert_true(a->bytes[f] == 0 || memcmp(a->field[f], b->field[f], a->bytes[f]) == 0);
    }
}

static void drop(outcome *o)
{
    for (int f = 0; f < 64; f++) {
        free(o->field[f]);
    }
}

static const char *const every_kind[][7] = {
    {"env.id=crowd", "tiny.steps=11", "tiny.normalise_obs=true", "tiny.normalise_reward=true", "env.instances=7", NULL},
    {"env.id=counter", "tiny.steps=5", "tiny.window=4", "tiny.normalise_obs=true", "env.instances=9", NULL},
    {"env.id=torque", "tiny.steps=11", "tiny.normalise_advantage=true", "tiny.shield=true", "env.instances=5", NULL},
    {"env.id=counter", "tiny.steps=9", "tiny.transitions=1", "tiny.kept=A 3", "env.instances=5", NULL},
    {"env.id=counter", "tiny.steps=7", "tiny.transitions=2", "tiny.window=3", "env.instances=6", NULL},
    {"env.id=relay", "tiny.steps=9", "tiny.transitions=2", "tiny.normalise_obs=true", "env.instances=5", NULL},
    {"env.id=crowd", "tiny.steps=11", "tiny.transitions=2", "tiny.ahead=true", "env.instances=5", NULL},
    {"env.id=torque", "tiny.steps=11", "tiny.transitions=2", "tiny.squash=true", "env.instances=5", NULL},
    {"env.id=relay", "tiny.steps=9", "tiny.annotation=A 2", "tiny.transitions=2", "env.instances=5", NULL},
    {"env.id=crowd", "tiny.steps=7", "tiny.annotation=A 2", "tiny.ahead=true", "env.instances=6", NULL},
    {"env.id=relay", "tiny.transitions=2", "tiny.replay=100", "tiny.normalise_obs=true", "env.instances=5", NULL},
    {"env.id=crowd", "tiny.transitions=2", "tiny.replay=70", "tiny.window=3", "tiny.n_step=3", NULL},
    {"env.id=counter", "tiny.transitions=2", "tiny.replay=90", "tiny.alpha=0.6", "tiny.ahead=true", NULL},
    {"env.id=herd", "models.controller=herd_net", "tiny.transitions=3", "tiny.steps=9", "env.instances=5", NULL},
    {"env.id=herd", "models.controller=herd_net", "tiny.transitions=3", "tiny.replay=60", "tiny.ahead=true", NULL},
    {"env.id=herd", "models.controller=herd_net", "herd.teams=two", "opponents.every=1", "tiny.steps=9", NULL},
    {"env.id=counter", "tiny.ahead=true", "tiny.window=4", "tiny.normalise_obs=true", "env.instances=7", NULL},
    {"env.id=crowd", "tiny.ahead=true", "tiny.normalise_reward=true", "tiny.steps=11", "env.instances=5", NULL},
    {"env.id=relay", "relay.teams=two", "opponents.every=1", "tiny.window=3", "tiny.steps=11", "opponents.pool=2",
     NULL},
    {"env.id=relay", "relay.teams=two", "opponents.learner=1", "opponents.every=1", "tiny.ahead=true", NULL}};
enum { KINDS = sizeof(every_kind) / sizeof(every_kind[0]) };

static void test_workers(void **state)
{
    static const char *const workers[] = {"env.workers=1", "env.workers=2", "env.workers=5"};
    for (int kind = 0; kind < KINDS; kind++) {
        outcome alone, shared;
        world w;
        world_open(&w, every_kind[kind], NULL);
        play(&w, &alone);
        world_close(&w);
        for (int k = 0; k < 3; k++) {
            world_open(&w, every_kind[kind], NULL);
            assert_done(dt_config_set(w.config, workers[k]));
            play(&w, &shared);
            world_close(&w);
            assert_same(&alone, &shared);
            drop(&shared);
        }
        drop(&alone);
    }
}

typedef struct rank {
    world w;
    outcome o;
    pthread_t thread;
} rank;

static void *rank_main(void *arg)
{
    rank *k = arg;
    play(&k->w, &k->o);
    return NULL;
}

static void test_ranks(void **state)
{
    static rank k[RANKS];
    for (int kind = 0; kind < KINDS; kind++) {
        outcome alone;
        world w;
        world_open(&w, every_kind[kind], NULL);
        play(&w, &alone);
        world_close(&w);
        for (uint32_t ranks = 2; ranks <= RANKS; ranks++) {
            dt_comm *comm[RANKS];
            assert_done(dt_comm_create_simulated(ranks, 60, comm));
            for (uint32_t i = 0; i < ranks; i++) {
                world_open(&k[i].w, every_kind[kind], comm[i]);
            }
            for (uint32_t i = 0; i < ranks; i++) {
                assert_int_equal(pthread_create(&k[i].thread, NULL, rank_main, &k[i]), 0);
            }
            for (uint32_t i = 0; i < ranks; i++) {
                pthread_join(k[i].thread, NULL);
                assert_same(&alone, &k[i].o);
                drop(&k[i].o);
            }
            for (uint32_t i = 0; i < ranks; i++) {
                world_close(&k[i].w);
            }
        }
        drop(&alone);
    }
}

/* ---- episodes that do not end ------------------------------------------------------------------------------------ */

/* One that continues past the last step of its spec is truncated there, whichever thread steps it. */
static void test_max_steps_are_held(void **state)
{
    static const char *const given[] = {
        "env.id=liar",   "liar.lie=undying",           "tiny.steps=16", "env.instances=4",
        "tiny.window=3", "tiny.normalise_reward=true", "data.batch=8",  NULL};
    static const char *const other[] = {"env.isolation=process", "env.workers=2"};
    static rank k[2];
    dt_comm *comm[2];
    outcome alone, shared;
    world w;
    dt_log_level_set(DT_LOG_ERROR); /* it warns once each time */
    world_open(&w, given, NULL);
    play(&w, &alone);
    assert_true(alone.report.episodes == 4 * 2 && alone.report.episode_length == 7);
    assert_true(isnan(alone.report.metric[0]));
    assert_true(alone.evaluated[0].episode_length == 7 && alone.evaluated[1].episode_length == 7);
    /* three rounds of 4 instances have 6 episodes each that end; an evaluation has 6 more */
    assert_int_equal(atomic_load(&w.stage->env.n_cut), 4 * 6 + 6);
    world_close(&w);
    for (int i = 0; i < 2; i++) {
        world_open(&w, given, NULL);
        assert_done(dt_config_set(w.config, other[i]));
        play(&w, &shared);
        world_close(&w);
        assert_same(&alone, &shared);
        drop(&shared);
    }
    assert_done(dt_comm_create_simulated(2, 60, comm));
    for (uint32_t i = 0; i < 2; i++) {
        world_open(&k[i].w, given, comm[i]);
        assert_int_equal(pthread_create(&k[i].thread, NULL, rank_main, &k[i]), 0);
    }
    for (uint32_t i = 0; i < 2; i++) {
        pthread_join(k[i].thread, NULL);
        assert_same(&alone, &k[i].o);
        drop(&k[i].o);
    }
    for (uint32_t i = 0; i < 2; i++) {
        world_close(&k[i].w);
    }
    drop(&alone);
    dt_log_level_set(DT_LOG_INFO);
}

/* An episode that the host ends is worth what an episode is worth that ends there by itself. */
static void test_cut_is_a_truncation(void **state)
{
    static const char *const world_of[] = {"liar.lie=undying", "liar.lie=ends"};
    outcome o[2];
    for (int i = 0; i < 2; i++) {
        const char *const settings[] = {"env.id=liar",     world_of[i],    "tiny.steps=16",
                                        "env.instances=4", "data.batch=8", NULL};
        world w;
        dt_log_level_set(DT_LOG_ERROR);
        world_open(&w, settings, NULL);
        play(&w, &o[i]);
        dt_log_level_set(DT_LOG_INFO);
        assert_int_equal(atomic_load(&w.stage->env.n_cut), i == 0 ? 30 : 0);
        world_close(&w);
        o[i].report.metric[0] = o[i].report.metric_std[0] = 0; /* which only the environment knows */
        for (int k = 0; k < 2; k++) {
            o[i].evaluated[k].metric[0] = o[i].evaluated[k].metric_std[0] = 0;
        }
    }
    assert_same(&o[0], &o[1]);
    drop(&o[0]);
    drop(&o[1]);
}

/* An evaluation has an end where the environment has none; training goes on as it does. */
static void test_evaluation_ends(void **state)
{
    static const char *const given[] = {
        "env.id=liar", "liar.lie=open", "tiny.steps=16", "evaluation.max_steps=13", "env.instances=4", "data.batch=8",
        NULL};
    outcome o;
    world w;
    dt_log_level_set(DT_LOG_ERROR);
    world_open(&w, given, NULL);
    play(&w, &o);
    dt_log_level_set(DT_LOG_INFO);
    assert_int_equal(o.report.episodes, 0);
    assert_true(o.evaluated[0].episode_length == 13 && o.evaluated[1].episode_length == 13);
    world_close(&w);
    drop(&o);
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

static void test_processes_give_the_same(void **state)
{
    static const char *const workers[] = {"env.workers=0", "env.workers=1", "env.workers=3"};
    for (int kind = 0; kind < KINDS; kind++) {
        outcome inside, outside;
        world w;
        world_open(&w, every_kind[kind], NULL);
        play(&w, &inside);
        world_close(&w);
        world_open(&w, every_kind[kind], NULL);
        assert_done(dt_config_set(w.config, "env.isolation=process"));
        assert_done(dt_config_set(w.config, workers[kind % 3])); /* with several instances each */
        play(&w, &outside);
        assert_int_equal(atomic_load(&w.stage->env.n_restarts), 0);
        world_close(&w);
        assert_same(&inside, &outside);
        drop(&inside);
        drop(&outside);
    }
}

/* A worker that dies, hangs, or answers nonsense costs episodes and nothing else, while restarts are left. */
static void survives_in(const char *workers, const char *lie, const char *timeout)
{
    const char *const settings[] = {"env.id=liar",     "env.isolation=process", "env.restarts=100", timeout, lie,
                                    "env.instances=3", "data.batch=4",          "tiny.steps=12",    workers, NULL};
    world w;
    world_begin(&w, settings);
    dt_log_level_set(DT_LOG_ERROR); /* it warns each time */
    assert_done(world_iterate(&w));
    assert_done(world_iterate(&w));
    dt_log_level_set(DT_LOG_INFO);
    assert_true(atomic_load(&w.stage->env.n_restarts) >= 2);
    assert_true(w.phase->report.episodes >= 2);
    assert_true(w.phase->report.agent_steps > 12);
    world_close(&w);
}

static void survives(const char *lie, const char *timeout)
{
    survives_in("env.workers=3", lie, timeout);
}

static void test_restarts(void **state)
{
    survives("liar.lie=crash", "env.timeout_s=60");
    survives("liar.lie=nan", "env.timeout_s=60");
    survives("liar.lie=hang", "env.timeout_s=0.5");
    survives("liar.lie=leave", "env.timeout_s=60");
    survives("liar.lie=loop", "env.timeout_s=0.5");
    survives("liar.lie=stop", "env.timeout_s=0.5");
    survives("liar.lie=scribble", "env.timeout_s=60");
    survives("liar.lie=close", "env.timeout_s=0.5");
    survives("liar.lie=babble", "env.timeout_s=0.5");
    survives("liar.lie=drip", "env.timeout_s=0.5");
    survives_in("env.workers=1", "liar.lie=crash", "env.timeout_s=60");
    survives_in("env.workers=1", "liar.lie=nan", "env.timeout_s=60");
    survives_in("env.workers=1", "liar.lie=hang", "env.timeout_s=0.5");
    survives_in("env.workers=1", "liar.lie=scribble", "env.timeout_s=60");
}

/* ---- restarts ---------------------------------------------------------------------------------------------------- */

static void play_steady(const char *env, const char *lie, const char *workers, outcome *o, uint32_t *restarts_p,
                        uint32_t *lost_p)
{
    char id[32], text[96], path[] = "steady-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    snprintf(id, sizeof(id), "env.id=%s", env);
    snprintf(text, sizeof(text), "%s.lie=%s%s", env, lie, strchr(lie, ' ') != NULL ? path : "");
    const char *const settings[] = {id,
                                    text,
                                    "env.isolation=process",
                                    workers,
                                    "env.instances=5",
                                    "env.restarts=9",
                                    "data.batch=5",
                                    "tiny.window=3",
                                    NULL};
    world w;
    dt_log_level_set(DT_LOG_ERROR); /* it warns each time */
    world_open(&w, settings, NULL);
    play(&w, o);
    dt_log_level_set(DT_LOG_INFO);
    *restarts_p = atomic_load(&w.stage->env.n_restarts);
    *lost_p = atomic_load(&w.stage->env.n_lost);
    world_close(&w);
    unlink(path);
}

/* An environment that is declared deterministic loses nothing with a process, or an instance: the episodes of all
 * instances that were there are repeated. */
static void test_lost_episodes_are_repeated(void **state)
{
    static const char *const lies[] = {"once ", "broken ", "window "};
    static const uint32_t restarts_of[] = {1, 1, 3};
    static const char *const workers[] = {"env.workers=1", "env.workers=2"};
    outcome whole, o;
    uint32_t restarts = 0, lost = 0;
    play_steady("steady", "", "env.workers=2", &whole, &restarts, &lost);
    assert_true(restarts == 0 && lost == 0);
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        for (int k = 0; k < 2; k++) {
            play_steady("steady", lies[i], workers[k], &o, &restarts, &lost);
            assert_int_equal(restarts, restarts_of[i]);
            assert_int_equal(lost, 0);
            assert_same(&whole, &o);
            drop(&o);
        }
    }
    drop(&whole);
}

/* Where that does not work the episode counts as truncated, and the run as one that cannot be reproduced. */
static void test_episodes_that_cannot_be_repeated(void **state)
{
    static const struct {
        const char *env, *lie;
        uint32_t least;
    } cases[] = {{"steady", "drift ", 2}, {"steady", "doomed", 2}, {"liar", "broken ", 1}, {"liar", "window ", 3}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        outcome o;
        uint32_t restarts = 0, lost = 0;
        play_steady(cases[i].env, cases[i].lie, "env.workers=1", &o, &restarts, &lost);
        if (restarts < cases[i].least || lost < 1) {
            fail_msg("%s, %s: %u restarts, %u lost", cases[i].env, cases[i].lie, restarts, lost);
        }
        drop(&o);
    }
}

/* Its second step breaks, each time; self counts the steps. */
static dt_status broken_spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"obs", "A 1", DT_F32, 0}};
    static const int32_t choices[] = {2};
    out->n_agents = out->n_obs = out->n_heads = 1;
    out->obs = obs;
    out->choices = choices;
    return DT_OK;
}

static dt_status broken_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    *(int32_t *)self = 0;
    io->alive[0] = 1;
    return DT_OK;
}

static dt_status broken_step(void *self, const dt_env_io *io)
{
    const int32_t step = ++*(int32_t *)self;
    ((float *)io->obs[0])[0] = (float)step;
    io->reward[0] = io->alive[0] = 1;
    return step < 2 ? DT_OK : DT_FAIL(DT_EBROKEN, "its simulator is gone");
}
static const dt_env_ops broken_ops = {
    .struct_size = sizeof(broken_ops), .spec = broken_spec, .reset = broken_reset, .step = broken_step};

static uint64_t third_seed(void *user, uint32_t number, uint64_t episode)
{
    return 3 * (number + episode);
}

static dt_status create_counted(void *user, uint32_t number, void *self)
{
    ++*(uint32_t *)user;
    assert_int_equal(number, 0);
    return self != NULL ? DT_OK : DT_EINVAL;
}

/* An instance in this process that says that it is broken: its episode counts as truncated, with what was seen. */
static void test_broken_in_a_thread(void **state)
{
    uint32_t created = 0;
    atomic_uint restarts = 0, lost = 0;
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    dt_layout l;
    dt_vector *v = NULL;
    int32_t self[4] = {0};
    void *selves[] = {self};
    dt_vector_restart restart = {
        .user = &created, .create = create_counted, .most = 2, .n_restarts = &restarts, .n_lost = &lost};
    const dt_vector_kind kind = {.id = "broken", .ops = &broken_ops, .restart = &restart};
    assert_int_equal(broken_ops.spec(self, &spec), DT_OK);
    assert_int_equal(dt_layout_init(&l, "broken", &spec), DT_OK);
    const dt_vector_desc d = {.kind = &kind, .n_kinds = 1, .layout = &l, .self = selves, .n = 1, .seed = third_seed};
    assert_int_equal(dt_vector_create(&d, &v), DT_OK);
    const dt_instance *x = dt_vector_instance(v, 0);
    dt_log_level_set(DT_LOG_ERROR);
    for (int k = 1; k <= 2; k++) {
        assert_done(dt_vector_step(v)); /* reset */
        assert_done(dt_vector_step(v));
        assert_done(dt_vector_step(v)); /* breaks */
        assert_true(x->has_ended && x->io.truncated[0] != 0 && x->io.alive[0] == 0);
        assert_true(((const float *)x->io.obs[0])[0] == 1 && x->io.reward[0] == 0); /* of the step before */
        assert_true(created == (uint32_t)k && atomic_load(&restarts) == created && atomic_load(&lost) == created);
    }
    assert_done(dt_vector_step(v));
    assert_done(dt_vector_step(v));
    assert_int_equal(dt_vector_step(v), DT_EBROKEN);
    assert_non_null(strstr(dt_error_text(), "all env.restarts allows"));
    dt_log_level_set(DT_LOG_INFO);
    dt_vector_destroy(v);
    dt_layout_fini(&l);
}

/* The ring of calls and records has a limit, which the message explains. */
static void test_ring_is_too_small(void **state)
{
    const char *const settings[] = {"env.id=counter", "env.isolation=process", "env.ring_mb=0.01", "env.workers=1",
                                    NULL};
    world w;
    world_open(&w, settings, NULL);
    assert_int_equal(world_create(&w), DT_ECONFIG);
    assert_non_null(strstr(dt_error_text(), "env.ring_mb = 0.01"));
    assert_non_null(strstr(dt_error_text(), "env.workers"));
    world_close(&w);
}

/* The host's memory cannot be taken away from under it. */
static void test_memory_stays(void **state)
{
    const char *const settings[] = {"env.id=liar",     "env.isolation=process", "env.restarts=0", "liar.lie=shrink",
                                    "env.instances=2", "data.batch=4",          "tiny.steps=12",  NULL};
    world w;
    world_begin(&w, settings);
    assert_done(world_iterate(&w));
    assert_done(world_iterate(&w));
    world_close(&w);
}

/* One that never comes to be is refused with what it did, in the time that it has. */
static void refuses(const char *lie, const char *timeout, dt_status expected, const char *words)
{
    const char *const settings[] = {"env.id=liar", "env.isolation=process", timeout, lie, NULL};
    world w;
    world_open(&w, settings, NULL);
    assert_int_equal(world_create(&w), expected);
    if (strstr(dt_error_text(), words) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", dt_error_text(), words);
    }
    world_close(&w);
}

static void test_refusals(void **state)
{
    refuses("liar.lie=create hang", "env.startup_timeout_s=0.1", DT_EIO, "within 0.1 s (env.startup_timeout_s)");
    refuses("liar.lie=create crash", "env.timeout_s=60", DT_EIO, "was killed by signal 6");
    refuses("liar.lie=create leave", "env.timeout_s=60", DT_EIO, "ended with code 0");
    refuses("liar.lie=create hang", "env.timeout_s=0.1", DT_EIO, "did not describe itself within 0.1 s");
    refuses("liar.lie=create loop", "env.timeout_s=0.1", DT_EIO, "did not describe itself within 0.1 s");
    refuses("liar.lie=create stop", "env.timeout_s=0.1", DT_EIO, "did not describe itself within 0.1 s");
    refuses("liar.lie=create babble", "env.timeout_s=0.1", DT_EIO, "la la la");
    refuses("liar.lie=create drip", "env.timeout_s=0.1", DT_EIO, "did not describe itself within 0.1 s");
    refuses("liar.lie=create close", "env.timeout_s=60", DT_EIO, "closed its connection to the host and continued");
    refuses("liar.lie=create nonsense", "env.timeout_s=60", DT_EIO, "wrote over the connection");
}

/* Only the host knows who was asked to stop. */
static void test_status_of_a_worker(void **state)
{
    const char *const settings[] = {"env.id=liar", "env.isolation=process", "liar.lie=interrupted",
                                    "liar.lie_episode=1", NULL};
    world w;
    world_begin(&w, settings);
    assert_int_equal(world_iterate(&w), DT_EPLUGIN);
    world_close(&w);
}

static const dt_result *picture_of(const world *w, const char *key)
{
    for (uint32_t i = 0; i < w->stage->results.n_pictures; i++) {
        if (strcmp(w->stage->results.picture[i].key, key) == 0) {
            return &w->stage->results.picture[i];
        }
    }
    return NULL;
}

/* What an instance in a process shows of itself comes over whole. */
static void test_pictures_of_a_process(void **state)
{
    static const char *const isolation[] = {"env.isolation=thread", "env.isolation=process"};
    world w[2];
    for (int i = 0; i < 2; i++) {
        const char *const settings[] = {
            "env.id=counter", isolation[i], "evaluation.seeds=1,2", "evaluation.episodes=1", "env.instances=1",
            "data.batch=4",   NULL};
        world_open(&w[i], settings, NULL);
        world_start(&w[i]);
        assert_done(w[i].phase->rollout->report(w[i].phase->r, w[i].phase->t));
    }
    const uint32_t n = w[0].stage->results.n_pictures;
    assert_int_equal(n, w[1].stage->results.n_pictures);
    for (uint32_t i = 0; i < n; i++) {
        const dt_result *a = &w[0].stage->results.picture[i], *b = &w[1].stage->results.picture[i];
        assert_string_equal(a->key, b->key);
        assert_int_equal(a->n, b->n);
        assert_memory_equal(a->value, b->value, a->n * sizeof(*a->value));
    }
    assert_int_equal(picture_of(&w[1], "traffic/road")->n, 3 * 4);
    for (int i = 0; i < 5; i++) { /* seed 1: 4 steps and the moment before */
        char key[64];
        snprintf(key, sizeof(key), "traffic/moment/%d/vehicle", i);
        const dt_result *r = picture_of(&w[1], key);
        assert_int_equal(r->n, (i + 17) * 9);
        assert_true(r->value[9] == 1 && r->value[10] == i && r->value[13] == 4 && r->value[16] == 0.25);
        snprintf(key, sizeof(key), "traffic/moment/%d/signal", i);
        assert_int_equal(picture_of(&w[1], key)->n, 7);
    }
    assert_null(picture_of(&w[1], "traffic/moment/5/vehicle"));
    world_close(&w[0]);
    world_close(&w[1]);
}

enum { ROW = 9, X = 1, RISK = 7 }; /* of a vehicle in a picture */

/* An episode of the crowd as a film, a frame for each step and one before, and how many vehicles have the risk that is
 * predicted from what was observed at that very moment, none, or the world's. */
static void film_crowd(const char *isolation, const char *loaded, int *predicted_p, int *unknown_p, int *others_p)
{
    const char *const settings[] = {"env.id=crowd", isolation, "evaluation.seeds=5", "evaluation.episodes=1", NULL};
    world w;
    world_begin(&w, settings);
    if (loaded != NULL) {
        assert_int_equal(dt_roles_add(&w.stage->d.loaded, loaded), DT_OK);
    }
    w.stage->d.frames_every_s = 1;
    assert_done(w.phase->rollout->report(w.phase->r, w.phase->t));
    *predicted_p = *unknown_p = *others_p = 0;
    for (int i = 0; i < 12; i++) {
        char key[64];
        snprintf(key, sizeof(key), "traffic/moment/%d/vehicle", i);
        const dt_result *r = picture_of(&w, key);
        assert_true(r != NULL && r->n >= 2 * ROW);
        for (uint32_t k = 0; k < r->n; k += ROW) {
            const double risk = r->value[k + RISK], right = 1 / (1 + exp(2 - 4 * r->value[k + X]));
            *predicted_p += fabs(risk - right) < 1e-4;
            *unknown_p += isnan(risk);
            *others_p += risk == 0.125;
            assert_true(i > 0 || !isnan(risk)); /* the first frame too */
        }
    }
    assert_null(picture_of(&w, "traffic/moment/12/vehicle"));
    const dt_result *colours = picture_of(&w, "traffic/colours");
    assert_true(colours != NULL && colours->value[0] == (loaded != NULL ? 1 : 2));
    world_close(&w);
}

/* Vehicles get the risk that the phase predicts for the node that they are, where it was trained. */
static void test_predicted_risk(void **state)
{
    static const char *const isolation[] = {"env.isolation=thread", "env.isolation=process"};
    for (int i = 0; i < 2; i++) {
        int predicted = 0, unknown = 0, others = 0;
        film_crowd(isolation[i], "perception", &predicted, &unknown, &others);
        assert_true(predicted > 30 && others == 0);
        assert_true(unknown < 20); /* no agent was there to see them */
        film_crowd(isolation[i], NULL, &predicted, &unknown, &others);
        assert_true(predicted <= 3 && unknown == 0 && others > 30);
    }
}

/* One that is lost while it is looked at costs its episode, as ever. */
static void test_lost_while_looked_at(void **state)
{
    const char *const settings[] = {"env.id=liar",
                                    "env.isolation=process",
                                    "liar.lie=look",
                                    "env.restarts=3",
                                    "evaluation.seeds=4",
                                    "evaluation.episodes=1",
                                    NULL};
    world w;
    world_begin(&w, settings);
    dt_log_level_set(DT_LOG_ERROR); /* it warns */
    assert_done(w.phase->rollout->report(w.phase->r, w.phase->t));
    dt_log_level_set(DT_LOG_INFO);
    assert_int_equal(atomic_load(&w.stage->env.n_restarts), 1);
    assert_non_null(picture_of(&w, "traffic/moment/0/vehicle"));
    world_close(&w);
}

static void test_workers_begin_side_by_side(void **state)
{
    char path[] = "meeting-XXXXXX", lie[64];
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(lie, sizeof(lie), "liar.lie=meet %s", path);
    const char *const settings[] = {"env.id=liar", "env.isolation=process", "env.workers=6", lie, NULL};
    world w;
    world_begin(&w, settings);
    const dt_status st = world_iterate(&w); /* makes the others */
    unlink(path);
    assert_done(st);
    world_close(&w);
}

/* What each of two workers logs: 64 lines, and of all workers each line once. */
static void test_lines_of_workers(void **state)
{
    static dt_process_log p[2];
    char line[64];
    dt_log_level_set(DT_LOG_ERROR);
    for (int i = 0; i < 70; i++) {
        snprintf(line, sizeof(line), "warn  line %d\n", i);
        dt_process_log_add(&p[0], line, strlen(line));
    }
    assert_int_equal(p[0].n_logged, 64);
    static const char more[] = "warn  line 3\nwarn  line 69\nno level\ninfo  line 3\ninfo  line 3\n";
    dt_process_log_add(&p[1], more, strlen(more));
    assert_int_equal(p[1].n_logged, 2); /* the 70th line of the other one was not logged */
    dt_log_level_set(DT_LOG_INFO);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], DT_PROCESS_VERB) == 0) { /* a worker of these tests */
        return dt_env_run_worker(&worlds_plugin);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_max_steps_are_held),
        cmocka_unit_test(test_cut_is_a_truncation),
        cmocka_unit_test(test_evaluation_ends),
        cmocka_unit_test(test_processes_give_the_same),
        cmocka_unit_test(test_restarts),
        cmocka_unit_test(test_lost_episodes_are_repeated),
        cmocka_unit_test(test_episodes_that_cannot_be_repeated),
        cmocka_unit_test(test_broken_in_a_thread),
        cmocka_unit_test(test_ring_is_too_small),
        cmocka_unit_test(test_memory_stays),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_status_of_a_worker),
        cmocka_unit_test(test_pictures_of_a_process),
        cmocka_unit_test(test_predicted_risk),
        cmocka_unit_test(test_lost_while_looked_at),
        cmocka_unit_test(test_workers_begin_side_by_side),
        cmocka_unit_test(test_lines_of_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
