/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "config/port/yaml.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#ifdef DT_HAVE_YAML
#    include <yaml.h> /* this file alone */
#endif

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK_BYTES = 16384 };

typedef struct block {
    struct block *next;
    size_t used, bytes;
    _Alignas(16) char data[];
} block;

struct dt_yaml_doc {
    char *path;
    block *pool;
    dt_yaml *root;
};

/* ---- memory of a document -------------------------------------------------------------------------------------- */

void *dt_yaml_alloc(dt_yaml_doc *d, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (d->pool == NULL || d->pool->bytes - d->pool->used < bytes) {
        const size_t room = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        block *b = dt_alloc(sizeof(*b) + room);
        if (b == NULL) {
            return NULL;
        }
        b->bytes = room;
        b->next = d->pool;
        d->pool = b;
    }
    void *p = d->pool->data + d->pool->used;
    d->pool->used += bytes;
    return p;
}

char *dt_yaml_keep(dt_yaml_doc *d, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = dt_yaml_alloc(d, bytes);
    return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

void dt_yaml_close(dt_yaml_doc *d)
{
    if (d == NULL) {
        return;
    }
    for (block *b = d->pool, *next = NULL; b != NULL; b = next) {
        next = b->next;
        dt_free(b);
    }
    dt_free(d->path);
    dt_free(d);
}

const dt_yaml *dt_yaml_root(const dt_yaml_doc *d)
{
    return d->root;
}

static dt_status fail_at(const dt_yaml_doc *d, int line, int column, const char *why)
{
    return DT_FAIL(DT_ECONFIG, "%s:%d:%d: %s", d->path, line, column, why);
}

dt_status dt_yaml_fail(const dt_yaml_doc *d, const dt_yaml *at, const char *fmt, ...)
{
    char why[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    return fail_at(d, at->line, at->column, why);
}

#ifdef DT_HAVE_YAML

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* The files that are meant have some hundred values, four deep. */
enum {
    MAX_FILE_BYTES = 256 << 10,
    MAX_DEPTH = 32,
    MAX_NODES = 20000,
    MAX_KEYS = 1000,
    MAX_KEY_BYTES = 128,
    MAX_ANCHORS = 64,
    SHOWN = 60
};

typedef struct anchor {
    const char *name;
    const dt_yaml *node; /* NULL: its value is being read */
} anchor;

typedef struct reader {
    dt_yaml_doc *d;
    yaml_parser_t parser;
    anchor anchors[MAX_ANCHORS];
    int n_anchors, n_nodes, depth;
} reader;

static dt_status fail_out_of_memory(const reader *r)
{
    return DT_FAIL(DT_ENOMEM, "out of memory while reading %s", r->d->path);
}

static dt_status reject_at_mark(const reader *r, const yaml_mark_t *at, const char *fmt, ...) DT_PRINTF(3, 4);
static dt_status reject_at_mark(const reader *r, const yaml_mark_t *at, const char *fmt, ...)
{
    char why[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    return fail_at(r->d, (int)at->line + 1, (int)at->column + 1, why);
}

/* The next event, to be deleted by the caller. */
static dt_status next_event(reader *r, yaml_event_t *e)
{
    if (yaml_parser_parse(&r->parser, e)) {
        return DT_OK;
    }
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR) {
        return fail_out_of_memory(r);
    }
    const yaml_mark_t *at = p->error == YAML_READER_ERROR ? &p->mark : &p->problem_mark;
    return reject_at_mark(r, at, "no YAML: %s%s%s", p->problem != NULL ? p->problem : "it cannot be read",
                          p->context != NULL ? ", " : "", p->context != NULL ? p->context : "");
}

static dt_status new_node(reader *r, const yaml_event_t *e, dt_yaml_kind kind, dt_yaml **out_p)
{
    if (++r->n_nodes > MAX_NODES) {
        return reject_at_mark(r, &e->start_mark, "more than %d values, those of aliases counted", MAX_NODES);
    }
    dt_yaml *n = dt_yaml_alloc(r->d, sizeof(*n));
    if (n == NULL) {
        return fail_out_of_memory(r);
    }
    n->kind = kind;
    n->line = (int)e->start_mark.line + 1;
    n->column = (int)e->start_mark.column + 1;
    *out_p = n;
    return DT_OK;
}

static void append_child(dt_yaml *parent, dt_yaml *child)
{
    if (parent->last != NULL) {
        parent->last->next = child;
    } else {
        parent->first = child;
    }
    parent->last = child;
}

static dt_yaml *find_child(const dt_yaml *map, const char *key)
{
    for (dt_yaml *n = map->first; n != NULL; n = n->next) {
        if (strcmp(n->key, key) == 0) {
            return n;
        }
    }
    return NULL;
}

/* "!!str" and similar tags state what would be guessed; any other tag requires an object of another program. */
static dt_status check_tag(const reader *r, const yaml_event_t *e, const yaml_char_t *tag)
{
    static const char *const known[] = {"str", "int", "float", "bool", "null", "map", "seq"};
    static const char prefix[] = "tag:yaml.org,2002:";
    const char *text = (const char *)tag;
    if (text == NULL || strcmp(text, "!") == 0) {
        return DT_OK;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strncmp(text, prefix, sizeof(prefix) - 1) == 0 && strcmp(text + sizeof(prefix) - 1, known[i]) == 0) {
            return DT_OK;
        }
    }
    return reject_at_mark(r, &e->start_mark, "the tag %.*s is not read; plain values, lists and mappings are", SHOWN,
                          text);
}

/* Before its value is read: index_p, -1 where it has none. */
static dt_status begin_anchor(reader *r, const yaml_event_t *e, const yaml_char_t *name, int *index_p)
{
    *index_p = -1;
    if (name == NULL) {
        return DT_OK;
    }
    if (r->n_anchors == MAX_ANCHORS) {
        return reject_at_mark(r, &e->start_mark, "more than %d anchors", MAX_ANCHORS);
    }
    const char *copy = dt_yaml_keep(r->d, (const char *)name);
    if (copy == NULL) {
        return fail_out_of_memory(r);
    }
    *index_p = r->n_anchors;
    r->anchors[r->n_anchors++] = (anchor){.name = copy};
    return DT_OK;
}

static dt_status copy_node(reader *r, const yaml_event_t *e, const dt_yaml *from, dt_yaml **out_p)
{
    dt_yaml *n = NULL;
    DT_TRY(new_node(r, e, from->kind, &n));
    n->key = from->key;
    n->text = from->text;
    n->is_quoted = from->is_quoted;
    n->is_repaired = from->is_repaired;
    for (const dt_yaml *child = from->first; child != NULL; child = child->next) {
        dt_yaml *copy = NULL;
        DT_TRY(copy_node(r, e, child, &copy)); /* as deep as what was read */
        append_child(n, copy);
    }
    *out_p = n;
    return DT_OK;
}

static dt_status read_alias(reader *r, const yaml_event_t *e, dt_yaml **out_p)
{
    const char *name = (const char *)e->data.alias.anchor;
    for (int i = r->n_anchors; i-- > 0;) {
        if (strcmp(r->anchors[i].name, name) != 0) {
            continue;
        }
        if (r->anchors[i].node == NULL) {
            return reject_at_mark(r, &e->start_mark, "*%.*s is inside the node that it names", SHOWN, name);
        }
        DT_TRY(copy_node(r, e, r->anchors[i].node, out_p));
        (*out_p)->key = NULL;
        return DT_OK;
    }
    return reject_at_mark(r, &e->start_mark, "*%.*s has no anchor before it", SHOWN, name);
}

static dt_status read_text(const reader *r, const yaml_event_t *e, const char **out_p)
{
    const char *text = (const char *)e->data.scalar.value;
    if (strlen(text) != e->data.scalar.length) {
        return reject_at_mark(r, &e->start_mark, "a string that contains a NUL byte");
    }
    *out_p = dt_yaml_keep(r->d, text);
    return *out_p != NULL ? DT_OK : fail_out_of_memory(r);
}

static dt_status read_node(reader *r, const yaml_event_t *e, dt_yaml **out_p);

/* The node that begins with the next event. */
static dt_status read_next(reader *r, dt_yaml **out_p)
{
    yaml_event_t e;
    DT_TRY(next_event(r, &e));
    const dt_status st = read_node(r, &e, out_p);
    yaml_event_delete(&e);
    return st;
}

/* "10)" after range "(-10": what a tuple's comma cut off is appended to it. */
static dt_status rejoin_split_tuple(reader *r, dt_yaml *map, const char *key, const dt_yaml *value, bool *is_repaired_p)
{
    dt_yaml *last = map->last;
    const bool is_open = last != NULL && last->kind == DT_YAML_VALUE && !last->is_quoted && last->text[0] == '(' &&
                         strchr(last->text, ')') == NULL;
    const bool is_piece = value->kind == DT_YAML_VALUE && !value->is_quoted && value->text[0] == '\0';
    *is_repaired_p = is_open && is_piece;
    if (!*is_repaired_p) {
        return DT_OK;
    }
    char *joined = dt_yaml_alloc(r->d, strlen(last->text) + strlen(key) + 3);
    if (joined == NULL) {
        return fail_out_of_memory(r);
    }
    strcpy(joined, last->text);
    strcat(joined, ", ");
    strcat(joined, key);
    last->text = joined;
    last->is_repaired = true;
    return DT_OK;
}

/* "<<: *base": what the mapping does not set itself. */
static dt_status merge_mapping(reader *r, const yaml_event_t *e, dt_yaml *map, const dt_yaml *base)
{
    if (base->kind != DT_YAML_MAP) {
        return reject_at_mark(r, &e->start_mark, "<< takes a mapping, as in <<: *base");
    }
    for (const dt_yaml *n = base->first; n != NULL; n = n->next) {
        dt_yaml *copy = NULL;
        if (find_child(map, n->key) == NULL) {
            DT_TRY(copy_node(r, e, n, &copy));
            append_child(map, copy);
        }
    }
    return DT_OK;
}

/* One key, whose event is e, and its value. base_p: what "<<" named. */
static dt_status read_pair(reader *r, const yaml_event_t *e, dt_yaml *map, int n_keys, dt_yaml **base_p)
{
    const char *key = NULL;
    dt_yaml *value = NULL;
    bool is_repaired = false;
    if (e->type != YAML_SCALAR_EVENT || e->data.scalar.anchor != NULL) {
        return reject_at_mark(r, &e->start_mark, "a key is a plain word here");
    }
    if (n_keys > MAX_KEYS) {
        return reject_at_mark(r, &e->start_mark, "more than %d keys in one mapping", MAX_KEYS);
    }
    if (e->data.scalar.length > MAX_KEY_BYTES) {
        return reject_at_mark(r, &e->start_mark, "a key of %zu bytes, at most %d are read", e->data.scalar.length,
                              MAX_KEY_BYTES);
    }
    DT_TRY(check_tag(r, e, e->data.scalar.tag));
    DT_TRY(read_text(r, e, &key));
    DT_TRY(read_next(r, &value));
    DT_TRY(rejoin_split_tuple(r, map, key, value, &is_repaired));
    if (is_repaired) {
        return DT_OK;
    }
    if (strcmp(key, "<<") == 0) {
        *base_p = value;
        return DT_OK;
    }
    if (find_child(map, key) != NULL) {
        return reject_at_mark(r, &e->start_mark, "%.*s appears twice in one mapping, first in line %d", SHOWN, key,
                              find_child(map, key)->line);
    }
    value->key = key;
    append_child(map, value);
    return DT_OK;
}

static dt_status read_map(reader *r, const yaml_event_t *begin, dt_yaml *map)
{
    dt_yaml *base = NULL;
    for (int n = 1;; n++) {
        yaml_event_t e;
        DT_TRY(next_event(r, &e));
        const bool is_end = e.type == YAML_MAPPING_END_EVENT;
        const dt_status st = is_end ? DT_OK : read_pair(r, &e, map, n, &base);
        yaml_event_delete(&e);
        DT_TRY(st);
        if (is_end) {
            return base != NULL ? merge_mapping(r, begin, map, base) : DT_OK;
        }
    }
}

static dt_status read_list(reader *r, dt_yaml *list)
{
    for (;;) {
        yaml_event_t e;
        dt_yaml *n = NULL;
        DT_TRY(next_event(r, &e));
        const bool is_end = e.type == YAML_SEQUENCE_END_EVENT;
        const dt_status st = is_end ? DT_OK : read_node(r, &e, &n);
        yaml_event_delete(&e);
        DT_TRY(st);
        if (is_end) {
            return DT_OK;
        }
        append_child(list, n);
    }
}

static dt_status read_value(reader *r, const yaml_event_t *e, dt_yaml **out_p)
{
    DT_TRY(check_tag(r, e, e->data.scalar.tag));
    DT_TRY(new_node(r, e, DT_YAML_VALUE, out_p));
    (*out_p)->is_quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return read_text(r, e, &(*out_p)->text);
}

static dt_status read_node(reader *r, const yaml_event_t *e, dt_yaml **out_p)
{
    int at = -1;
    dt_status st = DT_OK;
    switch (e->type) {
    case YAML_ALIAS_EVENT:
        return read_alias(r, e, out_p);
    case YAML_SCALAR_EVENT:
        DT_TRY(begin_anchor(r, e, e->data.scalar.anchor, &at));
        st = read_value(r, e, out_p);
        break;
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        if (r->depth == MAX_DEPTH) {
            return reject_at_mark(r, &e->start_mark, "nested deeper than %d", MAX_DEPTH);
        }
        r->depth++;
        if (e->type == YAML_SEQUENCE_START_EVENT) {
            DT_TRY(check_tag(r, e, e->data.sequence_start.tag));
            DT_TRY(begin_anchor(r, e, e->data.sequence_start.anchor, &at));
            DT_TRY(new_node(r, e, DT_YAML_LIST, out_p));
            st = read_list(r, *out_p);
        } else {
            DT_TRY(check_tag(r, e, e->data.mapping_start.tag));
            DT_TRY(begin_anchor(r, e, e->data.mapping_start.anchor, &at));
            DT_TRY(new_node(r, e, DT_YAML_MAP, out_p));
            st = read_map(r, e, *out_p);
        }
        r->depth--;
        break;
    default:
        return reject_at_mark(r, &e->start_mark, "expected a value");
    }
    if (st == DT_OK && at >= 0) {
        r->anchors[at].node = *out_p;
    }
    return st;
}

/* One document, which is a mapping. */
static dt_status read_document(reader *r)
{
    bool has_document = false;
    for (;;) {
        yaml_event_t e;
        DT_TRY(next_event(r, &e));
        const yaml_event_type_t type = e.type;
        dt_status st = DT_OK;
        if (type == YAML_DOCUMENT_START_EVENT && has_document) {
            st = reject_at_mark(r, &e.start_mark, "a second document; one file is one configuration");
        } else if (type == YAML_DOCUMENT_START_EVENT) {
            has_document = true;
            st = read_next(r, &r->d->root);
        }
        yaml_event_delete(&e);
        DT_TRY(st);
        if (type == YAML_STREAM_END_EVENT) {
            const dt_yaml *root = r->d->root;
            return root != NULL && root->kind == DT_YAML_MAP
                       ? DT_OK
                       : fail_at(r->d, root != NULL ? root->line : 1, root != NULL ? root->column : 1,
                                 "expected a mapping, as in training: { num_epochs: 50 }");
        }
    }
}

static dt_status read_file(dt_yaml_doc *d)
{
    char *text = NULL;
    size_t bytes = 0;
    reader r = {.d = d};
    DT_TRY(dt_fs_read_any(d->path, MAX_FILE_BYTES, &text, &bytes));
    if (!yaml_parser_initialize(&r.parser)) {
        dt_free(text);
        return fail_out_of_memory(&r);
    }
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, bytes);
    const dt_status st = read_document(&r);
    yaml_parser_delete(&r.parser);
    dt_free(text);
    return st;
}

#else

static dt_status read_file(dt_yaml_doc *d)
{
    return DT_FAIL(DT_EUNSUPPORTED,
                   "%s: this dtrain was built without libyaml and reads no YAML; install it (Debian: apt-get install "
                   "libyaml-dev), then configure and build again",
                   d->path);
}

#endif

dt_status dt_yaml_read(const char *path, dt_yaml_doc **out_p)
{
    dt_yaml_doc *d = dt_alloc(sizeof(*d));
    if (d == NULL || (d->path = dt_strdup(path)) == NULL) {
        dt_free(d);
        return DT_FAIL(DT_ENOMEM, "out of memory while reading %s", path);
    }
    const dt_status st = read_file(d);
    if (st < 0) {
        dt_yaml_close(d);
        return st;
    }
    *out_p = d;
    return DT_OK;
}
