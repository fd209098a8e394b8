/* SPDX-License-Identifier: Apache-2.0
 *
 * Option tables. See options.h. A value is settled first: checked against its option and brought to one canonical form
 * in the tree; storing into a struct then cannot fail.
 */
#include <config.h>

#include "config/options.h"
#include "config/guide.h"
#include "config/synonym.h"
#include "config/tree.h"
#include "base/err.h"
#include "base/name.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 256 };

const dt_option *dt_option_find(const dt_option *table, const char *name)
{
    for (; table != NULL && table->name != NULL; table++) {
        if (strcmp(table->name, name) == 0) {
            return table;
        }
    }
    return NULL;
}

const dt_option *dt_option_find_flag(const dt_option *table, uint32_t flag)
{
    while (table != NULL && table->name != NULL && (table->flags & flag) == 0) {
        table++;
    }
    return table != NULL && table->name != NULL ? table : NULL;
}

/* ---- words about options ----------------------------------------------------------------------------------------- */

const char *dt_option_type_name(const dt_option *o)
{
    switch (o->type) {
    case DT_OPT_BOOL:
        return "bool";
    case DT_OPT_I64:
        return "integer";
    case DT_OPT_F64:
        return "number";
    case DT_OPT_STR:
        return "text";
    case DT_OPT_ENUM:
        return "choice";
    case DT_OPT_PATH:
        return "path";
    case DT_OPT_WORDS:
        return "list";
    default:
        return "unknown";
    }
}

enum { LIMIT_BYTES = 40 };

static const char *format_limit(double v, char out[LIMIT_BYTES])
{
    snprintf(out, LIMIT_BYTES, "%.10g", v);
    if (fabs(v) <= 9007199254740992.0 && v == trunc(v) &&
        strtod(out, NULL) != v) { /* 2^53: in full, as it can be given */
        snprintf(out, LIMIT_BYTES, "%.0f", v);
    }
    return out;
}

static void append_range(const dt_option *o, dt_str *out)
{
    char low[LIMIT_BYTES], high[LIMIT_BYTES];
    if (isfinite(o->min) && isfinite(o->max)) {
        dt_str_addf(out, " in [%s, %s]", format_limit(o->min, low), format_limit(o->max, high));
    } else if (isfinite(o->min)) {
        dt_str_addf(out, " of at least %s", format_limit(o->min, low));
    } else if (isfinite(o->max)) {
        dt_str_addf(out, " of at most %s", format_limit(o->max, high));
    }
}

void dt_option_accepts(const dt_option *o, dt_str *out)
{
    switch (o->type) {
    case DT_OPT_BOOL:
        dt_str_add(out, "true or false");
        break;
    case DT_OPT_I64:
        dt_str_add(out, "an integer");
        append_range(o, out);
        dt_str_add(out, (o->flags & DT_OPT_AUTO) != 0 ? ", or auto" : "");
        break;
    case DT_OPT_F64:
        dt_str_add(out, "a number");
        append_range(o, out);
        break;
    case DT_OPT_ENUM:
        dt_str_add(out, "one of");
        for (const char *const *choice = o->choices; *choice != NULL; choice++) {
            dt_str_addf(out, "%s %s", choice == o->choices ? "" : ",", *choice);
        }
        break;
    case DT_OPT_WORDS:
        dt_str_add(out, "a list of strings, [ \"a\", \"b\" ]");
        break;
    case DT_OPT_PATH:
        dt_str_add(out, "a path");
        break;
    default:
        dt_str_add(out, "a string in quotes");
        break;
    }
}

/* ---- settling -------------------------------------------------------------------------------------------------- */

static dt_status reject_value(const dt_option *o, const char *path, const dt_node *n)
{
    dt_str want = {0};
    dt_option_accepts(o, &want);
    if (o->type == DT_OPT_ENUM && n->text != NULL) {
        const char *near = dt_suggest_word(n->text, o->choices);
        if (near != NULL) {
            dt_str_addf(&want, "; did you mean \"%s\"?", near);
        }
    }
    const bool has_unit =
        (o->type == DT_OPT_I64 || o->type == DT_OPT_F64) && o->unit != NULL && strcmp(o->unit, "1") != 0;
    dt_status st = dt_node_fail(n, path, "expected %s%s%s", dt_str_text(&want), has_unit ? ", unit " : "",
                                has_unit ? o->unit : "");
    dt_str_fini(&want);
    return st;
}

