/* SPDX-License-Identifier: Apache-2.0
 *
 * env_gym: environments written in Python with the API of Gymnasium (Towers et al. 2024), or PettingZoo's parallel API
 * (Terry et al. 2021). An interpreter of the user's runs env_gym_worker.py; nothing of Python is linked, and the plugin
 * builds without it.
 *
 *   obs        one port "obs" [A D], or a port per part (ports = "named"): numbers as f32, Discrete one-hot, images of
 *              uint8 divided by 255, as u8 in a port of their own
 *   actions    Discrete, MultiDiscrete, MultiBinary: discrete ones; Box: continuous ones, in the order of the space
 *   mask       info["action_mask"], or "action_mask" of a Dict observation
 *   end        terminated and truncated as the environment returns them; its last observation is kept
 *   cost       info[name] of each of costs; metrics: info[name] of the last step of an episode
 *   seed       reset(seed), of 31 bits: every episode has its own, so that episodes do not depend on each other
 *
 * An exception is DT_EBROKEN: the host makes another instance, and repeats the episode. Gymnasium's vector environments
 * are not used: their instances share random numbers, and results would depend on which of them share a process.
 */
#include "env_gym.h"

#include "dtrain/ext/isolated.h"

#include <stdlib.h>

typedef struct state {
    const dt_host *h;
    config config;
    python *p;
    uint32_t slot;
} state;

static const char *const ports[] = {"flat", "named", "images", NULL};
static const char *const bounds[] = {"warn", "error", "ignore", NULL};

static const dt_option options[] = {
    DT_OPTION_WITH(config, id, DT_OPT_STR, NULL, "1", 0, 0, NULL,
                   "the environment: an id of Gymnasium (\"CartPole-v1\", \"ale_py:ALE/Pong-v5\"), or module:function "
                   "or FILE.py:CLASS that returns one",
                   DT_OPT_REQUIRED | DT_OPT_CODE, NULL),
    DT_OPTION_WITH(config, kwargs, DT_OPT_STR, "", "1", 0, 0, NULL,
                   "its arguments, as {\"continuous\": true} or continuous=true,gravity=-9.8", DT_OPT_CODE, NULL),
    DT_OPTION_WITH(config, wrappers, DT_OPT_STR, "", "1", 0, 0, NULL,
                   "wrappers, innermost first, separated by commas: module:Class or a name of gymnasium.wrappers, each "
                   "with arguments as TimeLimit{\"max_episode_steps\": 200}",
                   DT_OPT_CODE, NULL),
    DT_OPTION_WITH(config, interpreter, DT_OPT_STR, "", "1", 0, 0, NULL,
                   "Python: a program, or the folder of a virtual environment; empty: python3 of PATH", DT_OPT_CODE,
                   NULL),
    DT_OPTION_WITH(config, path, DT_OPT_PATH, "", "1", 0, 0, NULL,
                   "folder that modules and files are searched in first; empty: the current one", DT_OPT_CODE, NULL),
    DT_OPTION(config, costs, DT_OPT_STR, "", "1", 0, 0, NULL,
              "keys of info that are costs of a step, at least 0, such as cost of Safety-Gymnasium"),
    DT_OPTION(config, metrics, DT_OPT_STR, "", "1", 0, 0, NULL,
              "keys of info that are reported of the last step of an episode, such as is_success"),
    DT_OPTION(config, teams, DT_OPT_STR, "", "1", 0, 0, NULL,
              "PettingZoo: prefixes of agents' names, a team each, such as adversary,agent; empty: one team"),
    DT_OPTION(config, ports, DT_OPT_ENUM, "flat", NULL, 0, 0, ports,
              "flat: observations are one row of numbers; images: arrays of uint8, or of three dimensions or more, are "
              "ports of their own; named: each part of a Dict or Tuple is a port of its shape"),
    DT_OPTION(config, bounds, DT_OPT_ENUM, "warn", NULL, 0, 0, bounds,
              "observations outside of their space: warn once, within the first 1000 of an instance; error: always "
              "checked; ignore"),
    DT_OPTION_WITH(config, per_process, DT_OPT_I64, "1024", "1", 1, GYM_MOST_SLOTS, NULL,
                   "instances of a worker process that share a Python process", DT_OPT_RUNTIME, NULL),
    DT_OPTION_WITH(config, timeout_s, DT_OPT_F64, "120", "s", 0.01, 1e6, NULL,
                   "timeout of a step or reset; below env.timeout_s the message has a traceback", DT_OPT_RUNTIME, NULL),
    DT_OPTION_WITH(config, startup_s, DT_OPT_F64, "120", "s", 0.01, 1e6, NULL,
                   "timeout of the start of Python and of the creation of an instance", DT_OPT_RUNTIME, NULL),
    DT_OPTION_END};

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    s->h = h;
    s->config = *(const config *)cfg;
    return python_acquire(h, &s->config, &s->p, &s->slot);
}

