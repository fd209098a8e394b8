/* SPDX-License-Identifier: Apache-2.0
 *
 * CATEGORICAL, GAUSSIAN, PPO_CLIP and VALUE_LOSS against numbers computed elsewhere, and at their limits: what is
 * forbidden, too far or not a number. Every set of the CPU. Shapes, parity and gradients: cases.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "engine/backend/cpu/isa.h"

enum { MAX_ROWS = 40, MAX = 256, N_LANES = 4 };

static const char *const set_name[N_LANES] = {"ref32", "base", "avx2", "avx512"};

static dt_kernel *kernel_of(int set, uint32_t op)
{
    return set == 0 ? dt_kernel_find(op, DT_KERNELS_REF32) : dt_kernel_find_cpu(op, (dt_cpu_isa_id)(set - 1));
}

static int n_sets(void)
{
    const int best = (int)dt_cpu_isa_best() + 2;
    return best < N_LANES ? best : N_LANES;
}

typedef struct op {
    dt_attr attr;
    dt_view in[5], out[3];
    uint32_t n_in, n_out;
} op;

/* n columns: 0 for a view of rows alone */
static dt_view view(const void *data, int64_t rows, int64_t n, int32_t dtype)
{
    return (dt_view){.data = (void *)(uintptr_t)data, .rank = n > 0 ? 2 : 1, .dim = {rows, n}, .dtype = dtype};
}

static void run(int set, uint32_t id, op *o)
{
    const dt_kernel_args args = {&o->attr, NULL, o->in, o->out, o->n_in, o->n_out, NULL, NULL, NULL};
    kernel_of(set, id)(&args);
}

static void assert_near(int set, const char *what, int64_t at, double got, double want, double tol)
{
    if (!(fabs(got - want) <= tol * fmax(1, fabs(want)))) {
        fail_msg("%s, set %s, element %d: %.9g, wanted %.9g", what, set_name[set], (int)at, got, want);
    }
}

/* ---- categorical ------------------------------------------------------------------------------------------------- */

/* Rows of four: logits 0 1 2 3 with p = .0320586 .0871443 .2368828 .6439143, entropy .9475370; without the last: p =
 * .0900306 .2447285 .6652410, entropy .8323949. */
static void test_categorical(void **state)
{
    enum { R = 8 };
    static const float nan = NAN;
    const float logits[R][4] = {{0, 1, 2, 3}, {1000, 1001, 1002, 1003}, {0, 1, 2, nan},   {0, 1, 2, nan},
                                {0, 1, 2, 3}, {nan, nan, nan, nan},     {nan, 5, nan, 7}, {-500, 0, 500, 0}};
    const float mask[R][4] = {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 0},  {1, 1, 1, 0},
                              {1, 1, 1, 1}, {0, 0, 0, 0}, {0, 1, -1, 0}, {1, 1, 1, 1}};
    const int32_t action[R] = {3, 1, 2, 3, -1, 0, 1, 0};
    const double log_prob[R] = {
        -0.4401896985611953, -2.4401896985611953, -0.4076059644443803, -1e30, -1e30, -1e30, 0, -1000};
    const double entropy[R] = {
        0.9475369639754255, 0.9475369639754255, 0.8323955494988377, 0.8323955494988377, 0.9475369639754255, 0, 0, 0};
    const float one[R] = {1, 1, 1, 1, 1, 1, 1, 1};
    const double p4[4] = {0.0320586032844, 0.0871443187420, 0.2368828180899, 0.6439142598879};
    const double p3[4] = {0.0900305731704, 0.2447284710548, 0.6652409557749, 0};
    for (int set = 0; set < n_sets(); set++) {
        float got[R], width[R], slope[R][4];
        op o = {.in = {view(logits, R, 4, DT_F32), view(action, R, 1, DT_I32), view(mask, R, 4, DT_F32)},
                .out = {view(got, R, 0, DT_F32), view(width, R, 0, DT_F32)},
                .n_in = 3,
                .n_out = 2};
        run(set, DT_OPX_CATEGORICAL, &o);
        for (int r = 0; r < R; r++) {
            assert_near(set, "log_prob", r, got[r], log_prob[r], 1e-6);
            assert_near(set, "entropy", r, width[r], entropy[r], 1e-6);
        }
        op b = {.in = {view(one, R, 0, DT_F32), {.data = NULL}, o.in[0], o.in[1], o.in[2]},
                .out = {view(slope, R, 4, DT_F32)},
                .n_in = 5,
                .n_out = 1};
        run(set, DT_OPX_CATEGORICAL_BWD, &b);
        for (int j = 0; j < 4; j++) {
            assert_near(set, "slope", j, slope[0][j], (j == 3) - p4[j], 1e-6);
            assert_near(set, "slope at 1000", j, slope[1][j], (j == 1) - p4[j], 1e-6);
            assert_near(set, "slope, masked", j, slope[2][j], (j == 2) - p3[j], 1e-6);
            assert_near(set, "slope, far apart", j, slope[7][j], j == 0 ? 1 : j == 2 ? -1 : 0, 1e-6);
            for (int r = 3; r < 7; r++) { /* constant, or one choice */
                assert_near(set, "slope of a constant", 4 * r + j, slope[r][j], 0, 0);
            }
        }
        b.in[1] = b.in[0]; /* of both at once: the entropy's part stays finite in every row */
        run(set, DT_OPX_CATEGORICAL_BWD, &b);
        for (int i = 0; i < 4 * R; i++) {
            assert_true(isfinite(slope[i / 4][i % 4]));
        }
    }
}

