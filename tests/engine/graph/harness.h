/* SPDX-License-Identifier: Apache-2.0
 *
 * A small ragged world for tests of plans: parameters, fields with every kind of index, and one call that compiles a
 * recorded graph, runs it and hands back losses and gradients in double.
 */
#ifndef DTRAIN_TESTS_GRAPH_HARNESS_H
#define DTRAIN_TESTS_GRAPH_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/rng.h"
#include "engine/graph/plan.h"
#include "engine/graph/recorder.h"

enum { SYM_N, SYM_E, SYM_S, SYM_B, N_SYMBOLS };
enum { STEPS = 4, NODE_FEATURES = 5, EDGE_FEATURES = 3, FUTURE = 3 };
enum {
    FIELD_NODES,
    FIELD_ROWPTR,
    FIELD_COL,
    FIELD_EDGES,
    FIELD_KEY,
    FIELD_LABEL,
    FIELD_LABEL_WEIGHT,
    FIELD_SEQ_ROW,
    FIELD_PRESENT,
    FIELD_TARGET,
    FIELD_WEIGHT,
    FIELD_PTR,
    FIELD_ACTION,
    N_FIELDS
};

static const char *const symbols[N_SYMBOLS] = {"N", "E", "S", "B"};
static const dt_port fields[N_FIELDS] = {
    {"nodes", "N 5", DT_F32, 0},      {"rowptr", "N+1", DT_I32, 0},  {"col", "E", DT_I32, 0},
    {"edges", "E 3", DT_F32, 0},      {"key", "N", DT_I64, 0},       {"label", "N", DT_F32, 0},
    {"label_weight", "N", DT_F32, 0}, {"seq_row", "4 S", DT_I32, 0}, {"present", "4 S", DT_F32, 0},
    {"target", "S 3 2", DT_F32, 0},   {"weight", "S 3", DT_F32, 0},  {"ptr", "B+1", DT_I32, 0},
    {"action", "N 2", DT_I32, 0},
};
static const int64_t capacity[N_SYMBOLS] = {24, 80, 9, 3};

typedef struct slice {
    int64_t size[N_SYMBOLS];
    void *field[N_FIELDS];
} slice;

typedef struct param_spec {
    const char *name;
    int64_t a, b; /* b 0: a vector */
} param_spec;

typedef struct model {
    const param_spec *param; /* ends with name NULL */
    void (*record)(dt_graph *g);
} model;

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static inline double draw(uint32_t stream, int64_t i) /* U(-1,1) */
{
    const dt_rng_key key = {.seed = 11, .op = stream};
    return 2.0 * dt_rng_uniform(&key, (uint64_t)i) - 1.0;
}

static inline float *draw_f32(uint32_t stream, int64_t n, bool is_weight)
{
    float *v = dt_alloc_n((size_t)n, sizeof(*v));
    for (int64_t i = 0; i < n; i++) {
        v[i] = (float)draw(stream, i);
        if (is_weight) { /* 0 or 1 */
            v[i] = v[i] > -0.5f ? 1.0f : 0.0f;
        }
    }
    return v;
}

