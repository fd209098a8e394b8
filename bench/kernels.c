/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of the CPU kernels at the sizes of the guide, products compared with oneDNN's own numbers. Not part of make
 * check:
 *   make bench/kernels && bench/kernels [filter]        DTRAIN_CPU_ISA=avx2 bench/kernels
 * Each row is the first eighth of many runs on one thread, sorted. Shared machines change speed from second to
 * second: compare columns of one row, not rows of two runs.
 */
#include <config.h>

#include <dnnl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend/cpu/isa.h"
#include "engine/backend/kernel.h"
#include "base/clock.h"
#include "base/mem.h"
#include "engine/optim/optim.h"

enum { MAX_TENSORS = 16, REPEATS = 31 };

typedef struct bench {
    dt_attr attr;
    dt_view in[MAX_TENSORS], out[MAX_TENSORS];
    void *owned[2 * MAX_TENSORS];
    uint32_t n_in, n_out, n_owned;
} bench;

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* the faster end of many: what the kernel takes when nobody else wants the core */
static double fast(double *t, int n)
{
    qsort(t, (size_t)n, sizeof(*t), compare);
    return t[n / 8];
}

static void *values(bench *b, int64_t n, double scale)
{
    float *p = dt_alloc((size_t)n * 4 + 64);
    uint32_t bits = 12345u + b->n_owned; /* a linear congruence will do */
    for (int64_t i = 0; i < n; i++) {
        bits = bits * 1664525u + 1013904223u;
        p[i] = (float)(scale * ((double)bits * 0x1p-32 - 0.5));
    }
    b->owned[b->n_owned++] = p;
    return p;
}

static dt_view view(bench *b, int32_t rank, int64_t d0, int64_t d1, int64_t d2)
{
    dt_view v = {.rank = rank, .dim = {d0, d1, d2}, .dtype = DT_F32};
    v.data = values(b, dt_view_count(&v), 2);
    return v;
}

static void in(bench *b, int32_t rank, int64_t d0, int64_t d1, int64_t d2)
{
    b->in[b->n_in++] = view(b, rank, d0, d1, d2);
}

static void out(bench *b, int32_t rank, int64_t d0, int64_t d1, int64_t d2)
{
    b->out[b->n_out++] = view(b, rank, d0, d1, d2);
}

static void absent(bench *b)
{
    b->n_in++;
}

/* complete graphs of n vehicles, as in a scene */
static void graph(bench *b, int64_t N, int64_t n)
{
    int32_t *rowptr = values(b, N + 1, 0), *col = values(b, N * n, 0);
    rowptr[0] = 0;
    for (int64_t i = 0; i < N; i++) {
        rowptr[i + 1] = (int32_t)((i + 1) * n);
        for (int64_t k = 0; k < n; k++) {
            col[i * n + k] = (int32_t)(i / n * n + k);
        }
    }
    b->in[b->n_in++] = (dt_view){.data = rowptr, .rank = 1, .dim = {N + 1}, .dtype = DT_I32};
    b->in[b->n_in++] = (dt_view){.data = col, .rank = 1, .dim = {N * n}, .dtype = DT_I32};
}

static void bench_free(bench *b)
{
    for (uint32_t i = 0; i < b->n_owned; i++) {
        dt_free(b->owned[i]);
    }
}

/* ns per call */
static double time_kernel_of(uint32_t op, dt_kernel_set set, bench *b)
{
    static const dt_kernel_run run = {.seed = 1, .training = 1};
    dt_kernel *kernel = dt_kernel_find(op, set);
    dt_kernel_args a = {&b->attr, &run, b->in, b->out, b->n_in, b->n_out, NULL, NULL, NULL};
    a.scratch = dt_alloc(dt_kernel_scratch_bytes(op, DT_KERNELS_CPU, &b->attr, b->in, b->out) + 64);
    double t[REPEATS], one = 0;
    int64_t n = 1;
    for (int i = 0; i < REPEATS; i++) {
        const double start = dt_clock_s();
        for (int64_t k = 0; k < n; k++) {
            kernel(&a);
        }
        t[i] = (dt_clock_s() - start) / (double)n;
        one = i == 2 ? t[i] : one;
        if (i == 2) { /* warm: about a millisecond each from here on */
            n = one > 1e-3 ? 1 : (int64_t)(1e-3 / one) + 1;
        }
    }
    dt_free(a.scratch);
    return fast(t + 3, REPEATS - 3) * 1e9;
}

