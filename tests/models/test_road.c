/* SPDX-License-Identifier: Apache-2.0
 *
 * risk_gnn with roads: it begins as the net without them, serves where none are shown, tells vehicles of the pieces
 * near them and of what hangs together with these, and nobody else; its derivatives are those of what it computes.
 */
#include "bench.h"

enum { ROWS = 5, EDGES = ROWS, PIECES = 6, JOINTS = 9, NEAR = 7, NODE_W = 14, EDGE_W = 10, NEAR_W = 8, HIDDEN = 16 };
enum { N, E, S, B, L, J, V, N_SYMBOLS };
static const char *const symbol[] = {"N", "E", "S", "B", "L", "J", "V"};
static const dt_dim dims[] = {{"lane_nodes", NODE_W}, {"lane_edges", EDGE_W}, {"near_edges", NEAR_W}};
static const char *const gat[] = {"hidden=16", "heads=2", "layers=1", "edge_hidden=4", "dropout=0", NULL};
static const char *const transformer[] = {"hidden=16",     "heads=2",   "layers=1",      "layer=transformer",
                                          "edge_hidden=4", "dropout=0", "road_layers=1", NULL};

typedef struct scene {
    float nodes[ROWS * 9], edges[EDGES * 4];
    int32_t rowptr[ROWS + 1], col[EDGES];
    float lane_nodes[PIECES * NODE_W], lane_edges[JOINTS * EDGE_W], near_edges[NEAR * NEAR_W];
    int32_t lane_rowptr[PIECES + 1], lane_col[JOINTS], near_rowptr[ROWS + 1], near_col[NEAR];
} scene;

static void fill(float *x, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / (1 << 23) - 1;
    }
}

/* Vehicles see themselves alone. Piece i has itself and, of the first three, the one after it; vehicle 0 is near 0 and
 * 1, 1 near 2 and 3, 2 near nothing, 3 near 5 and 5 again, 4 is hidden. */
static scene new_scene(void)
{
    scene s;
    static const int32_t lane_rowptr[] = {0, 2, 4, 6, 7, 8, 9}, lane_col[] = {0, 1, 1, 2, 2, 3, 3, 4, 5};
    static const int32_t near_rowptr[] = {0, 2, 4, 4, 6, 7}, near_col[] = {0, 1, 2, 3, 5, 5, 4};
    fill(s.nodes, ROWS * 9, 1);
    fill(s.edges, EDGES * 4, 2);
    fill(s.lane_nodes, PIECES * NODE_W, 3);
    fill(s.lane_edges, JOINTS * EDGE_W, 4);
    fill(s.near_edges, NEAR * NEAR_W, 5);
    for (int k = 0; k < NEAR; k++) {
        s.near_edges[k * NEAR_W + NEAR_W - 2] = k % 2 == 0 ? 1 : 0;
        s.near_edges[k * NEAR_W + NEAR_W - 1] = 1;
    }
    memset(s.near_edges + 6 * NEAR_W, 0, NEAR_W * sizeof(float));
    for (int i = 0; i <= ROWS; i++) {
        s.rowptr[i] = i;
        s.col[i < ROWS ? i : 0] = i < ROWS ? i : 0;
    }
    memcpy(s.lane_rowptr, lane_rowptr, sizeof(lane_rowptr));
    memcpy(s.lane_col, lane_col, sizeof(lane_col));
    memcpy(s.near_rowptr, near_rowptr, sizeof(near_rowptr));
    memcpy(s.near_col, near_col, sizeof(near_col));
    return s;
}

typedef struct net {
    bench b;
    dt_plan *p;
    dt_exec *e;
} net;

static const int64_t live[N_SYMBOLS] = {ROWS, EDGES, 0, 1, PIECES, JOINTS, NEAR};

