/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.rollout/1", evaluate: whole episodes, one job each, on instances made for it. A job's result depends
 * on its seed and its number among the episodes of that seed alone.
 */
#include <config.h>

#include "rl/evaluate/evaluate.h"

#include "base/activity.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "rl/env/process.h"
#include "rl/evaluate/frames.h"
#include "rl/evaluate/results.h"
#include "rl/rollout/opponents.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { STREAM_EPISODE = 0x65706973, STREAM_EVALUATE = 0x6576616c };                      /* "epis", "eval" */
enum { ITEM_STEPS, ITEM_ROWS, ITEM_CHANGED, ITEM_INFEASIBLE, ITEM_ENV_S, ITEM_EPISODE }; /* the episode's own follow */

typedef struct evaluation {
    dt_rollout *r;
    const uint64_t *seed;
    uint32_t episodes;   /* per seed */
    uint32_t begin, end; /* jobs of this rank */
    uint32_t n;          /* instances: instance k plays jobs begin + k, begin + k + n, ... */
    uint32_t items;      /* of a job's result */
    uint32_t places;     /* of them, the last: return of each of the first places; 0: of one agent */
    double *result;      /* [jobs, items] */
    void **self;         /* [n] */
    dt_vector_kind kind;
    dt_vector *vector;
    dt_buffer buffer;
    dt_risk *risk_model; /* of the recorded vehicles; NULL: no predictions */
    dt_frames *frames;   /* of the very first episode; NULL: not recorded */
    bool is_recorded;    /* it is over */
    bool has_pictures;   /* of the first episode */
    uint32_t unplayed;   /* episodes in which no agent acted */
    bool is_first;       /* the instance is the environment's first one, and stays */
} evaluation;

static uint32_t job_of_instance(const evaluation *e, const dt_instance *x)
{
    return e->begin + x->number + (uint32_t)x->episode * e->n;
}

/* The first episode of a seed has the seed itself: what a user names is what the simulation gets. */
static uint64_t episode_seed(void *user, uint32_t number, uint64_t episode)
{
    const evaluation *e = user;
    const uint32_t job = e->begin + number + (uint32_t)episode * e->n;
    const uint64_t seed = e->seed[job / e->episodes];
    const dt_rng_key key = {.seed = seed, .op = STREAM_EPISODE, .step = job % e->episodes};
    uint32_t w[4];
    dt_philox(&key, 0, w);
    return job % e->episodes == 0 ? seed : (uint64_t)w[0] << 32 | w[1];
}

static void set_action_key(void *user, const dt_instance *x, dt_rng_key *key)
{
    const evaluation *e = user;
    const uint32_t job = job_of_instance(e, x);
    *key = (dt_rng_key){.seed = e->seed[job / e->episodes], .op = STREAM_EVALUATE, .step = x->episode_step};
    key->sample = job % e->episodes;
}

static void add_step(evaluation *e, uint32_t i)
{
    const dt_buffer *b = &e->buffer;
    dt_instance *x = dt_vector_instance(e->vector, i);
    double *out = e->result + (size_t)job_of_instance(e, x) * e->items;
    const size_t slot = dt_buffer_slot(b, 0, i), A = b->l->spec.n_agents;
    for (size_t at = slot * A; at < (slot + 1) * A; at++) {
        const bool acted = (b->flag[at] & DT_STEP_ACTED) != 0;
        out[ITEM_CHANGED] += acted && (b->report[at] & DT_REPORT_CHANGED) != 0;
        out[ITEM_INFEASIBLE] += acted && (b->report[at] & DT_REPORT_INFEASIBLE) != 0;
        if (acted && at - slot * A < e->places) {
            double *earned = &out[e->items - e->places + (at - slot * A)];
            *earned = (isnan(*earned) ? 0 : *earned) + (double)b->reward[at];
        }
    }
    out[ITEM_STEPS] += b->n_acts[slot] > 0;
    out[ITEM_ROWS] += b->n_acts[slot];
    out[ITEM_ENV_S] += x->env_s;
    x->env_s = 0;
    if (x->has_ended) {
        memcpy(out + ITEM_EPISODE, x->earned, b->episode_items * sizeof(double));
        for (uint32_t k = 0; k < b->l->spec.n_costs + 1 && !x->is_learnt_from; k++) {
            out[ITEM_EPISODE + (k == 0 ? 0 : k + 1)] = NAN; /* of no agent neither return nor costs are known */
        }
    }
}