static dt_status set_node_value(dt_config *c, dt_node *n, dt_node_kind kind, const char *text)
{
    if (strcmp(text, n->text) != 0) {
        const char *copy = dt_pool_dup(c, text, strlen(text));
        if (copy == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory while checking the configuration");
        }
        n->text = copy;
    }
    n->kind = kind;
    return DT_OK;
}

dt_status dt_node_resolve_path(dt_config *c, dt_node *n)
{
    if (*n->text == '\0' || *n->text == '/') {
        return set_node_value(c, n, DT_NODE_TEXT, n->text);
    }
    dt_str full = {0};
    bool is_in_file = n->origin.layer >= DT_FROM_PROFILE && n->origin.layer <= DT_FROM_FILE;
    const char *slash = is_in_file ? strrchr(n->origin.name, '/') : NULL;
    if (slash == NULL || *n->origin.name != '/') {
        char here[4096];
        if (getcwd(here, sizeof(here)) == NULL) {
            return DT_FAIL(DT_EIO, "the current folder has no name that fits %zu bytes", sizeof(here));
        }
        dt_str_addf(&full, "%s/", strcmp(here, "/") == 0 ? "" : here);
    }
    if (slash != NULL) {
        dt_str_add_n(&full, n->origin.name, (size_t)(slash - n->origin.name) + 1);
    }
    const char *tail = n->text;
    while (strncmp(tail, "./", 2) == 0) {
        tail += 2 + strspn(tail + 2, "/");
    }
    dt_str_add(&full, tail);
    dt_status st = dt_str_status(&full);
    if (st == DT_OK) {
        st = set_node_value(c, n, DT_NODE_TEXT, dt_str_text(&full));
    }
    dt_str_fini(&full);
    return st;
}

/* "a, b" becomes a list; a list may hold words only. Its text stays, or becomes, the words with commas. */
static dt_status normalise_words(dt_config *c, const dt_option *o, const char *path, dt_node *n)
{
    dt_str text = {0};
    if (n->kind == DT_NODE_LIST) {
        for (dt_node *word = n->first; word != NULL; word = word->next) {
            if (word->kind != DT_NODE_TEXT) {
                dt_str_fini(&text);
                return reject_value(o, path, n);
            }
            dt_str_addf(&text, "%s%s", word == n->first ? "" : ", ", word->text);
        }
        const char *joined = text.failed ? NULL : dt_pool_dup(c, dt_str_text(&text), text.bytes);
        dt_str_fini(&text);
        n->text = joined != NULL ? joined : n->text;
        return joined != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory while checking the configuration");
    }
    if (n->kind != DT_NODE_PLAIN && n->kind != DT_NODE_TEXT) {
        return reject_value(o, path, n);
    }
    n->kind = DT_NODE_LIST;
    for (const char *p = n->text; *p != '\0';) {
        p += strspn(p, ", ");
        size_t bytes = strcspn(p, ", ");
        const char *one = dt_pool_dup(c, p, bytes);
        if (one == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory while checking the configuration");
        }
        if (bytes > 0) {
            dt_node *word = NULL;
            DT_TRY(dt_node_new(c, DT_NODE_TEXT, NULL, one, &n->origin, &word));
            dt_node_append(n, word);
        }
        p += bytes;
    }
    return DT_OK;
}

static int parse_bool(const char *text)
{
    static const char *const yes[] = {"true", "yes", "on", "1"}, *const no[] = {"false", "no", "off", "0"};
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        if (strcasecmp(text, yes[i]) == 0) {
            return 1;
        }
        if (strcasecmp(text, no[i]) == 0) {
            return 0;
        }
    }
    return -1;
}

static bool is_auto(const dt_option *o, const dt_node *n)
{
    return (o->flags & DT_OPT_AUTO) != 0 && (n->kind == DT_NODE_PLAIN || n->kind == DT_NODE_TEXT) &&
           strcmp(n->text, "auto") == 0;
}