/* is_shown: of a net that knows roads. */
static void open_net(net *m, const char *const *set, bool is_known, bool is_shown, bool learns)
{
    bench *b = &m->b;
    assert_int_equal(bench_create(b, "risk_gnn", set, dims, is_known ? 3 : 0), DT_OK);
    b->not_given = is_known && !is_shown ? 0x7fu << 4 : 0;
    bench_record(b, symbol, N_SYMBOLS);
    assert_int_equal(b->n_in, is_known ? 11 : 4);
    for (uint32_t k = 0; k < 2; k++) {
        assert_int_equal(b->g->api->loss(b->g, b->out[k].name, dt_sum(b->g, dt_mul(b->g, b->to[k], b->to[k])), 1, "1"),
                         DT_OK);
    }
    const dt_plan_desc pd = {
        .lane = DT_LANE_REF64, .training = learns, .reuse = true, .poison = true, .fuse = true, .cap = live};
    assert_int_equal(dt_plan_compile(b->g, &pd, &m->p), DT_OK);
    assert_int_equal(dt_exec_create(m->p, &m->e), DT_OK);
    const size_t total = (size_t)b->r.table.total;
    b->params = aligned_alloc(64, total * sizeof(float) + 64);
    b->wide = calloc(total + 8, sizeof(double));
    b->grads = calloc(total + 8, sizeof(double));
    assert_int_equal(dt_param_table_init(&b->r.table, 11, b->params), DT_OK);
    for (size_t i = 0; i < total; i++) {
        b->wide[i] = (double)b->params[i];
    }
}

static void close_net(net *m)
{
    dt_exec_destroy(m->e);
    dt_plan_destroy(m->p);
    bench_close(&m->b);
}

/* Sum of both losses; out [ROWS,HIDDEN], NULL: not wanted. */
static double run(net *m, const scene *s, double *out)
{
    static const double seed[DT_GRAPH_MAX_LOSSES] = {1, 1};
    const void *field[11] = {s->nodes,    s->rowptr,     s->col,         s->edges,    s->lane_nodes, s->lane_rowptr,
                             s->lane_col, s->lane_edges, s->near_rowptr, s->near_col, s->near_edges};
    double loss[DT_GRAPH_MAX_LOSSES] = {0};
    const dt_kernel_run how = {.training = 1};
    const dt_exec_feed feed = {.size = live,
                               .field = (void *const *)field,
                               .params = m->b.wide,
                               .grads = m->b.grads,
                               .loss_seed = seed,
                               .loss = loss,
                               .run = &how};
    memset(m->b.grads, 0, (size_t)m->b.r.table.total * sizeof(double));
    assert_int_equal(dt_exec_run(m->e, &feed), DT_OK);
    if (out != NULL) {
        memcpy(out, dt_exec_output(m->e, "embedding")->data, ROWS * HIDDEN * sizeof(*out));
    }
    return loss[0] + loss[1];
}

static const dt_param *find(const net *m, const char *name)
{
    char full[64];
    snprintf(full, sizeof(full), "m.%s", name);
    const dt_param *p = dt_param_table_find(&m->b.r.table, full);
    assert_non_null(p);
    return p;
}

/* What begins as zeros gets values, so that all of it matters. */
static void awake(net *m)
{
    const dt_param *p = find(m, "road.out");
    float *x = malloc((size_t)p->count * sizeof(*x));
    fill(x, (size_t)p->count, 77);
    for (int64_t i = 0; i < p->count; i++) {
        m->b.wide[p->offset + i] = 0.3 * (double)x[i];
    }
    free(x);
}

static void test_it_begins_as_without_roads(void **state)
{
    (void)state;
    const scene s = new_scene();
    for (int k = 0; k < 2; k++) {
        const char *const *set = k == 0 ? gat : transformer;
        double with[ROWS * HIDDEN], without[ROWS * HIDDEN], unseen[ROWS * HIDDEN];
        net a, b, c;
        open_net(&a, set, true, true, false);
        open_net(&b, set, false, false, false);
        open_net(&c, set, true, false, false);
        (void)run(&a, &s, with);
        (void)run(&b, &s, without);
        assert_memory_equal(with, without, sizeof(with));
        awake(&c); /* trained, but nothing is shown */
        (void)run(&c, &s, unseen);
        assert_memory_equal(unseen, without, sizeof(unseen));
        awake(&a);
        (void)run(&a, &s, with);
        assert_memory_not_equal(with, without, sizeof(with));
        close_net(&a);
        close_net(&b);
        close_net(&c);
    }
}

