/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration written out: as libconfig text, as values with their origin, and as a hash. See config.h.
 */
#include <config.h>

#include "config/options.h"
#include "config/tree.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 256 };

/* ---- libconfig ------------------------------------------------------------------------------------------------- */

void dt_config_write_string(const char *text, dt_str *out)
{
    dt_str_add(out, "\"");
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char ch = (unsigned char)*p;
        if (ch == '"' || ch == '\\') {
            dt_str_addf(out, "\\%c", ch);
        } else if (ch == '\n') {
            dt_str_add(out, "\\n");
        } else if (ch < 0x20) {
            dt_str_addf(out, "\\x%02x", ch);
        } else {
            dt_str_add_n(out, p, 1);
        }
    }
    dt_str_add(out, "\"");
}

static void write_node(const dt_node *n, int depth, dt_str *out);

static void write_children(const dt_node *n, int depth, dt_str *out)
{
    for (const dt_node *child = n->first; child != NULL; child = child->next) {
        dt_str_addf(out, "%*s%s = ", depth * 4, "", child->key);
        write_node(child, depth, out);
        dt_str_add(out, ";\n");
    }
}

static void write_node(const dt_node *n, int depth, dt_str *out)
{
    int64_t i = 0;
    switch (n->kind) {
    case DT_NODE_GROUP:
        dt_str_add(out, "{\n");
        write_children(n, depth + 1, out);
        dt_str_addf(out, "%*s}", depth * 4, "");
        break;
    case DT_NODE_LIST:
        dt_str_add(out, "(");
        for (const dt_node *child = n->first; child != NULL; child = child->next) {
            dt_str_add(out, child == n->first ? " " : ", ");
            write_node(child, depth, out);
        }
        dt_str_add(out, n->first != NULL ? " )" : ")");
        break;
    case DT_NODE_INT:
        (void)dt_parse_i64(n->text, &i);
        dt_str_addf(out, "%s%s", n->text, i > INT32_MAX || i < INT32_MIN ? "L" : "");
        break;
    case DT_NODE_BOOL:
    case DT_NODE_FLOAT:
        dt_str_add(out, n->text);
        break;
    default:
        dt_config_write_string(n->text, out);
        break;
    }
}

dt_status dt_option_write(const dt_option *o, const char *text, dt_str *out)
{
    if (o->type == DT_OPT_PATH) {
        dt_config_write_string(text, out);
        return dt_str_status(out);
    }
    dt_config scratch = {0};
    dt_node value = {.kind = DT_NODE_PLAIN, .text = text};
    dt_status st = dt_option_normalise(&scratch, o, o->name, &value);
    if (st == DT_OK) {
        write_node(&value, 0, out);
        st = dt_str_status(out);
    }
    dt_pool_fini(&scratch);
    return st;
}

dt_status dt_config_write(const dt_config *c, dt_str *out)
{
    write_children(&c->root, 0, out);
    return dt_str_status(out);
}

/* ---- every value with its option ------------------------------------------------------------------------------- */

typedef dt_config_visit visit;

static void walk_group(const dt_node *group, const dt_option *table, const char *path, visit *fn, void *user)
{
    for (const dt_node *n = group->first; n != NULL; n = n->next) {
        char own[PATH_BYTES];
        snprintf(own, sizeof(own), "%s.%s", path, n->key);
        fn(user, own, n, dt_option_find(table, n->key));
    }
}

static void walk_sections(const dt_config *c, const dt_node *groups, const dt_option *keys, const char *prefix,
                          visit *fn, void *user)
{
    for (const dt_node *n = groups->first; n != NULL; n = n->next) {
        char path[PATH_BYTES];
        snprintf(path, sizeof(path), "%s%s", prefix, n->key);
        if (n->kind == DT_NODE_LIST && strcmp(path, "phases") == 0) {
            int64_t i = 0;
            for (const dt_node *phase = n->first; phase != NULL; phase = phase->next, i++) {
                snprintf(path, sizeof(path), "phases.%lld.", (long long)i);
                walk_sections(c, phase, dt_schema_phase, path, fn, user);
            }
        } else if (n->kind != DT_NODE_GROUP) {
            fn(user, path, n, dt_option_find(keys, n->key));
        } else if (*prefix != '\0' && strcmp(n->key, "stop") == 0) {
            walk_group(n, dt_schema_stop, path, fn, user);
        } else {
            const dt_section *s = dt_section_find(c, n->key);
            walk_group(n, s != NULL ? s->table : NULL, path, fn, user);
        }
    }
}

