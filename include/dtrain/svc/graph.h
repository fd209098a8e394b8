/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.graph/1": recording a static graph through the C API.
 *
 * A graph is recorded once per shape class and executed thousands of times by the host, which differentiates it, plans
 * its memory and runs it slice by slice. dt_tensor is a handle to a value, never data. Errors are sticky: after the
 * first one every call returns NULL and status() returns it, so a model may record straight through and return status.
 * No callback runs during a step. Ops and their contracts: dtrain/ops.def. Threads: [main].
 */
#ifndef DTRAIN_SVC_GRAPH_H
#define DTRAIN_SVC_GRAPH_H

#include "dtrain/plugin.h"
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SVC_GRAPH "dtrain.graph/1"

enum {
#define DT_OP(ID, number, name) DT_OP_##ID = number,
#include "dtrain/ops.def"
    DT_OP_PUBLIC_END
};

enum {
    DT_FN_RELU = 1,
    DT_FN_LEAKY,
    DT_FN_ELU,
    DT_FN_GELU,
    DT_FN_TANH,
    DT_FN_SIGMOID,
    DT_FN_SOFTPLUS,
    DT_FN_EXP,
    DT_FN_LOG,
    DT_FN_SQRT, /* its derivative at 0 is infinite */
    DT_FN_ABS,  /* its derivative at 0 is 0 */
    DT_FN_SIN,
    DT_FN_COS
};
enum {
    DT_BIN_ADD = 1,
    DT_BIN_SUB,
    DT_BIN_MUL,
    DT_BIN_MIN,
    DT_BIN_MAX,
    DT_BIN_DIV,
    DT_BIN_LESS,
    DT_BIN_LESS_EQUAL,
    DT_BIN_GREATER,
    DT_BIN_GREATER_EQUAL,
    DT_BIN_EQUAL
};
enum { DT_REDUCE_SUM = 1, DT_REDUCE_MEAN, DT_REDUCE_MAX, DT_REDUCE_MIN };
enum { DT_NOISE_NORMAL = 0, DT_NOISE_UNIFORM };
enum { DT_VALUE_PLAIN = 0, DT_VALUE_CLIP_STEP, DT_VALUE_CLIP_ERROR };
/* What a graph is recorded for. A phase records its losses whatever it is for, and the same parameters; but
 * noise, dropout and what only a loss reads may be left out where it is not for training. */
enum {
    DT_FOR_TRAINING = 1, /* losses are derived and used for learning */
    DT_FOR_ACTING, /* outputs alone are computed: to choose an action, or in a program that a policy is exported to */
    DT_FOR_EVALUATION /* losses and outputs, of data as it is: no learning, or only a gradient is returned */
};

typedef struct dt_attr {
    int64_t i[4];
    double f[4];
} dt_attr;

typedef struct dt_named { /* a tensor under a port name, for wiring models */
    const char *name;
    dt_tensor *tensor;
} dt_named;

typedef struct dt_model dt_model; /* a bound model, from svc/bind.h */

typedef struct dt_graph_api {
    uint32_t struct_size, reserved;
    /* Record one op; returns its first output, NULL after an error. Optional inputs may be NULL. attr may be NULL. */
    dt_tensor *(*op)(dt_graph *g, uint32_t op, dt_tensor *const *in, uint32_t n_in, const dt_attr *attr);
    /* A parameter of the model being recorded, by the name it was registered with. */
    dt_tensor *(*param)(dt_graph *g, const char *name);
    /* A field of the data being read (its port gives shape and dtype). */
    dt_tensor *(*input)(dt_graph *g, const char *name);
    /* A small vector that the phase sets (svc/train.h): by set in start, and later whenever it changes; by set_acting
     * where it has another value for evaluations and exports. [n] f32. */
    dt_tensor *(*step_input)(dt_graph *g, const char *name, int64_t n);
    /* Record a bound model: inputs by port name, outputs by port name (n_out entries, tensor filled in). */
    dt_status (*model)(dt_graph *g, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out, uint32_t n_out);
    /* Make a value readable under a name while evaluating. */
    dt_status (*output)(dt_graph *g, const char *name, dt_tensor *t);
    /* A term of the training loss: weight * value / (live size of symbol in the whole global batch). value: [1] f64 sum
     * over rows; symbol "B", "N", "S", ... or "1" for no division. Reported as losses/<name>, unweighted. */
    dt_status (*loss)(dt_graph *g, const char *name, dt_tensor *value, double weight, const char *symbol);
    /* Everything recorded between begin and end may be recomputed in the backward pass instead of kept. */
    void (*recompute_begin)(dt_graph *g);
    void (*recompute_end)(dt_graph *g);
    /* Size of dimension i as recorded: a number, or -1 when it is ragged or i is out of range. */
    int64_t (*dim)(const dt_tensor *t, uint32_t i);
    uint32_t (*rank)(const dt_tensor *t);
    dt_status (*status)(const dt_graph *g);
    /* Output k of the op that handed back `first`, which is its output 0; for ops with several (dtrain/ops.def). */
    dt_tensor *(*result)(dt_graph *g, dt_tensor *first, uint32_t k);
    /* x under a name by which a rollout may keep it (svc/rollout.h). Hands back x; or, in a graph of losses
     * whose data has it as a field and where no trained parameter, step input, dropout or noise contributes to x, that
     * field: it has the same values and costs nothing. */
    dt_tensor *(*kept)(dt_graph *g, const char *name, dt_tensor *x);
    /* as model, with the parameters of one of its target networks (svc/train.h): gradients flow through it, into
     * its inputs, and none into it. NULL: as model. Errors: DT_ENOTFOUND names the target networks there are. */
    dt_status (*model_as)(dt_graph *g, dt_model *m, const char *target, const dt_named *in, uint32_t n_in,
                          dt_named *out, uint32_t n_out);
    /* what this graph is recorded for, DT_FOR_* */
    uint32_t (*purpose)(const dt_graph *g);
    /* Record an op that a loaded plugin brings along (ext/ops.h), as op. Errors: DT_ENOTFOUND names those there are. */
    dt_tensor *(*user_op)(dt_graph *g, const char *name, dt_tensor *const *in, uint32_t n_in, const dt_attr *attr);
    /* An error of what records: st (negative) and its reason stick as those of ops do. Returns the first one. */
    dt_status (*fail)(dt_graph *g, dt_status st, const char *msg);
} dt_graph_api;

