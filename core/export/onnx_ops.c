/* SPDX-License-Identifier: Apache-2.0
 *
 * How each op of dtrain/ops.def is expressed in ONNX. The contracts are there; here are their spellings.
 */
#include <config.h>

#include "export/onnx_graph.h"

#include <math.h>
#include <string.h>

typedef struct speller {
    dt_onnx *o;
    const dt_ir *ir;
    const dt_node *n;
    const char *const *in; /* NULL where an optional input is absent */
    const char **second;   /* the name of the second result */
} speller;

static const dt_shape *operand_shape(const speller *s, uint32_t k)
{
    return &s->ir->value[s->n->in[k]].shape;
}

static int64_t extent_at(const dt_shape *x, uint32_t i) /* a number, -1 where it is ragged */
{
    return x->dim[i].symbol < 0 ? x->dim[i].size : -1;
}

static const char *emit_unary(const speller *s, const char *op, const char *x)
{
    return dt_onnx_add_call(s->o, op, x, NULL, NULL);
}

static const char *emit_binary(const speller *s, const char *op, const char *x, const char *y)
{
    return dt_onnx_add_call(s->o, op, x, y, NULL);
}

static const char *emit_cast(const speller *s, const char *x, int64_t type)
{
    dt_onnx_int(s->o, "to", type);
    return emit_unary(s, "Cast", x);
}

/* x[..., from : end] along an axis */
static const char *emit_slice(const speller *s, const char *x, int64_t axis, int64_t from, int64_t end)
{
    const char *const in[] = {x, dt_onnx_constant_i64(s->o, from), dt_onnx_constant_i64(s->o, end),
                              dt_onnx_constant_i64(s->o, axis)};
    const char *y = NULL;
    dt_onnx_add_node(s->o, "Slice", in, 4, &y, 1);
    return y;
}

/* x[t] of the first dimension */
static const char *emit_step_at(const speller *s, const char *x, int64_t t)
{
    dt_onnx_int(s->o, "axis", 0);
    return emit_binary(s, "Gather", x, dt_onnx_constant_index(s->o, t));
}

static const char *emit_gather_rows(const speller *s, const char *x, const char *index)
{
    dt_onnx_int(s->o, "axis", 0);
    return emit_binary(s, "Gather", x, index);
}

static const char *emit_concat(const speller *s, const char *const *x, uint32_t n, int64_t axis)
{
    const char *y = NULL;
    dt_onnx_int(s->o, "axis", axis);
    dt_onnx_add_node(s->o, "Concat", x, n, &y, 1);
    return y;
}

static const char *emit_first_dim(const speller *s, const char *x) /* [1] i64 */
{
    dt_onnx_int(s->o, "start", 0);
    dt_onnx_int(s->o, "end", 1);
    return emit_unary(s, "Shape", x);
}

