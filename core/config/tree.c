/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of the configuration. See tree.h.
 */
#include <config.h>

#include "config/tree.h"
#include "base/err.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POOL_BLOCK_BYTES = 8192, PATH_BYTES = 256 };

typedef struct dt_pool_block {
    struct dt_pool_block *next;
    size_t used, bytes;
    _Alignas(16) char data[];
} dt_pool_block;

void *dt_pool_alloc(dt_config *c, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (c->pool == NULL || c->pool->bytes - c->pool->used < bytes) {
        size_t room = bytes > POOL_BLOCK_BYTES ? bytes : POOL_BLOCK_BYTES;
        dt_pool_block *b = dt_alloc(sizeof(*b) + room);
        if (b == NULL) {
            return NULL;
        }
        b->bytes = room;
        b->next = c->pool;
        c->pool = b;
    }
    void *p = c->pool->data + c->pool->used;
    c->pool->used += bytes;
    return p;
}

char *dt_pool_dup(dt_config *c, const char *text, size_t bytes)
{
    char *copy = dt_pool_alloc(c, bytes + 1);
    if (copy != NULL) {
        memcpy(copy, text, bytes);
        copy[bytes] = '\0';
    }
    return copy;
}

void dt_pool_fini(dt_config *c)
{
    while (c->pool != NULL) {
        dt_pool_block *next = c->pool->next;
        dt_free(c->pool);
        c->pool = next;
    }
}

dt_status dt_node_new(dt_config *c, dt_node_kind kind, const char *key, const char *text, const dt_origin *origin,
                      dt_node **out_p)
{
    dt_node *n = dt_pool_alloc(c, sizeof(*n));
    const char *key_copy = key != NULL ? dt_pool_dup(c, key, strlen(key)) : NULL;
    const char *text_copy = text != NULL ? dt_pool_dup(c, text, strlen(text)) : NULL;
    if (n == NULL || (key != NULL && key_copy == NULL) || (text != NULL && text_copy == NULL)) {
        return DT_FAIL(DT_ENOMEM, "out of memory while reading the configuration");
    }
    *n = (dt_node){.kind = kind, .key = key_copy, .text = text_copy, .origin = *origin};
    *out_p = n;
    return DT_OK;
}

void dt_node_append(dt_node *parent, dt_node *child)
{
    child->next = NULL;
    if (parent->last != NULL) {
        parent->last->next = child;
    } else {
        parent->first = child;
    }
    parent->last = child;
}

void dt_node_remove(dt_node *parent, const dt_node *child)
{
    dt_node *before = NULL;
    for (dt_node *n = parent->first; n != NULL; before = n, n = n->next) {
        if (n != child) {
            continue;
        }
        if (before != NULL) {
            before->next = n->next;
        } else {
            parent->first = n->next;
        }
        if (parent->last == n) {
            parent->last = before;
        }
        return;
    }
}

int64_t dt_node_count(const dt_node *parent)
{
    int64_t n = 0;
    for (const dt_node *child = parent->first; child != NULL; child = child->next) {
        n++;
    }
    return n;
}

dt_node *dt_node_find(const dt_node *parent, const char *key)
{
    if (parent == NULL || parent->kind != DT_NODE_GROUP) {
        return NULL;
    }
    for (dt_node *n = parent->first; n != NULL; n = n->next) {
        if (strcmp(n->key, key) == 0) {
            return n;
        }
    }
    return NULL;
}

dt_node *dt_node_at(const dt_node *parent, int64_t i)
{
    if (parent == NULL || parent->kind != DT_NODE_LIST || i < 0) {
        return NULL;
    }
    dt_node *n = parent->first;
    for (; n != NULL && i > 0; i--) {
        n = n->next;
    }
    return n;
}

/* Take over what other holds, keeping the place among the siblings. */
static void replace_node_content(dt_node *old, const dt_node *by)
{
    dt_node *next = old->next;
    const char *key = old->key;
    *old = *by;
    old->next = next;
    old->key = key;
}