static double time_kernel(uint32_t op, bench *b)
{
    return time_kernel_of(op, DT_KERNELS_CPU, b);
}

/* ---- the library compared with: oneDNN's matmul primitive, made for exactly these sizes
 * ------------------------------ */

/* C[M,N] (+)= A[M,K] B[K,N], A and B of the given type, rows contiguous unless transposed; ns per call, 0 when it is
 * refused */
static double time_dnnl(dnnl_data_type_t type, bool ta, bool tb, int64_t M, int64_t N, int64_t K, void *a, void *b,
                        bool accum, void *c)
{
    static dnnl_engine_t engine;
    static dnnl_stream_t stream;
    if (engine == NULL && (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success ||
                           dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) != dnnl_success)) {
        return 0;
    }
    const dnnl_dims_t a_dim = {M, K}, a_stride = {ta ? 1 : K, ta ? M : 1};
    const dnnl_dims_t b_dim = {K, N}, b_stride = {tb ? 1 : N, tb ? K : 1};
    const dnnl_dims_t c_dim = {M, N}, c_stride = {N, 1};
    dnnl_memory_desc_t md[3];
    dnnl_matmul_desc_t desc;
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_memory_t memory[4] = {NULL};
    double t[REPEATS] = {0};
    dnnl_memory_desc_init_by_strides(&md[0], 2, a_dim, type, a_stride);
    dnnl_memory_desc_init_by_strides(&md[1], 2, b_dim, type, b_stride);
    dnnl_memory_desc_init_by_strides(&md[2], 2, c_dim, dnnl_f32, c_stride);
    dnnl_matmul_desc_init(&desc, &md[0], &md[1], NULL, &md[2]);
    dnnl_primitive_attr_create(&attr);
    dnnl_post_ops_create(&ops);
    if (accum) {
        dnnl_post_ops_append_sum(ops, 1.0f);
    }
    dnnl_primitive_attr_set_post_ops(attr, ops);
    dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (dnnl_primitive_desc_create(&pd, &desc, attr, engine, NULL) == dnnl_success &&
        dnnl_primitive_create(&primitive, pd) == dnnl_success) {
        const dnnl_memory_desc_t *pad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
        dnnl_memory_create(&memory[0], &md[0], engine, a);
        dnnl_memory_create(&memory[1], &md[1], engine, b);
        dnnl_memory_create(&memory[2], &md[2], engine, c);
        dnnl_memory_create(&memory[3], pad, engine, DNNL_MEMORY_ALLOCATE);
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, memory[0]},
                                        {DNNL_ARG_WEIGHTS, memory[1]},
                                        {DNNL_ARG_DST, memory[2]},
                                        {DNNL_ARG_SCRATCHPAD, memory[3]}};
        for (int i = 0; i < REPEATS; i++) {
            const int n = 1 + (int)(1e8 / (double)(M * N * K));
            const double start = dt_clock_s();
            for (int k = 0; k < n; k++) {
                dnnl_primitive_execute(primitive, stream, 4, args);
            }
            t[i] = (dt_clock_s() - start) / n;
        }
    }
    for (int i = 0; i < 4; i++) {
        dnnl_memory_destroy(memory[i]);
    }
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(pd);
    dnnl_post_ops_destroy(ops);
    dnnl_primitive_attr_destroy(attr);
    return fast(t + 3, REPEATS - 3) * 1e9;
}

