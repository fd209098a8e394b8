/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/env_ipp/field.c and belief.c: fusion, entropy and worth of measurements against values computed by
 * hand, sums kept up to date against a recount, error rates of the noise, what is believed and expected.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "../../plugins/env_ipp/belief.h"
#include "dtrain/random.h"

enum { CELLS = 493, STRIDE = 4, POINTS = 11, ROOM = 170 * 170 };

static const field_level level[FIELD_LEVELS] = {{5, 0.01, 28, 4705, 328},    /* ln 99 = 4.59512, 0.01 * 32768 = 327.7 */
                                                {10, 0.265, 56, 1045, 8684}, /* ln (0.735 / 0.265) = 1.02014 */
                                                {15, 0.375, 85, 523, 12288}};     /* ln (0.625 / 0.375) = 0.51083 */
static const double entropy_after[FIELD_LEVELS] = {0.080793, 0.834199, 0.954434}; /* H(0.01), H(0.265), H(0.375) */

typedef struct rig {
    mock_host host;
    field f;
    field_view view[3];
    int16_t seen[3][ROOM];
} rig;

static rig r;

static void open_field(uint32_t side, double share, int32_t stride)
{
    memset(&r, 0, sizeof(r));
    mock_host_init(&r.host);
    assert_int_equal(field_init(&r.f, &r.host.host, CELLS), DT_OK);
    field_half_plane(&r.f, side, share);
    for (int i = 0; i < 3; i++) {
        r.view[i].stride = stride;
        r.view[i].seen = r.seen[i];
    }
}

static void close_field(void)
{
    field_fini(&r.f, &r.host.host);
    assert_int_equal(r.host.n_live, 0);
}

static void aim(uint32_t i, int32_t x, int32_t y, int32_t at, uint32_t step)
{
    r.view[i].at = field_footprint(&r.f, x, y, level[at].half);
    r.view[i].level = at;
    field_noise_init(&r.view[i].noise, 7, step, i);
}

static void near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance)) {
        print_error("%.12g is %.3g from %.12g, more than %.3g\n", a, fabs(a - b), b, tolerance);
    }
    assert_true(fabs(a - b) <= tolerance);
}

/* all sums of the field, counted again */
static void recount(void)
{
    int64_t weighted = 0, target_H = 0, n_target = 0, n_found = 0, n_claimed = 0;
    for (int64_t i = 0; i < (int64_t)CELLS * CELLS; i++) {
        const double p = field_probability(r.f.odds[i]);
        const int64_t H = lround(field_entropy_bits(p) * FIELD_ONE);
        const int w2 = p > 0.501 ? 2 : p < 0.499 ? 0 : 1;
        assert_int_equal(r.f.H[i], H);
        weighted += w2 * H;
        target_H += r.f.truth[i] != 0 ? H : 0;
        n_target += r.f.truth[i] != 0;
        n_found += r.f.truth[i] != 0 && r.f.odds[i] > 0;
        n_claimed += r.f.odds[i] > 0;
    }
    assert_int_equal(r.f.weighted, weighted);
    const field_score score = field_score_of(&r.f);
    assert_int_equal(score.H, target_H);
    assert_int_equal(r.f.n_target, n_target);
    assert_int_equal(score.n_found, n_found);
    assert_int_equal(score.n_claimed, n_claimed);
}

static void test_numbers(void **state)
{
    open_field(0, 0.5, STRIDE);
    for (int k = 0; k < FIELD_LEVELS; k++) {
        assert_int_equal(-field_odds(level[k].error), level[k].odds);
        near(field_entropy_bits(level[k].error), entropy_after[k], 1e-6);
        near(r.f.entropy[r.f.limit + level[k].odds] / (double)FIELD_ONE, entropy_after[k], 1e-3);
    }
    assert_int_equal(r.f.limit, 9431); /* ln 9999 = 9.21024 */
    assert_int_equal(field_odds(0.5), 0);
    near(field_probability(r.f.limit), 0.9999, 1e-6);
    /* 0.501: 4 of 1/1024 is 0.50098, 5 is 0.50122 */
    assert_int_equal(field_weight(&r.f, 4), 1);
    assert_int_equal(field_weight(&r.f, -4), 1);
    assert_int_equal(field_weight(&r.f, 5), 2);
    assert_int_equal(field_weight(&r.f, -5), 0);
    close_field();
}

