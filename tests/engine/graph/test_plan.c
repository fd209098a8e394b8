/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/engine/graph/plan.c and exec.c: whole small graphs against central differences, and every mode of the
 * plan against every other.
 */
#include "harness.h"

#include "base/trace.h"

/* ---- derivatives ------------------------------------------------------------------------------------------------- */

/* Every parameter of every model against (f(x + h) - f(x - h)) / 2h in double, with poisoned memory. */
static void test_gradients(void **state)
{
    for (int k = 0; k < N_MODELS; k++) {
        bench b;
        bench_open(&b, models[k].m, 17, 7, 2);
        result r = run(&b, &plain);
        assert_true(isfinite(r.total));
        double worst = 0, largest = 0;
        for (uint32_t i = 0; i < b.params.n; i++) {
            const dt_param *p = &b.params.param[i];
            double sum = 0;
            for (int64_t j = p->offset; j < p->offset + p->count; j++) {
                const double h = 1e-6, before = b.value[j];
                b.value[j] = before + h;
                result up = run(&b, &plain);
                b.value[j] = before - h;
                result down = run(&b, &plain);
                b.value[j] = before;
                double want = (up.total - down.total) / (2 * h), error = fabs(want - r.grad[j]);
                if (!(error < 1e-7 * fmax(1, fabs(want)))) {
                    fail_msg("%s: %s[%d]: derivative %.9g, by differences %.9g", models[k].name, p->name,
                             (int)(j - p->offset), r.grad[j], want);
                }
                worst = fmax(worst, error);
                sum += fabs(r.grad[j]);
                result_fini(&up);
                result_fini(&down);
            }
            assert_true(sum > 0); /* the loss reaches every parameter */
            largest = fmax(largest, sum);
        }
        result_fini(&r);
        bench_close(&b);
    }
}

static void record_square(dt_graph *g)
{
    dt_tensor *h = dt_linear(g, I(g, "nodes"), P(g, "w"), NULL);
    (void)g->api->loss(g, "square", dt_sum(g, dt_mul(g, h, h)), 1, "N");
}

static void record_half_square(dt_graph *g)
{
    dt_tensor *h = dt_linear(g, I(g, "nodes"), P(g, "w"), NULL);
    (void)g->api->loss(g, "square", dt_sum(g, dt_mul(g, h, dt_stop(g, h))), 1, "N");
}

/* Of h h and h stop(h) the values are the same, the derivatives 2 h and h. */
static void test_stop(void **state)
{
    static const param_spec spec[] = {{"w", 2, 5}, {NULL, 0, 0}};
    static const model whole = {spec, record_square}, half = {spec, record_half_square};
    bench b, c;
    bench_open(&b, &whole, 17, 7, 2);
    bench_open(&c, &half, 17, 7, 2);
    result both = run(&b, &plain), one = run(&c, &plain);
    assert_true(both.total == one.total);
    for (int64_t i = 0; i < b.params.total; i++) {
        assert_true(both.grad[i] == 2 * one.grad[i]);
    }
    assert_true(one.grad[0] != 0);
    result_fini(&both);
    result_fini(&one);
    bench_close(&b);
    bench_close(&c);
}

/* ---- modes ------------------------------------------------------------------------------------------------------- */

static void assert_same_bits(bench *b, const result *a, const result *c)
{
    assert_memory_equal(a->loss, c->loss, sizeof(a->loss));
    assert_memory_equal(a->grad, c->grad, (size_t)b->params.total * sizeof(*a->grad));
}

static void assert_close(bench *b, const result *a, const result *c, double tolerance)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < b->params.total; i++) {
        difference += (a->grad[i] - c->grad[i]) * (a->grad[i] - c->grad[i]);
        size += a->grad[i] * a->grad[i];
    }
    assert_true(size > 0);
    if (!(sqrt(difference / size) < tolerance)) {
        fail_msg("gradients differ by %g, allowed %g", sqrt(difference / size), tolerance);
    }
    assert_true(fabs(a->total - c->total) < tolerance * fmax(1, fabs(a->total)));
}

