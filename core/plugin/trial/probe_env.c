/* SPDX-License-Identifier: Apache-2.0
 *
 * An environment on trial. See probe_env.h.
 */
#include <config.h>

#include "plugin/trial/probe_env.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "dtrain/random.h"
#include "dtrain/svc/rng.h"
#include "rl/env/batch.h"
#include "rl/env/check.h"
#include "rl/env/process.h"
#include "plugin/service/env_worker.h"
#include "plugin/trial/guard.h"

#include <math.h>
#include <string.h>

/* ---- host ------------------------------------------------------------------------------------------------------ */

/* What an environment may ask for. */
static const void *find_probe_service(const dt_host *h, const char *id)
{
    const dt_stage *s = h->priv;
    return strcmp(id, DT_SVC_RNG) == 0 ? s->host.service(&s->host, id) : dt_loader_find_service(s->d.loader, id);
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

dt_status dt_probe_env_create(dt_probe_env *p, const dt_loaded *env, const void *config)
{
    memset(p, 0, sizeof(*p));
    p->env = env;
    p->ops = &env->ops.env;
    dt_services_init(&p->stage);
    dt_probe_host_init(&p->host);
    p->host.host.priv = &p->stage;
    p->host.host.service = find_probe_service;
    p->self = dt_alloc(env->desc.state_size > 0 ? env->desc.state_size : 1);
    if (p->self == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for the state of %s", env->desc.id);
    }
    p->is_created = true; /* destroy follows even a failed create */
    dt_error_clear();
    const dt_status st = env->ops.env.create(p->self, &p->host.host, config);
    return st > 0 ? DT_OK : st;
}

void dt_probe_env_destroy(dt_probe_env *p)
{
    if (p->is_created) {
        p->ops->destroy(p->self);
        p->is_created = false;
    }
    if (p->has_layout) {
        dt_layout_fini(&p->layout);
        p->has_layout = false;
    }
    if (p->ops != &dt_process_ops) {
        dt_free(p->self);
    }
    p->self = NULL;
    dt_str_fini(&p->request);
}

dt_status dt_probe_env_create_in_worker(dt_probe_env *p, const dt_loaded *env, const dt_config *tree, double timeout_s)
{
    memset(p, 0, sizeof(*p));
    p->env = env;
    p->ops = &dt_process_ops;
    DT_TRY(dt_env_write_request(tree, 0, -1, env, NULL, 0, &p->request));
    const double most_s = timeout_s > 0 ? timeout_s : 3600;
    const dt_process_desc d = {.id = env->desc.id,
                               .request = dt_str_text(&p->request),
                               .request_bytes = p->request.bytes,
                               .places = 1,
                               .timeout_s = most_s,
                               .startup_s = most_s,
                               .ring_bytes = UINT32_MAX,
                               .n_restarts = &p->n_unused,
                               .n_lost = &p->n_unused};
    dt_process_instance *x = NULL;
    DT_TRY(dt_process_start(&d, &x));
    p->self = x;
    p->is_created = true;
    DT_TRY(dt_process_receive_spec(x));
    DT_TRY(dt_probe_env_spec(p));
    return dt_process_attach(x, &p->layout);
}

dt_status dt_probe_env_spec(dt_probe_env *p)
{
    dt_env_spec spec = {.struct_size = sizeof(spec)};
    const dt_status st = p->ops->spec(p->self, &spec);
    DT_TRY(st > 0 ? DT_OK : st);
    p->has_layout = true;
    return dt_layout_init(&p->layout, p->env->desc.id, &spec);
}

/* ---- guarded buffers --------------------------------------------------------------------------------------------- */

typedef struct array {
    const char *name;
    size_t record, bytes; /* where it is in a record of the layout, how much of it counts */
    size_t at;            /* where it is in a block, between guards */
} array;

/* The arrays of a call after the observations, in this order. */
enum { SIZE, ALIVE, REWARD, COST, TERMINATED, TRUNCATED, METRIC, MASK, ACT_I, ACT_F };

/* A game in progress: two blocks of buffers take turns, so that a pointer kept from the last call shows. */
typedef struct game {
    const dt_layout *l;
    const dt_env_ops *ops;
    void *self;
    dt_trial *trial;
    array array[DT_PROBE_ENV_ARRAYS];
    const array *fixed; /* array + n_obs: [SIZE], [ALIVE], ... */
    uint32_t n_arrays;
    size_t block_bytes, guard_bytes; /* no guards in what a worker's record is copied to as a whole */
    uint8_t *block[2];
    uint32_t turn;
    char *record; /* a copy of what the last call left, for dt_check_record */
    uint8_t *acted;
    int32_t *drawn_i; /* the actions as given */
    float *drawn_f;
} game;

static void add_array(game *g, const char *name, size_t record, size_t bytes)
{
    array *a = &g->array[g->n_arrays];
    *a = (array){.name = name, .record = record, .bytes = bytes, .at = record + (g->n_arrays + 1) * g->guard_bytes};
    g->n_arrays++;
    g->block_bytes = (a->at + bytes + g->guard_bytes + 63) / 64 * 64;
}

static void list_arrays(game *g)
{
    const dt_layout *l = g->l;
    const dt_env_spec *s = &l->spec;
    const size_t A = s->n_agents;
    for (uint32_t i = 0; i < s->n_obs; i++) {
        add_array(g, s->obs[i].name, l->obs[i].offset, (size_t)l->obs[i].cap * l->obs[i].row_bytes);
    }
    g->fixed = g->array + g->n_arrays;
    add_array(g, "size", l->size, s->n_symbols * sizeof(int64_t));
    add_array(g, "alive", l->alive, A);
    add_array(g, "reward", l->reward, A * sizeof(float));
    add_array(g, "cost", l->cost, A * s->n_costs * sizeof(float));
    add_array(g, "terminated", l->terminated, A);
    add_array(g, "truncated", l->truncated, A);
    add_array(g, "metric", l->metric, s->n_metrics * sizeof(double));
    add_array(g, "mask", l->mask, A * l->n_choices);
    add_array(g, "act_i", l->act_i, A * s->n_heads * sizeof(int32_t));
    add_array(g, "act_f", l->act_f, A * s->n_continuous * sizeof(float));
}

static void game_fini(game *g)
{
    dt_free(g->block[0]);
    dt_free(g->block[1]);
    dt_free(g->record);
    dt_free(g->acted);
    dt_free(g->drawn_i);
    dt_free(g->drawn_f);
}

static dt_status game_init(game *g, const dt_probe_env *p)
{
    *g = (game){.l = &p->layout, .ops = p->ops, .self = p->self, .trial = p->trial};
    g->guard_bytes = p->ops == &dt_process_ops ? 0 : DT_GUARD_BYTES;
    list_arrays(g);
    g->block[0] = dt_alloc(g->block_bytes);
    g->block[1] = dt_alloc(g->block_bytes);
    g->record = dt_alloc(g->l->record_bytes + 1);
    g->acted = dt_alloc(g->l->spec.n_agents);
    g->drawn_i = dt_alloc(g->fixed[ACT_I].bytes + 1);
    g->drawn_f = dt_alloc(g->fixed[ACT_F].bytes + 1);
    if (g->block[0] == NULL || g->block[1] == NULL || g->record == NULL || g->acted == NULL || g->drawn_i == NULL ||
        g->drawn_f == NULL) {
        game_fini(g);
        return DT_FAIL(DT_ENOMEM, "no memory for buffers of %zu bytes", g->block_bytes);
    }
    return DT_OK;
}

/* The buffers of a call as the contract has them: outputs zero, masks one, actions given; guards between them. */
static void prepare_buffers(game *g, bool has_actions, void **obs, dt_env_io *io)
{
    uint8_t *block = g->block[g->turn % 2];
    dt_trial_report_call(g->trial, has_actions ? "step" : "reset");
    memset(g->block[0], DT_GUARD, g->block_bytes);
    memset(g->block[1], DT_GUARD, g->block_bytes);
    for (uint32_t i = 0; i < g->n_arrays; i++) {
        memset(block + g->array[i].at, &g->array[i] == &g->fixed[MASK], g->array[i].bytes);
    }
    memcpy(block + g->fixed[ACT_I].at, g->drawn_i, g->fixed[ACT_I].bytes);
    memcpy(block + g->fixed[ACT_F].at, g->drawn_f, g->fixed[ACT_F].bytes);
    for (uint32_t i = 0; i < g->l->spec.n_obs; i++) {
        obs[i] = block + g->array[i].at;
    }
    const array *f = g->fixed;
    *io = (dt_env_io){.struct_size = sizeof(*io),
                      .n_obs = g->l->spec.n_obs,
                      .obs = obs,
                      .size = (void *)(block + f[SIZE].at),
                      .alive = block + f[ALIVE].at,
                      .reward = (void *)(block + f[REWARD].at),
                      .cost = (void *)(block + f[COST].at),
                      .terminated = block + f[TERMINATED].at,
                      .truncated = block + f[TRUNCATED].at,
                      .metric = (void *)(block + f[METRIC].at),
                      .mask = block + f[MASK].at,
                      .act_i = has_actions ? (void *)(block + f[ACT_I].at) : NULL,
                      .act_f = has_actions ? (void *)(block + f[ACT_F].at) : NULL};
}

static bool is_all_bytes(const uint8_t *p, size_t n, uint8_t value)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] != value) {
            return false;
        }
    }
    return true;
}