/* A NaN where it counts is not swallowed. */
static void test_nan_spreads_to_its_row_alone(void **state)
{
    const float logits[3][2] = {{1, 2}, {NAN, 2}, {1, 2}}, one[3] = {1, 1, 1};
    const float bad[3] = {0, NAN, 0}, zero[3] = {0, 0, 0};
    const int32_t action[3] = {0, 1, 1};
    for (int set = 0; set < n_sets(); set++) {
        float first[3], second[3], third[3];
        op o = {.in = {view(logits, 3, 2, DT_F32), view(action, 3, 1, DT_I32)},
                .out = {view(first, 3, 0, DT_F32), view(second, 3, 0, DT_F32)},
                .n_in = 3,
                .n_out = 2};
        run(set, DT_OPX_CATEGORICAL, &o);
        assert_true(isfinite(first[0]) && isnan(first[1]) && isfinite(first[2]));
        assert_true(isfinite(second[0]) && isnan(second[1]) && isfinite(second[2]));
        op c = {.attr = {{0}, {0.2, 0.2}},
                .in = {view(bad, 3, 0, DT_F32), view(zero, 3, 0, DT_F32), view(one, 3, 0, DT_F32)},
                .out = {view(first, 3, 0, DT_F32), view(second, 3, 0, DT_F32), view(third, 3, 0, DT_F32)},
                .n_in = 3,
                .n_out = 3};
        run(set, DT_OPX_PPO_CLIP, &c);
        assert_true(isfinite(first[0]) && isnan(first[1]) && isfinite(first[2]));
        assert_true(isfinite(second[0]) && isnan(second[1]) && isfinite(second[2]));
        for (int how = DT_VALUE_PLAIN; how <= DT_VALUE_CLIP_ERROR; how++) {
            op v = {.attr = {{how}, {0.2}},
                    .in = {view(bad, 3, 0, DT_F32), view(one, 3, 0, DT_F32), view(zero, 3, 0, DT_F32)},
                    .out = {view(first, 3, 0, DT_F32)},
                    .n_in = 3,
                    .n_out = 1};
            run(set, DT_OPX_VALUE_LOSS, &v);
            assert_true(isfinite(first[0]) && isnan(first[1]) && isfinite(first[2]));
        }
    }
}

/* ---- gaussian ---------------------------------------------------------------------------------------------------- */

/* Two dimensions: N(0,1) at 1 and N(2, e^2) at 2 - e: log p = -1/2 - 1 - log(2 pi) - 1/2 = -3.8378770664, entropy
 * 1 + (1 + log(2 pi)) = 3.8378770664. Widths beyond e^+-20 are as wide as that and have no slope. */