/* Reuse of memory, poison and recomputing change no bit; fusion and kernel sets only round. */
static void test_modes(void **state)
{
    static const dt_kernel_set sets[] = {DT_KERNELS_REF64, DT_KERNELS_REF32, DT_KERNELS_CPU};
    for (int k = 0; k < N_MODELS; k++) {
        bench b;
        bench_open(&b, models[k].m, 17, 7, 2);
        result exact = run(&b, &plain);
        for (int l = 0; l < 3; l++) {
            dt_plan_desc d = plain;
            d.kernels = sets[l];
            result poisoned = run(&b, &d);
            assert_close(&b, &exact, &poisoned, sets[l] == DT_KERNELS_REF64 ? 1e-13 : 1e-4);
            d.poison = false;
            result reused = run(&b, &d);
            assert_same_bits(&b, &poisoned, &reused);
            d.reuse = false;
            result apart = run(&b, &d);
            assert_same_bits(&b, &poisoned, &apart);
            assert_true(apart.info.arena_bytes > reused.info.arena_bytes);
            assert_true(reused.info.lower_bound_bytes <= reused.info.arena_bytes);
            d.reuse = true;
            d.recompute = true;
            d.poison = true;
            result again = run(&b, &d);
            assert_same_bits(&b, &poisoned, &again);
            assert_int_equal(again.info.n_recomputed > 0, models[k].m == &model_gat);
            d.recompute = false;
            d.fuse = false;
            result unfused = run(&b, &d);
            assert_close(&b, &poisoned, &unfused, sets[l] == DT_KERNELS_REF64 ? 1e-12 : 1e-4);
            assert_true(unfused.info.n_fused == 0 && unfused.info.n_calls == reused.info.n_calls + reused.info.n_fused);
            result_fini(&poisoned);
            result_fini(&reused);
            result_fini(&apart);
            result_fini(&again);
            result_fini(&unfused);
        }
        result_fini(&exact);
        bench_close(&b);
    }
}