/* Nothing was written outside the arrays, nor into the actions; then the record takes what is inside. */
static dt_status check_and_store_record(game *g, const char *call)
{
    const uint8_t *block = g->block[g->turn % 2], *before = g->block[(g->turn + 1) % 2];
    if (!is_all_bytes(before, g->block_bytes, DT_GUARD)) {
        return DT_FAIL(DT_EPLUGIN, "%s writes into a buffer of an earlier call; no pointer to buffers may be kept",
                       call);
    }
    DT_TRY(dt_check_guard_bytes(block, g->array[0].at, call, NULL, g->array[0].name));
    for (uint32_t i = 0; i < g->n_arrays; i++) {
        const array *a = &g->array[i], *next = i + 1 < g->n_arrays ? a + 1 : NULL;
        const size_t end = a->at + a->bytes, until = next != NULL ? next->at : g->block_bytes;
        if (g->guard_bytes > 0) {
            DT_TRY(dt_check_guard_bytes(block + end, until - end, call, a->name, next != NULL ? next->name : NULL));
        }
        memcpy(g->record + a->record, block + a->at, a->bytes);
    }
    if (memcmp(block + g->fixed[ACT_I].at, g->drawn_i, g->fixed[ACT_I].bytes) != 0 ||
        memcmp(block + g->fixed[ACT_F].at, g->drawn_f, g->fixed[ACT_F].bytes) != 0) {
        return DT_FAIL(DT_EPLUGIN, "%s changes the actions it was given", call);
    }
    g->turn++;
    return DT_OK;
}

