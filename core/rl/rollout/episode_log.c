/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/rollout/episode_log.h"

#include "base/err.h"
#include "base/mem.h"

#include <string.h>

dt_status dt_episode_logs_init(dt_episode_logs *x, const dt_env_spec *s, uint32_t instances)
{
    x->log = dt_alloc_n(instances, sizeof(*x->log));
    x->n = instances;
    x->action_bytes = s->n_agents * (s->n_heads * sizeof(int32_t) + s->n_continuous * sizeof(float));
    return x->log != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the episodes of %u instances", instances);
}

void dt_episode_logs_fini(dt_episode_logs *x)
{
    for (uint32_t i = 0; i < x->n && x->log != NULL; i++) {
        dt_free(x->log[i].action);
    }
    dt_free(x->log);
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

dt_status dt_episode_log_reserve(dt_episode_log *l, size_t action_bytes, uint64_t steps)
{
    if (steps <= l->cap) {
        return DT_OK;
    }
    const uint64_t cap = steps > 2 * l->cap ? steps : 2 * l->cap;
    size_t bytes = 0;
    char *grown = dt_mul_size(cap, action_bytes, &bytes) ? dt_realloc(l->action, bytes) : NULL;
    if (grown == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the actions of an episode of %llu steps",
                       (unsigned long long)steps);
    }
    l->action = grown;
    l->cap = cap;
    return DT_OK;
}

/* Actions as the environment got them; places without an agent got zeros. */
static void copy_actions(const dt_buffer *b, size_t action_bytes, size_t slot, char *out)
{
    const dt_env_spec *s = &b->l->spec;
    const size_t H = s->n_heads * sizeof(int32_t), C = s->n_continuous * sizeof(float);
    char *const f = out + s->n_agents * H;
    memset(out, 0, action_bytes);
    for (size_t a = 0; a < s->n_agents; a++) {
        const size_t at = slot * s->n_agents + a;
        if ((b->row[at] & (DT_ROW_ACTS | DT_ROW_OPPONENT)) != 0) {
            memcpy(out + a * H, b->act_i + at * s->n_heads, H);
            memcpy(f + a * C, b->executed_f + at * s->n_continuous, C);
        }
    }
}

dt_status dt_episode_logs_add_round(dt_episode_logs *x, const dt_buffer *b)
{
    for (uint32_t i = 0; i < x->n; i++) {
        dt_episode_log *l = &x->log[i];
        DT_TRY(dt_episode_log_reserve(l, x->action_bytes, l->steps + b->d.steps));
        for (uint32_t t = 0; t < b->d.steps; t++) {
            const size_t slot = dt_buffer_slot(b, t, i);
            if (l->is_over) { /* this step was a reset */
                l->episode++;
                l->steps = 0;
                l->is_over = false;
                continue;
            }
            copy_actions(b, x->action_bytes, slot, l->action + l->steps * x->action_bytes);
            l->steps++;
            l->is_over = b->done[slot] != 0;
        }
    }
    return DT_OK;
}

/* ---- playing again ------------------------------------------------------------------------------------------ */

/* The history of one of this rank's instances moves back by a step, and what it sees now becomes the last. */
static void shift_history(dt_buffer *b, uint32_t i, const char *record)
{
    const size_t A = b->l->spec.n_agents, M = b->d.instances;
    const size_t last = dt_buffer_slot(b, b->d.steps, i);
    const size_t back = b->d.window > 1 ? b->d.window - 1 : 1; /* at least one, for age */
    for (size_t slot = last - back * M; slot < last; slot += M) {
        memcpy(b->row + slot * A, b->row + (slot + M) * A, A);
        memcpy(b->flag + slot * A, b->flag + (slot + M) * A, A);
        memcpy(b->age + slot * A, b->age + (slot + M) * A, A * sizeof(*b->age));
        for (uint32_t k = 0; k < b->l->spec.n_obs; k++) {
            const dt_obs_port *o = &b->l->obs[k];
            const size_t bytes = A * o->row_bytes;
            if (o->symbol == 0 && !dt_obs_is_lists(o)) {
                memcpy(b->obs[k] + slot * bytes, b->obs[k] + (slot + M) * bytes, bytes);
            }
        }
    }
    for (uint32_t k = 0; k < b->n_carried; k++) {
        const size_t items = A * b->carried_columns[k];
        for (size_t slot = last - back * M; slot < last; slot += M) {
            memcpy(b->carried[k] + slot * items, b->carried[k] + (slot + M) * items, items * sizeof(float));
        }
    }
    memset(b->used, 0, sizeof(b->used)); /* what is ragged has no history */
    dt_buffer_store(b, b->d.steps, i, record);
}

