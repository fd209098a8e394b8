/* SPDX-License-Identifier: Apache-2.0
 *
 * The services that a phase off policy uses, as fakes that keep what they were given and count: no environment is
 * stepped and nothing is trained. host_open sets them up, for 8 instances of 2 agents with 2 continuous actions; tests
 * change members of `fake` before they create. Threads: one.
 */
#ifndef DTRAIN_TESTS_PHASES_OFFPOLICY_HOST_H
#define DTRAIN_TESTS_PHASES_OFFPOLICY_HOST_H

#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */
#include "mock/recorded.h"
#include "../../phases/offpolicy/learner.h"

#include <string.h>

enum { HOST_MOST = 64, HOST_ROWS = 10, HOST_PLACES = 2 };

static struct {
    mock_host host;
    dt_env_spec spec;
    dt_wiring wiring;
    uint32_t instances;
    /* what was said in create */
    uint32_t flags;
    char phase[32], bound[4][160]; /* of each role "critic: P 2, Q 1; action A 2 -> q A 1" */
    dt_model *model[4];
    uint32_t n_bound;
    dt_rollout_desc rollout;
    dt_replay_desc replay;
    uint64_t batch; /* of the trainer */
    /* what was said in start */
    dt_train_desc train;
    dt_train_group group[8];
    dt_train_target targets[8];
    uint32_t n_destroyed;
    char set_name[32], acting_name[32];
    float set_value[HOST_MOST], acting_value[HOST_MOST];
    uint32_t n_set;
    /* a round */
    uint64_t step, steps, per_round, kept;
    dt_rollout_report report; /* of each collect */
    uint64_t samples;         /* of each update */
    uint32_t n_silent;        /* so many collects at first see no agent */
    char said[512];           /* c collect, a add, d draw, uN update of groups N, e evaluate, p priority, r report */
    dt_status collect, add, draw, update, evaluation; /* what they end with */
    uint32_t fails_at;                                /* the n-th call from now that has a status fails; 0: none */
    /* rows of an evaluation: three parts */
    float error[HOST_ROWS];
    int64_t part[3];
    const float *at;
    int64_t n_at;
    uint32_t rank;
    bool lacks_errors;
    float priority[HOST_MOST];
    uint64_t n_priority;
} fake;

static int host_models[4]; /* their addresses are models */

static inline void host_say(const char *what)
{
    assert_true(strlen(fake.said) + strlen(what) < sizeof(fake.said));
    strcat(fake.said, what);
}

/* How a call ends that would end with st. */
static inline dt_status host_turn(dt_status st)
{
    return fake.fails_at > 0 && --fake.fails_at == 0 ? DT_EDIVERGED : st;
}

/* ---- wiring and bind --------------------------------------------------------------------------------------------- */

static inline dt_status host_wire(const dt_host *h, const dt_wiring_desc *d, dt_wiring **out)
{
    fake.flags = d->flags;
    snprintf(fake.phase, sizeof(fake.phase), "%s", d->phase);
    *out = &fake.wiring;
    return host_turn(DT_OK);
}

static inline dt_status host_bind(dt_wiring *w, const dt_model_request *want, dt_model **out)
{
    char *text = fake.bound[fake.n_bound];
    const size_t room = sizeof(fake.bound[0]);
    int n = snprintf(text, room, "%s:", want->role);
    for (uint32_t i = 0; i < want->n_dims; i++) {
        n += snprintf(text + n, room - (size_t)n, " %s=%lld", want->dims[i].name, (long long)want->dims[i].size);
    }
    for (uint32_t i = 0; i < want->n_offers; i++) {
        n += snprintf(text + n, room - (size_t)n, " %s[%s]", want->offers[i].name, want->offers[i].dims);
    }
    for (uint32_t i = 0; i < want->n_needs; i++) {
        n += snprintf(text + n, room - (size_t)n, " -> %s[%s]", want->needs[i].name, want->needs[i].dims);
    }
    *out = fake.model[fake.n_bound] = (dt_model *)(void *)&host_models[fake.n_bound];
    fake.n_bound++;
    return host_turn(DT_OK);
}

static inline uint32_t host_count_models(const dt_wiring *w, dt_model **out, uint32_t n)
{
    (void)w, (void)out;
    assert_true(n >= DT_WIRING_MAX_MODELS);
    return 3;
}

static inline uint32_t host_instances(const dt_env *e)
{
    return fake.instances;
}

