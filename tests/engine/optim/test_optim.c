/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/engine/optim/optim.c: against PyTorch's documented formulas in double, and bit for bit across splits
 * and instruction sets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <config.h>
#include <math.h>
#include <string.h>

#include "engine/backend/cpu/isa.h"
#include "base/rng.h"
#include "engine/optim/loops.h"
#include "engine/optim/optim.h"

enum { N = 1031 };

typedef struct arenas {
    float p[N], g[N], m[N], v[N];
} arenas;

static double normal(uint64_t i)
{
    const dt_rng_key key = {.seed = 4};
    return dt_rng_normal(&key, i);
}

static void gradient(arenas *a, int step)
{
    for (int i = 0; i < N; i++) {
        a->g[i] = (float)(normal((uint64_t)(step * N + i)) * (i % 5 == 0 ? 1e-4 : 1));
    }
}

static void start(arenas *a)
{
    memset(a, 0, sizeof(*a));
    for (int i = 0; i < N; i++) {
        a->p[i] = (float)normal((uint64_t)(1000000 + i));
    }
}

static dt_optim_step step_of(dt_optimizer kind)
{
    return (dt_optim_step){.kind = kind,
                           .lr = 1e-2,
                           .beta1 = 0.9,
                           .beta2 = 0.999,
                           .eps = 1e-8,
                           .weight_decay = 0.05,
                           .momentum = 0.9,
                           .grad_scale = 0.5};
}

/* torch.optim.AdamW, Adam and SGD as documented, in double */
static void torch_step(const dt_optim_step *s, double *p, double g, double *m, double *v)
{
    g *= s->grad_scale;
    if (s->kind == DT_OPTIMIZER_ADAMW) {
        *p -= s->lr * s->weight_decay * *p;
    } else {
        g += s->weight_decay * *p;
    }
    if (s->kind == DT_OPTIMIZER_SGD) {
        *m = s->step > 1 ? s->momentum * *m + g : g;
        *p -= s->lr * *m;
        return;
    }
    *m = s->beta1 * *m + (1 - s->beta1) * g;
    *v = s->beta2 * *v + (1 - s->beta2) * g * g;
    const double m_hat = *m / (1 - pow(s->beta1, (double)s->step)), v_hat = *v / (1 - pow(s->beta2, (double)s->step));
    *p -= s->lr * m_hat / (sqrt(v_hat) + s->eps);
}

static void update(const dt_optim_step *s, float *p, const float *g, float *m, float *v, int64_t begin, int64_t end)
{
    const dt_optim_consts k = dt_optim_constants(s);
    dt_optim_apply(s->kind, &k, p + begin, g + begin, m + begin, v != NULL ? v + begin : NULL, end - begin);
}

static void test_ten_steps_are_pytorchs(void **state)
{
    for (dt_optimizer kind = DT_OPTIMIZER_ADAMW; kind <= DT_OPTIMIZER_SGD; kind++) {
        static arenas a;
        static double p[N], m[N], v[N];
        start(&a);
        dt_optim_step s = step_of(kind);
        for (int i = 0; i < N; i++) {
            p[i] = a.p[i];
            m[i] = v[i] = 0;
        }
        for (int t = 1; t <= 10; t++) {
            s.step = (uint64_t)t;
            gradient(&a, t);
            update(&s, a.p, a.g, a.m, kind == DT_OPTIMIZER_SGD ? NULL : a.v, 0, N);
            for (int i = 0; i < N; i++) {
                torch_step(&s, &p[i], a.g[i], &m[i], &v[i]);
            }
        }
        for (int i = 0; i < N; i++) {
            if (!(fabs(a.p[i] - p[i]) < 2e-6 * fmax(1, fabs(p[i])))) {
                fail_msg("kind %d, element %d: %.9g, wanted %.9g", kind, i, a.p[i], p[i]);
            }
        }
    }
}

