/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/asha.h"

#include "base/err.h"
#include "base/mem.h"

#include <math.h>

dt_status dt_asha_init(dt_asha *s, uint32_t n_trials, uint32_t n_rungs, uint32_t eta, uint32_t window)
{
    *s = (dt_asha){.n_trials = n_trials, .n_rungs = n_rungs, .eta = eta, .window = window};
    s->top = dt_alloc_n(n_trials, sizeof(*s->top));
    return s->top != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %u trials", n_trials);
}

void dt_asha_fini(dt_asha *s)
{
    dt_free(s->top);
    dt_free(s->job);
    *s = (dt_asha){0};
}

/* Better first; of equal ones that of the earlier decision. */
static bool is_better(const dt_asha *s, uint32_t a, uint32_t b)
{
    const double x = s->job[a].value, y = s->job[b].value;
    return x > y || (x == y && a < b);
}

static uint32_t rank_in_rung(const dt_asha *s, uint32_t job, uint32_t n_seen)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < n_seen; i++) {
        const dt_asha_job *other = &s->job[i];
        const bool is_rival = !other->is_idle && other->rung == s->job[job].rung && !isnan(other->value);
        rank += is_rival && is_better(s, i, job);
    }
    return rank;
}

/* Of the jobs seen in a rung, failed ones count: they took a place, but have no rank. */
static uint32_t count_in_rung(const dt_asha *s, uint32_t rung, uint32_t n_seen)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_seen; i++) {
        n += !s->job[i].is_idle && s->job[i].rung == rung;
    }
    return n;
}

/* The best of the upper 1/eta of a rung that was not promoted, from the highest rung down. */
static bool find_promotion(const dt_asha *s, uint32_t n_seen, uint32_t *job_p)
{
    for (uint32_t rung = s->n_rungs - 1; rung-- > 0;) {
        const uint32_t quota = count_in_rung(s, rung, n_seen) / s->eta;
        bool is_found = false;
        for (uint32_t i = 0; i < n_seen && quota > 0; i++) {
            const dt_asha_job *j = &s->job[i];
            const bool is_candidate = !j->is_idle && j->rung == rung && !isnan(j->value) &&
                                      s->top[j->trial] == rung + 1 && rank_in_rung(s, i, n_seen) < quota;
            if (is_candidate && (!is_found || is_better(s, i, *job_p))) {
                *job_p = i;
                is_found = true;
            }
        }
        if (is_found) {
            return true;
        }
    }
    return false;
}

static dt_status add_job(dt_asha *s, dt_asha_job job)
{
    if (s->n_jobs == s->cap) {
        const uint32_t cap = s->cap == 0 ? 64 : 2 * s->cap;
        dt_asha_job *grown = dt_realloc(s->job, cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for %u decisions of a sweep", cap);
        }
        s->job = grown;
        s->cap = cap;
    }
    s->job[s->n_jobs++] = job;
    return DT_OK;
}

/* Nothing but idle decisions since all results were seen: none will be another. */
static bool is_over(const dt_asha *s)
{
    if (s->n_begun < s->n_trials || s->n_jobs < s->window) {
        return false;
    }
    for (uint32_t i = s->n_jobs - s->window; i < s->n_jobs; i++) {
        if (!s->job[i].is_idle) {
            return false;
        }
    }
    return true;
}

static void count_known(dt_asha *s)
{
    while (s->n_known < s->n_jobs && s->job[s->n_known].is_known) {
        s->n_known++;
    }
}

dt_status dt_asha_next(dt_asha *s, uint32_t *job_p)
{
    while (!is_over(s)) {
        const uint32_t n_seen = s->n_jobs >= s->window ? s->n_jobs - s->window + 1 : 0;
        uint32_t best = 0;
        count_known(s);
        if (s->n_known < n_seen) {
            return DT_AGAIN;
        }
        dt_asha_job job = {.is_idle = true, .is_known = true, .value = NAN};
        if (s->n_rungs > 1 && find_promotion(s, n_seen, &best)) {
            job = (dt_asha_job){.trial = s->job[best].trial, .rung = s->job[best].rung + 1, .value = NAN};
        } else if (s->n_begun < s->n_trials) {
            job = (dt_asha_job){.trial = s->n_begun++, .value = NAN};
        }
        DT_TRY(add_job(s, job));
        if (!job.is_idle) {
            s->top[job.trial] = job.rung + 1;
            *job_p = s->n_jobs - 1;
            return DT_OK;
        }
    }
    return DT_DONE;
}

void dt_asha_set_result(dt_asha *s, uint32_t job, double value)
{
    s->job[job].value = value;
    s->job[job].is_known = true;
}
