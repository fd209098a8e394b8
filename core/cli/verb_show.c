/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain show`: the options of a component or of a section, as they are set. See tools.h.
 */
#include <config.h>

#include "cli/cli.h"
#include "cli/plugin_verbs.h"
#include "run/session.h"
#include "cli/tools.h"
#include "plugin/trial/probe.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/print.h"
#include "config/schema.h"

#include <stdio.h>
#include <string.h>

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* ---- options --------------------------------------------------------------------------------------------------- */

static void append_option_text(const dt_option_view *v, dt_str *out)
{
    const dt_option *o = v->option;
    dt_str origin = {0}, accepts = {0};
    dt_origin_text(&v->origin, &origin);
    dt_option_accepts(o, &accepts);
    const char *quote = o->type == DT_OPT_STR || o->type == DT_OPT_PATH || o->type == DT_OPT_ENUM ? "\"" : "";
    bool is_set = v->value != NULL;
    bool has_unit = o->unit != NULL && o->unit[0] != '\0' && strcmp(o->unit, "1") != 0;
    dt_str_addf(out, "  %s = %s%s%s", o->name, is_set ? quote : "", is_set ? v->value : "(not set, required)",
                is_set ? quote : "");
    dt_str_addf(out, "    from %s\n", is_set ? dt_str_text(&origin) : "nowhere");
    dt_str_addf(out, "      %s; %s%s%s", or_empty(o->help), dt_str_text(&accepts), has_unit ? ", unit " : "",
                has_unit ? o->unit : "");
    if (o->dfl != NULL) {
        dt_str_addf(out, "; default %s", o->dfl[0] != '\0' ? o->dfl : "empty");
    }
    dt_str_add(out, "\n");
    dt_str_fini(&origin);
    dt_str_fini(&accepts);
}

static void append_option_json(const dt_option_view *v, dt_json_out *out)
{
    const dt_option *o = v->option;
    dt_str origin = {0};
    dt_origin_text(&v->origin, &origin);
    dt_json_obj(out, NULL);
    dt_json_str(out, "name", o->name);
    dt_json_str(out, "type", dt_option_type_name(o));
    if (v->value == NULL) {
        dt_json_null(out, "value");
    } else {
        dt_option_json(o, v->value, "value", out);
    }
    dt_json_str(out, "origin", v->value != NULL ? dt_str_text(&origin) : "");
    if (o->dfl != NULL) {
        dt_json_str(out, "default", o->dfl);
    }
    dt_json_str(out, "unit", or_empty(o->unit));
    dt_json_str(out, "help", or_empty(o->help));
    if (o->type == DT_OPT_I64 || o->type == DT_OPT_F64) {
        dt_json_f64(out, "min", o->min); /* null when open */
        dt_json_f64(out, "max", o->max);
    }
    if (o->type == DT_OPT_ENUM) {
        dt_json_arr(out, "choices");
        for (const char *const *choice = o->choices; *choice != NULL; choice++) {
            dt_json_str(out, NULL, *choice);
        }
        dt_json_end(out, ']');
    }
    dt_json_end(out, '}');
    out->s->failed = out->s->failed || origin.failed;
    dt_str_fini(&origin);
}

static void show_options(const dt_config *c, int64_t phase, const char *section, dt_json_out *json, dt_str *out)
{
    dt_option_view v;
    if (json != NULL) {
        dt_json_arr(json, "options");
    }
    for (uint32_t i = 0; dt_config_option_at(c, phase, section, i, &v) == DT_OK; i++) {
        if (i == 0 && json == NULL) {
            dt_str_add(out, "options\n");
        }
        if (json != NULL) {
            append_option_json(&v, json);
        } else {
            append_option_text(&v, out);
        }
    }
    if (json != NULL) {
        dt_json_end(json, ']');
    }
}

/* What a plugin's defaults, profiles and files make of dtrain's own sections in a phase; without what is built in. */
static void show_sections(const dt_config *c, int64_t phase, dt_json_out *json, dt_str *out)
{
    dt_option_view v;
    const char *section = NULL;
    if (json != NULL) {
        dt_json_obj(json, "sections");
    } else {
        dt_str_add(out, "other sections, where a phase of this plugin differs from the built-in defaults\n");
    }
    for (uint32_t s = 0; (section = dt_config_host_section(s)) != NULL; s++) {
        if (json != NULL) {
            dt_json_arr(json, section);
        }
        for (uint32_t i = 0; dt_config_option_at(c, phase, section, i, &v) == DT_OK; i++) {
            if (v.value == NULL || v.origin.layer == DT_FROM_BUILTIN) {
                continue;
            }
            if (json != NULL) {
                append_option_json(&v, json);
                continue;
            }
            dt_str origin = {0};
            dt_origin_text(&v.origin, &origin);
            dt_str_addf(out, "  %s.%s = %s    from %s\n", section, v.option->name, v.value, dt_str_text(&origin));
            out->failed = out->failed || origin.failed;
            dt_str_fini(&origin);
        }
        if (json != NULL) {
            dt_json_end(json, ']');
        }
    }
    if (json != NULL) {
        dt_json_end(json, '}');
    }
}

/* ---- ports ----------------------------------------------------------------------------------------------------- */

/* Ports exist only after create, so a trial model of typical sizes shows them. A model that refuses them has none. */
static void show_ports(const dt_loaded *comp, const void *config, dt_json_out *json, dt_str *out)
{
    dt_probe probe;
    if (dt_probe_create(&probe, comp, config) == DT_OK && dt_probe_ports(&probe) == DT_OK) {
        if (json == NULL) {
            dt_str_add(out, "ports (with H 16, T 3, F 4; a phase fixes its own sizes)\n");
        }
        dt_show_ports(json != NULL ? "inputs" : "input", probe.in, probe.n_in, json, out);
        dt_show_ports(json != NULL ? "outputs" : "output", probe.out, probe.n_out, json, out);
    }
    dt_probe_destroy(&probe);
}

/* ---- the verb -------------------------------------------------------------------------------------------------- */

static void append_head_text(const dt_loaded *comp, dt_str *out)
{
    const dt_plugin *p = &comp->plugin->desc;
    dt_str_addf(out, "%s: %s%s%s\n", comp->desc.id, dt_kind_name(comp->desc.kind),
                comp->desc.role != NULL ? ", role " : "", or_empty(comp->desc.role));
    dt_str_addf(out, "  %s\n", or_empty(comp->desc.summary));
    dt_str_addf(out, "  reference %s\n", or_empty(comp->desc.reference));
    dt_str_addf(out, "  plugin    %s %s, %s, %s, ABI %u.%u\n", p->name, or_empty(p->version), or_empty(p->vendor),
                or_empty(p->license), p->abi_major, p->abi_minor);
    dt_str_addf(out, "  file      %s\n", comp->plugin->path);
}

static void append_head_json(const dt_loaded *comp, dt_json_out *json)
{
    const dt_plugin *p = &comp->plugin->desc;
    dt_json_str(json, "id", comp->desc.id);
    dt_json_str(json, "kind", dt_kind_name(comp->desc.kind));
    if (comp->desc.role != NULL) {
        dt_json_str(json, "role", comp->desc.role);
    }
    dt_json_str(json, "summary", or_empty(comp->desc.summary));
    dt_json_str(json, "reference", or_empty(comp->desc.reference));
    dt_json_str(json, "plugin", p->name);
    dt_json_str(json, "version", or_empty(p->version));
    dt_json_str(json, "vendor", or_empty(p->vendor));
    dt_json_str(json, "license", or_empty(p->license));
    dt_json_str(json, "file", comp->plugin->path);
    dt_json_str(json, "sha256", comp->plugin->sha256);
}

/* Check the values of a section, where all that are required are there; config_p gets the struct, or NULL. */
static dt_status read_section(dt_config *c, int64_t phase, const char *section, uint64_t bytes, void **config_p)
{
    dt_option_view v;
    for (uint32_t i = 0; dt_config_option_at(c, phase, section, i, &v) == DT_OK; i++) {
        if (v.value == NULL) {
            return DT_OK;
        }
    }
    void *config = dt_alloc(bytes);
    if (config == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for the options of %s", section);
    }
    dt_status st = dt_config_section(c, phase, section, NULL, 0, config, bytes);
    if (st != DT_OK) {
        dt_free(config);
        return st;
    }
    *config_p = config;
    return DT_OK;
}

dt_status dt_tools_enter_phase(dt_config *c, const dt_loaded *comp)
{
    const dt_component *d = &comp->desc;
    const char *const *defaults = d->extension != NULL ? d->extension(DT_EXT_DEFAULTS) : NULL;
    DT_TRY(dt_config_declare_phase(c, d->id, d->options, comp->plugin->desc.name));
    DT_TRY(dt_config_use_plugin(c, d->id, "dtrain show"));
    DT_TRY(dt_config_add_defaults(c, 0, d->id, defaults));
    return dt_config_distribute_groups(c, 0, d->id);
}

static dt_status show_component(dt_config *c, int64_t phase, const dt_loaded *comp, dt_json_out *json, dt_str *out)
{
    void *config = NULL;
    const bool is_phase = comp->desc.kind == DT_KIND_PHASE;
    if (is_phase) {
        DT_TRY(dt_tools_enter_phase(c, comp));
        phase = 0;
    }
    DT_TRY(dt_config_declare(c, comp->desc.id, comp->desc.options, comp->plugin->desc.name));
    DT_TRY(read_section(c, phase, comp->desc.id, comp->desc.config_size, &config));
    if (json != NULL) {
        append_head_json(comp, json);
    } else {
        append_head_text(comp, out);
    }
    if (comp->desc.kind == DT_KIND_MODEL && config != NULL) {
        show_ports(comp, config, json, out);
    }
    if (comp->desc.kind == DT_KIND_ENV && config != NULL) {
        dt_show_env(comp, config, json, out);
    } else if (comp->desc.kind == DT_KIND_ENV) {
        dt_show_other_columns(comp, NULL, json, out);
    }
    show_options(c, phase, comp->desc.id, json, out);
    if (is_phase) {
        show_sections(c, phase, json, out);
    }
    dt_free(config);
    return DT_OK;
}

static dt_status show_section(dt_config *c, int64_t phase, const char *id, dt_json_out *json, dt_str *out)
{
    enum { LARGEST_SECTION = 1024 }; /* dt_config_section checks it */
    void *config = NULL;
    DT_TRY(read_section(c, phase, id, LARGEST_SECTION, &config));
    dt_free(config);
    if (json != NULL) {
        dt_json_str(json, "id", id);
        dt_json_str(json, "kind", "section");
    } else {
        dt_str_addf(out, "%s: a section of dtrain's own configuration\n", id);
    }
    show_options(c, phase, id, json, out);
    return DT_OK;
}

dt_status dt_tools_show(dt_config *c, dt_loader *l, int64_t phase, const char *id, bool json, dt_str *out)
{
    dt_json_out writer = {.s = out}, *to = json ? &writer : NULL;
    const dt_loaded *comp = NULL;
    dt_option_view v;
    bool is_section = *id != '\0' && dt_config_option_at(c, phase, id, 0, &v) == DT_OK;
    if (!is_section) {
        DT_TRY(dt_loader_find_any(l, id, &comp));
    }
    if (json) {
        dt_json_obj(to, NULL);
    }
    dt_status st = is_section ? show_section(c, phase, id, to, out) : show_component(c, phase, comp, to, out);
    if (json) {
        dt_json_end(to, '}');
        dt_str_add(out, "\n");
    }
    return st == DT_OK ? dt_str_status(out) : st;
}

typedef struct wanted_section {
    const char *name;
    bool is_there;
} wanted_section;

static void find_section(void *user, const dt_verb_section *s)
{
    wanted_section *w = user;
    w->is_there = w->is_there || strcmp(s->name, w->name) == 0;
}

static dt_status show_name(const dt_args *a, dt_session *s, dt_str *out)
{
    DT_TRY(dt_session_open_config(a, s));
    dt_option_view v;
    const dt_loaded *comp = NULL;
    if (dt_config_option_at(s->config, -1, a->word[0], 0, &v) != DT_OK &&
        dt_loader_find_any(s->loader, a->word[0], &comp) == DT_ENOTFOUND) {
        wanted_section w = {.name = a->word[0]};
        dt_plugin_verbs_sections(s->loader, find_section, &w);
        DT_TRY(w.is_there ? dt_plugin_verbs_declare(s->loader, s->config) : DT_OK);
    }
    dt_error_clear();
    return dt_tools_show(s->config, s->loader, -1, a->word[0], a->json, out);
}

dt_status dt_verb_show(const dt_args *a, int *code_p)
{
    dt_session s = {0};
    dt_str out = {0};
    const dt_status st = show_name(a, &s, &out);
    if (st == DT_OK) {
        dt_print_text(dt_str_text(&out));
    }
    dt_str_fini(&out);
    dt_session_close(&s);
    return st;
}
