/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plugin/service/env_evaluation.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>

/* The last setting of a key, or NULL. */
static const char *find_last_setting(const dt_setting *set, uint32_t n, const char *key)
{
    while (n-- > 0) {
        if (strcmp(set[n].key, key) == 0) {
            return set[n].value;
        }
    }
    return NULL;
}

static dt_status reject_option(const dt_env *e, const dt_evaluation_option *o)
{
    dt_str from = {0};
    dt_origin_text(&o->origin, &from);
    const dt_status st =
        DT_FAIL(DT_ECONFIG, "evaluation.env.%s = %s (%s): %s sets %s of %s itself; leave it out", o->option->name,
                o->value, dt_str_text(&from), e->stage->d.phase->desc.id, o->option->name, e->comp->desc.id);
    dt_str_fini(&from);
    return st;
}

static dt_status read_training_value(const dt_env *e, const char *name, const char **out)
{
    char key[160];
    dt_origin unused;
    snprintf(key, sizeof(key), "%s.%s", e->comp->desc.id, name);
    return dt_config_get(e->stage->d.config, e->stage->d.index, key, out, &unused);
}

dt_status dt_env_set_evaluation_options(dt_env *e, const dt_setting *set, uint32_t n_phase, uint32_t n, dt_setting *out,
                                        uint32_t *n_out_p)
{
    dt_evaluation_option options[DT_EVALUATION_OPTIONS_MAX];
    uint32_t n_options = 0, n_out = 0;
    bool differs = false;
    DT_TRY(dt_config_evaluation_env(e->stage->d.config, e->stage->d.index, e->comp->desc.id, options, &n_options));
    for (uint32_t i = 0; i < n_options; i++) {
        const dt_evaluation_option *o = &options[i];
        const char *name = o->option->name;
        if (o->is_said && find_last_setting(set, n_phase, name) != NULL) {
            return reject_option(e, o);
        }
        if (find_last_setting(set, n, name) != NULL) {
            continue; /* the same in both, and not set */
        }
        dt_env_evaluation_option *t = &e->differing[e->n_differing++];
        *t = (dt_env_evaluation_option){.option = o->option, .value = o->value};
        DT_TRY(read_training_value(e, name, &t->trained));
        differs = differs || strcmp(t->value, t->trained) != 0;
        out[n_out++] = (dt_setting){name, o->value};
    }
    memcpy(out + n_out, set, n * sizeof(*set));
    *n_out_p = differs ? n_out + n : 0;
    return DT_OK;
}

void dt_env_describe_evaluation(const dt_env *e, dt_str *out)
{
    for (uint32_t i = 0; i < e->n_differing; i++) {
        const dt_env_evaluation_option *t = &e->differing[i];
        dt_str_addf(out, "%s%s = %s", i > 0 ? ", " : "", t->option->name, t->value);
        if (strcmp(t->value, t->trained) != 0) {
            dt_str_addf(out, " (training: %s)", t->trained);
        }
    }
}