struct dt_graph { /* the host's graph begins with this */
    const dt_graph_api *api;
};

/* ---- one inline function per op ---------------------------------------------------------------------------------- */

static inline dt_tensor *dt_op_(dt_graph *g, uint32_t op, dt_tensor *const *in, uint32_t n, int64_t i0, int64_t i1,
                                double f0, double f1)
{
    dt_attr a = {{i0, i1, 0, 0}, {f0, f1, 0, 0}};
    return g->api->op(g, op, in, n, &a);
}

static inline dt_tensor *dt_linear(dt_graph *g, dt_tensor *x, dt_tensor *w, dt_tensor *b)
{
    dt_tensor *in[3] = {x, w, b};
    return dt_op_(g, DT_OP_LINEAR, in, 3, 0, 0, 0, 0);
}
/* NULL, after an error with the number that is wrong: of helpers below that record several ops. */
static inline dt_tensor *dt_graph_fail_(dt_graph *g, const char *what, int64_t value, const char *expected)
{
    char text[256];
    snprintf(text, sizeof(text), "%s %lld; expected %s", what, (long long)value, expected);
    (void)(g->api->fail)(g, DT_EINVAL, text); /* a macro of some test frameworks */
    return NULL;
}
/* A linear layer by name: its parameters <layer>.w [n_out, n_in], drawn as PyTorch's, and <layer>.b [n_out], drawn as
 * init and a, for example; and what it makes of x. */
