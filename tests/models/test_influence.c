/* SPDX-License-Identifier: Apache-2.0
 *
 * controller_influence in a fake host over the real graph, in double: both nets against their formulas written out,
 * and what the formulas promise: one set of weights for any number of phases, signals and vehicles.
 */
#include "bench.h"

enum { H = 6, HEADS = 2, C = H / HEADS, K = 2, F = 17, ROW = 5, MOST = 64 };
enum { A, N, E, N_SYMBOLS };

typedef struct outputs {
    double value[MOST], logits[MOST], mean[MOST], log_std[MOST], cost_value[MOST];
} outputs;

/* -1 .. 1, never the same twice in a row */
/* Created and recorded; parameters are their first values, biases not 0, which would hide mistakes. */
static void open_wide(bench *b, const char *const *set, const dt_dim *dims, uint32_t n)
{
    static const char *const symbol[N_SYMBOLS] = {"A", "N", "E"};
    if (bench_create(b, "controller_influence", set, dims, n) != DT_OK) {
        fail_msg("%s", b->host.message);
    }
    bench_record(b, symbol, N_SYMBOLS);
    for (uint32_t i = 0; i < b->n_out; i++) { /* the derivative of all that comes out */
        dt_tensor *sum = dt_sum(b->g, dt_mul(b->g, b->to[i], b->to[i]));
        assert_int_equal(b->g->api->loss(b->g, b->out[i].name, sum, 1, "1"), DT_OK);
    }
    const size_t total = (size_t)b->r.table.total;
    float *first = aligned_alloc(64, total * sizeof(*first) + 64);
    b->wide = aligned_alloc(64, total * sizeof(double) + 64);
    b->grads = aligned_alloc(64, total * sizeof(double) + 64);
    assert_int_equal(dt_param_table_init(&b->r.table, 11, first), DT_OK);
    for (size_t i = 0; i < total; i++) {
        b->wide[i] = (double)first[i];
    }
    for (uint32_t i = 0; i < b->r.table.n; i++) {
        const dt_param *p = &b->r.table.param[i];
        for (int64_t k = 0; p->init == DT_INIT_ZERO && k < p->count; k++) {
            b->wide[p->offset + k] = 0.3 * bench_value((int)(k + i));
        }
    }
    free(first);
}

static double *wide_param(const bench *b, const char *name)
{
    char full[MOCK_NAME];
    snprintf(full, sizeof(full), "m.%s", name);
    const dt_param *p = dt_param_table_find(&b->r.table, full);
    if (p == NULL) {
        fail_msg("no parameter %s", name);
        return NULL;
    }
    return b->wide + p->offset;
}

static void take_wide(const bench *b, const dt_exec *e, const char *name, double *out, const int64_t *live)
{
    for (uint32_t i = 0; i < b->n_out; i++) {
        if (strcmp(b->out[i].name, name) == 0) {
            const char *columns = strchr(b->out[i].dims, ' ');
            const size_t n = (size_t)live[A] * (columns != NULL ? (size_t)atoi(columns) : 1);
            assert_true(n <= MOST);
            memcpy(out, dt_exec_output(e, name)->data, n * sizeof(*out));
        }
    }
}

/* Fields in the order of the input ports. Returns the sum of squares of all outputs; out, when not NULL, gets these;
 * else b->grads gets the derivative of the sum. */
