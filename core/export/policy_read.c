/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading; see policy_file.h.
 */
#include <config.h>

#include "export/policy_file.h"

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "state/checkpoint/safetensors.h"
#include "engine/graph/op.h"
#include "engine/tensor/dtype.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_VALUES = 1 << 15, MAX_TENSORS = 1 << 14, MAX_OUTPUTS = 256 };

typedef struct reader {
    dt_policy_file *f;
    const dt_safetensors *file;
    dt_json *j;
    dt_tensor **value; /* by number; NULL where the graph hands none out */
    int32_t n_values, cap_values;
    bool has_graph; /* symbols, inputs and tensors are known, nodes may come */
} reader;

static const char *keep_text(dt_policy_file *f, const char *text)
{
    if (f->n_strings == f->cap_strings) {
        const uint32_t cap = f->cap_strings > 0 ? 2 * f->cap_strings : 64;
        char **grown = dt_realloc(f->string, cap * sizeof(*grown));
        if (grown == NULL) {
            return NULL;
        }
        f->string = grown;
        f->cap_strings = cap;
    }
    char *copy = dt_strdup(text);
    if (copy != NULL) {
        f->string[f->n_strings++] = copy;
    }
    return copy;
}

static dt_status copy_text(dt_policy_file *f, const char *text, const char **out_p)
{
    *out_p = keep_text(f, text);
    return *out_p != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the text \"%s\"", text);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static dt_status expect_token(reader *r, const dt_json_token *t, dt_json_kind kind, const char *what)
{
    return t->kind == kind ? DT_OK : dt_json_fail(r->j, "expected %s", what);
}

static dt_status next_token(reader *r, dt_json_kind kind, const char *what, dt_json_token *t)
{
    DT_TRY(dt_json_next(r->j, t));
    return expect_token(r, t, kind, what);
}

static dt_status read_text(reader *r, const char **out_p)
{
    dt_json_token t;
    DT_TRY(next_token(r, DT_JSON_STRING, "a text", &t));
    return copy_text(r->f, t.text, out_p);
}

static dt_status check_integer(reader *r, const dt_json_token *t, int64_t low, int64_t high, int64_t *out_p)
{
    DT_TRY(expect_token(r, t, DT_JSON_NUMBER, "a whole number"));
    if (!t->is_integer || t->integer < low || t->integer > high) {
        return dt_json_fail(r->j, "%s is not a whole number in [%lld, %lld]", t->text, (long long)low, (long long)high);
    }
    *out_p = t->integer;
    return DT_OK;
}

static dt_status read_integer(reader *r, int64_t low, int64_t high, int64_t *out_p)
{
    dt_json_token t;
    DT_TRY(dt_json_next(r->j, &t));
    return check_integer(r, &t, low, high, out_p);
}

static dt_status read_bool(reader *r, bool *out_p)
{
    dt_json_token t;
    DT_TRY(dt_json_next(r->j, &t));
    *out_p = t.kind == DT_JSON_TRUE;
    return t.kind == DT_JSON_TRUE || t.kind == DT_JSON_FALSE ? DT_OK : dt_json_fail(r->j, "expected true or false");
}

/* The next key of an object, "" at its end; n: room. */
static dt_status next_key(reader *r, char *key, size_t n)
{
    dt_json_token t;
    DT_TRY(dt_json_next(r->j, &t));
    if (t.kind != DT_JSON_KEY && t.kind != DT_JSON_OBJECT_END) {
        return dt_json_fail(r->j, "expected a key");
    }
    snprintf(key, n, "%s", t.kind == DT_JSON_KEY ? t.text : "");
    return DT_OK;
}

/* What a room below refuses is refused as a part of the file, at this place of it. */
static dt_status fail_damaged(reader *r, dt_status st)
{
    return st < 0 && st != DT_ENOMEM ? dt_json_fail(r->j, "%s", dt_error_text()) : st;
}