static inline dt_status dt_linear_params(dt_params *reg, const char *layer, int64_t n_out, int64_t n_in, uint32_t init,
                                         double a)
{
    char name[160]; /* longer than any that add accepts */
    const int64_t w[2] = {n_out, n_in};
    snprintf(name, sizeof(name), "%s.w", layer != NULL ? layer : "");
    const dt_status st = reg->add(reg, name, w, 2, DT_INIT_FAN_IN, 1.0);
    if (st < 0) {
        return st;
    }
    snprintf(name, sizeof(name), "%s.b", layer != NULL ? layer : "");
    return reg->add(reg, name, &n_out, 1, init, a);
}
static inline dt_tensor *dt_linear_of(dt_graph *g, dt_tensor *x, const char *layer)
{
    char w[160], b[160];
    snprintf(w, sizeof(w), "%s.w", layer != NULL ? layer : "");
    snprintf(b, sizeof(b), "%s.b", layer != NULL ? layer : "");
    return dt_linear(g, x, g->api->param(g, w), g->api->param(g, b));
}
static inline dt_tensor *dt_unary(dt_graph *g, uint32_t fn, dt_tensor *x, double f0)
{
    return dt_op_(g, DT_OP_UNARY, &x, 1, fn, 0, f0, 0);
}
static inline dt_tensor *dt_relu(dt_graph *g, dt_tensor *x)
{
    return dt_unary(g, DT_FN_RELU, x, 0);
}
static inline dt_tensor *dt_elu(dt_graph *g, dt_tensor *x)
{
    return dt_unary(g, DT_FN_ELU, x, 1.0);
}
static inline dt_tensor *dt_gelu(dt_graph *g, dt_tensor *x) /* the exact one, with erf */
{
    return dt_unary(g, DT_FN_GELU, x, 0);
}
static inline dt_tensor *dt_tanh(dt_graph *g, dt_tensor *x)
{
    return dt_unary(g, DT_FN_TANH, x, 0);
}
static inline dt_tensor *dt_sigmoid(dt_graph *g, dt_tensor *x)
{
    return dt_unary(g, DT_FN_SIGMOID, x, 0);
}
static inline dt_tensor *dt_binary(dt_graph *g, uint32_t fn, dt_tensor *a, dt_tensor *b)
{
    dt_tensor *in[2] = {a, b};
    return dt_op_(g, DT_OP_BINARY, in, 2, fn, 0, 0, 0);
}
static inline dt_tensor *dt_add(dt_graph *g, dt_tensor *a, dt_tensor *b)
{
    return dt_binary(g, DT_BIN_ADD, a, b);
}
static inline dt_tensor *dt_sub(dt_graph *g, dt_tensor *a, dt_tensor *b)
{
    return dt_binary(g, DT_BIN_SUB, a, b);
}
static inline dt_tensor *dt_mul(dt_graph *g, dt_tensor *a, dt_tensor *b)
{
    return dt_binary(g, DT_BIN_MUL, a, b);
}
static inline dt_tensor *dt_affine(dt_graph *g, dt_tensor *x, double scale, double shift)
{
    return dt_op_(g, DT_OP_AFFINE, &x, 1, 0, 0, scale, shift);
}
static inline dt_tensor *dt_clamp(dt_graph *g, dt_tensor *x, double lo, double hi)
{
    return dt_op_(g, DT_OP_CLAMP, &x, 1, 0, 0, lo, hi);
}
static inline dt_tensor *dt_split(dt_graph *g, dt_tensor *x, int64_t a)
{
    return dt_op_(g, DT_OP_SPLIT, &x, 1, a, 0, 0, 0);
}
static inline dt_tensor *dt_merge(dt_graph *g, dt_tensor *x)
{
    return dt_op_(g, DT_OP_MERGE, &x, 1, 0, 0, 0, 0);
}
static inline dt_tensor *dt_concat(dt_graph *g, dt_tensor *const *x, uint32_t n)
{
    return dt_op_(g, DT_OP_CONCAT, x, n, 0, 0, 0, 0);
}
static inline dt_tensor *dt_slice(dt_graph *g, dt_tensor *x, int64_t from, int64_t n)
{
    return dt_op_(g, DT_OP_SLICE, &x, 1, from, n, 0, 0);
}
static inline dt_tensor *dt_step(dt_graph *g, dt_tensor *x, int64_t t)
{
    return dt_op_(g, DT_OP_STEP, &x, 1, t, 0, 0, 0);
}
static inline dt_tensor *dt_gather(dt_graph *g, dt_tensor *x, dt_tensor *idx)
{
    dt_tensor *in[2] = {x, idx};
    return dt_op_(g, DT_OP_GATHER, in, 2, 0, 0, 0, 0);
}
static inline dt_tensor *dt_layernorm(dt_graph *g, dt_tensor *x, dt_tensor *gamma, dt_tensor *beta, dt_tensor *residual)
{
    dt_tensor *in[4] = {x, gamma, beta, residual};
    return dt_op_(g, DT_OP_LAYERNORM, in, 4, 0, 0, 1e-5, 0);
}
static inline dt_tensor *dt_gat(dt_graph *g, dt_tensor *h, dt_tensor *a_dst, dt_tensor *a_src, dt_tensor *e,
                                dt_tensor *w_e, dt_tensor *rowptr, dt_tensor *col, int64_t heads, double slope)
{
    dt_tensor *in[7] = {h, a_dst, a_src, e, w_e, rowptr, col};
    return dt_op_(g, DT_OP_GAT, in, 7, heads, 0, slope, 0);
}
/* Of q's rows to k's and v's, which may be others. Columns of both graphs have to be rows that are there: no op looks.
 * Those of environments are checked where they come in, once, by the rollout (plugin.h: DT_PORT_INDEX), those of a
 * store's vehicles when it is opened; a data component answers for columns that it makes itself. */
