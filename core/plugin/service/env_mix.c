/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plugin/service/env_mix.h"

#include "base/err.h"
#include "base/mem.h"

#include <string.h>

dt_status dt_env_mix_read(dt_env *e)
{
    const dt_stage *s = e->stage;
    uint32_t n = 0;
    while (s->d.trained_on == NULL && e->opts.mix[n] != NULL) {
        n++;
    }
    if (n > (uint64_t)e->opts.instances) {
        return DT_FAIL(DT_ECONFIG,
                       "env.mix names %u environments, and env.instances = %lld: each needs an instance; raise "
                       "env.instances, best to a multiple of %u",
                       n, (long long)e->opts.instances, n);
    }
    if (n == 0) {
        return DT_OK;
    }
    e->mix = dt_alloc_n(n, sizeof(*e->mix));
    if (e->mix == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u environments", n);
    }
    e->n_mix = n;
    for (uint32_t i = 0; i < n; i++) {
        dt_env_entry *x = &e->mix[i];
        const char *id = dt_config_mix_id(s->d.config, s->d.index, i);
        x->text = e->opts.mix[i];
        const dt_status st = dt_loader_find(s->d.loader, DT_KIND_ENV, id != NULL ? id : "", &x->comp);
        if (st < 0) {
            return DT_CONTEXT(st, "env.mix, entry %u, \"%s\"", i + 1, x->text);
        }
    }
    return DT_OK;
}

void dt_env_mix_fini(dt_env *e)
{
    for (uint32_t i = 0; i < e->n_mix; i++) {
        dt_str_fini(&e->mix[i].setup.request);
        dt_free(e->mix[i].setup.config);
    }
    dt_free(e->mix);
    dt_free(e->kind);
    e->mix = NULL;
    e->kind = NULL;
    e->n_mix = e->n_kinds = 0;
}

dt_status dt_env_mix_options(const dt_env *e, uint32_t i, const dt_setting *set, uint32_t n, dt_setting *out,
                             uint32_t *n_p)
{
    const dt_env_entry *x = &e->mix[i];
    const dt_stage *s = e->stage;
    DT_TRY(dt_config_mix_options(s->d.config, s->d.index, i, x->comp->desc.id, out, n_p));
    for (uint32_t k = 0; k < *n_p; k++) {
        for (uint32_t p = 0; p < n; p++) {
            if (strcmp(out[k].key, set[p].key) == 0) {
                return DT_FAIL(DT_ECONFIG,
                               "env.mix, entry %u, \"%s\": %s sets %s of its environments itself; leave it out", i + 1,
                               x->text, s->d.phase->desc.id, set[p].key);
            }
        }
    }
    return DT_OK;
}

static dt_status fail_specs_differ(const dt_env *e, const dt_env_spec *spec)
{
    const double was = e->layout.spec.step_s, is = spec->step_s;
    DT_TRY(dt_layout_compare_env(&e->layout, spec));
    return memcmp(&was, &is, sizeof(was)) == 0 ? DT_OK : DT_FAIL(DT_ECONFIG, "a step of %g s instead of %g s", is, was);
}

/* Options by which nets of different sizes get the same ones: "max_signals" of an environment and those like it. */
static void append_sizes(const dt_component *c, dt_str *out)
{
    for (const dt_option *o = c->options; o != NULL && o->name != NULL; o++) {
        if (strncmp(o->name, "max_", 4) == 0 && strcmp(o->dfl, "0") == 0) {
            dt_str_addf(out, "%s%s.%s", out->bytes > 0 ? ", " : "", c->id, o->name);
        }
    }
}

dt_status dt_env_mix_compare(const dt_env *e, uint32_t number, const dt_env_spec *spec)
{
    const dt_env_entry *x = &e->mix[number % e->n_mix], *first = &e->mix[0];
    dt_str sizes = {0};
    if (fail_specs_differ(e, spec) == DT_OK) {
        return DT_OK;
    }
    if (x->comp == first->comp) {
        append_sizes(&x->comp->desc, &sizes);
    }
    const dt_status st = DT_CONTEXT(DT_ECONFIG, "env.mix: %s must match %s, the first one%s%s", x->text, first->text,
                                    sizes.bytes > 0 ? "; give both the larger size by " : "", dt_str_text(&sizes));
    dt_str_fini(&sizes);
    return st;
}

dt_status dt_env_mix_compare_evaluation(const dt_env *e, const dt_env_spec *spec)
{
    return fail_specs_differ(e, spec) < 0
               ? DT_CONTEXT(DT_ECONFIG, "env.id = %s, which evaluations are in, must match %s of env.mix",
                            e->comp->desc.id, e->mix[0].text)
               : DT_OK;
}

void dt_env_describe_mix(const dt_env *e, dt_str *out)
{
    const uint32_t all = (uint32_t)e->opts.instances;
    for (uint32_t i = 0; i < e->n_mix; i++) {
        dt_str_addf(out, "%s%u of %s", i > 0 ? ", " : "", (all - i + e->n_mix - 1) / e->n_mix, e->mix[i].text);
    }
}
