/* SPDX-License-Identifier: Apache-2.0
 *
 * What a rollout takes besides the trainer, before its first round: dt_rollout_need of service.h.
 */
#include <config.h>

#include "rl/experience/service.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "rl/env/process.h"
#include "rl/evaluate/risk.h"
#include "rl/replay/replay.h"
#include "rl/rollout/opponents.h"

#include <malloc.h>
#include <math.h>
#include <string.h>

/* Steps of the instance on trial; sizes are looked at in the second half, when the world is no longer empty. */
enum { TRIAL_STEPS = 256, STREAM_TRIAL = 0x74726961 }; /* "tria" */

/* What the C library has given out, arenas included. */
static uint64_t heap_bytes(void)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd + dt_arena_live_bytes();
#else
    return dt_alloc_live_bytes();
#endif
}

static uint64_t trial_seed(void *user, uint32_t number, uint64_t episode)
{
    return number + episode + 1;
}

/* An allowed action of each head, and numbers about rest, drawn: like an untrained policy. */
static void draw_actions(const dt_layout *l, uint32_t step, char *record)
{
    const dt_rng_key key = {.op = STREAM_TRIAL, .step = step};
    uint64_t drawn = 0;
    const uint8_t *mask = (const uint8_t *)record + l->mask;
    int32_t *act_i = (int32_t *)(void *)(record + l->act_i);
    float *act_f = (float *)(void *)(record + l->act_f);
    for (uint32_t a = 0; a < l->spec.n_agents; a++) {
        for (uint32_t h = 0; h < l->spec.n_heads; mask += l->spec.choices[h], h++) {
            const int32_t n = l->spec.choices[h];
            int32_t c = (int32_t)(dt_rng_uniform(&key, drawn++) * n);
            for (int32_t tried = 0; tried < n && (c >= n || mask[c] == 0); tried++) {
                c = c + 1 < n ? c + 1 : 0;
            }
            *act_i++ = c;
        }
        for (uint32_t k = 0; k < l->spec.n_continuous; k++) {
            const double low = fmax(l->spec.low[k], -1), high = fmin(l->spec.high[k], 1);
            *act_f++ = (float)(low + fmax(high - low, 0) * dt_rng_uniform(&key, drawn++));
        }
    }
}

static dt_status play_trial(dt_rollout *r, uint32_t number, void **self, dt_rollout_need *out)
{
    const dt_layout *l = &r->env->layout;
    dt_vector_kind kind = r->env->kind[number];
    kind.max_steps = 0;
    const dt_vector_desc d = {.kind = &kind, .n_kinds = 1, .layout = l, .self = self, .n = 1, .seed = trial_seed};
    dt_vector *v = NULL;
    double sum[1 + DT_ENV_MAX_SYMBOLS] = {0};
    uint32_t seen = 0;
    DT_TRY(dt_vector_create(&d, &v));
    dt_status st = DT_OK;
    for (uint32_t t = 0; t < TRIAL_STEPS && st == DT_OK; t++) {
        st = dt_vector_step(v);
        const char *record = dt_vector_instance(v, 0)->record;
        if (st == DT_OK && t >= TRIAL_STEPS / 2) {
            seen++;
            for (uint32_t a = 0; a < l->spec.n_agents; a++) {
                sum[0] += record[l->alive + a] != 0;
            }
            for (uint32_t k = 0; k < l->spec.n_symbols; k++) {
                int64_t size = 0;
                memcpy(&size, record + l->size + k * sizeof(size), sizeof(size));
                sum[1 + k] += (double)size;
            }
        }
        draw_actions(l, t, dt_vector_instance(v, 0)->record);
    }
    for (uint32_t k = 0; k <= l->spec.n_symbols && seen > 0; k++) {
        out->mean[k] = sum[k] / seen;
    }
    dt_vector_destroy(v);
    return st;
}

/* An instance of its own, so that those of the run begin untouched. One that fails is not reported here: where it
 * matters it fails again. */
static void measure_instance(dt_rollout *r, uint32_t number, dt_rollout_need *out)
{
    void *self = NULL;
    const uint64_t before = heap_bytes();
    dt_status st = dt_env_create_instances(r->env, &r->env->training, number, 1, &self);
    if (st == DT_OK) {
        st = play_trial(r, number, &self, out);
    }
    const uint64_t after = heap_bytes();
    if (st == DT_OK && r->env->in_process) {
        out->instance = dt_process_bytes(self, &out->shared);
    } else {
        out->instance = st == DT_OK && after > before ? after - before : 0;
    }
    dt_env_destroy_instances(r->env, &r->env->training, number, 1, &self);
    dt_error_clear();
}

