/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/engine/graph/graph.c, infer.c and the shape rules of op_*.c: what is recorded, and every refusal by its
 * text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/fault.h"
#include "base/mem.h"
#include "engine/graph/graph.h"
#include "engine/graph/ir.h"
#include "engine/graph/op.h"

static const char *const SYMBOL[] = {"N", "E", "S", "B"};
static const dt_port FIELD[] = {
    {"nodes", "N 9", DT_F32, 0},          {"rowptr", "N+1", DT_I32, 0},  {"col", "E", DT_I32, 0},
    {"edges", "E 4", DT_F32, 0},          {"key", "N", DT_I64, 0},       {"label", "N", DT_F32, 0},
    {"seq_row", "5 S", DT_I32, 0},        {"present", "5 S", DT_F32, 0}, {"target", "S 3 2", DT_F32, 0},
    {"weight", "S 3", DT_F32, 0},         {"ptr", "B+1", DT_I32, 0},     {"odd", "Q 3", DT_F32, 0},
    {"ragged_steps", "N S 8", DT_F32, 0}, {"action", "N 2", DT_I32, 0},  {"known", "N 8", DT_F32, 0},
};
enum { N_FIELDS = sizeof(FIELD) / sizeof(FIELD[0]) };

typedef struct fixture {
    dt_param_table params;
    dt_graph *g;
} fixture;

static void add_param(fixture *f, const char *name, int64_t a, int64_t b)
{
    const int64_t dim[2] = {a, b};
    assert_int_equal(dt_param_table_add(&f->params, "m", name, dim, b > 0 ? 2 : 1, DT_INIT_UNIFORM, 1), DT_OK);
}

static void open_graph(fixture *f)
{
    const dt_graph_desc d = {
        .symbol = SYMBOL, .n_symbols = 4, .field = FIELD, .n_fields = N_FIELDS, .params = &f->params};
    assert_int_equal(dt_graph_create(&d, &f->g), DT_OK);
    dt_graph_set_scope(f->g, "m");
}

static void setup(fixture *f)
{
    *f = (fixture){0};
    add_param(f, "w", 8, 9);
    add_param(f, "b", 8, 0);
    add_param(f, "w8", 8, 8);
    add_param(f, "w_e", 2, 4);
    add_param(f, "wx", 16, 8);
    add_param(f, "wh", 16, 4);
    add_param(f, "w2", 6, 4);
    add_param(f, "five", 5, 3);
    static const int64_t eight = 8;
    for (int k = 0; k < 2; k++) {
        assert_int_equal(dt_param_table_add(&f->params, "m", k == 0 ? "mean" : "var", &eight, 1,
                                            DT_INIT_CONST | DT_INIT_STATISTIC, 1),
                         DT_OK);
    }
    open_graph(f);
}

static void teardown(fixture *f)
{
    dt_graph_destroy(f->g);
    dt_param_table_fini(&f->params);
}

static dt_tensor *param(fixture *f, const char *name)
{
    return f->g->api->param(f->g, name);
}

#define BATCH_NORM(x, mean, var, mask, momentum, epsilon)                                                              \
    dt_batch_norm(f.g, x, param(&f, "b"), param(&f, "b"), param(&f, mean), param(&f, var), mask, momentum, epsilon)

static dt_tensor *input(fixture *f, const char *name)
{
    return f->g->api->input(f->g, name);
}

static void assert_shape(const dt_tensor *t, const char *want)
{
    assert_non_null(t);
    dt_str s = {0};
    dt_graph_shape_text(t, &s);
    assert_string_equal(dt_str_text(&s), want);
    dt_str_fini(&s);
}

/* The sticky error is this, and the graph starts afresh. */
static void assert_refused(fixture *f, dt_status st, const char *text)
{
    dt_error_clear();
    assert_int_equal(f->g->api->status(f->g), st);
    if (strstr(dt_error_text(), text) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", text, dt_error_text());
    }
    dt_graph_destroy(f->g);
    open_graph(f);
}