static void destroy(void *self)
{
    state *s = self;
    if (s->p != NULL) {
        python_release(s->p, s->slot);
    }
    s->p = NULL;
}

static dt_status spec(const void *self, dt_env_spec *out)
{
    const state *s = self;
    const uint32_t bytes = out->struct_size;
    *out = s->p->spec;
    out->struct_size = bytes;
    return DT_OK;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static char *part_of(const state *s, uint64_t offset)
{
    return s->p->map + s->slot * s->p->m.stride + offset;
}

/* k: number of the instance in the arrays of io */
static void write_actions(const state *s, const dt_env_io *io, size_t k)
{
    const dt_env_spec *e = &s->p->spec;
    const size_t A = e->n_agents, n_i = A * e->n_heads, n_f = A * e->n_continuous;
    if (n_i > 0) {
        memcpy(part_of(s, s->p->m.act_i), io->act_i + k * n_i, n_i * sizeof(int32_t));
    }
    if (n_f > 0) {
        memcpy(part_of(s, s->p->m.act_f), io->act_f + k * n_f, n_f * sizeof(float));
    }
}

static void copy(void *to, const state *s, uint64_t offset, size_t k, size_t bytes)
{
    if (bytes > 0) {
        memcpy((char *)to + k * bytes, part_of(s, offset), bytes);
    }
}

static dt_status read_record(const state *s, const dt_env_io *io, size_t k, bool is_step)
{
    const python *p = s->p;
    const dt_env_spec *e = &p->spec;
    const gym_map *m = &p->m;
    const size_t A = e->n_agents;
    int32_t status = GYM_FAILED;
    memcpy(&status, part_of(s, m->status), sizeof(status));
    if (status != GYM_OK && status != GYM_DONE) {
        return python_error(s->h, p, s->slot);
    }
    for (uint32_t i = 0; i < e->n_obs; i++) {
        copy(io->obs[i], s, m->obs[i], k, p->port_bytes[i]);
    }
    copy(io->alive, s, m->alive, k, A);
    copy(io->mask, s, m->mask, k, A * p->n_choices);
    if (is_step) {
        copy(io->reward, s, m->reward, k, A * sizeof(float));
        copy(io->cost, s, m->cost, k, A * e->n_costs * sizeof(float));
        copy(io->terminated, s, m->terminated, k, A);
        copy(io->truncated, s, m->truncated, k, A);
    }
    if (status == GYM_DONE) {
        copy(io->metric, s, m->metric, k, e->n_metrics * sizeof(double));
    }
    return status == GYM_DONE ? DT_DONE : DT_OK;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* 31 bits, which every generator of random numbers takes (the finaliser of Steele et al. 2014, SplitMix). */
static uint64_t short_seed(uint64_t seed)
{
    if (seed >> 31 != 0) {
        seed = (seed ^ (seed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        seed = (seed ^ (seed >> 27)) * UINT64_C(0x94d049bb133111eb);
        seed = (seed ^ (seed >> 31)) >> 33;
    }
    return seed;
}

static dt_status call(const state *s, const dt_env_io *io, uint32_t kind, uint32_t n, const void *payload, size_t bytes)
{
    python *p = s->p;
    dt_status st = python_send(p, kind, n, payload, bytes);
    if (st == DT_OK) {
        st = python_receive(p, s->config.timeout_s, kind == GYM_STEP ? "a step" : "a reset");
    }
    if (st == DT_OK) {
        st = read_record(s, io, 0, kind == GYM_STEP);
        python_log_notes(p);
    }
    return st;
}

static dt_status reset(void *self, const dt_env_io *io, uint64_t seed)
{
    const state *s = self;
    const uint64_t payload = short_seed(seed);
    pthread_mutex_lock(&s->p->lock);
    const dt_status st = call(s, io, GYM_RESET, s->slot, &payload, sizeof(payload));
    pthread_mutex_unlock(&s->p->lock);
    return st;
}

static dt_status step(void *self, const dt_env_io *io)
{
    const state *s = self;
    pthread_mutex_lock(&s->p->lock);
    write_actions(s, io, 0);
    const dt_status st = call(s, io, GYM_STEP, 1, &s->slot, sizeof(s->slot));
    pthread_mutex_unlock(&s->p->lock);
    return st;
}

/* ---- many at once ------------------------------------------------------------------------------------------------ */

/* The processes of some instances, each once, in the order in which all threads lock them. */
static uint32_t list_processes(void *const *self, uint32_t n, python **p)
{
    uint32_t n_p = 0;
    for (uint32_t i = 0; i < n; i++) {
        python *is = ((const state *)self[i])->p;
        uint32_t at = n_p;
        while (at > 0 && p[at - 1]->number > is->number) {
            at--;
        }
        if (at > 0 && p[at - 1] == is) {
            continue;
        }
        memmove(p + at + 1, p + at, (n_p - at) * sizeof(*p));
        p[at] = is;
        n_p++;
    }
    return n_p;
}

static dt_status send_steps(void *const *self, uint32_t n, const dt_env_io *io, python *p, uint32_t *slot)
{
    uint32_t n_slots = 0;
    for (uint32_t i = 0; i < n; i++) {
        const state *s = self[i];
        if (s->p == p) {
            write_actions(s, io, i);
            slot[n_slots++] = s->slot;
        }
    }
    return python_send(p, GYM_STEP, n_slots, slot, n_slots * sizeof(*slot));
}

static dt_status step_many(void *const *self, uint32_t n, const dt_env_io *io, dt_status *status)
{
    const state *first = self[0];
    python **p = malloc(n * sizeof(*p));
    uint32_t *slot = malloc(n * sizeof(*slot));
    dt_status *sent = malloc(n * sizeof(*sent));
    const bool has_room = p != NULL && slot != NULL && sent != NULL;
    const uint32_t n_p = has_room ? list_processes(self, n, p) : 0;
    for (uint32_t k = 0; k < n_p; k++) { /* all compute side by side */
        pthread_mutex_lock(&p[k]->lock);
        sent[k] = send_steps(self, n, io, p[k], slot);
    }
    for (uint32_t k = 0; k < n_p; k++) {
        dt_status st = sent[k] == DT_OK ? python_receive(p[k], first->config.timeout_s, "a step") : sent[k];
        for (uint32_t i = 0; i < n; i++) {
            const state *s = self[i];
            if (s->p == p[k]) {
                status[i] = st == DT_OK ? read_record(s, io, i, true) : st;
            }
        }
        if (st == DT_OK) {
            python_log_notes(p[k]);
        }
        pthread_mutex_unlock(&p[k]->lock);
    }
    free(sent);
    free(slot);
    free(p);
    return has_room ? DT_OK : DT_FAIL_H(first->h, DT_ENOMEM, "no memory for a step of %u instances", n);
}

static const void *extension(const char *id)
{
    if (strcmp(id, DT_EXT_DOCTOR) == 0) {
        return &gym_doctor;
    }
    return strcmp(id, DT_EXT_ISOLATED) == 0 ? DT_EXT_ISOLATED : NULL;
}

DT_ENV_DEFINE(component, "env_gym", "any environment of Gymnasium or PettingZoo, in a Python of yours",
              "Towers et al. 2024 (Gymnasium); Terry et al. 2021 (PettingZoo)", config, state, options,
              DT_OPS(.create = create, .spec = spec, .reset = reset, .step = step, .destroy = destroy,
                     .step_many = step_many),
              .flags = DT_COMP_DETERMINISTIC, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "env_gym", "1.0", "dtrain", "Apache-2.0");
