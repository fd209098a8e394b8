/* SPDX-License-Identifier: Apache-2.0
 *
 * Step inputs: small vectors that a phase sets by name. Each has a value for training and collecting and, where the
 * phase declares one, another for acting: evaluations and exports. See trainer.h.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/err.h"
#include "base/mem.h"

#include <string.h>

enum { MAX_NAME = 255 };

static dt_step_value *find_value(const dt_trainer *t, const char *name, bool is_acting)
{
    for (uint32_t i = 0; i < t->state.n_values; i++) {
        dt_step_value *v = &t->state.value[i];
        if (v->is_acting == is_acting && strcmp(v->name, name) == 0) {
            return v;
        }
    }
    return NULL;
}

/* For acting: the value that the phase declares for it, else that of training. */
static const dt_step_value *find_effective_value(const dt_trainer *t, const char *name, bool is_acting)
{
    const dt_step_value *v = is_acting ? find_value(t, name, true) : NULL;
    return v != NULL ? v : find_value(t, name, false);
}

/* What the evaluation computed with, for dt_trainer_evaluated_input. */
static dt_status record_evaluated(dt_trainer *t, const dt_step_value *v)
{
    dt_step_value *own = find_value(t, v->name, false);
    if (own->evaluated == NULL && (own->evaluated = dt_alloc_n(own->n, sizeof(float))) == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for step input %s", v->name);
    }
    memcpy(own->evaluated, v->value, own->n * sizeof(float));
    return DT_OK;
}

dt_status dt_bind_step_inputs(dt_trainer *t, dt_compiled *c)
{
    const char *const *name = NULL;
    const int64_t *count = NULL;
    const uint32_t n = dt_plan_step_inputs(c->plan, &name, &count);
    if (n > DT_TRAIN_MAX_STEP_INPUTS) {
        return DT_FAIL(DT_EPLUGIN, "the phase records %u step inputs, at most %d are possible", n,
                       DT_TRAIN_MAX_STEP_INPUTS);
    }
    for (uint32_t i = 0; i < n; i++) {
        const dt_step_value *v = find_effective_value(t, name[i], t->state.is_acting);
        if (v == NULL || find_value(t, name[i], false) == NULL) {
            return DT_FAIL(DT_EPLUGIN,
                           "the phase records step input %s, but start has not set it; call set of dtrain.train/1 in "
                           "start, after create (other calls may change it later)",
                           name[i]);
        }
        if ((int64_t)v->n != count[i]) {
            return DT_BREACH(DT_ESHAPE, "step input %s was recorded with %lld values and set with %u", name[i],
                             (long long)count[i], v->n);
        }
        DT_TRY(t->state.is_acting ? record_evaluated(t, v) : DT_OK);
        c->step_input[i] = v->value;
    }
    return DT_OK;
}

static dt_status add_value(dt_trainer *t, const char *name, uint32_t n, bool is_acting, dt_step_value **out_p)
{
    dt_step_value *grown = dt_realloc(t->state.value, (t->state.n_values + 1) * sizeof(*grown));
    if (grown == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for step input %s", name);
    }
    t->state.value = grown;
    dt_step_value v = {.name = dt_strdup(name),
                       .value = dt_alloc_n(n, sizeof(float)),
                       .initial = dt_alloc_n(n, sizeof(float)),
                       .n = n,
                       .is_acting = is_acting};
    if (v.name == NULL || v.value == NULL || v.initial == NULL) {
        dt_step_value_fini(&v);
        return DT_FAIL(DT_ENOMEM, "out of memory for step input %s", name);
    }
    *out_p = &t->state.value[t->state.n_values++];
    **out_p = v;
    return DT_OK;
}

void dt_step_value_fini(dt_step_value *v)
{
    dt_free(v->name);
    dt_free(v->value);
    dt_free(v->initial);
    dt_free(v->evaluated);
}

static dt_status set_value(dt_trainer *t, const char *name, bool is_acting, const float *value, uint32_t n)
{
    dt_step_value *v = find_value(t, name, is_acting);
    if (v == NULL && t->state.has_started && find_value(t, name, false) == NULL) {
        return DT_BREACH(DT_EINVAL, "no step input is called %s: start sets each one that the phase records", name);
    }
    if (v == NULL) {
        DT_TRY(add_value(t, name, n, is_acting, &v));
    }
    if (v->n != n) {
        return DT_BREACH(DT_ESHAPE, "step input %s has %u values, not %u", name, v->n, n);
    }
    memcpy(v->value, value, n * sizeof(float));
    if (!t->state.has_started) {
        memcpy(v->initial, value, n * sizeof(float));
    }
    return DT_OK;
}