static void test_shapes(void **state)
{
    fixture f;
    setup(&f);
    dt_graph *g = f.g;
    dt_tensor *h = dt_linear(g, input(&f, "nodes"), param(&f, "w"), param(&f, "b"));
    assert_shape(h, "N 8 f32");
    assert_shape(dt_relu(g, h), "N 8 f32");
    assert_shape(dt_split(g, h, 2), "N 2 4 f32");
    assert_shape(dt_merge(g, dt_split(g, h, 2)), "N 8 f32");
    assert_shape(dt_merge(g, dt_slice(g, h, 3, 1)), "N f32");
    assert_shape(dt_split(g, input(&f, "label"), 0), "N 1 f32");
    assert_shape(dt_split(g, input(&f, "label"), 1), "1 N f32");
    assert_shape(dt_merge(g, dt_split(g, input(&f, "label"), 1)), "N f32");
    assert_shape(dt_slice(g, h, 3, 2), "N 2 f32");
    assert_shape(dt_add(g, h, param(&f, "b")), "N 8 f32");
    assert_shape(dt_mul(g, h, dt_slice(g, h, 0, 1)), "N 8 f32");
    dt_tensor *two[2] = {h, input(&f, "nodes")};
    assert_shape(dt_concat(g, two, 2), "N 17 f32");
    dt_tensor *seq = dt_gather(g, h, input(&f, "seq_row"));
    assert_shape(seq, "5 S 8 f32");
    assert_shape(dt_step(g, seq, -1), "S 8 f32");
    assert_shape(dt_layernorm(g, h, param(&f, "b"), param(&f, "b"), NULL), "N 8 f32");
    assert_shape(dt_gat(g, h, param(&f, "b"), param(&f, "b"), input(&f, "edges"), param(&f, "w_e"), input(&f, "rowptr"),
                        input(&f, "col"), 2, 0.2),
                 "N 8 f32");
    assert_shape(dt_graph_qk(g, h, h, h, NULL, input(&f, "rowptr"), input(&f, "col"), 4), "N 8 f32");
    dt_tensor *xw = dt_linear(g, seq, param(&f, "wx"), NULL);
    dt_tensor *y = dt_lstm(g, xw, param(&f, "wh"), input(&f, "present"));
    assert_shape(y, "5 S 4 f32");
    dt_tensor *future = dt_split(g, dt_linear(g, dt_step(g, y, 4), param(&f, "w2"), NULL), 3);
    assert_shape(future, "S 3 2 f32");
    assert_shape(dt_cumsum(g, future), "S 3 2 f32");
    assert_shape(dt_gaussian_nll(g, future, future, input(&f, "target"), input(&f, "weight")), "1 f64");
    assert_shape(dt_segment_mean(g, h, input(&f, "ptr")), "B 8 f32");
    assert_shape(dt_dropout(g, h, input(&f, "key"), 0.1), "N 8 f32");
    dt_tensor *entropy = NULL, *kl = NULL, *clipped = NULL;
    dt_tensor *log_prob = dt_categorical(g, h, input(&f, "action"), 1, h, &entropy);
    assert_shape(log_prob, "N f32");
    assert_shape(entropy, "N f32");
    assert_ptr_equal(g->api->result(g, log_prob, 0), log_prob);
    assert_ptr_equal(g->api->result(g, log_prob, 1), entropy);
    assert_ptr_not_equal(log_prob, entropy);
    assert_shape(dt_gaussian(g, h, param(&f, "b"), h, &entropy), "N f32");
    assert_shape(dt_gaussian(g, future, future, future, NULL), "S 3 f32");
    assert_shape(dt_ppo_clip(g, log_prob, log_prob, input(&f, "label"), 0.2, 0.2, &kl, &clipped), "N f32");
    assert_shape(kl, "N f32");
    assert_shape(clipped, "N f32");
    assert_shape(dt_value_loss(g, future, future, future, DT_VALUE_CLIP_STEP, 1), "S 3 2 f32");
    dt_tensor *a = param(&f, "w"), *b = param(&f, "five"); /* [8,9], [5,3] */
    assert_shape(dt_matmul(g, a, dt_transpose(g, a), 0, 0), "8 8 f32");
    assert_shape(dt_matmul(g, a, a, 0, 1), "8 8 f32");
    assert_shape(dt_matmul(g, a, a, 1, 0), "9 9 f32");
    assert_shape(dt_matmul(g, param(&f, "wx"), param(&f, "wh"), 1, 0), "8 4 f32");   /* [16,8], [16,4] */
    assert_shape(dt_matmul(g, param(&f, "wh"), param(&f, "w_e"), 0, 1), "16 2 f32"); /* [16,4], [2,4] */
    assert_shape(dt_matmul(g, param(&f, "w"), dt_transpose(g, a), 1, 1), "9 9 f32");
    assert_shape(dt_matmul(g, dt_transpose(g, b), b, 0, 0), "3 3 f32");
    assert_shape(dt_transpose(g, b), "3 5 f32");
    assert_shape(dt_reduce(g, DT_REDUCE_MAX, b), "3 f32");
    assert_shape(dt_pick(g, h, input(&f, "action"), 1), "N 1 f32");
    assert_shape(dt_unfold(g, b, 2, 1, 0, 0), "4 6 f32");
    static const double numbers[300] = {1};
    dt_tensor *number = dt_slice(g, param(&f, "b"), 0, 1), *index = NULL;
    assert_shape(dt_mul(g, h, number), "N 8 f32");
    assert_shape(dt_compare(g, DT_BIN_LESS, h, number), "N 8 f32");
    assert_shape(dt_select(g, dt_slice(g, h, 0, 1), h, NULL), "N 8 f32");
    assert_shape(dt_select(g, number, NULL, h), "N 8 f32");
    assert_shape(dt_cast(g, input(&f, "col")), "E f32");
    assert_shape(dt_one_hot(g, input(&f, "action"), 1, 6), "N 6 f32");
    assert_shape(dt_top_k(g, h, 3, &index), "N 3 f32");
    assert_shape(index, "N 3 i32");
    assert_shape(dt_argmax(g, future), "S 3 1 i32");
    assert_shape(dt_scatter_add(g, seq, input(&f, "seq_row"), h), "N 8 f32");
    assert_shape(dt_permute_dims(g, future, 21), "S 2 3 f32");
    assert_shape(dt_permute_dims(g, dt_split(g, future, 2), 312), "S 1 3 2 f32");
    assert_shape(dt_constant_row(g, numbers, 1), "1 f32");
    assert_shape(dt_constant_row(g, numbers, 300), "300 f32");
    assert_shape(dt_gumbel_noise(g, input(&f, "key"), 4, 0), "N 4 f32");
    assert_shape(BATCH_NORM(h, "mean", "var", NULL, 0.1, 1e-5), "N 8 f32");
    assert_shape(BATCH_NORM(h, "mean", "var", input(&f, "label"), 0, 1e-5), "N 8 f32");
    assert_shape(dt_group_norm(g, h, 4, param(&f, "b"), param(&f, "b")), "N 8 f32");
    assert_shape(dt_unfold(g, b, 2, 2, 0, 0), "2 6 f32");
    assert_shape(dt_unfold(g, b, 5, 1, 0, 0), "1 15 f32");
    assert_shape(dt_unfold(g, b, 3, 2, 5, 1), "7 9 f32"); /* (5 + 10 - 3) / 2 + 1 */
    dt_tensor *map = dt_split(g, dt_split(g, h, 2), 2);   /* [N,2,2,2] */
    dt_tensor *kernel = dt_split(g, dt_split(g, param(&f, "w8"), 2), 2);
    dt_tensor *row = dt_slice(g, param(&f, "b"), 0, 2);
    assert_shape(dt_group_norm_maps(g, map, 2, row, row), "N 2 2 2 f32");
    assert_shape(dt_conv2d(g, map, kernel, param(&f, "b"), 1, 1, 0, 1), "N 3 1 8 f32");
    assert_shape(dt_conv2d(g, map, kernel, NULL, 3, 1, 1, 2), "N 1 1 8 f32"); /* (2 + 2 - 2 - 1) / 3 + 1 */
    assert_shape(dt_conv2d(g, map, dt_split(g, dt_split(g, param(&f, "w8"), 2), 4), NULL, 1, 0, 1, 1), "N 1 1 8 f32");
    assert_shape(g->api->step_input(g, "beta", 3), "3 f32");
    assert_ptr_equal(g->api->step_input(g, "beta", 3), g->api->step_input(g, "beta", 3));
    assert_int_equal(g->api->status(g), DT_OK);
    assert_int_equal(g->api->dim(h, 0), -1);
    assert_int_equal(g->api->dim(h, 1), 8);
    assert_int_equal(g->api->dim(h, 2), -1);
    assert_int_equal(g->api->rank(seq), 3);
    teardown(&f);
}

