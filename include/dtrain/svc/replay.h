/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.replay/1": a replay buffer for off-policy training. It keeps the samples of many rounds of a
 * rollout, drops the oldest first, and the trainer reads those that were drawn last.
 *
 *   create     rollout->create(h, env, &{ .transitions = 2, ... }, &r);   replay->create(h, r, &desc, &p);
 *   start      train->create(h, &{ .data = replay->data(p), ... }, &t);
 *   iterate    rollout->collect(r, t, &report); replay->add(p); replay->draw(p); train->step(t, &step) ...
 *
 * A sample is what it is to a rollout (svc/rollout.h), one instance at one step; one in which no agent acted is not
 * kept. The data has desc.draw samples, those drawn last, with the rollout's fields; what the phase records for the
 * trainer it records for acting as well, over the rollout's own. Of these
 *   weight     "A" f32  is the importance of the sample: 1 where draws are uniform, else (N P)^-beta over the greatest
 *                       of the draw (Schaul et al. 2016, section 3.4)
 *   discount   "A" f32  is gamma^k for the k steps that the row's reward adds up, 0 where the agent was terminated
 * and with n_step > 1 a row covers up to n_step steps of its agent, fewer where it ended or the round did: reward and
 * cost are sums of gamma^i times those of step i, and next_P, next_mask, next_present, terminated and truncated are of
 * the last of them.
 *
 * Draws are with replacement, named by seed, phase and number of the draw: neither threads nor ranks nor a resume
 * change a bit. A checkpoint keeps all of it. Of several ranks each holds as many samples as the others, whichever
 * instance they are of, and they are sent to the ranks that learn from them; priorities are on all ranks. Observations
 * are kept as they are, and normalised, where the rollout does, by the statistics of when they are drawn.
 * Of stored rollouts the samples are those of files, whose fields are what happened
 * (docs/reference/stored-rollouts.md); a checkpoint keeps what was drawn of them and not the samples, and continues
 * with the same files alone.
 * Nothing is read ahead of add, draw and priority: they wait until reading has ended, and what was read of the samples
 * of before (on a device, for steps to come) is forgotten. Threads: [main].
 */
#ifndef DTRAIN_SVC_REPLAY_H
#define DTRAIN_SVC_REPLAY_H

#include "dtrain/plugin.h"
#include "dtrain/svc/bind.h"
#include "dtrain/svc/rollout.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SVC_REPLAY "dtrain.replay/1"

typedef struct dt_replay dt_replay;

typedef struct dt_replay_desc {
    uint32_t struct_size;
    uint32_t n_step;    /* 1: single transitions; at most the rollout's steps; 0 is 1 */
    uint64_t capacity;  /* samples of all ranks together */
    uint64_t draw;      /* samples of a draw: a multiple of what a step of each trainer that reads it takes (its batch
                         * times training.accumulation), which train->create checks (DT_ECONFIG); 0: as many as a step
                         * of the first one takes, and until that is created as of a trainer with data.batch */
    double gamma;       /* of n_step, and of field discount: set it with one step, too */
    double alpha, beta; /* how much priorities count, 0: uniform; how much weights make up for it, 0 to 1 */
    const char *const
        *field; /* [n_fields] of the rollout that are kept; NULL: all. discount, weight and row_key stay */
    uint32_t n_fields, reserved;
    /* a folder or a file of stored rollouts (rollouts.keep): it holds their samples and no others, capacity is 0, field
     * NULL, n_step 1, and the rollout's transitions are 2. NULL: rounds are added */
    const char *stored;
} dt_replay_desc;

typedef struct dt_replay_stats { /* totals over all stored samples */
    uint32_t struct_size, n_costs;
    uint64_t samples, rows, episodes; /* episodes that ended in them */
    uint64_t terminated;              /* rows */
    /* sums over rows, in the environment's units, and of squares */
    double reward, reward_squares, cost[DT_ENV_MAX_COSTS], cost_squares[DT_ENV_MAX_COSTS];
} dt_replay_stats;

typedef struct dt_replay_api {
    uint32_t struct_size, reserved;
    /* In create, one per phase. The host destroys it with the phase. Errors: DT_ECONFIG (a number outside its bounds),
     * DT_EPLUGIN (a rollout without transitions = 2, a field that it does not
     * have), DT_ENOMEM. With stored: DT_ENOTFOUND, DT_EIO, DT_EDATA naming the file, the sample and what is wrong with
     * it. */
    dt_status (*create)(const dt_host *h, dt_rollout *r, const dt_replay_desc *d, dt_replay **out);
    /* What draw fills: for dt_train_desc.data. */
    dt_data *(*data)(dt_replay *p);
    /* [collective] Adds the last collected round, once; invalidates the previous draw. Errors: DT_EPLUGIN (no round, or
     * already added). */
    dt_status (*add)(dt_replay *p);
    /* [collective] Draws desc.draw samples for the trainer's next steps. Errors: DT_EPLUGIN (nothing was added). */
    dt_status (*draw)(dt_replay *p);
    uint64_t (*count)(const dt_replay *p); /* samples in the buffer */
    uint64_t (*draws)(const dt_replay *p); /* number of draws, including those before a resume */
    /* [collective] With alpha > 0: updates the priorities of the last draw from TD errors of its rows [n_rows], in the
     * order of an evaluation over the data; every rank passes all of them. The priority of a sample is (largest |error|
     * + 1e-6)^alpha; a new sample has the largest one so far (section 3.3, algorithm 1). Errors: DT_EINVAL (not as many
     * rows as were drawn), DT_EDIVERGED (not finite), DT_EPLUGIN (alpha is 0, or no draw). */
    dt_status (*priority)(dt_replay *p, const float *error, uint64_t n_rows);
    uint64_t (*draw_size)(const dt_replay *p); /* samples of a draw */
    /* With desc.stored; the caller sets out->struct_size. Errors: DT_EPLUGIN (no desc.stored). */
    dt_status (*stats)(const dt_replay *p, dt_replay_stats *out);
} dt_replay_api;