/* the upper half of each float; for speed it does not matter that this is no rounding */
static void *halves(bench *b, const dt_view *v)
{
    const int64_t n = dt_view_count(v);
    uint16_t *p = values(b, (n + 1) / 2, 0);
    for (int64_t i = 0; i < n; i++) {
        memcpy(&p[i], (const char *)v->data + 4 * i + 2, 2);
    }
    return p;
}

/* forward, dx, dw of x[R,K] w[M,K] -> y[R,M]: the op in a kernel set, and the library */
static void product(int64_t R, int64_t K, int64_t M, dt_kernel_set set)
{
    const double flops = 2.0 * (double)(R * K * M);
    bench f = {0}, x = {0}, w = {0};
    in(&f, 2, R, K, 0);
    in(&f, 2, M, K, 0);
    in(&f, 1, M, 0, 0);
    out(&f, 2, R, M, 0);
    in(&x, 2, R, M, 0);
    in(&x, 2, M, K, 0);
    out(&x, 2, R, K, 0);
    in(&w, 2, R, K, 0);
    in(&w, 2, R, M, 0);
    out(&w, 2, M, K, 0);
    w.out[0].accum = 1;
    const double t[3] = {time_kernel_of(DT_OPX_LINEAR, set, &f), time_kernel_of(DT_OPX_LINEAR_DX, set, &x),
                         time_kernel_of(DT_OPX_LINEAR_DW, set, &w)};
    const bool half = set == DT_KERNELS_CPU_BF16;
    const dnnl_data_type_t type = half ? dnnl_bf16 : dnnl_f32;
    void *left[3] = {f.in[0].data, x.in[0].data, w.in[1].data}, *right[3] = {f.in[1].data, x.in[1].data, w.in[0].data};
    if (half) {
        const dt_view *view[6] = {&f.in[0], &x.in[0], &w.in[1], &f.in[1], &x.in[1], &w.in[0]};
        for (int i = 0; i < 3; i++) {
            left[i] = halves(&f, view[i]);
            right[i] = halves(&f, view[3 + i]);
        }
    }
    const double u[3] = {time_dnnl(type, false, true, R, M, K, left[0], right[0], false, f.out[0].data),
                         time_dnnl(type, false, false, R, K, M, left[1], right[1], false, x.out[0].data),
                         time_dnnl(type, true, false, M, K, R, left[2], right[2], true, w.out[0].data)};
    char name[64];
    snprintf(name, sizeof(name), "%lld, %lld, %lld", (long long)R, (long long)K, (long long)M);
    printf("%-8s %-20s %7.1f %7.1f %7.1f   %7.1f %7.1f %7.1f\n", half ? "bf16" : "fp32", name, flops / t[0],
           flops / t[1], flops / t[2], flops / u[0], flops / u[1], flops / u[2]);
    bench_free(&f);
    bench_free(&x);
    bench_free(&w);
}

static void products(const char *filter)
{
    static const int64_t shapes[][3] = {
        /* rows, inputs, outputs */
        {16, 256, 256},  {64, 256, 256},  {237, 256, 256},  {256, 256, 256},  {640, 256, 256},  {1000, 256, 256},
        {16, 256, 1024}, {64, 256, 1024}, {237, 256, 1024}, {960, 256, 1024}, {256, 1024, 256}, {256, 9, 256},
        {256, 64, 64},   {237, 640, 640}, {64, 640, 2560},  {237, 640, 2560}, {960, 256, 9},    {256, 256, 1},
    };
    printf("%-8s %-20s %7s %7s %7s   %7s %7s %7s   (GF/s; the op, then bare oneDNN)\n", "", "rows, in, out", "forward",
           "dx", "dw", "forward", "dx", "dw");
    const bool has_bf16 = dt_cpu_bf16_check() == DT_OK;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const int64_t *s = shapes[i];
        char name[64];
        snprintf(name, sizeof(name), "%lld, %lld, %lld", (long long)s[0], (long long)s[1], (long long)s[2]);
        if (strstr("products", filter) == NULL && strstr(name, filter) == NULL) {
            continue;
        }
        product(s[0], s[1], s[2], DT_KERNELS_CPU);
        if (has_bf16) {
            product(s[0], s[1], s[2], DT_KERNELS_CPU_BF16);
        }
    }
}