static void test_shape_refusals(void **state)
{
    fixture f;
    setup(&f);
#define H() dt_linear(f.g, input(&f, "nodes"), param(&f, "w"), param(&f, "b"))
#define REFUSED(expr, st, text)                                                                                        \
    do {                                                                                                               \
        assert_null(expr);                                                                                             \
        assert_refused(&f, st, text);                                                                                  \
    } while (0)
#define MATMUL(a, b) dt_op_(f.g, DT_OP_MATMUL, (dt_tensor *[]){param(&f, "w"), param(&f, "w")}, 2, a, b, 0, 0)
    REFUSED(dt_linear(f.g, H(), param(&f, "w"), NULL), DT_ESHAPE,
            "m: linear: w is 8 9 f32, expected [M,K] f32 where K = 8");
    REFUSED(dt_linear(f.g, H(), param(&f, "w8"), param(&f, "w_e")), DT_ESHAPE,
            "b is 2 4 f32, expected [M] f32 where M = 8");
    REFUSED(dt_linear(f.g, input(&f, "col"), param(&f, "w"), NULL), DT_ESHAPE, "x is E i32, expected [...,K] f32");
    REFUSED(dt_linear(f.g, H(), NULL, NULL), DT_EINVAL, "linear: input w (number 1) is missing");
    REFUSED(dt_gat(f.g, H(), param(&f, "b"), param(&f, "b"), NULL, NULL, input(&f, "rowptr"), input(&f, "col"), 7, 0.2),
            DT_ESHAPE, "gat: h is N 8 f32 but heads 7 does not divide 8");
    REFUSED(dt_gat(f.g, H(), param(&f, "b"), param(&f, "b"), NULL, NULL, input(&f, "rowptr"), input(&f, "col"), 0, 0.2),
            DT_ESHAPE, "heads 0");
    REFUSED(dt_gat(f.g, H(), param(&f, "b"), param(&f, "b"), input(&f, "edges"), NULL, input(&f, "rowptr"),
                   input(&f, "col"), 2, 0.2),
            DT_EINVAL, "together or not at all");
    REFUSED(dt_gat(f.g, H(), param(&f, "b"), param(&f, "b"), input(&f, "edges"), param(&f, "w_e"), input(&f, "rowptr"),
                   input(&f, "col"), 4, 0.2),
            DT_ESHAPE, "w_e is 2 4 f32 but there are 4 heads");
    REFUSED(dt_gat(f.g, H(), param(&f, "b"), param(&f, "b"), NULL, NULL, input(&f, "ptr"), input(&f, "col"), 2, 0.2),
            DT_ESHAPE, "rowptr is B+1 i32, expected [N+1] i32 where N = N");
    REFUSED(dt_gat(f.g, H(), param(&f, "b"), param(&f, "b"), NULL, NULL, input(&f, "col"), input(&f, "col"), 2, 0.2),
            DT_ESHAPE, "rowptr is E i32");
    REFUSED(dt_graph_qk(f.g, H(), H(), H(), input(&f, "edges"), input(&f, "rowptr"), input(&f, "col"), 2), DT_ESHAPE,
            "bias is E 4 f32 but there are 2 heads");
    REFUSED(dt_split(f.g, H(), 3), DT_ESHAPE, "split: x is N 8 f32 but 3 does not divide 8");
    REFUSED(dt_split(f.g, input(&f, "label"), 3), DT_ESHAPE, "ragged dimension cannot be split");
    REFUSED(dt_merge(f.g, H()), DT_ESHAPE, "merge: x is N 8 f32 but a ragged dimension can only be merged with 1");
    REFUSED(dt_slice(f.g, H(), 4, 5), DT_EINVAL, "slice: columns 4 to 8 of 8 do not exist");
    REFUSED(dt_slice(f.g, input(&f, "label"), 0, 1), DT_ESHAPE, "cannot be sliced");
    REFUSED(dt_step(f.g, H(), 0), DT_ESHAPE, "step: x is N 8 f32 but its first dimension");
    REFUSED(dt_step(f.g, input(&f, "present"), 5), DT_EINVAL, "step 5 is outside -5 .. 4");
    REFUSED(dt_add(f.g, H(), input(&f, "nodes")), DT_ESHAPE,
            "binary: a is N 8 f32, b is N 9 f32; b must have the shape");
    REFUSED(dt_binary(f.g, DT_BIN_EQUAL + 1, H(), H()), DT_EINVAL, "function 12 is not one of DT_BIN_*");
    REFUSED(dt_unary(f.g, 99, H(), 0), DT_EINVAL, "unary: function 99");
    REFUSED(dt_unary(f.g, DT_FN_LEAKY, H(), NAN), DT_EINVAL, "slope or alpha nan");
    REFUSED(dt_affine(f.g, H(), INFINITY, 0), DT_EINVAL, "affine: scale inf");
    REFUSED(dt_clamp(f.g, H(), 2, 1), DT_EINVAL, "clamp: lower bound 2");
    REFUSED(dt_dropout(f.g, H(), input(&f, "key"), 1), DT_EINVAL, "dropout: probability 1 is outside [0,1)");
    REFUSED(dt_dropout(f.g, H(), input(&f, "col"), 0.1), DT_ESHAPE, "key is E i32, expected [...] i64 where ... = N");
    REFUSED(dt_lstm(f.g, input(&f, "target"), param(&f, "wh"), NULL), DT_ESHAPE,
            "xw is S 3 2 f32, expected [T,S,4H] f32");
    REFUSED(dt_lstm(f.g, input(&f, "ragged_steps"), param(&f, "w_e"), NULL), DT_ESHAPE, "w");
    REFUSED(dt_concat(f.g, (dt_tensor *[]){H()}, 1), DT_EINVAL, "concat: input x2 (number 1) is missing");
    REFUSED(dt_concat(f.g, (dt_tensor *[]){H(), input(&f, "edges")}, 2), DT_ESHAPE, "x2 is E 4 f32");
    REFUSED(dt_concat(f.g, (dt_tensor *[]){H(), H(), NULL, H()}, 4), DT_EINVAL, "x3 is missing before x4");
    REFUSED(dt_mse(f.g, H(), input(&f, "nodes"), input(&f, "label")), DT_ESHAPE, "mse: target is N 9 f32");
    REFUSED(dt_huber(f.g, H(), H(), input(&f, "label"), 0), DT_EINVAL, "huber: delta 0 must be positive");
    REFUSED(dt_op_(f.g, DT_OP_LAYERNORM, (dt_tensor *[]){H(), param(&f, "b"), param(&f, "b")}, 3, 0, 0, 0, 0),
            DT_EINVAL, "layernorm: epsilon 0");
    REFUSED(dt_matmul(f.g, H(), H(), 0, 0), DT_ESHAPE,
            "a is N 8 f32, b is N 8 f32, but the last but one dimension of a is ragged");
    REFUSED(dt_matmul(f.g, param(&f, "w"), param(&f, "w"), 0, 0), DT_ESHAPE, "a has 9 terms for each sum, b 8");
    REFUSED(dt_matmul(f.g, param(&f, "w"), param(&f, "w"), 1, 1), DT_ESHAPE, "a has 8 terms for each sum, b 9");
    REFUSED(dt_matmul(f.g, input(&f, "present"), H(), 0, 0), DT_ESHAPE, "but the last dimension of a is ragged");
    REFUSED(dt_matmul(f.g, param(&f, "w"), H(), 0, 0), DT_ESHAPE, "but the last but one dimension of b is ragged");
    REFUSED(dt_matmul(f.g, param(&f, "w"), input(&f, "present"), 0, 0), DT_ESHAPE,
            "but the last dimension of b is ragged");
    REFUSED(MATMUL(2, 0), DT_EINVAL, "transposed is 0 or 1, not 2 and 0");
    REFUSED(MATMUL(0, -1), DT_EINVAL, "transposed is 0 or 1, not 0 and -1");
    REFUSED(MATMUL(-1, 0), DT_EINVAL, "not -1 and 0");
    REFUSED(MATMUL(0, 2), DT_EINVAL, "not 0 and 2");
    REFUSED(dt_transpose(f.g, H()), DT_ESHAPE, "but A is ragged");
    REFUSED(dt_reduce(f.g, DT_REDUCE_SUM, H()), DT_ESHAPE, "but F is ragged");
    REFUSED(dt_reduce(f.g, DT_REDUCE_MIN + 1, param(&f, "w")), DT_EINVAL, "is not one of DT_REDUCE_*");
    REFUSED(dt_reduce(f.g, DT_REDUCE_SUM - 1, param(&f, "w")), DT_EINVAL, "is not one of DT_REDUCE_*");
    REFUSED(dt_pick(f.g, H(), input(&f, "action"), 2), DT_EINVAL, "column 2 of the 2 of idx does not exist");
    REFUSED(dt_pick(f.g, H(), input(&f, "action"), -1), DT_EINVAL, "column -1 of the 2 of idx");
    REFUSED(dt_select(f.g, H(), NULL, NULL), DT_EINVAL, "inputs a and b are both missing");
    REFUSED(dt_select(f.g, input(&f, "nodes"), H(), NULL), DT_ESHAPE, "c is N 9 f32, a is N 8 f32; c must have");
    REFUSED(dt_select(f.g, input(&f, "action"), H(), H()), DT_ESHAPE, "c is N 2 i32, expected [*] f32");
    REFUSED(dt_cast(f.g, H()), DT_ESHAPE, "x is N 8 f32, expected [...] i32");
    REFUSED(dt_one_hot(f.g, input(&f, "action"), 2, 4), DT_EINVAL, "column 2 of the 2 of idx does not exist");
    REFUSED(dt_one_hot(f.g, input(&f, "action"), 0, 0), DT_EINVAL, "0 columns; expected 1 to 2147483647");
    REFUSED(dt_top_k(f.g, H(), 9, NULL), DT_EINVAL, "the 9 greatest of 8; expected 1 to 8");
    REFUSED(dt_argmax(f.g, input(&f, "present")), DT_ESHAPE, "but M is ragged");
    REFUSED(dt_permute_dims(f.g, H(), 11), DT_EINVAL, "order 11 must name each of the last 2 to 4 dimensions once");
    REFUSED(dt_permute_dims(f.g, H(), -21), DT_EINVAL, "order -21 must name");
    REFUSED(dt_permute_dims(f.g, H(), 13245), DT_EINVAL, "order 13245 must name");
    REFUSED(dt_permute_dims(f.g, H(), 21), DT_ESHAPE, "a ragged dimension cannot change its place");
    REFUSED(dt_permute_dims(f.g, H(), 123), DT_ESHAPE, "the order names more dimensions");
    REFUSED(dt_constant_row(f.g, (double[]){0, NAN}, 2), DT_EINVAL, "number 1 is nan, not finite");
    REFUSED(dt_constant_row(f.g, NULL, 0), DT_EINVAL, "0; expected 1 to 2048");
    REFUSED(dt_constant_row(f.g, NULL, INT64_MAX), DT_EINVAL, "9223372036854775807; expected 1 to 2048");
    REFUSED(dt_constant_row(f.g, NULL, 3), DT_EINVAL, "the list is NULL");
    REFUSED(BATCH_NORM(H(), "mean", "var", NULL, -0.1, 1e-5), DT_EINVAL, "batch_norm: momentum -0.1");
    REFUSED(BATCH_NORM(H(), "mean", "var", NULL, 1.1, 1e-5), DT_EINVAL, "momentum 1.1, the weight of new statistics");
    REFUSED(BATCH_NORM(H(), "mean", "var", NULL, NAN, 1e-5), DT_EINVAL, "momentum nan");
    REFUSED(BATCH_NORM(H(), "mean", "var", NULL, 0.1, 0), DT_EINVAL, "batch_norm: epsilon 0 must be positive");
    REFUSED(BATCH_NORM(H(), "mean", "var", NULL, 0.1, NAN), DT_EINVAL, "epsilon nan");
    REFUSED(BATCH_NORM(param(&f, "b"), "mean", "var", NULL, 0.1, 1e-5), DT_ESHAPE, "x has one row");
    REFUSED(BATCH_NORM(dt_split(f.g, param(&f, "b"), 1), "mean", "var", NULL, 0.1, 1e-5), DT_ESHAPE, "x has one row");
    REFUSED(BATCH_NORM(H(), "mean", "b", NULL, 0.1, 1e-5), DT_EINVAL, "DT_INIT_STATISTIC");
    REFUSED(BATCH_NORM(H(), "b", "var", NULL, 0.1, 1e-5), DT_EINVAL, "DT_INIT_STATISTIC");
    REFUSED(BATCH_NORM(H(), "var", "var", NULL, 0.1, 1e-5), DT_EINVAL, "must be two parameters");
    REFUSED(BATCH_NORM(H(), "mean", "var", H(), 0.1, 1e-5), DT_ESHAPE, "mask is N 8 f32");
    REFUSED(BATCH_NORM(input(&f, "nodes"), "mean", "var", NULL, 0.1, 1e-5), DT_ESHAPE, "gamma is 8 f32");
    REFUSED(dt_batch_norm(f.g, H(), param(&f, "b"), param(&f, "b"), NULL, NULL, NULL, 0.1, 1e-5), DT_EINVAL, "mean");
    REFUSED(dt_group_norm(f.g, H(), 0, param(&f, "b"), param(&f, "b")), DT_EINVAL,
            "its groups are 0; expected 1 to 8, a divisor of the 8 columns of x");
    REFUSED(dt_group_norm(f.g, H(), 3, param(&f, "b"), param(&f, "b")), DT_EINVAL, "its groups are 3");
    REFUSED(dt_group_norm(f.g, H(), -2, param(&f, "b"), param(&f, "b")), DT_EINVAL, "its groups are -2");
    REFUSED(dt_group_norm(f.g, H(), 2, param(&f, "b"), NULL), DT_EINVAL, "beta is NULL");
    REFUSED(dt_group_norm(f.g, H(), 2, param(&f, "b"), param(&f, "w")), DT_EINVAL, "is not [D]");
    REFUSED(dt_group_norm_maps(f.g, H(), 2, param(&f, "b"), param(&f, "b")), DT_EINVAL, "are 2; expected at least 3");
    REFUSED(dt_noise_of(f.g, input(&f, "key"), 2, 2, 0), DT_EINVAL, "kind 2 must be one of DT_NOISE_*");
    REFUSED(dt_unfold(f.g, param(&f, "five"), 0, 1, 0, 0), DT_EINVAL, "a kernel of 0, a stride of 1");
    REFUSED(dt_unfold(f.g, param(&f, "five"), 2, 0, 0, 0), DT_EINVAL, "a kernel of 2, a stride of 0");
    REFUSED(dt_unfold(f.g, param(&f, "five"), 6, 1, 0, 0), DT_EINVAL, "padding 0 on both sides of 5");
    REFUSED(dt_unfold(f.g, param(&f, "five"), 2, 1, -1, 0), DT_EINVAL, "padding -1 on both sides of 5");
    REFUSED(dt_unfold(f.g, param(&f, "five"), 2, 1, 6, 0), DT_EINVAL, "it must be 0 to 5");
#define MAP()                        dt_split(f.g, dt_split(f.g, H(), 2), 2) /* [N,2,2,2] */
#define KERNEL()                     dt_split(f.g, dt_split(f.g, param(&f, "w8"), 2), 2)
#define CONV(w, stride, h, dilation) dt_conv2d(f.g, MAP(), w, NULL, stride, h, 0, dilation)
    REFUSED(CONV(KERNEL(), 0, 0, 1), DT_EINVAL, "a stride of 0, a dilation of 1: both must be 1 to 2147483647");
    REFUSED(CONV(KERNEL(), 1, 0, 0), DT_EINVAL, "a stride of 1, a dilation of 0");
    REFUSED(CONV(KERNEL(), 1, 0, INT64_MAX), DT_EINVAL, "a dilation of 9223372036854775807");
    REFUSED(CONV(KERNEL(), 1, -1, 1), DT_EINVAL, "conv2d: padding -1 on both sides of 2 rows: it must be at least 0");
    REFUSED(CONV(KERNEL(), 1, INT64_MAX, 1), DT_EINVAL, "padding 9223372036854775807 on both sides of 2 rows");
    REFUSED(CONV(KERNEL(), 1, 0, 2), DT_EINVAL, "make room for a kernel of 2 with dilation 2");
    REFUSED(CONV(KERNEL(), 1, 1, 2), DT_EINVAL, "padding 0 on both sides of 2 columns");
    REFUSED(CONV(dt_split(f.g, dt_split(f.g, param(&f, "w8"), 2), 1), 1, 0, 1), DT_ESHAPE,
            "w is 8 2 1 4 f32, but the last dimension of w must divide the channels of x");
    REFUSED(CONV(param(&f, "w8"), 1, 0, 1), DT_ESHAPE, "w is 8 8 f32, expected [M,I,J,G] f32");
    REFUSED(dt_conv2d(f.g, dt_gather(f.g, H(), input(&f, "seq_row")), KERNEL(), NULL, 1, 0, 0, 1), DT_ESHAPE,
            "must be numbers, at least 1");
    const dt_attr odd = {.i = {2, 1, 0, 2}};
    REFUSED(f.g->api->op(f.g, DT_OP_UNFOLD, (dt_tensor *[]){param(&f, "five")}, 1, &odd), DT_EINVAL,
            "i3 is 2; 1 is circular, 0 is not");
    REFUSED(dt_categorical(f.g, H(), input(&f, "action"), 2, NULL, NULL), DT_EINVAL,
            "categorical: action has no column 2, it has 2");
    REFUSED(dt_categorical(f.g, H(), input(&f, "action"), -1, NULL, NULL), DT_EINVAL, "no column -1");
    REFUSED(dt_categorical(f.g, H(), input(&f, "nodes"), 0, NULL, NULL), DT_ESHAPE,
            "action is N 9 f32, expected [...,K] i32");
    REFUSED(dt_categorical(f.g, H(), input(&f, "action"), 0, input(&f, "nodes"), NULL), DT_ESHAPE, "mask is N 9 f32");
    REFUSED(dt_categorical(f.g, input(&f, "present"), input(&f, "seq_row"), 0, NULL, NULL), DT_ESHAPE,
            "logits is 5 S f32 but choices cannot be ragged");
    REFUSED(dt_categorical(f.g, param(&f, "five"), input(&f, "seq_row"), 0, NULL, NULL), DT_ESHAPE,
            "action is 5 S i32 but its columns cannot be ragged");
    REFUSED(dt_gaussian(f.g, H(), param(&f, "w2"), H(), NULL), DT_ESHAPE, "log_std is 6 4 f32");
    REFUSED(dt_gaussian(f.g, H(), param(&f, "w8"), H(), NULL), DT_ESHAPE,
            "gaussian: log_std is 8 8 f32 but must have the shape of mean or be one row [P]");
    REFUSED(dt_gaussian(f.g, input(&f, "label"), input(&f, "label"), input(&f, "label"), NULL), DT_ESHAPE,
            "mean is N f32 but its last dimension cannot be ragged");
    REFUSED(dt_ppo_clip(f.g, H(), H(), H(), 1, 0.2, NULL, NULL), DT_EINVAL, "ppo_clip: clip below 1 is outside [0,1)");
    REFUSED(dt_ppo_clip(f.g, H(), H(), H(), 0.2, -1, NULL, NULL), DT_EINVAL,
            "clip above -1 must be finite and not negative");
    REFUSED(dt_value_loss(f.g, H(), H(), NULL, 3, 1), DT_EINVAL, "value_loss: 3 is not one of DT_VALUE_* (0 to 2)");
    REFUSED(dt_value_loss(f.g, H(), H(), NULL, DT_VALUE_CLIP_STEP, 1), DT_EINVAL, "old is missing; CLIP_STEP needs it");
    REFUSED(dt_value_loss(f.g, H(), H(), H(), DT_VALUE_PLAIN, 1), DT_EINVAL, "old is given; CLIP_STEP needs it");
    REFUSED(dt_value_loss(f.g, H(), H(), NULL, DT_VALUE_CLIP_ERROR, 0), DT_EINVAL, "clip 0 must be positive");
    REFUSED(f.g->api->result(f.g, dt_categorical(f.g, H(), input(&f, "action"), 0, NULL, NULL), 2), DT_EINVAL,
            "result 2 of categorical: it has 2, counted from 0");
    REFUSED(f.g->api->result(f.g, dt_layernorm(f.g, H(), param(&f, "b"), param(&f, "b"), NULL), 1), DT_EINVAL,
            "result 1 of layernorm: it has 1");
    REFUSED(f.g->api->result(f.g, input(&f, "nodes"), 0), DT_EINVAL,
            "result 0: the tensor given was not returned by an op");
    REFUSED(f.g->api->result(f.g, NULL, 0), DT_EINVAL, "result of op: the tensor is NULL");
    REFUSED(dt_gather(f.g, H(), input(&f, "key")), DT_ESHAPE, "idx is N i64, expected [...] i32");
    REFUSED(dt_segment_mean(f.g, H(), input(&f, "col")), DT_ESHAPE, "ptr is E i32, expected [B+1] i32");
    REFUSED(dt_op_(f.g, DT_OP_SUM, (dt_tensor *[]){H(), H()}, 2, 0, 0, 0, 0), DT_EINVAL,
            "2 inputs given, it takes at most 1");
    REFUSED(dt_op_(f.g, DT_OPX_COLSUM, (dt_tensor *[]){H()}, 1, 0, 0, 0, 0), DT_EINVAL, "op 1003 is unknown");
    REFUSED(dt_op_(f.g, DT_OP_LINEAR, (dt_tensor *[]){H(), param(&f, "w8")}, 2, 1, 0, 0, 0), DT_EINVAL,
            "linear: i0 is 1, but linear takes no function");
    teardown(&f);
}

