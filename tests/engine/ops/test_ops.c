/* SPDX-License-Identifier: Apache-2.0
 *
 * Every op, every set, every row of cases.c. The checks:
 *   gradients   ref64 derivatives against central differences of the ref64 forward
 *   parity      ref32 and every CPU build this machine runs against ref64, forward and derivative
 *   memory      nothing written outside the outputs, NaN around the inputs and in rows of weight 0 does not spread
 *   NaN         what depends on NaN is NaN (engine/backend/kernel.h)
 *   accum, absent outputs, in place, same bits again and on another thread
 * DT_TOL_SCALE scales the tolerances; 0 prints the residuals and fails nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "engine/graph/op.h"
#include "engine/ops/harness.h"

#define GRADIENT_STEP 1e-6
#define GRADIENT_TOL  1e-7
#define PARITY_TOL    1e-5
#define BF16_TOL      2e-2 /* an exp behind the product makes 2^-9 more */

enum { MAX_GRADIENT_ELEMENTS = 64 };

static double tol_scale = 1;

static const kernel_set sets[] = {
    {"ref64", true, false, 0, NULL},
    {"ref32", false, false, 0, NULL},
    {"cpu base", false, true, DT_CPU_ISA_BASE, NULL},
    {"cpu avx2", false, true, DT_CPU_ISA_AVX2, NULL},
    {"cpu avx512", false, true, DT_CPU_ISA_AVX512, NULL},
    {"cpu avx512_bf16", false, true, DT_CPU_ISA_AVX512_BF16, NULL},
    {"cpu amx_bf16", false, true, DT_CPU_ISA_AMX_BF16, NULL},
};

static bool is_bf16(const kernel_set *l)
{
    return l->is_cpu && l->isa > DT_CPU_ISA_AVX512;
}

/* Not on this machine, or the same kernel as in the set before. */
static bool skips(const kernel_set *l, uint32_t op)
{
    return l->is_cpu && (l->isa > dt_cpu_isa_best() ||
                         (is_bf16(l) && dt_kernel_find_cpu(op, l->isa) == dt_kernel_find_cpu(op, DT_CPU_ISA_AVX512)));
}

/* Runs `check` on the forward call and on every derivative call of every case, in every set but ref64. */
typedef void check_fn(const kernel_set *l, const call *c, double tol, const char *what);

static void for_every_call(check_fn *check)
{
    for (int i = 0; i < n_op_cases; i++) {
        problem p = problem_of(&op_cases[i], NULL, 0);
        const double fp32_tol = PARITY_TOL * tol_scale * fmax(1, sqrt(op_cases[i].sum_length / 1024));
        for (size_t k = 1; k < sizeof(sets) / sizeof(sets[0]); k++) {
            if (skips(&sets[k], op_cases[i].op)) {
                continue;
            }
            const double tol = is_bf16(&sets[k]) ? BF16_TOL * tol_scale : fp32_tol;
            char what[128];
            const call forward = forward_call(&p, p.out);
            check(&sets[k], &forward, tol, p.row->name);
            for (int d = 0; d < 3 && p.row->derivative[d].op != 0; d++) {
                tensor grads[DT_KERNEL_MAX_OUT];
                uint32_t of[DT_KERNEL_MAX_OUT];
                const call c = derivative_call(&p, &p.row->derivative[d], grads, of);
                run(&ref64, &c, p.row->name);
                snprintf(what, sizeof(what), "%s, derivative %d", p.row->name, d);
                check(&sets[k], &c, tol, what);
                free_outputs(grads, c.n_out);
            }
        }
        problem_free(&p);
    }
}

/* ---- the checks -------------------------------------------------------------------------------------------------- */

