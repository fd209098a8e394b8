/* SPDX-License-Identifier: Apache-2.0
 *
 * Neighbour slots of risk_gnn, recorded in a real graph and run in double, against their definition (slots.h) computed
 * edge by edge: scenes with neighbours in every slot, ties, empty slots, a vehicle alone, one without edges, and gaps
 * on the soft thresholds.
 */
#include "../../models/risk_gnn/slots.c"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "engine/graph/plan.h"

enum { MAX_EDGES = 32, MAX_NODES = 8, USED = SLOT_ALL };

typedef struct scene {
    int64_t size[3]; /* N E B */
    int32_t rowptr[MAX_NODES + 1];
    float edge[MAX_EDGES][4];
} scene;

static void node(scene *s)
{
    s->rowptr[++s->size[0]] = (int32_t)s->size[1];
}

/* An edge of the newest node: gap and lateral offset in m (left positive), closing speed as the data scales it. */
static void edge(scene *s, double gap_m, double side_m, double closing)
{
    float *e = s->edge[s->size[1]++];
    e[0] = (float)(gap_m / 20.0);
    e[1] = (float)(side_m / 4.0);
    e[2] = (float)closing;
    e[3] = 0.25f;
    s->rowptr[s->size[0]] = (int32_t)s->size[1];
}

/* ---- the definition ---------------------------------------------------------------------------------------------- */

/* 0 up to `from`, 1 from `to` on, a line between; also for to < from */
static double soft(double x, double from, double to)
{
    return fmin(fmax((x - from) / (to - from), 0), 1);
}

static double member(int slot, double gap, double side)
{
    const double ahead = soft(gap, 0, 1), behind = soft(-gap, 0, 1);
    const double lane = soft(fabs(side), 2.2, 1.8);
    const double left = soft(side, 1.8, 2.2) * soft(side, 6.0, 5.6),
                 right = soft(-side, 1.8, 2.2) * soft(-side, 6.0, 5.6);
    const double m[USED] = {lane * ahead, lane * behind, left * ahead, right * ahead, left * behind, right * behind};
    return slot == SLOT_AHEAD ? ahead : m[slot];
}

