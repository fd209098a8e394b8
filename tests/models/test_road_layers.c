/* SPDX-License-Identifier: Apache-2.0
 *
 * What risk_gnn makes of roads (models/risk_gnn/road.c), recorded in a real graph and run in double, against the
 * formulas of road.h computed vehicle by vehicle: layers among pieces, attention of vehicles, means with and without
 * the marked edges, vehicles near nothing and hidden ones.
 */
#include "../../models/risk_gnn/road.c"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/err.h"
#include "graph/plan.h"

enum { VEHICLES = 4, PIECES = 5, LINKS = 8, NEARS = 7, NODE_W = 3, EDGE_W = 2, NEAR_W = 4 };
enum { HIDDEN = 8, HEADS = 2, C = HIDDEN / HEADS, LAYERS = 2, UNITS = 3, ARENA = 1 << 14 };

static float vehicle[VEHICLES][HIDDEN], lane_node[PIECES][NODE_W], lane_edge[LINKS][EDGE_W], near_edge[NEARS][NEAR_W];
static const int32_t lane_rowptr[] = {0, 2, 4, 6, 7, 8}, lane_col[] = {0, 1, 1, 2, 2, 4, 3, 4};
static const int32_t near_rowptr[] = {0, 3, 3, 5, 7}, near_col[] = {0, 1, 4, 2, 3, 1, 0};
static const dt_port fields[] = {{"vehicle", "N 8", DT_F32, 0},     {"lane_nodes", "L 3", DT_F32, 0},
                                 {"lane_rowptr", "L+1", DT_I32, 0}, {"lane_col", "J", DT_I32, 0},
                                 {"lane_edges", "J 2", DT_F32, 0},  {"near_rowptr", "N+1", DT_I32, 0},
                                 {"near_col", "V", DT_I32, 0},      {"near_edges", "V 4", DT_F32, 0}};
static dt_param_table table;
static double params[ARENA];

static double draw(int i)
{
    return (double)(i * 37 % 101) / 50 - 1;
}

static void fill(float *x, int n, int from)
{
    for (int i = 0; i < n; i++) {
        x[i] = (float)draw(from + 3 * i);
    }
}

static void fill_all(void)
{
    fill(&vehicle[0][0], VEHICLES * HIDDEN, 1);
    fill(&lane_node[0][0], PIECES * NODE_W, 2);
    fill(&lane_edge[0][0], LINKS * EDGE_W, 5);
    fill(&near_edge[0][0], NEARS * NEAR_W, 9);
    for (int k = 0; k < NEARS; k++) {
        near_edge[k][NEAR_W - 2] = k % 3 == 0 ? 1 : 0; /* on */
        near_edge[k][NEAR_W - 1] = k < 5 ? 1 : 0;      /* expected: the last vehicle is hidden */
    }
    for (int64_t i = 0; i < table.total; i++) {
        params[i] = 0.4 * draw((int)(7 * i + 11));
    }
}

/* ---- the formulas ------------------------------------------------------------------------------------------------ */

static const double *of(const char *name)
{
    char full[96];
    snprintf(full, sizeof(full), "m.%s", name);
    const dt_param *p = dt_param_table_find(&table, full);
    assert_non_null(p);
    return params + p->offset;
}

static double elu(double x)
{
    return x > 0 ? x : expm1(x);
}

/* W x, W [rows,cols], plus b where there is one */
static void line(const char *w, const char *b, int rows, int cols, const double *x, double *y)
{
    for (int r = 0; r < rows; r++) {
        y[r] = b != NULL ? of(b)[r] : 0;
        for (int c = 0; c < cols; c++) {
            y[r] += of(w)[r * cols + c] * x[c];
        }
    }
}

static void named_line(const char *name, int rows, int cols, const double *x, double *y)
{
    char w[64], b[64];
    snprintf(w, sizeof(w), "%s.w", name);
    snprintf(b, sizeof(b), "%s.b", name);
    line(w, b, rows, cols, x, y);
}

static void layer_norm(const char *name, const double *x, double *y)
{
    char gamma[64], beta[64];
    double mean = 0, square = 0;
    snprintf(gamma, sizeof(gamma), "%s.gamma", name);
    snprintf(beta, sizeof(beta), "%s.beta", name);
    for (int i = 0; i < HIDDEN; i++) {
        mean += x[i] / HIDDEN;
    }
    for (int i = 0; i < HIDDEN; i++) {
        square += (x[i] - mean) * (x[i] - mean) / HIDDEN;
    }
    for (int i = 0; i < HIDDEN; i++) {
        y[i] = (x[i] - mean) / sqrt(square + 1e-5) * of(gamma)[i] + of(beta)[i];
    }
}