/* up and down: outputs to work with. The difference is taken per output, before the sum, or it would drown in it. */
static void check_gradient(problem *p, const op_derivative *d, const tensor *grad, uint32_t input, tensor *up,
                           tensor *down)
{
    const uint32_t reads = derivative_reads(d);
    tensor *x = &p->in[input];
    const int64_t stride = x->n / MAX_GRADIENT_ELEMENTS + 1;
    double worst = 0;
    for (int64_t i = 0; i < x->n; i += stride) {
        const double keep = x->f[i], h = GRADIENT_STEP * fmax(1, fabs(isnan(keep) ? 1 : keep));
        const call above = forward_call(p, up), below = forward_call(p, down);
        x->f[i] = keep + h;
        run(&ref64, &above, p->row->name);
        x->f[i] = keep - h;
        run(&ref64, &below, p->row->name);
        x->f[i] = keep;
        double want = 0, got = 0;
        for (uint32_t o = 0; o < p->n_out; o++) {
            for (int64_t k = 0; k < p->g[o].n && (reads >> o & 1) != 0; k++) {
                want += p->g[o].f[k] * (up[o].f[k] - down[o].f[k]) / (2 * h);
            }
        }
        for (int64_t k = i; k < grad->n; k += x->n) {
            got += grad->f[k];
        }
        const double error = fabs(got - want) / fmax(1, fabs(want));
        worst = fmax(worst, error);
        if (tol_scale > 0 && !(error <= GRADIENT_TOL * tol_scale)) {
            fail_msg("%s: gradient of input %u at %lld is %.12g, central difference %.12g", p->row->name, input,
                     (long long)i, got, want);
        }
    }
    if (tol_scale == 0) {
        printf("gradient  %-26s input %u  %.2e\n", p->row->name, input, worst);
    }
}

static void test_gradients_are_central_differences(void **state)
{
    for (int i = 0; i < n_op_cases; i++) {
        problem p = problem_of(&op_cases[i], NULL, 0);
        tensor up[DT_KERNEL_MAX_OUT], down[DT_KERNEL_MAX_OUT];
        call keep = forward_call(&p, p.out), again;
        clone_outputs(&keep, &again, up);
        clone_outputs(&keep, &again, down);
        for (int d = 0; d < 3 && p.row->derivative[d].op != 0; d++) {
            tensor grads[DT_KERNEL_MAX_OUT];
            uint32_t of[DT_KERNEL_MAX_OUT];
            const call c = derivative_call(&p, &p.row->derivative[d], grads, of);
            run(&ref64, &c, p.row->name);
            for (uint32_t k = 0; k < c.n_out; k++) {
                if (p.in[of[k]].n < 8000) { /* the large shapes are there for parity */
                    check_gradient(&p, &p.row->derivative[d], &grads[k], of[k], up, down);
                }
            }
            free_outputs(grads, c.n_out);
        }
        free_outputs(up, p.n_out);
        free_outputs(down, p.n_out);
        problem_free(&p);
    }
}

static void check_parity(const kernel_set *l, const call *c, double tol, const char *what)
{
    tensor got[DT_KERNEL_MAX_OUT];
    call mine;
    clone_outputs(c, &mine, got);
    run(l, &mine, what);
    for (uint32_t k = 0; k < c->n_out; k++) {
        double diff = 0, norm = 0;
        for (int64_t i = 0; i < got[k].n; i++) {
            const double want = c->out[k]->f[i], w = weight_of(want), d = w * (got[k].f[i] - want);
            diff += d * d;
            norm += w * want * w * want;
        }
        const double residual = diff == 0 ? 0 : sqrt(diff) / fmax(sqrt(norm), 1e-3);
        if (tol_scale == 0) {
            printf("parity    %-10s %-40s output %u  %.2e\n", l->name, what, k, residual);
        } else if (!(residual < tol)) {
            fail_msg("%s, set %s, output %u: |difference| / |reference| is %g, allowed %g", what, l->name, k, residual,
                     tol);
        }
    }
    free_outputs(got, c->n_out);
}

static void test_every_kernel_set_agrees_with_ref64(void **state)
{
    for_every_call(check_parity);
}