/* "x/phase2_ppo.so" and "phase2_ppo" name the same plugin. */
bool dt_same_plugin(const char *a, const char *b)
{
    const char *name[2] = {a, b};
    size_t bytes[2];
    for (int i = 0; i < 2; i++) {
        const char *slash = strrchr(name[i], '/');
        name[i] = slash != NULL ? slash + 1 : name[i];
        bytes[i] = strlen(name[i]);
        if (bytes[i] > 3 &&
            (strcmp(name[i] + bytes[i] - 3, ".so") == 0 || strcmp(name[i] + bytes[i] - 3, ".la") == 0)) {
            bytes[i] -= 3;
        }
    }
    return bytes[0] == bytes[1] && memcmp(name[0], name[1], bytes[0]) == 0;
}

static const char *plugin_of_phase(const dt_node *phase)
{
    const dt_node *n = phase->kind == DT_NODE_GROUP ? dt_node_find(phase, "plugin") : NULL;
    return n != NULL && n->text != NULL ? n->text : "";
}

/* The phase of a list that `at` is among others: the n-th of the same plugin; NULL when it has none. */
static dt_node *find_same_phase(const dt_node *list, const dt_node *others, const dt_node *at)
{
    uint32_t nth = 0;
    for (const dt_node *p = others->first; p != at; p = p->next) {
        nth += dt_same_plugin(plugin_of_phase(p), plugin_of_phase(at));
    }
    for (dt_node *p = list->first; p != NULL; p = p->next) {
        if (dt_same_plugin(plugin_of_phase(p), plugin_of_phase(at)) && nth-- == 0) {
            return p;
        }
    }
    return NULL;
}

/* Sections of a resumed run's phases below those of the phases that take their place; what else is in a phase
 * (init, stop ...) is what the new one has, or nothing. */
static dt_status keep_run_sections(const dt_node *run, dt_node *phases)
{
    for (dt_node *phase = phases->first; phase != NULL; phase = phase->next) {
        dt_node *kept = phase->kind == DT_NODE_GROUP ? find_same_phase(run, phases, phase) : NULL;
        for (dt_node *n = kept != NULL ? kept->first : NULL, *next = NULL; n != NULL; n = next) {
            next = n->next;
            const dt_node *own = n->key != NULL ? dt_node_find(phase, n->key) : NULL;
            if (n->kind == DT_NODE_GROUP && strcmp(n->key, "stop") != 0 && (own == NULL || own->kind == n->kind)) {
                DT_TRY(dt_node_place(phase, n, "phases")); /* of a weaker layer: it replaces nothing */
            }
        }
    }
    return DT_OK;
}

static dt_status overwrite_node(dt_node *old, dt_node *by, const char *path)
{
    bool old_is_group = old->kind == DT_NODE_GROUP, by_is_group = by->kind == DT_NODE_GROUP;
    if (old_is_group && by_is_group) {
        for (dt_node *n = by->first, *next = NULL; n != NULL; n = next) {
            next = n->next;
            DT_TRY(dt_node_place(old, n, path));
        }
        return DT_OK;
    }
    if (old_is_group) {
        return dt_node_fail(by, path, "it is a group: expected %s = { key = value; ... }", path);
    }
    if (by_is_group && old->origin.layer > DT_FROM_PLUGIN) { /* over a default its option states what it accepts */
        dt_str where = {0};
        dt_origin_text(&old->origin, &where);
        dt_status st = dt_node_fail(by, path, "expected a value, as %s is one at %s", path, dt_str_text(&where));
        dt_str_fini(&where);
        return st;
    }
    if (by->origin.layer >= old->origin.layer) {
        if (old->kind == DT_NODE_LIST && by->kind == DT_NODE_LIST && old->origin.layer == DT_FROM_RUN &&
            by->origin.layer > DT_FROM_RUN && strcmp(path, "phases") == 0) {
            DT_TRY(keep_run_sections(old, by));
        }
        replace_node_content(old, by);
    }
    return DT_OK;
}

