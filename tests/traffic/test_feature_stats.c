/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/store/feature_stats.c: against sums in one go, frames joined in their order, and frames of
 * nobody.
 */
#include "fixture.h"

#include "base/rng.h"
#include "traffic/store/feature_stats.h"

#include <math.h>

enum { VEHICLES = 37, FRAMES = 11, MOST_EDGES = VEHICLES * 6 };

typedef struct frame {
    uint32_t n;
    float node[VEHICLES * DT_NODE_FEATURES], edge[MOST_EDGES * DT_EDGE_FEATURES];
    int32_t rowptr[VEHICLES + 1];
} frame;

static frame frames[FRAMES];

/* Features far from zero compared with their spread; 0 to 5 neighbours; a vehicle's edge to itself first, which would
 * show. */
static void make_frames(void)
{
    const dt_rng_key key = {.seed = 3};
    uint64_t at = 0;
    for (int f = 0; f < FRAMES; f++) {
        frame *to = &frames[f];
        to->n = f == 4 ? 0 : f == 5 ? 1 : (uint32_t)(VEHICLES - f);
        for (uint32_t i = 0; i < to->n; i++) {
            const int32_t own = to->rowptr[i], n_near = f == 5 ? 0 : (int32_t)(6 * dt_rng_uniform(&key, at++));
            for (int d = 0; d < DT_NODE_FEATURES; d++) {
                to->node[i * DT_NODE_FEATURES + (uint32_t)d] = (float)(1000 * d + dt_rng_uniform(&key, at++));
            }
            to->rowptr[i + 1] = own + 1 + n_near;
            for (int32_t e = own; e < to->rowptr[i + 1]; e++) {
                for (int d = 0; d < DT_EDGE_FEATURES; d++) {
                    to->edge[e * DT_EDGE_FEATURES + d] = e == own ? 1e9F : (float)(dt_rng_uniform(&key, at++) - d);
                }
            }
        }
    }
}

/* Of one column of all frames: the value of a row, or of an edge to another vehicle. */
static dt_column_stat reference(int node_column, int edge_column)
{
    long double sum = 0, square = 0;
    dt_column_stat s = {.min = INFINITY, .max = -INFINITY};
    for (int pass = 0; pass < 2; pass++) {
        for (int f = 0; f < FRAMES; f++) {
            const frame *from = &frames[f];
            for (uint32_t i = 0; i < from->n; i++) {
                const int32_t begin = node_column >= 0 ? 0 : from->rowptr[i] + 1;
                const int32_t end = node_column >= 0 ? 1 : from->rowptr[i + 1];
                for (int32_t e = begin; e < end; e++) {
                    const double x =
                        (double)(node_column >= 0 ? from->node[i * DT_NODE_FEATURES + (uint32_t)node_column]
                                                  : from->edge[e * DT_EDGE_FEATURES + edge_column]);
                    s.n += pass == 0;
                    s.min = fmin(s.min, x);
                    s.max = fmax(s.max, x);
                    sum += pass == 0 ? (long double)x : 0;
                    square += pass == 0 ? 0 : ((long double)x - sum / s.n) * ((long double)x - sum / s.n);
                }
            }
        }
    }
    s.mean = (double)(sum / s.n);
    s.m2 = (double)square;
    return s;
}

static void agree(const dt_column_stat *got, const dt_column_stat *want, double rounding)
{
    assert_true(got->n == want->n && got->min == want->min && got->max == want->max);
    assert_true(fabs(got->mean - want->mean) <= rounding * fabs(want->mean));
    assert_true(fabs(got->m2 - want->m2) <= 1e-9 * want->m2);
}

static void test_frames_join(void **state)
{
    dt_feature_stats all = {.node = {{.n = 0}}};
    make_frames();
    for (int f = 0; f < FRAMES; f++) {
        dt_feature_stats one;
        dt_feature_stats_of(&one, frames[f].n, frames[f].node, frames[f].rowptr, frames[f].edge);
        assert_true(one.node[0].n == frames[f].n);
        dt_feature_stats_join(&all, &one);
    }
    for (int d = 0; d < DT_NODE_FEATURES; d++) {
        const dt_column_stat want = reference(d, -1);
        agree(&all.node[d], &want, 1e-14);
    }
    for (int d = 0; d < DT_EDGE_FEATURES; d++) {
        const dt_column_stat want = reference(-1, d);
        agree(&all.edge[d], &want, 1e-12);
    }
}

static void test_one_by_one(void **state)
{
    dt_column_stat s = {.n = 0};
    make_frames();
    for (int f = 0; f < FRAMES; f++) {
        for (uint32_t i = 0; i < frames[f].n; i++) {
            dt_column_stat_add(&s, (double)frames[f].node[i * DT_NODE_FEATURES + 3]);
        }
    }
    const dt_column_stat want = reference(3, -1);
    agree(&s, &want, 1e-14);
}

static void test_no_vehicle(void **state)
{
    const dt_feature_stats none = {.node = {{.n = 0}}};
    dt_feature_stats one, joined;
    dt_feature_stats_of(&one, 0, NULL, NULL, NULL);
    assert_memory_equal(&one, &none, sizeof(none));
    make_frames();
    dt_feature_stats_of(&one, frames[0].n, frames[0].node, frames[0].rowptr, frames[0].edge);
    joined = one;
    dt_feature_stats_join(&joined, &none);
    assert_memory_equal(&joined, &one, sizeof(one));
    joined = none;
    dt_feature_stats_join(&joined, &one);
    assert_memory_equal(&joined, &one, sizeof(one));
    dt_feature_stats_of(&one, frames[5].n, frames[5].node, frames[5].rowptr, frames[5].edge); /* alone */
    assert_true(one.node[0].n == 1 && one.node[0].m2 == 0 && one.edge[0].n == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_join),
        cmocka_unit_test(test_one_by_one),
        cmocka_unit_test(test_no_vehicle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