static void check_accum(const kernel_set *l, const call *c, double tol, const char *what)
{
    tensor plain[DT_KERNEL_MAX_OUT], added[DT_KERNEL_MAX_OUT];
    call one, two;
    clone_outputs(c, &one, plain);
    clone_outputs(c, &two, added);
    run(l, &one, what);
    two.accum = true;
    for (uint32_t k = 0; k < c->n_out; k++) {
        for (int64_t i = 0; i < added[k].n; i++) {
            added[k].f[i] = (float)(i % 7 - 3);
        }
    }
    run(l, &two, what);
    for (uint32_t k = 0; k < c->n_out && tol > 0; k++) {
        for (int64_t i = 0; i < added[k].n; i++) {
            const double want = plain[k].f[i] + (added[k].kind == 'a' ? (double)(i % 7 - 3) : 0);
            if (!(fabs(added[k].f[i] - want) <= tol * fmax(10, fabs(want)))) {
                fail_msg("%s, set %s, output %u at %lld: with accum %g, wanted %g", what, l->name, k, (long long)i,
                         added[k].f[i], want);
            }
        }
    }
    free_outputs(plain, c->n_out);
    free_outputs(added, c->n_out);
}

static void test_accum_adds_to_what_is_there(void **state)
{
    for_every_call(check_accum);
}

static void assert_same_bits(const kernel_set *l, const call *a, const call *b, uint32_t skip, const char *what)
{
    for (uint32_t k = 0; k < a->n_out; k++) {
        if ((skip >> k & 1) == 0 && memcmp(a->out[k]->f, b->out[k]->f, (size_t)a->out[k]->n * sizeof(double)) != 0) {
            fail_msg("%s, set %s, output %u: other bits", what, l->name, k);
        }
    }
}

static void assert_near(const kernel_set *l, const call *a, const call *b, uint32_t skip, double tol, const char *what)
{
    for (uint32_t k = 0; k < a->n_out; k++) {
        for (int64_t i = 0; i < a->out[k]->n && (skip >> k & 1) == 0 && tol > 0; i++) {
            if (!(fabs(a->out[k]->f[i] - b->out[k]->f[i]) <= tol * fmax(1, fabs(a->out[k]->f[i])))) {
                fail_msg("%s, set %s, output %u at %lld: %g and %g", what, l->name, k, (long long)i, a->out[k]->f[i],
                         b->out[k]->f[i]);
            }
        }
    }
}

static void check_absent_outputs(const kernel_set *l, const call *c, double tol, const char *what)
{
    tensor whole[DT_KERNEL_MAX_OUT], part[DT_KERNEL_MAX_OUT];
    call one, two;
    clone_outputs(c, &one, whole);
    run(l, &one, what);
    for (uint32_t skip = 1; skip < (1u << c->n_out) - 1; skip++) {
        if ((skip & 1) != 0 && c->op < 1000) {
            continue; /* the first output of a public op is always wanted */
        }
        clone_outputs(c, &two, part);
        two.null_out = skip;
        run(l, &two, what);
        if (c->op == DT_OPX_LSTM_BWD || c->op == DT_OPX_GRU_BWD) { /* dwh is summed step by step without dxw */
            assert_near(l, &one, &two, skip, tol, what);
        } else {
            assert_same_bits(l, &one, &two, skip, what);
        }
        free_outputs(part, c->n_out);
    }
    free_outputs(whole, c->n_out);
}

static void test_outputs_may_be_absent(void **state)
{
    for_every_call(check_absent_outputs);
}

static bool has_gradient(const call *c)
{
    bool has = false;
    for (uint32_t i = 0; i < c->n_in; i++) {
        has = has || is_gradient(c, i);
    }
    return has;
}