/* Marks are 0 or 1; what an episode is measured by is a number, or NAN where there is none. */
static dt_status check_flags_and_metrics(const game *g, bool is_over)
{
    static const uint32_t marks[] = {ALIVE, TERMINATED, TRUNCATED, MASK};
    const dt_env_spec *s = &g->l->spec;
    for (size_t m = 0; m < sizeof(marks) / sizeof(marks[0]); m++) {
        const array *a = &g->fixed[marks[m]];
        const uint8_t *v = (const uint8_t *)g->record + a->record;
        for (size_t i = 0; i < a->bytes; i++) {
            if (v[i] > 1) {
                return DT_FAIL(DT_EPLUGIN, "%s[%zu] is %u; it is 0 or 1", a->name, i, v[i]);
            }
        }
    }
    const double *metric = (const double *)(const void *)(g->record + g->l->metric);
    for (uint32_t i = 0; i < s->n_metrics && is_over; i++) {
        if (isinf(metric[i])) {
            return DT_FAIL(DT_EPLUGIN,
                           "metric %s of an episode is %g; expected a finite number, or NAN if there is none",
                           s->metrics[i], metric[i]);
        }
    }
    return DT_OK;
}

/* What counts of every array: live rows, and metrics when an episode is over. */
static void hash_record(const game *g, bool is_over, uint64_t *hash)
{
    const int64_t *size = (const int64_t *)(const void *)(g->record + g->l->size);
    for (uint32_t i = 0; i < g->n_arrays; i++) {
        const array *a = &g->array[i];
        size_t bytes = a->bytes;
        if (i < g->l->spec.n_obs && g->l->obs[i].symbol > 0) {
            const dt_obs_port *o = &g->l->obs[i];
            bytes = (size_t)dt_layout_count_rows(g->l, o, size) * o->row_bytes;
        } else if (a == &g->fixed[METRIC] && !is_over) {
            bytes = 0;
        }
        hash[i] = dt_hash64(g->record + a->record, bytes, 0);
    }
}