double dt_rollout_measure_speed(dt_rollout *r, double most_s, uint32_t *n_p)
{
    dt_vector *v = NULL;
    void *self = NULL;
    double took_s = NAN;
    dt_vector_kind kind = r->env->kind[0]; /* read by v until it is destroyed */
    kind.max_steps = 0;
    *n_p = 0;
    dt_status st = dt_env_create_instances(r->env, &r->env->training, 0, 1, &self);
    if (st == DT_OK) {
        const dt_vector_desc d = {
            .kind = &kind, .n_kinds = 1, .layout = &r->env->layout, .self = &self, .n = 1, .seed = trial_seed};
        st = dt_vector_create(&d, &v);
    }
    if (st == DT_OK) {
        st = dt_vector_step(v); /* the first one resets */
    }
    const double begin_s = dt_clock_s();
    for (uint32_t t = 0; t < TRIAL_STEPS && st == DT_OK && dt_clock_s() - begin_s < most_s; t++) {
        draw_actions(&r->env->layout, t, dt_vector_instance(v, 0)->record);
        st = dt_vector_step(v);
        *n_p = t + 1;
    }
    took_s = st == DT_OK && *n_p > 0 ? (dt_clock_s() - begin_s) / *n_p : (double)NAN;
    dt_vector_destroy(v);
    dt_env_destroy_instances(r->env, &r->env->training, 0, 1, &self);
    dt_error_clear();
    return took_s;
}

/* Of several environments: what the largest one needs. */
static void measure_instances(dt_rollout *r, dt_rollout_need *out)
{
    measure_instance(r, 0, out);
    for (uint32_t k = 1; k < r->env->n_kinds; k++) {
        dt_rollout_need other = *out;
        measure_instance(r, k, &other);
        out->instance = other.instance > out->instance ? other.instance : out->instance;
        out->shared = other.shared > out->shared ? other.shared : out->shared;
        for (uint32_t i = 0; i <= r->env->layout.spec.n_symbols; i++) {
            out->mean[i] = fmax(out->mean[i], other.mean[i]);
        }
    }
}

static uint64_t buffer_bytes(const dt_buffer *b, const double *mean, uint64_t *resident)
{
    uint64_t mapped = dt_arena_bytes(b->map_bytes);
    *resident = b->map_bytes;
    for (uint32_t i = 0; i < b->l->spec.n_obs; i++) {
        const dt_obs_port *o = &b->l->obs[i];
        if (o->symbol > 0 && b->arena_bytes[i] > 0) {
            mapped += dt_arena_bytes(b->arena_bytes[i]);
            const double rows = (mean[o->symbol] + o->plus) * (double)b->n_slots;
            *resident += dt_arena_touched(b->arena_bytes[i], (size_t)(rows * (double)o->row_bytes));
        }
    }
    for (uint32_t k = 0; k < b->d.n_kept; k++) {
        const size_t bytes = b->kept[k] != NULL ? b->n_places * b->kept_columns[k] * sizeof(float) : 0;
        if (bytes > 0) {
            mapped += dt_arena_bytes(bytes);
        }
        *resident += bytes;
    }
    return mapped;
}

/* Of several ranks: what all of them know, and what comes and goes before a step. */
static void add_shared_bytes(const dt_rollout *r, dt_rollout_need *out)
{
    const dt_exchange *x = &r->exchange;
    uint64_t rows = 0, batch = 0, own = 0;
    if (r->all != &r->rows) {
        return;
    }
    out->buffer += buffer_bytes(&r->rows, out->mean, &rows) + buffer_bytes(&r->exchange.batch, out->mean, &batch);
    out->buffer += dt_arena_bytes(x->in_bytes) + dt_arena_bytes(x->out_bytes);
    (void)buffer_bytes(&r->buffer, out->mean, &own);
    /* a sample comes, and goes, as large as it is in the round */
    const double samples = (double)r->d.steps * (r->split.last - r->split.first);
    const size_t used = (size_t)((double)own / samples * (double)x->room);
    out->buffer_resident += dt_arena_touched(x->in_bytes, used) + dt_arena_touched(x->out_bytes, used);
    out->buffer_resident += rows + batch + (uint64_t)r->d.steps * r->split.instances * sizeof(*x->place);
}

/* Their policy, and the values that it may run with. */
static void add_opponent_bytes(const dt_rollout *r, uint64_t instances, dt_rollout_need *out)
{
    const dt_opponents *o = r->opponents;
    uint64_t policy = 0, resident = 0;
    dt_policy_arenas_get(o->policy, out->mean, instances, &policy, &resident);
    out->policy += policy + o->n * dt_arena_bytes(o->values_bytes);
    out->policy_resident += resident + o->n * (uint64_t)o->values_bytes;
}

static void add_vector_bytes(const dt_vector_desc *d, uint64_t *mapped_p, uint64_t *resident_p)
{
    uint32_t arenas = 0;
    const size_t bytes = dt_vector_bytes(d, &arenas);
    *mapped_p += arenas * dt_arena_bytes(bytes);
    *resident_p += arenas * bytes;
}