/* ---- rounds of off-policy training ------------------------------------------------------------------------------- */

/* A round collects, adds, and makes `updates` steps, each of a draw of its own. A phase whose rounds are such has this
 * as member of its state, and DT_REPLAY_OPS_DEFINE:
 *
 *   create    s->loop.rounds = ...; s->loop.updates = ...; dt_replay_loop_create(&s->loop, h, env, &rollout, capacity);
 *   start     dt_replay_loop_start(&s->loop, &train), which sets data, epochs and trainer */
typedef struct dt_replay_loop {
    uint64_t rounds, updates;
    const dt_host *h;
    const dt_train_api *train;
    const dt_rollout_api *rollout;
    const dt_replay_api *replay;
    dt_rollout *experience;
    dt_replay *memory;
    dt_train *trainer;        /* NULL before start */
    dt_rollout_report report; /* of the last round */
    uint64_t draw;            /* of dt_replay_desc; 0: what a step takes */
} dt_replay_loop;

static inline dt_status dt_replay_loop_create(dt_replay_loop *x, const dt_host *h, dt_env *env,
                                              const dt_rollout_desc *d, uint64_t capacity)
{
    dt_replay_desc p;
    x->h = h;
    x->train = (const dt_train_api *)h->service(h, DT_SVC_TRAIN);
    x->rollout = (const dt_rollout_api *)h->service(h, DT_SVC_ROLLOUT);
    x->replay = (const dt_replay_api *)h->service(h, DT_SVC_REPLAY);
    if (x->train == NULL || x->rollout == NULL || x->replay == NULL) {
        return (h->fail)(h, DT_EUNSUPPORTED, NULL, "this host has no service for training from a replay buffer");
    }
    memset(&p, 0, sizeof(p));
    p.struct_size = (uint32_t)sizeof(p);
    p.capacity = capacity;
    p.draw = x->draw;
    p.gamma = d->gamma;
    const dt_status st = x->rollout->create(h, env, d, &x->experience);
    if (st < 0) {
        return st;
    }
    return x->replay->create(h, x->experience, &p, &x->memory);
}

static inline dt_status dt_replay_loop_start(dt_replay_loop *x, dt_train_desc *d)
{
    d->data = x->replay->data(x->memory);
    d->epochs = x->rounds * x->updates; /* a draw is an epoch */
    return x->train->create(x->h, d, &x->trainer);
}

/* One update, of a draw of its own. */
static inline dt_status dt_replay_loop_update(dt_replay_loop *x, dt_progress *out)
{
    const dt_status st = x->replay->draw(x->memory);
    if (st < 0) {
        return st;
    }
    return dt_train_iterate(x->train, x->trainer, out);
}

/* DT_DONE: it was the last round. */
static inline dt_status dt_replay_loop_iterate(dt_replay_loop *x, dt_progress *out)
{
    const uint64_t round = x->replay->draws(x->memory) / x->updates; /* also in a resumed run */
    memset(&x->report, 0, sizeof(x->report));
    x->report.struct_size = (uint32_t)sizeof(x->report);
    dt_status st = x->rollout->collect(x->experience, x->trainer, &x->report);
    if (st >= 0) {
        st = x->replay->add(x->memory);
    }
    for (uint64_t i = 0; i < x->updates && st >= 0; i++) {
        st = dt_replay_loop_update(x, out);
    }
    if (st < 0) {
        return st;
    }
    out->iterations = round + 1;
    out->epoch = round;
    out->epochs = x->rounds;
    out->epoch_end = 1;
    out->samples = x->report.agent_steps;
    return round + 1 >= x->rounds ? DT_DONE : DT_OK;
}

/* iterate, evaluate and stop of a phase, as functions FN_iterate, FN_evaluate and FN_stop: of its state's member
 * LOOP. */
#define DT_REPLAY_OPS_DEFINE(FN, STATE, LOOP)                                                                          \
    static dt_status FN##_iterate(void *self, dt_progress *out)                                                        \
    {                                                                                                                  \
        return dt_replay_loop_iterate(&((STATE *)self)->LOOP, out);                                                    \
    }                                                                                                                  \
    static dt_status FN##_evaluate(void *self, dt_progress *out)                                                       \
    {                                                                                                                  \
        dt_replay_loop *x_ = &((STATE *)self)->LOOP;                                                                   \
        out->evaluated = 1;                                                                                            \
        return x_->rollout->report(x_->experience, x_->trainer);                                                       \
    }                                                                                                                  \
    static void FN##_stop(void *self)                                                                                  \
    {                                                                                                                  \
        dt_replay_loop *x_ = &((STATE *)self)->LOOP;                                                                   \
        if (x_->trainer != NULL) {                                                                                     \
            x_->train->destroy(x_->trainer);                                                                           \
            x_->trainer = NULL;                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    struct dt_define_needs_a_semicolon

#ifdef __cplusplus
}
#endif
#endif