static dt_status normalise_number(dt_config *c, const dt_option *o, const char *path, dt_node *n)
{
    char text[32];
    double value = 0;
    if (is_auto(o, n)) {
        return set_node_value(c, n, DT_NODE_TEXT, "auto");
    }
    if (o->type == DT_OPT_I64) {
        int64_t i = 0;
        if ((n->kind != DT_NODE_INT && n->kind != DT_NODE_FLOAT && n->kind != DT_NODE_PLAIN) ||
            !dt_parse_whole(n->text, &i)) {
            return reject_value(o, path, n);
        }
        snprintf(text, sizeof(text), "%" PRId64, i);
        value = (double)i;
    } else {
        if ((n->kind != DT_NODE_INT && n->kind != DT_NODE_FLOAT && n->kind != DT_NODE_PLAIN) ||
            !dt_parse_f64(n->text, &value)) {
            return reject_value(o, path, n);
        }
        dt_format_f64(value, text);
    }
    if (!(value >= o->min && value <= o->max)) {
        return reject_value(o, path, n);
    }
    return set_node_value(c, n, o->type == DT_OPT_I64 ? DT_NODE_INT : DT_NODE_FLOAT, text);
}

dt_status dt_option_normalise(dt_config *c, const dt_option *o, const char *path, dt_node *n)
{
    if (o->type == DT_OPT_WORDS) {
        return normalise_words(c, o, path, n);
    }
    if (n->kind == DT_NODE_GROUP || n->kind == DT_NODE_LIST) {
        return reject_value(o, path, n);
    }
    switch (o->type) {
    case DT_OPT_BOOL: {
        int is_true = n->kind == DT_NODE_BOOL || n->kind == DT_NODE_PLAIN ? parse_bool(n->text) : -1;
        return is_true < 0 ? reject_value(o, path, n) : set_node_value(c, n, DT_NODE_BOOL, is_true ? "true" : "false");
    }
    case DT_OPT_I64:
    case DT_OPT_F64:
        return normalise_number(c, o, path, n);
    default:
        break;
    }
    if (n->kind != DT_NODE_TEXT && n->kind != DT_NODE_PLAIN) {
        return reject_value(o, path, n);
    }
    if (o->type == DT_OPT_PATH) {
        return dt_node_resolve_path(c, n);
    }
    if (o->type == DT_OPT_ENUM) {
        const char *const *choice = o->choices;
        while (*choice != NULL && strcmp(*choice, n->text) != 0) {
            choice++;
        }
        if (*choice == NULL) {
            return reject_value(o, path, n);
        }
    }
    return set_node_value(c, n, DT_NODE_TEXT, n->text);
}

/* The names of a table, for messages and suggestions. */
static dt_status fail_unknown_key(dt_config *c, const dt_section *s, const dt_node *n, const char *path)
{
    size_t n_names = 0;
    if (dt_config_has_max_errors(c)) {
        return dt_node_fail(n, path, "unknown key");
    }
    for (const dt_option *o = s->table; o != NULL && o->name != NULL; o++) {
        n_names++;
    }
    const uint32_t n_wired = strcmp(s->name, "models") == 0 ? c->n_wired : 0;
    const char **names = dt_pool_alloc(c, (n_names + n_wired + 1) * sizeof(*names));
    if (names == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory while checking the configuration");
    }
    dt_str known = {0}, theirs = {0}, meant = {0};
    dt_str_addf(&known, "%s.%s", s->name, n->key);
    const bool is_theirs = dt_guide_explain(c->keys, dt_str_text(&known), &theirs);
    dt_str_fini(&known);
    if (is_theirs) {
        const dt_status st = dt_node_fail(n, path, "unknown key; %s", dt_str_text(&theirs));
        dt_str_fini(&theirs);
        return st;
    }
    for (size_t i = 0; i < n_names + n_wired; i++) {
        names[i] = i < n_names ? s->table[i].name : c->wired[i - n_names];
        dt_str_addf(&known, "%s%s", i == 0 ? "" : ", ", names[i]);
    }
    const char *near = dt_suggest_word(n->key, names);
    dt_synonym_suggest(c, s, n->key, &meant);
    if (meant.bytes == 0 && near != NULL) {
        dt_str_add(&meant, near);
    }
    dt_status st = dt_node_fail(n, path, "unknown key; %s%s%s%s%s %s", meant.bytes > 0 ? "did you mean \"" : "",
                                dt_str_text(&meant), meant.bytes > 0 ? "\"? " : "", s->name,
                                n_names > 0 ? " has the keys" : " has no keys", dt_str_text(&known));
    dt_str_fini(&known);
    dt_str_fini(&meant);
    return st;
}

/* The sender of a run must not choose what is executed here. */
static dt_status reject_untrusted_code(const dt_config *c, const dt_option *o, const dt_node *n, const char *path)
{
    if ((o->flags & DT_OPT_CODE) == 0 || n->origin.layer != DT_FROM_RUN || c->is_trusted || n->text == NULL ||
        strcmp(n->text, o->dfl != NULL ? o->dfl : "") == 0) {
        return DT_OK;
    }
    (void)dt_node_fail(n, path,
                       "it would run code or write files, and only that run sets it; if you trust its author, use "
                       "--trust-plugins, or set the value yourself (--set)");
    return DT_EABI;
}

