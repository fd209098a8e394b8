/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain config import|template|keys`: configurations to begin with.
 */
#include <config.h>

#include "cli/cli.h"
#include "cli/tools.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/print.h"
#include "config/guide.h"
#include "config/schema.h"
#include "config/tree.h"
#include "config/port/porting.h"
#include "run/session.h"

#include <stdio.h>
#include <string.h>

/* To standard output, or into a file that is not there yet: a file written by hand is not replaced. */
static dt_status print_or_write(const dt_args *a, const dt_str *text)
{
    if (a->out == NULL) {
        dt_print_text(dt_str_text(text));
        return DT_OK;
    }
    if (dt_fs_is_file(a->out) || dt_fs_is_dir(a->out)) {
        return DT_FAIL(DT_ECONFIG, "--out %s exists already; name a new file", a->out);
    }
    DT_TRY(dt_cli_check_out(a->out));
    return dt_fs_write_atomic(a->out, dt_str_text(text), text->bytes);
}

static dt_status declare_component(dt_config *c, const dt_loaded *l)
{
    const dt_component *d = &l->desc;
    return d->kind == DT_KIND_PHASE ? dt_config_declare_phase(c, d->id, d->options, l->plugin->desc.name)
                                    : dt_config_declare(c, d->id, d->options, l->plugin->desc.name);
}

/* Loader, empty configuration, and the table of other programs' keys; s is to be closed in any case. */
static dt_status open_keys(dt_session *s, const dt_keys_ext **keys_p)
{
    DT_TRY(dt_session_open_loader(s));
    DT_TRY(dt_session_empty_config(s));
    *keys_p = dt_config_keys(s->config);
    return *keys_p != NULL
               ? DT_OK
               : DT_FAIL(DT_EUNSUPPORTED, "no plugin of this program lists keys of other programs (%s)", DT_EXT_KEYS);
}

/* ---- import ---------------------------------------------------------------------------------------------------- */

/* The section of a target, if it is a component's: its options. One that is not there leaves its values unchecked, and
 * reported when training with it. */
static dt_status declare_target(dt_session *s, const char *target)
{
    const dt_loaded *l = NULL;
    char id[64];
    snprintf(id, sizeof(id), "%.*s", (int)strcspn(target, ".="), target);
    if (target[0] == '@' || dt_config_is_host_section(id) || strchr(target, '.') == NULL) {
        return DT_OK;
    }
    const dt_status st = dt_loader_find(s->loader, 0, id, &l);
    dt_error_clear();
    return st == DT_OK ? declare_component(s->config, l) : st == DT_ENOMEM ? st : DT_OK;
}

static dt_status declare_targets(dt_session *s, const dt_keys_ext *keys)
{
    for (int i = 0; i < DT_KEYS_PHASES; i++) {
        char target[64];
        snprintf(target, sizeof(target), "%s.x", keys->phase[i]);
        DT_TRY(declare_target(s, target));
    }
    for (const dt_key_row *g = keys->rows; g->key != NULL; g++) {
        for (const char *at = g->target; *at != '\0'; at += strspn(at, " ")) {
            DT_TRY(declare_target(s, at));
            at += strcspn(at, " ");
        }
    }
    return DT_OK;
}

static dt_status import_with_plugins(const dt_args *a, dt_session *s, int phase)
{
    dt_str out = {0};
    dt_ported n = {0};
    const dt_keys_ext *known = NULL;
    DT_TRY(open_keys(s, &known));
    DT_TRY(declare_targets(s, known));
    dt_status st = dt_porting_import(a->word[1], phase, known, s->config, &out, &n);
    if (st == DT_OK) {
        st = print_or_write(a, &out);
    }
    if (st == DT_OK) {
        dt_log(n.unknown > 0 ? DT_LOG_WARN : DT_LOG_INFO,
               "%s: %d keys imported, %d implied or in these values, %d without counterpart, %d wrong, %d unknown",
               a->word[1], n.taken, n.same, n.none, n.wrong, n.unknown);
    }
    dt_str_fini(&out);
    return st;
}

dt_status dt_verb_config_import(const dt_args *a, int *code_p)
{
    dt_session s = {0};
    int64_t phase = 0;
    if (a->phase != NULL && (!dt_parse_i64(a->phase, &phase) || phase < 1 || phase > DT_KEYS_PHASES)) {
        return DT_FAIL(DT_ECONFIG, "--phase %s: expected 1, 2 or 3, which the file is read as", a->phase);
    }
    if (a->n_config > 0 || a->n_set > 0 || a->json) {
        return DT_FAIL(DT_ECONFIG, "dtrain config import takes no --config, --set or --json; it reads one YAML file");
    }
    const dt_status st = import_with_plugins(a, &s, (int)phase);
    dt_session_close(&s);
    return st;
}

/* ---- template -------------------------------------------------------------------------------------------------- */

static void write_phases(const char *plugin, dt_str *out)
{
    dt_str_addf(out,
                "\n# phases are trained one after the other; each entry may also contain any section\n"
                "phases = (\n    {   plugin = \"%s\";\n",
                plugin);
    dt_template_table(dt_schema_phase + 1, 8, out); /* the plugin is there */
    dt_str_add(out, "        # the first of these conditions ends the phase\n        stop = {\n");
    dt_template_table(dt_schema_stop, 12, out);
    dt_str_add(out, "        };\n    }\n);\n");
}

static dt_status write_component(dt_config *c, int64_t phase, const dt_loaded *l, dt_str *out)
{
    const dt_component *d = &l->desc;
    if (d->options == NULL || d->options->name == NULL) {
        return DT_OK; /* a section without a key is none */
    }
    DT_TRY(declare_component(c, l));
    dt_str_addf(out, "\n# %s%s%s: %s\n", dt_kind_name(d->kind), d->role != NULL ? ", role " : "",
                d->role != NULL ? d->role : "", d->summary != NULL ? d->summary : "");
    return dt_template_section(c, phase, d->id, out);
}

static dt_status write_host_sections(const dt_config *c, int64_t phase, dt_str *out)
{
    const char *section = NULL;
    for (uint32_t i = 0; (section = dt_config_host_section(i)) != NULL; i++) {
        dt_str_add(out, "\n");
        DT_TRY(dt_template_section(c, phase, section, out));
    }
    return DT_OK;
}

static void write_template_head(const char *of, dt_str *out)
{
    dt_str_addf(out,
                "# Every key %s, with its default value: remove the # from a key to\n"
                "# change it. dtrain show SECTION prints the same, dtrain.cfg(5) describes all keys.\n"
                "\n",
                of);
}

/* A component that a phase is wired to. */
static dt_status write_wired_component(dt_session *s, uint32_t kind, const char *id, dt_str *out)
{
    const dt_loaded *l = NULL;
    if (id == NULL || id[0] == '\0') {
        return DT_OK;
    }
    DT_TRY(dt_loader_find(s->loader, kind, id, &l));
    return write_component(s->config, 0, l, out);
}

static dt_status write_phase_template(dt_session *s, const char *word, dt_str *out)
{
    const dt_loaded *l = NULL;
    int64_t number = 0;
    const dt_keys_ext *keys_of = dt_config_keys(s->config);
    const bool is_number = dt_parse_i64(word, &number) && number >= 1 && number <= DT_KEYS_PHASES && keys_of != NULL;
    DT_TRY(dt_loader_find_phase(s->loader, is_number ? keys_of->phase[number - 1] : word, &l));
    DT_TRY(dt_tools_enter_phase(s->config, l));
    dt_str of = {0};
    dt_str_addf(&of, "of a phase of %s", l->desc.id);
    write_template_head(dt_str_text(&of), out);
    out->failed = out->failed || of.failed;
    dt_str_fini(&of);
    DT_TRY(dt_template_section(s->config, 0, "", out));
    write_phases(l->desc.id, out);
    DT_TRY(write_component(s->config, 0, l, out));
    DT_TRY(write_host_sections(s->config, 0, out));
    const char *role[DT_CONFIG_MAX_ROLES];
    const uint32_t n_roles = dt_config_roles(s->config, role);
    for (uint32_t r = 0; r < n_roles; r++) {
        DT_TRY(write_wired_component(s, DT_KIND_MODEL, dt_config_model(s->config, 0, role[r]), out));
    }
    const char *id = NULL;
    dt_origin set_by;
    if (l->desc.kind == DT_KIND_PHASE && dt_config_get(s->config, 0, "data.source", &id, &set_by) == DT_OK) {
        DT_TRY(write_wired_component(s, DT_KIND_DATA, id, out));
    }
    return dt_config_get(s->config, 0, "env.id", &id, &set_by) == DT_OK ? write_wired_component(s, DT_KIND_ENV, id, out)
                                                                        : DT_OK;
}

static dt_status write_all_templates(dt_session *s, dt_str *out)
{
    dt_str refused = {0};
    DT_TRY(dt_loader_scan(s->loader, &refused));
    dt_str_fini(&refused);
    write_template_head("there is", out);
    DT_TRY(dt_template_section(s->config, -1, "", out));
    const dt_keys_ext *keys_of = dt_config_keys(s->config);
    write_phases(keys_of != NULL ? keys_of->phase[0] : "", out);
    DT_TRY(write_host_sections(s->config, -1, out));
    for (uint32_t i = 0; i < dt_loader_count(s->loader); i++) {
        DT_TRY(write_component(s->config, -1, dt_loader_at(s->loader, i), out));
    }
    return DT_OK;
}

dt_status dt_verb_config_template(const dt_args *a, int *code_p)
{
    dt_session s = {0};
    dt_str out = {0};
    if (a->json) {
        return DT_FAIL(DT_ECONFIG, "dtrain config template has no --json: it writes a configuration");
    }
    DT_TRY(dt_session_open_config(a, &s));
    dt_status st = a->n_words == 2 ? write_phase_template(&s, a->word[1], &out) : write_all_templates(&s, &out);
    if (st == DT_OK) {
        st = dt_str_status(&out);
    }
    if (st == DT_OK) {
        st = print_or_write(a, &out);
    }
    dt_str_fini(&out);
    dt_session_close(&s);
    return st;
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

dt_status dt_verb_config_keys(const dt_args *a, int *code_p)
{
    dt_session s = {0};
    const dt_keys_ext *known = NULL;
    dt_str out = {0};
    if (!a->json) {
        dt_str_add(&out, "| key of the guides | phases | here | |\n|---|---|---|---|\n");
    }
    dt_status st = open_keys(&s, &known);
    if (st == DT_OK) {
        st = dt_porting_keys(known, a->json, &out);
    }
    if (st == DT_OK) {
        st = print_or_write(a, &out);
    }
    dt_str_fini(&out);
    dt_session_close(&s);
    return st;
}