enum { OTHER_SEEDS = 1000 }; /* seeds of an instance that is called in between begin there */

/* ---- playing ----------------------------------------------------------------------------------------------------- */

static float draw_number_within(dt_random *r, float low, float high)
{
    if (isfinite(low) && isfinite(high)) {
        const float x = (float)dt_random_between(r, (double)low, (double)high);
        return x < low ? low : (x > high ? high : x);
    }
    const double x = dt_random_normal(r);
    return isfinite(low) ? low + (float)fabs(x) : (isfinite(high) ? high - (float)fabs(x) : (float)x);
}

/* Random actions that the last record allows; they depend on it, on seed and step. */
static void draw_actions(game *g, uint64_t seed, uint32_t step)
{
    const dt_env_spec *s = &g->l->spec;
    const uint8_t *alive = (const uint8_t *)g->record + g->l->alive, *mask = (const uint8_t *)g->record + g->l->mask;
    dt_random r;
    dt_random_init(&r, seed, step);
    for (uint32_t a = 0; a < s->n_agents; a++) {
        g->acted[a] = alive[a] != 0;
        for (uint32_t h = 0; h < s->n_heads; h++) {
            int32_t n_allowed = 0, action = 0;
            for (int32_t c = 0; c < s->choices[h]; c++) {
                n_allowed += mask[c] != 0;
            }
            int32_t skip = alive[a] != 0 && n_allowed > 0 ? (int32_t)dt_random_below(&r, (uint32_t)n_allowed) : -1;
            for (int32_t c = 0; c < s->choices[h] && skip >= 0; c++) {
                action = c;
                skip -= mask[c] != 0;
            }
            g->drawn_i[a * s->n_heads + h] = action;
            mask += s->choices[h];
        }
        for (uint32_t i = 0; i < s->n_continuous; i++) {
            g->drawn_f[a * s->n_continuous + i] = alive[a] != 0 ? draw_number_within(&r, s->low[i], s->high[i]) : 0;
        }
    }
}

static dt_status reset_game(game *g, uint64_t seed, uint64_t *hash)
{
    void *obs[DT_ENV_MAX_OBS];
    dt_env_io io;
    prepare_buffers(g, false, obs, &io);
    dt_error_clear();
    const dt_status st = g->ops->reset(g->self, &io, seed);
    DT_TRY_PLUGIN(st, "reset");
    DT_TRY(check_and_store_record(g, "reset"));
    DT_TRY(dt_check_record(g->l, g->record, NULL, false));
    DT_TRY(check_flags_and_metrics(g, false));
    hash_record(g, false, hash);
    return DT_OK;
}

static dt_status step_game(game *g, uint64_t *hash, bool *is_over_p)
{
    void *obs[DT_ENV_MAX_OBS];
    dt_env_io io;
    prepare_buffers(g, true, obs, &io);
    dt_error_clear();
    const dt_status st = g->ops->step(g->self, &io);
    if (st < 0) {
        return *dt_error_text() != '\0' ? st : DT_FAIL(st, "step returns %s without a reason", dt_status_name(st));
    }
    if (st != DT_OK && st != DT_DONE) {
        return DT_FAIL(DT_EPLUGIN, "step returns %s, expected DT_OK or DT_DONE", dt_status_name(st));
    }
    *is_over_p = st == DT_DONE;
    DT_TRY(check_and_store_record(g, "step"));
    DT_TRY(dt_check_record(g->l, g->record, g->acted, *is_over_p));
    DT_TRY(check_flags_and_metrics(g, *is_over_p));
    hash_record(g, *is_over_p, hash);
    return DT_OK;
}