static void assert_nan(const kernel_set *l, const call *c, const char *must, uint32_t in, const char *what)
{
    tensor out[DT_KERNEL_MAX_OUT];
    call nan;
    clone_outputs(c, &nan, out);
    run(l, &nan, what);
    for (uint32_t k = 0; k < c->n_out; k++) {
        const int64_t i = lost_nan(c, must, k, out[k].f);
        if (i >= 0) {
            fail_msg("%s, set %s: NaN in input %u does not reach output %u at %lld, which is %g", what, l->name, in, k,
                     (long long)i, out[k].f[i]);
        }
    }
    free_outputs(out, c->n_out);
}

/* One number of one input; of a derivative, one of a gradient. */
static void check_nan_of_one(const kernel_set *l, const call *c, const char *what)
{
    const bool is_derivative = has_gradient(c);
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (!may_be_nan(c, i) || (is_derivative && !is_gradient(c, i))) {
            continue;
        }
        const int64_t n = c->in[i]->n, at[] = {0, n / 2, n - 1};
        for (int k = 0; k < 3; k++) {
            char *must = depends_on(c, i, at[k]);
            const double keep = c->in[i]->f[at[k]];
            c->in[i]->f[at[k]] = NAN;
            assert_nan(l, c, must, i, what);
            c->in[i]->f[at[k]] = keep;
            free(must);
        }
    }
}

/* All that a derivative reads: what passes a gradient on passes NaN on. */
static void check_nan_of_all(const kernel_set *l, const call *c, const char *what)
{
    char *must = depends_on_gradients(c);
    double *kept[DT_KERNEL_MAX_IN] = {NULL};
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (may_be_nan(c, i) && c->in[i]->kind != 'w') {
            const size_t bytes = (size_t)c->in[i]->n * sizeof(double);
            kept[i] = zalloc(bytes);
            memcpy(kept[i], c->in[i]->f, bytes);
            for (int64_t k = 0; k < c->in[i]->n; k++) {
                c->in[i]->f[k] = NAN;
            }
        }
    }
    if (c->op == DT_OPX_REDUCE_MAX_BWD) { /* the first of each column */
        const int64_t P = c->out[0]->dim[c->out[0]->rank - 1], F = c->out[0]->dim[c->out[0]->rank - 2];
        for (int64_t i = 0; i < c->out[0]->n; i++) {
            must[i] = i / P % F == 0;
        }
    }
    assert_nan(l, c, must, 0, what);
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (kept[i] != NULL) {
            memcpy(c->in[i]->f, kept[i], (size_t)c->in[i]->n * sizeof(double));
            free(kept[i]);
        }
    }
    free(must);
}

static void check_nan(const kernel_set *l, const call *c, double tol, const char *what)
{
    check_nan_of_one(l, c, what);
    if (has_gradient(c)) {
        check_nan_of_all(l, c, what);
    }
    if (l == &sets[1]) {
        check_nan(&sets[0], c, tol, what);
    }
}

static void test_nan_is_never_lost(void **state)
{
    for_every_call(check_nan);
}

typedef struct thread_run {
    const kernel_set *l;
    const call *c;
    const char *what;
} thread_run;

static void *thread_main(void *user)
{
    const thread_run *t = user;
    run(t->l, t->c, t->what);
    return NULL;
}

static void check_same_bits(const kernel_set *l, const call *c, double tol, const char *what)
{
    tensor first[DT_KERNEL_MAX_OUT], second[DT_KERNEL_MAX_OUT], third[DT_KERNEL_MAX_OUT];
    call one, two, three;
    clone_outputs(c, &one, first);
    clone_outputs(c, &two, second);
    clone_outputs(c, &three, third);
    run(l, &one, what);
    void *hole = malloc(4096 + 32); /* the second run gets other addresses */
    run(l, &two, what);
    free(hole);
    pthread_t thread;
    thread_run t = {l, &three, what};
    assert_int_equal(pthread_create(&thread, NULL, thread_main, &t), 0);
    pthread_join(thread, NULL);
    assert_same_bits(l, &one, &two, 0, what);
    assert_same_bits(l, &one, &three, 0, what);
    free_outputs(first, c->n_out);
    free_outputs(second, c->n_out);
    free_outputs(third, c->n_out);
}

