/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors of core/engine/backend/cpu/vmath.h in every build this machine runs, through UNARY: a sweep of arguments
 * against the C library in double, then limits and NaN. DT_TOL_SCALE=0 prints the errors. And of noise: against
 * base/rng.h, and the same bits in every build.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend/cpu/isa.h"
#include "base/rng.h"

enum { N = 20011 };

static double tol_scale = 1;
static const char *const isa_name[] = {"base", "avx2", "avx512"};

static void run(dt_cpu_isa_id isa, int64_t fn, float *x, float *y, int64_t n)
{
    const dt_attr attr = {{fn}, {1}};
    const dt_view in = {.data = x, .rank = 1, .dim = {n}, .dtype = DT_F32};
    dt_view out = in;
    out.data = y;
    const dt_kernel_args args = {&attr, NULL, &in, &out, 1, 1, NULL, NULL, NULL};
    dt_kernel_find_cpu(DT_OPX_UNARY, isa)(&args);
}

static double cdf(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

static double exact(int64_t fn, double x)
{
    switch (fn) {
    case DT_FN_ELU:
        return x > 0 ? x : expm1(x);
    case DT_FN_GELU:
        return x * cdf(x);
    case DT_FN_TANH:
        return tanh(x);
    case DT_FN_SIGMOID:
        return 1 / (1 + exp(-x));
    case DT_FN_SOFTPLUS:
        return fmax(x, 0) + log1p(exp(-fabs(x)));
    case DT_FN_EXP:
        return exp(x);
    default:
        return log(x);
    }
}

static void test_relative_error(void **state)
{
    static const struct {
        int64_t fn;
        const char *name;
        double from, to, tol; /* log walks its range in powers */
    } rows[] = {
        {DT_FN_ELU, "elu", -20, 1, 2e-7},          {DT_FN_GELU, "gelu", -4, 4, 2e-6},
        {DT_FN_TANH, "tanh", -12, 12, 3e-7},       {DT_FN_TANH, "tanh near 0", -1e-3, 1e-3, 2e-7},
        {DT_FN_SIGMOID, "sigmoid", -80, 30, 3e-7}, {DT_FN_SOFTPLUS, "softplus", -80, 80, 3e-7},
        {DT_FN_EXP, "exp", -87, 88.7, 2e-7},       {DT_FN_EXP, "exp near 0", -1e-2, 1e-2, 2e-7},
        {DT_FN_LOG, "log", -30, 30, 2e-7},
    };
    static float x[N], y[N];
    for (int isa = 0; isa <= (int)dt_cpu_isa_best() && isa <= DT_CPU_ISA_AVX512; isa++) {
        for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
            for (int i = 0; i < N; i++) {
                const double at = rows[r].from + (rows[r].to - rows[r].from) * i / (N - 1);
                x[i] = (float)(rows[r].fn == DT_FN_LOG ? exp(at) : at);
            }
            run((dt_cpu_isa_id)isa, rows[r].fn, x, y, N);
            double worst = 0, worst_at = 0;
            for (int i = 0; i < N; i++) {
                const double want = exact(rows[r].fn, x[i]), error = fabs(y[i] - want) / fmax(fabs(want), 1e-37);
                if (!(error <= worst)) {
                    worst = error;
                    worst_at = x[i];
                }
            }
            if (tol_scale == 0) {
                printf("vmath %-8s %-12s %.2e at %g\n", isa_name[isa], rows[r].name, worst, worst_at);
            } else if (!(worst <= rows[r].tol * tol_scale)) {
                fail_msg("%s, %s: relative error %g at %.9g, allowed %g", isa_name[isa], rows[r].name, worst, worst_at,
                         rows[r].tol);
            }
        }
    }
}