/* Keeping less memory is what recomputing is for. */
static void test_recompute_saves(void **state)
{
    bench b;
    bench_open(&b, &model_gat, 17, 7, 2);
    dt_plan_desc d = plain;
    result kept = run(&b, &d);
    d.recompute = true;
    result again = run(&b, &d);
    assert_true(again.info.lower_bound_bytes < kept.info.lower_bound_bytes);
    assert_true(again.info.arena_bytes < kept.info.arena_bytes);
    result_fini(&kept);
    result_fini(&again);
    bench_close(&b);
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

/* Frozen parameters get no gradient and cost nothing; the others keep every bit. */
static void test_frozen(void **state)
{
    bench all, some;
    bench_open(&all, &model_lstm, 17, 7, 2);
    bench_params(&some, &model_lstm);
    uint32_t n = 0;
    assert_int_equal(dt_param_table_freeze(&some.params, "m.w0", &n), DT_OK);
    assert_int_equal(dt_param_table_freeze(&some.params, "m.wx", &n), DT_OK);
    bench_graph(&some, &model_lstm);
    slice_init(&some.s, 17, 7, 2, 1);
    result a = run(&all, &plain), s = run(&some, &plain);
    assert_memory_equal(a.loss, s.loss, sizeof(a.loss));
    assert_true(s.info.n_calls < a.info.n_calls);
    for (uint32_t i = 0; i < all.params.n; i++) {
        const dt_param *p = &some.params.param[i];
        for (int64_t j = p->offset; j < p->offset + p->count; j++) {
            assert_true(s.grad[j] == (p->frozen ? 0 : a.grad[j]));
        }
    }
    /* nothing to train: only the losses are left */
    assert_int_equal(dt_param_table_freeze(&some.params, "m", &n), DT_OK);
    dt_graph_destroy(some.g);
    bench_graph(&some, &model_lstm);
    result none = run(&some, &plain);
    dt_plan_desc d = plain;
    d.training = false;
    result forward = run(&some, &d);
    assert_memory_equal(a.loss, none.loss, sizeof(a.loss));
    assert_memory_equal(a.loss, forward.loss, sizeof(a.loss));
    assert_int_equal(none.info.n_calls, forward.info.n_calls);
    result_fini(&a);
    result_fini(&s);
    result_fini(&none);
    result_fini(&forward);
    bench_close(&all);
    bench_close(&some);
}

/* ---- slices ------------------------------------------------------------------------------------------------------ */

static void append(void *to, int64_t at, const void *from, int64_t n, size_t size)
{
    memcpy((char *)to + (size_t)at * size, from, (size_t)n * size);
}

/* Both slices as one: rows one after another, indices moved. Time-major fields interleave. */
static void slice_join(slice *out, const slice *a, const slice *c)
{
    *out = (slice){0};
    for (int i = 0; i < N_SYMBOLS; i++) {
        out->size[i] = a->size[i] + c->size[i];
    }
    for (int i = 0; i < N_FIELDS; i++) {
        out->field[i] = dt_alloc(4096);
    }
    const slice *part[2] = {a, c};
    int64_t n0 = 0, e0 = 0, s0 = 0, b0 = 0;
    for (int k = 0; k < 2; k++) {
        const slice *s = part[k];
        int64_t N = s->size[SYM_N], E = s->size[SYM_E], S = s->size[SYM_S], B = s->size[SYM_B];
        append(out->field[FIELD_NODES], n0 * NODE_FEATURES, s->field[FIELD_NODES], N * NODE_FEATURES, 4);
        append(out->field[FIELD_EDGES], e0 * EDGE_FEATURES, s->field[FIELD_EDGES], E * EDGE_FEATURES, 4);
        append(out->field[FIELD_KEY], n0, s->field[FIELD_KEY], N, 8);
        append(out->field[FIELD_LABEL], n0, s->field[FIELD_LABEL], N, 4);
        append(out->field[FIELD_ACTION], n0 * 2, s->field[FIELD_ACTION], N * 2, 4);
        append(out->field[FIELD_LABEL_WEIGHT], n0, s->field[FIELD_LABEL_WEIGHT], N, 4);
        append(out->field[FIELD_TARGET], s0 * FUTURE * 2, s->field[FIELD_TARGET], S * FUTURE * 2, 4);
        append(out->field[FIELD_WEIGHT], s0 * FUTURE, s->field[FIELD_WEIGHT], S * FUTURE, 4);
        for (int64_t i = 0; i <= N; i++) {
            ((int32_t *)out->field[FIELD_ROWPTR])[n0 + i] = ((int32_t *)s->field[FIELD_ROWPTR])[i] + (int32_t)e0;
        }
        for (int64_t i = 0; i < E; i++) {
            ((int32_t *)out->field[FIELD_COL])[e0 + i] = ((int32_t *)s->field[FIELD_COL])[i] + (int32_t)n0;
        }
        for (int64_t i = 0; i <= B; i++) {
            ((int32_t *)out->field[FIELD_PTR])[b0 + i] = ((int32_t *)s->field[FIELD_PTR])[i] + (int32_t)n0;
        }
        for (int64_t t = 0; t < STEPS; t++) {
            for (int64_t i = 0; i < S; i++) {
                int64_t to = t * out->size[SYM_S] + s0 + i, from = t * S + i;
                int32_t row = ((int32_t *)s->field[FIELD_SEQ_ROW])[from];
                ((int32_t *)out->field[FIELD_SEQ_ROW])[to] = row < 0 ? row : row + (int32_t)n0;
                ((float *)out->field[FIELD_PRESENT])[to] = ((float *)s->field[FIELD_PRESENT])[from];
            }
        }
        n0 += N, e0 += E, s0 += S, b0 += B;
    }
}

/* Two slices added up are one bigger slice, for every split of sizes, empty ones included. */
static void test_slices_add_up(void **state)
{
    static const int64_t size[][6] = {
        {11, 4, 1, 9, 3, 2}, {1, 1, 1, 12, 5, 1}, {13, 5, 2, 0, 0, 0}, {9, 0, 1, 5, 4, 0}};
    for (int k = 0; k < N_MODELS; k++) {
        for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
            if (models[k].m == &model_mix && size[i][5] == 0 && size[i][3] > 0) {
                continue; /* rows that belong to no scene */
            }
            bench b;
            bench_open(&b, models[k].m, 1, 1, 1);
            slice two[2], one;
            slice_init(&two[0], size[i][0], size[i][1], size[i][2], 20);
            slice_init(&two[1], size[i][3], size[i][4], size[i][5], 40);
            slice_join(&one, &two[0], &two[1]);
            result parts = run_slices(&b, &plain, two, 2), whole = run_slices(&b, &plain, &one, 1);
            assert_close(&b, &whole, &parts, 1e-12);
            result_fini(&parts);
            result_fini(&whole);
            slice_fini(&two[0]);
            slice_fini(&two[1]);
            slice_fini(&one);
            bench_close(&b);
        }
    }
}