static void test_same_bits_again_and_on_any_thread(void **state)
{
    for_every_call(check_same_bits);
}

static void test_in_place(void **state)
{
    for (int i = 0; i < n_op_cases; i++) {
        problem p = problem_of(&op_cases[i], NULL, 0);
        for (size_t k = 1; k < sizeof(sets) / sizeof(sets[0]) && p.row->in_place; k++) {
            if (skips(&sets[k], op_cases[i].op)) {
                continue;
            }
            const call forward = forward_call(&p, p.out);
            call one, two;
            tensor apart[3], within[3];
            clone_outputs(&forward, &one, apart);
            clone_outputs(&forward, &two, within);
            run(&sets[k], &one, p.row->name);
            two.in_place = true;
            run(&sets[k], &two, p.row->name);
            assert_same_bits(&sets[k], &one, &two, 0, p.row->name);
            free_outputs(apart, p.n_out);
            free_outputs(within, p.n_out);
        }
        problem_free(&p);
    }
}

/* Rows do not feel each other: a slice of the rows of a product gives the same bits as the whole. */
static void test_rows_of_linear_do_not_depend_on_the_number_of_rows(void **state)
{
    static const int64_t counts[] = {1, 2, 5, 13, 14, 15, 28, 61};
    for (size_t k = 2; k < sizeof(sets) / sizeof(sets[0]); k++) {
        if (skips(&sets[k], DT_OP_LINEAR)) {
            continue;
        }
        op_draw = 0;
        tensor x = tensor_of("x 61 67", NULL), w = tensor_of("x 71 67", NULL), y = tensor_of("f 61 71", NULL);
        const dt_attr attr = {{0}, {0}};
        tensor absent = {.kind = '-'};
        call c = {.op = DT_OP_LINEAR, .attr = &attr, .in = {&x, &w, &absent}, .out = {&y}, .n_in = 3, .n_out = 1};
        run(&sets[k], &c, "linear");
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            tensor part = tensor_of("f 61 71", NULL);
            tensor few = x;
            few.dim[0] = part.dim[0] = counts[i];
            few.n = counts[i] * 67;
            part.n = counts[i] * 71;
            call d = c;
            d.in[0] = &few;
            d.out[0] = &part;
            run(&sets[k], &d, "linear");
            assert_memory_equal(part.f, y.f, (size_t)part.n * sizeof(double));
            tensor_free(&part);
        }
        tensor_free(&x);
        tensor_free(&w);
        tensor_free(&y);
    }
}

/* Small whole numbers lose nothing in bf16 and their sums nothing in fp32: every set has to find the same bits. */
/* dy whose rows are 0 where is_left says so, in either sign */
static tensor without_rows(const tensor *dy, bool (*is_left)(int64_t r))
{
    tensor y = tensor_of("f 61 71", NULL);
    for (int64_t i = 0; i < dy->n; i++) {
        y.f[i] = !is_left(i / 71) ? dy->f[i] : i % 2 == 0 ? 0.0 : -0.0;
    }
    return y;
}

static bool leaves_none(int64_t r)
{
    return r < 0;
}
static bool leaves_third(int64_t r)
{
    return r % 3 == 1;
}
static bool leaves_most(int64_t r)
{
    return r % 5 != 2 && r != 60;
}
static bool leaves_first(int64_t r)
{
    return r < 40;
}
static bool leaves_last(int64_t r)
{
    return r >= 20;
}
static bool leaves_all(int64_t r)
{
    return r >= 0;
}

