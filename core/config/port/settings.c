/* SPDX-License-Identifier: Apache-2.0
 *
 * See settings.h: collecting.
 */
#include <config.h>

#include "config/port/settings.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN = 60, TARGET_BYTES = 128 };

static dt_status fail_out_of_memory(void)
{
    return DT_FAIL(DT_ENOMEM, "out of memory for what is imported");
}

/* ---- leaves ---------------------------------------------------------------------------------------------------- */

bool dt_leaf_is_none(const dt_leaf *l)
{
    static const char *const none[] = {"", "~", "null", "Null", "NULL", "None"};
    for (size_t i = 0; l->node->kind == DT_YAML_VALUE && !l->node->is_quoted && i < sizeof(none) / sizeof(none[0]);
         i++) {
        if (strcmp(l->node->text, none[i]) == 0) {
            return true;
        }
    }
    return false;
}

const dt_leaf *dt_leaf_find(const dt_porting *p, const char *key)
{
    for (int i = 0; i < p->n_leaves; i++) {
        if (strcmp(p->leaf[i].key, key) == 0) {
            return dt_leaf_is_none(&p->leaf[i]) ? NULL : &p->leaf[i];
        }
    }
    return NULL;
}

static void append_shown_value(const dt_yaml *n, dt_str *out)
{
    if (n->kind == DT_YAML_VALUE) {
        dt_str_addf(out, "%.*s", SHOWN, n->text[0] != '\0' ? n->text : "nothing");
        return;
    }
    dt_str_add(out, n->kind == DT_YAML_MAP ? "{" : "[");
    for (const dt_yaml *child = n->first; child != NULL && out->bytes < SHOWN; child = child->next) {
        dt_str_add(out, child == n->first ? "" : ", ");
        append_shown_value(child, out);
    }
    dt_str_add(out, n->kind == DT_YAML_MAP ? "}" : "]");
}

const char *dt_leaf_text(const dt_porting *p, const dt_leaf *l)
{
    dt_str text = {0};
    append_shown_value(l->node, &text);
    if (text.bytes > SHOWN) { /* in the middle of a character it becomes '?', as the mask is */
        memcpy(text.text + SHOWN - 3, "...", 4);
    }
    char *copy = text.failed ? NULL : dt_yaml_keep(p->d, dt_str_text(&text));
    dt_str_fini(&text);
    if (copy != NULL) {
        dt_mask_text(copy, true);
    }
    return copy;
}

/* ---- settings -------------------------------------------------------------------------------------------------- */

/* "@.gamma" in phase 2 is "phase2_ppo", "gamma"; "seed" is "", "seed". */
static void split_target(const dt_porting *p, const char *target, char section[TARGET_BYTES], const char **name_p)
{
    const char *dot = strrchr(target, '.');
    *name_p = dot != NULL ? dot + 1 : target;
    if (target[0] == '@' && p->phase > 0) {
        snprintf(section, TARGET_BYTES, "%s", p->keys->phase[p->phase - 1]);
    } else {
        snprintf(section, TARGET_BYTES, "%.*s", dot != NULL ? (int)(dot - target) : 0, target);
    }
}

static const dt_option *find_known_option(const dt_config *known, const char *section, const char *name)
{
    dt_option_view v;
    for (uint32_t i = 0; known != NULL && dt_config_option_at(known, -1, section, i, &v) == DT_OK; i++) {
        if (strcmp(v.option->name, name) == 0) {
            return v.option;
        }
    }
    return NULL;
}

const dt_option *dt_porting_option(const dt_porting *p, const char *target)
{
    char section[TARGET_BYTES];
    const char *name = NULL;
    split_target(p, target, section, &name);
    return find_known_option(p->known, section, name);
}

