/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/rollout/opponents.h"

#include "base/err.h"
#include "base/mem.h"

#include <string.h>

enum { STREAM_OPPONENT = 0x6f70706f }; /* "oppo" */
enum { LATEST };                       /* number of the policy as it is now */

/* ---- life -------------------------------------------------------------------------------------------------------- */

static dt_status mark_opponent_places(dt_opponents *o, uint32_t *n_p)
{
    const dt_layout *l = &o->r->env->layout;
    const uint32_t ours = dt_bind_env_learners(o->r->env);
    uint32_t teams = 0;
    for (uint32_t a = 0; a < l->spec.n_agents; a++) {
        const uint32_t team = dt_layout_team_of(l, a);
        o->is_opponent[a] = !dt_env_is_learner(o->r->env, a);
        teams = team + 1 > teams ? team + 1 : teams;
    }
    *n_p = l->spec.n_agents - ours;
    return ours > 0 ? DT_OK
                    : DT_FAIL(DT_ECONFIG, "opponents.learner = %lld, and %s has no such team; its last one is %u",
                              (long long)o->opts.learner, o->r->env->comp->desc.id, teams - 1);
}

dt_status dt_opponents_check_evaluation(const dt_opponents *o)
{
    const dt_env *e = o->r->env;
    const dt_layout *l = dt_env_get_layout(e, e->evaluated);
    for (uint32_t a = 0; a < l->spec.n_agents; a++) {
        if (o->is_opponent[a] == 0) {
            return DT_OK;
        }
    }
    return DT_FAIL(DT_ECONFIG,
                   "opponents.learner = %lld, and evaluations in %s have no place of team %lld, so that they evaluate "
                   "no agent; let another team learn, add this one to evaluations by options of the environment "
                   "(evaluation.env), or set training.eval_interval = 0",
                   (long long)o->opts.learner, e->comp->desc.id, (long long)o->opts.learner);
}

/* Before training: the first evaluation comes late. */
static dt_status check_evaluations(const dt_opponents *o)
{
    const dt_stage *s = o->r->stage;
    const bool evaluates = s->d.phase->ops.phase.evaluate != NULL && s->opts.training.eval_interval > 0;
    return evaluates ? dt_opponents_check_evaluation(o) : DT_OK;
}

static dt_status init_opponents(dt_rollout *r, dt_opponents *o, uint32_t *n_p)
{
    o->r = r;
    o->is_opponent = dt_alloc_n(r->env->layout.spec.n_agents, sizeof(*o->is_opponent));
    if (o->is_opponent == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for opponents");
    }
    DT_TRY(mark_opponent_places(o, n_p));
    return *n_p > 0 ? check_evaluations(o) : DT_OK;
}

dt_status dt_opponents_create(dt_rollout *r, dt_opponents **out_p)
{
    uint32_t n = 0;
    *out_p = NULL;
    if (r->env->learner < 0) {
        return DT_OK;
    }
    dt_opponents *o = dt_alloc(sizeof(*o));
    if (o == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for opponents");
    }
    o->opts = r->stage->opts.opponents;
    const dt_status st = init_opponents(r, o, &n);
    if (st < 0 || n == 0) {
        dt_opponents_destroy(o);
        return st;
    }
    *out_p = o;
    return DT_OK;
}

void dt_opponents_destroy(dt_opponents *o)
{
    if (o != NULL) {
        dt_opponents_destroy_policy(o);
        dt_free(o->is_opponent);
        dt_free(o);
    }
}

void dt_opponents_destroy_policy(dt_opponents *o)
{
    for (uint32_t k = 0; k < o->n && o->values != NULL; k++) {
        dt_arena_unmap(o->values[k], o->values_bytes);
    }
    dt_free(o->values);
    dt_free(o->version);
    o->values = NULL;
    o->version = NULL;
    o->n = 0;
    dt_policy_destroy(o->policy);
    o->policy = NULL;
}

/* ---- acting ------------------------------------------------------------------------------------------------------ */

static dt_opponents *opponents_of_track(const dt_track *t)
{
    return t->r->opponents;
}