static void test_rows_without_gradient_are_zeros_and_change_no_other(void **state)
{
    static bool (*const left_out[])(int64_t r) = {leaves_none,  leaves_third, leaves_most,
                                                  leaves_first, leaves_last,  leaves_all};
    for (size_t k = 2; k < sizeof(sets) / sizeof(sets[0]); k++) {
        if (skips(&sets[k], DT_OPX_LINEAR_DX)) {
            continue;
        }
        op_draw = 0;
        tensor dy = tensor_of("x 61 71", NULL), w = tensor_of("x 71 67", NULL), all = tensor_of("f 61 67", NULL);
        const dt_attr attr = {{0}, {0}};
        call c = {.op = DT_OPX_LINEAR_DX, .attr = &attr, .in = {&dy, &w}, .out = {&all}, .n_in = 2, .n_out = 1};
        run(&sets[k], &c, "linear_dx");
        for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++) {
            tensor part = without_rows(&dy, left_out[i]), dx = tensor_of("f 61 67", NULL);
            call d = c;
            d.in[0] = &part;
            d.out[0] = &dx;
            run(&sets[k], &d, "linear_dx");
            for (int64_t at = 0; at < dx.n; at++) {
                const double want = left_out[i](at / 67) ? 0.0 : all.f[at];
                assert_memory_equal(&dx.f[at], &want, sizeof(want));
            }
            tensor_free(&part);
            tensor_free(&dx);
        }
        tensor_free(&dy);
        tensor_free(&w);
        tensor_free(&all);
    }
}

static void test_products_of_whole_numbers_are_exact(void **state)
{
    static const int64_t sizes[][3] = {{1, 1, 1},     {2, 33, 17},   {16, 32, 16},    {31, 31, 33},   {33, 65, 100},
                                       {61, 513, 71}, {7, 1100, 40}, {203, 64, 1100}, {1031, 40, 48}, {97, 3, 5}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char x_text[32], w_text[32], y_text[32];
        snprintf(x_text, sizeof(x_text), "x %d %d", (int)sizes[i][0], (int)sizes[i][1]);
        snprintf(w_text, sizeof(w_text), "x %d %d", (int)sizes[i][2], (int)sizes[i][1]);
        snprintf(y_text, sizeof(y_text), "x %d %d", (int)sizes[i][0], (int)sizes[i][2]);
        op_draw = i;
        tensor x = tensor_of(x_text, NULL), w = tensor_of(w_text, NULL), g = tensor_of(y_text, NULL),
               absent = {.kind = '-'};
        tensor *const whole[] = {&x, &w, &g};
        for (size_t j = 0; j < 3; j++) {
            for (int64_t k = 0; k < whole[j]->n; k++) {
                whole[j]->f[k] = round(8 * whole[j]->f[k]);
            }
        }
        const dt_attr attr = {{0}, {0}};
        for (int d = 0; d < 3; d++) {
            tensor want = tensor_of(d == 0 ? y_text : d == 1 ? x_text : w_text, NULL), got = want;
            got.f = zalloc((size_t)want.n * sizeof(double));
            call c = {.op = d == 0   ? DT_OPX_LINEAR
                            : d == 1 ? DT_OPX_LINEAR_DX
                                     : DT_OPX_LINEAR_DW,
                      .attr = &attr,
                      .in = {d == 1 ? &g : &x, d == 2 ? &g : &w, &absent},
                      .out = {&want},
                      .n_in = d == 0 ? 3 : 2,
                      .n_out = 1};
            run(&sets[0], &c, "product");
            c.out[0] = &got;
            for (size_t k = 1; k < sizeof(sets) / sizeof(sets[0]); k++) {
                if (!skips(&sets[k], c.op)) {
                    run(&sets[k], &c, "product");
                    if (memcmp(got.f, want.f, (size_t)want.n * sizeof(double)) != 0) {
                        fail_msg("%s x %s, product %d, set %s", x_text, w_text, d, sets[k].name);
                    }
                }
            }
            free(got.f);
            tensor_free(&want);
        }
        tensor_free(&x);
        tensor_free(&w);
        tensor_free(&g);
    }
}