/* A list: take gets the first token of each element. */
static dt_status read_list(reader *r, dt_status (*take)(reader *r, const dt_json_token *first))
{
    dt_json_token t;
    DT_TRY(next_token(r, DT_JSON_ARRAY, "a list", &t));
    for (;;) {
        DT_TRY(dt_json_next(r->j, &t));
        if (t.kind == DT_JSON_ARRAY_END) {
            return DT_OK;
        }
        DT_TRY(take(r, &t));
    }
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static int32_t find_symbol(const dt_policy_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->n_symbols; i++) {
        if (strcmp(f->symbol[i], name) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

static dt_status read_symbol(reader *r, const dt_json_token *first)
{
    dt_policy_file *f = r->f;
    char key[32];
    DT_TRY(expect_token(r, first, DT_JSON_OBJECT, "an object"));
    if (f->n_symbols == DT_GRAPH_MAX_SYMBOLS) {
        return dt_json_fail(r->j, "more than %d symbols", DT_GRAPH_MAX_SYMBOLS);
    }
    const char **name = &f->symbol[f->n_symbols];
    int64_t *most = &f->most[f->n_symbols];
    DT_TRY(next_key(r, key, sizeof(key)));
    while (key[0] != '\0') {
        if (strcmp(key, "name") == 0) {
            DT_TRY(read_text(r, name));
        } else if (strcmp(key, "most") == 0) {
            DT_TRY(read_integer(r, 0, INT32_MAX, most));
        } else {
            DT_TRY(dt_json_skip(r->j));
        }
        DT_TRY(next_key(r, key, sizeof(key)));
    }
    if (*name == NULL) {
        return dt_json_fail(r->j, "a symbol without a name");
    }
    f->n_symbols++;
    return DT_OK;
}

static dt_status read_kind(reader *r, dt_bundle_kind *out_p)
{
    static const char *const name[] = {[DT_BUNDLE_GIVEN] = "given",
                                       [DT_BUNDLE_HISTORY] = "history",
                                       [DT_BUNDLE_PRESENT] = "present",
                                       [DT_BUNDLE_MASK] = "mask",
                                       [DT_BUNDLE_STEPS] = "steps"};
    dt_json_token t;
    DT_TRY(next_token(r, DT_JSON_STRING, "a kind", &t));
    for (int k = DT_BUNDLE_GIVEN; k <= DT_BUNDLE_STEPS; k++) {
        if (strcmp(t.text, name[k]) == 0) {
            *out_p = (dt_bundle_kind)k;
            return DT_OK;
        }
    }
    return dt_json_fail(r->j, "kind \"%s\" is not one of given, history, present, mask, steps", t.text);
}

static dt_status read_dtype(reader *r, uint32_t *out_p)
{
    dt_json_token t;
    DT_TRY(next_token(r, DT_JSON_STRING, "a dtype", &t));
    for (uint32_t d = DT_F32; d <= DT_U8; d++) {
        if (strcmp(t.text, dt_dtype_name(d)) == 0) {
            *out_p = d;
            return DT_OK;
        }
    }
    return dt_json_fail(r->j, "dtype \"%s\" is unknown", t.text);
}

static dt_status read_source_input(reader *r, int32_t *out_p)
{
    dt_json_token t;
    DT_TRY(next_token(r, DT_JSON_STRING, "the name of an input", &t));
    for (uint32_t i = 0; i < r->f->n_inputs; i++) {
        if (strcmp(r->f->input[i].name, t.text) == 0) {
            *out_p = (int32_t)i;
            return DT_OK;
        }
    }
    return dt_json_fail(r->j, "there is no input \"%s\" before this one", t.text);
}

static dt_status read_input(reader *r, const dt_json_token *first)
{
    dt_policy_file *f = r->f;
    char key[32];
    DT_TRY(expect_token(r, first, DT_JSON_OBJECT, "an object"));
    if (f->n_inputs == DT_BUNDLE_MAX_INPUTS) {
        return dt_json_fail(r->j, "more than %d inputs", DT_BUNDLE_MAX_INPUTS);
    }
    dt_bundle_input x = {.of = -1, .index_of = -1};
    DT_TRY(next_key(r, key, sizeof(key)));
    while (key[0] != '\0') {
        if (strcmp(key, "name") == 0) {
            DT_TRY(read_text(r, &x.name));
        } else if (strcmp(key, "dims") == 0) {
            DT_TRY(read_text(r, &x.dims));
        } else if (strcmp(key, "dtype") == 0) {
            DT_TRY(read_dtype(r, &x.dtype));
        } else if (strcmp(key, "kind") == 0) {
            DT_TRY(read_kind(r, &x.kind));
        } else if (strcmp(key, "read") == 0) {
            DT_TRY(read_bool(r, &x.is_read));
        } else if (strcmp(key, "of") == 0) {
            DT_TRY(read_source_input(r, &x.of));
        } else if (strcmp(key, "counts") == 0) {
            const char *symbol = NULL;
            DT_TRY(read_text(r, &symbol));
            x.index_of = find_symbol(f, symbol);
            if (x.index_of < 0) {
                return dt_json_fail(r->j, "it counts rows of \"%s\", which is not a symbol before it", symbol);
            }
        } else {
            DT_TRY(dt_json_skip(r->j));
        }
        DT_TRY(next_key(r, key, sizeof(key)));
    }
    if (x.name == NULL || x.dims == NULL || x.dtype == 0 || (x.kind == DT_BUNDLE_HISTORY && x.of < 0)) {
        return dt_json_fail(r->j, "an input lacks its name, dims, dtype or what it is of");
    }
    f->port[f->n_inputs] = (dt_port){x.name, x.dims, x.dtype, 0};
    f->input[f->n_inputs++] = x;
    return DT_OK;
}

static dt_status read_head(reader *r, const dt_json_token *first)
{
    int64_t n = 0;
    DT_TRY(check_integer(r, first, 1, INT32_MAX, &n));
    if (r->f->n_heads == DT_ENV_MAX_HEADS) {
        return dt_json_fail(r->j, "more than %d heads", DT_ENV_MAX_HEADS);
    }
    r->f->choices[r->f->n_heads++] = (int32_t)n;
    return DT_OK;
}

/* "<role>.<name>", which the table needs in two parts */
static dt_status read_tensor(reader *r, const dt_json_token *first)
{
    char role[64];
    DT_TRY(expect_token(r, first, DT_JSON_STRING, "the name of a tensor"));
    const dt_st_tensor *s = dt_safetensors_find(r->file, first->text);
    const size_t n = strcspn(first->text, ".");
    if (s == NULL || s->dtype != DT_ST_F32 || s->n_dims < 1 || s->n_dims > 4 || first->text[n] == '\0' ||
        n >= sizeof(role)) {
        return dt_json_fail(r->j, "tensor \"%s\" %s", first->text,
                            s == NULL ? "is not in the file" : "is not F32 of 1 to 4 dimensions under <role>.<name>");
    }
    if (r->f->params.n == MAX_TENSORS) {
        return dt_json_fail(r->j, "more than %d tensors", MAX_TENSORS);
    }
    snprintf(role, sizeof(role), "%.*s", (int)n, first->text);
    return fail_damaged(
        r, dt_param_table_add(&r->f->params, role, first->text + n + 1, s->dim, s->n_dims, DT_INIT_ZERO, 0));
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

static dt_status add_value(reader *r, dt_tensor *t)
{
    if (r->n_values == MAX_VALUES) {
        return dt_json_fail(r->j, "more than %d values", MAX_VALUES);
    }
    if (r->n_values == r->cap_values) {
        const int32_t cap = r->cap_values > 0 ? 2 * r->cap_values : 256;
        dt_tensor **grown = dt_realloc(r->value, (size_t)cap * sizeof(dt_tensor *));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for a graph of %d values", cap);
        }
        r->value = grown;
        r->cap_values = cap;
    }
    r->value[r->n_values++] = t;
    return DT_OK;
}

/* Inputs and tensors are the first values. */
static dt_status begin_graph(reader *r)
{
    dt_policy_file *f = r->f;
    const dt_graph_desc d = {.symbol = f->symbol,
                             .n_symbols = f->n_symbols,
                             .n_fields = f->n_inputs,
                             .field = f->port,
                             .params = &f->params,
                             .purpose = DT_FOR_ACTING};
    DT_TRY(fail_damaged(r, dt_graph_create(&d, &f->graph)));
    const dt_graph_api *api = f->graph->api;
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        DT_TRY(add_value(r, api->input(f->graph, f->input[i].name)));
    }
    for (uint32_t i = 0; i < f->params.n; i++) {
        DT_TRY(add_value(r, api->param(f->graph, f->params.param[i].name)));
    }
    r->has_graph = true;
    return fail_damaged(r, api->status(f->graph));
}

typedef struct node {
    uint32_t op, n_in;
    dt_tensor *in[DT_KERNEL_MAX_IN];
    dt_attr attr;
} node;

static dt_status read_op(reader *r, node *n)
{
    dt_json_token t;
    DT_TRY(next_token(r, DT_JSON_STRING, "the name of an op", &t));
    for (n->op = 1; n->op < DT_OP_PUBLIC_END; n->op++) {
        if (strcmp(dt_op_name(n->op), t.text) == 0) {
            return DT_OK;
        }
    }
    return dt_json_fail(r->j, "op \"%s\" is unknown to this version; export again, or use a newer library", t.text);
}

static dt_status find_value(reader *r, const dt_json_token *t, dt_tensor **out_p)
{
    int64_t v = 0;
    DT_TRY(check_integer(r, t, 0, r->n_values - 1, &v));
    *out_p = r->value[v];
    return *out_p != NULL ? DT_OK : dt_json_fail(r->j, "value %lld is private to the node that makes it", (long long)v);
}

static dt_status read_operands(reader *r, node *n)
{
    dt_json_token t;
    DT_TRY(next_token(r, DT_JSON_ARRAY, "a list", &t));
    for (;;) {
        DT_TRY(dt_json_next(r->j, &t));
        if (t.kind == DT_JSON_ARRAY_END) {
            return DT_OK;
        }
        if (n->n_in == DT_KERNEL_MAX_IN) {
            return dt_json_fail(r->j, "more than %d operands", DT_KERNEL_MAX_IN);
        }
        const bool is_absent = t.kind == DT_JSON_NUMBER && t.is_integer && t.integer == -1;
        n->in[n->n_in] = NULL;
        DT_TRY(is_absent ? DT_OK : find_value(r, &t, &n->in[n->n_in]));
        n->n_in++;
    }
}

static dt_status read_attributes(reader *r, node *n, bool is_integer)
{
    enum { MOST = 4 };
    dt_json_token t;
    DT_TRY(next_token(r, DT_JSON_ARRAY, "a list", &t));
    for (uint32_t k = 0;; k++) {
        DT_TRY(dt_json_next(r->j, &t));
        if (t.kind == DT_JSON_ARRAY_END) {
            return DT_OK;
        }
        if (k == MOST) {
            return dt_json_fail(r->j, "more than %d attributes", MOST);
        }
        if (is_integer) {
            DT_TRY(check_integer(r, &t, INT64_MIN, INT64_MAX, &n->attr.i[k]));
        } else if (t.kind == DT_JSON_STRING && (strcmp(t.text, "inf") == 0 || strcmp(t.text, "-inf") == 0)) {
            n->attr.f[k] = t.text[0] == '-' ? -INFINITY : INFINITY;
        } else {
            DT_TRY(expect_token(r, &t, DT_JSON_NUMBER, "a number"));
            n->attr.f[k] = t.number;
        }
    }
}

/* The results of a node are the next values, those too that are private to it. */
static dt_status record_node(reader *r, const node *n)
{
    dt_graph *g = r->f->graph;
    const dt_graph_api *api = g->api;
    dt_tensor *first = api->op(g, n->op, n->in, n->n_in, &n->attr);
    DT_TRY(api->status(g));
    const dt_ir *ir = dt_graph_ir(g);
    const uint32_t n_out = ir->node[ir->n_nodes - 1].n_out;
    for (uint32_t k = 0; k < n_out; k++) {
        DT_TRY(add_value(r, k == 0 ? first : k < dt_op_results(n->op) ? api->result(g, first, k) : NULL));
    }
    return api->status(g);
}

static dt_status read_node(reader *r, const dt_json_token *first)
{
    node n = {.op = 0};
    char key[32];
    DT_TRY(expect_token(r, first, DT_JSON_OBJECT, "an object"));
    DT_TRY(next_key(r, key, sizeof(key)));
    while (key[0] != '\0') {
        if (strcmp(key, "op") == 0) {
            DT_TRY(read_op(r, &n));
        } else if (strcmp(key, "in") == 0) {
            DT_TRY(read_operands(r, &n));
        } else if (strcmp(key, "i") == 0 || strcmp(key, "f") == 0) {
            DT_TRY(read_attributes(r, &n, key[0] == 'i'));
        } else {
            return dt_json_fail(r->j, "a node has no \"%s\"", key);
        }
        DT_TRY(next_key(r, key, sizeof(key)));
    }
    if (n.op == 0) {
        return dt_json_fail(r->j, "a node without an op");
    }
    const dt_status st = record_node(r, &n);
    return st < 0 && st != DT_ENOMEM
               ? dt_json_fail(r->j, "node %d: %s", dt_graph_ir(r->f->graph)->n_nodes, dt_error_text())
               : st;
}

static dt_status read_output(reader *r, const dt_json_token *first)
{
    char key[32];
    const char *name = NULL;
    dt_tensor *value = NULL;
    DT_TRY(expect_token(r, first, DT_JSON_OBJECT, "an object"));
    DT_TRY(next_key(r, key, sizeof(key)));
    while (key[0] != '\0') {
        if (strcmp(key, "name") == 0) {
            DT_TRY(read_text(r, &name));
        } else if (strcmp(key, "value") == 0) {
            dt_json_token t;
            DT_TRY(dt_json_next(r->j, &t));
            DT_TRY(find_value(r, &t, &value));
        } else {
            DT_TRY(dt_json_skip(r->j));
        }
        DT_TRY(next_key(r, key, sizeof(key)));
    }
    if (name == NULL || value == NULL) {
        return dt_json_fail(r->j, "an output without name or value");
    }
    if (dt_graph_ir(r->f->graph)->n_outputs == MAX_OUTPUTS) {
        return dt_json_fail(r->j, "more than %d outputs", MAX_OUTPUTS);
    }
    return fail_damaged(r, r->f->graph->api->output(r->f->graph, name, value));
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static dt_status read_version(reader *r)
{
    int64_t version = 0;
    DT_TRY(read_integer(r, 1, INT32_MAX, &version));
    return version <= 2 ? DT_OK
                        : dt_json_fail(r->j, "version %lld of the format; this library reads versions 1 and 2",
                                       (long long)version);
}

static dt_status read_number(reader *r, int64_t high, uint32_t *out_p)
{
    int64_t n = 0;
    DT_TRY(read_integer(r, 0, high, &n));
    *out_p = (uint32_t)n;
    return DT_OK;
}

static dt_status read_member(reader *r, const char *key)
{
    enum { MOST_WINDOW = 4096, MOST_CONTINUOUS = 1 << 16 };
    const bool of_graph = strcmp(key, "nodes") == 0 || strcmp(key, "outputs") == 0;
    if (of_graph && !r->has_graph) {
        DT_TRY(begin_graph(r));
    } else if (!of_graph && r->has_graph) {
        return dt_json_fail(r->j, "\"%s\" comes after the nodes", key);
    }
    if (strcmp(key, "version") == 0) {
        return read_version(r);
    }
    if (strcmp(key, "window") == 0) {
        return read_number(r, MOST_WINDOW, &r->f->window);
    }
    if (strcmp(key, "continuous") == 0) {
        return read_number(r, MOST_CONTINUOUS, &r->f->n_continuous);
    }
    if (strcmp(key, "squash") == 0) {
        return read_bool(r, &r->f->is_squashed);
    }
    static const struct {
        const char *key;
        dt_status (*take)(reader *r, const dt_json_token *first);
    } list[] = {{"symbols", read_symbol}, {"inputs", read_input}, {"heads", read_head},
                {"tensors", read_tensor}, {"nodes", read_node},   {"outputs", read_output}};
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        if (strcmp(key, list[i].key) == 0) {
            return read_list(r, list[i].take);
        }
    }
    return dt_json_skip(r->j);
}

static dt_status read_export(reader *r)
{
    dt_json_token t;
    char key[32];
    DT_TRY(next_token(r, DT_JSON_OBJECT, "an object", &t));
    DT_TRY(next_key(r, key, sizeof(key)));
    while (key[0] != '\0') {
        DT_TRY(read_member(r, key));
        DT_TRY(next_key(r, key, sizeof(key)));
    }
    if (!r->has_graph || dt_graph_ir(r->f->graph)->n_outputs == 0) {
        return dt_json_fail(r->j, "there is no graph with outputs");
    }
    return DT_OK;
}

static dt_status read_settings(reader *r)
{
    dt_policy_file *f = r->f;
    dt_json_token t;
    DT_TRY(next_token(r, DT_JSON_OBJECT, "an object", &t));
    for (;;) {
        dt_setting s;
        DT_TRY(dt_json_next(r->j, &t));
        if (t.kind == DT_JSON_OBJECT_END) {
            return DT_OK;
        }
        DT_TRY(copy_text(f, t.text, &s.key));
        DT_TRY(read_text(r, &s.value));
        dt_setting *grown = dt_realloc(f->setting, (f->n_settings + 1) * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for %u settings", f->n_settings + 1);
        }
        f->setting = grown;
        f->setting[f->n_settings++] = s;
    }
}

static dt_status read_json(reader *r, const char *key, dt_status (*read)(reader *r))
{
    const char *text = dt_safetensors_metadata(r->file, key);
    if (text == NULL) {
        return DT_OK;
    }
    DT_TRY(dt_json_open_mem(text, strlen(text), key, &r->j));
    const dt_status st = read(r);
    dt_json_close(r->j);
    r->j = NULL;
    return st;
}

/* Bounds of actions: [n_continuous], together in one block after low. */
static dt_status read_bounds(reader *r)
{
    dt_policy_file *f = r->f;
    const size_t C = f->n_continuous;
    f->low = dt_alloc_n(2 * C, sizeof(*f->low));
    if (f->low == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the bounds of %zu actions", C);
    }
    f->high = f->low + C;
    const dt_ckpt_tensor want[] = {{"actions.low", (const int64_t[]){(int64_t)C}, 1, f->low},
                                   {"actions.high", (const int64_t[]){(int64_t)C}, 1, f->high}};
    return C > 0 ? dt_safetensors_load(r->file, want, 2, DT_LOAD_EXTRA_OK) : DT_OK;
}

static dt_status read_values(reader *r)
{
    dt_policy_file *f = r->f;
    f->values = dt_alloc_n((size_t)f->params.total + 1, sizeof(*f->values));
    if (f->values == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %lld parameters", (long long)f->params.total);
    }
    for (uint32_t i = 0; i < f->params.n; i++) {
        const dt_param *p = &f->params.param[i];
        float *value = f->values + p->offset;
        memcpy(value, dt_safetensors_find(r->file, p->name)->data, (size_t)p->count * sizeof(*value));
        for (int64_t k = 0; k < p->count; k++) {
            if (!isfinite(value[k])) {
                return DT_FAIL(DT_EDATA, "tensor %s: number %lld is %g", p->name, (long long)k, (double)value[k]);
            }
        }
    }
    return DT_OK;
}

static dt_status read_file(reader *r)
{
    dt_policy_file *f = r->f;
    if (dt_safetensors_metadata(r->file, DT_POLICY_FILE_EXPORT) == NULL) {
        return DT_FAIL(DT_EDATA, "its metadata has no " DT_POLICY_FILE_EXPORT
                                 ": not a file of dtrain export --format safetensors");
    }
    DT_TRY(read_json(r, DT_POLICY_FILE_EXPORT, read_export));
    DT_TRY(read_json(r, DT_POLICY_FILE_SETTINGS, read_settings));
    DT_TRY(read_bounds(r));
    DT_TRY(read_values(r));
    const char *phase = dt_safetensors_metadata(r->file, DT_POLICY_FILE_PHASE);
    const char *environment = dt_safetensors_metadata(r->file, DT_POLICY_FILE_ENVIRONMENT);
    DT_TRY(copy_text(f, phase != NULL ? phase : "", &f->phase));
    DT_TRY(copy_text(f, environment != NULL ? environment : "", &f->environment));
    bool has_seal = false;
    DT_TRY(dt_safetensors_check_seal(r->file, &has_seal));
    return has_seal
               ? DT_OK
               : DT_FAIL(DT_EDATA, "its metadata has no " DT_ST_SEAL ", the checksum of an export; export it again");
}

static dt_status read_policy_file(const dt_safetensors *file, const char *name, dt_policy_file *out_p)
{
    reader r = {.f = out_p, .file = file};
    *out_p = (dt_policy_file){.window = 1};
    const dt_status st = read_file(&r);
    dt_free(r.value);
    if (st < 0) {
        dt_policy_file_fini(out_p);
        return DT_CONTEXT(st, "%s", name);
    }
    return DT_OK;
}

dt_status dt_policy_file_read(const char *path, dt_policy_file *out_p)
{
    dt_safetensors *file = NULL;
    DT_TRY(dt_safetensors_open(path, &file));
    const dt_status st = read_policy_file(file, path, out_p);
    dt_safetensors_close(file);
    return st;
}

dt_status dt_policy_file_read_bytes(const void *bytes, size_t n_bytes, const char *name, dt_policy_file *out_p)
{
    dt_safetensors *file = NULL;
    DT_TRY(dt_safetensors_open_mem(bytes, n_bytes, name, &file));
    const dt_status st = read_policy_file(file, name, out_p);
    dt_safetensors_close(file);
    return st;
}

void dt_policy_file_fini(dt_policy_file *f)
{
    dt_graph_destroy(f->graph);
    dt_param_table_fini(&f->params);
    for (uint32_t i = 0; i < f->n_strings; i++) {
        dt_free(f->string[i]);
    }
    dt_free(f->string);
    dt_free(f->setting);
    dt_free(f->values);
    dt_free(f->low);
    *f = (dt_policy_file){0};
}