static void test_gaussian(void **state)
{
    enum { R = 4 };
    const float mean[R][2] = {{0, 2}, {0, 0}, {0, 0}, {0, 0}};
    const float log_std[R][2] = {{0, 1}, {-1000, 0}, {1000, 0}, {-20, 0}};
    const float action[R][2] = {{1, (float)(2 - M_E)}, {1, 0}, {1, 0}, {0, 0}}, one[R] = {1, 1, 1, 1};
    for (int set = 0; set < n_sets(); set++) {
        float log_prob[R], entropy[R], dmean[R][2], dwidth[R][2];
        op o = {.in = {view(mean, R, 2, DT_F32), view(log_std, R, 2, DT_F32), view(action, R, 2, DT_F32)},
                .out = {view(log_prob, R, 0, DT_F32), view(entropy, R, 0, DT_F32)},
                .n_in = 3,
                .n_out = 2};
        run(set, DT_OPX_GAUSSIAN, &o);
        assert_near(set, "log_prob", 0, log_prob[0], -3.8378770664093453, 1e-6);
        assert_near(set, "entropy", 0, entropy[0], 3.8378770664093453, 1e-6);
        assert_near(set, "log_prob, narrow", 1, log_prob[1], -0.5 * exp(40), 1e-5);
        assert_near(set, "log_prob, wide", 2, log_prob[2], -20 - 1.8378770664093453, 1e-6);
        assert_near(set, "log_prob, -20", 3, log_prob[3], 20 - 1.8378770664093453, 1e-6);
        op b = {.in = {view(one, R, 0, DT_F32), view(one, R, 0, DT_F32), o.in[0], o.in[1], o.in[2]},
                .out = {view(dmean, R, 2, DT_F32), view(dwidth, R, 2, DT_F32)},
                .n_in = 5,
                .n_out = 2};
        run(set, DT_OPX_GAUSSIAN_BWD, &b);
        assert_near(set, "dmean", 0, dmean[0][0], 1, 1e-6);
        assert_near(set, "dmean", 1, dmean[0][1], -exp(-1), 1e-6);
        assert_near(set, "dlog_std", 0, dwidth[0][0], 1, 1e-6); /* 1 - 1 of the density, 1 of the entropy */
        assert_near(set, "dlog_std", 1, dwidth[0][1], 1, 1e-6);
        assert_near(set, "dmean, narrow", 2, dmean[1][0], exp(40), 1e-5);
        assert_near(set, "dlog_std, narrow", 2, dwidth[1][0], 0, 0);
        assert_near(set, "dlog_std, wide", 4, dwidth[2][0], 0, 0);
        assert_near(set, "dlog_std, -20", 6, dwidth[3][0], 0, 1e-6);
    }
}

/* ---- the clipped surrogate --------------------------------------------------------------------------------------- */

/* pi_old = (.5, .25, .1), pi = (.6, .2, .15), A = (1, -1, 2), clip .2: mean loss -.93333333, mean k3 .04511896 */
static void test_ppo_clip(void **state)
{
    enum { R = 3 };
    const double was[R] = {0.5, 0.25, 0.1}, is[R] = {0.6, 0.2, 0.15};
    const float A[R] = {1, -1, 2}, one[R] = {1, 1, 1};
    for (int set = 0; set < n_sets(); set++) {
        float log_prob[R], old[R], loss[R], kl[R], clipped[R], slope[R];
        for (int r = 0; r < R; r++) {
            log_prob[r] = (float)log(is[r]);
            old[r] = (float)log(was[r]);
        }
        op o = {.attr = {{0}, {0.2, 0.2}},
                .in = {view(log_prob, R, 0, DT_F32), view(old, R, 0, DT_F32), view(A, R, 0, DT_F32)},
                .out = {view(loss, R, 0, DT_F32), view(kl, R, 0, DT_F32), view(clipped, R, 0, DT_F32)},
                .n_in = 3,
                .n_out = 3};
        run(set, DT_OPX_PPO_CLIP, &o);
        assert_near(set, "mean loss", 0, (loss[0] + loss[1] + loss[2]) / 3, -0.93333333, 1e-6);
        assert_near(set, "mean k3", 0, (kl[0] + kl[1] + kl[2]) / 3, 0.04511896, 1e-6);
        assert_near(set, "k3", 2, kl[2], 0.5 - log(1.5), 1e-6);
        assert_true(clipped[2] == 1);
        op b = {.attr = o.attr,
                .in = {{.data = NULL}, view(one, R, 0, DT_F32), o.in[0], o.in[1], o.in[2]},
                .out = {view(slope, R, 0, DT_F32)},
                .n_in = 5,
                .n_out = 1};
        run(set, DT_OPX_PPO_CLIP_BWD, &b);
        assert_near(set, "slope of k3", 0, slope[0], 0.2, 1e-6);
        assert_near(set, "slope of k3", 1, slope[1], -0.2, 1e-6);
        assert_near(set, "slope of k3", 2, slope[2], 0.5, 1e-6);
    }
}