/* To nearest, ties to even: a product with 1 shows what became of the other factor. */
static void test_bf16_rounds_to_nearest_even(void **state)
{
    static const double rows[][2] = {
        {1 + 0x1p-9, 1},          {1 + 0x1p-8, 1},    {1 + 0x3p-8, 1 + 0x2p-7}, {1 + 0x1p-8 + 0x1p-20, 1 + 0x1p-7},
        {-3.14159274, -3.140625}, {1e38, 0x1.2cp126}, {INFINITY, INFINITY}};
    for (size_t k = 0; k < sizeof(sets) / sizeof(sets[0]); k++) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && is_bf16(&sets[k]); i++) {
            if (skips(&sets[k], DT_OP_LINEAR)) {
                continue;
            }
            tensor x = tensor_of("x 1 1", NULL), w = tensor_of("x 1 1", NULL), y = tensor_of("f 1 1", NULL),
                   absent = {.kind = '-'};
            const dt_attr attr = {{0}, {0}};
            call c = {.op = DT_OP_LINEAR, .attr = &attr, .in = {&x, &w, &absent}, .out = {&y}, .n_in = 3, .n_out = 1};
            x.f[0] = rows[i][0];
            w.f[0] = 1;
            run(&sets[k], &c, "linear");
            if (y.f[0] != rows[i][1]) {
                fail_msg("%.9g, set %s: %.9g, wanted %.9g", rows[i][0], sets[k].name, y.f[0], rows[i][1]);
            }
            tensor_free(&x);
            tensor_free(&w);
            tensor_free(&y);
        }
    }
}

static void test_dropout_keeps_what_it_should(void **state)
{
    op_draw = 0;
    tensor x = tensor_of("x 2000 32", NULL), key = tensor_of("K 2000", NULL), y = tensor_of("f 2000 32", NULL);
    const dt_attr attr = {{3}, {0.25}};
    call c = {.op = DT_OP_DROPOUT, .attr = &attr, .in = {&x, &key}, .out = {&y}, .n_in = 2, .n_out = 1};
    for (int64_t i = 0; i < x.n; i++) {
        x.f[i] = 1;
    }
    run(&ref64, &c, "dropout");
    double kept = 0;
    for (int64_t i = 0; i < y.n; i++) {
        assert_true(y.f[i] == 0 || fabs(y.f[i] - 1 / 0.75) < 1e-12);
        kept += y.f[i] != 0;
    }
    /* 64000 draws of 0.75: five deviations are 548 */
    assert_true(fabs(kept - 0.75 * 64000) < 548);
    tensor_free(&x);
    tensor_free(&key);
    tensor_free(&y);
}

/* Closed forms, so that both sets being wrong in the same way shows. */
static void test_known_values(void **state)
{
    struct {
        int64_t fn;
        double x, want;
    } rows[] = {
        {DT_FN_RELU, -2, 0},
        {DT_FN_ELU, -1, -0.63212055882855768},
        {DT_FN_GELU, 1, 0.84134474606854293},
        {DT_FN_TANH, 0.5, 0.46211715726000976},
        {DT_FN_SIGMOID, 2, 0.88079707797788243},
        {DT_FN_SOFTPLUS, 1, 1.3132616875182228},
        {DT_FN_SOFTPLUS, 200, 200},
        {DT_FN_SIGMOID, -200, 0},
        {DT_FN_EXP, 1, 2.7182818284590452},
        {DT_FN_LOG, 10, 2.3025850929940457},
        {DT_FN_ABS, -0.75, 0.75},
        {DT_FN_ABS, 0, 0},
        {DT_FN_SIN, 0.5, 0.479425538604203},
        {DT_FN_SIN, -1e6, 0.34999350217129294},
        {DT_FN_SIN, 3e7, 0.9641302978985832}, /* beyond what is reduced by products */
        {DT_FN_COS, 2, -0.4161468365471424},
        {DT_FN_COS, -3e7, -0.2654294043130664},
    };
    for (size_t k = 0; k < sizeof(sets) / sizeof(sets[0]); k++) {
        if (skips(&sets[k], DT_OP_UNARY)) {
            continue;
        }
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            tensor x = tensor_of("x 1", NULL), y = tensor_of("f 1", NULL);
            x.f[0] = rows[i].x;
            const dt_attr attr = {{rows[i].fn}, {1}};
            call c = {.op = DT_OP_UNARY, .attr = &attr, .in = {&x}, .out = {&y}, .n_in = 1, .n_out = 1};
            run(&sets[k], &c, "unary");
            if (!(fabs(y.f[0] - rows[i].want) <= (sets[k].is_double ? 1e-12 : 3e-7) * fmax(1, fabs(rows[i].want)))) {
                fail_msg("function %d of %g, set %s: %.9g, wanted %.9g", (int)rows[i].fn, rows[i].x, sets[k].name,
                         y.f[0], rows[i].want);
            }
            tensor_free(&x);
            tensor_free(&y);
        }
    }
}