dt_status dt_section_normalise_one(dt_config *c, const dt_section *s, dt_node *value, const char *path)
{
    char own[PATH_BYTES];
    snprintf(own, sizeof(own), "%s%s%s", path, *path != '\0' ? "." : "", value->key);
    const dt_option *o = dt_option_find(s->table, value->key);
    DT_TRY(o != NULL ? reject_untrusted_code(c, o, value, own) : DT_OK);
    return o != NULL ? dt_option_normalise(c, o, own, value) : fail_unknown_key(c, s, value, own);
}

static dt_status normalise_section(dt_config *c, const dt_section *s, dt_node *group, const char *path)
{
    for (dt_node *n = group != NULL ? group->first : NULL; n != NULL; n = n->next) {
        if (!s->is_phase || n->kind != DT_NODE_GROUP) {
            DT_TRY(dt_section_normalise_one(c, s, n, path));
        }
    }
    return DT_OK;
}

/* ---- tables ---------------------------------------------------------------------------------------------------- */

static uint32_t member_bytes(uint32_t type)
{
    switch (type) {
    case DT_OPT_BOOL:
        return sizeof(uint8_t);
    case DT_OPT_I64:
        return sizeof(int64_t);
    case DT_OPT_F64:
        return sizeof(double);
    case DT_OPT_ENUM:
        return sizeof(uint32_t);
    case DT_OPT_STR:
    case DT_OPT_PATH:
    case DT_OPT_WORDS:
        return sizeof(char *);
    default:
        return 0;
    }
}

static dt_status check_option(const dt_option *table, const dt_option *o, uint64_t config_bytes)
{
    DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_WORD, DT_NAME_MOST_WORD, o->name, "an option"));
    if (dt_option_find(table, o->name) != o) {
        return DT_FAIL(DT_EPLUGIN, "option %s is declared twice; rename one", o->name);
    }
    uint32_t bytes = member_bytes(o->type);
    if (bytes == 0) {
        return DT_FAIL(DT_EPLUGIN, "option %s has type %u; known are 1 to %d (DT_OPT_*)", o->name, o->type,
                       DT_OPT_PATH);
    }
    if (o->size != bytes) {
        return DT_FAIL(DT_EPLUGIN, "option %s is a %s and needs a member of %u bytes, its member has %u", o->name,
                       dt_option_type_name(o), bytes, o->size);
    }
    if (o->offset % bytes != 0 || (uint64_t)o->offset + bytes > config_bytes) {
        return DT_FAIL(DT_EPLUGIN, "option %s is at byte %u, outside its struct of %" PRIu64 " bytes or unaligned",
                       o->name, o->offset, config_bytes);
    }
    if (o->type == DT_OPT_ENUM && (o->choices == NULL || o->choices[0] == NULL)) {
        return DT_FAIL(DT_EPLUGIN, "option %s is a choice without choices", o->name);
    }
    if ((o->type == DT_OPT_I64 || o->type == DT_OPT_F64) && !(o->min <= o->max)) {
        return DT_FAIL(DT_EPLUGIN, "option %s has the range [%g, %g]; the lower bound must not exceed the upper",
                       o->name, o->min, o->max);
    }
    const dt_option *needed = o->needs != NULL ? dt_option_find(table, o->needs) : NULL;
    if (o->needs != NULL && (needed == NULL || needed->type != DT_OPT_BOOL)) {
        return DT_FAIL(DT_EPLUGIN, "option %s needs %s; expected a bool option of this table", o->name, o->needs);
    }
    if (o->dfl == NULL) {
        return o->flags & DT_OPT_REQUIRED
                   ? DT_OK
                   : DT_FAIL(DT_EPLUGIN, "option %s has no default and is not DT_OPT_REQUIRED", o->name);
    }
    dt_config scratch = {0};
    dt_node value = {.kind = DT_NODE_PLAIN, .text = o->dfl};
    dt_status st = dt_option_normalise(&scratch, o, o->name, &value);
    dt_pool_fini(&scratch);
    if (st == DT_ECONFIG) {
        dt_str want = {0};
        dt_option_accepts(o, &want);
        st = DT_FAIL(DT_EPLUGIN, "option %s: the default \"%s\" does not parse: expected %s", o->name, o->dfl,
                     dt_str_text(&want));
        dt_str_fini(&want);
    }
    return st;
}