static void report(const char *filter, const char *name, uint32_t op, bench *b, double flops, double bytes)
{
    if (strstr(name, filter) != NULL) {
        const double ns = time_kernel(op, b);
        printf("%-34s %11.0f ns %9.1f GF/s %9.1f GB/s\n", name, ns, flops / ns, bytes / ns);
    }
    bench_free(b);
    memset(b, 0, sizeof(*b));
}

static void attention(const char *filter)
{
    const int64_t N = 256, n = 16, E = N * n, D = 256, H = 8;
    const double products_flops = 2.0 * (double)(E * D);
    bench b = {.attr = {{H}, {0.2}}};
    in(&b, 2, N, D, 0);
    in(&b, 1, D, 0, 0);
    in(&b, 1, D, 0, 0);
    in(&b, 2, E, 4, 0);
    in(&b, 2, H, 4, 0);
    graph(&b, N, n);
    out(&b, 2, N, D, 0);
    out(&b, 2, E, H, 0);
    report(filter, "gat, 16 scenes of 16", DT_OPX_GAT, &b, products_flops, 0);

    b.attr = (dt_attr){{H}, {0.2}};
    in(&b, 2, N, D, 0);
    in(&b, 2, N, D, 0);
    in(&b, 1, D, 0, 0);
    in(&b, 1, D, 0, 0);
    in(&b, 2, E, 4, 0);
    in(&b, 2, H, 4, 0);
    graph(&b, N, n);
    in(&b, 2, E, H, 0);
    out(&b, 2, N, D, 0);
    out(&b, 1, D, 0, 0);
    out(&b, 1, D, 0, 0);
    b.n_out++; /* edge features are data */
    out(&b, 2, H, 4, 0);
    report(filter, "gat backward", DT_OPX_GAT_BWD, &b, 2 * products_flops, 0);

    b.attr = (dt_attr){{H}, {0}};
    in(&b, 2, N, D, 0);
    in(&b, 2, N, D, 0);
    in(&b, 2, N, D, 0);
    in(&b, 2, E, H, 0);
    graph(&b, N, n);
    out(&b, 2, N, D, 0);
    out(&b, 2, E, H, 0);
    report(filter, "graph qk, 16 scenes of 16", DT_OPX_GRAPH_QK, &b, 2 * products_flops, 0);

    b.attr = (dt_attr){{H}, {0}};
    in(&b, 2, N, D, 0);
    in(&b, 2, N, D, 0);
    in(&b, 2, N, D, 0);
    in(&b, 2, N, D, 0);
    in(&b, 2, E, H, 0);
    graph(&b, N, n);
    in(&b, 2, E, H, 0);
    out(&b, 2, N, D, 0);
    out(&b, 2, N, D, 0);
    out(&b, 2, N, D, 0);
    out(&b, 2, E, H, 0);
    report(filter, "graph qk backward", DT_OPX_GRAPH_QK_BWD, &b, 4 * products_flops, 0);
}