dt_status dt_trainer_step_input_set(dt_trainer *t, const char *name, const float *value, uint32_t n)
{
    return set_value(t, name, false, value, n);
}

dt_status dt_trainer_acting_input_set(dt_trainer *t, const char *name, const float *value, uint32_t n)
{
    return set_value(t, name, true, value, n);
}

const float *dt_trainer_acting_input(const dt_trainer *t, const char *name, uint32_t *n_p)
{
    const dt_step_value *v = find_effective_value(t, name, true);
    *n_p = v != NULL ? v->n : 0;
    return v != NULL ? v->value : NULL;
}

const float *dt_trainer_evaluated_input(const dt_trainer *t, uint32_t i, const char **name_p, uint32_t *n_p)
{
    uint32_t at = 0;
    for (uint32_t k = 0; k < t->state.n_values; k++) {
        const dt_step_value *v = &t->state.value[k];
        if (v->evaluated != NULL && at++ == i) {
            *name_p = v->name;
            *n_p = v->n;
            return v->evaluated;
        }
    }
    return NULL;
}

void dt_trainer_acting_begin(dt_trainer *t)
{
    t->state.is_acting = true;
}

void dt_trainer_acting_end(dt_trainer *t)
{
    t->state.is_acting = false;
}

dt_status dt_trainer_check_started(dt_trainer *t)
{
    DT_TRY(t->train.plan != NULL ? dt_bind_step_inputs(t, &t->train) : DT_OK);
    t->state.has_started = true;
    return DT_OK;
}

/* ---- in a checkpoint --------------------------------------------------------------------------------------------- */

static size_t value_bytes(const dt_step_value *v)
{
    return v->n * sizeof(float);
}

static bool is_changed(const dt_step_value *v)
{
    return memcmp(v->value, v->initial, value_bytes(v)) != 0;
}

typedef struct saved_value { /* head of one; then its name, initial and value */
    uint32_t name_bytes, n, is_acting, trainer;
} saved_value;

dt_status dt_trainer_step_inputs_save(const dt_trainer *t, uint32_t trainer, dt_str *out)
{
    for (uint32_t i = 0; i < t->state.n_values; i++) {
        const dt_step_value *v = &t->state.value[i];
        if (is_changed(v)) {
            const saved_value head = {
                .name_bytes = (uint32_t)strlen(v->name), .n = v->n, .is_acting = v->is_acting, .trainer = trainer};
            dt_str_add_n(out, (const char *)&head, sizeof(head));
            dt_str_add_n(out, v->name, head.name_bytes);
            dt_str_add_n(out, (const char *)v->initial, value_bytes(v));
            dt_str_add_n(out, (const char *)v->value, value_bytes(v));
        }
    }
    return dt_str_status(out);
}

/* Where start sets what it set then, the value of the checkpoint follows; where it does not, the configuration is
 * another one, and its value stays. */
static void restore_value(const dt_trainer *t, const saved_value *head, const char *name, const char *values)
{
    const dt_step_value *v = find_value(t, name, head->is_acting != 0);
    if (v != NULL && v->n == head->n && memcmp(v->initial, values, value_bytes(v)) == 0) {
        memcpy(v->value, values + value_bytes(v), value_bytes(v));
    }
}

dt_status dt_trainer_step_inputs_load(dt_trainer *t, uint32_t trainer, const void *data, size_t size)
{
    const char *at = data, *end = at + size;
    while (at < end) {
        saved_value head;
        char name[MAX_NAME + 1];
        const size_t left = (size_t)(end - at);
        memcpy(&head, at, left < sizeof(head) ? left : sizeof(head));
        if (left < sizeof(head) || head.name_bytes > MAX_NAME || left - sizeof(head) < head.name_bytes ||
            (left - sizeof(head) - head.name_bytes) / (2 * sizeof(float)) < head.n) {
            return DT_FAIL(DT_EDATA, "the step inputs of the checkpoint end after %zu of their bytes",
                           (size_t)(at - (const char *)data));
        }
        at += sizeof(head);
        memcpy(name, at, head.name_bytes);
        name[head.name_bytes] = '\0';
        at += head.name_bytes;
        if (head.trainer == trainer) {
            restore_value(t, &head, name, at);
        }
        at += 2 * head.n * sizeof(float);
    }
    return DT_OK;
}
