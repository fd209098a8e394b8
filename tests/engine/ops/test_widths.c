/* SPDX-License-Identifier: Apache-2.0
 *
 * Results do not depend on the width of vectors: every op, on every row of cases.c and on many more sizes, and the
 * loops of the optimizer. test_widths compares AVX-512 with AVX2. test_widths_portable (PORTABLE_WIDTHS) compares both
 * and 4 lanes with 16 lanes, which are the portable spelling of simd.h with one rounding per multiply-add: any
 * processor with FMA can run it, but the kernels are compiled twice more for it (make check-long). What the processor
 * or the build lacks is skipped with a message.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/ops/harness.h"
#include "engine/optim/loops.h"

#ifdef PORTABLE_WIDTHS
#    define DT_OP_VIEW(ID, number, name) /* no kernel */
#    define DT_OP(ID, number, name)      dt_kernel dt_cpu_wide_##name, dt_cpu_narrow_##name;
#    include "engine/backend/ops.def"

extern const dt_optim_loops dt_optim_loops_wide, dt_optim_loops_narrow;

static dt_kernel *find_wide(uint32_t op)
{
    switch (op) {
#    define DT_OP(ID, number, name)                                                                                    \
    case number:                                                                                                       \
        return dt_cpu_wide_##name;
#    include "engine/backend/ops.def"
    default:
        return NULL;
    }
}

static dt_kernel *find_narrow(uint32_t op)
{
    switch (op) {
#    define DT_OP(ID, number, name)                                                                                    \
    case number:                                                                                                       \
        return dt_cpu_narrow_##name;
#    include "engine/backend/ops.def"
    default:
        return NULL;
    }
}

static const kernel_set reference = {"16 lanes", false, true, 0, find_wide};
static const dt_optim_loops *const reference_loops = &dt_optim_loops_wide;
static const kernel_set narrow = {"4 lanes", false, true, 0, find_narrow};
static const kernel_set avx2 = {"avx2", false, true, DT_CPU_ISA_AVX2, NULL};
#else
static const kernel_set reference = {"avx2", false, true, DT_CPU_ISA_AVX2, NULL};
static const dt_optim_loops *const reference_loops = &dt_optim_loops_avx2;
#endif
static const kernel_set avx512 = {"avx512", false, true, DT_CPU_ISA_AVX512, NULL};

/* Can this machine run the build, and the portable ones, which are compiled for FMA? */
static void needs(dt_cpu_isa_id isa, const char *name)
{
    if (dt_cpu_isa_best() < isa) {
        print_message("[   not run ] this processor or build has no %s: nothing is compared with it\n", name);
        skip();
    }
}

/* ---- every op ---------------------------------------------------------------------------------------------------- */

static void compare_call(const kernel_set *l, const call *c, const char *what)
{
    tensor a[DT_KERNEL_MAX_OUT], b[DT_KERNEL_MAX_OUT];
    call one, two;
    clone_outputs(c, &one, a);
    clone_outputs(c, &two, b);
    run(&reference, &one, what);
    run(l, &two, what);
    for (uint32_t k = 0; k < c->n_out; k++) {
        for (int64_t i = 0; i < a[k].n; i++) {
            if (memcmp(&a[k].f[i], &b[k].f[i], sizeof(double)) != 0) {
                fail_msg("%s, output %u at %lld of %lld: %.9g in %s, %.9g in %s", what, k, (long long)i,
                         (long long)a[k].n, a[k].f[i], reference.name, b[k].f[i], l->name);
            }
        }
    }
    free_outputs(a, c->n_out);
    free_outputs(b, c->n_out);
}

/* The forward call and every derivative; `live` gives the sizes of symbols, or is NULL. */
static void compare_case(const kernel_set *l, const op_case *row, const int64_t *live, const char *what)
{
    problem p = problem_of(row, live, 0);
    const call forward = forward_call(&p, p.out);
    compare_call(l, &forward, what);
    for (int d = 0; d < 3 && row->derivative[d].op != 0; d++) {
        tensor grads[DT_KERNEL_MAX_OUT];
        uint32_t of[DT_KERNEL_MAX_OUT];
        char text[160];
        const call c = derivative_call(&p, &row->derivative[d], grads, of);
        snprintf(text, sizeof(text), "%s, derivative %d", what, d);
        compare_call(l, &c, text);
        free_outputs(grads, c.n_out);
    }
    problem_free(&p);
}

static void compare_cases(const kernel_set *l)
{
    for (int i = 0; i < n_op_cases; i++) {
        compare_case(l, &op_cases[i], NULL, op_cases[i].name);
    }
}

/* ---- sizes around every multiple of a vector --------------------------------------------------------------------- */

enum { SYMBOL_C = 'C' - 'A', SYMBOL_H = 'H' - 'A', SYMBOL_P = 'P' - 'A' };

/* A row of cases.c with sizes of its own: D is swept, H heads have C channels each, P = H C. */
typedef struct sweep {
    const char *like; /* the row whose op, numbers and derivatives these are */
    const char *in[DT_KERNEL_MAX_IN], *out[3];
    bool has_heads;
} sweep;