/* Sections that a run has once, whatever its phases are. */
static bool is_of_run(const char *section)
{
    static const char *const once[] = {"", "metrics", "log", "report"};
    for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++) {
        if (strcmp(section, once[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Without an option: as it looks. */
static void write_unquoted_literal(const char *text, dt_str *out)
{
    int64_t i = 0;
    double f = 0;
    if (dt_parse_i64(text, &i) && i >= INT32_MIN && i <= INT32_MAX) {
        dt_str_addf(out, "%lld", (long long)i);
    } else if (dt_parse_f64(text, &f)) {
        char number[40];
        snprintf(number, sizeof(number), "%.17g", f);
        dt_str_addf(out, "%s%s", number, strpbrk(number, ".e") == NULL ? ".0" : "");
    } else if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        dt_str_add(out, text);
    } else {
        dt_config_write_string(text, out);
    }
}

static dt_status canonical_value_of(const dt_porting *p, const char *section, const char *name, const char *text,
                                    const dt_leaf *from, const char **out_p)
{
    dt_str value = {0}, want = {0};
    const dt_option *o = find_known_option(p->known, section, name);
    dt_status st = DT_OK;
    if (o == NULL) {
        write_unquoted_literal(text, &value);
        st = dt_str_status(&value);
    } else {
        st = dt_option_write(o, text, &value);
    }
    if (st == DT_ECONFIG) {
        dt_option_accepts(o, &want);
        const char *shown = dt_leaf_text(p, from);
        st = dt_yaml_fail(p->d, from->node, "%s = %s: %s%s%s takes %s", from->key, shown != NULL ? shown : "?", section,
                          section[0] != '\0' ? "." : "", name, dt_str_text(&want));
    }
    if (st == DT_OK) {
        *out_p = dt_yaml_keep(p->d, dt_str_text(&value));
        st = *out_p != NULL ? DT_OK : fail_out_of_memory();
    }
    dt_str_fini(&value);
    dt_str_fini(&want);
    return st;
}

static dt_status remark_repeated(dt_porting *p, const dt_setting_in *s, const char *value, const dt_leaf *from)
{
    const bool is_same = strcmp(s->value, value) == 0;
    dt_str note = {0};
    dt_str_addf(&note, is_same ? "as %s in line %d has it" : "%s in line %d differs and is used", s->from, s->line);
    const char *kept = note.failed ? NULL : dt_yaml_keep(p->d, dt_str_text(&note));
    dt_str_fini(&note);
    return kept != NULL ? dt_porting_remark(p, is_same ? DT_REMARK_SAME : DT_REMARK_WRONG, from, kept)
                        : fail_out_of_memory();
}

dt_status dt_porting_set(dt_porting *p, const char *target, const char *text, const dt_leaf *from, const char *note)
{
    char section[TARGET_BYTES];
    const char *name = NULL, *value = NULL;
    split_target(p, target, section, &name);
    const int phase = is_of_run(section) ? 0 : p->phase;
    DT_TRY(canonical_value_of(p, section, name, text, from, &value));
    for (const dt_setting_in *s = p->settings; s != NULL; s = s->next) {
        if (s->phase == phase && strcmp(s->section, section) == 0 && strcmp(s->name, name) == 0) {
            return s->from == from->key && strcmp(s->value, value) == 0 ? DT_OK : remark_repeated(p, s, value, from);
        }
    }
    dt_setting_in *s = dt_yaml_alloc(p->d, sizeof(*s));
    const char *own_section = dt_yaml_keep(p->d, section), *own_name = dt_yaml_keep(p->d, name);
    if (s == NULL || own_section == NULL || own_name == NULL) {
        return fail_out_of_memory();
    }
    *s = (dt_setting_in){.phase = phase,
                         .section = own_section,
                         .name = own_name,
                         .value = value,
                         .from = from->key,
                         .note = note,
                         .line = from->node->line};
    *p->settings_end = s;
    p->settings_end = &s->next;
    return DT_OK;
}

dt_status dt_porting_remark(dt_porting *p, dt_remark_kind kind, const dt_leaf *of, const char *note)
{
    dt_remark *r = dt_yaml_alloc(p->d, sizeof(*r));
    const char *value = dt_leaf_text(p, of);
    char *key = dt_yaml_keep(p->d, of->key);
    if (r == NULL || value == NULL || key == NULL) {
        return fail_out_of_memory();
    }
    dt_mask_text(key, true);
    *r = (dt_remark){.kind = kind, .phase = p->phase, .line = of->node->line, .key = key, .value = value, .note = note};
    *p->remarks_end = r;
    p->remarks_end = &r->next;
    return DT_OK;
}
