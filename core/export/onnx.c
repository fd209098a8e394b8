/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "export/onnx.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/protobuf.h"
#include "export/onnx_graph.h"
#include "engine/graph/op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { IR_VERSION = 8, OPSET = 18 };
enum { MODEL_IR_VERSION = 1, MODEL_PRODUCER = 2, MODEL_PRODUCER_VERSION = 3, MODEL_GRAPH = 7, MODEL_OPSET = 8 };
enum { MODEL_METADATA = 14, OPSET_VERSION = 2, PAIR_KEY = 1, PAIR_VALUE = 2 };
enum { GRAPH_NAME = 2, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { INFO_NAME = 1, INFO_TYPE = 2, TYPE_TENSOR = 1, TENSOR_ELEMENT = 1, TENSOR_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1, DIM_PARAM = 2 };

typedef struct writer {
    const dt_bundle *b;
    dt_onnx o;
    const char **value; /* name of each value of the bundle */
    const char *mask;   /* input of this name is there */
} writer;

/* ---- inputs and outputs ------------------------------------------------------------------------------------------ */

static int32_t element_type(uint32_t dtype)
{
    switch (dtype) {
    case DT_F32:
        return DT_ONNX_FLOAT;
    case DT_I32:
        return DT_ONNX_INT32;
    case DT_I64:
        return DT_ONNX_INT64;
    case DT_U8:
        return DT_ONNX_UINT8;
    default:
        return 0;
    }
}

/* ValueInfoProto: name and type with its dims */
static void write_info(writer *w, uint32_t field, const char *name, const dt_shape *shape)
{
    dt_str dim = {0}, dims = {0}, tensor = {0}, type = {0};
    dt_str *info = &w->o.part;
    for (uint32_t i = 0; i < shape->rank; i++) {
        const dt_extent e = shape->dim[i];
        if (e.symbol < 0) {
            dt_pb_int(&dim, DIM_VALUE, e.size);
        } else {
            char text[64];
            snprintf(text, sizeof(text), "%s%s", w->b->ir.symbol[e.symbol], e.size != 0 ? "_plus_1" : "");
            dt_pb_text(&dim, DIM_PARAM, text);
        }
        dt_pb_message(&dims, SHAPE_DIM, &dim);
    }
    dt_pb_int(&tensor, TENSOR_ELEMENT, element_type(shape->dtype));
    dt_pb_message(&tensor, TENSOR_SHAPE, &dims);
    dt_pb_message(&type, TYPE_TENSOR, &tensor);
    dt_pb_text(info, INFO_NAME, name);
    dt_pb_message(info, INFO_TYPE, &type);
    dt_pb_message(&w->o.graph, field, info);
    dt_str_fini(&dim);
    dt_str_fini(&dims);
    dt_str_fini(&tensor);
    dt_str_fini(&type);
}

static dt_status check_type(const char *what, const char *name, const dt_shape *s)
{
    return element_type(s->dtype) != 0
               ? DT_OK
               : DT_FAIL(DT_EINVAL, "%s %s is not f32, i32, i64 or u8, as --format onnx requires", what, name);
}

static dt_status write_inputs(writer *w)
{
    const dt_bundle *b = w->b;
    for (uint32_t i = 0; i < b->n_inputs; i++) {
        const dt_value *v = &b->ir.value[i];
        w->value[i] = v->name;
        w->mask = b->input[i].kind == DT_BUNDLE_MASK ? v->name : w->mask;
        if (b->input[i].is_read) {
            DT_TRY(check_type("input", v->name, &v->shape));
            write_info(w, GRAPH_INPUT, v->name, &v->shape);
        }
    }
    return DT_OK;
}

static void write_tensors(writer *w)
{
    const dt_bundle *b = w->b;
    for (uint32_t i = 0; i < b->n_tensors; i++) {
        const dt_bundle_tensor *t = &b->tensor[i];
        w->value[b->n_inputs + i] = t->name;
        dt_onnx_tensor(&w->o, t->name, t->dim, t->n_dims, t->data);
    }
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static dt_status write_nodes(writer *w)
{
    const dt_ir *ir = &w->b->ir;
    for (int32_t i = 0; i < ir->n_nodes; i++) {
        const dt_node *n = &ir->node[i];
        const char *in[DT_KERNEL_MAX_IN] = {NULL};
        for (uint32_t k = 0; k < n->n_in; k++) {
            in[k] = n->in[k] >= 0 ? w->value[n->in[k]] : NULL;
            if (n->in[k] >= 0 && in[k] == NULL) {
                return DT_FAIL(DT_EINVAL,
                               "op %s reads a second result of another op, which --format onnx cannot express",
                               dt_op_name(n->op));
            }
        }
        const char *second = NULL;
        w->value[n->out[0]] = dt_onnx_write_op(&w->o, ir, n, in, &second);
        if (n->n_out > 1) {
            w->value[n->out[1]] = second;
        }
        if (w->value[n->out[0]] == NULL) {
            return DT_FAIL(DT_EINVAL,
                           "op %s has no equivalent in ONNX; --format safetensors holds every op, for libdtrain-policy",
                           dt_op_name(n->op));
        }
    }
    return DT_OK;
}

static dt_status write_outputs(writer *w)
{
    const dt_ir *ir = &w->b->ir;
    for (uint32_t i = 0; i < ir->n_outputs; i++) {
        const dt_ir_output *out = &ir->output[i];
        const dt_shape *shape = &ir->value[out->value].shape;
        DT_TRY(check_type("output", out->name, shape));
        if (w->value[out->value] == NULL) {
            return DT_FAIL(DT_EINVAL, "output %s is a second result of an op, which --format onnx cannot express",
                           out->name);
        }
        dt_onnx_name(&w->o, w->value[out->value], out->name);
        write_info(w, GRAPH_OUTPUT, out->name, shape);
    }
    return DT_OK;
}

/* ---- actions ----------------------------------------------------------------------------------------------------- */

static const char *find_output(const writer *w, const char *name)
{
    const dt_ir *ir = &w->b->ir;
    for (uint32_t i = 0; i < ir->n_outputs; i++) {
        if (strcmp(ir->output[i].name, name) == 0) {
            return w->value[ir->output[i].value];
        }
    }
    return NULL;
}

static dt_shape shape_of_places(const writer *w, int64_t columns, uint32_t dtype)
{
    int32_t A = 0;
    for (uint32_t i = 0; i < w->b->ir.n_symbols; i++) {
        A = strcmp(w->b->ir.symbol[i], "A") == 0 ? (int32_t)i : A;
    }
    return (dt_shape){.rank = 2, .dtype = dtype, .dim = {{.symbol = A}, dt_extent_number(columns)}};
}

static const char *slice_columns(dt_onnx *o, const char *x, int64_t from, int64_t n)
{
    const char *const in[] = {x, dt_onnx_constant_i64(o, from), dt_onnx_constant_i64(o, from + n),
                              dt_onnx_constant_i64(o, 1)};
    const char *y = NULL;
    dt_onnx_add_node(o, "Slice", in, 4, &y, 1);
    return y;
}

static const char *emit_is_positive(dt_onnx *o, const char *x)
{
    return dt_onnx_add_call(o, "Greater", x, dt_onnx_constant_f32(o, 0), NULL);
}

static const char *emit_cast(dt_onnx *o, const char *x, int64_t type)
{
    dt_onnx_int(o, "to", type);
    return dt_onnx_add_call(o, "Cast", x, NULL, NULL);
}

/* The first of the most likely choices of a head that mask and shield permit. */
static const char *choose_head(dt_onnx *o, const char *logits, const char *mask, const char *allow)
{
    const char *may = emit_is_positive(o, mask);
    if (allow != NULL) { /* where both together leave nothing, what the shield gives the most of what the mask leaves */
        const char *left = dt_onnx_add_call(o, "Where", may, allow, dt_onnx_constant_f32(o, -INFINITY));
        dt_onnx_int(o, "keepdims", 1);
        const char *most = dt_onnx_add_call(o, "ReduceMax", left, dt_onnx_constant_i64(o, 1), NULL);
        const char *none = dt_onnx_add_call(o, "Not", emit_is_positive(o, most), NULL, NULL);
        const char *least_harm =
            dt_onnx_add_call(o, "And", none, dt_onnx_add_call(o, "GreaterOrEqual", allow, most, NULL), NULL);
        may = dt_onnx_add_call(o, "And", may, dt_onnx_add_call(o, "Or", emit_is_positive(o, allow), least_harm, NULL),
                               NULL);
    }
    const char *x = dt_onnx_add_call(o, "Where", may, logits, dt_onnx_constant_f32(o, -INFINITY));
    dt_onnx_int(o, "axis", 1);
    dt_onnx_int(o, "keepdims", 1);
    return emit_cast(o, dt_onnx_add_call(o, "ArgMax", x, NULL, NULL), DT_ONNX_INT32);
}

static void write_choices(writer *w, const char *logits, const char *allow)
{
    const dt_bundle_actions *a = &w->b->actions;
    const char *choice[DT_ENV_MAX_HEADS], *all = NULL;
    int64_t from = 0;
    for (uint32_t h = 0; h < a->n_heads; h++) {
        const int64_t n = a->choices[h];
        choice[h] = choose_head(&w->o, slice_columns(&w->o, logits, from, n), slice_columns(&w->o, w->mask, from, n),
                                allow != NULL ? slice_columns(&w->o, allow, from, n) : NULL);
        from += n;
    }
    dt_onnx_int(&w->o, "axis", 1);
    dt_onnx_add_node(&w->o, "Concat", choice, a->n_heads, &all, 1);
    dt_onnx_name(&w->o, all, "action_i");
    const dt_shape shape = shape_of_places(w, a->n_heads, DT_I32);
    write_info(w, GRAPH_OUTPUT, "action_i", &shape);
}

static const char *clamp_between(dt_onnx *o, const char *x, const char *low, const char *high)
{
    return dt_onnx_add_call(o, "Min", dt_onnx_add_call(o, "Max", x, low, NULL), high, NULL);
}

/* middle + half * tanh(u) */
static const char *squash_by_tanh(dt_onnx *o, const char *u)
{
    const char *half = dt_onnx_constant_f32(o, 0.5);
    const char *middle =
        dt_onnx_add_call(o, "Mul", dt_onnx_add_call(o, "Add", "actions.low", "actions.high", NULL), half, NULL);
    const char *width = dt_onnx_add_call(o, "Sub", "actions.high", middle, NULL);
    return dt_onnx_add_call(o, "Add", middle,
                            dt_onnx_add_call(o, "Mul", width, dt_onnx_add_call(o, "Tanh", u, NULL, NULL), NULL), NULL);
}

/* Within what the shield permits, where that is something, and always within the bounds. */
static void write_continuous(writer *w, const char *mean, const char *low, const char *high)
{
    const dt_bundle_actions *a = &w->b->actions;
    const int64_t C = a->n_continuous;
    dt_onnx *o = &w->o;
    dt_onnx_tensor(o, "actions.low", &C, 1, a->low);
    dt_onnx_tensor(o, "actions.high", &C, 1, a->high);
    mean = a->is_squashed ? squash_by_tanh(o, mean) : mean;
    const char *x = clamp_between(o, mean, "actions.low", "actions.high");
    if (low != NULL || high != NULL) {
        low = low != NULL ? low : "actions.low";
        high = high != NULL ? high : "actions.high";
        const char *inner = clamp_between(o, clamp_between(o, mean, low, high), "actions.low", "actions.high");
        x = dt_onnx_add_call(o, "Where", dt_onnx_add_call(o, "LessOrEqual", low, high, NULL), inner, x);
    }
    dt_onnx_name(o, x, "action_f");
    const dt_shape shape = shape_of_places(w, C, DT_F32);
    write_info(w, GRAPH_OUTPUT, "action_f", &shape);
}

static dt_status write_actions(writer *w)
{
    const dt_bundle_actions *a = &w->b->actions;
    const char *logits = find_output(w, "logits"), *mean = find_output(w, "mean");
    if ((a->n_heads > 0 && logits == NULL) || (a->n_continuous > 0 && mean == NULL)) {
        return DT_FAIL(DT_EINVAL, "the phase records no output %s, and so no action",
                       a->n_heads > 0 && logits == NULL ? "logits" : "mean");
    }
    int64_t n_choices = 0;
    for (uint32_t h = 0; h < a->n_heads; h++) {
        n_choices += a->choices[h];
    }
    if (a->n_heads > 0 && w->mask == NULL) {
        const dt_shape shape = shape_of_places(w, n_choices, DT_F32);
        w->mask = "mask";
        write_info(w, GRAPH_INPUT, w->mask, &shape);
    }
    if (a->n_heads > 0) {
        write_choices(w, logits, find_output(w, "allow"));
    }
    if (a->n_continuous > 0) {
        write_continuous(w, mean, find_output(w, "low"), find_output(w, "high"));
    }
    return DT_OK;
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static dt_status write_graph(writer *w)
{
    w->value = dt_alloc_n((size_t)w->b->ir.n_values, sizeof(*w->value));
    if (w->value == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory to write a graph of %d values", w->b->ir.n_values);
    }
    dt_pb_text(&w->o.graph, GRAPH_NAME, "dtrain");
    DT_TRY(write_inputs(w));
    write_tensors(w);
    DT_TRY(write_nodes(w));
    DT_TRY(write_outputs(w));
    DT_TRY(write_actions(w));
    return dt_onnx_status(&w->o);
}

static dt_status write_model(writer *w, const char *path)
{
    dt_str model = {0}, part = {0};
    dt_pb_int(&model, MODEL_IR_VERSION, IR_VERSION);
    dt_pb_text(&model, MODEL_PRODUCER, "dtrain");
    dt_pb_text(&model, MODEL_PRODUCER_VERSION, PACKAGE_VERSION);
    dt_pb_int(&part, OPSET_VERSION, OPSET);
    dt_pb_message(&model, MODEL_OPSET, &part);
    for (uint32_t i = 0; i < w->b->n_metadata; i++) {
        dt_pb_text(&part, PAIR_KEY, w->b->metadata[i][0]);
        dt_pb_text(&part, PAIR_VALUE, w->b->metadata[i][1]);
        dt_pb_message(&model, MODEL_METADATA, &part);
    }
    dt_pb_message(&model, MODEL_GRAPH, &w->o.graph);
    dt_status st = dt_str_status(&model);
    if (st == DT_OK && model.bytes > INT32_MAX) {
        st =
            DT_FAIL(DT_EINVAL, "the model takes %zu bytes, ONNX files at most 2 GiB; --format safetensors has no limit",
                    model.bytes);
    }
    if (st == DT_OK) {
        st = dt_fs_write_atomic(path, dt_str_text(&model), model.bytes);
    }
    dt_str_fini(&model);
    dt_str_fini(&part);
    return st;
}

dt_status dt_onnx_write(const dt_bundle *b, const char *path)
{
    writer w = {.b = b};
    dt_status st = write_graph(&w);
    if (st == DT_OK) {
        st = write_model(&w, path);
    }
    dt_onnx_fini(&w.o);
    dt_free(w.value);
    return st;
}