static dt_status add_evaluation_bytes(dt_rollout *r, dt_trainer *t, dt_rollout_need *out)
{
    const dt_evaluation_opts *o = &r->stage->opts.evaluation;
    const uint64_t ranks = dt_comm_size(r->stage->d.comm), own = r->split.last - r->split.first;
    const uint64_t jobs = ((uint64_t)o->n_seeds * (uint64_t)o->episodes + ranks - 1) / ranks;
    out->evaluated = (uint32_t)(jobs < own ? jobs : own);
    out->evaluating = out->processes > 0 ? dt_env_count_workers(r->env, out->evaluated) : 0;
    const dt_layout *l = dt_env_get_layout(r->env, r->env->evaluated);
    const dt_vector_kind kind = {.ops = r->env->ops,
                                 .async = r->env->in_process ? &dt_process_async : NULL,
                                 .restart = dt_env_restart_table(r->env, r->env->evaluated)};
    const dt_vector_desc vd = {.kind = &kind, .n_kinds = 1, .layout = l, .n = out->evaluated};
    const dt_buffer_desc bd = {.layout = l,
                               .steps = 1,
                               .instances = out->evaluated > 0 ? out->evaluated : 1,
                               .window = r->buffer.d.window,
                               .transitions = r->buffer.d.transitions,
                               .n_carried = r->buffer.d.n_carried,
                               .has_last_action = r->buffer.d.has_last_action,
                               .carried = r->buffer.d.carried};
    dt_buffer b;
    const dt_status st = dt_buffer_init(&b, &bd);
    if (st == DT_OK) {
        out->evaluation = buffer_bytes(&b, out->mean, &out->evaluation_resident);
        add_vector_bytes(&vd, &out->evaluation, &out->evaluation_resident);
    }
    dt_buffer_fini(&b);
    DT_TRY(st);
    dt_risk *risk_model = NULL;
    DT_TRY(dt_risk_open(r, t, &risk_model));
    out->evaluation += dt_risk_bytes(risk_model);
    dt_risk_close(risk_model);
    return DT_OK;
}

dt_status dt_rollout_measure_need(dt_rollout *r, dt_trainer *t, dt_rollout_need *out)
{
    const dt_layout *l = &r->env->layout;
    const uint32_t own = r->split.last - r->split.first;
    memset(out, 0, sizeof(*out));
    for (uint32_t k = 0; k <= l->spec.n_symbols; k++) {
        out->mean[k] = (double)dt_layout_max_rows(l, (int32_t)k);
    }
    if (r->env->in_process) {
        out->instance = dt_process_bytes(r->env->self, &out->shared);
        out->processes = dt_env_count_workers(r->env, own);
    }
    if (!r->env->in_process || r->stage->tries_processes) {
        measure_instances(r, out);
    }
    DT_TRY(dt_rollout_prepare(r, t));
    out->instances = own;
    out->threads = r->acting.workers;
    dt_policy_arenas_get(r->acting.policy, out->mean, (own + r->acting.n_tracks - 1) / r->acting.n_tracks, &out->policy,
                         &out->policy_resident);
    if (r->opponents != NULL) {
        add_opponent_bytes(r, (own + r->acting.n_tracks - 1) / r->acting.n_tracks, out);
    }
    out->policy += dt_arena_bytes(r->acting.arena_bytes) * r->acting.n_tracks;
    out->policy_resident += r->acting.arena_bytes; /* all tracks together see all instances */
    out->buffer = buffer_bytes(&r->buffer, out->mean, &out->buffer_resident);
    if (r->d.has_ahead) { /* the one acted in parallel with the one in training */
        uint64_t next = 0;
        out->buffer += buffer_bytes(&r->next, out->mean, &next);
        out->buffer_resident += next;
    }
    const dt_vector_desc vd = {.kind = r->env->kind, .n_kinds = r->env->n_kinds, .layout = l, .n = own};
    add_vector_bytes(&vd, &out->buffer, &out->buffer_resident);
    dt_rollout_replay_need(r, out->mean, &out->buffer, &out->buffer_resident);
    add_shared_bytes(r, out);
    return add_evaluation_bytes(r, t, out);
}

bool dt_rollout_call_cost(const dt_rollout *r, const double *mean, double n, uint32_t call, dt_call_cost *out_p)
{
    int64_t size[2 + DT_ENV_MAX_SYMBOLS];
    const uint32_t n_symbols = r->env->layout.spec.n_symbols;
    for (uint32_t k = 0; k <= n_symbols; k++) {
        size[k] = (int64_t)ceil(mean[k] * n);
    }
    size[1 + n_symbols] = (int64_t)ceil(n);
    return dt_policy_call_cost(r->acting.policy, call, size, out_p);
}
