/* SPDX-License-Identifier: Apache-2.0
 *
 * One shipped model in a fake host over the real graph: created from its options, recorded, with its first values.
 * Threads: one.
 */
#ifndef DTRAIN_TESTS_MODELS_BENCH_H
#define DTRAIN_TESTS_MODELS_BENCH_H

#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */

#include "base/err.h"
#include "engine/graph/plan.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct registry {
    dt_params reg; /* first */
    dt_param_table table;
    uint32_t fails_at; /* the n-th parameter from now is refused; 0: none */
} registry;

static inline dt_status registry_add(dt_params *reg, const char *name, const int64_t *dim, uint32_t n_dims,
                                     uint32_t init, double a)
{
    registry *r = (registry *)reg;
    return r->fails_at > 0 && --r->fails_at == 0 ? DT_EINVAL
                                                 : dt_param_table_add(&r->table, "m", name, dim, n_dims, init, a);
}

typedef struct bench {
    mock_host host;
    const dt_component *c;
    const dt_model_ops *ops;
    void *config, *self;
    registry r;
    const dt_port *in, *out;
    uint32_t n_in, n_out;
    uint32_t not_given; /* optional inputs that are not offered, by bit; set before recording */
    dt_graph *g;
    dt_tensor *to[8];
    float *params;
    double *wide, *grads; /* where a test computes in double: the same parameters, and gradients */
} bench;

static inline dt_status bench_create(bench *b, const char *id, const char *const *set, const dt_dim *dims, uint32_t n)
{
    memset(b, 0, sizeof(*b));
    mock_host_init(&b->host);
    b->c = mock_load("models", id, id);
    assert_non_null(b->c);
    b->ops = b->c->ops;
    b->config = mock_config(b->c, set);
    b->self = calloc(1, b->c->state_size);
    return b->ops->create(b->self, &b->host.host, b->config, dims, n);
}

/* Whichever parameter is refused, the model says so. */
static inline void bench_refuse(bench *b)
{
    for (uint32_t n = 1, left = 0; left == 0; n++) {
        registry r = {.reg = {.struct_size = sizeof(dt_params), .add = registry_add}, .fails_at = n};
        const dt_status st = b->ops->params(b->self, &r.reg);
        left = r.fails_at;
        dt_param_table_fini(&r.table);
        assert_int_equal(st, left > 0 ? DT_OK : DT_EINVAL);
    }
}

/* After create: recorded in a graph of its own, over the symbols given. */
static inline void bench_record(bench *b, const char *const *symbol, uint32_t n_symbols)
{
    bench_refuse(b);
    b->r = (registry){.reg = {.struct_size = sizeof(dt_params), .add = registry_add}};
    assert_int_equal(b->ops->params(b->self, &b->r.reg), DT_OK);
    b->in = b->ops->inputs(b->self, &b->n_in);
    b->out = b->ops->outputs(b->self, &b->n_out);
    const dt_graph_desc d = {
        .symbol = symbol, .n_symbols = n_symbols, .field = b->in, .n_fields = b->n_in, .params = &b->r.table};
    assert_int_equal(dt_graph_create(&d, &b->g), DT_OK);
    dt_graph_set_scope(b->g, "m");
    dt_tensor *from[16] = {NULL};
    for (uint32_t i = 0; i < b->n_in; i++) {
        from[i] = b->not_given >> i & 1 ? NULL : b->g->api->input(b->g, b->in[i].name);
    }
    if (b->ops->forward(b->self, b->g, from, b->to) != DT_OK) {
        fail_msg("%s: %s", b->c->id, dt_error_text());
    }
    dt_graph_set_scope(b->g, "");
    for (uint32_t i = 0; i < b->n_out; i++) { /* every output has the shape its port promises */
        char want[MOCK_TEXT];
        dt_str got = {0};
        snprintf(want, sizeof(want), "%s f32", b->out[i].dims);
        dt_graph_shape_text(b->to[i], &got);
        assert_string_equal(dt_str_text(&got), want);
        dt_str_fini(&got);
        assert_int_equal(b->g->api->output(b->g, b->out[i].name, b->to[i]), DT_OK);
    }
}

/* a model of agents alone: created, recorded, with its first values */
static inline void bench_open(bench *b, const char *id, const char *const *set, const dt_dim *dims, uint32_t n)
{
    static const char *const symbol[] = {"B", "A"};
    assert_int_equal(bench_create(b, id, set, dims, n), DT_OK);
    assert_memory_equal(id, b->c->role, strlen(b->c->role)); /* it is named after its role */
    bench_record(b, symbol, 2);
    b->params = aligned_alloc(64, (size_t)b->r.table.total * sizeof(float) + 64);
    assert_int_equal(dt_param_table_init(&b->r.table, 11, b->params), DT_OK);
}

static inline void bench_close(bench *b)
{
    dt_graph_destroy(b->g);
    dt_param_table_fini(&b->r.table);
    b->ops->destroy(b->self);
    assert_int_equal(b->host.n_live, 0);
    free(b->self);
    free(b->config);
    free(b->params);
    free(b->wide);
    free(b->grads);
}

static inline const float *param(const bench *b, const char *name)
{
    char full[MOCK_NAME + 2];
    snprintf(full, sizeof(full), "m.%s", name);
    const dt_param *p = dt_param_table_find(&b->r.table, full);
    if (p == NULL) {
        fail_msg("%s registers no %s", b->c->id, name);
        return NULL;
    }
    return b->params + p->offset;
}

static inline void assert_port(const dt_port *p, const char *name, const char *dims)
{
    assert_string_equal(p->name, name);
    assert_string_equal(p->dims, dims);
    assert_int_equal(p->dtype, DT_F32);
}

static inline void take(dt_exec *e, const char *name, float *out, size_t n)
{
    memcpy(out, dt_exec_output(e, name)->data, n * sizeof(*out));
}

/* Runs the recorded graph on the reference kernels; live: what each symbol counts. */
static inline dt_exec *bench_execute(const bench *b, const int64_t *live, const void *const *field, dt_plan **plan_p)
{
    const dt_plan_desc pd = {.kernels = DT_KERNELS_REF32, .reuse = true, .cap = live};
    const dt_kernel_run kernel = {0};
    const dt_exec_feed feed = {.size = live, .field = (void *const *)field, .params = b->params, .run = &kernel};
    dt_exec *e = NULL;
    assert_int_equal(dt_plan_compile(b->g, &pd, plan_p), DT_OK);
    assert_int_equal(dt_exec_create(*plan_p, &e), DT_OK);
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    return e;
}

/* y = W x + b in double, with the parameters <name>.w and <name>.b */
static inline void bench_linear(const bench *b, const char *name, const double *x, int n_in, double *y, int n_out)
{
    char text[MOCK_NAME];
    snprintf(text, sizeof(text), "%.60s.w", name);
    const float *w = param(b, text);
    snprintf(text, sizeof(text), "%.60s.b", name);
    const float *bias = param(b, text);
    for (int i = 0; i < n_out; i++) {
        y[i] = (double)bias[i];
        for (int k = 0; k < n_in; k++) {
            y[i] += (double)w[i * n_in + k] * x[k];
        }
    }
}

/* Values in [-1, 1] that differ from place to place. */
static inline double bench_value(int i)
{
    return (double)(i * 37 % 101) / 50 - 1;
}

#endif
