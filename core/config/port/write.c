/* SPDX-License-Identifier: Apache-2.0
 *
 * What an import has collected as a configuration, and the table of keys as text. A phase's values are below the id
 * of its plugin, as in profiles: files of several phases may be given together.
 */
#include <config.h>

#include "config/port/settings.h"

#include "base/json.h"

#include <string.h>

enum { WIDTH = 112 };

/* A comment of several lines where it is long. Words are parted by blanks; a longer one is on its own line. */
static void write_comment(dt_str *out, int indent, const char *first, const char *text)
{
    size_t at = 0;
    const char *lead = first;
    for (const char *word = text; *word != '\0';) {
        const size_t bytes = strcspn(word, " ");
        if (at == 0 || at + 1 + bytes > (size_t)(WIDTH - indent)) {
            dt_str_addf(out, "%s%*s# %s", at > 0 ? "\n" : "", indent, "", lead);
            at = 2 + strlen(lead);
            lead = *first != '\0' ? "    " : "";
        } else {
            dt_str_add(out, " ");
            at++;
        }
        dt_str_add_n(out, word, bytes);
        at += bytes;
        word += bytes + strspn(word + bytes, " ");
    }
    dt_str_add(out, "\n");
}

/* ---- settings -------------------------------------------------------------------------------------------------- */

static void write_setting(const dt_setting_in *s, int indent, dt_str *out)
{
    if (s->note[0] != '\0') {
        write_comment(out, indent, "", s->note);
    }
    dt_str_addf(out, "%*s%s = %s;    # %s, line %d\n", indent, "", s->name, s->value, s->from, s->line);
}

static void write_section(const dt_porting *p, int phase, const char *section, int indent, dt_str *out)
{
    for (const dt_setting_in *s = p->settings; s != NULL; s = s->next) {
        if (s->phase == phase && strcmp(s->section, section) == 0) {
            write_setting(s, indent, out);
        }
    }
}

/* The first setting of its section and phase? */
static bool is_first_of_section(const dt_porting *p, const dt_setting_in *s)
{
    for (const dt_setting_in *o = p->settings; o != s; o = o->next) {
        if (o->phase == s->phase && strcmp(o->section, s->section) == 0) {
            return false;
        }
    }
    return true;
}

/* Its sections, each in a group of its own, but for `own`, whose values are not in a group. */
static void write_sections(const dt_porting *p, int phase, const char *own, int indent, dt_str *out)
{
    write_section(p, phase, own, indent, out);
    for (const dt_setting_in *s = p->settings; s != NULL; s = s->next) {
        if (s->phase == phase && strcmp(s->section, own) != 0 && is_first_of_section(p, s)) {
            dt_str_addf(out, "%*s%s = {\n", indent, "", s->section);
            write_section(p, phase, s->section, indent + 4, out);
            dt_str_addf(out, "%*s};\n", indent, "");
        }
    }
}

static bool has_settings(const dt_porting *p, int phase)
{
    for (const dt_setting_in *s = p->settings; s != NULL; s = s->next) {
        if (s->phase == phase) {
            return true;
        }
    }
    return false;
}

/* ---- remarks --------------------------------------------------------------------------------------------------- */

static void write_remarks(const dt_porting *p, dt_remark_kind kind, dt_str *out)
{
    static const char *const titles[DT_REMARK_KINDS] = {[DT_REMARK_WRONG] = "Wrong, or contradictory:",
                                                        [DT_REMARK_NONE] = "Without a counterpart here:",
                                                        [DT_REMARK_SAME] = "Implied, or included in the values above:",
                                                        [DT_REMARK_UNKNOWN] = "Unknown to the guides too; left out:"};
    bool is_begun = false;
    for (const dt_remark *r = p->remarks; r != NULL; r = r->next) {
        if (r->kind != kind) {
            continue;
        }
        if (!is_begun) {
            dt_str_addf(out, "\n# %s\n", titles[kind]);
        }
        is_begun = true;
        dt_str text = {0};
        dt_str_addf(&text, "%s = %s (line %d)%s%s", r->key, r->value, r->line, r->note[0] != '\0' ? ": " : "", r->note);
        out->failed = out->failed || text.failed;
        write_comment(out, 0, "  ", dt_str_text(&text));
        dt_str_fini(&text);
    }
}

/* ---- all of it ------------------------------------------------------------------------------------------------- */