dt_status dt_node_place(dt_node *parent, dt_node *child, const char *path)
{
    dt_node *old = dt_node_find(parent, child->key);
    if (old == NULL) {
        dt_node_append(parent, child);
        return DT_OK;
    }
    char own[PATH_BYTES];
    snprintf(own, sizeof(own), "%s%s%s", path, *path != '\0' ? "." : "", child->key);
    return overwrite_node(old, child, own);
}

/* Does a path begin with a number? */
static bool is_index(const char *path)
{
    size_t bytes = strcspn(path, ".");
    return bytes > 0 && bytes < 6 && strspn(path, "0123456789") == bytes;
}

/* The child of at that word names, made as a group or list when it is not there yet; rest of the path follows it. */
static dt_status find_or_add_child(dt_config *c, dt_node **at, const char *word, const char *rest, const dt_node *leaf,
                                   const char *path)
{
    dt_node *parent = *at, *child = NULL;
    dt_node_kind fresh = is_index(rest) ? DT_NODE_LIST : DT_NODE_GROUP;
    if (parent->kind == DT_NODE_LIST) {
        int64_t n = dt_node_count(parent);
        if (!is_index(word) || strtoll(word, NULL, 10) > n) {
            return dt_node_fail(leaf, path, "\"%s\" is not an entry of a list of %lld; count from 0", word,
                                (long long)n);
        }
        child = dt_node_at(parent, strtoll(word, NULL, 10));
        if (child == NULL) {
            DT_TRY(dt_node_new(c, fresh, NULL, NULL, &leaf->origin, &child));
            dt_node_append(parent, child);
        }
    } else {
        child = dt_node_find(parent, word);
        if (child == NULL) {
            DT_TRY(dt_node_new(c, fresh, word, NULL, &leaf->origin, &child));
            dt_node_append(parent, child);
        }
    }
    if (child->kind != DT_NODE_GROUP && child->kind != DT_NODE_LIST) {
        return dt_node_fail(leaf, path, "\"%s\" is a value and has no keys", word);
    }
    *at = child;
    return DT_OK;
}

dt_status dt_config_place(dt_config *c, const char *path, dt_node *leaf)
{
    char words[PATH_BYTES];
    if (*path == '\0' || strlen(path) >= sizeof(words)) {
        return DT_FAIL(DT_ECONFIG, "\"%.40s\" is not a key: expected section.key", path);
    }
    memcpy(words, path, strlen(path) + 1);
    dt_node *at = &c->root;
    char *word = words;
    for (char *dot = strchr(word, '.'); dot != NULL; dot = strchr(word, '.')) {
        *dot = '\0';
        if (*word == '\0' || dot[1] == '\0' || dot[1] == '.') {
            return DT_FAIL(DT_ECONFIG, "\"%s\" is not a key: a name is missing next to a dot", path);
        }
        DT_TRY(find_or_add_child(c, &at, word, dot + 1, leaf, path));
        word = dot + 1;
    }
    if (at->kind == DT_NODE_GROUP) {
        leaf->key = dt_pool_dup(c, word, strlen(word));
        if (leaf->key == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory while reading the configuration");
        }
        char parent[PATH_BYTES];
        snprintf(parent, sizeof(parent), "%.*s", (int)(word == words ? 0 : word - words - 1), path);
        return dt_node_place(at, leaf, parent);
    }
    int64_t n = dt_node_count(at);
    if (!is_index(word) || strtoll(word, NULL, 10) > n) {
        return dt_node_fail(leaf, path, "\"%s\" is not an entry of a list of %lld; count from 0", word, (long long)n);
    }
    dt_node *old = dt_node_at(at, strtoll(word, NULL, 10));
    if (old == NULL) {
        dt_node_append(at, leaf);
        return DT_OK;
    }
    return overwrite_node(old, leaf, path);
}