/* Which bound counts depends on the sign of A (Schulman et al. 2017, figure 1); what is too far apart has no slope. */
static void test_ppo_clip_bounds(void **state)
{
    static const struct {
        double difference, A, low, high, loss, slope, clipped;
    } rows[] = {
        {0.5, 1, 0.2, 0.2, -1.2, 0, 1},
        {0.5, -1, 0.2, 0.2, 1.6487212707, 1.6487212707, 1},
        {-0.5, 1, 0.2, 0.2, -0.6065306597, -0.6065306597, 1},
        {-0.5, -1, 0.2, 0.2, 0.8, 0, 1},
        {0.1, 3, 0.2, 0.2, -3.3155127542, -3.3155127542, 0},
        {0.25, 1, 0.2, 0.3, -1.2840254167, -1.2840254167, 0},
        {0.25, 1, 0.2, 0.28, -1.28, 0, 1},
        {-0.25, -1, 0.25, 0.2, 0.7788007831, 0.7788007831, 0},
        {0.5, 0, 0.2, 0.2, 0, 0, 1},
        {0, -2, 0, 0, 2, 2, 0},
        {25, -1, 0.2, 0.2, 485165195.41, 0, 1},
        {-25, -1, 0.2, 0.2, 0.8, 0, 1},
        {-1e30, 1, 0.2, 0.2, 0, 0, 1},
        {1e30, 1, 0.2, 0.2, -1.2, 0, 1},
        {-INFINITY, -1, 0.2, 0.2, 0.8, 0, 1},
    };
    const float one = 1;
    for (int set = 0; set < n_sets(); set++) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            const float log_prob = (float)rows[i].difference, old = 0, A = (float)rows[i].A;
            float loss = NAN, kl = NAN, clipped = NAN, slope = NAN;
            op o = {.attr = {{0}, {rows[i].low, rows[i].high}},
                    .in = {view(&log_prob, 1, 0, DT_F32), view(&old, 1, 0, DT_F32), view(&A, 1, 0, DT_F32)},
                    .out = {view(&loss, 1, 0, DT_F32), view(&kl, 1, 0, DT_F32), view(&clipped, 1, 0, DT_F32)},
                    .n_in = 3,
                    .n_out = 3};
            run(set, DT_OPX_PPO_CLIP, &o);
            const double d = fmin(fmax(rows[i].difference, -20), 20);
            assert_near(set, "loss", (int64_t)i, loss, rows[i].loss, 1e-6);
            assert_near(set, "k3", (int64_t)i, kl, expm1(d) - d, 1e-6);
            assert_near(set, "clipped", (int64_t)i, clipped, rows[i].clipped, 0);
            op b = {.attr = o.attr,
                    .in = {view(&one, 1, 0, DT_F32), {.data = NULL}, o.in[0], o.in[1], o.in[2]},
                    .out = {view(&slope, 1, 0, DT_F32)},
                    .n_in = 5,
                    .n_out = 1};
            run(set, DT_OPX_PPO_CLIP_BWD, &b);
            assert_near(set, "slope", (int64_t)i, slope, rows[i].slope, 1e-6);
        }
    }
}

/* ---- the loss of a value ----------------------------------------------------------------------------------------- */

static void test_value_loss(void **state)
{
    static const struct {
        int64_t how;
        double clip, value, target, old, loss, slope;
    } rows[] = {
        {DT_VALUE_PLAIN, 0, 3, 1, 0, 4, 4},
        {DT_VALUE_CLIP_STEP, 0.5, 3, 1, 2.75, 4, 4},   /* near enough */
        {DT_VALUE_CLIP_STEP, 0.5, 3, 1, 0, 4, 4},      /* 0.5 away from the target once clipped: less */
        {DT_VALUE_CLIP_STEP, 0.5, 3, 1, 5, 12.25, 0},  /* 4.5 once clipped: more, and constant */
        {DT_VALUE_CLIP_STEP, 0.5, -1, -1, 1, 2.25, 0}, /* at the target, but too far from old */
        {DT_VALUE_CLIP_ERROR, 10, 3, 1, 0, 4, 4},
        {DT_VALUE_CLIP_ERROR, 3, 3, 1, 0, 3, 0},
        {DT_VALUE_CLIP_ERROR, 3, 1, 3, 0, 3, 0},
    };
    for (int set = 0; set < n_sets(); set++) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            const float value = (float)rows[i].value, target = (float)rows[i].target, old = (float)rows[i].old, dy = 2;
            float loss = NAN, slope = NAN;
            op o = {.attr = {{rows[i].how}, {rows[i].clip}},
                    .in = {view(&value, 1, 0, DT_F32), view(&target, 1, 0, DT_F32), view(&old, 1, 0, DT_F32)},
                    .out = {view(&loss, 1, 0, DT_F32)},
                    .n_in = rows[i].how == DT_VALUE_CLIP_STEP ? 3 : 2,
                    .n_out = 1};
            run(set, DT_OPX_VALUE_LOSS, &o);
            assert_near(set, "loss", (int64_t)i, loss, rows[i].loss, 1e-6);
            op b = {.attr = o.attr,
                    .in = {view(&dy, 1, 0, DT_F32), o.in[0], o.in[1], o.in[2]},
                    .out = {view(&slope, 1, 0, DT_F32)},
                    .n_in = o.n_in + 1,
                    .n_out = 1};
            run(set, DT_OPX_VALUE_LOSS_BWD, &b);
            assert_near(set, "slope", (int64_t)i, slope, 2 * rows[i].slope, 1e-6);
        }
    }
}

