/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.rollout/1", what a checkpoint keeps. Environments save nothing: an episode that is being played is
 * its seed and the actions so far, and playing them again gives the same bits. Two blobs:
 *
 *   rollout     collects, per place the running discounted return, per instance its episode and the actions in it,
 *               what acting carries from step to step;
 *               where a round is ahead of learning: by which parameters it is acted (train/policy.h: save)
 *   normaliser  statistics of observations and returns; taken over with weights alone, too
 */
#include <config.h>

#include "rl/rollout/rollout.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the blobs --------------------------------------------------------------------------------------------------- */

static void write_u64(dt_str *out, uint64_t v)
{
    dt_str_add_n(out, (const char *)&v, sizeof(v));
}

static void write_bytes(dt_str *out, const void *p, size_t bytes)
{
    dt_str_add_n(out, p, bytes);
}

dt_status dt_rollout_save(const dt_rollout *r, dt_str *out)
{
    write_u64(out, r->collects);
    write_u64(out, r->split.instances);
    write_u64(out, r->env->layout.spec.n_agents);
    write_u64(out, r->episodes.action_bytes);
    write_bytes(out, r->returns.running,
                (size_t)r->split.instances * r->env->layout.spec.n_agents * sizeof(*r->returns.running));
    for (uint32_t i = 0; i < r->split.instances; i++) {
        const dt_episode_log *l = &r->episodes.log[i];
        write_u64(out, l->episode);
        write_u64(out, l->steps);
        write_u64(out, l->is_over);
        write_bytes(out, l->action, l->steps * r->episodes.action_bytes);
    }
    write_bytes(out, r->carried, r->split.instances * r->carried_items * sizeof(float));
    if (r->ahead.restored != NULL) {
        write_bytes(out, r->ahead.restored, r->ahead.restored_bytes);
    } else if (r->ahead.is_begun) {
        DT_TRY(dt_policy_save(r->acting.policy, out));
    }
    return dt_str_status(out);
}

static void save_moments(const dt_moments *m, const char *name, dt_str *out)
{
    char text[48] = "";
    snprintf(text, sizeof(text), "%s", name);
    write_bytes(out, text, sizeof(text));
    write_u64(out, m->columns);
    write_bytes(out, &m->n, sizeof(m->n));
    write_bytes(out, m->mean, m->columns * sizeof(double));
    write_bytes(out, m->m2, m->columns * sizeof(double));
}

dt_status dt_rollout_save_normaliser(const dt_rollout *r, dt_str *out)
{
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        if (r->stats.port[i].columns > 0) {
            save_moments(&r->stats.port[i], r->env->layout.obs[i].port->name, out);
        }
    }
    save_moments(&r->returns.moments, "", out); /* no port is called so */
    return dt_str_status(out);
}

typedef struct cursor {
    const char *at;
    size_t left;
} cursor;

static dt_status read_bytes(cursor *c, void *to, size_t bytes)
{
    if (bytes > c->left) {
        return DT_FAIL(DT_EDATA, "the checkpoint's state of the rollout ends %zu bytes early", bytes - c->left);
    }
    if (bytes > 0) { /* an episode without steps has no place for actions */
        memcpy(to, c->at, bytes);
        c->at += bytes;
        c->left -= bytes;
    }
    return DT_OK;
}

static dt_status check_finite(const double *x, uint64_t n, const char *what)
{
    for (uint64_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            return DT_FAIL(DT_EDATA, "the checkpoint's state of the rollout has %s that is %g", what, x[i]);
        }
    }
    return DT_OK;
}

static dt_status load_episode(dt_rollout *r, cursor *c, dt_episode_log *l)
{
    uint64_t v[3];
    size_t bytes = 0;
    DT_TRY(read_bytes(c, v, sizeof(v)));
    if (!dt_mul_size(v[1], r->episodes.action_bytes, &bytes) || bytes > c->left) {
        return DT_FAIL(DT_EDATA,
                       "the checkpoint's state of the rollout records an episode of %llu steps, which it lacks",
                       (unsigned long long)v[1]);
    }
    const uint64_t most = r->env->n_mix == 0 ? r->env->layout.spec.max_steps : 0; /* of a mix each has its own */
    if (v[2] > 1 || (most > 0 && v[1] > most)) {
        return DT_FAIL(
            DT_EDATA,
            "the checkpoint's state of the rollout records an episode of %llu steps, and those of %s have up to "
            "%llu",
            (unsigned long long)v[1], r->env->comp->desc.id, (unsigned long long)most);
    }
    DT_TRY(dt_episode_log_reserve(l, r->episodes.action_bytes, v[1]));
    l->episode = v[0];
    l->steps = v[1];
    l->is_over = v[2] != 0;
    return read_bytes(c, l->action, bytes);
}