static inline dt_tensor *dt_graph_qk(dt_graph *g, dt_tensor *q, dt_tensor *k, dt_tensor *v, dt_tensor *bias,
                                     dt_tensor *rowptr, dt_tensor *col, int64_t heads)
{
    dt_tensor *in[6] = {q, k, v, bias, rowptr, col};
    return dt_op_(g, DT_OP_GRAPH_QK, in, 6, heads, 0, 0, 0);
}
static inline dt_tensor *dt_lstm(dt_graph *g, dt_tensor *xw, dt_tensor *wh, dt_tensor *present)
{
    dt_tensor *in[3] = {xw, wh, present};
    return dt_op_(g, DT_OP_LSTM, in, 3, 0, 0, 0, 0);
}
static inline dt_tensor *dt_gru(dt_graph *g, dt_tensor *xw, dt_tensor *wh, dt_tensor *bh, dt_tensor *present)
{
    dt_tensor *in[4] = {xw, wh, bh, present};
    return dt_op_(g, DT_OP_GRU, in, 4, 0, 0, 0, 0);
}
static inline dt_tensor *dt_cumsum(dt_graph *g, dt_tensor *x)
{
    return dt_op_(g, DT_OP_CUMSUM, &x, 1, 0, 0, 0, 0);
}
static inline dt_tensor *dt_dropout(dt_graph *g, dt_tensor *x, dt_tensor *key, double p)
{
    dt_tensor *in[2] = {x, key};
    return dt_op_(g, DT_OP_DROPOUT, in, 2, 0, 0, p, 0);
}
static inline dt_tensor *dt_sum(dt_graph *g, dt_tensor *x)
{
    return dt_op_(g, DT_OP_SUM, &x, 1, 0, 0, 0, 0);
}
static inline dt_tensor *dt_gaussian_nll(dt_graph *g, dt_tensor *mean, dt_tensor *log_sigma, dt_tensor *target,
                                         dt_tensor *weight)
{
    dt_tensor *in[4] = {mean, log_sigma, target, weight};
    return dt_op_(g, DT_OP_GAUSSIAN_NLL, in, 4, 0, 0, 0, 0);
}
static inline dt_tensor *dt_loss3_(dt_graph *g, uint32_t op, dt_tensor *a, dt_tensor *b, dt_tensor *w, double f0)
{
    dt_tensor *in[3] = {a, b, w};
    return dt_op_(g, op, in, 3, 0, 0, f0, 0);
}
static inline dt_tensor *dt_bce_logits(dt_graph *g, dt_tensor *logit, dt_tensor *target, dt_tensor *weight)
{
    return dt_loss3_(g, DT_OP_BCE_LOGITS, logit, target, weight, 0);
}
static inline dt_tensor *dt_mse(dt_graph *g, dt_tensor *pred, dt_tensor *target, dt_tensor *weight)
{
    return dt_loss3_(g, DT_OP_MSE, pred, target, weight, 0);
}
static inline dt_tensor *dt_huber(dt_graph *g, dt_tensor *pred, dt_tensor *target, dt_tensor *weight, double delta)
{
    return dt_loss3_(g, DT_OP_HUBER, pred, target, weight, delta);
}
static inline dt_tensor *dt_softmax(dt_graph *g, dt_tensor *x)
{
    return dt_op_(g, DT_OP_SOFTMAX, &x, 1, 0, 0, 0, 0);
}
static inline dt_tensor *dt_segment_mean(dt_graph *g, dt_tensor *x, dt_tensor *ptr)
{
    dt_tensor *in[2] = {x, ptr};
    return dt_op_(g, DT_OP_SEGMENT_MEAN, in, 2, 0, 0, 0, 0);
}
/* Result k of the op that gave first, where needed. */
static inline void dt_result_(dt_graph *g, dt_tensor *first, uint32_t k, dt_tensor **out_p)
{
    if (out_p != NULL) {
        *out_p = g->api->result(g, first, k);
    }
}
/* Hands back log_prob. column: of action, one per head. mask, entropy_p may be NULL. */
static inline dt_tensor *dt_categorical(dt_graph *g, dt_tensor *logits, dt_tensor *action, int64_t column,
                                        dt_tensor *mask, dt_tensor **entropy_p)
{
    dt_tensor *in[3] = {logits, action, mask};
    dt_tensor *log_prob = dt_op_(g, DT_OP_CATEGORICAL, in, 3, column, 0, 0, 0);
    dt_result_(g, log_prob, 1, entropy_p);
    return log_prob;
}
/* Hands back log_prob. entropy_p may be NULL. */
static inline dt_tensor *dt_gaussian(dt_graph *g, dt_tensor *mean, dt_tensor *log_std, dt_tensor *action,
                                     dt_tensor **entropy_p)
{
    dt_tensor *in[3] = {mean, log_std, action};
    dt_tensor *log_prob = dt_op_(g, DT_OP_GAUSSIAN, in, 3, 0, 0, 0, 0);
    dt_result_(g, log_prob, 1, entropy_p);
    return log_prob;
}
/* Hands back the loss of each row. kl_p, clipped_p may be NULL. */
static inline dt_tensor *dt_ppo_clip(dt_graph *g, dt_tensor *log_prob, dt_tensor *old, dt_tensor *advantage, double low,
                                     double high, dt_tensor **kl_p, dt_tensor **clipped_p)
{
    dt_tensor *in[3] = {log_prob, old, advantage};
    dt_tensor *loss = dt_op_(g, DT_OP_PPO_CLIP, in, 3, 0, 0, low, high);
    dt_result_(g, loss, 1, kl_p);
    dt_result_(g, loss, 2, clipped_p);
    return loss;
}
/* how: DT_VALUE_*; old: NULL but for CLIP_STEP; clip: not used by PLAIN. */
static inline dt_tensor *dt_value_loss(dt_graph *g, dt_tensor *value, dt_tensor *target, dt_tensor *old, int64_t how,
                                       double clip)
{
    dt_tensor *in[3] = {value, target, old};
    return dt_op_(g, DT_OP_VALUE_LOSS, in, 3, how, 0, clip, 0);
}

