/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "config/document.h"

#include "config/tree.h"

#include "base/err.h"
#include "base/mem.h"

#include <string.h>

static dt_document_kind kind_of(dt_node_kind k)
{
    static const dt_document_kind kind[] = {
        [DT_NODE_GROUP] = DT_DOCUMENT_GROUP, [DT_NODE_LIST] = DT_DOCUMENT_LIST,   [DT_NODE_BOOL] = DT_DOCUMENT_BOOL,
        [DT_NODE_INT] = DT_DOCUMENT_INT,     [DT_NODE_FLOAT] = DT_DOCUMENT_FLOAT, [DT_NODE_TEXT] = DT_DOCUMENT_TEXT,
        [DT_NODE_PLAIN] = DT_DOCUMENT_TEXT};
    return kind[k];
}

static dt_status add_item(dt_document *d, const char *path, const dt_node *n)
{
    if (d->n == d->cap) {
        const uint32_t cap = d->cap == 0 ? 64 : 2 * d->cap;
        dt_document_item *grown = dt_realloc(d->item, cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for %u values of a file", cap);
        }
        d->item = grown;
        d->cap = cap;
    }
    dt_document_item *i = &d->item[d->n++];
    *i = (dt_document_item){.path = dt_strdup(path),
                            .text = dt_strdup(n->text != NULL ? n->text : ""),
                            .file = dt_strdup(n->origin.name != NULL ? n->origin.name : ""),
                            .kind = kind_of(n->kind),
                            .line = n->origin.line};
    return i->path != NULL && i->text != NULL && i->file != NULL ? DT_OK
                                                                 : DT_FAIL(DT_ENOMEM, "out of memory for %s", path);
}

static dt_status add_children(dt_document *d, const char *parent, const dt_node *of)
{
    uint32_t k = 0;
    dt_status st = DT_OK;
    for (const dt_node *n = of->first; n != NULL && st == DT_OK; n = n->next, k++) {
        dt_str path = {0};
        dt_str_addf(&path, "%s%s", parent, parent[0] != '\0' ? "/" : "");
        if (n->key != NULL) {
            dt_str_add(&path, n->key);
        } else {
            dt_str_addf(&path, "%u", k);
        }
        st = dt_str_status(&path);
        if (st == DT_OK) {
            st = add_item(d, dt_str_text(&path), n);
        }
        if (st == DT_OK) {
            st = add_children(d, dt_str_text(&path), n);
        }
        dt_str_fini(&path);
    }
    return st;
}

dt_status dt_document_read(const char *path, dt_document *out)
{
    dt_config *c = NULL;
    dt_document d = {0};
    dt_node root = {.kind = DT_NODE_GROUP};
    DT_TRY(dt_config_create(&c));
    dt_status st = dt_reader_file(c, DT_FROM_FILE, path, &root);
    if (st == DT_OK) {
        st = add_children(&d, "", &root);
    }
    dt_config_destroy(c);
    if (st < 0) {
        dt_document_fini(&d);
        return st;
    }
    *out = d;
    return DT_OK;
}

void dt_document_fini(dt_document *d)
{
    for (uint32_t i = 0; i < d->n; i++) {
        dt_free(d->item[i].path);
        dt_free(d->item[i].text);
        dt_free(d->item[i].file);
    }
    dt_free(d->item);
    *d = (dt_document){0};
}

const dt_document_item *dt_document_find(const dt_document *d, const char *path)
{
    for (uint32_t i = 0; i < d->n; i++) {
        if (strcmp(d->item[i].path, path) == 0) {
            return &d->item[i];
        }
    }
    return NULL;
}