static void test_name_refusals(void **state)
{
    fixture f, other;
    setup(&f);
    setup(&other);
    REFUSED(param(&f, "nope"), DT_ENOTFOUND, "parameter m.nope was not registered");
    REFUSED(input(&f, "nope"), DT_ENOTFOUND, "no field \"nope\"");
    REFUSED(input(&f, "odd"), DT_EINVAL, "field odd: dims \"Q 3\": dimension \"Q\"");
    REFUSED(f.g->api->step_input(f.g, "beta", 0), DT_EINVAL, "step input beta has size 0");
    REFUSED(f.g->api->step_input(f.g, "beta", INT64_MAX), DT_EINVAL, "expected 1 to 16777216");
    REFUSED(f.g->api->step_input(f.g, NULL, 1), DT_EINVAL, "a step input: its name is NULL");
    REFUSED(f.g->api->step_input(f.g, "a b", 1), DT_EINVAL, "\"a b\" cannot have the character ' '");
    REFUSED(f.g->api->param(f.g, NULL), DT_EINVAL, "param is called with the name NULL");
    REFUSED(f.g->api->input(f.g, NULL), DT_EINVAL, "input is called with the name NULL");
    REFUSED(f.g->api->user_op(f.g, NULL, NULL, 0, NULL), DT_EINVAL, "user_op is called with the name NULL");
    REFUSED(f.g->api->op(f.g, DT_OP_CONCAT, NULL, 2, NULL), DT_EINVAL, "concat: 2 inputs, but their list is NULL");
    REFUSED(f.g->api->kept(f.g, "Big H", NULL), DT_EINVAL, "a kept value: its name \"Big H\"");
    REFUSED(f.g->api->kept(f.g, NULL, NULL), DT_EINVAL, "a kept value: its name is NULL");
    assert_non_null(f.g->api->step_input(f.g, "beta", 2));
    REFUSED(f.g->api->step_input(f.g, "beta", 3), DT_EINVAL, "step input beta has size 3 here and 2 before");
    REFUSED(dt_relu(f.g, input(&other, "nodes")), DT_EINVAL, "unary: input number 0 belongs to another graph");

    assert_int_equal(f.g->api->output(f.g, "h", input(&f, "nodes")), DT_OK);
    assert_int_equal(f.g->api->output(f.g, "h", input(&f, "nodes")), DT_EINVAL);
    assert_refused(&f, DT_EINVAL, "output h is named twice");
    assert_int_equal(f.g->api->output(f.g, "h", NULL), DT_EINVAL);
    assert_refused(&f, DT_EINVAL, "output h: the tensor is NULL");
    assert_int_equal(f.g->api->output(f.g, NULL, input(&f, "nodes")), DT_EINVAL);
    assert_refused(&f, DT_EINVAL, "an output of a graph: its name is NULL");
    assert_int_equal(f.g->api->loss(f.g, "", dt_sum(f.g, input(&f, "nodes")), 1, "N"), DT_EINVAL);
    assert_refused(&f, DT_EINVAL, "a loss: its name is empty");
    assert_int_equal(f.g->api->loss(f.g, "c", dt_sum(f.g, input(&f, "nodes")), 1, NULL), DT_EINVAL);
    assert_refused(&f, DT_EINVAL, "loss c: its symbol is NULL");
    assert_int_equal((f.g->api->fail)(f.g, DT_ESHAPE, "too wide"), DT_ESHAPE);
    assert_refused(&f, DT_ESHAPE, "too wide");
    assert_int_equal((f.g->api->fail)(f.g, DT_OK, NULL), DT_EINVAL);
    assert_refused(&f, DT_EINVAL, "without a reason");

    dt_tensor *s = dt_sum(f.g, input(&f, "nodes"));
    assert_int_equal(f.g->api->loss(f.g, "a", s, 1, "N"), DT_OK);
    assert_int_equal(f.g->api->loss(f.g, "b", s, 1, "N"), DT_EINVAL);
    assert_refused(&f, DT_EINVAL, "already the loss a");
    assert_int_equal(f.g->api->loss(f.g, "a", dt_sum(f.g, input(&f, "nodes")), 1, "N"), DT_OK);
    assert_int_equal(f.g->api->loss(f.g, "a", dt_sum(f.g, input(&f, "nodes")), 1, "N"), DT_EINVAL);
    assert_refused(&f, DT_EINVAL, "loss a is named twice");
    assert_int_equal(f.g->api->loss(f.g, "a", input(&f, "nodes"), 1, "N"), DT_ESHAPE);
    assert_refused(&f, DT_ESHAPE, "loss a: the value is N 9 f32, expected 1 f64");
    assert_int_equal(f.g->api->loss(f.g, "a", dt_sum(f.g, input(&f, "nodes")), 1, "Z"), DT_EINVAL);
    assert_refused(&f, DT_EINVAL, "symbol \"Z\" is not one of 1 N E S B");
    assert_int_equal(f.g->api->loss(f.g, "a", dt_sum(f.g, input(&f, "nodes")), NAN, "N"), DT_EINVAL);
    assert_refused(&f, DT_EINVAL, "weight nan is not finite");
    for (int i = 0; i <= DT_GRAPH_MAX_LOSSES; i++) {
        char name[8] = {(char)('a' + i)};
        (void)f.g->api->loss(f.g, name, dt_sum(f.g, input(&f, "nodes")), 1, "1");
    }
    assert_refused(&f, DT_EINVAL, "at most 16 losses");

    f.g->api->recompute_begin(f.g);
    f.g->api->recompute_begin(f.g);
    assert_refused(&f, DT_EINVAL, "recompute_begin inside");
    f.g->api->recompute_end(f.g);
    assert_refused(&f, DT_EINVAL, "recompute_end without");
    dt_named none;
    assert_int_equal(f.g->api->model(f.g, NULL, NULL, 0, &none, 0), DT_EUNSUPPORTED);
    assert_refused(&f, DT_EUNSUPPORTED, "without models");
    const dt_graph_desc many = {.n_symbols = 17};
    dt_graph *g = NULL;
    assert_int_equal(dt_graph_create(&many, &g), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "at most 16"));
    assert_null(g);
    teardown(&f);
    teardown(&other);
}