static void recurrence(const char *filter)
{
    static const int64_t sequences[] = {16, 64};
    for (int i = 0; i < 2; i++) {
        const int64_t T = 15, S = sequences[i], H = 256;
        char name[64];
        bench b = {0};
        in(&b, 3, T, S, 4 * H);
        in(&b, 2, 4 * H, H, 0);
        absent(&b);
        out(&b, 3, T, S, H);
        out(&b, 3, T, S, 4 * H);
        out(&b, 3, T, S, H);
        snprintf(name, sizeof(name), "lstm, T 15, H 256, S %lld", (long long)S);
        report(filter, name, DT_OPX_LSTM, &b, 2.0 * (double)((T - 1) * S * 4 * H * H), 0);
        in(&b, 3, T, S, H);
        in(&b, 3, T, S, H);
        in(&b, 3, T, S, 4 * H);
        in(&b, 3, T, S, H);
        in(&b, 2, 4 * H, H, 0);
        absent(&b);
        out(&b, 3, T, S, 4 * H);
        out(&b, 2, 4 * H, H, 0);
        b.out[1].accum = 1;
        snprintf(name, sizeof(name), "lstm backward, S %lld", (long long)S);
        report(filter, name, DT_OPX_LSTM_BWD, &b, 4.0 * (double)((T - 1) * S * 4 * H * H), 0);
        in(&b, 3, T, S, 3 * H);
        in(&b, 2, 3 * H, H, 0);
        in(&b, 1, 3 * H, 0, 0);
        absent(&b);
        out(&b, 3, T, S, H);
        out(&b, 3, T, S, 4 * H);
        snprintf(name, sizeof(name), "gru, S %lld", (long long)S);
        report(filter, name, DT_OPX_GRU, &b, 2.0 * (double)((T - 1) * S * 3 * H * H), 0);
        in(&b, 3, T, S, H);
        in(&b, 3, T, S, H);
        in(&b, 3, T, S, 4 * H);
        in(&b, 2, 3 * H, H, 0);
        absent(&b);
        out(&b, 3, T, S, 3 * H);
        out(&b, 2, 3 * H, H, 0);
        out(&b, 1, 3 * H, 0, 0);
        snprintf(name, sizeof(name), "gru backward, S %lld", (long long)S);
        report(filter, name, DT_OPX_GRU_BWD, &b, 4.0 * (double)((T - 1) * S * 3 * H * H), 0);
    }
}

static void elements(const char *filter)
{
    const int64_t R = 256, D = 256;
    const double mb = (double)(R * D * 4);
    static const char *const names[] = {"relu", "leaky", "elu", "gelu", "tanh", "sigmoid", "softplus", "exp", "log"};
    for (int fn = DT_FN_RELU; fn <= DT_FN_LOG; fn++) {
        char name[64];
        bench b = {.attr = {{fn}, {1}}};
        in(&b, 2, R, D, 0);
        out(&b, 2, R, D, 0);
        snprintf(name, sizeof(name), "%s, 256 x 256", names[fn - 1]);
        report(filter, name, DT_OPX_UNARY, &b, 0, 2 * mb);
        b.attr = (dt_attr){{fn}, {1}};
        in(&b, 2, R, D, 0);
        in(&b, 2, R, D, 0);
        out(&b, 2, R, D, 0);
        snprintf(name, sizeof(name), "%s backward", names[fn - 1]);
        report(filter, name, DT_OPX_UNARY_BWD, &b, 0, 3 * mb);
    }
    bench b = {.attr = {{DT_BIN_ADD}, {0}}};
    in(&b, 2, R, D, 0);
    in(&b, 2, R, D, 0);
    out(&b, 2, R, D, 0);
    report(filter, "add", DT_OPX_BINARY, &b, 0, 3 * mb);
    b.attr.f[0] = 1e-5;
    in(&b, 2, R, D, 0);
    in(&b, 1, D, 0, 0);
    in(&b, 1, D, 0, 0);
    in(&b, 2, R, D, 0);
    out(&b, 2, R, D, 0);
    out(&b, 2, R, 2, 0);
    report(filter, "layernorm + residual", DT_OPX_LAYERNORM, &b, 0, 3 * mb);
    in(&b, 2, R, D, 0);
    in(&b, 2, R, D, 0);
    in(&b, 1, D, 0, 0);
    in(&b, 2, R, D, 0);
    in(&b, 2, R, 2, 0);
    out(&b, 2, R, D, 0);
    out(&b, 1, D, 0, 0);
    out(&b, 1, D, 0, 0);
    report(filter, "layernorm backward", DT_OPX_LAYERNORM_BWD, &b, 0, 4 * mb);
    in(&b, 2, R, D, 0);
    out(&b, 1, D, 0, 0);
    report(filter, "column sum", DT_OPX_COLSUM, &b, 0, mb);
    in(&b, 2, R, D, 0);
    in(&b, 2, R, D, 0);
    out(&b, 2, R, 2 * D, 0);
    report(filter, "concat", DT_OPX_CONCAT, &b, 0, 4 * mb);
    b.attr = (dt_attr){{1}, {0.1}};
    in(&b, 2, R, D, 0);
    b.in[b.n_in++] = (dt_view){.data = values(&b, 2 * R, 0), .rank = 1, .dim = {R}, .dtype = DT_I64};
    out(&b, 2, R, D, 0);
    report(filter, "dropout", DT_OPX_DROPOUT, &b, 0, 2 * mb);
    in(&b, 2, 64 * 25, 2, 0);
    in(&b, 2, 64 * 25, 2, 0);
    in(&b, 2, 64 * 25, 2, 0);
    in(&b, 1, 64 * 25, 0, 0);
    out(&b, 1, 1, 0, 0);
    report(filter, "gaussian nll, 64 x 25 x 2", DT_OPX_GAUSSIAN_NLL, &b, 0, 64 * 25 * 28);
    in(&b, 1, 1, 0, 0);
    values(&b, 2, 0);
    b.in[0].data = b.owned[b.n_owned - 1];
    in(&b, 2, 64 * 25, 2, 0);
    in(&b, 2, 64 * 25, 2, 0);
    in(&b, 2, 64 * 25, 2, 0);
    in(&b, 1, 64 * 25, 0, 0);
    out(&b, 2, 64 * 25, 2, 0);
    out(&b, 2, 64 * 25, 2, 0);
    report(filter, "gaussian nll backward", DT_OPX_GAUSSIAN_NLL_BWD, &b, 0, 64 * 25 * 44);
}

