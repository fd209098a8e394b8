/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plan/roofline.h"

#include "base/err.h"
#include "rl/experience/service.h"
#include "rl/rollout/rollout.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A kernel in a replayed graph, however small it is. Assumed: no source gives it for all of these. */
static const double launch_s = 2e-6;

/* Sources: NVIDIA H100 Tensor Core GPU architecture white paper (SXM), H200 data sheet (the same GPU, other memory),
 * A100 80GB data sheet (SXM), Ada GPU architecture white paper (RTX 4090; fp16 summed in fp32). Without sparsity. */
static const dt_gpu_peak peaks[] = {
    {"H100", "NVIDIA H100 SXM 80 GB", 66.9e12, 494.7e12, 989.4e12, 3350e9, 80e9},
    {"H200", "NVIDIA H200 SXM 141 GB", 66.9e12, 494.7e12, 989.4e12, 4800e9, 141e9},
    {"A100", "NVIDIA A100 SXM 80 GB", 19.5e12, 156e12, 312e12, 2039e9, 80e9},
    {"4090", "NVIDIA GeForce RTX 4090 24 GB", 82.6e12, 82.6e12, 165.2e12, 1008e9, 24e9},
};
enum { N_PEAKS = sizeof(peaks) / sizeof(peaks[0]), MOST_ROWS = 96 };

typedef enum bound { BY_LAUNCH, BY_MEMORY, BY_ARITHMETIC, N_BOUNDS } bound;
static const char *const bound_names[N_BOUNDS] = {"launches", "memory", "arithmetic"};

typedef struct row { /* all calls of an operation */
    const char *name;
    uint32_t calls;
    double flops, bytes, s;
    double of[N_BOUNDS]; /* of s, by what bounds each call */
} row;

typedef struct table {
    row row[MOST_ROWS]; /* the longest first */
    uint32_t n;
    row all;
    double product; /* FLOP/s of products of matrices */
    const char *precision;
    row acting;     /* a batch of the policy */
    double batches; /* of a round; 0: nothing acts */
    double instances, agents;
} table;

const dt_gpu_peak *dt_gpu_peak_find(const char *name)
{
    for (size_t i = 0; i < N_PEAKS; i++) {
        if (strcasecmp(peaks[i].name, name) == 0) {
            return &peaks[i];
        }
    }
    return NULL;
}