static void define(const float *e, double *logit, double *near, double *is_self)
{
    const double gap = 20.0 * (double)e[0], side = 4.0 * (double)e[1];
    *near = fmax(1 - fabs(gap) / 50, 0);
    *is_self = fmax(1 - 1000 * (fabs((double)e[0]) + fabs((double)e[1])), 0);
    for (int k = 0; k < USED; k++) {
        const double pull = k == SLOT_AHEAD ? 6 : 6 + 12 * *near;
        logit[k] = member(k, gap, side) * pull + 4 * *is_self;
    }
    logit[SLOT_ALL] = 0;
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

static void check(const scene *s)
{
    static const char *const symbol[] = {"N", "E", "B"};
    static const int64_t cap[] = {MAX_NODES, MAX_EDGES, 1};
    static const dt_port field[] = {{"edges", "E 4", DT_F32, 0}, {"rowptr", "N+1", DT_I32, 0}};
    void *const data[] = {(void *)(uintptr_t)s->edge, (void *)(uintptr_t)s->rowptr};
    dt_param_table none = {0};
    dt_graph *g = NULL;
    dt_plan *plan = NULL;
    dt_exec *exec = NULL;
    const dt_graph_desc d = {.symbol = symbol, .n_symbols = 3, .field = field, .n_fields = 2, .params = &none};
    assert_int_equal(dt_graph_create(&d, &g), DT_OK);
    dt_tensor *edges = g->api->input(g, "edges");
    dt_tensor *logits = slot_logits(g, edges);
    assert_int_equal(g->api->output(g, "logits", logits), DT_OK);
    dt_tensor *nearest = slot_nearest(g, edges, logits, g->api->input(g, "rowptr"));
    assert_int_equal(g->api->output(g, "nearest", nearest), DT_OK);
    const dt_plan_desc pd = {.kernels = DT_KERNELS_REF64, .reuse = true, .poison = true, .fuse = true, .cap = cap};
    const dt_kernel_run run = {0};
    const double zero = 0;
    double loss = 0;
    const dt_exec_feed feed = {
        .size = s->size, .field = data, .params = &zero, .loss_seed = &zero, .loss = &loss, .run = &run};
    if (dt_plan_compile(g, &pd, &plan) != DT_OK || dt_exec_create(plan, &exec) != DT_OK ||
        dt_exec_run(exec, &feed) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }

    const double *got = dt_exec_output(exec, "logits")->data, *near_got = dt_exec_output(exec, "nearest")->data;
    for (int64_t i = 0; i < s->size[0]; i++) {
        double sum[USED] = {0}, value[SLOT_VALUES][USED] = {{0}};
        for (int32_t e = s->rowptr[i]; e < s->rowptr[i + 1]; e++) {
            double logit[N_SLOTS], near = 0, is_self = 0;
            define(s->edge[e], logit, &near, &is_self);
            for (int k = 0; k < N_SLOTS; k++) {
                assert_true(fabs(got[e * N_SLOTS + k] - logit[k]) < 1e-5); /* edges are floats */
            }
            for (int k = 0; k < USED; k++) {
                sum[k] += exp(logit[k]);
                value[0][k] += exp(logit[k]) * near * (1 - is_self);
                value[1][k] += exp(logit[k]) * (double)s->edge[e][2];
            }
        }
        for (int v = 0; v < SLOT_VALUES; v++) {
            for (int k = 0; k < USED; k++) {
                const double want = sum[k] > 0 ? value[v][k] / sum[k] : 0;
                const double have = near_got[i * SLOT_FEATURES + v * USED + k];
                if (!(fabs(have - want) < 1e-4)) {
                    fail_msg("vehicle %d, slot %d, value %d: %g, expected %g", (int)i, k, v, have, want);
                }
            }
        }
    }
    dt_exec_destroy(exec);
    dt_plan_destroy(plan);
    dt_graph_destroy(g);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_every_slot(void **state)
{
    scene s = {.size = {0, 0, 1}};
    node(&s);
    edge(&s, 0, 0, 0); /* itself */
    edge(&s, 12, 0.3, 0.5);
    edge(&s, -9, -0.2, -0.25);
    edge(&s, 15, 3.6, 1);
    edge(&s, 18, -3.6, 2);
    edge(&s, -6, 3.4, 3);
    edge(&s, -21, -3.7, 4);
    edge(&s, 30, 0, 5); /* a second leader, farther away */
    node(&s);           /* others in other orders, and slots left empty */
    edge(&s, -4, 3.5, -1);
    edge(&s, 45, 0, -2);
    edge(&s, 0, 0, 0);
    edge(&s, 22, 7, -3); /* two lanes away: only ahead */
    check(&s);
}

static void test_ties_and_thresholds(void **state)
{
    scene s = {.size = {0, 0, 1}};
    node(&s);
    edge(&s, 0, 0, 0);
    edge(&s, 10, 0, 1); /* two leaders equally near: their mean */
    edge(&s, 10, 0, -3);
    node(&s);
    edge(&s, 0, 0, 0);
    edge(&s, 0.5, 2, 1); /* half ahead, half in the lane, half left of it */
    edge(&s, -0.5, -2, 2);
    edge(&s, 20, 5.8, 3); /* half out of the next lane */
    edge(&s, 60, 0, 4);   /* beyond what is near */
    edge(&s, 0.01, 0.002, 5);
    check(&s);
}

static void test_alone_and_without_edges(void **state)
{
    scene s = {.size = {0, 0, 1}};
    node(&s); /* no edge, not even to itself */
    node(&s);
    edge(&s, 0, 0, 0.75); /* alone */
    node(&s);
    check(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_slot),
        cmocka_unit_test(test_ties_and_thresholds),
        cmocka_unit_test(test_alone_and_without_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