static void test_any_split_gives_the_same_bits(void **state)
{
    static const int64_t cuts[] = {0, 1, 2, 5, 16, 31, 33, 64, 200, 517, 518, 1030, N};
    for (dt_optimizer kind = DT_OPTIMIZER_ADAMW; kind <= DT_OPTIMIZER_SGD; kind++) {
        static arenas whole, split;
        start(&whole);
        start(&split);
        dt_optim_step s = step_of(kind);
        for (int t = 1; t <= 3; t++) {
            s.step = (uint64_t)t;
            gradient(&whole, t);
            gradient(&split, t);
            update(&s, whole.p, whole.g, whole.m, whole.v, 0, N);
            for (size_t i = 0; i + 1 < sizeof(cuts) / sizeof(cuts[0]); i++) {
                update(&s, split.p, split.g, split.m, split.v, cuts[i], cuts[i + 1]);
            }
        }
        assert_memory_equal(&whole, &split, sizeof(whole));
    }
}

/* Subnormal moments would make every later update of theirs slow. */
static void test_moments_without_gradient_end_at_zero(void **state)
{
#if defined(__SSE2__)
    static arenas a;
    dt_optim_step s = step_of(DT_OPTIMIZER_ADAM);
    s.weight_decay = 0;
    start(&a);
    gradient(&a, 1);
    for (s.step = 1; s.step <= 1200; s.step++) { /* 0.9^1200 = 1e-55 */
        update(&s, a.p, a.g, a.m, a.v, 0, N);
        memset(a.g, 0, sizeof(a.g));
        for (int i = 0; i < N; i++) {
            assert_int_not_equal(fpclassify(a.m[i]), FP_SUBNORMAL);
        }
    }
    for (int i = 0; i < N; i++) {
        assert_true(a.m[i] == 0);
    }
    volatile float smallest = 1e-38f; /* the caller's own arithmetic is left as it was */
    assert_true(smallest / 1000 > 0);
#else
    skip();
#endif
}

/* Floats of all signs and exponents, with mantissas near where a half rounds. */
static float sweep(uint32_t i)
{
    static const uint32_t tail[] = {0,      1,      0xfff,  0x1000, 0x1001,  0x1fff,   0x2000,   0x3000,   0x3001,
                                    0x7fff, 0x8000, 0x8001, 0xffff, 0x18000, 0x7fffff, 0x400000, 0x555555, 0x2aaaaa};
    enum { N_TAILS = sizeof(tail) / sizeof(*tail) };
    const uint32_t u = (i / N_TAILS % 512) << 23 | tail[i % N_TAILS];
    float x;
    memcpy(&x, &u, sizeof(x));
    return x;
}
enum { N_SWEEP = 512 * 18 };

static void check_same_halves(const dt_optim_loops *a, const dt_optim_loops *b, int half)
{
    static float x[N_SWEEP], y[N_SWEEP];
    static uint16_t h[N_SWEEP], k[N_SWEEP];
    for (uint32_t i = 0; i < N_SWEEP; i++) {
        x[i] = sweep(i);
    }
    memcpy(y, x, sizeof(y));
    a->pack[half](x, h, N_SWEEP);
    b->pack[half](x, k, N_SWEEP);
    assert_memory_equal(h, k, sizeof(h));
    a->round[half](x, N_SWEEP);
    b->round[half](y, N_SWEEP);
    assert_memory_equal(x, y, sizeof(x));
    b->unpack[half](k, y, N_SWEEP);
    assert_memory_equal(x, y, sizeof(x));
}