const char *dt_gpu_peak_list_names(void)
{
    return "H100, H200, A100, 4090";
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static row *find_or_add_row(table *t, const char *name)
{
    uint32_t i = 0;
    while (i < t->n && strcmp(t->row[i].name, name) != 0) {
        i++;
    }
    if (i == t->n && t->n < MOST_ROWS) {
        t->row[t->n++] = (row){.name = name};
    }
    return i < t->n ? &t->row[i] : NULL;
}

static void add_row_cost(row *r, const dt_plan_cost *c, double s, bound by)
{
    r->calls++;
    r->flops += c->flops;
    r->bytes += c->bytes;
    r->s += s;
    r->of[by] += s;
}

static double call_time(const table *t, const dt_gpu_peak *g, bool is_product, dt_plan_cost c, bound *by_p)
{
    const double compute = c.flops / (is_product ? t->product : g->fp32), move = c.bytes / g->bandwidth;
    const double most = compute > move ? compute : move;
    *by_p = launch_s > most ? BY_LAUNCH : compute > move ? BY_ARITHMETIC : BY_MEMORY;
    return *by_p == BY_LAUNCH ? launch_s : most;
}

static void add_call(table *t, const dt_gpu_peak *g, const char *name, bool is_product, dt_plan_cost c)
{
    bound by = BY_LAUNCH;
    const double s = call_time(t, g, is_product, c, &by);
    row *r = find_or_add_row(t, name);
    if (r != NULL) {
        add_row_cost(r, &c, s, by);
    }
    add_row_cost(&t->all, &c, s, by);
}

typedef struct adding {
    table *t;
    const dt_gpu_peak *g;
} adding;

static void add_plan_call(void *user, const dt_call_cost *c)
{
    const adding *a = user;
    add_call(a->t, a->g, c->op, c->is_product, c->cost);
}

/* Gradients of S leaves are written, and read for their sum, which is written and measured; the update then reads
 * gradient, parameter and moments (one of SGD, two of Adam), and writes all but the gradient. */
static void add_update_cost(table *t, const dt_gpu_peak *g, double parameters, double leaves, uint32_t moments)
{
    const dt_plan_cost sums = {.flops = (leaves - 1) * parameters, .bytes = 8 * (leaves + 1) * parameters};
    const dt_plan_cost update = {.flops = 7.0 * moments * parameters, .bytes = 4.0 * (3 + 2 * moments) * parameters};
    if (leaves > 1) {
        add_call(t, g, "sums of shards", false, sums);
    }
    add_call(t, g, "update", false, update);
}

/* A round: in every step, and again after the last one, the policy runs for all instances, in as many
 * batches as are in flight. */
static dt_status add_acting_calls(const dt_stage *s, const dt_gpu_peak *g, const dt_engine_opts *engine, table *t)
{
    dt_rollout_need need;
    dt_call_cost call;
    if (s->rollout == NULL) {
        return DT_OK;
    }
    DT_TRY(dt_rollout_measure_need(s->rollout, s->trainer, &need));
    const double groups = engine->in_flight < need.instances ? (double)engine->in_flight : need.instances;
    t->batches = (s->rollout->d.steps + 1.0) * groups;
    t->instances = need.instances / groups;
    t->agents = need.mean[0] * t->instances;
    t->acting.name = "a batch of acting";
    for (uint32_t i = 0; dt_rollout_call_cost(s->rollout, need.mean, t->instances, i, &call); i++) {
        bound by = BY_LAUNCH;
        const double took = call_time(t, g, call.is_product, call.cost, &by);
        add_row_cost(&t->acting, &call.cost, took, by);
    }
    return DT_OK;
}

static int compare_rows(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if (x->s != y->s) {
        return x->s > y->s ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

static dt_status make_table(const dt_stage *s, const dt_gpu_peak *g, table *t)
{
    const dt_amp_opts *amp = &s->opts.amp;
    uint32_t half = 0;
    *t = (table){.all = {.name = "a step"}, .product = g->fp32, .precision = "fp32"};
    if (amp->enabled) {
        half = amp->dtype == DT_AMP_FP16 ? DT_F16 : DT_BF16;
        t->product = g->half;
        t->precision = amp->dtype == DT_AMP_FP16 ? "fp16" : "bf16";
    } else if (s->opts.engine.tf32) {
        t->product = g->tf32;
        t->precision = "TF32";
    }
    adding a = {t, g};
    DT_TRY(dt_trainer_list_device_calls(s->trainer, half, &a, add_plan_call));
    if (half != 0) {
        const dt_plan_cost copy = {.bytes = 6.0 * (double)s->params.total};
        add_call(t, g, "parameters in half", false, copy);
    }
    add_update_cost(t, g, (double)s->params.base_total, (double)s->opts.data.shards, dt_trainer_n_moments(s->trainer));
    qsort(t->row, t->n, sizeof(t->row[0]), compare_rows);
    return add_acting_calls(s, g, &s->opts.engine, t);
}

/* ---- said -------------------------------------------------------------------------------------------------------- */

static const char *name_of_bound(const row *r)
{
    bound most = BY_LAUNCH;
    for (bound i = BY_MEMORY; i < N_BOUNDS; i++) {
        most = r->of[i] > r->of[most] ? i : most;
    }
    return bound_names[most];
}

static void append_row_text(const row *r, double whole_s, dt_str *out)
{
    dt_str_addf(out, "  %-20s %6u %9.3f %9.4f %9.4f %5.1f %%  %s\n", r->name, r->calls, r->flops / 1e9, r->bytes / 1e9,
                r->s * 1e3, 100 * r->s / whole_s, name_of_bound(r));
}

static void append_acting(const table *t, dt_str *out)
{
    const row *r = &t->acting;
    if (t->batches > 0) {
        append_row_text(r, r->s, out);
        dt_str_addf(out, "  a round is %.0f batches, each of %g instances with %.3g agents in the mean: %.3f ms\n",
                    t->batches, t->instances, t->agents, t->batches * r->s * 1e3);
    }
}

dt_status dt_roofline_text(const dt_stage *s, const dt_gpu_peak *g, dt_str *out)
{
    table t;
    DT_TRY(make_table(s, g, &t));
    dt_str_addf(out,
                "phase %s on %s, products in %s: by calculation, no step is faster than %.3f ms (%.0f samples/s)\n",
                s->d.phase->desc.id, g->model, t.precision, t.all.s * 1e3, (double)s->opts.data.batch / t.all.s);
    dt_str_addf(out, "  peaks: %.1f TFLOP/s fp32, %.1f in products, %.0f GB/s, %.1f us a launch\n", g->fp32 / 1e12,
                t.product / 1e12, g->bandwidth / 1e9, launch_s * 1e6);
    dt_str_add(out, "  operation             calls     GFLOP        GB        ms    share  bounded by\n");
    for (uint32_t i = 0; i < t.n; i++) {
        append_row_text(&t.row[i], t.all.s, out);
    }
    append_row_text(&t.all, t.all.s, out);
    append_acting(&t, out);
    dt_str_add(out, "  all shards simultaneously; recurrent steps that wait for each other, reading data and "
                    "environments are not included\n");
    return dt_str_status(out);
}

static void write_json_row(const row *r, dt_json_out *o)
{
    dt_json_obj(o, NULL);
    dt_json_str(o, "operation", r->name);
    dt_json_i64(o, "calls", r->calls);
    dt_json_f64(o, "flops", r->flops);
    dt_json_f64(o, "bytes", r->bytes);
    dt_json_f64(o, "s", r->s);
    dt_json_str(o, "bounded_by", name_of_bound(r));
    dt_json_end(o, '}');
}

dt_status dt_roofline_json(const dt_stage *s, const dt_gpu_peak *g, dt_json_out *o)
{
    table t;
    DT_TRY(make_table(s, g, &t));
    dt_json_obj(o, NULL);
    dt_json_str(o, "phase", s->d.phase->desc.id);
    dt_json_str(o, "gpu", g->model);
    dt_json_str(o, "products", t.precision);
    dt_json_f64(o, "step_s", t.all.s);
    dt_json_f64(o, "flops", t.all.flops);
    dt_json_f64(o, "bytes", t.all.bytes);
    dt_json_arr(o, "operations");
    for (uint32_t i = 0; i < t.n; i++) {
        write_json_row(&t.row[i], o);
    }
    dt_json_end(o, ']');
    if (t.batches > 0) {
        dt_json_obj(o, "acting");
        dt_json_i64(o, "calls", t.acting.calls);
        dt_json_f64(o, "flops", t.acting.flops);
        dt_json_f64(o, "bytes", t.acting.bytes);
        dt_json_f64(o, "batch_s", t.acting.s);
        dt_json_str(o, "bounded_by", name_of_bound(&t.acting));
        dt_json_f64(o, "batches", t.batches);
        dt_json_f64(o, "round_s", t.batches * t.acting.s);
        dt_json_end(o, '}');
    }
    dt_json_end(o, '}');
    return DT_OK;
}