static void test_find(void **state)
{
    for (int set = DT_KERNELS_REF64; set <= DT_KERNELS_CPU; set++) {
#define DT_OP(ID, number, name)                                                                                        \
    assert_int_equal(dt_kernel_find(number, (dt_kernel_set)set) == NULL, dt_op_is_view(number));
#include "engine/backend/ops.def"
        assert_null(dt_kernel_find(0, (dt_kernel_set)set));
        assert_null(dt_kernel_find(999999, (dt_kernel_set)set));
    }
}

/* Every op that has a kernel is tested: in a row of cases.c, as the op or as one of its derivatives. */
static void test_every_op_has_a_case(void **state)
{
    static const uint32_t op[] = {
#define DT_OP(ID, number, name) number,
#define DT_OP_VIEW(ID, number, name)
#include "engine/backend/ops.def"
    };
    uint32_t n_missing = 0;
    for (size_t i = 0; i < sizeof(op) / sizeof(op[0]); i++) {
        bool has_case = false;
        for (const op_case *c = op_cases; c < op_cases + n_op_cases && !has_case; c++) {
            has_case = c->op == op[i] || c->derivative[0].op == op[i] || c->derivative[1].op == op[i] ||
                       c->derivative[2].op == op[i];
        }
        if (!has_case) {
            print_error("tests/engine/ops/cases.c has no row for %s\n", dt_op_name(op[i]));
            n_missing++;
        }
    }
    assert_int_equal(n_missing, 0);
}

static void test_bf16_kernels_are_those_of_products(void **state)
{
    if (dt_cpu_bf16_check() != DT_OK) {
        print_message("[  no bf16 ] %s\n", dt_error_text());
        skip();
    }
#define DT_OP(ID, number, name)                                                                                        \
    assert_int_equal(dt_kernel_find(number, DT_KERNELS_CPU_BF16) != dt_kernel_find(number, DT_KERNELS_CPU),            \
                     dt_op_is_product(number));
#include "engine/backend/ops.def"
}

int main(void)
{
    const char *scale = getenv("DT_TOL_SCALE");
    tol_scale = scale != NULL ? atof(scale) : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_every_op_has_a_case),
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_gradients_are_central_differences),
        cmocka_unit_test(test_every_kernel_set_agrees_with_ref64),
        cmocka_unit_test(test_accum_adds_to_what_is_there),
        cmocka_unit_test(test_outputs_may_be_absent),
        cmocka_unit_test(test_same_bits_again_and_on_any_thread),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_nan_is_never_lost),
        cmocka_unit_test(test_rows_of_linear_do_not_depend_on_the_number_of_rows),
        cmocka_unit_test(test_rows_without_gradient_are_zeros_and_change_no_other),
        cmocka_unit_test(test_products_of_whole_numbers_are_exact),
        cmocka_unit_test(test_bf16_rounds_to_nearest_even),
        cmocka_unit_test(test_bf16_kernels_are_those_of_products),
        cmocka_unit_test(test_dropout_keeps_what_it_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
