/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain bench comm`: measures the communicator between the processes that it was started with, and reports what a
 * step of training would take on more of them. See cost.h for the formulas. `dtrain bench gpu` reckons what a step
 * takes on a GPU at least (plan/roofline.h), as a dry run.
 */
#include <config.h>

#include "cli/cli.h"
#include "run/rank_processes.h"

#include "base/err.h"
#include "base/json.h"
#include "base/print.h"
#include "base/str.h"
#include "comm/cost.h"
#include "engine/optim/optim.h"
#include "plan/roofline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const uint32_t predicted[] = {2, 8, 64, 512};
enum { N_PREDICTED = sizeof(predicted) / sizeof(predicted[0]), BUCKET_BYTES = 1 << 22, LEAVES = 8 };

typedef struct answer {
    const char *library;
    uint32_t ranks, local;
    dt_cost_model model;
    dt_cost_measured measured;
    double exchange_s, half_s; /* measured: of fp32, and of halves */
    dt_cost_step here, here_half, step[N_PREDICTED], half[N_PREDICTED];
    uint32_t pays_until;
} answer;

/* A number above 0 and at most so much; without one, the default. */
static dt_status parse_amount(const char *option, const char *text, double most, double *out_p)
{
    if (text != NULL && (!dt_parse_f64(text, out_p) || !(*out_p > 0) || *out_p > most)) {
        return DT_FAIL(DT_ECONFIG, "%s %s: expected a number above 0, at most %g", option, text, most);
    }
    return DT_OK;
}

/* ---- what is said ------------------------------------------------------------------------------------------------ */

static void print_measured_links(const answer *a, dt_str *s)
{
    const dt_cost_measured *m = &a->measured;
    dt_str_addf(s, "%u ranks, %u of them on this machine, %s\n\n", a->ranks, a->local, a->library);
    dt_str_add(s, "  bytes to each other rank      median        best\n");
    for (uint32_t i = 0; i < DT_COST_SIZES; i++) {
        dt_str_addf(s, "  %24zu  %7.1f us  %7.1f us\n", m->bytes[i], m->swap_s[i] * 1e6, m->best_s[i] * 1e6);
    }
    dt_str_addf(s, "\nlatency %.2f us, bandwidth %.2f GB/s out of each rank, a barrier %.1f us\n",
                m->links.latency_s * 1e6, m->links.bytes_per_s / 1e9, m->barrier_s * 1e6);
    dt_str_addf(s,
                "%.2f million gradients summed and shared in buckets of %.0f MiB: %.1f ms measured, %.1f ms by the "
                "formula; with comm.wire = bf16 %.1f ms measured, %.1f ms by the formula\n\n",
                a->model.parameters / 1e6, a->model.bucket_bytes / 1048576, a->exchange_s * 1e3,
                a->here.exchange_s * 1e3, a->half_s * 1e3, a->here_half.exchange_s * 1e3);
}

static void print_predicted_steps(const answer *a, dt_str *s)
{
    dt_str_addf(s,
                "a step that computes %g s on one rank (--step-time), %.2f million parameters (--parameters), "
                "by these figures:\n\n",
                a->model.step_s, a->model.parameters / 1e6);
    dt_str_add(s, "                                                                                    with bf16:\n"
                  "  ranks  compute ms  exchange ms   step ms  overlapped ms  speed-up  sent MB  memory MB   step ms  "
                  "sent MB\n");
    for (uint32_t i = 0; i < N_PREDICTED; i++) {
        const dt_cost_step *p = &a->step[i];
        dt_str_addf(s, "  %5u  %10.2f  %11.2f  %8.2f  %13.2f  %8.2f  %7.1f  %9.1f  %8.2f  %7.1f\n", predicted[i],
                    p->compute_s * 1e3, p->exchange_s * 1e3, p->step_s * 1e3, p->overlapped_s * 1e3,
                    a->model.step_s / p->step_s, p->sent_bytes / 1e6, p->memory_bytes / 1e6, a->half[i].step_s * 1e3,
                    a->half[i].sent_bytes / 1e6);
    }
    dt_str_addf(s, "\nfrom %u rank%s on, doubling the ranks makes a step less than 10 %% faster\n", a->pays_until,
                a->pays_until == 1 ? "" : "s");
}

static void write_json_step(dt_json_out *o, uint32_t ranks, const dt_cost_step *p)
{
    dt_json_obj(o, NULL);
    dt_json_i64(o, "ranks", ranks);
    dt_json_f64(o, "compute_s", p->compute_s);
    dt_json_f64(o, "exchange_s", p->exchange_s);
    dt_json_f64(o, "step_s", p->step_s);
    dt_json_f64(o, "overlapped_s", p->overlapped_s);
    dt_json_f64(o, "sent_bytes", p->sent_bytes);
    dt_json_f64(o, "memory_bytes", p->memory_bytes);
    dt_json_end(o, '}');
}

static void print_json(const answer *a, dt_json_out *o)
{
    dt_json_obj(o, NULL);
    dt_json_str(o, "library", a->library);
    dt_json_i64(o, "ranks", a->ranks);
    dt_json_i64(o, "local", a->local);
    dt_json_arr(o, "swaps");
    for (uint32_t i = 0; i < DT_COST_SIZES; i++) {
        dt_json_obj(o, NULL);
        dt_json_i64(o, "bytes", (int64_t)a->measured.bytes[i]);
        dt_json_f64(o, "median_s", a->measured.swap_s[i]);
        dt_json_f64(o, "best_s", a->measured.best_s[i]);
        dt_json_end(o, '}');
    }
    dt_json_end(o, ']');
    dt_json_f64(o, "barrier_s", a->measured.barrier_s);
    dt_json_f64(o, "latency_s", a->measured.links.latency_s);
    dt_json_f64(o, "bytes_per_s", a->measured.links.bytes_per_s);
    dt_json_f64(o, "parameters", a->model.parameters);
    dt_json_f64(o, "one_rank_s", a->model.step_s);
    dt_json_f64(o, "exchange_s", a->exchange_s);
    dt_json_f64(o, "exchange_predicted_s", a->here.exchange_s);
    dt_json_f64(o, "exchange_bf16_s", a->half_s);
    dt_json_f64(o, "exchange_bf16_predicted_s", a->here_half.exchange_s);
    dt_json_arr(o, "predicted");
    for (uint32_t i = 0; i < N_PREDICTED; i++) {
        write_json_step(o, predicted[i], &a->step[i]);
    }
    dt_json_end(o, ']');
    dt_json_arr(o, "predicted_bf16");
    for (uint32_t i = 0; i < N_PREDICTED; i++) {
        write_json_step(o, predicted[i], &a->half[i]);
    }
    dt_json_end(o, ']');
    dt_json_i64(o, "pays_until", a->pays_until);
    dt_json_end(o, '}');
}

static dt_status print_result(const answer *a, bool is_json)
{
    dt_str s = {0};
    dt_json_out json = {.s = &s};
    if (is_json) {
        print_json(a, &json);
        dt_str_add(&s, "\n");
    } else {
        print_measured_links(a, &s);
        print_predicted_steps(a, &s);
    }
    const dt_status st = dt_str_status(&s);
    dt_print_text(dt_str_text(&s));
    dt_str_fini(&s);
    return st;
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

static dt_status measure_all(dt_comm *c, bool is_json, answer *a)
{
    a->library = dt_processes_library(c);
    a->ranks = dt_comm_size(c);
    a->local = dt_comm_local_size(c);
    DT_TRY(dt_cost_measure(c, &a->measured));
    dt_cost_model half = a->model;
    half.half = DT_HALF_BF16;
    DT_TRY(dt_cost_measure_exchange(c, &a->model, &a->exchange_s));
    DT_TRY(dt_cost_measure_exchange(c, &half, &a->half_s));
    dt_cost_predict(&a->measured.links, &a->model, a->ranks, &a->here);
    dt_cost_predict(&a->measured.links, &half, a->ranks, &a->here_half);
    for (uint32_t i = 0; i < N_PREDICTED; i++) {
        dt_cost_predict(&a->measured.links, &a->model, predicted[i], &a->step[i]);
        dt_cost_predict(&a->measured.links, &half, predicted[i], &a->half[i]);
    }
    a->pays_until = dt_cost_find_useful_ranks(&a->measured.links, &a->model);
    return dt_comm_rank(c) == 0 ? print_result(a, is_json) : DT_OK;
}

dt_status dt_verb_bench_comm(const dt_args *a, int *code_p)
{
    answer out = {.model = {.parameters = 15, .step_s = 0.1, .bucket_bytes = BUCKET_BYTES, .leaves = LEAVES}};
    dt_launch_range n;
    dt_launch launch;
    dt_comm *c = NULL;
    DT_TRY(parse_amount("--parameters", a->parameters, 10000, &out.model.parameters));
    DT_TRY(parse_amount("--step-time", a->step_time, 1e6, &out.model.step_s));
    out.model.parameters = floor(out.model.parameters * 1e6);
    DT_TRY(dt_processes_parse_range("--nproc", a->nproc, &n));
    if (n.min != n.max) {
        return DT_FAIL(DT_ECONFIG, "--nproc %s: dtrain bench comm measures one number of processes", a->nproc);
    }
    if (!dt_launch_detect(&launch)) {
        if (n.max < 2) {
            DT_TRY(dt_processes_reject_single(a));
            return DT_FAIL(DT_ECONFIG, "dtrain bench comm measures between processes: use --nproc 2 or more, or start "
                                       "it with mpirun or srun");
        }
        return dt_processes_launch(a, n, (dt_launch_range){0, 0}, code_p);
    }
    dt_status st = dt_processes_begin(&launch, n, &c);
    if (st == DT_OK) {
        st = measure_all(c, a->json, &out);
    }
    if (st < 0 && c != NULL) {
        dt_comm_abandon(c, dt_error_text());
    }
    return dt_processes_end(&launch, c, st, code_p);
}

dt_status dt_verb_bench_gpu(const dt_args *a, int *code_p)
{
    dt_args dry = *a;
    if (a->predict == NULL || dt_gpu_peak_find(a->predict) == NULL) {
        return DT_FAIL(DT_ECONFIG, "--predict%s%s: expected one of %s", a->predict != NULL ? " " : "",
                       a->predict != NULL ? a->predict : "", dt_gpu_peak_list_names());
    }
    dry.n_words = 0;
    dry.dry_run = true;
    return dt_verb_run(&dry, code_p);
}