/* Nothing at all: zero losses, zero gradients, in every kernel set. */
static void test_empty_slice(void **state)
{
    for (int k = 0; k < N_MODELS; k++) {
        for (int set = DT_KERNELS_REF64; set <= DT_KERNELS_CPU; set++) {
            bench b;
            bench_open(&b, models[k].m, 0, 0, 0);
            dt_plan_desc d = plain;
            d.kernels = (dt_kernel_set)set;
            result r = run(&b, &d);
            assert_true(r.total == 0);
            for (int64_t i = 0; i < b.params.total; i++) {
                assert_true(r.grad[i] == 0);
            }
            for (int i = 0; i < N_FIELDS; i++) { /* empty fields need no address, row pointers do */
                if (fields[i].dims[1] != '+') {
                    dt_free(b.s.field[i]);
                    b.s.field[i] = NULL;
                }
            }
            result_fini(&r);
            r = run(&b, &d);
            assert_true(r.total == 0);
            result_fini(&r);
            bench_close(&b);
        }
    }
}

/* ---- evaluation -------------------------------------------------------------------------------------------------- */

static void test_outputs(void **state)
{
    bench b;
    bench_open(&b, &model_lstm, 17, 7, 2);
    dt_plan_desc d = plain;
    d.training = false;
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    assert_int_equal(dt_plan_compile(b.g, &d, &p), DT_OK);
    assert_int_equal(dt_exec_create(p, &e), DT_OK);
    assert_int_equal(dt_plan_field(p, "seq_row"), FIELD_SEQ_ROW);
    assert_int_equal(dt_plan_field(p, "edges"), -1);
    assert_int_equal(dt_plan_field(p, "nope"), -1);
    const char *const *name = NULL;
    const int64_t *count = NULL;
    assert_int_equal(dt_plan_step_inputs(p, &name, &count), 1);
    assert_string_equal(name[0], "horizon");
    assert_int_equal(count[0], FUTURE);
    double loss[DT_GRAPH_MAX_LOSSES] = {0};
    assert_int_equal(run_exec(e, &b.s, b.value, NULL, loss), DT_OK);
    const dt_view *v = dt_exec_output(e, "future");
    assert_non_null(v);
    assert_int_equal(v->rank, 3);
    assert_int_equal(v->dim[0], 7);
    assert_int_equal(v->dim[1], FUTURE);
    assert_int_equal(v->dim[2], 2);
    for (int i = 0; i < 7 * FUTURE * 2; i++) {
        assert_true(isfinite(((const double *)v->data)[i]));
    }
    assert_null(dt_exec_output(e, "nope"));
    result r = run(&b, &plain);
    assert_true(r.loss[0] == loss[0] && r.loss[1] == loss[1]);
    result_fini(&r);
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    bench_close(&b);
}