static void test_every_instruction_set_gives_the_same_bits(void **state)
{
    const dt_optim_consts k = {0.5f, 0.01f, 0.9f, 0.1f, 0.999f, 0.001f, 1e-3f, 1.1f, 1e-8f, 0.9999f};
    const dt_optim_loops *sets[] = {
        &dt_optim_loops_base,
#ifdef DT_HAVE_CPU_AVX2
        &dt_optim_loops_avx2,
#endif
#ifdef DT_HAVE_CPU_AVX512
        &dt_optim_loops_avx512,
#endif
    };
    static arenas want;
    start(&want);
    gradient(&want, 1);
    sets[0]->adam(&k, want.p, want.g, want.m, want.v, N);
    sets[0]->sgd(&k, want.p, want.g, want.m, N);
    sets[0]->add(want.p, want.g, N);
    sets[0]->blend(want.p, want.g, 0.3F, N);
    for (size_t i = 1; i < sizeof(sets) / sizeof(sets[0]) && i <= (size_t)dt_cpu_isa_best(); i++) {
        static arenas got;
        start(&got);
        gradient(&got, 1);
        sets[i]->adam(&k, got.p, got.g, got.m, got.v, N);
        sets[i]->sgd(&k, got.p, got.g, got.m, N);
        sets[i]->add(got.p, got.g, N);
        sets[i]->blend(got.p, got.g, 0.3F, N);
        assert_memory_equal(&want, &got, sizeof(want));
        for (int half = 0; half < 2; half++) {
            check_same_halves(sets[0], sets[i], half);
        }
        assert_true(sets[i]->sum_squares(want.g, N) == sets[0]->sum_squares(want.g, N));
    }
}

static void test_sum_of_squares(void **state)
{
    static arenas a;
    gradient(&a, 1);
    for (int64_t n = 0; n < 100; n += 7) {
        double want = 0;
        for (int64_t i = 3; i < 3 + n; i++) {
            want += (double)a.g[i] * a.g[i];
        }
        assert_true(fabs(dt_optim_sum_squares(a.g, 3, 3 + n) - want) <= 1e-14 * want);
    }
    a.g[700] = NAN;
    assert_true(isnan(dt_optim_sum_squares(a.g, 0, N)));
}

static void test_add(void **state)
{
    static arenas a;
    start(&a);
    gradient(&a, 1);
    const float before = a.p[4], after = a.p[5] + a.g[5];
    dt_optim_add(a.p, a.g, 5, 900);
    assert_true(a.p[4] == before && a.p[5] == after);
    assert_true(a.p[900] == (float)normal(1000900));
}

static void test_blend(void **state)
{
    static const double share[] = {0.005, 0.25, 1};
    for (int k = 0; k < 3; k++) {
        static arenas a;
        start(&a);
        gradient(&a, 1);
        static float before[N];
        memcpy(before, a.p, sizeof(before));
        dt_optim_blend(a.p, a.g, share[k], N - 1);
        for (int i = 0; i < N - 1; i++) {
            const double want = (1 - share[k]) * (double)before[i] + share[k] * (double)a.g[i];
            assert_true(fabs((double)a.p[i] - want) <= 1e-6 * (fabs((double)before[i]) + fabs((double)a.g[i])));
            assert_true(share[k] < 1 || a.p[i] == a.g[i]);
        }
        assert_true(a.p[N - 1] == before[N - 1]);
    }
}

/* A half by its definition: mantissa bits and the smallest exponent. */
static double value_of_half(uint32_t half, uint16_t h)
{
    const int bits = half == DT_HALF_BF16 ? 7 : 10, bias = half == DT_HALF_BF16 ? 127 : 15;
    const int exponent = h >> bits & ((1 << (15 - bits)) - 1), mantissa = h & ((1 << bits) - 1);
    const double size =
        exponent == 0 ? ldexp(mantissa, 1 - bias - bits) : ldexp(mantissa + (1 << bits), exponent - bias - bits);
    return (h & 0x8000) != 0 ? -size : size;
}