/* out = attention of q over n entries: keys k[at[x]], values v[at[x]], bias [n,HEADS] */
static void attend(const double *q, const double k[][HIDDEN], const double v[][HIDDEN], const int32_t *at, int n,
                   const double bias[][HEADS], double *out)
{
    memset(out, 0, HIDDEN * sizeof(*out));
    for (int h = 0; h < HEADS; h++) {
        double p[LINKS], sum = 0;
        for (int x = 0; x < n; x++) {
            double z = bias[x][h];
            for (int c = h * C; c < (h + 1) * C; c++) {
                z += q[c] * k[at[x]][c] / sqrt(C);
            }
            sum += p[x] = exp(z);
        }
        for (int x = 0; x < n; x++) {
            for (int c = h * C; c < (h + 1) * C; c++) {
                out[c] += p[x] / sum * v[at[x]][c];
            }
        }
    }
}

static void widen(const float *x, int n, double *y)
{
    for (int i = 0; i < n; i++) {
        y[i] = (double)x[i];
    }
}

static void layer_of(int i, double r[PIECES][HIDDEN])
{
    char name[32];
    double n[PIECES][HIDDEN], q[PIECES][HIDDEN], k[PIECES][HIDDEN], v[PIECES][HIDDEN], bias[LINKS][HEADS];
    for (int p = 0; p < PIECES; p++) {
        snprintf(name, sizeof(name), "road.%d.norm", i);
        layer_norm(name, r[p], n[p]);
        snprintf(name, sizeof(name), "road.%d.q", i);
        named_line(name, HIDDEN, HIDDEN, n[p], q[p]);
        snprintf(name, sizeof(name), "road.%d.k", i);
        named_line(name, HIDDEN, HIDDEN, n[p], k[p]);
        snprintf(name, sizeof(name), "road.%d.v", i);
        named_line(name, HIDDEN, HIDDEN, n[p], v[p]);
    }
    for (int e = 0; e < LINKS; e++) {
        double x[EDGE_W + UNITS];
        widen(lane_edge[e], EDGE_W, x);
        named_line("road.link", UNITS, EDGE_W, x, x + EDGE_W);
        for (int u = 0; u < UNITS; u++) {
            x[EDGE_W + u] = elu(x[EDGE_W + u]);
        }
        snprintf(name, sizeof(name), "road.%d.w_e", i);
        line(name, NULL, HEADS, EDGE_W + UNITS, x, bias[e]);
    }
    for (int p = 0; p < PIECES; p++) {
        double seen[HIDDEN], more[HIDDEN];
        const int from = lane_rowptr[p];
        attend(q[p], k, v, lane_col + from, lane_rowptr[p + 1] - from, bias + from, seen);
        snprintf(name, sizeof(name), "road.%d.o", i);
        named_line(name, HIDDEN, HIDDEN, seen, more);
        for (int c = 0; c < HIDDEN; c++) {
            r[p][c] += more[c];
        }
    }
}