/* One call of another instance, under actions of its own. */
static dt_status disturb(game *other, uint64_t seed, uint32_t step, bool *is_over_p)
{
    uint64_t hash[DT_PROBE_ENV_ARRAYS];
    if (*is_over_p) {
        *is_over_p = false;
        return reset_game(other, seed, hash);
    }
    draw_actions(other, seed, step);
    return step_game(other, hash, is_over_p);
}

/* An episode of at most n_calls calls, the reset among them, until until_s; n_p: how many it took. other: an instance
 * that is called in between, or NULL. */
static dt_status play_episode(game *g, game *other, uint64_t seed, uint32_t n_calls, double until_s,
                              uint64_t (*hash)[DT_PROBE_ENV_ARRAYS], uint32_t *n_p, bool *is_over_p)
{
    bool is_other_over = true;
    const uint32_t max_steps = g->l->spec.max_steps;
    uint32_t n = 0;
    memset(g->drawn_i, 0, g->fixed[ACT_I].bytes);
    memset(g->drawn_f, 0, g->fixed[ACT_F].bytes);
    *is_over_p = false;
    dt_status st = reset_game(g, seed, hash[n++]);
    while (st >= 0 && n < n_calls && !*is_over_p && (n < 2 || dt_clock_s() < until_s)) {
        if (other != NULL) {
            DT_TRY(disturb(other, seed + OTHER_SEEDS, n, &is_other_over));
        }
        draw_actions(g, seed, n);
        st = step_game(g, hash[n++], is_over_p);
        if (st >= 0 && !*is_over_p && max_steps > 0 && n > max_steps) {
            st =
                DT_FAIL(DT_EPLUGIN, "the episode continues, but the spec limits it to %u steps (max_steps)", max_steps);
        }
    }
    *n_p = n;
    return st < 0 ? DT_CONTEXT(st, "seed %llu, step %u", (unsigned long long)seed, n - 1) : DT_OK;
}

dt_status dt_probe_env_play(dt_probe_env *p, dt_probe_trace *out)
{
    game g;
    DT_TRY(game_init(&g, p));
    memset(out, 0, sizeof(*out));
    dt_status st = DT_OK;
    uint32_t n = 0;
    const double until_s = dt_clock_s() + DT_PROBE_ENV_S;
    while (st == DT_OK && n + 1 < DT_PROBE_ENV_CALLS && (n == 0 || dt_clock_s() < until_s)) { /* a reset and a step */
        uint32_t n_calls = 0;
        bool is_over = false;
        out->first[out->n_episodes++] = n;
        st =
            play_episode(&g, NULL, out->n_episodes, DT_PROBE_ENV_CALLS - n, until_s, out->hash + n, &n_calls, &is_over);
        n += n_calls;
        out->n_steps += n_calls - 1;
        out->n_ended += is_over;
    }
    out->first[out->n_episodes] = n;
    out->is_cut = n + 1 < DT_PROBE_ENV_CALLS;
    game_fini(&g);
    return st;
}

static dt_status compare_hashes(const game *g, const uint64_t *is, const uint64_t *was, uint64_t seed, uint32_t call)
{
    for (uint32_t i = 0; i < g->n_arrays; i++) {
        if (is[i] != was[i]) {
            return DT_FAIL(
                DT_EPLUGIN,
                "seed %llu, %s %u: %s differs from what another instance gave for the same seed and actions; "
                "results must depend on nothing else",
                (unsigned long long)seed, call == 0 ? "reset, step" : "step", call, g->array[i].name);
        }
    }
    return DT_OK;
}