dt_section *dt_section_find(const dt_config *c, const char *name)
{
    dt_section *s = c->sections;
    while (s != NULL && strcmp(s->name, name) != 0) {
        s = s->next;
    }
    return s;
}

dt_node *dt_config_phase_node(const dt_config *c, int64_t phase)
{
    return dt_node_at(dt_node_find(&c->root, "phases"), phase);
}

dt_node *dt_node_select_stronger(dt_node *common, dt_node *own)
{
    return own == NULL || (common != NULL && common->origin.layer > own->origin.layer) ? common : own;
}

dt_node *dt_config_effective(const dt_config *c, int64_t phase, const char *section, const char *key)
{
    if (*section == '\0') {
        return dt_node_find(&c->root, key);
    }
    dt_node *own = dt_node_find(dt_config_phase_node(c, phase), section);
    return dt_node_select_stronger(dt_node_find(dt_node_find(&c->root, section), key), dt_node_find(own, key));
}

void dt_origin_text(const dt_origin *o, dt_str *out)
{
    switch (o->layer) {
    case DT_FROM_BUILTIN:
        dt_str_add(out, "built-in");
        break;
    case DT_FROM_PLUGIN:
        dt_str_addf(out, "plugin %s", o->name);
        break;
    case DT_FROM_PROFILE:
    case DT_FROM_RUN:
    case DT_FROM_FILE:
        dt_str_addf(out, "%s:%d", o->name, o->line);
        break;
    case DT_FROM_ENV:
        dt_str_addf(out, "environment %s", o->name);
        break;
    case DT_FROM_SET:
        dt_str_add(out, o->name);
        break;
    }
}

/* training.epochs = "ten" at run.cfg:7 */
static void describe_node(const dt_node *n, const char *path, dt_str *out)
{
    dt_str_add(out, path);
    if (n->kind == DT_NODE_TEXT || n->kind == DT_NODE_PLAIN) {
        dt_str_addf(out, " = \"%.80s\"", n->text);
    } else if (n->kind == DT_NODE_GROUP) {
        dt_str_add(out, " = { ... }");
    } else if (n->kind == DT_NODE_LIST) {
        dt_str_add(out, " = ( ... )");
    } else {
        dt_str_addf(out, " = %s", n->text);
    }
    switch (n->origin.layer) {
    case DT_FROM_BUILTIN:
    case DT_FROM_PLUGIN:
        dt_str_add(out, " by default of ");
        dt_str_add(out, n->origin.layer == DT_FROM_PLUGIN ? "" : "dtrain");
        break;
    case DT_FROM_PROFILE:
    case DT_FROM_RUN:
    case DT_FROM_FILE:
        dt_str_add(out, " at ");
        break;
    case DT_FROM_ENV:
    case DT_FROM_SET:
        dt_str_add(out, " from ");
        break;
    }
    if (n->origin.layer != DT_FROM_BUILTIN) {
        dt_origin_text(&n->origin, out);
    }
}

dt_status dt_node_fail(const dt_node *n, const char *path, const char *fmt, ...)
{
    dt_str text = {0};
    describe_node(n, path, &text);
    dt_str_add(&text, ": ");
    va_list ap;
    va_start(ap, fmt);
    dt_str_addv(&text, fmt, ap);
    va_end(ap);
    dt_status st = DT_FAIL(DT_ECONFIG, "%s", dt_str_text(&text));
    dt_str_fini(&text);
    return st;
}

void dt_format_f64(double v, char out[32])
{
    for (int digits = 1; digits <= 17; digits++) {
        double back = 0;
        snprintf(out, 32, "%.*g", digits, v);
        if (dt_parse_f64(out, &back) && back == v) {
            break;
        }
    }
    if (v == floor(v) && fabs(v) < 1e7) { /* 10, not 1e+01 */
        snprintf(out, 32, "%.0f", v);
    }
    if (strcspn(out, ".eE") == strlen(out)) {
        strncat(out, ".0", 31 - strlen(out));
    }
}