/* After the first error nothing else is said, and it is the first that is reported. */
static void test_sticky(void **state)
{
    fixture f;
    setup(&f);
    assert_null(input(&f, "nope"));
    assert_null(dt_relu(f.g, input(&f, "nodes")));
    assert_null(param(&f, "also nope"));
    assert_null(f.g->api->step_input(f.g, "beta", 1));
    assert_int_equal(f.g->api->output(f.g, "h", NULL), DT_ENOTFOUND);
    assert_int_equal(f.g->api->loss(f.g, "h", NULL, 1, "N"), DT_ENOTFOUND);
    assert_int_equal(f.g->api->dim(NULL, 0), -1);
    assert_int_equal(f.g->api->rank(NULL), 0);
    assert_refused(&f, DT_ENOTFOUND, "no field \"nope\"");
    teardown(&f);
}

static void test_print(void **state)
{
    fixture f;
    setup(&f);
    dt_tensor *h = dt_relu(f.g, dt_linear(f.g, input(&f, "nodes"), param(&f, "w"), param(&f, "b")));
    f.g->api->recompute_begin(f.g);
    h = dt_dropout(f.g, h, input(&f, "key"), 0.25);
    f.g->api->recompute_end(f.g);
    assert_int_equal(f.g->api->output(f.g, "h", h), DT_OK);
    assert_int_equal(f.g->api->loss(f.g, "total", dt_sum(f.g, h), 0.5, "N"), DT_OK);
    dt_str s = {0};
    dt_ir_print(dt_graph_ir(f.g), &s);
    assert_string_equal(dt_str_text(&s), "%3 N 8 f32 = linear x=nodes w=m.w b=m.b\n"
                                         "%4 N 8 f32 = unary x=%3 i0=1\n"
                                         "%6 N 8 f32 = dropout x=%4 key=key i0=65536 f0=0.25 region=1\n"
                                         "%7 1 f64 = sum x=%6\n"
                                         "loss total = 0.5 * %7 / N\n"
                                         "output h = %6\n");
    dt_str_fini(&s);
    const dt_graph_loss *loss = NULL;
    assert_int_equal(dt_graph_losses(f.g, &loss), 1);
    assert_string_equal(loss[0].name, "total");
    assert_string_equal(loss[0].symbol, "N");
    assert_true(loss[0].weight == 0.5);
    teardown(&f);
}

