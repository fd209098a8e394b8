/* SPDX-License-Identifier: Apache-2.0
 *
 * See onnx_graph.h. Field numbers: onnx.proto3 of ONNX 1.13.
 */
#include <config.h>

#include "export/onnx_graph.h"

#include "base/err.h"
#include "base/protobuf.h"

#include <stdio.h>

enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum { ATTR_NAME = 1, ATTR_F = 2, ATTR_I = 3, ATTR_S = 4, ATTR_INTS = 8, ATTR_TYPE = 20 };
enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_STRING = 3, TYPE_INTS = 7 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };

void dt_onnx_fini(dt_onnx *o)
{
    dt_str_fini(&o->graph);
    dt_str_fini(&o->attr);
    dt_str_fini(&o->part);
    dt_str_fini(&o->tensor);
    dt_ir_fini(&o->names);
}

dt_status dt_onnx_status(const dt_onnx *o)
{
    DT_TRY(o->names.status);
    DT_TRY(dt_str_status(&o->attr));
    DT_TRY(dt_str_status(&o->part));
    DT_TRY(dt_str_status(&o->tensor));
    return dt_str_status(&o->graph);
}

static const char *fresh_name(dt_onnx *o)
{
    char text[24];
    snprintf(text, sizeof(text), "t%u", o->n_names++);
    return dt_ir_copy_string(&o->names, text);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

void dt_onnx_int(dt_onnx *o, const char *name, int64_t v)
{
    dt_pb_text(&o->part, ATTR_NAME, name);
    dt_pb_int(&o->part, ATTR_I, v);
    dt_pb_int(&o->part, ATTR_TYPE, TYPE_INT);
    dt_pb_message(&o->attr, NODE_ATTRIBUTE, &o->part);
}

void dt_onnx_ints(dt_onnx *o, const char *name, const int64_t *v, uint32_t n)
{
    dt_pb_text(&o->part, ATTR_NAME, name);
    for (uint32_t i = 0; i < n; i++) {
        dt_pb_int(&o->part, ATTR_INTS, v[i]);
    }
    dt_pb_int(&o->part, ATTR_TYPE, TYPE_INTS);
    dt_pb_message(&o->attr, NODE_ATTRIBUTE, &o->part);
}

void dt_onnx_float(dt_onnx *o, const char *name, float v)
{
    dt_pb_text(&o->part, ATTR_NAME, name);
    dt_pb_float(&o->part, ATTR_F, v);
    dt_pb_int(&o->part, ATTR_TYPE, TYPE_FLOAT);
    dt_pb_message(&o->attr, NODE_ATTRIBUTE, &o->part);
}

void dt_onnx_text(dt_onnx *o, const char *name, const char *v)
{
    dt_pb_text(&o->part, ATTR_NAME, name);
    dt_pb_text(&o->part, ATTR_S, v);
    dt_pb_int(&o->part, ATTR_TYPE, TYPE_STRING);
    dt_pb_message(&o->attr, NODE_ATTRIBUTE, &o->part);
}

static void write_node(dt_onnx *o, const char *op, const char *const *in, uint32_t n_in, const char *const *out,
                       uint32_t n_out)
{
    for (uint32_t i = 0; i < n_in; i++) {
        dt_pb_text(&o->part, NODE_INPUT, in[i]);
    }
    for (uint32_t i = 0; i < n_out; i++) {
        dt_pb_text(&o->part, NODE_OUTPUT, out[i]);
    }
    dt_pb_text(&o->part, NODE_NAME, out[0]);
    dt_pb_text(&o->part, NODE_OP, op);
    dt_str_add_n(&o->part, dt_str_text(&o->attr), o->attr.bytes);
    dt_str_clear(&o->attr);
    dt_pb_message(&o->graph, GRAPH_NODE, &o->part);
}

void dt_onnx_add_node(dt_onnx *o, const char *op, const char *const *in, uint32_t n_in, const char **out,
                      uint32_t n_out)
{
    for (uint32_t i = 0; i < n_out; i++) {
        out[i] = fresh_name(o);
    }
    write_node(o, op, in, n_in, out, n_out);
}

const char *dt_onnx_add_call(dt_onnx *o, const char *op, const char *a, const char *b, const char *c)
{
    const char *const in[] = {a, b, c};
    const char *out = NULL;
    dt_onnx_add_node(o, op, in, a == NULL ? 0 : b == NULL ? 1 : c == NULL ? 2 : 3, &out, 1);
    return out;
}

void dt_onnx_name(dt_onnx *o, const char *value, const char *name)
{
    write_node(o, "Identity", &value, 1, &name, 1);
}

/* ---- constants --------------------------------------------------------------------------------------------------- */

static void write_constant(dt_onnx *o, const char *name, int32_t type, const int64_t *dim, uint32_t n_dims,
                           const void *data, size_t bytes)
{
    for (uint32_t i = 0; i < n_dims; i++) {
        dt_pb_int(&o->tensor, TENSOR_DIMS, dim[i]);
    }
    dt_pb_int(&o->tensor, TENSOR_TYPE, type);
    dt_pb_text(&o->tensor, TENSOR_NAME, name);
    dt_pb_bytes(&o->tensor, TENSOR_RAW, data, bytes);
    dt_pb_message(&o->graph, GRAPH_INITIALIZER, &o->tensor);
}

const char *dt_onnx_constant_ints(dt_onnx *o, const int64_t *v, uint32_t n)
{
    const char *name = fresh_name(o);
    const int64_t dim = n;
    write_constant(o, name, DT_ONNX_INT64, &dim, 1, v, n * sizeof(*v));
    return name;
}

const char *dt_onnx_constant_i64(dt_onnx *o, int64_t v)
{
    return dt_onnx_constant_ints(o, &v, 1);
}

const char *dt_onnx_constant_index(dt_onnx *o, int64_t v)
{
    const char *name = fresh_name(o);
    write_constant(o, name, DT_ONNX_INT64, NULL, 0, &v, sizeof(v));
    return name;
}

const char *dt_onnx_constant_f32(dt_onnx *o, double v)
{
    const char *name = fresh_name(o);
    const float f = (float)v;
    write_constant(o, name, DT_ONNX_FLOAT, NULL, 0, &f, sizeof(f));
    return name;
}

void dt_onnx_tensor(dt_onnx *o, const char *name, const int64_t *dim, uint32_t n_dims, const float *data)
{
    size_t n = 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        n *= (size_t)dim[i];
    }
    write_constant(o, name, DT_ONNX_FLOAT, dim, n_dims, data, n * sizeof(*data));
}