/* footprints of 56, 112 and 170 cells, cut at the border */
static void test_footprints(void **state)
{
    open_field(0, 0.5, STRIDE);
    static const int32_t width[] = {56, 112, 170};
    for (int k = 0; k < FIELD_LEVELS; k++) {
        const field_rect in = field_footprint(&r.f, 246, 246, level[k].half);
        const field_rect corner = field_footprint(&r.f, 0, CELLS, level[k].half);
        assert_int_equal(in.x1 - in.x0, width[k]);
        assert_int_equal(in.y1 - in.y0, width[k]);
        assert_int_equal(corner.x0, 0);
        assert_int_equal(corner.x1, width[k] / 2);
        assert_int_equal(corner.y0, CELLS - width[k] / 2);
        assert_int_equal(corner.y1, CELLS);
    }
    close_field();
}

static void test_truths(void **state)
{
    open_field(0, 0.4, STRIDE);
    for (uint32_t side = 0; side < 4; side++) {
        field_half_plane(&r.f, side, 0.4); /* 197 of 493 */
        const int16_t *t = r.f.truth, *last = t + (int64_t)(CELLS - 1) * CELLS;
        assert_int_equal(r.f.n_target, 197 * CELLS);
        assert_int_equal(t[0] == 0, side == 1 || side == 3);            /* west and south */
        assert_int_equal(last[CELLS - 1] == 0, side == 0 || side == 2); /* east and north */
        assert_int_equal(t[196] != 0, side == 0 || side == 2);
        assert_int_equal(t[197] != 0, side == 2);
        recount();
    }
    for (uint64_t seed = 0; seed < 20; seed++) {
        const double share = 0.3 + 0.015 * (double)seed;
        field_patches(&r.f, seed, 5, share);
        near((double)r.f.n_target / (CELLS * CELLS), share, 0.005);
        recount();
    }
    close_field();
}

/* One measurement of unknown cells: N1 of n seen as of interest. Then weights are 1 there, 0 at the others seen:
 * worth N1 (1 - H(error)) of N1 + 1/2 (cells not seen), in bits. */
static void test_worth(void **state)
{
    for (int k = 0; k < FIELD_LEVELS; k++) {
        field_worth worth;
        open_field(0, 0.5, STRIDE);
        aim(0, 246, 246, k, 1);
        field_measure(&r.f, r.view, 1, level, &worth);
        const int64_t n = (int64_t)(2 * level[k].half) * (2 * level[k].half);
        int64_t n_one = 0, n_seen = 0;
        for (int64_t i = 0; i < (int64_t)CELLS * CELLS; i++) {
            assert_true(r.f.odds[i] == 0 || r.f.odds[i] == level[k].odds || r.f.odds[i] == -level[k].odds);
            n_one += r.f.odds[i] > 0;
            n_seen += r.f.odds[i] != 0;
        }
        assert_int_equal(n_seen, n);
        near(0.5 * (double)worth.gained / FIELD_ONE, (double)n_one * (1 - entropy_after[k]), 1e-3 * (double)n_one);
        near(0.5 * (double)worth.before / FIELD_ONE, (double)n_one + 0.5 * (double)(CELLS * CELLS - n), 1e-6 * 1e6);
        recount();
        close_field();
    }
}

/* A cell seen twice from the lowest altitude: 2 * 4705 = 9410, three times: no further than 9431; and the contrary
 * takes back exactly what was added. Worth by hand, cell by cell. */
static void test_fusion(void **state)
{
    field_worth worth;
    open_field(0, 1.0, STRIDE); /* all of interest */
    int n[5] = {0};
    for (uint32_t t = 0; t < 3; t++) {
        aim(0, 246, 246, 0, t);
        field_measure(&r.f, r.view, 1, level, &worth);
        recount();
    }
    for (int64_t i = 0; i < (int64_t)CELLS * CELLS; i++) {
        static const int32_t can[5] = {0, 9431, 4705, -4705, 4726}; /* 4726: 9431 and then one wrong */
        int j = 0;
        while (j < 5 && r.f.odds[i] != can[j]) {
            j++;
        }
        assert_true(j < 5 || r.f.odds[i] == -9431);
        n[j < 5 ? j : 3]++;
    }
    assert_int_equal(n[0], CELLS * CELLS - 56 * 56);
    near(n[1], 56 * 56 * 0.99 * 0.99 * 0.99, 5 * sqrt(56 * 56 * 0.03));
    close_field();
}