static inline dt_tensor *dt_sqrt(dt_graph *g, dt_tensor *x)
{
    return dt_unary(g, DT_FN_SQRT, x, 0);
}
static inline dt_tensor *dt_div(dt_graph *g, dt_tensor *a, dt_tensor *b)
{
    return dt_binary(g, DT_BIN_DIV, a, b);
}
static inline dt_tensor *dt_min(dt_graph *g, dt_tensor *a, dt_tensor *b)
{
    return dt_binary(g, DT_BIN_MIN, a, b);
}
static inline dt_tensor *dt_max(dt_graph *g, dt_tensor *a, dt_tensor *b)
{
    return dt_binary(g, DT_BIN_MAX, a, b);
}
/* DT_FOR_*; a host without one records for training. */
static inline uint32_t dt_purpose(const dt_graph *g)
{
    return g->api->purpose(g);
}
/* x, of which the losses learn nothing. */
static inline dt_tensor *dt_stop(dt_graph *g, dt_tensor *x)
{
    return dt_op_(g, DT_OP_STOP, &x, 1, 0, 0, 0, 0);
}
/* value in the shape of x */
static inline dt_tensor *dt_fill(dt_graph *g, dt_tensor *like, double value)
{
    return dt_op_(g, DT_OP_FILL, &like, 1, 0, 0, value, 0);
}
static inline dt_tensor *dt_noise(dt_graph *g, dt_tensor *key, int64_t n)
{
    return dt_op_(g, DT_OP_NOISE, &key, 1, 0, n, 0, 0);
}
/* Over the last dimension but one: [...,F,P] -> [...,P]. */
static inline dt_tensor *dt_reduce(dt_graph *g, int64_t how, dt_tensor *x)
{
    return dt_op_(g, DT_OP_REDUCE, &x, 1, how, 0, 0, 0);
}
/* Over the last dimension: [...,D] -> [...,1]. */
static inline dt_tensor *dt_reduce_columns(dt_graph *g, int64_t how, dt_tensor *x)
{
    return dt_reduce(g, how, dt_split(g, x, 0));
}
static inline dt_tensor *dt_transpose(dt_graph *g, dt_tensor *x)
{
    return dt_op_(g, DT_OP_TRANSPOSE, &x, 1, 0, 0, 0, 0);
}
/* a b, where a_is_transposed and b_is_transposed define how each is stored. */
static inline dt_tensor *dt_matmul(dt_graph *g, dt_tensor *a, dt_tensor *b, int a_is_transposed, int b_is_transposed)
{
    dt_tensor *in[2] = {a, b};
    return dt_op_(g, DT_OP_MATMUL, in, 2, a_is_transposed != 0, b_is_transposed != 0, 0, 0);
}
/* x[..., idx[..., column]], as [...,1] */
static inline dt_tensor *dt_pick(dt_graph *g, dt_tensor *x, dt_tensor *idx, int64_t column)
{
    dt_tensor *in[2] = {x, idx};
    return dt_op_(g, DT_OP_PICK, in, 2, column, 0, 0, 0);
}
static inline dt_tensor *dt_unfold(dt_graph *g, dt_tensor *x, int64_t kernel, int64_t stride, int64_t padding,
                                   int is_circular)
{
    const dt_attr a = {{kernel, stride, padding, is_circular != 0}, {0, 0, 0, 0}};
    return g->api->op(g, DT_OP_UNFOLD, &x, 1, &a);
}
/* One-dimensional convolution (as usual, a correlation) of x[...,L,C] with w[M,kernel*C], b[M] or NULL. */
static inline dt_tensor *dt_conv1d(dt_graph *g, dt_tensor *x, dt_tensor *w, dt_tensor *b, int64_t kernel,
                                   int64_t stride, int64_t padding)
{
    return dt_linear(g, dt_unfold(g, x, kernel, stride, padding, 0), w, b);
}
/* Two-dimensional convolution of x[...,H,W,C] with w[M,rows,columns,C / groups], b[M] or NULL -> [...,P,Q,M]. Maps that
 * are stored [...,C,H,W] get their channels last by dt_permute_dims(g, x, 231). */