static dt_status load_opponent(void *user, uint32_t k)
{
    const dt_track *t = user;
    const dt_opponents *o = opponents_of_track(t);
    return dt_policy_override_params(o->policy, t->number, o->values[k], o->version[k]);
}

static uint32_t count_earlier(const dt_opponents *o)
{
    return o->opts.target[0] != '\0' ? 1 : dt_opponents_count_snapshots(o);
}

static uint32_t draw_opponent(void *user, const dt_instance *x)
{
    const dt_track *t = user;
    const dt_opponents *o = opponents_of_track(t);
    const dt_rng_key key = {.seed = t->r->stage->d.seed,
                            .phase = (uint32_t)t->r->stage->d.index,
                            .op = STREAM_OPPONENT,
                            .step = x->episode,
                            .sample = x->number};
    const double u = dt_rng_uniform(&key, 0), latest = o->opts.latest;
    const uint32_t n = count_earlier(o);
    if (u < latest) {
        return LATEST;
    }
    const uint32_t k = (uint32_t)((u - latest) / (1 - latest) * n);
    return 1 + (k < n ? k : n - 1);
}

static uint32_t choose_latest_snapshot(void *user, const dt_instance *x)
{
    return LATEST;
}

dt_status dt_opponents_prepare(dt_opponents *o)
{
    const uint32_t n = 1 + (o->opts.target[0] != '\0' ? 1 : (uint32_t)o->opts.pool);
    o->values_bytes = dt_policy_n_params(o->policy) * sizeof(float);
    o->values = dt_alloc_n(n, sizeof(*o->values));
    o->version = dt_alloc_n(n, sizeof(*o->version));
    if (o->values == NULL || o->version == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u opponents", n);
    }
    for (o->n = 0; o->n < n; o->n++) {
        void *arena = NULL;
        DT_TRY(dt_arena_map(o->values_bytes, &arena));
        o->values[o->n] = arena;
    }
    DT_TRY(o->opts.target[0] != '\0' ? dt_policy_check_target(o->policy, o->opts.target) : DT_OK);
    DT_TRY(dt_policy_allocate_frozen(o->policy));
    for (uint32_t i = 0; i < o->r->acting.n_tracks; i++) {
        dt_track *t = &o->r->acting.track[i];
        t->opponents = (dt_collect_opponents){
            .user = t, .n = o->n, .of = draw_opponent, .choose = load_opponent, .actor = &t->opponent};
    }
    return DT_OK;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

uint32_t dt_opponents_count_snapshots(const dt_opponents *o)
{
    return (uint32_t)(o->added < (uint64_t)o->opts.pool ? o->added : (uint64_t)o->opts.pool);
}

static dt_status copy_snapshot_values(dt_opponents *o, uint32_t k, const char *target)
{
    DT_TRY(dt_policy_copy_params(o->r->acting.policy, target, o->values[k]));
    o->version[k] = ++o->versions;
    return DT_OK;
}

static void add_snapshot(dt_opponents *o)
{
    const uint32_t k = 1 + (uint32_t)(o->added % (uint64_t)o->opts.pool);
    memcpy(o->values[k], o->values[LATEST], o->values_bytes);
    o->version[k] = ++o->versions;
    o->added++;
    o->round = o->r->collects;
}

/* A round that is acted again, after a resume, has its snapshot already. */
dt_status dt_opponents_begin_round(dt_opponents *o)
{
    const uint64_t round = o->r->collects;
    DT_TRY(dt_policy_freeze_params(o->policy));
    DT_TRY(copy_snapshot_values(o, LATEST, NULL));
    if (o->opts.target[0] != '\0') {
        return copy_snapshot_values(o, 1, o->opts.target);
    }
    if (o->added == 0 || (round % (uint64_t)o->opts.every == 0 && round != o->round)) {
        add_snapshot(o);
    }
    return DT_OK;
}

dt_status dt_opponents_begin_evaluation(dt_opponents *o, dt_collect_opponents *with)
{
    *with = o->r->acting.track[0].opponents;
    with->of = choose_latest_snapshot;
    DT_TRY(dt_policy_freeze_params(o->policy));
    return copy_snapshot_values(o, LATEST, NULL);
}
