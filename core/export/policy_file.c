/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing; see policy_file.h. Reading is policy_read.c.
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
#include <string.h>

static const char *const kind_name[] = {[DT_BUNDLE_GIVEN] = "given",
                                        [DT_BUNDLE_HISTORY] = "history",
                                        [DT_BUNDLE_PRESENT] = "present",
                                        [DT_BUNDLE_MASK] = "mask",
                                        [DT_BUNDLE_STEPS] = "steps"};

static void write_symbols(const dt_bundle *b, dt_json_out *o)
{
    dt_json_arr(o, "symbols");
    for (uint32_t i = 0; i < b->ir.n_symbols; i++) {
        dt_json_obj(o, NULL);
        dt_json_str(o, "name", b->ir.symbol[i]);
        dt_json_i64(o, "most", b->most[i]);
        dt_json_end(o, '}');
    }
    dt_json_end(o, ']');
}

static void write_inputs(const dt_bundle *b, dt_json_out *o)
{
    dt_json_arr(o, "inputs");
    for (uint32_t i = 0; i < b->n_inputs; i++) {
        const dt_bundle_input *x = &b->input[i];
        dt_json_obj(o, NULL);
        dt_json_str(o, "name", x->name);
        dt_json_str(o, "dims", x->dims);
        dt_json_str(o, "dtype", dt_dtype_name(x->dtype));
        dt_json_str(o, "kind", kind_name[x->kind]);
        dt_json_bool(o, "read", x->is_read);
        if (x->kind == DT_BUNDLE_HISTORY) {
            dt_json_str(o, "of", b->input[x->of].name);
        }
        if (x->index_of >= 0) {
            dt_json_str(o, "counts", b->ir.symbol[x->index_of]);
        }
        dt_json_end(o, '}');
    }
    dt_json_end(o, ']');
}

static void write_nodes(const dt_bundle *b, dt_json_out *o)
{
    enum { N = 4 };
    dt_json_arr(o, "nodes");
    for (int32_t i = 0; i < b->ir.n_nodes; i++) {
        const dt_node *n = &b->ir.node[i];
        uint32_t n_i = N, n_f = N;
        while (n_i > 0 && n->attr.i[n_i - 1] == 0) {
            n_i--;
        }
        while (n_f > 0 && n->attr.f[n_f - 1] == 0) {
            n_f--;
        }
        dt_json_obj(o, NULL);
        dt_json_str(o, "op", dt_op_name(n->op));
        dt_json_arr(o, "in");
        for (uint32_t k = 0; k < n->n_in; k++) {
            dt_json_i64(o, NULL, n->in[k]);
        }
        dt_json_end(o, ']');
        if (n_i > 0) {
            dt_json_arr(o, "i");
            for (uint32_t k = 0; k < n_i; k++) {
                dt_json_i64(o, NULL, n->attr.i[k]);
            }
            dt_json_end(o, ']');
        }
        if (n_f > 0) {
            dt_json_arr(o, "f");
            for (uint32_t k = 0; k < n_f; k++) {
                if (isfinite(n->attr.f[k])) {
                    dt_json_f64(o, NULL, n->attr.f[k]);
                } else {
                    dt_json_str(o, NULL, n->attr.f[k] > 0 ? "inf" : "-inf");
                }
            }
            dt_json_end(o, ']');
        }
        dt_json_end(o, '}');
    }
    dt_json_end(o, ']');
}

static void write_export(const dt_bundle *b, dt_str *out)
{
    dt_json_out o = {.s = out};
    dt_json_obj(&o, NULL);
    dt_json_i64(&o, "version", b->actions.is_squashed ? 2 : 1);
    dt_json_i64(&o, "window", b->actions.window);
    write_symbols(b, &o);
    write_inputs(b, &o);
    dt_json_arr(&o, "heads");
    for (uint32_t i = 0; i < b->actions.n_heads; i++) {
        dt_json_i64(&o, NULL, b->actions.choices[i]);
    }
    dt_json_end(&o, ']');
    dt_json_i64(&o, "continuous", b->actions.n_continuous);
    if (b->actions.is_squashed) {
        dt_json_bool(&o, "squash", true);
    }
    dt_json_arr(&o, "tensors");
    for (uint32_t i = 0; i < b->n_tensors; i++) {
        dt_json_str(&o, NULL, b->tensor[i].name);
    }
    dt_json_end(&o, ']');
    write_nodes(b, &o);
    dt_json_arr(&o, "outputs");
    for (uint32_t i = 0; i < b->ir.n_outputs; i++) {
        dt_json_obj(&o, NULL);
        dt_json_str(&o, "name", b->ir.output[i].name);
        dt_json_i64(&o, "value", b->ir.output[i].value);
        dt_json_end(&o, '}');
    }
    dt_json_end(&o, ']');
    dt_json_end(&o, '}');
}

static void write_tensor(dt_st_tensor *t, const char *name, const int64_t *dim, uint32_t n_dims, const float *data)
{
    *t = (dt_st_tensor){.name = name, .dtype = DT_ST_F32, .n_dims = n_dims, .data = data};
    memcpy(t->dim, dim, n_dims * sizeof(*dim));
}

static dt_status write_file(const dt_bundle *b, const char *text, const char *path)
{
    const int64_t C = b->actions.n_continuous;
    const char *(*pair)[2] = dt_alloc_n(b->n_metadata + 1, sizeof(*pair));
    dt_st_tensor *t = dt_alloc_n(b->n_tensors + 2, sizeof(*t));
    uint32_t n = 0;
    if (pair == NULL || t == NULL) {
        dt_free(pair);
        dt_free(t);
        return DT_FAIL(DT_ENOMEM, "out of memory to write %s", path);
    }
    for (; n < b->n_tensors; n++) {
        write_tensor(&t[n], b->tensor[n].name, b->tensor[n].dim, b->tensor[n].n_dims, b->tensor[n].data);
    }
    if (C > 0) {
        write_tensor(&t[n++], "actions.low", &C, 1, b->actions.low);
        write_tensor(&t[n++], "actions.high", &C, 1, b->actions.high);
    }
    for (uint32_t i = 0; i < b->n_metadata; i++) {
        pair[i][0] = b->metadata[i][0];
        pair[i][1] = b->metadata[i][1];
    }
    pair[b->n_metadata][0] = DT_POLICY_FILE_EXPORT;
    pair[b->n_metadata][1] = text;
    const dt_status st = dt_safetensors_write_sealed(path, t, n, (const char *const(*)[2])pair, b->n_metadata + 1);
    dt_free(pair);
    dt_free(t);
    return st;
}

dt_status dt_policy_file_write(const dt_bundle *b, const char *path)
{
    dt_str text = {0};
    write_export(b, &text);
    dt_status st = dt_str_status(&text);
    if (st == DT_OK) {
        st = write_file(b, dt_str_text(&text), path);
    }
    dt_str_fini(&text);
    return st;
}