/* Every half comes back; between two neighbours the nearest is taken, in the middle the even one. */
static void test_halves_round_to_nearest_even(void **state)
{
    for (uint32_t half = DT_HALF_BF16; half <= DT_HALF_FP16; half++) {
        const uint16_t infinite = half == DT_HALF_BF16 ? 0x7f80 : 0x7c00;
        for (uint32_t sign = 0; sign <= 0x8000; sign += 0x8000) {
            for (uint32_t h = 0; h < infinite; h++) {
                const uint16_t low = (uint16_t)(sign | h), even = (uint16_t)(low + (h & 1));
                const double a = value_of_half(half, low), b = value_of_half(half, (uint16_t)(low + 1));
                const float middle = (float)((a + b) / 2), x[] = {(float)a, middle, nextafterf(middle, (float)a),
                                                                  nextafterf(middle, (float)(2 * b - a))};
                const uint16_t want[] = {low, even, low, (uint16_t)(low + 1)};
                uint16_t got[4];
                float back[4], rounded[4];
                assert_true((double)middle == (a + b) / 2);
                dt_half_from_f32(half, x, got, 4);
                assert_memory_equal(got, want, sizeof(want));
                dt_half_to_f32(half, got, back, 4);
                assert_true((double)back[0] == a);
                memcpy(rounded, x, sizeof(rounded));
                dt_optim_round(half, rounded, 1, 4);
                assert_memory_equal(rounded + 1, back + 1, 3 * sizeof(float));
            }
        }
    }
}

static void test_halves_of_what_is_not_finite(void **state)
{
    for (uint32_t half = DT_HALF_BF16; half <= DT_HALF_FP16; half++) {
        float x[] = {INFINITY, -INFINITY, NAN, -NAN, 3.4028235e38F, 1e-45F};
        const uint32_t signalling = 0x7f800001; /* its payload lies below what a half keeps */
        memcpy(&x[3], &signalling, sizeof(x[3]));
        dt_optim_round(half, x, 0, 6);
        assert_true(x[0] == INFINITY && x[1] == -INFINITY && isnan(x[2]) && isnan(x[3]));
        assert_true(x[4] == INFINITY && x[5] == 0);
    }
    float x[] = {65519, 65520, -65520, 1};
    dt_optim_round(DT_HALF_FP16, x, 0, 4);
    assert_true(x[0] == 65504 && x[1] == INFINITY && x[2] == -INFINITY && x[3] == 1);
    x[3] = 1.00390626F;
    dt_optim_round(DT_HALF_NONE, x, 0, 4);
    assert_true(x[3] == 1.00390626F);
}

/* ---- learning-rate schedules ------------------------------------------------------------------------------------- */

static void test_constant(void **state)
{
    const dt_schedule s = {.kind = DT_SCHEDULE_CONSTANT, .lr = 0.25};
    assert_true(dt_schedule_rate(&s, 0) == 0.25);
    assert_true(dt_schedule_rate(&s, 1e9) == 0.25);
}

static void test_cosine_is_pytorchs(void **state)
{
    const dt_schedule s = {.kind = DT_SCHEDULE_COSINE, .lr = 1e-3, .eta_min = 1e-5, .t_max = 50};
    assert_true(dt_schedule_rate(&s, 0) == 1e-3);
    assert_true(fabs(dt_schedule_rate(&s, 25) - (1e-3 + 1e-5) / 2) < 1e-18);
    /* CosineAnnealingLR: eta_{t+1} = eta_min + (eta_t - eta_min) (1 + cos(pi (t+1)/T)) / (1 + cos(pi t/T)) */
    double rate = 1e-3;
    for (int t = 0; t < 49; t++) {
        rate = 1e-5 + (rate - 1e-5) * (1 + cos(M_PI * (t + 1) / 50)) / (1 + cos(M_PI * t / 50));
        assert_true(fabs(dt_schedule_rate(&s, t + 1) - rate) < 1e-15);
    }
    assert_true(dt_schedule_rate(&s, 50) == 1e-5);
    assert_true(dt_schedule_rate(&s, 51) == 1e-5);
}