static void with_picture(dt_graph *g)
{
    dt_tensor *h = dt_linear(g, I(g, "nodes"), P(g, "w"), NULL);
    (void)g->api->output(g, "acts", dt_relu(g, h));
    (void)g->api->output(g, "picture/risk", dt_tanh(g, h));
}

/* Who acts does not compute what pictures show, and the other way round. */
static void test_outputs_for_pictures(void **state)
{
    static const param_spec spec[] = {{"w", 4, 5}, {NULL, 0, 0}};
    static const model m = {spec, with_picture};
    for (int pictures = 0; pictures < 2; pictures++) {
        bench b;
        dt_plan *p = NULL;
        dt_exec *e = NULL;
        bench_open(&b, &m, 7, 7, 1);
        dt_plan_desc d = plain;
        d.training = false;
        d.outputs_only = true;
        d.pictures = pictures != 0;
        assert_int_equal(dt_plan_compile(b.g, &d, &p), DT_OK);
        assert_int_equal(dt_exec_create(p, &e), DT_OK);
        assert_true((dt_exec_output(e, "acts") != NULL) == (pictures == 0));
        assert_true((dt_exec_output(e, "picture/risk") != NULL) == (pictures == 1));
        assert_int_equal(dt_plan_info_get(p)->n_calls, 1); /* linear and one of the two, fused */
        dt_exec_destroy(e);
        dt_plan_destroy(p);
        bench_close(&b);
    }
}

/* An output may be a field or a parameter itself. */
static void record_through(dt_graph *g)
{
    (void)g->api->output(g, "nodes", I(g, "nodes"));
    (void)g->api->output(g, "flat", dt_merge(g, dt_split(g, P(g, "w"), 2)));
}

static void test_outputs_of_inputs(void **state)
{
    static const param_spec spec[] = {{"w", 2, 4}, {NULL, 0, 0}};
    static const model m = {spec, record_through};
    bench b;
    bench_open(&b, &m, 3, 0, 1);
    dt_plan_desc d = plain;
    d.training = false;
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    assert_int_equal(dt_plan_compile(b.g, &d, &p), DT_OK);
    assert_int_equal(dt_exec_create(p, &e), DT_OK);
    assert_int_equal(run_exec(e, &b.s, b.value, NULL, NULL), DT_OK);
    const double *nodes = dt_exec_output(e, "nodes")->data;
    for (int i = 0; i < 15; i++) {
        assert_true(nodes[i] == ((float *)b.s.field[FIELD_NODES])[i]);
    }
    assert_ptr_equal(dt_exec_output(e, "flat")->data, b.value);
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    bench_close(&b);
}

/* ---- what calls keep -------------------------------------------------------------------------------------------- */

static void record_wide(dt_graph *g)
{
    (void)g->api->output(g, "y", dt_linear(g, I(g, "nodes"), P(g, "w"), NULL));
}

static void wide(dt_exec *e, const slice *s, const float *params, uint64_t version, float y[5 * 6])
{
    const dt_kernel_run run = {0};
    const dt_exec_feed feed = {
        .size = s->size, .field = s->field, .params = params, .run = &run, .params_version = version};
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    memcpy(y, dt_exec_output(e, "y")->data, 5 * 6 * sizeof(float));
}