/* A slice of N rows in B graphs, each row with itself and up to three neighbours; S sequences over the rows. */
static inline void slice_init(slice *s, int64_t N, int64_t S, int64_t B, uint32_t stream)
{
    *s = (slice){.size = {N, 0, S, B}};
    int32_t *rowptr = dt_alloc_n((size_t)N + 1, sizeof(*rowptr)), *col = dt_alloc_n((size_t)(4 * N), sizeof(*col));
    int32_t n_edges = 0;
    for (int64_t i = 0; i < N; i++) {
        col[n_edges++] = (int32_t)i;
        for (int64_t j = 1; j <= 3; j++) {
            int64_t other = (i + j * j + (int64_t)stream) % N;
            if (other != i && draw(stream, 1000 + 3 * i + j) > -0.3) {
                col[n_edges++] = (int32_t)other;
            }
        }
        rowptr[i + 1] = n_edges;
    }
    s->size[SYM_E] = n_edges;
    int64_t *key = dt_alloc_n((size_t)N, sizeof(*key));
    for (int64_t i = 0; i < N; i++) {
        key[i] = 100 * stream + i;
    }
    int32_t *seq_row = dt_alloc_n((size_t)(STEPS * S), sizeof(*seq_row));
    float *present = dt_alloc_n((size_t)(STEPS * S), sizeof(*present));
    for (int64_t i = 0; i < STEPS * S; i++) {
        bool is_here = N > 0 && draw(stream + 1, i) > -0.6;
        seq_row[i] = is_here ? (int32_t)((i * 7 + 3) % N) : -1;
        present[i] = is_here ? 1.0f : 0.0f;
    }
    int32_t *ptr = dt_alloc_n((size_t)B + 1, sizeof(*ptr));
    for (int64_t b = 0; b <= B; b++) {
        ptr[b] = B > 0 ? (int32_t)(b * N / B) : 0;
    }
    s->field[FIELD_NODES] = draw_f32(stream + 2, N * NODE_FEATURES, false);
    s->field[FIELD_ROWPTR] = rowptr;
    s->field[FIELD_COL] = col;
    s->field[FIELD_EDGES] = draw_f32(stream + 3, n_edges * EDGE_FEATURES, false);
    s->field[FIELD_KEY] = key;
    s->field[FIELD_LABEL] = draw_f32(stream + 4, N, true);
    s->field[FIELD_LABEL_WEIGHT] = draw_f32(stream + 5, N, true);
    s->field[FIELD_SEQ_ROW] = seq_row;
    s->field[FIELD_PRESENT] = present;
    s->field[FIELD_TARGET] = draw_f32(stream + 6, S * FUTURE * 2, false);
    s->field[FIELD_WEIGHT] = draw_f32(stream + 7, S * FUTURE, true);
    s->field[FIELD_PTR] = ptr;
    int32_t *action = dt_alloc_n((size_t)(2 * N), sizeof(*action));
    for (int64_t i = 0; i < 2 * N; i++) {
        action[i] = (int32_t)((i * i + (int64_t)stream) % 3);
    }
    s->field[FIELD_ACTION] = action;
}

static inline void slice_fini(slice *s)
{
    for (int i = 0; i < N_FIELDS; i++) {
        dt_free(s->field[i]);
    }
}

/* ---- graph and runs ---------------------------------------------------------------------------------------------- */

typedef struct bench {
    dt_param_table params;
    dt_graph *g;
    double *value; /* parameters, arena layout */
    slice s;
    dt_ir ir; /* bench_ir */
} bench;