static inline dt_tensor *dt_conv2d(dt_graph *g, dt_tensor *x, dt_tensor *w, dt_tensor *b, int64_t stride,
                                   int64_t padding_rows, int64_t padding_columns, int64_t dilation)
{
    dt_tensor *in[3] = {x, w, b};
    const dt_attr a = {{stride, padding_rows, padding_columns, dilation}, {0, 0, 0, 0}};
    return g->api->op(g, DT_OP_CONV2D, in, 3, &a);
}
/* An action of a squashed Gaussian (Haarnoja et al. 2018, appendix C): tanh(u), u = mean + e^log_std noise, all
 * [...,P], and its log probability [...,1], sum_p of log N(u) - log(1 - tanh(u)^2) in the form that does not cancel,
 * 2 (log 2 - u - softplus(-2 u)). Gradients flow through the action as well. log_prob_p may be NULL. */
static inline dt_tensor *dt_squashed_gaussian(dt_graph *g, dt_tensor *mean, dt_tensor *log_std, dt_tensor *noise,
                                              dt_tensor **log_prob_p)
{
    dt_tensor *u = dt_add(g, mean, dt_mul(g, noise, dt_unary(g, DT_FN_EXP, log_std, 0)));
    dt_tensor *action = dt_tanh(g, u);
    if (log_prob_p != NULL) {
        dt_tensor *squares = dt_affine(g, dt_mul(g, noise, noise), -0.5, -0.91893853320467274178); /* log(2 pi) / 2 */
        dt_tensor *soft = dt_unary(g, DT_FN_SOFTPLUS, dt_affine(g, u, -2, 0), 0);
        dt_tensor *slope = dt_affine(g, dt_add(g, u, soft), -2, 1.38629436111989061883); /* 2 log 2 */
        dt_tensor *each = dt_sub(g, dt_sub(g, squares, slope), log_std);
        *log_prob_p = dt_reduce_columns(g, DT_REDUCE_SUM, each);
    }
    return action;
}

/* ---- comparing and selecting: 1 is true, 0 false ----------------------------------------------------------------- */

static inline dt_tensor *dt_abs(dt_graph *g, dt_tensor *x)
{
    return dt_unary(g, DT_FN_ABS, x, 0);
}
static inline dt_tensor *dt_sin(dt_graph *g, dt_tensor *x)
{
    return dt_unary(g, DT_FN_SIN, x, 0);
}
static inline dt_tensor *dt_cos(dt_graph *g, dt_tensor *x)
{
    return dt_unary(g, DT_FN_COS, x, 0);
}
/* how: DT_BIN_LESS, LESS_EQUAL, GREATER, GREATER_EQUAL or EQUAL */
static inline dt_tensor *dt_compare(dt_graph *g, uint32_t how, dt_tensor *a, dt_tensor *b)
{
    return dt_binary(g, how, a, b);
}
/* a where condition is not 0, else b; NULL counts as zeros. dt_affine(g, c, -1, 1) negates a condition, dt_mul is true
 * where both are, dt_max where one is. */
static inline dt_tensor *dt_select(dt_graph *g, dt_tensor *condition, dt_tensor *a, dt_tensor *b)
{
    dt_tensor *in[3] = {condition, a, b};
    return dt_op_(g, DT_OP_SELECT, in, 3, 0, 0, 0, 0);
}

/* ---- integers, choices, rows ------------------------------------------------------------------------------------- */