static dt_status load_ahead(dt_rollout *r, cursor *c)
{
    if (c->left == 0) {
        return DT_OK;
    }
    if (!r->d.has_ahead) {
        dt_log(DT_LOG_WARN, "the checkpoint was saved while a round was collected ahead, which this run does not do: "
                            "the next round uses the current parameters");
        return DT_OK;
    }
    r->ahead.restored_bytes = c->left;
    r->ahead.restored = dt_alloc(c->left);
    if (r->ahead.restored == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the parameters of the round under way");
    }
    return read_bytes(c, r->ahead.restored, c->left);
}

dt_status dt_rollout_load(dt_rollout *r, const void *data, size_t size)
{
    cursor c = {.at = data, .left = size};
    uint64_t v[4];
    const uint64_t A = r->env->layout.spec.n_agents;
    DT_TRY(read_bytes(&c, v, sizeof(v)));
    r->collects = v[0];
    r->buffer.key_base = r->collects * r->d.steps * r->split.instances;
    if (v[1] != r->split.instances || v[2] != A || v[3] != r->episodes.action_bytes) {
        dt_log(DT_LOG_WARN,
               "the checkpoint has %llu instances of %llu places, this run %u of %llu: its episodes start again",
               (unsigned long long)v[1], (unsigned long long)v[2], r->split.instances, (unsigned long long)A);
        return DT_OK;
    }
    DT_TRY(read_bytes(&c, r->returns.running, r->split.instances * A * sizeof(*r->returns.running)));
    DT_TRY(check_finite(r->returns.running, r->split.instances * A, "a running return"));
    for (uint32_t i = 0; i < r->split.instances; i++) {
        DT_TRY(load_episode(r, &c, &r->episodes.log[i]));
    }
    DT_TRY(read_bytes(&c, r->carried, r->split.instances * r->carried_items * sizeof(float)));
    for (size_t i = 0; i < r->split.instances * r->carried_items; i++) {
        if (!isfinite(r->carried[i])) {
            return DT_FAIL(DT_EDATA, "the checkpoint's state of the rollout carries a value that is %g",
                           (double)r->carried[i]);
        }
    }
    r->acting.is_restored = r->collects > 0;
    return load_ahead(r, &c);
}

bool dt_rollout_is_normalised(const dt_rollout *r)
{
    return dt_obs_stats_has_ports(&r->stats);
}

static dt_moments *find_moments(dt_rollout *r, const char *name)
{
    for (uint32_t i = 0; i < r->env->layout.spec.n_obs; i++) {
        if (r->stats.port[i].columns > 0 && strcmp(r->env->layout.obs[i].port->name, name) == 0) {
            return &r->stats.port[i];
        }
    }
    return name[0] == '\0' ? &r->returns.moments : NULL;
}

static dt_status check_moments(const dt_moments *m, const char *name)
{
    bool is_right = isfinite(m->n) && m->n >= 0;
    for (size_t d = 0; d < m->columns; d++) {
        is_right = is_right && isfinite(m->mean[d]) && isfinite(m->m2[d]) && m->m2[d] >= 0;
    }
    return is_right ? DT_OK
                    : DT_FAIL(DT_EDATA, "the checkpoint's statistics of %s are not counts, means and sums of squares",
                              name[0] != '\0' ? name : "returns");
}

dt_status dt_rollout_load_normaliser(dt_rollout *r, const void *data, size_t size)
{
    cursor c = {.at = data, .left = size};
    while (c.left > 0) {
        char name[48];
        uint64_t columns = 0;
        double n = 0;
        DT_TRY(read_bytes(&c, name, sizeof(name)));
        name[sizeof(name) - 1] = '\0';
        DT_TRY(read_bytes(&c, &columns, sizeof(columns)));
        DT_TRY(read_bytes(&c, &n, sizeof(n)));
        size_t bytes = 0;
        if (!dt_mul_size(columns, sizeof(double), &bytes) || bytes > c.left / 2) {
            return DT_FAIL(DT_EDATA, "the checkpoint's statistics of %s are truncated", name);
        }
        dt_moments *m = find_moments(r, name);
        if (m == NULL || m->columns != columns) {
            dt_log(DT_LOG_WARN, "the checkpoint's statistics of observation %s %s and are left out", name,
                   dt_rollout_is_normalised(r) ? "do not fit this environment"
                                               : "are of normalised ones, which this phase does not see,");
            c.at += 2 * bytes;
            c.left -= 2 * bytes;
            continue;
        }
        m->n = n;
        DT_TRY(read_bytes(&c, m->mean, bytes));
        DT_TRY(read_bytes(&c, m->m2, bytes));
        DT_TRY(check_moments(m, name));
    }
    return DT_OK;
}