/* [rows, columns] of this value; rows [1] i64 */
static const char *emit_filled(const speller *s, const char *n, int64_t columns, double value)
{
    const char *const dims[] = {n, dt_onnx_constant_i64(s->o, columns)};
    return emit_binary(s, "Expand", dt_onnx_constant_f32(s->o, value), emit_concat(s, dims, 2, 0));
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

static const char *emit_product(const speller *s, const char *x, uint32_t rank, const char *w, const char *b)
{
    if (rank == 2) {
        dt_onnx_int(s->o, "transB", 1);
        return dt_onnx_add_call(s->o, "Gemm", x, w, b);
    }
    const char *y = emit_binary(s, "MatMul", x, emit_unary(s, "Transpose", w));
    return b != NULL ? emit_binary(s, "Add", y, b) : y;
}

static const char *spell_linear(const speller *s)
{
    return emit_product(s, s->in[0], operand_shape(s, 0)->rank, s->in[1], s->n->n_in > 2 ? s->in[2] : NULL);
}

/* x Phi(x), the exact one */
static const char *emit_gelu(const speller *s, const char *x)
{
    const char *z = emit_unary(s, "Erf", emit_binary(s, "Mul", x, dt_onnx_constant_f32(s->o, M_SQRT1_2)));
    const char *phi = emit_binary(s, "Add", z, dt_onnx_constant_f32(s->o, 1));
    return emit_binary(s, "Mul", emit_binary(s, "Mul", x, dt_onnx_constant_f32(s->o, 0.5)), phi);
}

static const char *spell_unary(const speller *s)
{
    static const char *const name[] = {
        [DT_FN_RELU] = "Relu",       [DT_FN_LEAKY] = "LeakyRelu",   [DT_FN_ELU] = "Elu", [DT_FN_TANH] = "Tanh",
        [DT_FN_SIGMOID] = "Sigmoid", [DT_FN_SOFTPLUS] = "Softplus", [DT_FN_EXP] = "Exp", [DT_FN_LOG] = "Log",
        [DT_FN_SQRT] = "Sqrt",       [DT_FN_ABS] = "Abs",           [DT_FN_SIN] = "Sin", [DT_FN_COS] = "Cos"};
    const int64_t fn = s->n->attr.i[0];
    if (fn == DT_FN_GELU) {
        return emit_gelu(s, s->in[0]);
    }
    if (fn == DT_FN_LEAKY || fn == DT_FN_ELU) {
        dt_onnx_float(s->o, "alpha", (float)s->n->attr.f[0]);
    }
    return emit_unary(s, name[fn], s->in[0]);
}

static const char *spell_binary(const speller *s)
{
    static const char *const name[] = {[DT_BIN_ADD] = "Add",         [DT_BIN_SUB] = "Sub",
                                       [DT_BIN_MUL] = "Mul",         [DT_BIN_MIN] = "Min",
                                       [DT_BIN_MAX] = "Max",         [DT_BIN_DIV] = "Div",
                                       [DT_BIN_LESS] = "Less",       [DT_BIN_LESS_EQUAL] = "LessOrEqual",
                                       [DT_BIN_GREATER] = "Greater", [DT_BIN_GREATER_EQUAL] = "GreaterOrEqual",
                                       [DT_BIN_EQUAL] = "Equal"};
    const char *y = emit_binary(s, name[s->n->attr.i[0]], s->in[0], s->in[1]);
    return s->n->attr.i[0] >= DT_BIN_LESS ? emit_cast(s, y, DT_ONNX_FLOAT) : y;
}

static const char *spell_affine(const speller *s)
{
    const char *y = emit_binary(s, "Mul", s->in[0], dt_onnx_constant_f32(s->o, s->n->attr.f[0]));
    return s->n->attr.f[1] != 0 ? emit_binary(s, "Add", y, dt_onnx_constant_f32(s->o, s->n->attr.f[1])) : y;
}

static const char *spell_clamp(const speller *s)
{
    const double low = s->n->attr.f[0], high = s->n->attr.f[1];
    return dt_onnx_add_call(s->o, "Clip", s->in[0], isfinite(low) ? dt_onnx_constant_f32(s->o, low) : "",
                            isfinite(high) ? dt_onnx_constant_f32(s->o, high) : "");
}

static const char *spell_softmax(const speller *s)
{
    dt_onnx_int(s->o, "axis", -1);
    return emit_unary(s, "Softmax", s->in[0]);
}

static const char *spell_layernorm(const speller *s)
{
    const char *r = s->n->n_in > 3 ? s->in[3] : NULL;
    const char *v = r != NULL ? emit_binary(s, "Add", s->in[0], r) : s->in[0];
    dt_onnx_int(s->o, "axis", -1);
    dt_onnx_float(s->o, "epsilon", (float)s->n->attr.f[0]);
    return dt_onnx_add_call(s->o, "LayerNormalization", v, s->in[1], s->in[2]);
}

/* By the running statistics; BatchNormalization would want the columns as the second of all dimensions. */
static const char *spell_batch_norm(const speller *s)
{
    const char *v = emit_binary(s, "Add", s->in[4], dt_onnx_constant_f32(s->o, s->n->attr.f[0]));
    const char *scale = emit_binary(s, "Div", s->in[1], emit_unary(s, "Sqrt", v));
    const char *y = emit_binary(s, "Mul", emit_binary(s, "Sub", s->in[0], s->in[3]), scale);
    const char *mask = s->n->n_in > 5 ? s->in[5] : NULL;
    y = emit_binary(s, "Add", y, s->in[2]);
    if (mask == NULL) {
        return y;
    }
    mask = emit_binary(s, "Greater", mask, dt_onnx_constant_f32(s->o, 0));
    mask = emit_binary(s, "Unsqueeze", mask, dt_onnx_constant_i64(s->o, (int64_t)operand_shape(s, 0)->rank - 1));
    return dt_onnx_add_call(s->o, "Where", mask, y, dt_onnx_constant_f32(s->o, 0));
}

static const char *spell_stop(const speller *s)
{
    return emit_unary(s, "Identity", s->in[0]);
}

static const char *spell_fill(const speller *s)
{
    return emit_binary(s, "Expand", dt_onnx_constant_f32(s->o, s->n->attr.f[0]), emit_unary(s, "Shape", s->in[0]));
}

/* value of TopK, *index_p its places as i64 */
static const char *emit_top_k(const speller *s, const char *x, int64_t k, int64_t axis, bool is_least,
                              const char **index_p)
{
    const char *const in[] = {x, dt_onnx_constant_i64(s->o, k)};
    const char *out[2] = {NULL, NULL};
    dt_onnx_int(s->o, "axis", axis);
    dt_onnx_int(s->o, "largest", !is_least);
    dt_onnx_add_node(s->o, "TopK", in, 2, out, 2);
    *index_p = out[1];
    return out[0];
}

static const char *spell_reduce(const speller *s)
{
    const dt_shape *x = operand_shape(s, 0);
    const int64_t F = extent_at(x, x->rank - 2), how = s->n->attr.i[0], axis = (int64_t)x->rank - 2;
    if (how == DT_REDUCE_MAX ||
        how == DT_REDUCE_MIN) { /* versions of the opset differ in where ReduceMax has its axis */
        const char *index = NULL;
        return emit_binary(s, "Squeeze", emit_top_k(s, s->in[0], 1, axis, how == DT_REDUCE_MIN, &index),
                           dt_onnx_constant_i64(s->o, axis));
    }
    dt_onnx_int(s->o, "keepdims", 0);
    const char *y = emit_binary(s, "ReduceSum", s->in[0], dt_onnx_constant_i64(s->o, axis));
    return how == DT_REDUCE_MEAN ? emit_binary(s, "Mul", y, dt_onnx_constant_f32(s->o, 1.0 / (double)F)) : y;
}

static const char *spell_matmul(const speller *s)
{
    static const char *const turned[2][2] = {{NULL, "...ij,...kj->...ik"},
                                             {"...ji,...jk->...ik", "...ji,...kj->...ik"}};
    const char *equation = turned[s->n->attr.i[0] != 0][s->n->attr.i[1] != 0];
    if (equation == NULL) {
        return emit_binary(s, "MatMul", s->in[0], s->in[1]);
    }
    dt_onnx_text(s->o, "equation", equation);
    return emit_binary(s, "Einsum", s->in[0], s->in[1]);
}

static const char *spell_cumsum(const speller *s)
{
    return emit_binary(s, "CumSum", s->in[0], dt_onnx_constant_index(s->o, (int64_t)operand_shape(s, 0)->rank - 2));
}

/* ---- layout ------------------------------------------------------------------------------------------------------ */

/* The last dims of x replaced by these; those before stay. */
static const char *reshape_last_dims(const speller *s, const char *x, uint32_t keeps, const int64_t *dim, uint32_t n)
{
    int64_t all[DT_MAX_DIMS] = {0}; /* 0: as it was */
    memcpy(all + keeps, dim, n * sizeof(*dim));
    return emit_binary(s, "Reshape", x, dt_onnx_constant_ints(s->o, all, keeps + n));
}

static const char *spell_split(const speller *s)
{
    const dt_shape *x = operand_shape(s, 0);
    const int64_t A = s->n->attr.i[0], last = (int64_t)x->rank - 1;
    if (A == 0 || A == 1) {
        return emit_binary(s, "Unsqueeze", s->in[0], dt_onnx_constant_i64(s->o, A == 0 ? last + 1 : last));
    }
    const int64_t dim[] = {A, extent_at(x, (uint32_t)last) / A};
    return reshape_last_dims(s, s->in[0], (uint32_t)last, dim, 2);
}

static const char *spell_merge(const speller *s)
{
    const dt_shape *x = operand_shape(s, 0);
    const int64_t A = extent_at(x, x->rank - 2), B = extent_at(x, x->rank - 1), merged = A * B;
    if (A == 1 || B == 1) {
        return emit_binary(s, "Squeeze", s->in[0], dt_onnx_constant_i64(s->o, (int64_t)x->rank - (B == 1 ? 1 : 2)));
    }
    return reshape_last_dims(s, s->in[0], x->rank - 2, &merged, 1);
}

static const char *spell_concat(const speller *s)
{
    return emit_concat(s, s->in, s->n->n_in, -1);
}

static const char *spell_slice(const speller *s)
{
    return emit_slice(s, s->in[0], (int64_t)operand_shape(s, 0)->rank - 1, s->n->attr.i[0],
                      s->n->attr.i[0] + s->n->attr.i[1]);
}

static const char *spell_step(const speller *s)
{
    return emit_step_at(s, s->in[0], s->n->attr.i[0]);
}

/* -1 counts from the end: there is a row of zeros */
static const char *spell_gather(const speller *s)
{
    const char *const x[] = {s->in[0],
                             emit_filled(s, dt_onnx_constant_i64(s->o, 1), extent_at(operand_shape(s, 0), 1), 0)};
    return emit_gather_rows(s, emit_concat(s, x, 2, 0), s->in[1]);
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

/* For each of n places ([1] i64) how many of the pointers are at most its number: of rowptr without its first, the row
 * that an edge belongs to. */
static const char *count_pointers_up_to(const speller *s, const char *pointers, const char *n)
{
    const char *more = emit_binary(s, "Add", n, dt_onnx_constant_i64(s->o, 1));
    const char *mark = emit_binary(s, "Expand", dt_onnx_constant_i64(s->o, 0), more);
    const char *ones = emit_binary(s, "Expand", dt_onnx_constant_i64(s->o, 1), emit_unary(s, "Shape", pointers));
    dt_onnx_int(s->o, "axis", 0);
    dt_onnx_text(s->o, "reduction", "add");
    mark = dt_onnx_add_call(s->o, "ScatterElements", mark, pointers, ones);
    return emit_slice(s, emit_binary(s, "CumSum", mark, dt_onnx_constant_index(s->o, 0)), 0, 0, -1);
}

/* rows of x [E,M] into those of base [N,M] that to [E] names, by "add" or "max" */
static const char *emit_scatter(const speller *s, const char *base, const char *to, const char *x, const char *how)
{
    const char *index = emit_binary(s, "Expand", emit_binary(s, "Unsqueeze", to, dt_onnx_constant_i64(s->o, 1)),
                                    emit_unary(s, "Shape", x));
    dt_onnx_int(s->o, "axis", 0);
    dt_onnx_text(s->o, "reduction", how);
    return dt_onnx_add_call(s->o, "ScatterElements", base, index, x);
}

static const char *spell_segment_mean(const speller *s)
{
    const int64_t D = extent_at(operand_shape(s, 0), 1);
    const char *pointers = emit_cast(s, s->in[1], DT_ONNX_INT64);
    const char *n =
        emit_first_dim(s, pointers); /* B + 1: one before the first and one after the last are cut off again */
    const char *segment = count_pointers_up_to(s, pointers, emit_first_dim(s, s->in[0]));
    const char *base = emit_filled(s, emit_binary(s, "Add", n, dt_onnx_constant_i64(s->o, 1)), D, 0);
    const char *sum = emit_slice(s, emit_scatter(s, base, segment, s->in[0], "add"), 0, 1, -1);
    const char *count =
        emit_binary(s, "Sub", emit_slice(s, pointers, 0, 1, INT64_MAX), emit_slice(s, pointers, 0, 0, -1));
    count = emit_binary(s, "Max", emit_cast(s, count, DT_ONNX_FLOAT), dt_onnx_constant_f32(s->o, 1));
    return emit_binary(s, "Div", sum, emit_binary(s, "Unsqueeze", count, dt_onnx_constant_i64(s->o, 1)));
}

typedef struct edges {
    const char *n, *row, *col; /* [1] rows; [E] target and source of each edge */
} edges;

static edges emit_edges(const speller *s, const char *x, const char *rowptr, const char *col)
{
    const char *ends = emit_slice(s, emit_cast(s, rowptr, DT_ONNX_INT64), 0, 1, INT64_MAX);
    edges e = {.n = emit_first_dim(s, x), .col = emit_cast(s, col, DT_ONNX_INT64)};
    e.row = count_pointers_up_to(s, ends, emit_first_dim(s, col));
    return e;
}

/* logits [E,H], v [N,H,C] -> [N,H*C]: per target and head softmax over its edges, and the sum of p v_j */
static const char *emit_attention(const speller *s, const edges *e, const char *logits, const char *v, int64_t H,
                                  int64_t C)
{
    const int64_t flat = H * C;
    const char *top = emit_scatter(s, emit_filled(s, e->n, H, -3e38), e->row, logits, "max");
    const char *p = emit_unary(s, "Exp", emit_binary(s, "Sub", logits, emit_gather_rows(s, top, e->row)));
    const char *sum = emit_scatter(s, emit_filled(s, e->n, H, 0), e->row, p, "add");
    p = emit_binary(s, "Div", p, emit_gather_rows(s, sum, e->row));
    const char *part = emit_binary(s, "Mul", emit_binary(s, "Unsqueeze", p, dt_onnx_constant_i64(s->o, 2)),
                                   emit_gather_rows(s, v, e->col));
    return emit_scatter(s, emit_filled(s, e->n, flat, 0), e->row, reshape_last_dims(s, part, 1, &flat, 1), "add");
}

/* x [R,H,C], a [H,C] -> [R,H] */
static const char *emit_head_dots(const speller *s, const char *x, const char *a)
{
    const char *products = emit_binary(s, "Mul", x, a);
    dt_onnx_int(s->o, "keepdims", 0);
    return emit_binary(s, "ReduceSum", products, dt_onnx_constant_i64(s->o, 2));
}

static const char *spell_gat(const speller *s)
{
    const int64_t H = s->n->attr.i[0], C = extent_at(operand_shape(s, 0), 1) / H, heads[] = {H, C};
    const edges e = emit_edges(s, s->in[0], s->in[5], s->in[6]);
    const char *h = reshape_last_dims(s, s->in[0], 1, heads, 2);
    const char *dst = emit_head_dots(s, h, reshape_last_dims(s, s->in[1], 0, heads, 2));
    const char *src = emit_head_dots(s, h, reshape_last_dims(s, s->in[2], 0, heads, 2));
    const char *z = emit_binary(s, "Add", emit_gather_rows(s, dst, e.row), emit_gather_rows(s, src, e.col));
    if (s->in[3] != NULL) {
        z = emit_binary(s, "Add", z, emit_product(s, s->in[3], 2, s->in[4], NULL));
    }
    dt_onnx_float(s->o, "alpha", (float)s->n->attr.f[0]);
    return emit_attention(s, &e, emit_unary(s, "LeakyRelu", z), h, H, C);
}

static const char *spell_graph_qk(const speller *s)
{
    const int64_t H = s->n->attr.i[0], C = extent_at(operand_shape(s, 0), 1) / H, heads[] = {H, C};
    const edges e = emit_edges(s, s->in[0], s->in[4], s->in[5]);
    const char *q = reshape_last_dims(s, s->in[0], 1, heads, 2), *k = reshape_last_dims(s, s->in[1], 1, heads, 2);
    const char *z = emit_head_dots(s, emit_gather_rows(s, q, e.row), emit_gather_rows(s, k, e.col));
    z = emit_binary(s, "Mul", z, dt_onnx_constant_f32(s->o, 1 / sqrt((double)C)));
    if (s->in[3] != NULL) {
        z = emit_binary(s, "Add", z, s->in[3]);
    }
    return emit_attention(s, &e, z, reshape_last_dims(s, s->in[2], 1, heads, 2), H, C);
}

/* one row more, which -1 names */
static const char *spell_scatter_add(const speller *s)
{
    if (operand_shape(s, 1)->rank != 1) {
        return NULL;
    }
    const char *n = emit_binary(s, "Add", emit_first_dim(s, s->in[2]), dt_onnx_constant_i64(s->o, 1));
    const char *base = emit_filled(s, n, extent_at(operand_shape(s, 0), 1), 0);
    return emit_slice(s, emit_scatter(s, base, emit_cast(s, s->in[1], DT_ONNX_INT64), s->in[0], "add"), 0, 0, -1);
}

/* ---- recurrent layers -------------------------------------------------------------------------------------------- */

/* x [S, n H] into n parts */
static void split_parts(const speller *s, const char *x, uint32_t n, const char **out)
{
    dt_onnx_int(s->o, "axis", -1);
    dt_onnx_int(s->o, "num_outputs", n);
    dt_onnx_add_node(s->o, "Split", &x, 1, out, n);
}

/* where an agent is present [S,1] the new state, else the old one, NULL: zero */
static const char *select_present_state(const speller *s, const char *present, const char *now, const char *before)
{
    return present == NULL
               ? now
               : dt_onnx_add_call(s->o, "Where", present, now, before != NULL ? before : dt_onnx_constant_f32(s->o, 0));
}

static const char *emit_present_at(const speller *s, const char *present, int64_t t)
{
    return present == NULL ? NULL
                           : emit_binary(s, "Unsqueeze", emit_cast(s, emit_step_at(s, present, t), DT_ONNX_BOOL),
                                         dt_onnx_constant_i64(s->o, 1));
}

/* h_t of all steps [S,H] to [T,S,H]; sum: those before */
static const char *append_step_state(const speller *s, const char *sum, const char *h)
{
    const char *const both[] = {sum, emit_binary(s, "Unsqueeze", h, dt_onnx_constant_i64(s->o, 0))};
    return sum != NULL ? emit_concat(s, both, 2, 0) : both[1];
}

/* h wh^T + x */
static const char *emit_recurrence(const speller *s, const char *h, const char *wh, const char *x)
{
    dt_onnx_int(s->o, "transB", 1);
    return dt_onnx_add_call(s->o, "Gemm", h, wh, x);
}

static const char *spell_lstm(const speller *s)
{
    enum { I, F, G, O, GATES };
    const char *h = NULL, *c = NULL, *all = NULL;
    for (int64_t t = 0; t < extent_at(operand_shape(s, 0), 0); t++) {
        const char *gate[GATES], *x = emit_step_at(s, s->in[0], t);
        const char *present = emit_present_at(s, s->n->n_in > 2 ? s->in[2] : NULL, t);
        split_parts(s, h != NULL ? emit_recurrence(s, h, s->in[1], x) : x, GATES, gate);
        const char *now = emit_binary(s, "Mul", emit_unary(s, "Sigmoid", gate[I]), emit_unary(s, "Tanh", gate[G]));
        if (c != NULL) {
            now = emit_binary(s, "Add", now, emit_binary(s, "Mul", emit_unary(s, "Sigmoid", gate[F]), c));
        }
        const char *out = emit_binary(s, "Mul", emit_unary(s, "Sigmoid", gate[O]), emit_unary(s, "Tanh", now));
        c = select_present_state(s, present, now, c);
        h = select_present_state(s, present, out, h);
        all = append_step_state(s, all, h);
    }
    return all;
}

static const char *spell_gru(const speller *s)
{
    enum { R, Z, N, GATES };
    const char *h = NULL, *all = NULL;
    for (int64_t t = 0; t < extent_at(operand_shape(s, 0), 0); t++) {
        const char *x[GATES], *u[GATES];
        const char *present = emit_present_at(s, s->n->n_in > 3 ? s->in[3] : NULL, t);
        split_parts(s, emit_step_at(s, s->in[0], t), GATES, x);
        split_parts(s, h != NULL ? emit_recurrence(s, h, s->in[1], s->in[2]) : s->in[2], GATES, u);
        const char *r = emit_unary(s, "Sigmoid", emit_binary(s, "Add", x[R], u[R]));
        const char *z = emit_unary(s, "Sigmoid", emit_binary(s, "Add", x[Z], u[Z]));
        const char *n = emit_unary(s, "Tanh", emit_binary(s, "Add", x[N], emit_binary(s, "Mul", r, u[N])));
        const char *now = emit_binary(s, "Mul", emit_binary(s, "Sub", dt_onnx_constant_f32(s->o, 1), z), n);
        if (h != NULL) {
            now = emit_binary(s, "Add", now, emit_binary(s, "Mul", z, h));
        }
        h = select_present_state(s, present, now, h);
        all = append_step_state(s, all, h);
    }
    return all;
}

/* ---- maps -------------------------------------------------------------------------------------------------------- */

/* Dimensions of the result in terms of those of x. */
static const char *emit_transpose(const speller *s, const char *x, const int64_t *order, uint32_t n)
{
    dt_onnx_ints(s->o, "perm", order, n);
    return emit_unary(s, "Transpose", x);
}

/* Channels come first in ONNX. */
static const char *spell_conv2d(const speller *s)
{
    static const int64_t first[] = {0, 3, 1, 2}, last[] = {0, 2, 3, 1};
    const dt_shape *x = operand_shape(s, 0), *w = operand_shape(s, 1);
    const int64_t *attr = s->n->attr.i;
    if (x->rank != 4) {
        return NULL;
    }
    const char *maps = emit_transpose(s, s->in[0], first, 4), *kernel = emit_transpose(s, s->in[1], first, 4);
    dt_onnx_ints(s->o, "strides", (const int64_t[]){attr[0], attr[0]}, 2);
    dt_onnx_ints(s->o, "pads", (const int64_t[]){attr[1], attr[2], attr[1], attr[2]}, 4);
    dt_onnx_ints(s->o, "dilations", (const int64_t[]){attr[3], attr[3]}, 2);
    dt_onnx_int(s->o, "group", extent_at(x, 3) / extent_at(w, 3));
    const char *y = dt_onnx_add_call(s->o, "Conv", maps, kernel, s->n->n_in > 2 ? s->in[2] : NULL);
    return emit_transpose(s, y, last, 4);
}

static const char *spell_transpose(const speller *s)
{
    const uint32_t rank = operand_shape(s, 0)->rank;
    int64_t order[DT_MAX_DIMS];
    for (uint32_t i = 0; i < rank; i++) {
        order[i] = i < rank - 2 ? i : 2 * (int64_t)rank - 3 - i;
    }
    return emit_transpose(s, s->in[0], order, rank);
}

/* the digits of the order name the last dimensions from 1 on */
static const char *spell_permute(const speller *s)
{
    const int64_t rank = operand_shape(s, 0)->rank, digits = s->n->attr.i[0];
    int64_t order[DT_MAX_DIMS], n = 0;
    for (int64_t left = digits; left > 0; left /= 10) {
        n++;
    }
    for (int64_t i = rank - 1, left = digits; i >= 0; i--, left /= 10) {
        order[i] = i < rank - n ? i : rank - n + left % 10 - 1;
    }
    return emit_transpose(s, s->in[0], order, (uint32_t)rank);
}

/* ---- choices, numbers -------------------------------------------------------------------------------------------- */

static const char *spell_select(const speller *s)
{
    const char *zero = dt_onnx_constant_f32(s->o, 0);
    const char *a = s->in[1] != NULL ? s->in[1] : zero, *b = s->n->n_in > 2 && s->in[2] != NULL ? s->in[2] : zero;
    return dt_onnx_add_call(s->o, "Where", emit_cast(s, s->in[0], DT_ONNX_BOOL), a, b);
}

static const char *spell_cast(const speller *s)
{
    return emit_cast(s, s->in[0], DT_ONNX_FLOAT);
}

/* OneHot counts negative numbers from the end */
static const char *spell_one_hot(const speller *s)
{
    const int64_t column = s->n->attr.i[0], axis = (int64_t)operand_shape(s, 0)->rank - 1;
    const char *idx = emit_cast(s, emit_slice(s, s->in[0], axis, column, column + 1), DT_ONNX_INT64);
    const char *range =
        dt_onnx_add_call(s->o, "Range", dt_onnx_constant_index(s->o, 0), dt_onnx_constant_index(s->o, s->n->attr.i[1]),
                         dt_onnx_constant_index(s->o, 1));
    return emit_cast(s, emit_binary(s, "Equal", idx, range), DT_ONNX_FLOAT);
}

static const char *spell_top_k(const speller *s)
{
    const char *index = NULL, *value = emit_top_k(s, s->in[0], s->n->attr.i[1], -1, false, &index);
    *s->second = emit_cast(s, index, DT_ONNX_INT32);
    return value;
}

static const char *spell_constant(const speller *s)
{
    const char *number[4];
    for (int64_t i = 0; i < s->n->attr.i[0]; i++) {
        number[i] =
            emit_binary(s, "Unsqueeze", dt_onnx_constant_f32(s->o, s->n->attr.f[i]), dt_onnx_constant_i64(s->o, 0));
    }
    return emit_concat(s, number, (uint32_t)s->n->attr.i[0], 0);
}

/* ---- table ------------------------------------------------------------------------------------------------------- */

/* ops that are not exported: those of losses, and those that exported policies do not use */
#define spell_dropout      NULL
#define spell_sum          NULL
#define spell_gaussian_nll NULL
#define spell_bce_logits   NULL
#define spell_mse          NULL
#define spell_huber        NULL
#define spell_categorical  NULL
#define spell_gaussian     NULL
#define spell_ppo_clip     NULL
#define spell_value_loss   NULL
#define spell_noise        NULL
#define spell_pick         NULL
#define spell_unfold       NULL

const char *dt_onnx_write_op(dt_onnx *o, const dt_ir *ir, const dt_node *n, const char *const *in,
                             const char **second_p)
{
    static const char *(*const spell[DT_OP_PUBLIC_END])(const speller *s) = {
#define DT_OP(ID, number, name) [number] = spell_##name,
#include "dtrain/ops.def"
    };
    const speller s = {.o = o, .ir = ir, .n = n, .in = in, .second = second_p};
    return n->op < DT_OP_PUBLIC_END && spell[n->op] != NULL ? spell[n->op](&s) : NULL;
}