/* Several at the same time: the same map as one after another, the worth of cells in both counted once. */
static void test_together(void **state)
{
    static int16_t odds[CELLS * CELLS];
    field_worth both, each[3];
    open_field(1, 0.5, STRIDE);
    const int32_t at[3][3] = {{200, 200, 2}, {250, 230, 1}, {480, 10, 0}};
    for (uint32_t i = 0; i < 3; i++) {
        aim(i, at[i][0], at[i][1], at[i][2], 5);
    }
    field_measure(&r.f, r.view, 3, level, &both);
    recount();
    memcpy(odds, r.f.odds, sizeof(odds));
    const int64_t weighted = r.f.weighted;
    field_half_plane(&r.f, 1, 0.5);
    for (uint32_t i = 0; i < 3; i++) {
        aim(i, at[i][0], at[i][1], at[i][2], 5);
        field_measure(&r.f, &r.view[i], 1, level, &each[i]);
    }
    assert_memory_equal(odds, r.f.odds, sizeof(odds));
    assert_int_equal(weighted, r.f.weighted);
    /* by definition, from the map before (all unknown) and after */
    int64_t gained = 0, before = 0;
    for (int64_t i = 0; i < (int64_t)CELLS * CELLS; i++) {
        const int32_t w2 = field_weight(&r.f, odds[i]);
        gained += (int64_t)w2 * (FIELD_ONE - r.f.H[i]);
        before += (int64_t)w2 * FIELD_ONE;
    }
    assert_int_equal(both.gained, gained);
    assert_int_equal(both.before, before);
    close_field();
}

/* Side by side, a few cells apart, and at the last cell of all. */
static void test_gaps(void **state)
{
    open_field(2, 0.5, STRIDE);
    for (int32_t gap = 0; gap <= 40; gap++) {
        const int32_t wide = 2 * level[0].half;
        aim(0, 100, 100 + 9 * gap, 0, (uint32_t)gap);
        aim(1, 100 + wide + gap, 101 + 9 * gap, 0, (uint32_t)gap);
        aim(2, CELLS - gap, CELLS, gap % 3, (uint32_t)gap);
        field_worth worth;
        field_measure(&r.f, r.view, 3, level, &worth);
    }
    recount();
    close_field();
}

/* by wide vectors, where the processor has them, and by narrow ones: the same numbers, at all places and widths */
static void test_widths(void **state)
{
    static int16_t odds[CELLS * CELLS], seen[3][ROOM];
    field_worth worth[2];
    field_score score[2];
    for (int is_wide = 1; is_wide >= 0; is_wide--) {
        open_field(3, 0.37, STRIDE);
        r.f.is_wide = r.f.is_wide && is_wide;
        for (uint32_t t = 0; t < 30; t++) {
            for (uint32_t i = 0; i < 3; i++) {
                aim(i, (int32_t)((t * 37 + i * 101) % (CELLS + 1)), (int32_t)((t * 53 + i * 7) % (CELLS + 1)),
                    (int32_t)((t + i) % 3), t);
            }
            field_measure(&r.f, r.view, 3, level, &worth[is_wide]);
        }
        score[is_wide] = field_score_of(&r.f);
        recount();
        if (is_wide) {
            memcpy(odds, r.f.odds, sizeof(odds));
            memcpy(seen, r.seen, sizeof(seen));
        }
        assert_memory_equal(odds, r.f.odds, sizeof(odds));
        assert_memory_equal(seen, r.seen, sizeof(seen));
        close_field();
    }
    assert_memory_equal(&worth[0], &worth[1], sizeof(worth[0]));
    assert_memory_equal(&score[0], &score[1], sizeof(score[0]));
}

/* the error rates, neighbours independent, other steps and UAVs other noise */
static void test_noise(void **state)
{
    for (int k = 0; k < FIELD_LEVELS; k++) {
        double n = 0, wrong = 0, pairs = 0, columns = 0;
        field_worth worth;
        for (uint32_t t = 0; t < 20; t++) {
            open_field(0, 1.0, 1);
            aim(0, 246, 246, k, t);
            field_measure(&r.f, r.view, 1, level, &worth);
            const int32_t side = 2 * level[k].half;
            for (int32_t i = 0; i < side * side; i++) {
                const int is_wrong = r.seen[0][i] < 0;
                n++;
                wrong += is_wrong;
                pairs += is_wrong && i % side > 0 && r.seen[0][i - 1] < 0;
                columns += is_wrong && i >= side && r.seen[0][i - side] < 0;
            }
            close_field();
        }
        const double q = level[k].error;
        near(wrong / n, q, 5 * sqrt(q / n));
        near(pairs / n, q * q, 5 * q * sqrt(2 / n) + q / (2 * level[k].half));
        near(columns / n, q * q, 5 * q * sqrt(2 / n) + q / (2 * level[k].half));
    }
    field_noise a, b, c;
    field_noise_init(&a, 1, 2, 3);
    field_noise_init(&b, 1, 2, 3);
    field_noise_init(&c, 1, 3, 2);
    assert_memory_equal(&a, &b, sizeof(a));
    assert_memory_not_equal(&a, &c, sizeof(a));
}