static void write_file_head(const dt_porting *p, const char *path, dt_str *out)
{
    const dt_ported *n = &p->ported;
    const char *slash = strrchr(path, '/');
    dt_str text = {0};
    dt_str_addf(&text,
                "Made by dtrain config import from %s. Of its keys %d are values here, %d are implied or included in "
                "these values, %d have no counterpart, %d were wrong or contradict others, %d are unknown; the end of "
                "the file names them.",
                slash != NULL ? slash + 1 : path, n->taken, n->same, n->none, n->wrong, n->unknown);
    if (text.text != NULL) {
        dt_mask_text(text.text, true);
    }
    out->failed = out->failed || text.failed;
    write_comment(out, 0, "", dt_str_text(&text));
    dt_str_fini(&text);
    if (p->is_guessed) {
        write_comment(out, 0, "", "The file does not state its phase: read as phase 1; --phase 3 reads it as phase 3.");
    }
}

dt_status dt_porting_write(const dt_porting *p, const char *path, dt_str *out)
{
    write_file_head(p, path, out);
    write_sections(p, 0, "", 0, out);
    dt_str_add(out, "phases = (");
    for (int i = 0; i < p->n_listed; i++) {
        dt_str_addf(out, "%s { plugin = \"%s\"; }", i > 0 ? "," : "", p->keys->phase[p->listed[i] - 1]);
    }
    dt_str_add(out, " );\n");
    for (int phase = 1; phase <= DT_KEYS_PHASES; phase++) {
        if (has_settings(p, phase)) {
            dt_str_addf(out, "%s = {\n", p->keys->phase[phase - 1]);
            write_sections(p, phase, p->keys->phase[phase - 1], 4, out);
            dt_str_add(out, "};\n");
        }
    }
    for (int kind = 0; kind < DT_REMARK_KINDS; kind++) {
        write_remarks(p, (dt_remark_kind)kind, out);
    }
    return dt_str_status(out);
}

/* ---- the table of keys ----------------------------------------------------------------------------------------- */

static const char *name_of_act(uint32_t act)
{
    return act == DT_KEYS_SAME ? "implied" : act == DT_KEYS_WRONG ? "wrong" : "none";
}

/* "`training.epochs`, `log.every`"; "@" is the plugin of the phase. */
static void append_targets(const dt_keys_ext *keys, const dt_key_row *g, dt_str *out)
{
    const char *plugin = dt_guide_plugin(keys, g);
    for (const char *at = g->target; *at != '\0';) {
        const size_t bytes = strcspn(at, " ");
        dt_str_addf(out, "%s`%s%.*s`", at == g->target ? "" : ", ", *at == '@' ? plugin : "", (int)bytes - (*at == '@'),
                    at + (*at == '@'));
        at += bytes + strspn(at + bytes, " ");
    }
}

static void append_key_row(const dt_keys_ext *keys, const dt_key_row *g, dt_str *out)
{
    const bool is_value = g->act != DT_KEYS_SAME && g->act != DT_KEYS_NONE && g->act != DT_KEYS_WRONG;
    dt_str_addf(out, "| `%s` | %s | ", g->key, strcmp(g->phases, "0") == 0 ? "all" : g->phases);
    if (is_value && g->target[0] != '\0') {
        append_targets(keys, g, out);
    } else {
        dt_str_add(out, is_value ? "combined" : name_of_act(g->act));
    }
    dt_str_addf(out, " | %s |\n", g->note);
}

dt_status dt_porting_keys(const dt_keys_ext *keys, bool json, dt_str *out)
{
    dt_json_out o = {.s = out};
    if (json) {
        dt_json_arr(&o, NULL);
    }
    for (const dt_key_row *g = keys->rows; g->key != NULL; g++) {
        if (g->act == DT_KEYS_IMPLY) {
            continue;
        }
        if (!json) {
            append_key_row(keys, g, out);
            continue;
        }
        const bool is_value = g->act != DT_KEYS_SAME && g->act != DT_KEYS_NONE && g->act != DT_KEYS_WRONG;
        dt_json_obj(&o, NULL);
        dt_json_str(&o, "key", g->key);
        dt_json_str(&o, "phases", g->phases);
        dt_json_str(&o, "becomes", is_value ? "value" : name_of_act(g->act));
        dt_json_str(&o, "target", g->target);
        dt_json_str(&o, "note", g->note);
        dt_json_end(&o, '}');
    }
    if (json) {
        dt_json_end(&o, ']');
        dt_str_add(out, "\n");
    }
    return dt_str_status(out);
}