/* Does the instance, whose episode is over, have another job? */
static bool has_no_more_jobs(const evaluation *e, const dt_instance *x)
{
    return x->is_over && x->has_ended && job_of_instance(e, x) + e->n >= e->end;
}

static dt_status record_frame(evaluation *e)
{
    const dt_instance *x = dt_vector_instance(e->vector, 0);
    if (e->frames == NULL || e->is_recorded) {
        return DT_OK;
    }
    e->is_recorded = x->is_over;
    DT_TRY(dt_frames_step(e->frames));
    return e->is_recorded ? dt_frames_end(e->frames, &e->r->stage->host) : DT_OK;
}

static dt_status play_episodes(evaluation *e, bool greedy)
{
    dt_rollout *r = e->r;
    dt_collector c = {.stops = r->stage->d.stops,
                      .stops_user = r->stage->d.stops_user,
                      .vector = e->vector,
                      .buffer = &e->buffer,
                      .actor = &r->acting.track[0].own,
                      .index = r->acting.track[0].index,
                      .key_of = set_action_key,
                      .user = e,
                      .greedy = greedy,
                      .is_squashed = r->acting.is_squashed};
    dt_collect_opponents opponents;
    if (r->opponents != NULL) {
        DT_TRY(dt_opponents_begin_evaluation(r->opponents, &opponents));
        c.opponents = &opponents;
    }
    DT_TRY(dt_vector_step(e->vector)); /* the first resets */
    if (e->frames != NULL) {
        DT_TRY(dt_frames_begin(e->frames, e->self[0], &e->buffer, 0));
    }
    uint32_t over = 0;
    dt_activity_set(DT_ACTIVITY_EVALUATE, 0, e->end - e->begin);
    for (uint32_t left = e->n; left > 0;) {
        DT_TRY(dt_collect_run_round(&c, 0));
        DT_TRY(record_frame(e));
        for (uint32_t i = 0; i < e->n; i++) {
            dt_instance *x = dt_vector_instance(e->vector, i);
            if (x->is_idle) {
                continue;
            }
            add_step(e, i);
            over += x->is_over && x->has_ended;
            if (has_no_more_jobs(e, x)) {
                x->is_idle = true;
                left--;
            }
        }
        dt_activity_set(DT_ACTIVITY_EVALUATE, over, e->end - e->begin);
    }
    dt_activity_set(DT_ACTIVITY_NONE, 0, 0);
    return DT_OK;
}

static bool has_other_options(const dt_env *e)
{
    return e->evaluated != &e->training;
}

/* Instances made for it; where a process can have one alone, the first, which has played no episode yet. */
static dt_status make_instances(evaluation *e)
{
    dt_rollout *r = e->r;
    const bool is_alone = (r->env->comp->desc.flags & DT_COMP_PROCESS) != 0 && !r->env->in_process;
    if (is_alone && r->acting.vector == NULL && e->n == 1) {
        e->is_first = true;
        DT_TRY(has_other_options(r->env) ? dt_env_recreate_first(r->env, r->env->evaluated, 0) : DT_OK);
        e->self[0] = r->env->self;
        return DT_OK;
    }
    return dt_env_create_instances(r->env, r->env->evaluated, 0, e->n, e->self);
}