/* Parameters are looked at again when their version changes, or is not known, and only then. */
static void test_versions_of_parameters(void **state)
{
    static const param_spec spec[] = {{"w", 6, 5}, {NULL, 0, 0}};
    static const model m = {spec, record_wide};
    bench b;
    bench_open(&b, &m, 5, 1, 1);
    dt_plan_desc d = plain;
    d.training = false;
    d.kernels = DT_KERNELS_CPU;
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    assert_int_equal(dt_plan_compile(b.g, &d, &p), DT_OK);
    assert_int_equal(dt_exec_create(p, &e), DT_OK);
    assert_true(dt_plan_info_get(p)->kept_bytes >= 6 * 5 * sizeof(float));
    float one[30], two[30], y[30], want_one[30], want_two[30];
    for (int i = 0; i < 30; i++) {
        one[i] = (float)b.value[i];
        two[i] = 2 - one[i];
    }
    wide(e, &b.s, one, 0, want_one);
    wide(e, &b.s, two, 0, want_two);
    assert_memory_not_equal(want_one, want_two, sizeof(y));
    wide(e, &b.s, one, 7, y);
    assert_memory_equal(y, want_one, sizeof(y));
    wide(e, &b.s, two, 7, y); /* a lie, to see that what was kept is used */
    assert_memory_equal(y, want_one, sizeof(y));
    wide(e, &b.s, two, 8, y);
    assert_memory_equal(y, want_two, sizeof(y));
    wide(e, &b.s, one, 0, y);
    assert_memory_equal(y, want_one, sizeof(y));
    wide(e, &b.s, two, 8, y);
    assert_memory_equal(y, want_two, sizeof(y));
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    bench_close(&b);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void record_no_loss(dt_graph *g)
{
    (void)dt_linear(g, I(g, "nodes"), P(g, "w"), NULL);
}

static void record_max(dt_graph *g)
{
    dt_tensor *h = dt_linear(g, I(g, "nodes"), P(g, "w"), NULL);
    (void)g->api->loss(g, "sum", dt_sum(g, dt_max(g, h, h)), 1, "1");
}

static void assert_error(dt_status st, dt_status want, const char *text)
{
    assert_int_equal(st, want);
    if (strstr(dt_error_text(), text) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", text, dt_error_text());
    }
}

static void test_compile_refusals(void **state)
{
    static const param_spec spec[] = {{"w", 2, 5}, {NULL, 0, 0}};
    static const model no_loss = {spec, record_no_loss}, max = {spec, record_max};
    bench b;
    dt_plan *p = NULL;
    bench_open(&b, &no_loss, 3, 1, 1);
    assert_error(dt_plan_compile(b.g, &plain, &p), DT_EINVAL, "no loss to train on");
    bench_close(&b);
    bench_open(&b, &max, 3, 1, 1);
    dt_plan_desc d = plain;
    d.cap = (const int64_t[N_SYMBOLS]){-1, 1, 1, 1};
    assert_error(dt_plan_compile(b.g, &d, &p), DT_EINVAL, "capacity -1 of N is negative");
    d.training = false;
    d.cap = (const int64_t[N_SYMBOLS]){INT64_MAX / 4, 1, 1, 1};
    assert_error(dt_plan_compile(b.g, &d, &p), DT_ECONFIG, "does not fit in memory");
    assert_null(b.g->api->input(b.g, "nope"));
    assert_error(dt_plan_compile(b.g, &plain, &p), DT_ENOTFOUND, "no field \"nope\"");
    assert_null(p);
    bench_close(&b);
}

static void test_run_refusals(void **state)
{
    bench b;
    bench_open(&b, &model_mlp, 5, 1, 1);
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    assert_int_equal(dt_plan_compile(b.g, &plain, &p), DT_OK);
    assert_int_equal(dt_exec_create(p, &e), DT_OK);
    double *grad = dt_alloc_n((size_t)b.params.total, sizeof(*grad)), loss[DT_GRAPH_MAX_LOSSES] = {0};
    slice s = b.s;
    s.size[SYM_N] = 25;
    assert_error(run_exec(e, &s, b.value, grad, loss), DT_EINVAL, "live size 25 of N is outside 0..24");
    s.size[SYM_N] = -1;
    assert_error(run_exec(e, &s, b.value, grad, loss), DT_EINVAL, "live size -1 of N");
    s = b.s;
    s.field[FIELD_LABEL] = NULL;
    assert_error(run_exec(e, &s, b.value, grad, loss), DT_EINVAL, "field label is not supplied");
    assert_error(run_exec(e, &b.s, NULL, grad, loss), DT_EINVAL, "needs parameters");
    assert_error(run_exec(e, &b.s, b.value, NULL, loss), DT_EINVAL, "needs a gradient arena");
    assert_error(run_exec(e, &b.s, b.value, grad, NULL), DT_EINVAL, "needs a place for losses");
    dt_exec_feed feed = {.size = b.s.size, .field = b.s.field, .params = b.value, .grads = grad, .loss = loss};
    assert_error(dt_exec_run(e, &feed), DT_EINVAL, "needs run");
    const dt_kernel_run r = {0};
    feed.run = &r;
    feed.field = NULL;
    assert_error(dt_exec_run(e, &feed), DT_EINVAL, "is not supplied");
    feed.field = b.s.field;
    assert_error(dt_exec_run(e, &feed), DT_EINVAL, "needs loss seeds");
    assert_true(loss[0] == 0);
    dt_free(grad);
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    bench_close(&b);

    bench_open(&b, &model_gru, 5, 1, 1);
    assert_int_equal(dt_plan_compile(b.g, &plain, &p), DT_OK);
    assert_int_equal(dt_exec_create(p, &e), DT_OK);
    feed = (dt_exec_feed){.size = b.s.size, .field = b.s.field, .params = b.value, .loss = loss, .run = &r};
    assert_error(dt_exec_run(e, &feed), DT_EINVAL, "step input horizon is not supplied");
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    bench_close(&b);
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

/* 2 R K M for the products, every value moved once between calls; the plan text names calls and places. */
static void test_cost_and_print(void **state)
{
    bench b;
    bench_open(&b, &model_mlp, 5, 1, 1);
    dt_plan_desc d = plain;
    d.training = false;
    dt_plan *p = NULL;
    assert_int_equal(dt_plan_compile(b.g, &d, &p), DT_OK);
    static const int64_t none[N_SYMBOLS] = {0}, ten[N_SYMBOLS] = {10, 0, 0, 0}, twenty[N_SYMBOLS] = {20, 0, 0, 0};
    const dt_plan_cost zero = dt_plan_cost_get(p, none), once = dt_plan_cost_get(p, ten);
    const dt_plan_cost twice = dt_plan_cost_get(p, twenty);
    assert_true(zero.flops == 0);
    assert_true(twice.flops == 2 * once.flops);
    assert_true(once.flops >= 2.0 * 10 * (6 * 5 + 6 * 6) && once.flops < 5000);
    /* parameters and the loss; a row passes linear (5 to 6, 6 to 6), layernorm (6 and 6 to 6), slice (6 to 1), loss */
    assert_true(zero.bytes == 4 * (6 * 5 + 6 + 6 * 6 + 6 + 6 + 6) + 8);
    assert_true(once.bytes - zero.bytes == 10 * 4 * (11 + 12 + 18 + 7 + 3));
    assert_true(twice.bytes - once.bytes == once.bytes - zero.bytes);
    dt_str s = {0};
    dt_plan_print(p, &s);
    static const char *const want[] = {
        "plan: 5 calls, 1 views, 3 fused, 0 recomputed",
        "N 6 f32 = linear x=nodes w=m.w0 b=m.b0 i0=3 f0=1 @",
        "= layernorm x=%4 gamma=m.gamma beta=m.beta r=%8",
        "= merge x=",
        "1 f64 = bce_logits logit=",
    };
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        if (strstr(dt_str_text(&s), want[i]) == NULL) {
            fail_msg("\"%s\" is not in\n%s", want[i], dt_str_text(&s));
        }
    }
    dt_plan_destroy(p);
    dt_str_clear(&s);
    assert_int_equal(dt_plan_compile(b.g, &plain, &p), DT_OK);
    dt_plan_print(p, &s);
    assert_non_null(strstr(dt_str_text(&s), "+grad(m.w0) 6 5 f32 = linear_dw x=nodes dy="));
    assert_non_null(strstr(dt_str_text(&s), "bce_logits_bwd ds=seed(risk)"));
    assert_null(strstr(dt_str_text(&s), "linear_dx dy=%0")); /* nothing flows to the data */
    dt_str_fini(&s);
    dt_plan_destroy(p);
    bench_close(&b);
}

static void record_span(void)
{
    DT_TRACE("test", "first");
}

/* A run whose spans are recorded computes the same. */
static void test_traced(void **state)
{
    for (int k = 0; k < N_MODELS; k++) {
        bench b;
        dt_plan_desc d = plain;
        d.poison = false; /* which comes before spans */
        bench_open(&b, models[k].m, 9, 3, 2);
        result untraced = run(&b, &d);
        dt_trace_start();
        record_span(); /* the first one of a thread makes room */
        result traced = run(&b, &d);
        dt_trace_stop();
        assert_true(traced.total == untraced.total && traced.total != 0);
        assert_memory_equal(traced.grad, untraced.grad, (size_t)b.params.total * sizeof(double));
        result_fini(&traced);
        result_fini(&untraced);
        bench_close(&b);
    }
    dt_trace_fini();
}

/* What becomes resident at live sizes: more with more rows, all pages of the arena at the capacities, and next to
 * nothing without any. */
static void test_touched(void **state)
{
    static const int64_t large[N_SYMBOLS] = {20000, 60000, 4000, 50}, none[N_SYMBOLS] = {0};
    const size_t page = dt_arena_bytes(1);
    bench b;
    dt_plan *p = NULL;
    dt_plan_desc d = plain;
    d.cap = large;
    bench_open(&b, &model_gat, 5, 1, 1);
    assert_int_equal(dt_plan_compile(b.g, &d, &p), DT_OK);
    const dt_plan_info *info = dt_plan_info_get(p);
    const size_t arena = info->arena_bytes;
    assert_true(arena > 100 * page);
    size_t before = dt_plan_touched_bytes(p, none);
    assert_true(before <= arena / 10);
    for (int64_t share = 1; share <= 16; share *= 2) { /* sixteenths */
        const int64_t size[N_SYMBOLS] = {large[0] * share / 16, large[1] * share / 16, large[2] * share / 16,
                                         large[3] * share / 16};
        const size_t touched = dt_plan_touched_bytes(p, size);
        assert_true(touched >= before && touched > 0 && touched % page == 0);
        before = touched;
    }
    assert_true(before + 64 * page >= arena && before <= arena + 64 * page + dt_arena_bytes(1 << 21));
    dt_plan_destroy(p);
    bench_close(&b);
}

static void test_out_of_memory(void **state)
{
    bench b;
    bench_open(&b, &model_gat, 5, 1, 1);
    dt_plan_desc d = plain;
    d.recompute = true;
    uint64_t fired = 1, live = dt_alloc_live_bytes();
    int n = 0;
    for (; fired != 0; n++) {
        char spec[32];
        snprintf(spec, sizeof(spec), "alloc:%d", n + 1);
        dt_plan *p = NULL;
        dt_exec *e = NULL;
        dt_fault_reset(spec);
        dt_status st = dt_plan_compile(b.g, &d, &p);
        if (st == DT_OK) {
            st = dt_exec_create(p, &e);
        }
        fired = dt_fault_count();
        dt_fault_reset(NULL);
        assert_int_equal(st, fired != 0 ? DT_ENOMEM : DT_OK);
        dt_exec_destroy(e);
        dt_plan_destroy(p);
        assert_int_equal(dt_alloc_live_bytes(), live);
    }
    assert_true(n > 30);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_recompute_saves),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_slices_add_up),
        cmocka_unit_test(test_empty_slice),
        cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_outputs_for_pictures),
        cmocka_unit_test(test_outputs_of_inputs),
        cmocka_unit_test(test_versions_of_parameters),
        cmocka_unit_test(test_compile_refusals),
        cmocka_unit_test(test_run_refusals),
        cmocka_unit_test(test_cost_and_print),
        cmocka_unit_test(test_traced),
        cmocka_unit_test(test_touched),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