dt_status dt_option_table_check(const dt_option *table, uint64_t config_bytes)
{
    for (const dt_option *o = table; o != NULL && o->name != NULL; o++) {
        DT_TRY(check_option(table, o, config_bytes));
    }
    return DT_OK;
}

dt_status dt_config_declare(dt_config *c, const char *section, const dt_option *table, const char *plugin)
{
    const dt_section *known = dt_section_find(c, section);
    if (known != NULL) {
        return known->table == table || (known->is_phase && table == NULL)
                   ? DT_OK
                   : DT_FAIL(DT_EINVAL, "section %s is declared by %s already; give the component another id", section,
                             known->plugin != NULL ? known->plugin : "dtrain");
    }
    dt_section *s = dt_pool_alloc(c, sizeof(*s));
    const char *name = dt_pool_dup(c, section, strlen(section));
    const char *owner = plugin != NULL ? dt_pool_dup(c, plugin, strlen(plugin)) : NULL;
    if (s == NULL || name == NULL || (plugin != NULL && owner == NULL)) {
        return DT_FAIL(DT_ENOMEM, "out of memory for section %s", section);
    }
    *s = (dt_section){.name = name, .plugin = owner, .table = table};
    *c->sections_end = s;
    c->sections_end = &s->next;
    dt_origin origin = {plugin != NULL ? DT_FROM_PLUGIN : DT_FROM_BUILTIN, owner, 0};
    for (const dt_option *o = table; o != NULL && o->name != NULL; o++) {
        if (o->dfl == NULL) {
            continue;
        }
        char path[PATH_BYTES];
        snprintf(path, sizeof(path), "%s%s%s", section, *section != '\0' ? "." : "", o->name);
        dt_node *value = NULL;
        DT_TRY(dt_node_new(c, DT_NODE_PLAIN, NULL, o->dfl, &origin, &value));
        DT_TRY(dt_option_normalise(c, o, path, value));
        if (dt_config_effective(c, -1, section, o->name) == NULL) {
            DT_TRY(dt_config_place(c, path, value));
        }
    }
    return DT_OK;
}

