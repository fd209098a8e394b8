/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain list`: what there is. See tools.h.
 */
#include <config.h>

#include "cli/cli.h"
#include "run/session.h"
#include "cli/tools.h"
#include "base/err.h"
#include "base/json.h"
#include "base/print.h"

#include <stdio.h>
#include <string.h>

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static void append_component_json(const dt_loaded *c, dt_json_out *out)
{
    dt_json_obj(out, NULL);
    dt_json_str(out, "id", c->desc.id);
    dt_json_str(out, "kind", dt_kind_name(c->desc.kind));
    if (c->desc.role != NULL) {
        dt_json_str(out, "role", c->desc.role);
    }
    dt_json_str(out, "summary", or_empty(c->desc.summary));
    dt_json_str(out, "reference", or_empty(c->desc.reference));
    dt_json_bool(out, "deterministic", (c->desc.flags & DT_COMP_DETERMINISTIC) != 0);
    dt_json_bool(out, "needs_cuda", (c->desc.flags & DT_COMP_NEEDS_CUDA) != 0);
    dt_json_str(out, "plugin", c->plugin->desc.name);
    dt_json_str(out, "version", or_empty(c->plugin->desc.version));
    dt_json_str(out, "vendor", or_empty(c->plugin->desc.vendor));
    dt_json_str(out, "license", or_empty(c->plugin->desc.license));
    dt_json_str(out, "file", c->plugin->path);
    dt_json_str(out, "sha256", c->plugin->sha256);
    dt_json_end(out, '}');
}

static void list_components_json(const dt_loader *l, const dt_str *refused, dt_str *out)
{
    dt_json_out json = {.s = out};
    dt_json_obj(&json, NULL);
    dt_json_arr(&json, "components");
    for (uint32_t i = 0; i < dt_loader_count(l); i++) {
        append_component_json(dt_loader_at(l, i), &json);
    }
    dt_json_end(&json, ']');
    dt_json_arr(&json, "refused");
    for (const char *p = dt_str_text(refused); *p != '\0';) {
        size_t bytes = strcspn(p, "\n");
        dt_str line = {0};
        dt_str_add_n(&line, p, bytes);
        dt_json_str(&json, NULL, dt_str_text(&line));
        out->failed = out->failed || line.failed;
        dt_str_fini(&line);
        p += bytes + (p[bytes] == '\n');
    }
    dt_json_end(&json, ']');
    dt_json_end(&json, '}');
    dt_str_add(out, "\n");
}

static void list_components_text(const dt_loader *l, const dt_str *refused, dt_str *out)
{
    int id_width = 2, role_width = 4;
    for (uint32_t i = 0; i < dt_loader_count(l); i++) {
        const dt_component *c = &dt_loader_at(l, i)->desc;
        id_width = (int)strlen(c->id) > id_width ? (int)strlen(c->id) : id_width;
        role_width = (int)strlen(or_empty(c->role)) > role_width ? (int)strlen(c->role) : role_width;
    }
    if (dt_loader_count(l) == 0) {
        dt_str_add(out, "no plugins found; set DTRAIN_PLUGIN_PATH to folders that contain some\n");
    } else {
        dt_str_addf(out, "%-6s %-*s %-*s %-8s %s\n", "kind", id_width, "id", role_width, "role", "version", "summary");
    }
    for (uint32_t i = 0; i < dt_loader_count(l); i++) {
        const dt_loaded *c = dt_loader_at(l, i);
        dt_str_addf(out, "%-6s %-*s %-*s %-8s %s\n", dt_kind_name(c->desc.kind), id_width, c->desc.id, role_width,
                    or_empty(c->desc.role), or_empty(c->plugin->desc.version), or_empty(c->desc.summary));
    }
    if (refused->bytes > 0) {
        dt_str_addf(out, "\nrefused:\n%s", dt_str_text(refused));
    }
}

dt_status dt_tools_list(dt_loader *l, bool json, dt_str *out)
{
    dt_str refused = {0};
    dt_status st = dt_loader_scan(l, &refused);
    if (st == DT_OK) {
        (json ? list_components_json : list_components_text)(l, &refused, out);
        st = dt_str_status(out);
    }
    dt_str_fini(&refused);
    return st;
}

dt_status dt_verb_list(const dt_args *a, int *code_p)
{
    dt_session s = {0};
    dt_str out = {0};
    dt_status st = dt_session_open_loader(&s);
    if (st == DT_OK) {
        st = dt_tools_list(s.loader, a->json, &out);
    }
    dt_print_text(dt_str_text(&out));
    dt_str_fini(&out);
    dt_session_close(&s);
    return st;
}
