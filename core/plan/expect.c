/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plan/expect.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "rl/rollout/rollout.h"
#include "plan/machine/limits.h"
#include "telemetry/report/html.h"

#include <math.h>
#include <string.h>

enum { TRAINER_STEPS = 3 };
static const double try_s = 0.3, try_process_s = 3;           /* at most */
static const double try_trainer_s = 0.5;                      /* after it no further step begins */
static const double most_flops = 1e11, most_resident = 2.0e9; /* of what a plan tries: a step of a few seconds */

static uint64_t min_nonzero(uint64_t a, uint64_t limit)
{
    return limit > 0 && (a == 0 || limit < a) ? limit : a;
}

/* Steps of the trainer that are left, 0: open. */
static uint64_t remaining_steps(const dt_stage *s, const dt_forecast *f, uint64_t max_steps)
{
    const uint64_t begin = dt_trainer_step_number(s->trainer), each = dt_trainer_steps_per_epoch(s->trainer);
    uint64_t steps = min_nonzero(dt_trainer_steps(s->trainer), (uint64_t)f->stop.steps);
    steps = min_nonzero(steps, max_steps);
    steps = min_nonzero(steps, (uint64_t)f->stop.epochs * each);
    return steps > begin ? steps - begin : 0;
}

static uint32_t count_parallel_evaluations(const dt_stage *s, const dt_forecast *f)
{
    const uint32_t threads = f->rollout.processes > 0 ? dt_limits_count_cores("") : f->rollout.threads;
    const uint32_t n = f->rollout.instances < threads ? f->rollout.instances : threads;
    return n * dt_comm_process_size(s->d.comm) > 1 ? n * dt_comm_process_size(s->d.comm) : 1;
}

static void estimate_environments(dt_stage *s, const dt_forecast *f, dt_expected *out)
{
    const dt_evaluation_opts *o = &s->opts.evaluation;
    const uint64_t longest = s->env.layout.spec.max_steps;
    const double each = out->step_s / out->parallel;
    out->all_s = out->rounds * (double)f->round * each;
    if (longest > 0 && s->d.phase->ops.phase.evaluate != NULL) {
        const double jobs = (double)o->n_seeds * (double)o->episodes;
        const double steps = fmin((double)longest, (double)o->max_steps);
        out->evaluation_s = steps * out->step_s * ceil(jobs / out->parallel);
    }
}

/* The first step makes what the others find. */
static void measure_trainer_step(dt_stage *s, dt_expected *out)
{
    double begin_s = 0, end_s = 0;
    dt_progress p;
    dt_log_mute(true);
    for (uint32_t i = 0; i <= TRAINER_STEPS; i++) {
        begin_s = i == 1 ? dt_clock_s() : begin_s;
        if (dt_stage_iterate(s, &p) != DT_OK) {
            break;
        }
        out->n_tried = i;
        end_s = dt_clock_s(); /* a step that fails has no part in it */
        if (i > 0 && end_s - begin_s >= try_trainer_s) {
            break;
        }
    }
    dt_log_mute(false);
    dt_error_clear();
    out->step_s = out->n_tried > 0 ? (end_s - begin_s) / out->n_tried : (double)NAN;
}

void dt_estimate_duration(dt_stage *s, const dt_forecast *f, uint64_t max_steps, bool is_plan, dt_expected *out)
{
    const uint64_t left = remaining_steps(s, f, max_steps), all = dt_trainer_steps(s->trainer);
    *out = (dt_expected){.step_s = NAN, .all_s = NAN, .evaluation_s = NAN, .rounds = NAN, .acts = s->rollout != NULL};
    if (out->acts) {
        const bool in_process = f->rollout.processes > 0;
        const double most =
            f->stop.iterations > 0 ? fmin((double)f->iterations, (double)f->stop.iterations) : (double)f->iterations;
        out->rounds = all > 0 ? fmin(most, ceil((double)f->iterations * (double)left / (double)all)) : most;
        out->parallel = count_parallel_evaluations(s, f);
        if (f->round > 0 && out->rounds > 0 && (is_plan || !in_process)) {
            pthread_mutex_lock(s->d.config_lock);
            out->step_s = dt_rollout_measure_speed(s->rollout, in_process ? try_process_s : try_s, &out->n_tried);
            pthread_mutex_unlock(s->d.config_lock);
            estimate_environments(s, f, out);
        }
        return;
    }
    const bool is_small = dt_trainer_step_cost(s->trainer).flops <= most_flops && (double)f->resident <= most_resident;
    if (is_plan && is_small && left > TRAINER_STEPS && s->d.device_ops == NULL && dt_comm_size(s->d.comm) == 1) {
        measure_trainer_step(s, out);
        out->all_s = (double)left * out->step_s;
    }
}

static const char *format_duration(double s, char out[DT_NUMBER_BYTES])
{
    static const double least_s = 0.1; /* below it a duration has no meaning for a plan */
    return s < least_s ? "less than 0.1 s" : dt_duration_text(s, out);
}

void dt_estimate_text(const dt_expected *e, dt_str *out)
{
    char all[DT_NUMBER_BYTES], one[DT_NUMBER_BYTES];
    if (isnan(e->all_s)) {
        dt_str_add(out, e->acts ? "not known before the first round is measured; a run logs it after that round"
                                : "not known before the first steps are measured; a run logs it after 3 s of training");
        return;
    }
    if (!e->acts) {
        dt_str_addf(out,
                    "%s of training, by estimate from %u step%s tried here (%.3g %s each); evaluations are "
                    "not in it",
                    format_duration(e->all_s, all), e->n_tried, e->n_tried == 1 ? "" : "s",
                    e->step_s < 1 ? 1e3 * e->step_s : e->step_s, e->step_s < 1 ? "ms" : "s");
        return;
    }
    dt_str_addf(out, "%s for environments in %.4g rounds", format_duration(e->all_s, all), e->rounds);
    if (!isnan(e->evaluation_s)) {
        dt_str_addf(out, ", up to %s in each evaluation", format_duration(e->evaluation_s, one));
    }
    dt_str_addf(out,
                ", by estimate from %u steps tried here (%.3g %s each, %u at a time); acting and learning are not "
                "known before the first round is measured",
                e->n_tried, e->step_s < 1 ? 1e3 * e->step_s : e->step_s, e->step_s < 1 ? "ms" : "s", e->parallel);
}

void dt_estimate_json(const dt_expected *e, dt_json_out *o)
{
    dt_json_obj(o, "expected"); /* estimates, null where unknown */
    dt_json_f64(o, e->acts ? "environments_s" : "training_s", e->all_s);
    dt_json_f64(o, "evaluation_s", e->evaluation_s);
    dt_json_f64(o, "step_s", e->step_s);
    dt_json_i64(o, "steps_tried", e->n_tried);
    dt_json_end(o, '}');
}