static void test_warmup_is_linear_and_meets_the_cosine(void **state)
{
    const dt_schedule s = {.kind = DT_SCHEDULE_COSINE, .lr = 0.4, .eta_min = 0.1, .warmup = 2, .t_max = 10};
    assert_true(fabs(dt_schedule_rate(&s, 0.5) - 0.1) < 1e-15);
    assert_true(fabs(dt_schedule_rate(&s, 1.5) - 0.3) < 1e-15);
    assert_true(dt_schedule_rate(&s, 2) == 0.4);
    assert_true(fabs(dt_schedule_rate(&s, 6) - 0.25) < 1e-15);
    assert_true(dt_schedule_rate(&s, 10) == 0.1);
    const dt_schedule constant = {.kind = DT_SCHEDULE_CONSTANT, .lr = 0.4, .warmup = 4};
    assert_true(fabs(dt_schedule_rate(&constant, 1) - 0.1) < 1e-15);
    assert_true(dt_schedule_rate(&constant, 4) == 0.4);
}

static void test_linear(void **state)
{
    const dt_schedule s = {.kind = DT_SCHEDULE_LINEAR, .lr = 0.4, .eta_min = 0.1, .warmup = 2, .t_max = 8};
    assert_true(fabs(dt_schedule_rate(&s, 1) - 0.2) < 1e-15);
    assert_true(dt_schedule_rate(&s, 2) == 0.4);
    assert_true(fabs(dt_schedule_rate(&s, 5) - 0.25) < 1e-15);
    assert_true(dt_schedule_rate(&s, 8) == 0.1);
    assert_true(dt_schedule_rate(&s, 9) == 0.1);
}

static void test_step(void **state)
{
    const dt_schedule s = {.kind = DT_SCHEDULE_STEP, .lr = 0.8, .step_size = 30, .gamma = 0.1};
    assert_true(dt_schedule_rate(&s, 0) == 0.8);
    assert_true(dt_schedule_rate(&s, 29.9) == 0.8);
    assert_true(fabs(dt_schedule_rate(&s, 30) - 0.08) < 1e-16);
    assert_true(fabs(dt_schedule_rate(&s, 95) - 0.0008) < 1e-18);
}

/* By the words of the configuration: a schedule without a row fails, and so does one whose rate stays as it is. */
static void test_each_choice(void **state)
{
    static const char *const words[] = {DT_SCHEDULES(DT_CHOICE_WORD)};
    static const double expected[][3] = {/* at x = 3, 6, 9 */
                                         [DT_SCHEDULE_CONSTANT] = {0.4, 0.4, 0.4},
                                         [DT_SCHEDULE_COSINE] = {0.325, 0.175, 0.1},
                                         [DT_SCHEDULE_STEP] = {0.4, 0.2, 0.1},
                                         [DT_SCHEDULE_LINEAR] = {0.3, 0.2, 0.1}};
    assert_int_equal(sizeof(expected) / sizeof(expected[0]), sizeof(words) / sizeof(words[0]));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const dt_schedule s = {
            .kind = (dt_schedule_kind)i, .lr = 0.4, .eta_min = 0.1, .t_max = 9, .step_size = 4, .gamma = 0.5};
        for (int k = 0; k < 3; k++) {
            const double rate = dt_schedule_rate(&s, 3 * (k + 1));
            if (fabs(rate - expected[i][k]) > 1e-15) {
                fail_msg("%s at %d: %.17g instead of %.17g", words[i], 3 * (k + 1), rate, expected[i][k]);
            }
        }
        assert_int_equal(strcmp(words[i], "constant") == 0, expected[i][0] == expected[i][2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ten_steps_are_pytorchs),
        cmocka_unit_test(test_any_split_gives_the_same_bits),
        cmocka_unit_test(test_moments_without_gradient_end_at_zero),
        cmocka_unit_test(test_every_instruction_set_gives_the_same_bits),
        cmocka_unit_test(test_sum_of_squares),
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_blend),
        cmocka_unit_test(test_halves_round_to_nearest_even),
        cmocka_unit_test(test_halves_of_what_is_not_finite),
        cmocka_unit_test(test_constant),
        cmocka_unit_test(test_cosine_is_pytorchs),
        cmocka_unit_test(test_warmup_is_linear_and_meets_the_cosine),
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_each_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