static void test_purpose(void **state)
{
    static const uint32_t purpose[] = {0, DT_FOR_TRAINING, DT_FOR_ACTING, DT_FOR_EVALUATION};
    for (size_t i = 0; i < 4; i++) {
        const dt_graph_desc d = {.purpose = purpose[i]};
        dt_graph *g = NULL;
        assert_int_equal(dt_graph_create(&d, &g), DT_OK);
        assert_int_equal(dt_purpose(g), i == 0 ? DT_FOR_TRAINING : purpose[i]);
        dt_graph_destroy(g);
    }
}

/* A kept value is the data's field where nothing that changes is behind it, itself elsewhere. */
static void test_kept(void **state)
{
    static const char *const keep[] = {"said", "known", NULL};
    fixture f;
    uint32_t n = 0;
    setup(&f);
    const dt_graph_api *api = f.g->api;
    dt_tensor *h = dt_relu(f.g, dt_linear(f.g, input(&f, "nodes"), param(&f, "w"), NULL));
    assert_ptr_equal(api->kept(f.g, "known", h), h); /* trained */
    assert_false(dt_graph_reads(f.g, "known"));
    assert_int_equal(dt_param_table_freeze(&f.params, "m", &n), DT_OK);
    dt_graph_destroy(f.g);
    open_graph(&f);
    h = dt_relu(f.g, dt_linear(f.g, input(&f, "nodes"), param(&f, "w"), NULL));
    assert_ptr_equal(api->kept(f.g, "said", h), h); /* no such field */
    dt_tensor *drawn = dt_relu(f.g, dt_dropout(f.g, h, input(&f, "key"), 0.5));
    assert_ptr_equal(api->kept(f.g, "known", drawn), drawn);
    drawn = dt_add(f.g, h, dt_noise(f.g, input(&f, "key"), 8));
    assert_ptr_equal(api->kept(f.g, "known", drawn), drawn);
    dt_tensor *set = dt_relu(f.g, dt_add(f.g, h, api->step_input(f.g, "bias", 8)));
    assert_ptr_equal(api->kept(f.g, "known", set), set);
    dt_tensor *known = api->kept(f.g, "known", h);
    assert_ptr_equal(known, input(&f, "known"));
    assert_true(dt_graph_reads(f.g, "known") && !dt_graph_reads(f.g, "said"));
    assert_int_equal(dt_graph_ir(f.g)->n_outputs, 0);
    REFUSED(api->kept(f.g, "known", dt_slice(f.g, input(&f, "nodes"), 0, 3)), DT_ESHAPE,
            "kept known: the field is N 8 f32 and the value N 3 f32");
    REFUSED(api->kept(f.g, "known", NULL), DT_EINVAL, "kept known: the tensor is NULL");

    dt_graph_destroy(f.g); /* where a policy acts */
    const dt_graph_desc d = {
        .symbol = SYMBOL, .n_symbols = 4, .field = FIELD, .n_fields = 1, .params = &f.params, .keep = keep};
    assert_int_equal(dt_graph_create(&d, &f.g), DT_OK);
    h = dt_relu(f.g, input(&f, "nodes"));
    assert_ptr_equal(api->kept(f.g, "said", h), h);
    assert_ptr_equal(api->kept(f.g, "unsaid", h), h);
    assert_int_equal(dt_graph_ir(f.g)->n_outputs, 1);
    assert_string_equal(dt_graph_ir(f.g)->output[0].name, "said");
    teardown(&f);
}

