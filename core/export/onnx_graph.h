/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of onnx.c: an ONNX graph being written. Values are names; a node is written by call, which hands back the name
 * of its result; attributes are set before the node they belong to. Errors stick. Threads: one owner.
 */
#ifndef DTRAIN_CORE_EXPORT_ONNX_GRAPH_H
#define DTRAIN_CORE_EXPORT_ONNX_GRAPH_H

#include "export/bundle.h"

enum {
    DT_ONNX_FLOAT = 1,
    DT_ONNX_UINT8 = 2,
    DT_ONNX_INT32 = 6,
    DT_ONNX_INT64 = 7,
    DT_ONNX_BOOL = 9
}; /* TensorProto.DataType */

typedef struct dt_onnx {
    dt_str graph, attr, part, tensor; /* the graph; attributes of the next node; messages under way */
    dt_ir names;                      /* owns the names made here */
    uint32_t n_names;
} dt_onnx;

void dt_onnx_fini(dt_onnx *o);
dt_status dt_onnx_status(const dt_onnx *o) DT_NODISCARD;

void dt_onnx_int(dt_onnx *o, const char *name, int64_t v); /* attributes */
void dt_onnx_ints(dt_onnx *o, const char *name, const int64_t *v, uint32_t n);
void dt_onnx_float(dt_onnx *o, const char *name, float v);
void dt_onnx_text(dt_onnx *o, const char *name, const char *v);

/* op(in[0], ...); "" is an optional input that is absent. out: [n_out] names of the results, made here. */
void dt_onnx_add_node(dt_onnx *o, const char *op, const char *const *in, uint32_t n_in, const char **out,
                      uint32_t n_out);
const char *dt_onnx_add_call(dt_onnx *o, const char *op, const char *a, const char *b,
                             const char *c);                        /* NULL ends them */
void dt_onnx_name(dt_onnx *o, const char *value, const char *name); /* the value again, under this name */

/* constants */
const char *dt_onnx_constant_ints(dt_onnx *o, const int64_t *v, uint32_t n); /* [n] i64 */
const char *dt_onnx_constant_i64(dt_onnx *o, int64_t v);                     /* [1] i64 */
const char *dt_onnx_constant_index(dt_onnx *o, int64_t v);                   /* scalar i64 */
const char *dt_onnx_constant_f32(dt_onnx *o, double v);                      /* scalar f32 */
void dt_onnx_tensor(dt_onnx *o, const char *name, const int64_t *dim, uint32_t n_dims, const float *data);

/* onnx_ops.c: a node of the bundle, whose operands have these names; the name of its first result, NULL for an op
 * that has no spelling. second_p: of its second, left alone where there is none. */
const char *dt_onnx_write_op(dt_onnx *o, const dt_ir *ir, const dt_node *n, const char *const *in,
                             const char **second_p);

#endif