static inline const char *host_env_id(const dt_env *e)
{
    return "test";
}

/* ---- experience -------------------------------------------------------------------------------------------------- */

static inline dt_status host_rollout(const dt_host *h, dt_env *env, const dt_rollout_desc *d, dt_rollout **out)
{
    (void)h, (void)env;
    fake.rollout = *d;
    *out = (dt_rollout *)(void *)&fake.rollout;
    return host_turn(DT_OK);
}

static inline dt_status host_collect(dt_rollout *r, dt_train *t, dt_rollout_report *out)
{
    (void)r, (void)t;
    host_say("c");
    *out = fake.report;
    if (fake.n_silent > 0) {
        fake.n_silent--;
        out->agent_steps = 0;
    }
    return host_turn(fake.collect);
}

static inline dt_status host_report(dt_rollout *r, dt_train *t)
{
    (void)r, (void)t;
    host_say("r");
    return host_turn(DT_OK);
}

static inline dt_status host_replay(const dt_host *h, dt_rollout *r, const dt_replay_desc *d, dt_replay **out)
{
    assert_ptr_equal(r, &fake.rollout);
    fake.replay = *d;
    *out = (dt_replay *)(void *)&fake.replay;
    return host_turn(DT_OK);
}

static inline dt_data *host_data(dt_replay *p)
{
    return (dt_data *)p;
}

static inline dt_status host_add(dt_replay *p)
{
    host_say("a");
    fake.kept += fake.report.env_steps;
    return host_turn(fake.add);
}

static inline dt_status host_draw(dt_replay *p)
{
    host_say("d");
    return host_turn(fake.draw);
}

static inline uint64_t host_kept(const dt_replay *p)
{
    return fake.kept;
}

static inline uint64_t host_drawn(const dt_replay *p)
{
    return fake.batch;
}