static void walk_all_values(const dt_config *c, visit *fn, void *user)
{
    walk_sections(c, &c->root, dt_section_find(c, "")->table, "", fn, user);
}

/* ---- origins --------------------------------------------------------------------------------------------------- */

static void write_json_value(dt_json_out *out, const char *key, const dt_node *n)
{
    int64_t i = 0;
    double f = 0;
    switch (n->kind) {
    case DT_NODE_BOOL:
        dt_json_bool(out, key, strcmp(n->text, "true") == 0);
        break;
    case DT_NODE_INT:
        (void)dt_parse_i64(n->text, &i);
        dt_json_i64(out, key, i);
        break;
    case DT_NODE_FLOAT:
        (void)dt_parse_f64(n->text, &f);
        dt_json_f64(out, key, f);
        break;
    case DT_NODE_LIST:
        dt_json_arr(out, key);
        for (const dt_node *child = n->first; child != NULL; child = child->next) {
            write_json_value(out, NULL, child);
        }
        dt_json_end(out, ']');
        break;
    case DT_NODE_GROUP:
        dt_json_obj(out, key);
        for (const dt_node *child = n->first; child != NULL; child = child->next) {
            write_json_value(out, child->key, child);
        }
        dt_json_end(out, '}');
        break;
    default:
        dt_json_str(out, key, n->text);
        break;
    }
}

typedef struct origin_writer {
    dt_json_out *out;
    dt_earlier_origin *earlier; /* NULL: none */
    void *user;
} origin_writer;

static void write_origin(void *user, const char *path, const dt_node *n, const dt_option *o)
{
    const origin_writer *w = user;
    dt_json_out *out = w->out;
    dt_str origin = {0};
    const bool is_own = n->origin.layer == DT_FROM_RUN && w->earlier != NULL;
    const char *before = is_own ? w->earlier(w->user, path) : NULL;
    if (before != NULL) {
        dt_str_add(&origin, before);
    } else {
        dt_origin_text(&n->origin, &origin);
    }
    dt_json_obj(out, path);
    write_json_value(out, "value", n);
    dt_json_str(out, "origin", dt_str_text(&origin));
    dt_json_end(out, '}');
    out->s->failed = out->s->failed || origin.failed;
    dt_str_fini(&origin);
}

dt_status dt_config_write_origin(const dt_config *c, dt_earlier_origin *earlier, void *user, dt_str *out)
{
    dt_json_out json = {.s = out};
    origin_writer w = {.out = &json, .earlier = earlier, .user = user};
    dt_json_obj(&json, NULL);
    walk_all_values(c, write_origin, &w);
    dt_json_end(&json, '}');
    return dt_str_status(out);
}

/* ---- hash ------------------------------------------------------------------------------------------------------ */

typedef struct hash_lines {
    dt_str text; /* one NUL-terminated "path=value" after the other */
    size_t n;
    const dt_config *c;
    int64_t phase; /* -1: all */
} hash_lines;

static bool is_below(const char *path, const char *section)
{
    const size_t n = strlen(section);
    return n > 0 && strncmp(path, section, n) == 0 && path[n] == '.';
}

/* The id in "x/phase2_ppo.so". */
static dt_str plugin_id(const char *plugin)
{
    dt_str id = {0};
    const char *slash = strrchr(plugin, '/'), *name = slash != NULL ? slash + 1 : plugin;
    const size_t bytes = strlen(name);
    dt_str_add_n(&id, name, bytes > 3 && strcmp(name + bytes - 3, ".so") == 0 ? bytes - 3 : bytes);
    return id;
}