static dt_status replay(game *g, game *other, const dt_probe_trace *trace)
{
    uint64_t(*hash)[DT_PROBE_ENV_ARRAYS] = dt_alloc_n(DT_PROBE_ENV_CALLS, sizeof(*hash));
    dt_status st = hash != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "no memory for a second trial");
    for (uint32_t e = trace->n_episodes; e-- > 0 && st == DT_OK;) {
        const uint32_t n_calls = trace->first[e + 1] - trace->first[e];
        uint32_t n = 0;
        bool is_over = false;
        st = play_episode(g, other, e + 1, n_calls, INFINITY, hash, &n, &is_over);
        for (uint32_t i = 0; i < n && st == DT_OK; i++) {
            st = compare_hashes(g, hash[i], trace->hash[trace->first[e] + i], e + 1, i);
        }
        if (st == DT_OK && n != n_calls) {
            st = DT_FAIL(DT_EPLUGIN, "seed %u: the episode ends after %u steps, and in another instance after %u",
                         e + 1, n - 1, n_calls - 1);
        }
    }
    dt_free(hash);
    return st;
}

dt_status dt_probe_env_replay(dt_probe_env *p, dt_probe_env *other, const dt_probe_trace *trace)
{
    game g, o;
    DT_TRY(game_init(&g, p));
    dt_status st = other != NULL ? game_init(&o, other) : DT_OK;
    if (st == DT_OK) {
        st = replay(&g, other != NULL ? &o : NULL, trace);
        if (other != NULL) {
            game_fini(&o);
        }
    }
    game_fini(&g);
    return st;
}

/* ---- many at a time ---------------------------------------------------------------------------------------------- */

enum { MOST_TOGETHER = 2, GAP = (DT_GUARD_BYTES + 63) / 64 * 64 };

typedef struct together { /* instances that are stepped in one call */
    game g[MOST_TOGETHER];
    uint32_t n, n_active;
    uint32_t active[MOST_TOGETHER]; /* of g, in the order of the call */
    uint8_t *memory;
    size_t bytes;
} together;

static dt_status check_batch(const together *x, const dt_batch *b)
{
    const uint8_t *at = x->memory;
    for (uint32_t k = 0; k <= b->n_arrays; k++) {
        const uint8_t *next = k < b->n_arrays ? (const uint8_t *)b->array[k].begin : x->memory + x->bytes;
        DT_TRY(dt_check_guard_bytes(at, (size_t)(next - at), "step_many", k > 0 ? b->array[k - 1].name : NULL,
                                    k < b->n_arrays ? b->array[k].name : NULL));
        at = next + (k < b->n_arrays ? b->n * b->array[k].bytes : 0);
    }
    const dt_batch_array *act = &b->array[b->n_arrays - 2];
    for (uint32_t i = 0; i < b->n; i++) {
        const game *g = &x->g[x->active[i]];
        if (memcmp(act[0].begin + i * act[0].bytes, g->drawn_i, act[0].bytes) != 0 ||
            memcmp(act[1].begin + i * act[1].bytes, g->drawn_f, act[1].bytes) != 0) {
            return DT_FAIL(DT_EPLUGIN, "step_many changes the actions it was given");
        }
    }
    return DT_OK;
}

/* A step of all active ones; their records and statuses. */
static dt_status step_batch(together *x, dt_status *status)
{
    dt_batch b;
    void *self[MOST_TOGETHER];
    x->bytes = dt_batch_bytes(x->g[0].l, x->n_active, GAP);
    memset(x->memory, DT_GUARD, x->bytes);
    dt_batch_init(&b, x->g[0].l, x->n_active, GAP, (char *)x->memory);
    dt_batch_clear(&b);
    for (uint32_t i = 0; i < x->n_active; i++) {
        game *g = &x->g[x->active[i]];
        memcpy(g->record + g->l->act_i, g->drawn_i, g->fixed[ACT_I].bytes);
        memcpy(g->record + g->l->act_f, g->drawn_f, g->fixed[ACT_F].bytes);
        dt_batch_put_actions(&b, i, g->record);
        self[i] = g->self;
    }
    dt_trial_report_call(x->g[0].trial, "step_many");
    dt_error_clear();
    const dt_status st = x->g[0].ops->step_many(self, x->n_active, &b.io, status);
    DT_TRY_PLUGIN(st, "step_many");
    DT_TRY(check_batch(x, &b));
    for (uint32_t i = 0; i < x->n_active; i++) {
        dt_batch_take_outputs(&b, i, x->g[x->active[i]].record);
    }
    return DT_OK;
}

