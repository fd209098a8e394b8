/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports and environments, as `dtrain show` prints them. See tools.h.
 */
#include <config.h>

#include "cli/tools.h"

#include "base/log.h"
#include "engine/tensor/dtype.h"
#include "plugin/trial/probe_env.h"
#include "rl/env/described.h"

#include <stdio.h>
#include <string.h>

void dt_show_ports(const char *side, const dt_port *port, uint32_t n, dt_json_out *json, dt_str *out)
{
    if (json != NULL) {
        dt_json_arr(json, side);
    }
    for (uint32_t i = 0; i < n; i++) {
        bool is_optional = (port[i].flags & DT_PORT_OPTIONAL) != 0;
        if (json == NULL) {
            dt_str_addf(out, "  %-8s %-12s [%s] %s%s\n", side, port[i].name, port[i].dims, dt_dtype_name(port[i].dtype),
                        is_optional ? ", optional" : "");
            continue;
        }
        dt_json_obj(json, NULL);
        dt_json_str(json, "name", port[i].name);
        dt_json_str(json, "dims", port[i].dims);
        dt_json_str(json, "dtype", dt_dtype_name(port[i].dtype));
        dt_json_bool(json, "optional", is_optional);
        dt_json_end(json, '}');
    }
    if (json != NULL) {
        dt_json_end(json, ']');
    }
}

static void show_names(const char *key, const char *const *name, uint32_t n, dt_json_out *json, dt_str *out)
{
    if (json != NULL) {
        dt_json_arr(json, key);
        for (uint32_t i = 0; i < n; i++) {
            dt_json_str(json, NULL, name[i]);
        }
        dt_json_end(json, ']');
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        dt_str_addf(out, "%s%s", i == 0 ? (strcmp(key, "costs") == 0 ? "  costs    " : "  metrics  ") : ", ", name[i]);
    }
    dt_str_add(out, n > 0 ? "\n" : "");
}

static void show_actions(const dt_env_spec *s, dt_json_out *json, dt_str *out)
{
    if (json != NULL) {
        dt_json_arr(json, "choices");
        for (uint32_t i = 0; i < s->n_heads; i++) {
            dt_json_i64(json, NULL, s->choices[i]);
        }
        dt_json_end(json, ']');
        dt_json_arr(json, "continuous");
        for (uint32_t i = 0; i < s->n_continuous; i++) {
            dt_json_obj(json, NULL);
            dt_json_f64(json, "low", (double)s->low[i]);
            dt_json_f64(json, "high", (double)s->high[i]);
            dt_json_end(json, '}');
        }
        dt_json_end(json, ']');
        return;
    }
    for (uint32_t i = 0; i < s->n_heads; i++) {
        dt_str_addf(out, "  action   one of %d choices\n", s->choices[i]);
    }
    for (uint32_t i = 0; i < s->n_continuous; i++) {
        dt_str_addf(out, "  action   a number in [%g, %g]\n", (double)s->low[i], (double)s->high[i]);
    }
}

/* Where n columns are: "5", "0-3", or "5, 13, ... 45". */
static void format_agents(const dt_column *c, char text[64])
{
    const uint64_t last = c->first + (uint64_t)(c->n - 1) * c->stride;
    if (c->n == 1) {
        snprintf(text, 64, "%u", c->first);
    } else if (c->stride == 1 || c->n == 2) {
        snprintf(text, 64, c->stride == 1 ? "%u-%llu" : "%u, %llu", c->first, (unsigned long long)last);
    } else {
        snprintf(text, 64, "%u, %llu, ... %llu", c->first, (unsigned long long)c->first + c->stride,
                 (unsigned long long)last);
    }
}

static void show_columns(const dt_column *column, uint32_t n, const char *port, dt_str *out)
{
    for (uint32_t i = 0; i < n; i++) {
        const dt_column *c = &column[i];
        char place[64], range[64];
        if (strcmp(c->port, port) != 0) {
            continue;
        }
        format_agents(c, place);
        snprintf(range, sizeof(range), "%g to %g", c->low, c->high);
        dt_str_addf(out, "           %-14s %-19s %-9s %-11s %s\n", place, c->name, c->unit, range, c->meaning);
    }
}