static double run(const bench *b, const void *const *field, const int64_t *live, outputs *out)
{
    const bool learns = out == NULL;
    const dt_plan_desc pd = {
        .kernels = DT_KERNELS_REF64, .training = learns, .reuse = true, .poison = true, .fuse = true, .cap = live};
    const dt_kernel_run kernel = {.training = learns};
    double seed[DT_GRAPH_MAX_LOSSES], loss[DT_GRAPH_MAX_LOSSES] = {0}, sum = 0;
    for (int i = 0; i < DT_GRAPH_MAX_LOSSES; i++) {
        seed[i] = 1;
    }
    memset(b->grads, 0, (size_t)b->r.table.total * sizeof(*b->grads));
    const dt_exec_feed feed = {.size = live,
                               .field = (void *const *)(uintptr_t)field,
                               .params = b->wide,
                               .grads = b->grads,
                               .loss_seed = seed,
                               .loss = loss,
                               .run = &kernel};
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    if (dt_plan_compile(b->g, &pd, &p) != DT_OK || dt_exec_create(p, &e) != DT_OK || dt_exec_run(e, &feed) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    if (!learns) {
        memset(out, 0, sizeof(*out));
        take_wide(b, e, "value", out->value, live);
        take_wide(b, e, "logits", out->logits, live);
        take_wide(b, e, "mean", out->mean, live);
        take_wide(b, e, "log_std", out->log_std, live);
        take_wide(b, e, "cost_value", out->cost_value, live);
    }
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    for (int i = 0; i < DT_GRAPH_MAX_LOSSES; i++) {
        sum += loss[i];
    }
    return sum;
}

static void near(const char *what, double is, double want, double tolerance)
{
    if (!(fabs(is - want) <= tolerance * (1 + fabs(want)))) {
        fail_msg("%s: %.12g, expected %.12g", what, is, want);
    }
}

/* Some parameters of every tensor against central differences. */
static void check_gradient(const bench *b, const void *const *field, const int64_t *live)
{
    (void)run(b, field, live, NULL);
    double *grads = malloc((size_t)b->r.table.total * sizeof(*grads));
    memcpy(grads, b->grads, (size_t)b->r.table.total * sizeof(*grads));
    for (uint32_t i = 0; i < b->r.table.n; i++) {
        const dt_param *p = &b->r.table.param[i];
        for (int64_t k = 0; k < p->count; k += 1 + p->count / 3) {
            double *w = &b->wide[p->offset + k];
            const double before = *w, step = 1e-5;
            *w = before + step;
            const double above = run(b, field, live, NULL);
            *w = before - step;
            const double below = run(b, field, live, NULL);
            *w = before;
            near(p->name, grads[p->offset + k], (above - below) / (2 * step), 1e-6);
        }
    }
    free(grads);
}

/* y [n_out] = W x + b; without a bias where has_bias is false: the parameter is `name` itself */
static void linear(const bench *b, const char *name, bool has_bias, const double *x, int n_in, double *y, int n_out)
{
    char text[MOCK_NAME];
    snprintf(text, sizeof(text), has_bias ? "%s.w" : "%s", name);
    const double *w = wide_param(b, text), *bias = NULL;
    if (has_bias) {
        snprintf(text, sizeof(text), "%s.b", name);
        bias = wide_param(b, text);
    }
    for (int i = 0; i < n_out; i++) {
        y[i] = has_bias ? bias[i] : 0;
        for (int k = 0; k < n_in; k++) {
            y[i] += w[i * n_in + k] * x[k];
        }
    }
}

static void tanh_all(double *x, int n)
{
    for (int i = 0; i < n; i++) {
        x[i] = tanh(x[i]);
    }
}

static void softmax(double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += x[i] = exp(x[i]);
    }
    for (int i = 0; i < n; i++) {
        x[i] /= sum;
    }
}