/* Every op of ops.def has a shape rule, a storage and, if it is public and not constant, a derivative. */
static void test_table(void **state)
{
    static const uint32_t op[] = {
#define DT_OP(ID, number, name) number,
#include "engine/backend/ops.def"
    };
    uint32_t n_missing = 0;
    for (size_t i = 0; i < sizeof(op) / sizeof(op[0]); i++) {
        const dt_op_info *info = dt_op_find(op[i]);
        static const uint32_t constant[] = {DT_OP_STOP, DT_OP_FILL,    DT_OP_NOISE,
                                            DT_OP_CAST, DT_OP_ONE_HOT, DT_OP_CONSTANT};
        bool is_constant = false;
        for (size_t k = 0; k < sizeof(constant) / sizeof(constant[0]); k++) {
            is_constant = is_constant || op[i] == constant[k];
        }
        const bool has_vjp = op[i] < DT_OP_PUBLIC_END && !is_constant;
        const char *missing = info->shape == NULL || strstr(info->shape, "->") == NULL ? ".shape"
                              : info->storage.kind == DT_STORAGE_MISSING               ? ".storage"
                              : has_vjp != (info->vjp != NULL)                         ? ".vjp"
                              : has_vjp != (info->grad_in != 0)                        ? ".grad_in"
                                                                                       : NULL;
        if (missing != NULL) {
            print_error("core/engine/graph/op_*.c: dt_op_%s: %s\n", dt_op_name(op[i]), missing);
            n_missing++;
        }
    }
    assert_int_equal(n_missing, 0);
    assert_null(dt_op_find(0));
    assert_string_equal(dt_op_name(999), "?");
}