/* Which agent is at which place, and what its choices do. */
static void show_places(const dt_env_spec *s, dt_str *out)
{
    enum { MOST = 16 };
    const uint32_t n_choices = dt_count_choices(s);
    for (uint32_t k = 0; s->places != NULL && k < s->n_agents && k < MOST; k++) {
        dt_str_addf(out, "  agent    %u %s", k, s->places[k]);
        for (uint32_t c = 0; s->choices_shown != NULL && c < n_choices; c++) {
            dt_str_addf(out, "%s%s", c == 0 ? ": " : " ", s->choices_shown[(size_t)k * n_choices + c]);
        }
        dt_str_add(out, "\n");
    }
    if (s->places != NULL && s->n_agents > MOST) {
        dt_str_addf(out, "  agent    and %u more, which --json lists\n", s->n_agents - MOST);
    }
}

static bool has_port(const dt_env_spec *s, const char *name)
{
    for (uint32_t i = 0; s != NULL && i < s->n_obs; i++) {
        if (strcmp(s->obs[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

void dt_show_other_columns(const dt_loaded *comp, const dt_env_spec *s, dt_json_out *json, dt_str *out)
{
    const dt_component *d = &comp->desc;
    const dt_column *column = d->extension != NULL ? d->extension(DT_EXT_COLUMNS) : NULL;
    const char *last = "";
    uint32_t n = 0;
    while (column != NULL && n < DT_ENV_MAX_COLUMNS && column[n].port != NULL) {
        if (column[n].name == NULL || column[n].unit == NULL || column[n].meaning == NULL) {
            dt_log(DT_LOG_WARN, "%s: row %u of extension " DT_EXT_COLUMNS " has no %s; it and later ones are left out",
                   d->id, n,
                   column[n].name == NULL   ? "name"
                   : column[n].unit == NULL ? "unit (\"\": none)"
                                            : "meaning");
            break;
        }
        n++;
    }
    if (json != NULL) {
        if (s == NULL) {
            dt_describe_columns(column, n, NULL, json);
        }
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!has_port(s, column[i].port) && strcmp(column[i].port, last) != 0) {
            last = column[i].port;
            dt_str_addf(out, "columns of %s with other options\n", last);
            show_columns(column, n, last, out);
        }
    }
}

void dt_show_env(const dt_loaded *comp, const void *config, dt_json_out *json, dt_str *out)
{
    dt_probe_env probe;
    if (dt_probe_env_create(&probe, comp, config) == DT_OK && dt_probe_env_spec(&probe) == DT_OK) {
        const dt_env_spec *s = &probe.layout.spec;
        if (json != NULL) {
            dt_json_i64(json, "agents", s->n_agents);
            dt_json_i64(json, "max_steps", s->max_steps);
            dt_show_ports("observations", s->obs, s->n_obs, json, out);
            dt_describe_columns(s->columns, s->n_columns, NULL, json);
            dt_describe_places(s, json);
        } else {
            dt_str_addf(out, "world (with these options): %u place%s for agents", s->n_agents,
                        s->n_agents == 1 ? "" : "s");
            if (s->max_steps > 0) {
                dt_str_addf(out, ", episodes of at most %u steps", s->max_steps);
            }
            dt_str_add(out, "\n");
            for (uint32_t i = 0; i < s->n_obs; i++) {
                dt_show_ports("sees", &s->obs[i], 1, json, out);
                show_columns(s->columns, s->n_columns, s->obs[i].name, out);
            }
            show_places(s, out);
        }
        show_actions(s, json, out);
        show_names("costs", s->costs, s->n_costs, json, out);
        show_names("metrics", s->metrics, s->n_metrics, json, out);
        dt_show_other_columns(comp, s, json, out);
    } else {
        dt_show_other_columns(comp, NULL, json, out);
    }
    dt_probe_env_destroy(&probe);
}