static void assert_typed_port(const dt_port *p, const char *name, const char *dims, uint32_t dtype)
{
    assert_string_equal(p->name, name);
    assert_string_equal(p->dims, dims);
    assert_int_equal(p->dtype, dtype);
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

enum { SIGNALS = 3, P = 4, MORE_PHASES = 6, NEIGHBOURS = 4 };

typedef struct junctions {
    int phases;
    float phase[SIGNALS][MORE_PHASES * F]; /* rows of `phases` times F */
    int32_t neighbour[SIGNALS][NEIGHBOURS];
    float obs[SIGNALS][ROW];
} junctions;

static float *phase_of(junctions *j, int a, int p)
{
    return (float *)j->phase + (size_t)(a * j->phases + p) * F;
}

/* Counts and seconds as signals have them; the last phase of signal 2 does not exist. Signal 0 hears of 1 and 2, 1 of 0
 * alone, 2 of nobody. */
static junctions new_junctions(void)
{
    junctions j = {.phases = P, .neighbour = {{1, 2, 0, 0}, {0, 1, 1, 1}, {2, 2, 2, 2}}};
    for (int a = 0; a < SIGNALS; a++) {
        for (int p = 0; p < P; p++) {
            float *f = phase_of(&j, a, p);
            for (int k = 0; k < F; k++) {
                f[k] = (float)((a * 57 + p * 23 + k * 7) % 19);
            }
            f[2] -= 8;
            f[3] = p == a;
            f[4] = 1;
            f[7] = p == 1;
            f[12] = p == 1 ? 10.0F : -1.0F;
        }
        for (int k = 0; k < ROW; k++) {
            j.obs[a][k] = (float)bench_value(a * ROW + k);
        }
    }
    memset(phase_of(&j, 2, P - 1), 0, F * sizeof(float));
    phase_of(&j, 2, P - 1)[12] = -1;
    return j;
}

static void open_signals(bench *b, const char *const *set, int phases)
{
    const dt_dim dims[] = {{"D", ROW}, {"choices", phases}, {"continuous", 0}, {"K", K},
                           {"W", 1},   {"phases", F},       {"neighbour", 4}};
    open_wide(b, set, dims, 7);
}

static double run_signals(const bench *b, const junctions *j, outputs *o)
{
    static const int64_t live[N_SYMBOLS] = {SIGNALS, 1, 1};
    return run(b, (const void *const[]){j->phase, j->neighbour, j->obs}, live, o);
}

/* the header comment of signals.c, one trunk: h [SIGNALS][P][H], u [SIGNALS][H] */
static void signals_trunk(const bench *b, junctions *j, const char *trunk, bool has_row, double (*h)[P][H],
                          double (*u)[H])
{
    static const double scale[F] = {0.1, 0.1,      0.1, 1,        1,   0.2, 1.0 / 60, 1,   0.1,
                                    0.2, 1.0 / 60, 1,   1.0 / 30, 0.1, 0.2, 1.0 / 15, 0.01};
    double z[SIGNALS][H], query[SIGNALS][H], key[SIGNALS][H], from[SIGNALS][H];
    char name[MOCK_NAME];
#define NAME(text) (snprintf(name, sizeof(name), "%s.%s", trunk, text), name)
    for (int a = 0; a < SIGNALS; a++) {
        double sum[H] = {0}, row[H] = {0}, obs[ROW];
        for (int p = 0; p < P; p++) {
            double x[F], y[H];
            for (int k = 0; k < F; k++) {
                x[k] = fmin(fmax((double)phase_of(j, a, p)[k] * scale[k], -5), 5);
            }
            linear(b, NAME("phase.0"), true, x, F, y, H);
            tanh_all(y, H);
            linear(b, NAME("phase.1"), true, y, H, h[a][p], H);
            tanh_all(h[a][p], H);
            for (int k = 0; k < H; k++) {
                sum[k] += a == 2 && p == P - 1 ? 0 : h[a][p][k] / 4;
            }
        }
        linear(b, NAME("agent"), true, sum, H, z[a], H);
        if (has_row) {
            for (int k = 0; k < ROW; k++) {
                obs[k] = (double)j->obs[a][k];
            }
            linear(b, NAME("row"), false, obs, ROW, row, H);
        }
        for (int k = 0; k < H; k++) {
            z[a][k] = tanh(z[a][k] + row[k]);
        }
        linear(b, NAME("query"), false, z[a], H, query[a], H);
        linear(b, NAME("key"), false, z[a], H, key[a], H);
        linear(b, NAME("from"), false, z[a], H, from[a], H);
    }
    for (int a = 0; a < SIGNALS; a++) {
        double w[HEADS][NEIGHBOURS + 1], mix[H] = {0};
        for (int n = 0; n <= NEIGHBOURS; n++) {
            const int who = n < NEIGHBOURS ? j->neighbour[a][n] : a;
            double x[H], score[HEADS];
            for (int k = 0; k < H; k++) {
                x[k] = tanh(query[a][k] + key[who][k]);
            }
            linear(b, NAME("score"), false, x, H, score, HEADS);
            for (int i = 0; i < HEADS; i++) {
                w[i][n] = score[i];
            }
        }
        for (int i = 0; i < HEADS; i++) {
            softmax(w[i], NEIGHBOURS + 1);
            for (int n = 0; n <= NEIGHBOURS; n++) {
                for (int k = 0; k < C; k++) {
                    mix[i * C + k] += w[i][n] * from[n < NEIGHBOURS ? j->neighbour[a][n] : a][i * C + k];
                }
            }
        }
        linear(b, NAME("out"), false, mix, H, u[a], H);
        for (int k = 0; k < H; k++) {
            u[a][k] += z[a][k];
        }
    }
#undef NAME
}

static void check_signals(const char *const *set, bool is_shared, bool has_row, double rule)
{
    bench b;
    outputs o;
    junctions j = new_junctions();
    double h[SIGNALS][P][H], u[SIGNALS][H], unused[SIGNALS][P][H], critic[SIGNALS][H];
    open_signals(&b, set, P);
    (void)run_signals(&b, &j, &o);
    signals_trunk(&b, &j, "policy", has_row, h, u);
    signals_trunk(&b, &j, is_shared ? "policy" : "critic", has_row, unused, critic);
    near("head.rule", wide_param(&b, "head.rule")[0], rule, 0);
    for (int a = 0; a < SIGNALS; a++) {
        double y[K], both[H], agent[H];
        linear(&b, "head.value", true, critic[a], H, y, 1);
        near("value", o.value[a], y[0], 1e-10);
        linear(&b, "head.cost_value", true, critic[a], H, y, K);
        for (int k = 0; k < K; k++) {
            near("cost_value", o.cost_value[a * K + k], y[k], 1e-10);
        }
        linear(&b, "head.agent", false, u[a], H, agent, H);
        for (int p = 0; p < P; p++) {
            linear(&b, "head.phase", true, h[a][p], H, both, H);
            for (int k = 0; k < H; k++) {
                both[k] = tanh(both[k] + agent[k]);
            }
            linear(&b, "head.logits", false, both, H, y, 1);
            near("logits", o.logits[a * P + p],
                 y[0] + rule * ((double)phase_of(&j, a, p)[5] + (double)phase_of(&j, a, p)[10] / 60), 1e-10);
        }
    }
    static const int64_t live[N_SYMBOLS] = {SIGNALS, 1, 1};
    check_gradient(&b, (const void *const[]){j.phase, j.neighbour, j.obs}, live);
    bench_close(&b);
}

static void test_signals_compute(void **state)
{
    check_signals((const char *const[]){"hidden=6", "policy_gain=0.7", NULL}, false, false, 1);
    check_signals((const char *const[]){"hidden=6", "trunk=shared", "row=true", "rule=0.25", NULL}, true, true, 0.25);
}

static void test_signals_ports(void **state)
{
    static const dt_dim mixed[] = {{"choices", P}, {"continuous", 2}, {"phases", F}};
    static const dt_dim alone[] = {{"choices", P}, {"phases", 5}, {"neighbour", 3}};
    bench b;
    open_signals(&b, (const char *const[]){"row=true", NULL}, P);
    assert_int_equal(b.n_in, 3);
    assert_typed_port(&b.in[0], "phases", "A 4 17", DT_F32);
    assert_typed_port(&b.in[1], "neighbour", "A 4", DT_I32);
    assert_typed_port(&b.in[2], "obs", "A 5", DT_F32);
    assert_int_equal(b.n_out, 3);
    assert_typed_port(&b.out[0], "value", "A", DT_F32);
    assert_typed_port(&b.out[1], "logits", "A 4", DT_F32);
    assert_typed_port(&b.out[2], "cost_value", "A 2", DT_F32);
    bench_close(&b);
    open_wide(&b, NULL, alone, 3); /* no neighbours that it knows, no costs */
    assert_int_equal(b.n_in, 1);
    assert_typed_port(&b.in[0], "phases", "A 4 5", DT_F32);
    assert_int_equal(b.n_out, 2);
    assert_null(dt_param_table_find(&b.r.table, "m.policy.query"));
    bench_close(&b);
    open_wide(&b, NULL, mixed, 3);
    assert_int_equal(b.n_out, 4);
    assert_typed_port(&b.out[2], "mean", "A 2", DT_F32);
    assert_typed_port(&b.out[3], "log_std", "A 2", DT_F32);
    bench_close(&b);
}

/* phases in another order give the same logits in that order and the same values */
static void test_phases_may_change_places(void **state)
{
    static const int place[P] = {2, 0, 3, 1};
    bench b;
    outputs o, other;
    junctions j = new_junctions(), moved = j;
    open_signals(&b, (const char *const[]){"hidden=6", "policy_gain=1", NULL}, P);
    for (int a = 0; a < SIGNALS; a++) {
        for (int p = 0; p < P; p++) {
            memcpy(phase_of(&moved, a, place[p]), phase_of(&j, a, p), F * sizeof(float));
        }
    }
    (void)run_signals(&b, &j, &o);
    (void)run_signals(&b, &moved, &other);
    for (int a = 0; a < SIGNALS; a++) {
        near("value", other.value[a], o.value[a], 1e-12);
        for (int p = 0; p < P; p++) {
            near("logits", other.logits[a * P + place[p]], o.logits[a * P + p], 1e-12);
        }
    }
    assert_true(fabs(o.logits[0] - o.logits[1]) > 1e-3);
    bench_close(&b);
}

static void test_signals_may_change_places(void **state)
{
    static const int place[SIGNALS] = {2, 0, 1};
    bench b;
    outputs o, other;
    junctions j = new_junctions(), moved = j;
    open_signals(&b, (const char *const[]){"hidden=6", "policy_gain=1", NULL}, P);
    for (int a = 0; a < SIGNALS; a++) {
        memcpy(phase_of(&moved, place[a], 0), phase_of(&j, a, 0), P * F * sizeof(float));
        for (int n = 0; n < NEIGHBOURS; n++) {
            moved.neighbour[place[a]][n] = place[j.neighbour[a][n]];
        }
    }
    (void)run_signals(&b, &j, &o);
    (void)run_signals(&b, &moved, &other);
    for (int a = 0; a < SIGNALS; a++) {
        near("value", other.value[place[a]], o.value[a], 1e-12);
        for (int p = 0; p < P; p++) {
            near("logits", other.logits[place[a] * P + p], o.logits[a * P + p], 1e-12);
        }
    }
    bench_close(&b);
}

/* The weights of a net of 4 phases serve one of 6, whose signals lack two. */
static void test_phases_that_are_not_there(void **state)
{
    bench b, wide;
    outputs o, other;
    junctions j = new_junctions(), more = {.phases = MORE_PHASES};
    open_signals(&b, (const char *const[]){"hidden=6", "policy_gain=1", NULL}, P);
    open_signals(&wide, (const char *const[]){"hidden=6", "policy_gain=1", NULL}, MORE_PHASES);
    assert_int_equal(b.r.table.total, wide.r.table.total);
    memcpy(more.neighbour, j.neighbour, sizeof(j.neighbour));
    for (int a = 0; a < SIGNALS; a++) {
        memcpy(phase_of(&more, a, 0), phase_of(&j, a, 0), P * F * sizeof(float));
        for (int p = P; p < MORE_PHASES; p++) {
            phase_of(&more, a, p)[12] = -1;
        }
    }
    (void)run_signals(&b, &j, &o);
    (void)run_signals(&wide, &more, &other);
    for (int a = 0; a < SIGNALS; a++) {
        near("value", other.value[a], o.value[a], 1e-12);
        for (int p = 0; p < P; p++) {
            near("logits", other.logits[a * MORE_PHASES + p], o.logits[a * P + p], 1e-12);
        }
    }
    bench_close(&b);
    bench_close(&wide);
}

/* Traffic at a neighbour counts, traffic at others does not. */
static void test_only_neighbours_count(void **state)
{
    bench b;
    outputs o, other;
    junctions j = new_junctions(), busy = j;
    open_signals(&b, (const char *const[]){"hidden=6", "policy_gain=1", NULL}, P);
    phase_of(&busy, 1, 0)[0] += 9;
    (void)run_signals(&b, &j, &o);
    (void)run_signals(&b, &busy, &other);
    assert_true(fabs(other.value[0] - o.value[0]) > 1e-6); /* 0 hears of 1 */
    assert_true(other.value[2] == o.value[2]);             /* 2 of nobody */
    assert_true(fabs(other.logits[0] - o.logits[0]) > 1e-6);
    assert_true(other.logits[2 * P] == o.logits[2 * P]);
    bench_close(&b);
}

/* ---- vehicles ---------------------------------------------------------------------------------------------------- */

enum { VEHICLES = 4, EDGES = 9, EGO = 9, NODE = 9, LANES = 3, EMBEDDING = 7 };

/* 0, 1 and 2 see each other, 3 is alone. Agents are 2, 0, 3. */
typedef struct road {
    float ego[3][EGO], node[VEHICLES][NODE], embedding[VEHICLES][EMBEDDING], edge[EDGES + 1][4];
    int32_t rowptr[VEHICLES + 1], col[EDGES + 1], agent_node[3];
} road;

static const int64_t on_road[N_SYMBOLS] = {3, VEHICLES, EDGES + 1};

static road new_road(void)
{
    static const float x[3] = {0, 20, 55};
    road r = {.rowptr = {0, 3, 6, 9, 10}, .col = {0, 1, 2, 1, 0, 2, 2, 1, 0, 3}, .agent_node = {2, 0, 3}};
    for (int i = 0; i < VEHICLES; i++) {
        for (int k = 0; k < NODE; k++) {
            r.node[i][k] = (float)(3 * bench_value(i * NODE + k));
        }
        for (int k = 0; k < EMBEDDING; k++) {
            r.embedding[i][k] = (float)bench_value(i * EMBEDDING + k + 50);
        }
    }
    for (int i = 0; i < 3; i++) {
        for (int e = r.rowptr[i] + 1; e < r.rowptr[i + 1]; e++) { /* the first edge is to itself */
            const int j = r.col[e];
            r.edge[e][0] = x[j] - x[i];
            r.edge[e][1] = 4.0F * (float)(j - i);
            r.edge[e][2] = 2;
            r.edge[e][3] = 0.1F;
        }
        for (int k = 0; k < EGO; k++) {
            r.ego[i][k] = (float)(5 * bench_value(i * EGO + k + 7));
        }
    }
    return r;
}

static const char *const vehicle_set[] = {"hidden=6", "layers=1", "policy_gain=0.7", "log_std_init=-0.5", NULL};
static const dt_dim vehicle_dims[] = {{"D", EGO},        {"choices", LANES}, {"continuous", 2}, {"K", K},
                                      {"W", 1},          {"ego", EGO},       {"nodes", NODE},   {"edges", 4},
                                      {"agent_node", 0}, {"rowptr", 0},      {"col", 0},        {"H", EMBEDDING}};
enum { N_BLIND = 11, N_SEEING = 12 }; /* without and with perception */

static double run_road(const bench *b, const road *r, bool is_seeing, outputs *o)
{
    const void *source = is_seeing ? (const void *)r->embedding : (const void *)r->node;
    return run(b, (const void *const[]){r->ego, source, r->rowptr, r->col, r->edge, r->agent_node}, on_road, o);
}

static double clip(double x)
{
    return fmin(fmax(x, -5), 5);
}

static void scaled_edge(const float *edge, double side, double *out)
{
    static const double scale[4] = {0.05, 0.25, 0.2, 1};
    for (int k = 0; k < 4; k++) {
        out[k] = clip((k < 2 ? side : 1) * (double)edge[k] * scale[k]);
    }
}

/* the header comment of vehicles.c, one trunk: x [VEHICLES][H], p [3][H] */
static void vehicles_trunk(const bench *b, const road *r, const char *trunk, bool is_seeing, double (*x)[H],
                           double (*p)[H])
{
    static const double scale[5] = {1.0 / 15, 1.0 / 3, 0.1, 0.01, 1};
    static const int used[5] = {2, 3, 6, 7, 8};
    static const double ego[EGO] = {1.0 / 15, 0.02, 1.0 / 15, 0.02, 1.0 / 15, 1.0 / 15, 0.01, 1.0 / 3, 1.0 / 3};
    double query[VEHICLES][H], key[VEHICLES][H], from[VEHICLES][H];
    char name[MOCK_NAME];
#define NAME(text) (snprintf(name, sizeof(name), "%s.%s", trunk, text), name)
    for (int i = 0; i < VEHICLES; i++) {
        double source[EMBEDDING];
        for (int k = 0; k < (is_seeing ? EMBEDDING : 5); k++) {
            source[k] = is_seeing ? (double)r->embedding[i][k] : clip((double)r->node[i][used[k]] * scale[k]);
        }
        linear(b, NAME("node"), true, source, is_seeing ? EMBEDDING : 5, x[i], H);
        tanh_all(x[i], H);
        linear(b, NAME("query.0"), false, x[i], H, query[i], H);
        linear(b, NAME("key.0"), false, x[i], H, key[i], H);
        linear(b, NAME("from.0"), false, x[i], H, from[i], H);
    }
    for (int i = 0; i < VEHICLES; i++) {
        const int first = r->rowptr[i], n = r->rowptr[i + 1] - first;
        double w[HEADS][VEHICLES], mix[H] = {0}, y[H];
        for (int e = 0; e < n; e++) {
            double edge[4], hidden[16], bias[HEADS];
            scaled_edge(r->edge[first + e], 1, edge);
            linear(b, NAME("edge"), true, edge, 4, hidden, 16);
            tanh_all(hidden, 16);
            linear(b, NAME("bias.0"), false, hidden, 16, bias, HEADS);
            for (int h = 0; h < HEADS; h++) {
                w[h][e] = bias[h];
                for (int k = h * C; k < (h + 1) * C; k++) {
                    w[h][e] += query[i][k] * key[r->col[first + e]][k] / sqrt(C);
                }
            }
        }
        for (int h = 0; h < HEADS; h++) {
            softmax(w[h], n);
            for (int e = 0; e < n; e++) {
                for (int k = h * C; k < (h + 1) * C; k++) {
                    mix[k] += w[h][e] * from[r->col[first + e]][k];
                }
            }
        }
        linear(b, NAME("out.0"), false, mix, H, y, H);
        for (int k = 0; k < H; k++) {
            x[i][k] += y[k];
        }
    }
    for (int a = 0; a < 3; a++) {
        double all[EGO + H];
        for (int k = 0; k < EGO; k++) {
            all[k] = clip((double)r->ego[a][k] * ego[k]);
        }
        memcpy(all + EGO, x[r->agent_node[a]], H * sizeof(double));
        linear(b, NAME("agent"), true, all, EGO + H, p[a], H);
        tanh_all(p[a], H);
    }
#undef NAME
}

static double pair_score(const bench *b, const float *edge, double side)
{
    double e[4], hidden[16], c;
    scaled_edge(edge, side, e);
    linear(b, "influence.edge", true, e, 4, hidden, 16);
    tanh_all(hidden, 16);
    linear(b, "influence.pair", false, hidden, 16, &c, 1);
    return 4 * tanh(c);
}

static void influence(const bench *b, const road *r, double (*x)[H], double *out)
{
    double s[VEHICLES], whole[VEHICLES] = {0};
    for (int i = 0; i < VEHICLES; i++) {
        linear(b, "influence.source", false, x[i], H, &s[i], 1);
        s[i] = 4 * tanh(s[i]);
    }
    for (int j = 0; j < VEHICLES; j++) {
        for (int e = r->rowptr[j]; e < r->rowptr[j + 1]; e++) {
            whole[j] += exp(s[r->col[e]] + pair_score(b, r->edge[e], 1));
        }
    }
    for (int i = 0; i < VEHICLES; i++) {
        double sum = 0;
        for (int e = r->rowptr[i] + 1; e < r->rowptr[i + 1]; e++) {
            sum += exp(s[i] + pair_score(b, r->edge[e], -1)) / whole[r->col[e]];
        }
        out[i] = 1 - exp(-sum);
    }
}

static void check_vehicles(bool is_seeing)
{
    bench b;
    outputs o;
    road r = new_road();
    double x[VEHICLES][H], p[3][H], unused[VEHICLES][H], critic[3][H], share[VEHICLES];
    open_wide(&b, vehicle_set, vehicle_dims, is_seeing ? N_SEEING : N_BLIND);
    (void)run_road(&b, &r, is_seeing, &o);
    vehicles_trunk(&b, &r, "policy", is_seeing, x, p);
    vehicles_trunk(&b, &r, "critic", is_seeing, unused, critic);
    influence(&b, &r, x, share);
    for (int a = 0; a < 3; a++) {
        const double f = share[r.agent_node[a]];
        double y[LANES];
        assert_true(f >= 0 && f < 1 && (f > 0.01) == (r.agent_node[a] != 3));
        linear(&b, "head.value", true, critic[a], H, y, 1);
        near("value", o.value[a], y[0], 1e-8);
        linear(&b, "head.mean", true, p[a], H, y, 2);
        near("mean", o.mean[2 * a], (double)r.ego[a][8] + f * y[0], 1e-8);
        near("other mean", o.mean[2 * a + 1], f * y[1], 1e-8);
        near("log_std", o.log_std[2 * a], -0.5, 1e-8);
        linear(&b, "head.logits", true, p[a], H, y, LANES);
        for (int k = 0; k < LANES; k++) {
            near("logits", o.logits[a * LANES + k], f * y[k] + (k == 0 ? 4 * (1 - f) : 0), 1e-8);
        }
        linear(&b, "head.cost_value", true, critic[a], H, y, K);
        near("cost_value", o.cost_value[a * K + 1], y[1], 1e-8);
    }
    near("alone it follows", o.mean[4], (double)r.ego[2][8], 1e-9);
    const void *source = is_seeing ? (const void *)r.embedding : (const void *)r.node;
    check_gradient(&b, (const void *const[]){r.ego, source, r.rowptr, r.col, r.edge, r.agent_node}, on_road);
    bench_close(&b);
}

static void test_vehicles_compute(void **state)
{
    check_vehicles(false);
    check_vehicles(true);
}

static void test_vehicles_ports(void **state)
{
    static const dt_dim flat[] = {{"D", EGO}, {"continuous", 1}, {"ego", EGO}, {"nodes", NODE}};
    bench b;
    open_wide(&b, NULL, flat, 4);
    assert_int_equal(b.n_in, 6);
    assert_typed_port(&b.in[0], "ego", "A 9", DT_F32);
    assert_typed_port(&b.in[1], "nodes", "N 9", DT_F32);
    assert_typed_port(&b.in[2], "rowptr", "N+1", DT_I32);
    assert_typed_port(&b.in[3], "col", "E", DT_I32);
    assert_typed_port(&b.in[4], "edges", "E 4", DT_F32);
    assert_typed_port(&b.in[5], "agent_node", "A", DT_I32);
    assert_int_equal(b.n_out, 3);
    assert_typed_port(&b.out[1], "mean", "A 1", DT_F32);
    bench_close(&b);
    open_wide(&b, vehicle_set, vehicle_dims, N_SEEING);
    assert_typed_port(&b.in[1], "embedding", "N 7", DT_F32);
    bench_close(&b);
}

/* Where all look at all alike, each gets (n - 1) / n of the others' attention; one that draws it all gets 1 of each. */
static void test_influence_is_a_share(void **state)
{
    static const char *const set[] = {"hidden=6", "layers=1", "policy_gain=0", NULL};
    bench b;
    outputs o;
    road r = new_road();
    open_wide(&b, set, vehicle_dims, N_BLIND);
    memset(wide_param(&b, "influence.pair"), 0, 16 * sizeof(double));
    memset(wide_param(&b, "influence.source"), 0, H * sizeof(double));
    wide_param(&b, "head.mean.b")[0] = 1; /* learned = follow + 1: mean - follow is the influence */
    (void)run_road(&b, &r, false, &o);
    near("2", o.mean[0] - (double)r.ego[0][8], 1 - exp(-2.0 / 3), 1e-9);
    near("0", o.mean[2] - (double)r.ego[1][8], 1 - exp(-2.0 / 3), 1e-9);
    near("3", o.mean[4] - (double)r.ego[2][8], 0, 1e-9);

    double x[VEHICLES][H], p[3][H];
    vehicles_trunk(&b, &r, "policy", false, x, p);
    for (int k = 0; k < H; k++) { /* s = 4 tanh(w x): as much as there is for 0, as little for 2 */
        wide_param(&b, "influence.source")[k] = 100 * (x[0][k] - x[2][k]);
    }
    (void)run_road(&b, &r, false, &o);
    assert_true(o.mean[0] - (double)r.ego[0][8] < 0.01);
    near("all of it", o.mean[2] - (double)r.ego[1][8], 1 - exp(-2.0), 0.01);
    bench_close(&b);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void test_refusals(void **state)
{
    static const dt_dim cartpole[] = {{"D", 4}, {"choices", 2}};
    static const dt_dim blind[] = {{"D", 9}, {"continuous", 1}, {"ego", 9}};
    static const dt_dim narrow[] = {{"choices", 4}, {"phases", 4}};
    static const dt_dim rowless[] = {{"choices", 4}, {"phases", 13}};
    bench b;
    assert_int_equal(bench_create(&b, "controller_influence", NULL, cartpole, 2), DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "choices 2, continuous 0, 0 columns of phases, 0 of ego, 0 of nodes"));
    bench_close(&b);
    assert_int_equal(bench_create(&b, "controller_influence", NULL, blind, 3), DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "0 columns of phases, 9 of ego, 0 of nodes"));
    bench_close(&b);
    assert_int_equal(bench_create(&b, "controller_influence", NULL, narrow, 2), DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "choices 4, continuous 0, 4 columns of phases"));
    bench_close(&b);
    assert_int_equal(bench_create(&b, "controller_influence", (const char *const[]){"row=true", NULL}, rowless, 2),
                     DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "the environment has no observation \"obs\" [A D]"));
    bench_close(&b);
    assert_int_equal(bench_create(&b, "controller_influence", (const char *const[]){"heads=5", NULL}, rowless, 2),
                     DT_OK);
    assert_int_equal(b.c->check(&b.host.host, b.config), DT_ECONFIG);
    assert_non_null(strstr(b.host.message, "controller_influence.heads"));
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals_compute),           cmocka_unit_test(test_signals_ports),
        cmocka_unit_test(test_phases_may_change_places),  cmocka_unit_test(test_signals_may_change_places),
        cmocka_unit_test(test_phases_that_are_not_there), cmocka_unit_test(test_only_neighbours_count),
        cmocka_unit_test(test_vehicles_compute),          cmocka_unit_test(test_vehicles_ports),
        cmocka_unit_test(test_influence_is_a_share),      cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
