/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/schedule.h"

#include "base/err.h"

#include <math.h>

static bool is_population(const dt_sweep_schedule *s)
{
    return s->sweep->search == DT_SEARCH_PBT;
}

dt_status dt_sweep_schedule_init(dt_sweep_schedule *s, const dt_sweep *sweep)
{
    *s = (dt_sweep_schedule){.sweep = sweep};
    if (!is_population(s)) {
        return dt_asha_init(&s->asha, sweep->trials, sweep->n_rungs, sweep->eta, sweep->window);
    }
    const dt_pbt_desc d = {.space = &sweep->space,
                           .n = sweep->trials,
                           .n_generations = sweep->n_rungs,
                           .seed = sweep->seed,
                           .truncation = sweep->truncation,
                           .resample = sweep->resample};
    return dt_pbt_init(&s->pbt, &d);
}

void dt_sweep_schedule_fini(dt_sweep_schedule *s)
{
    dt_asha_fini(&s->asha);
    dt_pbt_fini(&s->pbt);
}

dt_status dt_sweep_schedule_next(dt_sweep_schedule *s, dt_sweep_job *job_p)
{
    uint32_t job = 0;
    if (is_population(s)) {
        const dt_status st = dt_pbt_next(&s->pbt, &job);
        *job_p = (dt_sweep_job){job, job % s->sweep->trials, job / s->sweep->trials};
        return st;
    }
    const dt_status st = dt_asha_next(&s->asha, &job);
    if (st == DT_OK) {
        *job_p = (dt_sweep_job){job, s->asha.job[job].trial, s->asha.job[job].rung};
    }
    return st;
}

void dt_sweep_schedule_set_result(dt_sweep_schedule *s, uint32_t job, double value)
{
    const double score = s->sweep->is_min ? -value : value;
    if (is_population(s)) {
        dt_pbt_set_result(&s->pbt, job, score);
    } else {
        dt_asha_set_result(&s->asha, job, score);
    }
}

void dt_sweep_schedule_append_value(const dt_sweep_schedule *s, uint32_t trial, uint32_t rung, uint32_t k, dt_str *out)
{
    const uint32_t job = rung * s->sweep->trials + trial;
    if (is_population(s) && s->pbt.n_begun > job) {
        dt_str_add(out, dt_pbt_value(&s->pbt, job, k));
    } else {
        dt_space_append_value(&s->sweep->space, s->sweep->search, s->sweep->seed, trial, k, out);
    }
}

uint32_t dt_sweep_schedule_source(const dt_sweep_schedule *s, uint32_t trial, uint32_t rung)
{
    return is_population(s) ? s->pbt.member[rung * s->sweep->trials + trial].from : trial;
}

void dt_sweep_schedule_append_folder(const dt_sweep_schedule *s, uint32_t trial, uint32_t rung, dt_str *out)
{
    dt_str_addf(out, "trial-%04u", trial + 1);
    while (rung > 0 && dt_sweep_schedule_source(s, trial, rung) == trial) {
        rung--;
    }
    if (rung > 0) {
        dt_str_addf(out, "/generation-%02u", rung + 1);
    }
}