/* The actions in a checkpoint: nothing but what it could have done goes to the environment. Places where no agent
 * acted have zeros. */
static dt_status check_action(const dt_layout *l, const dt_instance *x, const char *action, size_t a,
                              const char **why_p)
{
    const dt_env_spec *s = &l->spec;
    const bool acts = x->record[l->alive + a] != 0;
    const uint8_t *mask = (const uint8_t *)x->record + l->mask + a * l->n_choices;
    for (uint32_t h = 0; h < s->n_heads; h++) {
        int32_t choice;
        memcpy(&choice, action + (a * s->n_heads + h) * sizeof(choice), sizeof(choice));
        if (choice < 0 || choice >= (acts ? s->choices[h] : 1)) {
            *why_p = acts ? "an invalid choice" : "an action of an agent that does not act";
            return DT_EDATA;
        }
        if (acts && mask[choice] == 0) {
            *why_p = "a choice that the mask forbids";
            return DT_EDATA;
        }
        mask += s->choices[h];
    }
    for (uint32_t c = 0; c < s->n_continuous; c++) {
        float v;
        memcpy(&v, action + s->n_agents * s->n_heads * sizeof(int32_t) + (a * s->n_continuous + c) * sizeof(v),
               sizeof(v));
        if (acts ? !(v >= s->low[c] && v <= s->high[c]) : v != 0) {
            *why_p =
                acts ? "an action beyond the bounds of the environment" : "an action of an agent that does not act";
            return DT_EDATA;
        }
    }
    return DT_OK;
}

static dt_status check_actions(const dt_layout *l, const dt_instance *x, uint64_t step, const char *action)
{
    const char *why = NULL;
    for (size_t a = 0; a < l->spec.n_agents; a++) {
        if (check_action(l, x, action, a, &why) < 0) {
            return DT_FAIL(DT_EDATA,
                           "the checkpoint's state of the rollout, instance %u, step %llu, place %zu: it has %s; start "
                           "a new run with --init-from, which takes only the weights",
                           x->number, (unsigned long long)step, a, why);
        }
    }
    return DT_OK;
}

static dt_status replay_episode(const dt_episode_logs *logs, dt_vector *v, uint32_t i, dt_buffer *b, const char *id)
{
    const dt_layout *layout = b->l;
    const dt_env_spec *s = &layout->spec;
    dt_instance *x = dt_vector_instance(v, i);
    const dt_episode_log *l = &logs->log[x->number];
    const size_t H = s->n_agents * s->n_heads * sizeof(int32_t);
    x->episodes = l->episode + (l->is_over ? 1 : 0);
    if (l->is_over) {
        return DT_OK; /* the next step is a reset */
    }
    for (uint64_t t = 0; t <= l->steps; t++) {
        if (t > 0) {
            const char *action = l->action + (t - 1) * logs->action_bytes;
            DT_TRY(check_actions(layout, x, t, action));
            memcpy(x->record + layout->act_i, action, H);
            memcpy(x->record + layout->act_f, action + H, logs->action_bytes - H);
        }
        DT_TRY(dt_vector_step_instance(v, i));
        if (x->is_over) {
            return DT_FAIL(DT_EPLUGIN,
                           "environment %s, instance %u: episode %llu ended at step %llu when it was played again, and "
                           "had not before; the same seed and actions have to give the same episode",
                           id, x->number, (unsigned long long)l->episode, (unsigned long long)t);
        }
        if (b->d.window > 1 || b->n_carried > 0) {
            shift_history(b, i, x->record);
        }
        for (size_t a = 0; a < s->n_agents && t > 0; a++) {
            const size_t before = dt_buffer_slot(b, b->d.steps - 1, i) * s->n_agents + a;
            dt_buffer_carry_action(b, before,
                                   (const int32_t *)(const void *)(x->record + layout->act_i) + a * s->n_heads,
                                   (const float *)(const void *)(x->record + layout->act_f) + a * s->n_continuous);
        }
    }
    return DT_OK;
}

dt_status dt_episode_logs_play(const dt_episode_logs *x, dt_vector *v, dt_buffer *b, const char *id)
{
    for (uint32_t i = 0; i < dt_vector_size(v); i++) {
        const dt_status st = replay_episode(x, v, i, b, id);
        if (st < 0) {
            return DT_CONTEXT(st, "continuing the episodes of the checkpoint");
        }
    }
    return DT_OK;
}