/* ---- rows alone -------------------------------------------------------------------------------------------------- */

/* The host acts on one row and learns on many: a row has the same bits whatever stands next to it. */
static void test_rows_do_not_depend_on_the_number_of_rows(void **state)
{
    float x[MAX], y[MAX], z[MAX], mask[MAX];
    int32_t action[MAX_ROWS];
    for (int i = 0; i < MAX; i++) {
        x[i] = sinf(1.7f * (float)i);
        y[i] = cosf(2.3f * (float)i);
        z[i] = sinf(0.9f * (float)i + 1);
        mask[i] = i % 4 == 1 ? 0 : 1;
    }
    for (int r = 0; r < MAX_ROWS; r++) {
        action[r] = r % 5;
    }
    for (int set = 1; set < n_sets(); set++) {
        for (int64_t from = 0; from < MAX_ROWS; from += 7) {
            for (int64_t n = 1; from + n <= MAX_ROWS; n += 5) {
                float whole[3][MAX_ROWS], part[3][MAX_ROWS];
                const struct {
                    uint32_t id;
                    op o;
                } calls[] = {
                    {DT_OPX_CATEGORICAL,
                     {.in = {view(x, MAX_ROWS, 5, DT_F32), view(action, MAX_ROWS, 1, DT_I32),
                             view(mask, MAX_ROWS, 5, DT_F32)},
                      .n_in = 3,
                      .n_out = 2}},
                    {DT_OPX_GAUSSIAN,
                     {.in = {view(x, MAX_ROWS, 3, DT_F32), view(y, MAX_ROWS, 3, DT_F32), view(z, MAX_ROWS, 3, DT_F32)},
                      .n_in = 3,
                      .n_out = 2}},
                    {DT_OPX_PPO_CLIP,
                     {.attr = {{0}, {0.2, 0.2}},
                      .in = {view(x, MAX_ROWS, 0, DT_F32), view(y, MAX_ROWS, 0, DT_F32), view(z, MAX_ROWS, 0, DT_F32)},
                      .n_in = 3,
                      .n_out = 3}},
                };
                for (size_t k = 0; k < sizeof(calls) / sizeof(calls[0]); k++) {
                    op o = calls[k].o;
                    for (uint32_t i = 0; i < o.n_out; i++) {
                        o.out[i] = view(whole[i], MAX_ROWS, 0, DT_F32);
                    }
                    run(set, calls[k].id, &o);
                    for (uint32_t i = 0; i < o.n_in; i++) {
                        const int64_t width = o.in[i].rank == 2 ? o.in[i].dim[1] : 1;
                        o.in[i].data = (char *)o.in[i].data + from * width * 4;
                        o.in[i].dim[0] = n;
                    }
                    for (uint32_t i = 0; i < o.n_out; i++) {
                        o.out[i] = view(part[i], n, 0, DT_F32);
                    }
                    run(set, calls[k].id, &o);
                    for (uint32_t i = 0; i < o.n_out; i++) {
                        assert_memory_equal(part[i], whole[i] + from, (size_t)n * sizeof(float));
                    }
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_categorical),
        cmocka_unit_test(test_nan_spreads_to_its_row_alone),
        cmocka_unit_test(test_gaussian),
        cmocka_unit_test(test_ppo_clip),
        cmocka_unit_test(test_ppo_clip_bounds),
        cmocka_unit_test(test_value_loss),
        cmocka_unit_test(test_rows_do_not_depend_on_the_number_of_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