static void optimizer(const char *filter)
{
    const int64_t n = 1500000;
    bench b = {0};
    float *p = values(&b, n, 1), *g = values(&b, n, 1), *m = values(&b, n, 0), *v = values(&b, n, 0);
    double t[2][9];
    volatile double sink = 0;
    for (int i = 0; i < 9 && strstr("adamw", filter) != NULL; i++) {
        const dt_optim_step s = {.kind = DT_OPTIMIZER_ADAMW,
                                 .lr = 1e-3,
                                 .beta1 = 0.9,
                                 .beta2 = 0.999,
                                 .eps = 1e-8,
                                 .weight_decay = 0.01,
                                 .grad_scale = 1,
                                 .step = (uint64_t)i + 1};
        double start = dt_clock_s();
        const dt_optim_consts k = dt_optim_constants(&s);
        dt_optim_apply(s.kind, &k, p, g, m, v, n);
        t[0][i] = dt_clock_s() - start;
        start = dt_clock_s();
        sink += dt_optim_sum_squares(g, 0, n);
        t[1][i] = dt_clock_s() - start;
    }
    if (strstr("adamw", filter) != NULL) {
        printf("%-34s %11.0f ns %9.2f ns/parameter\n", "adamw, 1.5M parameters", fast(t[0], 9) * 1e9,
               fast(t[0], 9) * 1e9 / (double)n);
        printf("%-34s %11.0f ns %9.2f ns/parameter\n", "sum of squares", fast(t[1], 9) * 1e9,
               fast(t[1], 9) * 1e9 / (double)n);
    }
    bench_free(&b);
}

/* ---- convolutions next to LINEAR of what two UNFOLDs and a PERMUTE make of x ------------------------------------- */

static dt_view view4(bench *b, int64_t d0, int64_t d1, int64_t d2, int64_t d3)
{
    dt_view v = {.rank = 4, .dim = {d0, d1, d2, d3}, .dtype = DT_F32};
    v.data = values(b, dt_view_count(&v), 2);
    return v;
}