static dt_status create_vector(evaluation *e)
{
    dt_rollout *r = e->r;
    const dt_layout *l = dt_env_get_layout(r->env, r->env->evaluated);
    const uint8_t *is_opponent = r->opponents != NULL ? r->opponents->is_opponent : NULL;
    const dt_buffer_desc bd = {.layout = l,
                               .steps = 1,
                               .instances = e->n,
                               .window = r->buffer.d.window,
                               .transitions = r->buffer.d.transitions,
                               .n_carried = r->buffer.d.n_carried,
                               .has_last_action = r->buffer.d.has_last_action,
                               .carried = r->buffer.d.carried,
                               .is_opponent = is_opponent};
    DT_TRY(dt_buffer_init(&e->buffer, &bd));
    dt_obs_stats_set_scale(&r->stats, &e->buffer);
    DT_TRY(make_instances(e));
    const uint32_t own = r->env->evaluated->max_steps;
    e->kind = (dt_vector_kind){.id = r->env->comp->desc.id,
                               .ops = r->env->ops,
                               .async = r->env->in_process ? &dt_process_async : NULL,
                               .restart = dt_env_restart_table(r->env, r->env->evaluated),
                               .max_steps = own > 0 ? own : r->evaluation_steps};
    const dt_vector_desc d = {.kind = &e->kind,
                              .n_kinds = 1,
                              .layout = l,
                              .self = e->self,
                              .n = e->n,
                              .workers = r->acting.workers,
                              .groups = r->acting.in_flight > 0 || r->env->in_process ? dt_acting_groups(r, e->n) : 1,
                              .max_steps_from = own > 0 ? "its own spec (max_steps)" : "evaluation.max_steps",
                              .n_cut = &r->env->n_cut,
                              .user = e,
                              .seed = episode_seed,
                              .is_opponent = is_opponent};
    return dt_vector_create(&d, &e->vector);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static void summarise_seed(const evaluation *e, const double *result, dt_rollout_report *out)
{
    const dt_env_spec *s = &e->r->env->layout.spec;
    dt_rollout_report all = {.struct_size = out->struct_size, .n_costs = s->n_costs, .n_metrics = s->n_metrics};
    double sum[ITEM_EPISODE] = {0};
    for (uint32_t i = 0; i < e->episodes; i++) {
        for (uint32_t k = 0; k < ITEM_EPISODE; k++) {
            sum[k] += result[(size_t)i * e->items + k];
        }
    }
    all.env_steps = (uint64_t)sum[ITEM_STEPS];
    all.agent_steps = (uint64_t)sum[ITEM_ROWS];
    all.episodes = e->episodes;
    all.interventions = sum[ITEM_ROWS] > 0 ? sum[ITEM_CHANGED] / sum[ITEM_ROWS] : (double)NAN;
    all.infeasible = sum[ITEM_ROWS] > 0 ? sum[ITEM_INFEASIBLE] / sum[ITEM_ROWS] : (double)NAN;
    all.env_s = sum[ITEM_ENV_S];
    all.explained_variance = NAN;
    const uint32_t n = e->episodes, at = ITEM_EPISODE;
    all.episode_return = dt_episode_mean(result + at, e->items, n, NULL, 0, &all.episode_return_std);
    all.episode_length = dt_episode_mean(result + at + 1, e->items, n, NULL, 0, NULL);
    for (uint32_t k = 0; k < s->n_costs; k++) {
        all.episode_cost[k] = dt_episode_mean(result + at + 2 + k, e->items, n, NULL, 0, &all.episode_cost_std[k]);
    }
    for (uint32_t m = 0; m < s->n_metrics; m++) {
        all.metric[m] = dt_episode_mean(result + at + 2 + s->n_costs + m, e->items, n, NULL, 0, &all.metric_std[m]);
    }
    memcpy(out, &all, out->struct_size < sizeof(all) ? out->struct_size : sizeof(all));
}

/* Said once in a run. */
static void count_unplayed(evaluation *e, const double *result, uint32_t jobs)
{
    for (uint32_t i = 0; i < jobs; i++) {
        e->unplayed += isnan(result[(size_t)i * e->items + ITEM_EPISODE]);
    }
    if (e->unplayed > 0 && !e->r->has_warned_unplayed_evaluation && dt_comm_rank(e->r->stage->d.comm) == 0) {
        dt_log(DT_LOG_WARN,
               "in %u of the %u episodes of the evaluation no agent%s acted; they have neither a return nor costs, and "
               "count for neither, now and later (unplayed_episodes)",
               e->unplayed, jobs, e->r->opponents != NULL ? " of the learning team" : "");
    }
    e->r->has_warned_unplayed_evaluation |= e->unplayed > 0;
}

/* Means over the episodes of a seed. */
static void summarise_places(const evaluation *e, const double *result, double *out)
{
    for (uint32_t a = 0; a < e->places; a++) {
        out[a] = dt_episode_mean(result + e->items - e->places + a, e->items, e->episodes, NULL, 0, NULL);
    }
}

/* Every rank's jobs on all ranks; they own as many each, the last one maybe fewer. */
static dt_status gather_results(const evaluation *e, uint32_t per_rank, double *all)
{
    const size_t bytes = (size_t)per_rank * e->items * sizeof(double);
    return dt_comm_all_gather(e->r->stage->d.comm, e->result + (size_t)e->begin * e->items, bytes, all);
}

static dt_status run_jobs(evaluation *e, uint32_t jobs, bool greedy, dt_train *t)
{
    dt_rollout *r = e->r;
    dt_round_ahead_finish(r); /* its policy acts here; its error is reported by the next collect */
    DT_TRY(r->opponents != NULL ? dt_opponents_check_evaluation(r->opponents) : DT_OK);
    e->n = e->end - e->begin < r->split.last - r->split.first ? e->end - e->begin : r->split.last - r->split.first;
    DT_TRY(dt_rollout_begin_policy(r, t->trainer));
    if (e->n == 0) {
        return DT_OK; /* more ranks than jobs */
    }
    e->self = dt_alloc_n(e->n, sizeof(*e->self));
    if (e->self == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u episodes", jobs);
    }
    DT_TRY(create_vector(e));
    if (e->has_pictures && e->begin == 0) {
        const bool is_taught = dt_roles_contain(&r->stage->d.loaded, "perception");
        DT_TRY(dt_risk_open(r, t->trainer, &e->risk_model));
        DT_TRY(dt_frames_open(r->env, r->stage->d.frames_every_s, e->risk_model, is_taught, &e->frames));
    }
    return play_episodes(e, greedy);
}

/* of_place [n_seeds, places] NULL: not asked for */
static dt_status evaluate_seeds(evaluation *e, dt_train *t, uint32_t n_seeds, bool greedy, dt_rollout_report *out,
                                double *of_place)
{
    dt_rollout *r = e->r;
    const uint32_t episodes = e->episodes;
    dt_comm *comm = r->stage->d.comm;
    const uint32_t jobs = n_seeds * episodes, ranks = dt_comm_size(comm), per_rank = (jobs + ranks - 1) / ranks;
    const double from = dt_clock_s();
    if (jobs == 0) {
        return DT_FAIL(DT_EINVAL, "an evaluation of %u episodes of each of %u seeds is empty; both must be at least 1",
                       episodes, n_seeds);
    }
    e->items = ITEM_EPISODE + r->buffer.episode_items + e->places;
    e->begin = per_rank * dt_comm_rank(comm) < jobs ? per_rank * dt_comm_rank(comm) : jobs;
    e->end = e->begin + per_rank < jobs ? e->begin + per_rank : jobs;
    e->result =
        dt_alloc_n((size_t)per_rank * (ranks + 1), e->items * sizeof(double)); /* the last rank's may overhang */
    double *all = dt_alloc_n((size_t)per_rank * ranks, e->items * sizeof(double));
    for (uint32_t k = 0; e->result != NULL && k < jobs * e->places; k++) { /* unknown until the place acts */
        e->result[(size_t)(k / e->places + 1) * e->items - 1 - k % e->places] = NAN;
    }
    dt_status st = e->result != NULL && all != NULL ? run_jobs(e, jobs, greedy, t)
                                                    : DT_FAIL(DT_ENOMEM, "out of memory for %u episodes", jobs);
    st = dt_comm_agree(comm, st);
    if (st == DT_OK) {
        st = gather_results(e, per_rank, all);
    }
    if (st == DT_OK) {
        count_unplayed(e, all, jobs);
    }
    for (uint32_t i = 0; i < n_seeds && st == DT_OK; i++) {
        const double *of_seed = all + (size_t)i * episodes * e->items;
        summarise_seed(e, of_seed, &out[i]);
        if (of_place != NULL) {
            summarise_places(e, of_seed, of_place + (size_t)i * e->places);
        }
        out[i].total_s = dt_clock_s() - from;
    }
    dt_frames_close(e->frames);
    dt_risk_close(e->risk_model);
    dt_vector_destroy(e->vector);
    if (e->self != NULL && !e->is_first) {
        dt_env_destroy_instances(r->env, r->env->evaluated, 0, e->n, e->self);
    } else if (e->is_first && has_other_options(r->env) && r->stage->d.trained_on == NULL && st == DT_OK) {
        st = dt_env_recreate_first(r->env, &r->env->training, 0); /* which continues */
    }
    dt_buffer_fini(&e->buffer);
    dt_free(e->self);
    dt_free(e->result);
    dt_free(all);
    return st;
}

dt_status dt_rollout_evaluate(dt_rollout *r, dt_train *t, const uint64_t *seed, uint32_t n_seeds, uint32_t episodes,
                              uint8_t greedy, dt_rollout_report *out)
{
    evaluation e = {.r = r, .seed = seed, .episodes = episodes};
    return evaluate_seeds(&e, t, n_seeds, greedy != 0, out, NULL);
}

dt_status dt_rollout_report_evaluation(dt_rollout *r, dt_train *t)
{
    dt_stage_restore_fp_mode(r->stage);
    dt_stage *s = r->stage;
    const dt_evaluation_opts *o = &s->opts.evaluation;
    const uint32_t agents = r->env->layout.spec.n_agents, most = DT_ROUND_MOST_PARTS;
    const uint32_t places = agents < 2 ? 0 : agents < most ? agents : most;
    dt_rollout_report *of_seed = dt_alloc_n(o->n_seeds, sizeof(*of_seed));
    double *of_place = dt_alloc_n((size_t)o->n_seeds * (places + 1), sizeof(*of_place));
    if (of_seed == NULL || of_place == NULL) {
        dt_free(of_seed);
        dt_free(of_place);
        return DT_FAIL(DT_ENOMEM, "out of memory for the results of %u seeds", o->n_seeds);
    }
    for (uint32_t i = 0; i < o->n_seeds; i++) {
        of_seed[i].struct_size = sizeof(*of_seed);
    }
    evaluation e = {.r = r,
                    .seed = o->seed,
                    .episodes = (uint32_t)o->episodes,
                    .places = places,
                    .has_pictures = s->d.controller == NULL};
    const dt_status st = evaluate_seeds(&e, t, o->n_seeds, o->greedy != 0, of_seed, of_place);
    if (st == DT_OK) {
        const dt_metrics_api *m = s->host.service(&s->host, DT_SVC_METRICS);
        dt_evaluation_report_results(&s->host, m, &r->env->layout.spec, o->seed, of_seed, o->n_seeds);
        dt_evaluation_report_places(&s->host, m, of_place, o->n_seeds, places);
        const double unplayed = e.unplayed;
        if (unplayed > 0) {
            m->report(&s->host, "unplayed_episodes", &unplayed, 0);
        }
    }
    dt_free(of_place);
    dt_free(of_seed);
    return st;
}