static void test_out_of_memory(void **state)
{
    uint64_t n = 0, fired = 1;
    for (; fired != 0; n++) {
        fixture f;
        setup(&f);
        dt_graph_destroy(f.g);
        f.g = NULL;
        char spec[32];
        snprintf(spec, sizeof(spec), "alloc:%d", (int)n + 1);
        dt_fault_reset(spec);
        const dt_graph_desc d = {
            .symbol = SYMBOL, .n_symbols = 4, .field = FIELD, .n_fields = N_FIELDS, .params = &f.params};
        dt_status st = dt_graph_create(&d, &f.g);
        if (st == DT_OK) {
            dt_graph_set_scope(f.g, "m");
            dt_tensor *h = dt_relu(f.g, dt_linear(f.g, input(&f, "nodes"), param(&f, "w"), param(&f, "b")));
            (void)f.g->api->output(f.g, "h", h);
            (void)f.g->api->loss(f.g, "total", dt_sum(f.g, h), 0.5, "N");
            st = f.g->api->status(f.g);
        }
        fired = dt_fault_count();
        dt_fault_reset(NULL);
        assert_int_equal(st, fired != 0 ? DT_ENOMEM : DT_OK);
        teardown(&f);
    }
    assert_true(n > 10);
    assert_int_equal(dt_alloc_live_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes), cmocka_unit_test(test_shape_refusals), cmocka_unit_test(test_name_refusals),
        cmocka_unit_test(test_sticky), cmocka_unit_test(test_print),          cmocka_unit_test(test_purpose),
        cmocka_unit_test(test_kept),   cmocka_unit_test(test_table),          cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
