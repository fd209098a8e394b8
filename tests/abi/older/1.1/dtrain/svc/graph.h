/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.graph/1": recording a static graph through the C API.
 *
 * A graph is recorded once per shape class and executed thousands of times by the host, which differentiates it, plans
 * its memory and runs it slice by slice. dt_tensor is a handle to a value, never data. Errors are sticky: after the
 * first one every call returns NULL and status() tells it, so a model may record straight through and return status.
 * No callback runs during a step. Ops and their contracts: dtrain/ops.def. Threads: [main].
 */
#ifndef DTRAIN_SVC_GRAPH_H
#define DTRAIN_SVC_GRAPH_H

#include "dtrain/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SVC_GRAPH "dtrain.graph/1"

enum {
#define DT_OP(ID, number, name) DT_OP_##ID = number,
#include "dtrain/ops.def"
#undef DT_OP
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
    DT_FN_LOG
};
enum { DT_BIN_ADD = 1, DT_BIN_SUB, DT_BIN_MUL, DT_BIN_MIN, DT_BIN_MAX };
enum { DT_VALUE_PLAIN = 0, DT_VALUE_CLIP_STEP, DT_VALUE_CLIP_ERROR };

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
    /* A small vector that the phase sets before each step (svc/train.h set), [n] f32. */
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
    /* since 1.1: x under a name by which a rollout may keep it (svc/rollout.h). Hands back x; or, in a graph of losses
     * whose data has it as a field and where no trained parameter, step input or dropout is behind x, that field: it
     * has the same values and costs nothing. */
    dt_tensor *(*kept)(dt_graph *g, const char *name, dt_tensor *x);
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
/* Result k of the op that gave first, where somebody wants it. */
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

#ifdef __cplusplus
}
#endif
#endif