static dt_status compare_batched(game *g, const dt_probe_trace *trace, uint32_t e, uint32_t t, dt_status st)
{
    uint64_t hash[DT_PROBE_ENV_ARRAYS];
    const uint32_t n_calls = trace->first[e + 1] - trace->first[e];
    if (st != DT_OK && st != DT_DONE) {
        return st < 0 ? st : DT_FAIL(DT_EPLUGIN, "step_many reports status %d, expected DT_OK or DT_DONE", (int)st);
    }
    if (st == DT_DONE && t + 1 < n_calls) {
        return DT_FAIL(DT_EPLUGIN, "seed %u: step_many ends the episode after %u steps, step after %u", e + 1, t,
                       n_calls - 1);
    }
    DT_TRY(dt_check_record(g->l, g->record, g->acted, st == DT_DONE));
    hash_record(g, st == DT_DONE, hash);
    for (uint32_t i = 0; i < g->n_arrays; i++) {
        if (hash[i] != trace->hash[trace->first[e] + t][i]) {
            return DT_FAIL(DT_EPLUGIN,
                           "seed %u, step %u: %s differs between step_many and step; they must agree bit for "
                           "bit",
                           e + 1, t, g->array[i].name);
        }
    }
    return DT_OK;
}

/* Episodes e, e + 1, ... side by side, a step of those that continue in each call. */
static dt_status play_batch(together *x, const dt_probe_trace *trace, uint32_t e, uint32_t n)
{
    uint64_t hash[DT_PROBE_ENV_ARRAYS];
    dt_status status[MOST_TOGETHER];
    for (uint32_t k = 0; k < n; k++) {
        memset(x->g[k].drawn_i, 0, x->g[k].fixed[ACT_I].bytes);
        memset(x->g[k].drawn_f, 0, x->g[k].fixed[ACT_F].bytes);
        DT_TRY(reset_game(&x->g[k], e + k + 1, hash));
    }
    for (uint32_t t = 1; t < DT_PROBE_ENV_CALLS; t++) {
        x->n_active = 0;
        for (uint32_t k = 0; k < n; k++) {
            if (t < trace->first[e + k + 1] - trace->first[e + k]) {
                draw_actions(&x->g[k], e + k + 1, t);
                x->active[x->n_active++] = k;
            }
        }
        if (x->n_active == 0) {
            break;
        }
        DT_TRY(step_batch(x, status));
        for (uint32_t i = 0; i < x->n_active; i++) {
            DT_TRY(compare_batched(&x->g[x->active[i]], trace, e + x->active[i], t, status[i]));
        }
    }
    return DT_OK;
}

dt_status dt_probe_env_play_many(dt_probe_env *const *p, uint32_t n, const dt_probe_trace *trace)
{
    together x = {.n = 0};
    dt_status st = DT_OK;
    for (; x.n < n && x.n < MOST_TOGETHER && st == DT_OK; x.n += st == DT_OK) {
        st = game_init(&x.g[x.n], p[x.n]);
    }
    x.bytes = st == DT_OK ? dt_batch_bytes(x.g[0].l, x.n, GAP) : 0;
    x.memory = dt_alloc(x.bytes + 1);
    if (st == DT_OK && x.memory == NULL) {
        st = DT_FAIL(DT_ENOMEM, "no memory for buffers of %zu bytes", x.bytes);
    }
    for (uint32_t e = 0; e < trace->n_episodes && st == DT_OK; e += x.n) {
        st = play_batch(&x, trace, e, trace->n_episodes - e < x.n ? trace->n_episodes - e : x.n);
    }
    for (uint32_t i = 0; i < x.n; i++) {
        game_fini(&x.g[i]);
    }
    dt_free(x.memory);
    return st;
}