static inline dt_tensor *dt_cast(dt_graph *g, dt_tensor *x)
{
    return dt_op_(g, DT_OP_CAST, &x, 1, 0, 0, 0, 0);
}
static inline dt_tensor *dt_one_hot(dt_graph *g, dt_tensor *idx, int64_t column, int64_t n)
{
    return dt_op_(g, DT_OP_ONE_HOT, &idx, 1, column, n, 0, 0);
}
/* The k greatest of each row in falling order; index_p may be NULL. */
static inline dt_tensor *dt_top_k(dt_graph *g, dt_tensor *x, int64_t k, dt_tensor **index_p)
{
    dt_tensor *value = dt_op_(g, DT_OP_TOP_K, &x, 1, 0, k, 0, 0);
    dt_result_(g, value, 1, index_p);
    return value;
}
/* [...,M] -> [...,1] i32: the first greatest, as dt_pick, dt_one_hot and dt_categorical take it. */
static inline dt_tensor *dt_argmax(dt_graph *g, dt_tensor *x)
{
    dt_tensor *index = NULL;
    (void)dt_top_k(g, x, 1, &index);
    return index;
}
/* Rows of x summed into the rows of a tensor with as many rows as `of`, by idx. */
static inline dt_tensor *dt_scatter_add(dt_graph *g, dt_tensor *x, dt_tensor *idx, dt_tensor *of)
{
    dt_tensor *in[3] = {x, idx, of};
    return dt_op_(g, DT_OP_SCATTER_ADD, in, 3, 0, 0, 0, 0);
}
/* order: a digit for each of the last dimensions, 231: [...,A,B,C] -> [...,B,C,A] */
static inline dt_tensor *dt_permute_dims(dt_graph *g, dt_tensor *x, int64_t order)
{
    return dt_op_(g, DT_OP_PERMUTE, &x, 1, order, 0, 0, 0);
}
/* The same n numbers in every run, 1 to 2048, as a tensor [n]. */
static inline dt_tensor *dt_constant_row(dt_graph *g, const double *value, int64_t n)
{
    int64_t part = 4; /* of a CONSTANT; of a CONCAT of eight parts, and so on */
    if (n < 1 || n > 2048) {
        return dt_graph_fail_(g, "constant_row: its numbers are", n, "1 to 2048 of them");
    }
    if (value == NULL) {
        return dt_graph_fail_(g, "constant_row: the list is NULL of its numbers, which are", n, "a list of as many");
    }
    if (n <= part) {
        dt_attr a = {{n, 0, 0, 0}, {0, 0, 0, 0}};
        for (int64_t i = 0; i < n; i++) {
            a.f[i] = value[i];
        }
        return g->api->op(g, DT_OP_CONSTANT, NULL, 0, &a);
    }
    while (8 * part < n) {
        part *= 8;
    }
    dt_tensor *x[8];
    uint32_t parts = 0;
    for (int64_t i = 0; i < n && parts < 8; i += part) {
        x[parts++] = dt_constant_row(g, value + i, n - i < part ? n - i : part);
    }
    return dt_concat(g, x, parts);
}
/* kind: DT_NOISE_*; in_evaluation: not 0 draws while evaluating and acting as well */
static inline dt_tensor *dt_noise_of(dt_graph *g, dt_tensor *key, int64_t n, int64_t kind, int in_evaluation)
{
    const dt_attr a = {{0, n, kind, in_evaluation != 0}, {0, 0, 0, 0}};
    return g->api->op(g, DT_OP_NOISE, &key, 1, &a);
}
/* Standard Gumbel numbers, -log(-log u) of uniform u (Jang et al. 2017): argmax(logits + them) is a draw of
 * softmax(logits), softmax((logits + them) / temperature) a relaxed one. */
static inline dt_tensor *dt_gumbel_noise(dt_graph *g, dt_tensor *key, int64_t n, int in_evaluation)
{
    dt_tensor *u = dt_noise_of(g, key, n, DT_NOISE_UNIFORM, in_evaluation);
    dt_tensor *e = dt_affine(g, dt_unary(g, DT_FN_LOG, u, 0), -1, 0);
    return dt_affine(g, dt_unary(g, DT_FN_LOG, e, 0), -1, 0);
}
/* Do parts of the last dimension of x make sense? gamma and beta have its size. */
static inline int dt_has_groups_(dt_graph *g, dt_tensor *x, int64_t groups, dt_tensor *gamma, dt_tensor *beta)
{
    const uint32_t rank = g->api->rank(x);
    const int64_t D = rank > 0 ? g->api->dim(x, rank - 1) : -1;
    if (x == NULL || gamma == NULL || beta == NULL) {
        return dt_graph_fail_(g, "group_norm: x, gamma or beta is NULL for its groups, which are", groups,
                              "three tensors") != NULL;
    }
    if (D < 1) {
        return dt_graph_fail_(g, "group_norm: the last dimension of x is ragged for its groups, which are", groups,
                              "a number of columns") != NULL;
    }
    if (groups < 1 || D % groups != 0) {
        char expected[96];
        snprintf(expected, sizeof(expected), "1 to %lld, a divisor of the %lld columns of x", (long long)D,
                 (long long)D);
        return dt_graph_fail_(g, "group_norm: its groups are", groups, expected) != NULL;
    }
    if (g->api->rank(gamma) != 1 || g->api->rank(beta) != 1 || g->api->dim(gamma, 0) != D ||
        g->api->dim(beta, 0) != D) {
        return dt_graph_fail_(g, "group_norm: gamma or beta is not [D], where D, the columns of x, is", D,
                              "both [D]") != NULL;
    }
    return 1;
}
/* Normalises each of `groups` equal parts of the last dimension (Wu & He 2018, for vectors); gamma and beta are [D].
 * groups is at least 1 and divides D. */
static inline dt_tensor *dt_group_norm(dt_graph *g, dt_tensor *x, int64_t groups, dt_tensor *gamma, dt_tensor *beta)
{
    if (!dt_has_groups_(g, x, groups, gamma, beta)) {
        return NULL;
    }
    dt_tensor *like = dt_step(g, dt_split(g, gamma, groups), 0); /* [D / groups] */
    dt_tensor *y = dt_layernorm(g, dt_split(g, x, groups), dt_fill(g, like, 1), dt_fill(g, like, 0), NULL);
    return dt_add(g, dt_mul(g, dt_merge(g, y), gamma), beta);
}
/* The same of maps x[...,H,W,C]: each of `groups` equal parts of the channels is normalised over all positions of a row
 * (groups 1: layer norm of the map, C: instance norm). It reads nothing of other rows, so it evaluates as it trains. */