/* Does a value belong to another phase alone? */
static bool is_of_another(const hash_lines *l, const char *path)
{
    bool is_other = false;
    dt_str own = plugin_id(dt_config_plugin(l->c, l->phase));
    for (int64_t i = 0; i < dt_config_n_phases(l->c) && l->phase >= 0 && !is_other; i++) {
        char group[32];
        dt_str id = plugin_id(dt_config_plugin(l->c, i));
        snprintf(group, sizeof(group), "phases.%lld", (long long)i);
        is_other = i != l->phase && (is_below(path, group) || (is_below(path, dt_str_text(&id)) &&
                                                               strcmp(dt_str_text(&id), dt_str_text(&own)) != 0));
        dt_str_fini(&id);
    }
    dt_str_fini(&own);
    return is_other;
}

static bool is_result(const dt_option *o)
{
    return o == NULL || (o->type != DT_OPT_PATH && (o->flags & (DT_OPT_NEUTRAL | DT_OPT_PER_RANK)) == 0);
}

typedef struct results {
    visit *fn;
    void *user;
} results;

static void visit_result(void *user, const char *path, const dt_node *n, const dt_option *o)
{
    const results *r = user;
    if (is_result(o)) {
        r->fn(r->user, path, n, o);
    }
}

void dt_config_each_result(const dt_config *c, dt_config_visit *fn, void *user)
{
    results r = {fn, user};
    walk_all_values(c, visit_result, &r);
}

static void add_hash_line(void *user, const char *path, const dt_node *n, const dt_option *o)
{
    hash_lines *lines = user;
    if (!is_result(o)) {
        return;
    }
    if (is_of_another(lines, path)) {
        return;
    }
    dt_str_addf(&lines->text, "%s=", path);
    if (o == &dt_schema_phase[0]) { /* where the plugin's file is does not matter */
        dt_str id = plugin_id(n->text);
        dt_str_add(&lines->text, dt_str_text(&id));
        dt_str_fini(&id);
    } else {
        write_node(n, 0, &lines->text);
    }
    dt_str_add_n(&lines->text, "", 1);
    lines->n++;
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

dt_status dt_config_hash(const dt_config *c, char out[65])
{
    return dt_config_hash_phase(c, -1, out);
}

static dt_status hash_sorted(const hash_lines *lines, char out[65])
{
    DT_TRY(dt_str_status(&lines->text));
    const char **line = dt_alloc_n(lines->n + 1, sizeof(*line));
    if (line == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the hash of the configuration");
    }
    /* files may name keys in any order */
    const char *p = dt_str_text(&lines->text);
    for (size_t i = 0; i < lines->n; i++, p += strlen(p) + 1) {
        line[i] = p;
    }
    qsort(line, lines->n, sizeof(*line), compare_lines);
    dt_sha256 sha;
    dt_sha256_init(&sha);
    for (size_t i = 0; i < lines->n; i++) {
        dt_sha256_add(&sha, line[i], strlen(line[i]) + 1);
    }
    uint8_t digest[32];
    dt_sha256_end(&sha, digest);
    dt_hex(digest, sizeof(digest), out);
    dt_free(line);
    return DT_OK;
}

dt_status dt_config_hash_phase(const dt_config *c, int64_t phase, char out[65])
{
    hash_lines lines = {.c = c, .phase = phase};
    walk_all_values(c, add_hash_line, &lines);
    const dt_status st = hash_sorted(&lines, out);
    dt_str_fini(&lines.text);
    return st;
}

void dt_option_json(const dt_option *o, const char *value, const char *key, dt_json_out *out)
{
    int64_t i = 0;
    double f = 0;
    if (o->type == DT_OPT_BOOL) {
        dt_json_bool(out, key, strcmp(value, "true") == 0);
    } else if (o->type == DT_OPT_I64 && dt_parse_i64(value, &i)) {
        dt_json_i64(out, key, i);
    } else if (o->type == DT_OPT_F64 && dt_parse_f64(value, &f)) {
        dt_json_f64(out, key, f);
    } else {
        dt_json_str(out, key, value);
    }
}
