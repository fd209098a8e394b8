/* SPDX-License-Identifier: Apache-2.0
 *
 * core/plan/roofline.c on calls whose costs are known, against the model of its header written out: what bounds each
 * call, sums of rows, what an update adds, and what is said of acting.
 */
#include "plan/roofline.h"

#include "rl/experience/service.h"

#define dt_trainer_list_device_calls fake_calls
#define dt_trainer_n_moments         fake_moments
#define dt_rollout_measure_need      fake_need
#define dt_rollout_call_cost         fake_rollout_call
static dt_status fake_calls(const dt_trainer *t, uint32_t half, void *user,
                            void (*each)(void *user, const dt_call_cost *c));
static uint32_t fake_moments(const dt_trainer *t);
static dt_status fake_need(struct dt_rollout *r, dt_trainer *t, dt_rollout_need *out);
static bool fake_rollout_call(const struct dt_rollout *r, const double *mean, double n, uint32_t call,
                              dt_call_cost *out);
#include "../../core/plan/roofline.c"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static uint32_t half_asked, moments;
static dt_status st_of_calls;
static dt_rollout_need need;

/* On the GPU below: 1e12 FLOP/s, in products 4e12 (TF32) or 1e13 (half), 1e11 bytes/s. */
static const dt_call_cost calls[] = {{"linear", true, {8e9, 1e8}},  /* 8 ms at fp32, 2 at TF32, memory 1 ms */
                                     {"linear", true, {4e8, 2e8}},  /* memory, 2 ms */
                                     {"unary", false, {1e3, 1e4}},  /* a launch, 2 us */
                                     {"unary", false, {3e9, 2e8}}}; /* 3 ms: no product */
static const dt_call_cost acts[] = {{"linear", true, {1e9, 1e6}}, {"unary", false, {0, 1e3}}};

static dt_status fake_calls(const dt_trainer *t, uint32_t half, void *user,
                            void (*each)(void *user, const dt_call_cost *c))
{
    half_asked = half;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        each(user, &calls[i]);
    }
    return st_of_calls;
}
static uint32_t fake_moments(const dt_trainer *t)
{
    return moments;
}
static dt_status fake_need(struct dt_rollout *r, dt_trainer *t, dt_rollout_need *out)
{
    (void)r, (void)t;
    *out = need;
    return DT_OK;
}
static bool fake_rollout_call(const struct dt_rollout *r, const double *mean, double n, uint32_t call,
                              dt_call_cost *out)
{
    assert_true(mean[0] == need.mean[0] && n == 4);
    *out = acts[call < 2 ? call : 0];
    return call < 2;
}

static const dt_gpu_peak gpu = {"G", "a GPU", 1e12, 4e12, 1e13, 1e11, 8e10};
static dt_loaded phase = {.desc = {.id = "phase_x"}};

static void begin(dt_stage *s)
{
    memset(s, 0, sizeof(*s));
    s->d.phase = &phase;
    s->params.total = 5000000;
    s->params.base_total = 4000000;
    s->opts.amp = (dt_amp_opts){.enabled = false};
    s->opts.engine = (dt_engine_opts){.in_flight = 2};
    s->opts.data = (dt_data_opts){.batch = 64, .shards = 1};
    moments = 2;
    st_of_calls = DT_OK;
}

static const row *find_row(const table *t, const char *name)
{
    for (uint32_t i = 0; i < t->n; i++) {
        assert_true(i == 0 || t->row[i - 1].s >= t->row[i].s); /* the longest first */
        if (strcmp(t->row[i].name, name) == 0) {
            return &t->row[i];
        }
    }
    return NULL;
}

static void assert_row(const table *t, const char *name, uint32_t n, double flops, double bytes, double s,
                       const char *by)
{
    const row *r = find_row(t, name);
    assert_non_null(r);
    if (r->calls != n || fabs(r->flops - flops) > 1 || fabs(r->bytes - bytes) > 1 || fabs(r->s - s) > 1e-12 ||
        strcmp(name_of_bound(r), by) != 0) {
        fail_msg("%s: %u calls, %g FLOP, %g bytes, %g s, %s", name, r->calls, r->flops, r->bytes, r->s,
                 name_of_bound(r));
    }
}

static void test_step(void **state)
{
    static dt_stage s;
    table t;
    begin(&s);
    assert_int_equal(make_table(&s, &gpu, &t), DT_OK);
    assert_string_equal(t.precision, "fp32");
    assert_row(&t, "linear", 2, 8.4e9, 3e8, 8e-3 + 2e-3, "arithmetic");
    assert_row(&t, "unary", 2, 3e9 + 1e3, 2e8 + 1e4, 3e-3 + 2e-6, "arithmetic");
    /* Adam: 14 FLOP and 28 bytes for a parameter */
    assert_row(&t, "update", 1, 14 * 4e6, 28 * 4e6, 28 * 4e6 / 1e11, "memory");
    assert_true(t.n == 3 && t.all.calls == 5 && fabs(t.all.s - (13.002e-3 + 1.12e-3)) < 1e-12);
    assert_true(half_asked == 0 && t.batches == 0);

    s.opts.engine.tf32 = true;
    s.opts.data.shards = 8;
    moments = 1;
    assert_int_equal(make_table(&s, &gpu, &t), DT_OK);
    assert_string_equal(t.precision, "TF32");
    assert_row(&t, "linear", 2, 8.4e9, 3e8, 2e-3 + 2e-3, "memory"); /* of both as much */
    assert_row(&t, "update", 1, 7 * 4e6, 20 * 4e6, 20 * 4e6 / 1e11, "memory");
    assert_row(&t, "sums of shards", 1, 7 * 4e6, 72 * 4e6, 72 * 4e6 / 1e11, "memory");
    assert_int_equal(t.n, 4);

    s.opts.amp = (dt_amp_opts){.enabled = true, .dtype = DT_AMP_BF16}; /* half comes before TF32 */
    assert_int_equal(make_table(&s, &gpu, &t), DT_OK);
    assert_string_equal(t.precision, "bf16");
    assert_int_equal(half_asked, DT_BF16);
    assert_row(&t, "linear", 2, 8.4e9, 3e8, 1e-3 + 2e-3, "memory");
    assert_row(&t, "parameters in half", 1, 0, 6 * 5e6, 6 * 5e6 / 1e11, "memory");
    s.opts.amp.dtype = DT_AMP_FP16;
    assert_int_equal(make_table(&s, &gpu, &t), DT_OK);
    assert_string_equal(t.precision, "fp16");
    assert_int_equal(half_asked, DT_F16);
    st_of_calls = DT_ENOMEM;
    assert_int_equal(make_table(&s, &gpu, &t), DT_ENOMEM);
}