dt_status dt_config_declare_phase(dt_config *c, const char *section, const dt_option *table, const char *plugin)
{
    static const dt_option none[] = {DT_OPTION_END};
    DT_TRY(dt_config_declare(c, section, table != NULL ? table : none, plugin));
    dt_section_find(c, section)->is_phase = true;
    return DT_OK;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static dt_status store_member(dt_config *c, const dt_option *o, const dt_node *n, char *out)
{
    void *member = out + o->offset;
    int64_t i = 0;
    double f = 0;
    uint32_t index = 0;
    switch (o->type) {
    case DT_OPT_BOOL:
        *(uint8_t *)member = strcmp(n->text, "true") == 0;
        break;
    case DT_OPT_I64:
        (void)dt_parse_i64(n->text, &i); /* auto: 0 */
        *(int64_t *)member = i;
        break;
    case DT_OPT_F64:
        (void)dt_parse_f64(n->text, &f);
        *(double *)member = f;
        break;
    case DT_OPT_ENUM:
        while (strcmp(o->choices[index], n->text) != 0) {
            index++;
        }
        *(uint32_t *)member = index;
        break;
    case DT_OPT_WORDS: {
        const char **words = dt_pool_alloc(c, ((size_t)dt_node_count(n) + 1) * sizeof(*words));
        if (words == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for %s", o->name);
        }
        *(const char *const **)member = words;
        for (const dt_node *word = n->first; word != NULL; word = word->next) {
            *words++ = word->text;
        }
        break;
    }
    default:
        *(const char **)member = n->text;
        break;
    }
    return DT_OK;
}

/* A required option was not set. */
static dt_status fail_missing_option(const dt_option *o, const char *section)
{
    dt_str want = {0};
    dt_option_accepts(o, &want);
    dt_status st =
        DT_FAIL(DT_ECONFIG, "%s.%s is not set and has no default: expected %s", section, o->name, dt_str_text(&want));
    dt_str_fini(&want);
    return st;
}

static dt_status default_value_of(dt_config *c, const dt_option *o, const char *section, dt_node **out_p)
{
    static const dt_origin built_in = {DT_FROM_BUILTIN, NULL, 0};
    if (o->dfl == NULL) {
        return fail_missing_option(o, section);
    }
    DT_TRY(dt_node_new(c, DT_NODE_PLAIN, o->name, o->dfl, &built_in, out_p));
    return dt_option_normalise(c, o, o->name, *out_p);
}

dt_status dt_group_read(dt_config *c, const dt_option *table, const dt_node *group, const char *path, void *out,
                        uint64_t bytes)
{
    memset(out, 0, bytes);
    for (const dt_option *o = table; o->name != NULL; o++) {
        dt_node *n = dt_node_find(group, o->name);
        if (n == NULL) {
            DT_TRY(default_value_of(c, o, path, &n));
        } else {
            char own[PATH_BYTES];
            snprintf(own, sizeof(own), "%s.%s", path, o->name);
            DT_TRY(dt_option_normalise(c, o, own, n));
        }
        DT_TRY(store_member(c, o, n, out));
    }
    return DT_OK;
}

/* The value of o in a section: an override, else the value in the tree. NULL in *out_p when it was not set. */
static dt_status effective_value_of(dt_config *c, int64_t phase, const dt_section *s, const dt_option *o,
                                    const dt_setting *over, uint32_t n_over, dt_node **out_p)
{
    static const dt_origin by_caller = {DT_FROM_SET, "the phase's request", 0};
    for (uint32_t i = n_over; i-- > 0;) {
        if (strcmp(over[i].key, o->name) == 0) {
            char path[PATH_BYTES];
            snprintf(path, sizeof(path), "%s.%s", s->name, o->name);
            DT_TRY(dt_node_new(c, DT_NODE_PLAIN, o->name, over[i].value, &by_caller, out_p));
            return dt_option_normalise(c, o, path, *out_p);
        }
    }
    *out_p = dt_config_effective(c, phase, s->name, o->name);
    return DT_OK;
}

dt_status dt_config_section(dt_config *c, int64_t phase, const char *section, const dt_setting *over, uint32_t n_over,
                            void *out, uint64_t bytes)
{
    const dt_section *s = dt_section_find(c, section);
    if (s == NULL) {
        return DT_FAIL(DT_EINVAL, "section %s was not declared", section);
    }
    char path[PATH_BYTES];
    if (*section == '\0') {
        for (const dt_option *o = s->table; o->name != NULL; o++) {
            dt_node *n = dt_node_find(&c->root, o->name);
            if (n != NULL) {
                DT_TRY(dt_section_normalise_one(c, s, n, ""));
            }
        }
    } else {
        DT_TRY(normalise_section(c, s, dt_node_find(&c->root, section), section));
        snprintf(path, sizeof(path), "phases.%lld.%s", (long long)phase, section);
        DT_TRY(normalise_section(c, s, dt_node_find(dt_config_phase_node(c, phase), section), path));
    }
    for (uint32_t i = 0; i < n_over; i++) {
        if (dt_option_find(s->table, over[i].key) == NULL) {
            return DT_FAIL(DT_ECONFIG, "%s has no option %s, which the phase requests", section, over[i].key);
        }
    }
    memset(out, 0, bytes);
    for (const dt_option *o = s->table; o != NULL && o->name != NULL; o++) {
        dt_node *n = NULL;
        DT_TRY(effective_value_of(c, phase, s, o, over, n_over, &n));
        if (n == NULL) {
            return fail_missing_option(o, section);
        }
        if ((uint64_t)o->offset + o->size > bytes) {
            return DT_FAIL(DT_EINVAL, "option %s.%s is outside a struct of %" PRIu64 " bytes", section, o->name, bytes);
        }
        DT_TRY(store_member(c, o, n, out));
    }
    return DT_OK;
}

dt_status dt_config_option_at(const dt_config *c, int64_t phase, const char *section, uint32_t i, dt_option_view *out_p)
{
    const dt_section *s = dt_section_find(c, section);
    const dt_option *o = s != NULL ? s->table : NULL;
    for (; o != NULL && o->name != NULL && i > 0; i--) {
        o++;
    }
    if (o == NULL || o->name == NULL) {
        return DT_ENOTFOUND;
    }
    const dt_node *n = dt_config_effective(c, phase, section, o->name);
    *out_p = (dt_option_view){o, NULL, {DT_FROM_BUILTIN, NULL, 0}};
    if (n != NULL) {
        out_p->value = n->text != NULL ? n->text : "( ... )"; /* a list that was not checked yet */
        out_p->origin = n->origin;
    }
    return DT_OK;
}