static void test_limits(void **state)
{
    static const struct {
        int64_t fn;
        float x, want;
    } rows[] = {
        {DT_FN_EXP, 1000, INFINITY},
        {DT_FN_EXP, -1000, 0},
        {DT_FN_EXP, INFINITY, INFINITY},
        {DT_FN_EXP, -INFINITY, 0},
        {DT_FN_EXP, 0, 1},
        {DT_FN_TANH, 100, 1},
        {DT_FN_TANH, -INFINITY, -1},
        {DT_FN_TANH, 0, 0},
        {DT_FN_SIGMOID, 1000, 1},
        {DT_FN_SIGMOID, -1000, 0},
        {DT_FN_SIGMOID, 0, 0.5f},
        {DT_FN_SOFTPLUS, 1000, 1000},
        {DT_FN_SOFTPLUS, -1000, 0},
        {DT_FN_LOG, 1, 0},
        {DT_FN_LOG, 0, -INFINITY},
        {DT_FN_LOG, INFINITY, INFINITY},
        {DT_FN_ELU, -1000, -1},
        {DT_FN_ELU, 1e30f, 1e30f},
        {DT_FN_GELU, 100, 100},
        {DT_FN_GELU, -100, 0},
        {DT_FN_RELU, -INFINITY, 0},
        {DT_FN_LOG, -1, NAN},
        {DT_FN_RELU, NAN, NAN},
        {DT_FN_LEAKY, NAN, NAN},
        {DT_FN_ELU, NAN, NAN},
        {DT_FN_GELU, NAN, NAN},
        {DT_FN_TANH, NAN, NAN},
        {DT_FN_SIGMOID, NAN, NAN},
        {DT_FN_SOFTPLUS, NAN, NAN},
        {DT_FN_EXP, NAN, NAN},
        {DT_FN_LOG, NAN, NAN},
        {DT_FN_LOG, 1e-40f, -92.1034f},
    };
    for (int isa = 0; isa <= (int)dt_cpu_isa_best() && isa <= DT_CPU_ISA_AVX512; isa++) {
        for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
            float x[37], y[37];
            for (int i = 0; i < 37; i++) {
                x[i] = rows[r].x;
            }
            run((dt_cpu_isa_id)isa, rows[r].fn, x, y, 37);
            for (int i = 0; i < 37; i++) {
                const bool is_right = isnan(rows[r].want)   ? isnan(y[i])
                                      : isinf(rows[r].want) ? y[i] == rows[r].want
                                                            : fabsf(y[i] - rows[r].want) <= 1e-6f * fabsf(rows[r].want);
                if (!is_right && !(rows[r].want == 0 && fabsf(y[i]) < 1e-30f)) {
                    fail_msg("%s, function %d of %g at %d: %g, wanted %g", isa_name[isa], (int)rows[r].fn, rows[r].x, i,
                             y[i], rows[r].want);
                }
            }
        }
    }
}

/* ---- noise ------------------------------------------------------------------------------------------------------- */

enum { ROWS = 33331, COLUMNS = 3, NUMBERS = ROWS * COLUMNS };

static void draw(dt_cpu_isa_id isa, const int64_t *key, float *y)
{
    const dt_attr attr = {.i = {7, COLUMNS}};
    const dt_kernel_run named = {.seed = UINT64_C(0x123456789ABCDEF0), .step = 11, .phase = 2, .training = 1};
    const dt_view in = {.data = (void *)(uintptr_t)key, .rank = 1, .dim = {ROWS}, .dtype = DT_I64};
    dt_view out = {.data = y, .rank = 2, .dim = {ROWS, COLUMNS}, .dtype = DT_F32};
    const dt_kernel_args args = {&attr, &named, &in, &out, 1, 1, NULL, NULL, NULL};
    dt_kernel_find_cpu(DT_OP_NOISE, isa)(&args);
}

/* Rounding to float hides what the two differ by, but where that lies next to the middle of two floats. */
static void test_noise(void **state)
{
    static int64_t key[ROWS];
    static float first[NUMBERS], y[NUMBERS];
    const dt_rng_key name = {.seed = UINT64_C(0x123456789ABCDEF0), .phase = 2, .op = 7, .step = 11};
    dt_rng_stream stream;
    dt_rng_stream_init(&stream, &name);
    for (int64_t r = 0; r < ROWS; r++) {
        key[r] = r * INT64_C(0x1E3779B97F4A) + 1;
    }
    draw(DT_CPU_ISA_BASE, key, first);
    int n_off = 0;
    for (int i = 0; i < NUMBERS; i++) {
        const double want = dt_rng_stream_normal(&stream, (uint64_t)key[i / COLUMNS], (uint64_t)(i % COLUMNS));
        n_off += first[i] != (float)want;
        if (!(fabs(first[i] - want) <= 1e-7 * fabs(want))) {
            fail_msg("number %d is %.9g, wanted %.9g", i, first[i], want);
        }
    }
    assert_true(n_off <= 1);
    for (int isa = DT_CPU_ISA_AVX2; isa <= (int)dt_cpu_isa_best() && isa <= DT_CPU_ISA_AVX512; isa++) {
        memset(y, 0, sizeof(y));
        draw((dt_cpu_isa_id)isa, key, y);
        assert_memory_equal(y, first, sizeof(y));
    }
}

int main(void)
{
    const char *scale = getenv("DT_TOL_SCALE");
    tol_scale = scale != NULL ? atof(scale) : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relative_error),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