static bool is_row_equal(const double *a, const double *b, int i)
{
    return memcmp(a + i * HIDDEN, b + i * HIDDEN, HIDDEN * sizeof(*a)) == 0;
}

/* One layer among pieces: what changes of one is seen by who is near it, or near one that it hangs together with. */
static void test_who_sees_what(void **state)
{
    (void)state;
    static const bool seen_by[PIECES][ROWS] = {{true}, {true}, {true, true}, {false, true}, {false}, {[3] = true}};
    scene s = new_scene();
    double before[ROWS * HIDDEN], after[ROWS * HIDDEN], without[ROWS * HIDDEN];
    net a, b;
    open_net(&a, transformer, true, true, false);
    open_net(&b, transformer, false, false, false);
    awake(&a);
    (void)run(&a, &s, before);
    (void)run(&b, &s, without);
    for (int i = 0; i < ROWS; i++) { /* near nothing, and hidden: as without roads */
        assert_int_equal(is_row_equal(before, without, i), i == 2 || i == 4);
    }
    for (int p = 0; p < PIECES; p++) {
        s = new_scene();
        s.lane_nodes[p * NODE_W] += 1;
        (void)run(&a, &s, after);
        for (int i = 0; i < ROWS; i++) {
            assert_int_equal(is_row_equal(before, after, i), !seen_by[p][i]);
        }
    }
    s = new_scene();
    s.near_edges[0] += 1; /* vehicle 0 is elsewhere on its piece */
    (void)run(&a, &s, after);
    for (int i = 0; i < ROWS; i++) {
        assert_int_equal(is_row_equal(before, after, i), i != 0);
    }
    close_net(&a);
    close_net(&b);
}

static void test_derivatives(void **state)
{
    (void)state;
    const scene s = new_scene();
    for (int k = 0; k < 2; k++) {
        net m;
        int n_road = 0, n_moved = 0;
        open_net(&m, k == 0 ? gat : transformer, true, true, true);
        awake(&m);
        (void)run(&m, &s, NULL);
        const size_t total = (size_t)m.b.r.table.total;
        double *grad = malloc(total * sizeof(*grad));
        memcpy(grad, m.b.grads, total * sizeof(*grad));
        for (uint32_t i = 0; i < m.b.r.table.n; i++) {
            const dt_param *p = &m.b.r.table.param[i];
            const bool is_road = strncmp(p->name, "m.road.", 7) == 0;
            n_road += is_road;
            for (int64_t j = 0; j < p->count; j += 1 + p->count / 7) {
                double *x = &m.b.wide[p->offset + j];
                const double was = *x, step = 1e-5;
                *x = was + step;
                const double up = run(&m, &s, NULL);
                *x = was - step;
                const double down = run(&m, &s, NULL);
                *x = was;
                const double want = (up - down) / (2 * step), got = grad[p->offset + j];
                if (fabs(got - want) > 1e-5 * fmax(1, fabs(want))) {
                    fail_msg("%s[%lld]: %g, finite differences say %g", p->name, (long long)j, got, want);
                }
                n_moved += is_road && fabs(got) > 1e-9;
            }
        }
        assert_true(n_road > 20 && n_moved > 60);
        free(grad);
        close_net(&m);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const dt_dim some[] = {{"lane_nodes", NODE_W}, {"near_edges", NEAR_W}},
                        narrow[] = {{"lane_nodes", NODE_W}, {"lane_edges", EDGE_W}, {"near_edges", 1}};
    for (int k = 0; k < 2; k++) {
        bench b;
        assert_int_equal(bench_create(&b, "risk_gnn", gat, k == 0 ? some : narrow, k == 0 ? 2 : 3), DT_ESHAPE);
        assert_non_null(strstr(b.host.message, k == 0 ? "have 14, 0 and 8 columns; it reads roads from all three"
                                                      : "have 14, 10 and 1 columns"));
        free(b.self);
        free(b.config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_begins_as_without_roads),
        cmocka_unit_test(test_who_sees_what),
        cmocka_unit_test(test_derivatives),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