/* Entropy falls in expectation whatever was believed: sum over z of P(z) H(L_z) <= H(L). */
static void test_information(void **state)
{
    for (int k = 0; k < FIELD_LEVELS; k++) {
        for (int32_t odds = -9000; odds <= 9000; odds += 50) {
            const double p = field_probability(odds), q = level[k].error, one = p * (1 - q) + (1 - p) * q;
            const double after = one * field_entropy_bits(field_probability(odds + level[k].odds)) +
                                 (1 - one) * field_entropy_bits(field_probability(odds - level[k].odds));
            assert_true(after <= field_entropy_bits(p) + 1e-4);
        }
    }
}

/* Samples hold what the map holds; tiles are means of it; the gain of unknown cells by hand. */
static void check_belief(int32_t stride)
{
    belief_tables t = {0};
    belief b = {0};
    field_worth worth;
    open_field(2, 0.5, stride);
    assert_int_equal(belief_tables_init(&t, &r.host.host, &r.f, level, stride, POINTS, CELLS / 10.0), DT_OK);
    assert_int_equal(belief_init(&b, &r.host.host, &t), DT_OK);
    belief_reset(&b, &t);
    for (int k = 0; k < FIELD_LEVELS; k++) {
        /* w = 1/2, and either z leaves the entropy of the error rate */
        const field_rect at = field_footprint(&r.f, 244, 244, level[k].half);
        const int32_t side = (at.x1 + stride - 1) / stride - (at.x0 + stride - 1) / stride;
        near(belief_gain(&b, &t, &at, k), side * side * 0.5 * (1 - entropy_after[k]), side * side * 1e-3);
        assert_true(side * side <= belief_samples(&t, level[k].half));
    }
    for (uint32_t step = 0; step < 12; step++) {
        aim(0, (int32_t)(step * 131 % 493), (int32_t)(step * 57 % 493), (int32_t)(step % 3), step);
        field_measure(&r.f, r.view, 1, level, &worth);
        belief_add(&b, &t, &r.view[0]);
    }
    static double p[POINTS * POINTS], H[POINTS * POINTS];
    static int32_t n[POINTS * POINTS];
    memset(p, 0, sizeof(p));
    memset(H, 0, sizeof(H));
    memset(n, 0, sizeof(n));
    for (int32_t y = 0; y < t.n; y++) {
        for (int32_t x = 0; x < t.n; x++) {
            const int32_t odds = b.odds[y * t.n + x];
            const int32_t i = (int32_t)lround((y * stride + 0.5) / (CELLS / 10.0)) * POINTS +
                              (int32_t)lround((x * stride + 0.5) / (CELLS / 10.0));
            assert_int_equal(odds, r.f.odds[(int64_t)y * stride * CELLS + x * stride]);
            p[i] += field_probability(odds);
            H[i] += field_entropy_bits(field_probability(odds));
            n[i]++;
        }
    }
    for (int32_t i = 0; i < POINTS * POINTS; i++) {
        float mean_p, mean_H;
        belief_tile(&b, &t, i, &mean_p, &mean_H);
        near((double)mean_p, p[i] / n[i], 5e-5);
        near((double)mean_H, H[i] / n[i], 5e-5);
    }
    belief_fini(&b, &r.host.host);
    belief_tables_fini(&t, &r.host.host);
    close_field();
}

static void test_belief(void **state)
{
    check_belief(1);
    check_belief(4);
    check_belief(7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),     cmocka_unit_test(test_footprints), cmocka_unit_test(test_truths),
        cmocka_unit_test(test_worth),       cmocka_unit_test(test_fusion),     cmocka_unit_test(test_together),
        cmocka_unit_test(test_gaps),        cmocka_unit_test(test_widths),     cmocka_unit_test(test_noise),
        cmocka_unit_test(test_information), cmocka_unit_test(test_belief),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