static inline dt_status host_priority(dt_replay *p, const float *error, uint64_t n)
{
    host_say("p");
    assert_true(n <= HOST_MOST);
    memcpy(fake.priority, error, n * sizeof(*error));
    fake.n_priority = n;
    return host_turn(DT_OK);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static inline dt_status host_train(const dt_host *h, const dt_train_desc *d, dt_train **out)
{
    fake.train = *d;
    memcpy(fake.group, d->group, d->n_groups * sizeof(fake.group[0]));
    memcpy(fake.targets, d->target, d->n_targets * sizeof(fake.targets[0]));
    *out = (dt_train *)(void *)&fake.train;
    return host_turn(DT_OK);
}

static inline void host_destroy(dt_train *t)
{
    assert_ptr_equal(t, &fake.train);
    fake.n_destroyed++;
}

static inline dt_status host_set(dt_train *t, const char *name, const float *value, uint32_t n)
{
    assert_true(n <= HOST_MOST);
    snprintf(fake.set_name, sizeof(fake.set_name), "%s", name);
    memcpy(fake.set_value, value, n * sizeof(*value));
    fake.n_set = n;
    return host_turn(DT_OK);
}

static inline dt_status host_set_acting(dt_train *t, const char *name, const float *value, uint32_t n)
{
    assert_true(n <= HOST_MOST);
    snprintf(fake.acting_name, sizeof(fake.acting_name), "%s", name);
    memcpy(fake.acting_value, value, n * sizeof(*value));
    return host_turn(DT_OK);
}

static inline dt_status host_position(const dt_train *t, uint64_t *step, uint64_t *steps, uint64_t *per_epoch)
{
    *step = fake.step;
    *steps = fake.steps;
    *per_epoch = fake.per_round;
    return host_turn(DT_OK);
}

static inline dt_status host_step(dt_train *t, uint32_t groups, dt_step_report *r)
{
    char text[16];
    snprintf(text, sizeof(text), "u%u", groups);
    host_say(text);
    r->step = ++fake.step;
    r->samples = fake.samples;
    r->loss = 0.5 * (double)fake.step;
    r->grad_norm = 0.25 * (double)fake.step;
    r->learning_rate = 0.125 * (double)fake.step;
    return host_turn(fake.update);
}

static inline dt_status host_evaluate(dt_train *t, dt_data *d, void *user,
                                      dt_status (*each)(void *user, const dt_rows *r))
{
    host_say("e");
    assert_ptr_equal(d, &fake.replay);
    fake.at = fake.error;
    for (int i = 0; i < 3; i++) {
        fake.n_at = fake.part[i];
        DT_TRY_H(each(user, NULL));
        fake.at += fake.part[i];
    }
    return host_turn(fake.evaluation);
}

static inline const void *host_rows(const dt_rows *r, const char *name, int64_t dim[DT_MAX_DIMS], uint32_t *rank)
{
    dim[0] = fake.n_at;
    *rank = fake.rank;
    return strcmp(name, "td_error") == 0 && !fake.lacks_errors ? fake.at : NULL;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static const dt_wiring_api host_wiring = {
    .struct_size = sizeof(host_wiring), .create = host_wire, .bind = host_bind, .models = host_count_models};

static inline void host_open(void)
{
    static const float low[] = {-3, -1}, high[] = {3, 2};
    static const char *const costs[] = {"crash"}, *const metrics[] = {"delay"};
    static const dt_bind_api bind = {
        .struct_size = sizeof(bind), .env_instances = host_instances, .env_id = host_env_id};
    static const dt_train_api train = {.struct_size = sizeof(train),
                                       .create = host_train,
                                       .destroy = host_destroy,
                                       .set = host_set,
                                       .set_acting = host_set_acting,
                                       .position = host_position,
                                       .step_groups = host_step,
                                       .evaluate = host_evaluate,
                                       .rows = host_rows};
    static const dt_metrics_api scalars = {.struct_size = sizeof(scalars), .scalar = record_scalar};
    static const dt_rollout_api rollout = {
        .struct_size = sizeof(rollout), .create = host_rollout, .collect = host_collect, .report = host_report};
    static const dt_replay_api replay = {.struct_size = sizeof(replay),
                                         .create = host_replay,
                                         .data = host_data,
                                         .add = host_add,
                                         .draw = host_draw,
                                         .count = host_kept,
                                         .priority = host_priority,
                                         .draw_size = host_drawn};
    memset(&fake, 0, sizeof(fake));
    n_recorded = 0;
    mock_host_init(&fake.host);
    mock_host_serve(&fake.host, DT_SVC_BIND, &bind);
    mock_host_serve(&fake.host, DT_SVC_TRAIN, &train);
    mock_host_serve(&fake.host, DT_SVC_METRICS, &scalars);
    mock_host_serve(&fake.host, DT_SVC_ROLLOUT, &rollout);
    mock_host_serve(&fake.host, DT_SVC_REPLAY, &replay);
    mock_host_serve(&fake.host, DT_SVC_WIRING, &host_wiring);
    fake.spec = (dt_env_spec){.n_continuous = 2,
                              .low = low,
                              .high = high,
                              .n_agents = HOST_PLACES,
                              .costs = costs,
                              .n_costs = 1,
                              .metrics = metrics,
                              .n_metrics = 1};
    fake.wiring = (dt_wiring){.api = &host_wiring,
                              .struct_size = sizeof(fake.wiring),
                              .spec = &fake.spec,
                              .env_id = "test",
                              .controller = (dt_model *)(void *)&host_models[3]};
    fake.instances = 8;
    fake.batch = 5;
    fake.rank = 1;
    fake.per_round = 4;
    fake.steps = 12;
    fake.samples = 16;
    fake.report = (dt_rollout_report){.env_steps = 24,
                                      .agent_steps = 40,
                                      .episodes = 3,
                                      .episode_return = -7,
                                      .episode_length = 15,
                                      .episode_cost = {0.5},
                                      .metric = {2.5},
                                      .env_s = 0.75,
                                      .policy_s = 0.375};
}

static inline void assert_said(const char *want)
{
    assert_string_equal(fake.said, want);
    fake.said[0] = '\0';
}

/* Whatever call fails ends what was begun: runs `begin` and then `op`, whose every call fails in turn. */
static inline void assert_no_error_is_lost(void (*begin)(void *self), dt_status (*op)(void *self), void *self)
{
    for (uint32_t n = 1, left = 0; left == 0; n++) {
        begin(self);
        fake.fails_at = n;
        const dt_status st = op(self);
        left = fake.fails_at;
        fake.fails_at = 0;
        if (st != (left > 0 ? DT_OK : DT_EDIVERGED)) {
            fail_msg("call %u failed, and the whole ended with %d", n, (int)st);
        }
        offpolicy_destroy(self);
        assert_int_equal(fake.host.n_live, 0);
    }
}

#endif