static inline void bench_graph(bench *b, const model *m)
{
    const dt_graph_desc d = {
        .symbol = symbols, .n_symbols = N_SYMBOLS, .field = fields, .n_fields = N_FIELDS, .params = &b->params};
    assert_int_equal(dt_graph_create(&d, &b->g), DT_OK);
    dt_graph_set_scope(b->g, "m");
    m->record(b->g);
    if (b->g->api->status(b->g) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
}

static inline void bench_params(bench *b, const model *m)
{
    *b = (bench){0};
    for (const param_spec *p = m->param; p->name != NULL; p++) {
        const int64_t dim[2] = {p->a, p->b};
        assert_int_equal(dt_param_table_add(&b->params, "m", p->name, dim, p->b > 0 ? 2 : 1, DT_INIT_UNIFORM, 0.7),
                         DT_OK);
    }
    float *start = dt_alloc_n((size_t)b->params.total, sizeof(*start));
    b->value = dt_alloc_n((size_t)b->params.total, sizeof(*b->value));
    assert_int_equal(dt_param_table_init(&b->params, 5, start), DT_OK);
    for (int64_t i = 0; i < b->params.total; i++) {
        b->value[i] = start[i];
    }
    dt_free(start);
}

static inline void bench_open(bench *b, const model *m, int64_t N, int64_t S, int64_t B)
{
    bench_params(b, m);
    bench_graph(b, m);
    slice_init(&b->s, N, S, B, 1);
}

static inline void bench_close(bench *b)
{
    dt_ir_fini(&b->ir);
    slice_fini(&b->s);
    dt_graph_destroy(b->g);
    dt_free(b->value);
    dt_param_table_fini(&b->params);
}

/* A copy of what was recorded, for passes to work on. */
static inline dt_ir *bench_ir(bench *b)
{
    assert_int_equal(dt_ir_copy(&((dt_recorder *)b->g)->ir, &b->ir), DT_OK);
    dt_ir_index(&b->ir);
    return &b->ir;
}

static inline void assert_ir(const dt_ir *ir, const char *want)
{
    dt_str s = {0};
    dt_ir_print(ir, &s);
    if (strcmp(dt_str_text(&s), want) != 0) {
        fail_msg("got\n%swanted\n%s", dt_str_text(&s), want);
    }
    dt_str_fini(&s);
}

typedef struct result {
    double loss[DT_GRAPH_MAX_LOSSES], total; /* total: weighted, what the gradient is of */
    double *grad;                            /* arena layout */
    dt_plan_info info;
} result;

static const dt_plan_desc plain = {
    .kernels = DT_KERNELS_REF64, .training = true, .reuse = true, .poison = true, .fuse = true, .cap = capacity};

static const float step_value[3] = {0.7f, -0.4f, 1.3f};

/* What a trainer does with one slice; params and grads in the set's own type. */
static inline dt_status run_exec(dt_exec *e, const slice *s, const void *params, void *grads, double *loss)
{
    static const double seed[DT_GRAPH_MAX_LOSSES] = {0.25, 0.5, 2, 1, 1, 1, 1, 1};
    static const float *const step_input[4] = {step_value, step_value, step_value, step_value};
    const dt_kernel_run run = {.seed = 3, .step = 7, .phase = 1, .training = 1};
    const dt_exec_feed feed = {.size = s->size,
                               .field = s->field,
                               .step_input = step_input,
                               .params = params,
                               .grads = grads,
                               .loss_seed = seed,
                               .loss = loss,
                               .run = &run};
    return dt_exec_run(e, &feed);
}

/* Compile, run on n slices, accumulate. */
static inline result run_slices(bench *b, const dt_plan_desc *d, const slice *s, int n)
{
    static const double seed[DT_GRAPH_MAX_LOSSES] = {0.25, 0.5, 2, 1, 1, 1, 1, 1};
    result r = {0};
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    if (dt_plan_compile(b->g, d, &p) != DT_OK || dt_exec_create(p, &e) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    bool is_double = d->kernels == DT_KERNELS_REF64;
    size_t total = (size_t)b->params.total, element = is_double ? sizeof(double) : sizeof(float);
    char *params = dt_alloc_n(total, element), *grads = dt_alloc_n(total, element);
    for (size_t i = 0; i < total; i++) {
        if (is_double) {
            ((double *)(void *)params)[i] = b->value[i];
        } else {
            ((float *)(void *)params)[i] = (float)b->value[i];
        }
    }
    for (int i = 0; i < n; i++) {
        uint64_t before = dt_alloc_calls();
        dt_status st = run_exec(e, &s[i], params, grads, r.loss);
        if (st != DT_OK) {
            fail_msg("%s", dt_error_text());
        }
        assert_int_equal(dt_alloc_calls(), before); /* a run allocates nothing */
    }
    r.grad = dt_alloc_n(total, sizeof(*r.grad));
    for (size_t i = 0; i < total; i++) {
        r.grad[i] = is_double ? ((double *)(void *)grads)[i] : ((float *)(void *)grads)[i];
    }
    for (int i = 0; i < DT_GRAPH_MAX_LOSSES; i++) {
        r.total += seed[i] * r.loss[i];
    }
    r.info = *dt_plan_info_get(p);
    dt_free(grads);
    dt_free(params);
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    return r;
}

static inline result run(bench *b, const dt_plan_desc *d)
{
    return run_slices(b, d, &b->s, 1);
}

static inline void result_fini(result *r)
{
    dt_free(r->grad);
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

static inline dt_tensor *P(dt_graph *g, const char *name)
{
    return g->api->param(g, name);
}

static inline dt_tensor *I(dt_graph *g, const char *name)
{
    return g->api->input(g, name);
}

/* Risk logits from a column of h against the labels. */
static inline void risk_loss(dt_graph *g, dt_tensor *h)
{
    dt_tensor *logit = dt_merge(g, dt_slice(g, h, 0, 1));
    (void)g->api->loss(g, "risk", dt_bce_logits(g, logit, I(g, "label"), I(g, "label_weight")), 1, "N");
}

static inline void record_mlp(dt_graph *g)
{
    dt_tensor *h = dt_elu(g, dt_linear(g, I(g, "nodes"), P(g, "w0"), P(g, "b0")));
    dt_tensor *f = dt_tanh(g, dt_linear(g, h, P(g, "w1"), P(g, "b1")));
    h = dt_layernorm(g, dt_add(g, h, f), P(g, "gamma"), P(g, "beta"), NULL);
    (void)g->api->output(g, "h", h);
    risk_loss(g, h);
}

static const param_spec params_mlp[] = {{"w0", 6, 5},    {"b0", 6, 0},   {"w1", 6, 6}, {"b1", 6, 0},
                                        {"gamma", 6, 0}, {"beta", 6, 0}, {NULL, 0, 0}};
static const model model_mlp = {params_mlp, record_mlp};

/* Two attention blocks with edge features, residuals and dropout; parameters of the second are those of the first. */
static inline void record_gat(dt_graph *g)
{
    dt_tensor *h = dt_gelu(g, dt_linear(g, I(g, "nodes"), P(g, "w0"), P(g, "b0")));
    for (int i = 0; i < 2; i++) {
        g->api->recompute_begin(g);
        dt_tensor *z = dt_linear(g, h, P(g, "w"), NULL);
        z = dt_gat(g, z, P(g, "a_dst"), P(g, "a_src"), I(g, "edges"), P(g, "w_e"), I(g, "rowptr"), I(g, "col"), 2, 0.2);
        z = dt_dropout(g, dt_elu(g, dt_add(g, z, P(g, "b"))), I(g, "key"), 0.3);
        h = dt_layernorm(g, z, P(g, "gamma"), P(g, "beta"), h);
        g->api->recompute_end(g);
    }
    (void)g->api->output(g, "h", h);
    risk_loss(g, h);
}

static const param_spec params_gat[] = {{"w0", 8, 5},  {"b0", 8, 0}, {"w", 8, 8},     {"a_dst", 8, 0}, {"a_src", 8, 0},
                                        {"w_e", 2, 3}, {"b", 8, 0},  {"gamma", 8, 0}, {"beta", 8, 0},  {NULL, 0, 0}};
static const model model_gat = {params_gat, record_gat};

/* Rows gathered into sequences, a recurrent layer, positions as running sums, Gaussian likelihood. */
static inline void future_loss(dt_graph *g, dt_tensor *last)
{
    dt_tensor *out = dt_linear(g, last, P(g, "w_out"), P(g, "b_out"));
    dt_tensor *mean = dt_cumsum(g, dt_split(g, dt_slice(g, out, 0, 6), FUTURE));
    dt_tensor *spread = dt_clamp(g, dt_split(g, dt_slice(g, out, 6, 6), FUTURE), -0.8, 2);
    dt_tensor *weight = dt_mul(g, I(g, "weight"), g->api->step_input(g, "horizon", FUTURE));
    (void)g->api->output(g, "future", mean);
    (void)g->api->loss(g, "nll", dt_gaussian_nll(g, mean, spread, I(g, "target"), weight), 1, "S");
    (void)g->api->loss(g, "square", dt_mse(g, mean, I(g, "target"), weight), 1, "S");
}

static inline void record_lstm(dt_graph *g)
{
    dt_tensor *h = dt_gather(g, dt_tanh(g, dt_linear(g, I(g, "nodes"), P(g, "w0"), NULL)), I(g, "seq_row"));
    h = dt_lstm(g, dt_linear(g, h, P(g, "wx"), P(g, "b")), P(g, "wh"), I(g, "present"));
    h = dt_lstm(g, dt_linear(g, h, P(g, "wx2"), P(g, "b2")), P(g, "wh2"), I(g, "present"));
    future_loss(g, dt_step(g, h, -1));
}

static const param_spec params_lstm[] = {{"w0", 4, 5},     {"wx", 16, 4}, {"b", 16, 0},   {"wh", 16, 4},
                                         {"wx2", 16, 4},   {"b2", 16, 0}, {"wh2", 16, 4}, {"w_out", 12, 4},
                                         {"b_out", 12, 0}, {NULL, 0, 0}};
static const model model_lstm = {params_lstm, record_lstm};

static inline void record_gru(dt_graph *g)
{
    dt_tensor *h = dt_gather(g, dt_linear(g, I(g, "nodes"), P(g, "w0"), NULL), I(g, "seq_row"));
    h = dt_gru(g, dt_linear(g, h, P(g, "wx"), P(g, "b")), P(g, "wh"), P(g, "bh"), I(g, "present"));
    future_loss(g, dt_add(g, dt_step(g, h, 3), dt_step(g, h, 0)));
}

static const param_spec params_gru[] = {{"w0", 4, 5},  {"wx", 12, 4},    {"b", 12, 0},     {"wh", 12, 4},
                                        {"bh", 12, 0}, {"w_out", 12, 4}, {"b_out", 12, 0}, {NULL, 0, 0}};
static const model model_gru = {params_gru, record_gru};

/* The rest: attention by products, every broadcast, several losses, parameters met directly by element-wise ops. */
static inline void record_mix(dt_graph *g)
{
    dt_tensor *x = I(g, "nodes");
    dt_tensor *q = dt_linear(g, x, P(g, "wq"), NULL), *k = dt_linear(g, x, P(g, "wk"), NULL);
    dt_tensor *bias = dt_linear(g, I(g, "edges"), P(g, "we"), NULL);
    dt_tensor *h = dt_graph_qk(g, q, k, k, bias, I(g, "rowptr"), I(g, "col"), 2);
    h = dt_mul(g, h, dt_sigmoid(g, dt_linear(g, x, P(g, "w1"), P(g, "b1")))); /* one gate per row */
    h = dt_sub(g, h, dt_mul(g, dt_affine(g, P(g, "c"), 2, 1), P(g, "c")));    /* a row, from a parameter alone */
    h = dt_add(g, h, dt_add(g, dt_tanh(g, P(g, "c")), P(g, "d")));            /* one gradient, used and given */
    h = dt_add(g, h, dt_add(g, P(g, "d"), P(g, "e")));                        /* one gradient, given twice */
    dt_tensor *u = dt_linear(g, h, P(g, "w2"), NULL);
    h = dt_add(g, u, dt_tanh(g, u));                                  /* a product that is read twice */
    h = dt_add(g, h, dt_layernorm(g, h, P(g, "e"), P(g, "d"), NULL)); /* and such a sum */
    h = dt_sub(g, dt_affine(g, h, 1, 0.1), dt_slice(g, h, 1, 1));     /* a column of itself */
    dt_tensor *both[2] = {dt_softmax(g, h), dt_unary(g, DT_FN_SOFTPLUS, h, 0)};
    h = dt_concat(g, both, 2);
    dt_tensor *scene = dt_segment_mean(g, h, I(g, "ptr"));
    (void)g->api->output(g, "scene", scene);
    risk_loss(g, dt_add(g, dt_slice(g, h, 0, 4), dt_slice(g, h, 4, 4)));
    (void)g->api->loss(g, "scene", dt_sum(g, dt_mul(g, scene, scene)), 1, "B");
    dt_tensor *p = dt_split(g, dt_unary(g, DT_FN_EXP, dt_merge(g, dt_slice(g, h, 2, 1)), 0), 0);
    dt_tensor *t = dt_split(g, I(g, "label"), 0);
    (void)g->api->loss(g, "robust", dt_huber(g, p, t, I(g, "label_weight"), 0.4), 1, "N");
}

static const param_spec params_mix[] = {{"wq", 4, 5}, {"wk", 4, 5}, {"we", 2, 3}, {"w1", 1, 5}, {"b1", 1, 0},
                                        {"c", 4, 0},  {"d", 4, 0},  {"e", 4, 0},  {"w2", 4, 4}, {NULL, 0, 0}};
static const model model_mix = {params_mix, record_mix};

/* A policy with two heads of choices, one of them masked, and two kinds of Gaussian; weights that change from step to
 * step: a number of a step input over rows [N,1]. */
static inline dt_tensor *weighted_sum(dt_graph *g, dt_tensor *row, int64_t k)
{
    dt_tensor *weight = dt_slice(g, g->api->step_input(g, "weights", 3), k, 1);
    return dt_sum(g, dt_mul(g, dt_split(g, row, 0), weight));
}

static inline void record_policy(dt_graph *g)
{
    dt_tensor *x = I(g, "nodes"), *entropy[4], *kl, *clipped;
    dt_tensor *h = dt_tanh(g, dt_linear(g, x, P(g, "w0"), NULL)), *logits = dt_linear(g, h, P(g, "wl"), NULL);
    dt_tensor *log_prob =
        dt_categorical(g, dt_slice(g, logits, 0, 3), I(g, "action"), 0, dt_relu(g, dt_slice(g, x, 0, 3)), &entropy[0]);
    dt_tensor *mean = dt_linear(g, h, P(g, "wm"), NULL), *drawn = dt_slice(g, x, 3, 2);
    log_prob = dt_add(g, log_prob, dt_categorical(g, dt_slice(g, logits, 3, 5), I(g, "action"), 1, NULL, &entropy[1]));
    dt_tensor *other = dt_gaussian(g, mean, P(g, "log_std"), drawn, &entropy[2]);
    other = dt_add(g, other, dt_gaussian(g, mean, dt_slice(g, h, 0, 2), drawn, NULL));
    dt_tensor *advantage = dt_merge(g, dt_slice(g, x, 4, 1)), *old = dt_merge(g, dt_slice(g, x, 3, 1));
    dt_tensor *loss = dt_ppo_clip(g, other, dt_affine(g, old, 1, -5), advantage, 0.5, 0.9, &kl, NULL);
    (void)g->api->loss(g, "policy", dt_sum(g, loss), 1, "N");
    (void)g->api->loss(g, "kl", weighted_sum(g, kl, 1), 1, "N");
    (void)dt_ppo_clip(g, log_prob, dt_affine(g, old, 1, -2), advantage, 0.2, 0.3, &kl, &clipped);
    (void)g->api->output(g, "clipped", clipped);
    (void)g->api->loss(g, "kl_alone", dt_sum(g, kl), 1, "N");
    entropy[3] = dt_add(g, dt_add(g, entropy[0], entropy[1]), entropy[2]);
    (void)g->api->loss(g, "entropy", weighted_sum(g, entropy[3], 0), 1, "N");
    dt_tensor *value = dt_merge(g, dt_linear(g, h, P(g, "wv"), NULL));
    dt_tensor *error = dt_value_loss(g, value, I(g, "label"), old, DT_VALUE_CLIP_STEP, 0.4);
    error = dt_add(g, error, dt_value_loss(g, value, I(g, "label"), NULL, DT_VALUE_CLIP_ERROR, 0.6));
    error = dt_add(g, error, dt_value_loss(g, value, I(g, "label"), NULL, DT_VALUE_PLAIN, 0));
    (void)g->api->loss(g, "value", dt_sum(g, error), 1, "N");
}

static const param_spec params_policy[] = {{"w0", 4, 5}, {"wl", 8, 4},      {"wm", 2, 4},
                                           {"wv", 1, 4}, {"log_std", 2, 0}, {NULL, 0, 0}};
static const model model_policy = {params_policy, record_policy};

/* What moves along an axis: heads that look at each other, a convolution in a circle, twins of which the lesser counts,
 * an action of a squashed Gaussian. */
static inline void record_axis(dt_graph *g)
{
    dt_tensor *h = dt_linear(g, I(g, "nodes"), P(g, "w0"), P(g, "b0"));
    dt_tensor *heads = dt_split(g, h, 3), *turned = dt_transpose(g, heads); /* [N,3,4], [N,4,3] */
    dt_tensor *look = dt_matmul(g, heads, heads, 0, 1);                     /* [N,3,3] */
    look = dt_add(g, look, dt_matmul(g, turned, heads, 1, 1));
    look = dt_matmul(g, look, turned, 1, 1); /* [N,3,4] */
    look = dt_add(g, look, dt_matmul(g, dt_softmax(g, dt_matmul(g, heads, turned, 0, 0)), heads, 0, 0));
    dt_tensor *around = dt_linear(g, dt_unfold(g, look, 2, 1, 1, 1), P(g, "w_conv"), P(g, "b_conv")); /* [N,4,2] */
    dt_tensor *kernel = dt_conv1d(g, look, P(g, "w_conv"), NULL, 2, 2, 1);                            /* [N,2,2] */
    dt_tensor *most = dt_reduce(g, DT_REDUCE_MAX, around), *mean = dt_reduce(g, DT_REDUCE_MEAN, kernel);
    dt_tensor *least = dt_min(g, most, dt_max(g, mean, P(g, "b_conv"))); /* [N,2] */
    dt_tensor *size = dt_sqrt(g, dt_affine(g, dt_reduce_columns(g, DT_REDUCE_SUM, dt_mul(g, h, h)), 1, 0.1));
    dt_tensor *ratio = dt_div(g, least, size), *odds = dt_div(g, dt_fill(g, ratio, 0.3), dt_affine(g, size, 1, 1));
    dt_tensor *chosen = dt_pick(g, h, I(g, "action"), 1), *log_prob = NULL;
    dt_tensor *drawn = dt_squashed_gaussian(g, dt_slice(g, h, 0, 2), dt_tanh(g, dt_slice(g, h, 2, 2)),
                                            dt_noise(g, I(g, "key"), 2), &log_prob);
    (void)g->api->output(g, "drawn", drawn);
    (void)g->api->loss(g, "ratio", dt_sum(g, dt_add(g, ratio, odds)), 1, "N");
    (void)g->api->loss(g, "chosen", dt_sum(g, dt_mul(g, chosen, chosen)), 1, "N");
    (void)g->api->loss(g, "drawn", dt_sum(g, dt_sub(g, drawn, dt_affine(g, log_prob, 0.3, 0))), 1, "N");
}

static const param_spec params_axis[] = {
    {"w0", 12, 5}, {"b0", 12, 0}, {"w_conv", 2, 8}, {"b_conv", 2, 0}, {NULL, 0, 0}};
static const model model_axis = {params_axis, record_axis};

/* Comparing, choosing and counting: the greatest of each row, where they lead, rows summed by their target. */
static inline void record_choices(dt_graph *g)
{
    static const double steps[10] = {-4, 3, -2, 1, 0.5, -0.25, 0.125, 7, -8, 9};
    dt_tensor *h = dt_linear(g, I(g, "nodes"), P(g, "w0"), P(g, "b0")); /* [N,8] */
    dt_tensor *waves = dt_select(g, dt_compare(g, DT_BIN_LESS, h, P(g, "b0")), dt_sin(g, h), dt_cos(g, dt_abs(g, h)));
    dt_tensor *index = NULL, *one = P(g, "scale"), *set = g->api->step_input(g, "set", 1); /* [1] over [N,8] */
    dt_tensor *scaled = dt_div(g, dt_sub(g, dt_mul(g, waves, one), one), dt_affine(g, dt_mul(g, one, one), 1, 1));
    scaled = dt_add(g, dt_max(g, dt_min(g, scaled, dt_affine(g, one, 1, 0.5)), dt_affine(g, one, 1, -2)), one);
    scaled = dt_sub(g, dt_max(g, dt_mul(g, dt_add(g, scaled, set), set), dt_affine(g, set, -3, 0)), set);
    scaled = dt_div(g, dt_min(g, scaled, dt_affine(g, set, 9, 0)), set);
    dt_tensor *top = dt_top_k(g, scaled, 3, &index); /* [N,3] */
    dt_tensor *best = dt_mul(g, dt_one_hot(g, dt_argmax(g, h), 0, 8), h);
    dt_tensor *number = dt_mul(g, dt_cast(g, I(g, "action")), dt_pick(g, h, index, 2));
    dt_tensor *row = dt_slice(g, dt_constant_row(g, steps, 10), 1, 8);
    dt_tensor *turned = dt_permute_dims(g, dt_split(g, dt_add(g, h, row), 2), 21); /* [N,4,2] */
    dt_tensor *sums = dt_scatter_add(g, dt_linear(g, I(g, "edges"), P(g, "w_edge"), NULL), I(g, "col"), h); /* [N,4] */
    dt_tensor *maps = dt_split(g, dt_split(g, dt_merge(g, turned), 2), 2); /* [N,2,2,2] */
    maps = dt_group_norm_maps(g, maps, 1, dt_slice(g, P(g, "gamma"), 2, 2), dt_slice(g, P(g, "beta"), 2, 2));
    dt_tensor *kernel = dt_split(g, dt_split(g, P(g, "w_map"), 2), 2);                   /* [3,2,2,2] */
    dt_tensor *seen = dt_tanh(g, dt_conv2d(g, maps, kernel, P(g, "b_map"), 1, 1, 0, 1)); /* [N,3,1,3] */
    dt_tensor *normal = dt_group_norm(g, h, 2, P(g, "gamma"), P(g, "beta"));
    dt_tensor *least = dt_reduce(g, DT_REDUCE_MIN, turned); /* [N,2] */
    dt_tensor *draw = dt_softmax(g, dt_add(g, h, dt_gumbel_noise(g, I(g, "key"), 8, 1)));
    dt_tensor *unread = dt_noise_of(g, I(g, "key"), 2, DT_NOISE_NORMAL, 1);
    (void)g->api->output(g, "top", top);
    (void)g->api->output(g, "drawn", draw);
    (void)g->api->loss(g, "top", dt_sum(g, dt_mul(g, top, top)), 1, "N");
    (void)g->api->loss(g, "best", dt_sum(g, best), 1, "N");
    (void)g->api->loss(g, "least", dt_sum(g, dt_mul(g, least, dt_add(g, number, unread))), 1, "N");
    (void)g->api->loss(g, "sums", dt_sum(g, dt_mul(g, sums, dt_slice(g, normal, 3, 4))), 1, "N");
    (void)g->api->loss(g, "draw", dt_sum(g, dt_mul(g, draw, row)), 1, "N");
    (void)g->api->loss(g, "seen", dt_sum(g, dt_mul(g, seen, seen)), 1, "N");
}

static const param_spec params_choices[] = {{"w0", 8, 5},     {"b0", 8, 0},    {"scale", 1, 0},
                                            {"w_edge", 4, 3}, {"gamma", 8, 0}, {"beta", 8, 0},
                                            {"w_map", 3, 8},  {"b_map", 3, 0}, {NULL, 0, 0}};
static const model model_choices = {params_choices, record_choices};

static const struct {
    const char *name;
    const model *m;
} models[] = {{"mlp", &model_mlp}, {"gat", &model_gat},       {"lstm", &model_lstm}, {"gru", &model_gru},
              {"mix", &model_mix}, {"policy", &model_policy}, {"axis", &model_axis}, {"choices", &model_choices}};
enum { N_MODELS = sizeof(models) / sizeof(models[0]) };

#endif