static inline dt_tensor *dt_group_norm_maps(dt_graph *g, dt_tensor *x, int64_t groups, dt_tensor *gamma,
                                            dt_tensor *beta)
{
    if (!dt_has_groups_(g, x, groups, gamma, beta)) {
        return NULL;
    }
    const uint32_t rank = g->api->rank(x);
    const int64_t H = rank < 3 ? -1 : g->api->dim(x, rank - 3), W = rank < 3 ? -1 : g->api->dim(x, rank - 2);
    if (H < 1 || W < 1) {
        return dt_graph_fail_(g, "group_norm_maps: the dimensions of x are", rank,
                              "at least 3, [...,H,W,C], with numbers H and W");
    }
    dt_tensor *parts = dt_permute_dims(g, dt_split(g, x, groups), 3124); /* [...,groups,H,W,C / groups] */
    dt_tensor *flat = dt_merge(g, dt_merge(g, parts));
    dt_tensor *centred = dt_sub(g, flat, dt_reduce_columns(g, DT_REDUCE_MEAN, flat));
    dt_tensor *variance = dt_reduce_columns(g, DT_REDUCE_MEAN, dt_mul(g, centred, centred));
    dt_tensor *normal = dt_div(g, centred, dt_sqrt(g, dt_affine(g, variance, 1, 1e-5)));
    dt_tensor *y = dt_permute_dims(g, dt_split(g, dt_split(g, normal, H), W), 2314);
    return dt_add(g, dt_mul(g, dt_merge(g, y), gamma), beta);
}
/* ---- batch norm --------------------------------------------------------------------------------------------------
 *
 * Rows of a shard depend on each other while training, and on none when evaluating: see BATCH_NORM in ops.def. PPO and
 * others that compare probabilities of collecting (running statistics) with those of learning (the shard's) are
 * better served by dt_layernorm or dt_group_norm; so are phases that update parameters themselves (vector_set). */

/* mask: NULL, or which rows count. momentum: the weight of what is new, 0 to 1; PyTorch's default is 0.1. epsilon: > 0,
 * 1e-5 there. Of maps x[...,H,W,C] each position is a row. */
static inline dt_tensor *dt_batch_norm(dt_graph *g, dt_tensor *x, dt_tensor *gamma, dt_tensor *beta, dt_tensor *mean,
                                       dt_tensor *var, dt_tensor *mask, double momentum, double epsilon)
{
    dt_tensor *in[6] = {x, gamma, beta, mean, var, mask};
    return dt_op_(g, DT_OP_BATCH_NORM, in, 6, 0, 0, epsilon, momentum);
}
/* Batch norm of n columns by name: parameters <layer>.gamma (1), <layer>.beta (0), <layer>.mean (0), <layer>.var (1),
 * all [n]; and what it makes of x, with momentum 0.1 and epsilon 1e-5. */
static inline dt_status dt_batch_norm_params(dt_params *reg, const char *layer, int64_t n)
{
    static const struct {
        const char *name;
        double a;
        uint32_t init, reserved;
    } part[4] = {{"gamma", 1, DT_INIT_CONST, 0},
                 {"beta", 0, DT_INIT_ZERO, 0},
                 {"mean", 0, (uint32_t)DT_INIT_ZERO | (uint32_t)DT_INIT_STATISTIC, 0},
                 {"var", 1, (uint32_t)DT_INIT_CONST | (uint32_t)DT_INIT_STATISTIC, 0}};
    for (int i = 0; i < 4; i++) {
        char name[160]; /* longer than any that add accepts */
        snprintf(name, sizeof(name), "%s.%s", layer != NULL ? layer : "", part[i].name);
        const dt_status st = reg->add(reg, name, &n, 1, part[i].init, part[i].a);
        if (st < 0) {
            return st;
        }
    }
    return DT_OK;
}
static inline dt_tensor *dt_batch_norm_of(dt_graph *g, dt_tensor *x, const char *layer, dt_tensor *mask)
{
    static const char *const part[4] = {"gamma", "beta", "mean", "var"};
    dt_tensor *p[4];
    for (int i = 0; i < 4; i++) {
        char name[160];
        snprintf(name, sizeof(name), "%s.%s", layer != NULL ? layer : "", part[i]);
        p[i] = g->api->param(g, name);
    }
    return dt_batch_norm(g, x, p[0], p[1], p[2], p[3], mask, 0.1, 1e-5);
}

#ifdef __cplusplus
}
#endif
#endif