static const sweep sweeps[] = {
    {"layernorm", {"x 3 D1", "x D1", "x D1", "x 3 D1"}, {"f 3 D1", "f 3 2"}, false},
    {"softmax", {"x 3 D1"}, {"f 3 D1"}, false},
    {"rowsum", {"x 3 D1"}, {"f 3 1"}, false},
    {"linear", {"x 3 D1", "x 1 D1", "x 1"}, {"f 3 1"}, false},
    {"linear", {"x 15 D1", "x 3 D1", "x 3"}, {"f 15 3"}, false},
    {"linear", {"x 15 D1", "x 37 D1", "x 37"}, {"f 15 37"}, false},
    {"linear", {"x D1 9", "x 37 9", "x 37"}, {"f D1 37"}, false},
    {"linear", {"x D1 9", "x D1 9", "x D1"}, {"f D1 D1"}, false},
    {"gat", {"x 7 P1", "x P1", "x P1", "x 23 4", "x H1 4", "r23 8", "c7 23"}, {"f 7 P1", "f 23 H1"}, true},
    {"graph qk", {"x 7 P1", "x 7 P1", "x 7 P1", "x 23 H1", "r23 8", "c7 23"}, {"f 7 P1", "f 23 H1"}, true},
    {"graph qk", {"x 7 P1", "x 4 P1", "x 4 P1", "x 23 H1", "r23 8", "c4 23"}, {"f 7 P1", "f 23 H1"}, true},
};

static const op_case *row_named(const char *name)
{
    for (int i = 0; i < n_op_cases; i++) {
        if (strcmp(op_cases[i].name, name) == 0) {
            return &op_cases[i];
        }
    }
    fail_msg("cases.c has no row \"%s\"", name);
    return NULL;
}

static void compare_sizes(const kernel_set *l, const sweep *s)
{
    static const int64_t lengths[] = {1,  2,  3,  4,  5,  7,  8,  9,  12, 15,  16,  17,  20,  24,  31,  32,   33,
                                      40, 47, 48, 49, 63, 64, 65, 72, 81, 127, 128, 129, 144, 161, 513, 1040, 1100};
    static const int64_t heads[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 20}, channels[] = {1, 7, 8, 16, 19, 32};
    op_case row = *row_named(s->like);
    int64_t live[N_SYMBOLS] = {0};
    char what[96];
    memcpy(row.in, s->in, sizeof(row.in));
    memcpy(row.out, s->out, sizeof(row.out));
    if (!s->has_heads) {
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            live['D' - 'A'] = lengths[i];
            snprintf(what, sizeof(what), "%s, D = %d", s->in[1] != NULL ? s->in[1] : s->like, (int)lengths[i]);
            compare_case(l, &row, live, what);
        }
        return;
    }
    for (size_t h = 0; h < sizeof(heads) / sizeof(heads[0]); h++) {
        for (size_t c = 0; c < sizeof(channels) / sizeof(channels[0]); c++) {
            live[SYMBOL_H] = row.attr.i[0] = heads[h];
            live[SYMBOL_C] = channels[c];
            live[SYMBOL_P] = heads[h] * channels[c];
            snprintf(what, sizeof(what), "%s, %d x %d", s->like, (int)heads[h], (int)channels[c]);
            compare_case(l, &row, live, what);
        }
    }
}

/* ---- the optimizer ----------------------------------------------------------------------------------------------- */

enum { N = 1003 };

typedef struct arenas {
    float p[N], g[N], m[N], v[N];
} arenas;

static void steps(const dt_optim_loops *loops, arenas *a, double *squares_p)
{
    const dt_optim_consts k = {.grad_scale = 0.7f,
                               .l2 = 0.01f,
                               .beta1 = 0.9f,
                               .one_minus_beta1 = 0.1f,
                               .beta2 = 0.99f,
                               .one_minus_beta2 = 0.01f,
                               .rate = 0.003f,
                               .inv_root = 1.3f,
                               .eps = 1e-8f,
                               .keep = 0.999f};
    memset(a, 0, sizeof(*a));
    *squares_p = 0;
    for (int t = 1; t <= 20; t++) {
        for (int i = 0; i < N; i++) {
            a->g[i] = sinf((float)(i * t)) * (i % 11 == 0 ? 1e-20f : 1); /* squares of some are subnormal */
        }
        loops->add(a->g, a->p, N);
        *squares_p += loops->sum_squares(a->g, N);
        if (t % 2 == 0) {
            loops->adam(&k, a->p, a->g, a->m, a->v, N);
        } else {
            loops->sgd(&k, a->p, a->g, a->m, N);
        }
    }
}

static void compare_optimizer(const dt_optim_loops *loops, const char *name)
{
    static arenas one, two;
    double squares[2];
    steps(reference_loops, &one, &squares[0]);
    steps(loops, &two, &squares[1]);
    if (memcmp(&one, &two, sizeof(one)) != 0 || memcmp(&squares[0], &squares[1], sizeof(double)) != 0) {
        fail_msg("20 updates in %s and in %s end in other bits", reference.name, name);
    }
}

/* ---- the builds -------------------------------------------------------------------------------------------------- */

static void compare_build(const kernel_set *l, const dt_optim_loops *loops)
{
    compare_cases(l);
    for (size_t i = 0; i < sizeof(sweeps) / sizeof(sweeps[0]); i++) {
        compare_sizes(l, &sweeps[i]);
    }
    compare_optimizer(loops, l->name);
}

#ifdef PORTABLE_WIDTHS
static void test_4_lanes(void **state)
{
    needs(DT_CPU_ISA_AVX2, "FMA");
    compare_build(&narrow, &dt_optim_loops_narrow);
}

static void test_avx2(void **state)
{
    needs(DT_CPU_ISA_AVX2, "AVX2 and FMA");
    compare_build(&avx2, &dt_optim_loops_avx2);
}
#endif

static void test_avx512(void **state)
{
    needs(DT_CPU_ISA_AVX512, "AVX-512");
#ifdef DT_HAVE_CPU_AVX512
    compare_build(&avx512, &dt_optim_loops_avx512);
#else
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef PORTABLE_WIDTHS
        cmocka_unit_test(test_4_lanes),
        cmocka_unit_test(test_avx2),
#endif
        cmocka_unit_test(test_avx512),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