static void vehicle_of(int i, const double n[PIECES][HIDDEN], double *out)
{
    double h[HIDDEN], q[HIDDEN], k[PIECES][HIDDEN], v[PIECES][HIDDEN], f[NEARS][UNITS], bias[NEARS][HEADS], told = 0;
    double all[HIDDEN + 2 * UNITS] = {0};
    const int from = near_rowptr[i], count = near_rowptr[i + 1] - from;
    widen(vehicle[i], HIDDEN, h);
    named_line("road.q", HIDDEN, HIDDEN, h, q);
    for (int p = 0; p < PIECES; p++) {
        named_line("road.k", HIDDEN, HIDDEN, n[p], k[p]);
        named_line("road.v", HIDDEN, HIDDEN, n[p], v[p]);
    }
    for (int x = 0; x < count; x++) {
        double e[NEAR_W];
        widen(near_edge[from + x], NEAR_W, e);
        named_line("road.near", UNITS, NEAR_W, e, f[x]);
        for (int u = 0; u < UNITS; u++) {
            f[x][u] = elu(f[x][u]);
            all[HIDDEN + u] += f[x][u] / count;
            all[HIDDEN + UNITS + u] += e[NEAR_W - 2] * f[x][u] / count;
        }
        line("road.w_near", NULL, HEADS, UNITS, f[x], bias[x]);
        told += e[NEAR_W - 1] / count;
    }
    attend(q, k, v, near_col + from, count, bias, all);
    line("road.out", NULL, HIDDEN, HIDDEN + 2 * UNITS, all, out);
    for (int c = 0; c < HIDDEN; c++) {
        out[c] *= told;
    }
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

typedef struct registry {
    dt_params reg; /* first */
} registry;

static dt_status add_param(dt_params *reg, const char *name, const int64_t *dim, uint32_t n_dims, uint32_t init,
                           double a)
{
    (void)reg;
    return dt_param_table_add(&table, "m", name, dim, n_dims, init, a);
}

static void run(double out[VEHICLES][HIDDEN])
{
    static const char *const symbol[] = {"N", "L", "J", "V", "B"};
    static const int64_t live[] = {VEHICLES, PIECES, LINKS, NEARS, 1};
    static const road r = {.hidden = HIDDEN,
                           .heads = HEADS,
                           .layers = LAYERS,
                           .units = UNITS,
                           .node = NODE_W,
                           .edge = EDGE_W,
                           .near = NEAR_W};
    static const char *const name[N_ROAD_IN] = {"lane_nodes",  "lane_rowptr", "lane_col",  "lane_edges",
                                                "near_rowptr", "near_col",    "near_edges"};
    const void *field[] = {vehicle, lane_node, lane_rowptr, lane_col, lane_edge, near_rowptr, near_col, near_edge};
    registry reg = {.reg = {.struct_size = sizeof(dt_params), .add = add_param}};
    dt_graph *g = NULL;
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    assert_int_equal(road_params(&r, &reg.reg), DT_OK);
    assert_true(table.total <= ARENA);
    const dt_graph_desc d = {.symbol = symbol, .n_symbols = 5, .field = fields, .n_fields = 8, .params = &table};
    assert_int_equal(dt_graph_create(&d, &g), DT_OK);
    dt_graph_scope(g, "m");
    dt_tensor *in[N_ROAD_IN];
    for (int k = 0; k < N_ROAD_IN; k++) {
        in[k] = g->api->input(g, name[k]);
    }
    dt_tensor *y = road_see(&r, g, g->api->input(g, "vehicle"), in);
    if (g->api->output(g, "y", y) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    fill_all();
    const dt_plan_desc pd = {.lane = DT_LANE_REF64, .reuse = true, .cap = live};
    const dt_kernel_run how = {0};
    const dt_exec_feed feed = {.size = live, .field = (void *const *)(uintptr_t)field, .params = params, .run = &how};
    assert_int_equal(dt_plan_compile(g, &pd, &p), DT_OK);
    assert_int_equal(dt_exec_create(p, &e), DT_OK);
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    memcpy(out, dt_exec_output(e, "y")->data, VEHICLES * HIDDEN * sizeof(double));
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    dt_graph_destroy(g);
}

static void test_roads_are_seen_as_defined(void **state)
{
    (void)state;
    double got[VEHICLES][HIDDEN], r[PIECES][HIDDEN], n[PIECES][HIDDEN];
    run(got);
    for (int p = 0; p < PIECES; p++) {
        double x[NODE_W];
        widen(lane_node[p], NODE_W, x);
        named_line("road.in", HIDDEN, NODE_W, x, r[p]);
        for (int c = 0; c < HIDDEN; c++) {
            r[p][c] = elu(r[p][c]);
        }
    }
    for (int i = 0; i < LAYERS; i++) {
        layer_of(i, r);
    }
    for (int p = 0; p < PIECES; p++) {
        layer_norm("road.norm", r[p], n[p]);
    }
    for (int i = 0; i < VEHICLES; i++) {
        double want[HIDDEN] = {0};
        if (near_rowptr[i + 1] > near_rowptr[i]) {
            vehicle_of(i, n, want);
        }
        for (int c = 0; c < HIDDEN; c++) {
            if (!(fabs(got[i][c] - want[c]) <= 1e-9 * (1 + fabs(want[c])))) {
                fail_msg("vehicle %d, column %d: %.12g is not %.12g", i, c, got[i][c], want[c]);
            }
        }
    }
    dt_param_table_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_roads_are_seen_as_defined)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