/* In each of the steps, and after the last, all instances are asked about, in as many batches as are in flight. */
static void test_acting(void **state)
{
    static dt_stage s;
    static struct dt_rollout r;
    table t;
    begin(&s);
    s.rollout = &r;
    r.d.steps = 9;
    need = (dt_rollout_need){.instances = 8, .mean = {1.5}};
    assert_int_equal(make_table(&s, &gpu, &t), DT_OK);
    assert_true(t.batches == 20 && t.instances == 4 && t.agents == 6);
    assert_true(t.acting.calls == 2 && t.acting.flops == 1e9 && t.acting.bytes == 1e6 + 1e3);
    assert_true(fabs(t.acting.s - (1e-3 + 2e-6)) < 1e-12);
    s.opts.engine.in_flight = 12; /* no more than instances */
    need.instances = 2;
    need.mean[0] = 3;
    s.rollout = NULL;
    assert_int_equal(make_table(&s, &gpu, &t), DT_OK);
    assert_true(t.batches == 0);
}

static void test_said(void **state)
{
    static dt_stage s;
    static struct dt_rollout r;
    dt_str text = {0};
    begin(&s);
    s.rollout = &r;
    r.d.steps = 9;
    need = (dt_rollout_need){.instances = 8, .mean = {1.5}};
    assert_int_equal(dt_roofline_text(&s, &gpu, &text), DT_OK);
    assert_string_equal(
        dt_str_text(&text),
        "phase phase_x on a GPU, products in fp32: by calculation, no step is faster than 14.122 ms (4532 samples/s)\n"
        "  peaks: 1.0 TFLOP/s fp32, 1.0 in products, 100 GB/s, 2.0 us a launch\n"
        "  operation             calls     GFLOP        GB        ms    share  bounded by\n"
        "  linear                    2     8.400    0.3000   10.0000  70.8 %  arithmetic\n"
        "  unary                     2     3.000    0.2000    3.0020  21.3 %  arithmetic\n"
        "  update                    1     0.056    0.1120    1.1200   7.9 %  memory\n"
        "  a step                    5    11.456    0.6120   14.1220 100.0 %  arithmetic\n"
        "  a batch of acting         2     1.000    0.0010    1.0020 100.0 %  arithmetic\n"
        "  a round is 20 batches, each of 4 instances with 6 agents in the mean: 20.040 ms\n"
        "  all shards simultaneously; recurrent steps that wait for each other, reading data and environments are not "
        "included\n");
    dt_str_clear(&text);
    dt_json_out o = {.s = &text};
    assert_int_equal(dt_roofline_json(&s, &gpu, &o), DT_OK);
    static const char *const parts[] = {
        "{\"phase\":\"phase_x\",\"gpu\":\"a GPU\",\"products\":\"fp32\",\"step_s\":0.014122",
        "\"operations\":[{\"operation\":\"linear\",\"calls\":2,\"flops\":8400000000,\"bytes\":300000000,\"s\":0.01",
        "\"acting\":{\"calls\":2,\"flops\":1000000000,\"bytes\":1001000,\"batch_s\":0.001002",
        "\"bounded_by\":\"arithmetic\",\"batches\":20,\"round_s\":0.02004"};
    for (size_t i = 0; i < 4; i++) {
        if (strstr(dt_str_text(&text), parts[i]) == NULL) {
            fail_msg("%s is not in %s", parts[i], dt_str_text(&text));
        }
    }
    dt_str_fini(&text);
}

/* As their makers state them. */
static void test_peaks(void **state)
{
    static const struct {
        const char *name;
        double fp32, tf32, half, bandwidth, memory;
    } want[] = {{"h100", 66.9, 494.7, 989.4, 3350, 80},
                {"H200", 66.9, 494.7, 989.4, 4800, 141},
                {"A100", 19.5, 156, 312, 2039, 80},
                {"4090", 82.6, 82.6, 165.2, 1008, 24}};
    for (size_t i = 0; i < 4; i++) {
        const dt_gpu_peak *g = dt_gpu_peak_find(want[i].name);
        assert_non_null(g);
        assert_true(fabs(g->fp32 - want[i].fp32 * 1e12) < 1 && fabs(g->tf32 - want[i].tf32 * 1e12) < 1);
        assert_true(fabs(g->half - want[i].half * 1e12) < 1 && fabs(g->bandwidth - want[i].bandwidth * 1e9) < 1);
        assert_true(fabs(g->memory - want[i].memory * 1e9) < 1);
        assert_non_null(strstr(dt_gpu_peak_list_names(), g->name));
    }
    assert_null(dt_gpu_peak_find("H10"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_acting),
        cmocka_unit_test(test_said),
        cmocka_unit_test(test_peaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