/* forward alone: the four kernels one after the other */
static double time_unfolded(int64_t N, int64_t H, int64_t C, int64_t M, int64_t taps)
{
    bench columns = {.attr = {{taps, 1, taps / 2, 0}, {0}}}, rows = columns, order = {.attr = {{213}, {0}}},
          linear = {0};
    in(&columns, 3, N * H, H, C);
    out(&columns, 3, N * H, H, taps * C);
    in(&rows, 3, N, H, H * taps * C);
    out(&rows, 3, N, H, taps * H * taps * C);
    order.in[order.n_in++] = view4(&order, N * H, taps, H, taps * C);
    order.out[order.n_out++] = view4(&order, N * H, H, taps, taps * C);
    in(&linear, 2, N * H * H, taps * taps * C, 0);
    in(&linear, 2, M, taps * taps * C, 0);
    in(&linear, 1, M, 0, 0);
    out(&linear, 2, N * H * H, M, 0);
    const double ns = time_kernel(DT_OPX_UNFOLD, &columns) + time_kernel(DT_OPX_UNFOLD, &rows) +
                      time_kernel(DT_OPX_PERMUTE, &order) + time_kernel(DT_OPX_LINEAR, &linear);
    bench_free(&columns);
    bench_free(&rows);
    bench_free(&order);
    bench_free(&linear);
    return ns;
}

static void convolutions(const char *filter)
{
    static const int64_t shapes[][5] = {
        {64, 12, 32, 64, 3}, {16, 32, 16, 32, 3}, {256, 8, 7, 32, 3}, {16, 16, 64, 64, 5}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const int64_t N = shapes[i][0], H = shapes[i][1], C = shapes[i][2], M = shapes[i][3], taps = shapes[i][4];
        const double flops = 2.0 * (double)(N * H * H * M * taps * taps * C);
        bench f = {.attr = {{1, taps / 2, taps / 2, 1}, {0}}};
        char name[64];
        snprintf(name, sizeof(name), "conv2d, %lld x %lld x %lld x %lld to %lld by %lld", (long long)N, (long long)H,
                 (long long)H, (long long)C, (long long)M, (long long)taps);
        if (strstr(name, filter) == NULL) {
            continue;
        }
        const dt_view x = view4(&f, N, H, H, C), w = view4(&f, M, taps, taps, C), y = view4(&f, N, H, H, M);
        bench dx = {.attr = f.attr, .in = {y, w, x}, .out = {x}, .n_in = 3, .n_out = 1};
        bench dw = {.attr = f.attr, .in = {x, y, w}, .out = {w}, .n_in = 3, .n_out = 1};
        f.in[0] = x;
        f.in[1] = w;
        f.out[0] = y;
        f.n_in = 2;
        f.n_out = 1;
        printf("%-40s %7.1f %7.1f %7.1f GF/s   unfolded, forward %7.1f GF/s\n", name,
               flops / time_kernel(DT_OPX_CONV2D, &f), flops / time_kernel(DT_OPX_CONV2D_DX, &dx),
               flops / time_kernel(DT_OPX_CONV2D_DW, &dw), flops / time_unfolded(N, H, C, M, taps));
        bench_free(&f);
    }
}

int main(int argc, char **argv)
{
    const char *filter = argc > 1 ? argv[1] : "";
    if (dt_cpu_isa_check() != DT_OK) {
        fprintf(stderr, "DTRAIN_CPU_ISA is not usable here\n");
        return 2;
    }
    omp_set_num_threads(1);
    printf("cpu kernels: %s, bf16: %s\n", dt_cpu_isa(), dt_cpu_bf16_isa());
    products(filter);
    attention(filter);
    convolutions(filter);
    recurrence(filter);
    elements(filter);
    optimizer(filter);
    return 0;
}
