/* SPDX-License-Identifier: Apache-2.0
 *
 * See evaluation.h.
 */
#include <config.h>

#include "rl/evaluate/results.h"

#include "config/schema.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { TAIL_BYTES = 8 }; /* "/values" */

typedef struct out {
    const dt_host *h;
    const dt_metrics_api *m;
    const dt_rollout_report *r;
    uint32_t n;
} out;

/* A number of each seed: mean, deviation with n - 1 (unknown of a single seed), and each one. */
static void report_of_seeds(const out *o, const char *group, const char *name, const double *of_seed)
{
    double value[DT_EVALUATION_MAX_SEEDS] = {0}, mean = 0, square = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->n; i++) {
        value[n] = of_seed[i];
        if (!isnan(value[n])) {
            n++;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        mean += value[i] / n;
    }
    for (uint32_t i = 0; i < n; i++) {
        square += (value[i] - mean) * (value[i] - mean);
    }
    const double result[2] = {n > 0 ? mean : NAN, n > 1 ? sqrt(square / (n - 1)) : (double)NAN};
    char key[160];
    const int at = snprintf(key, sizeof(key) - TAIL_BYTES, "%s%s%s", group, *group != '\0' ? "/" : "", name);
    snprintf(key + at, TAIL_BYTES, "/mean");
    o->m->report(o->h, key, &result[0], 0);
    snprintf(key + at, TAIL_BYTES, "/std");
    o->m->report(o->h, key, &result[1], 0);
    snprintf(key + at, TAIL_BYTES, "/values");
    o->m->report(o->h, key, of_seed, o->n);
}

/* The number at `offset` bytes of each seed's report. */
static void report_mean_and_deviation(const out *o, const char *group, const char *name, size_t offset)
{
    double of_seed[DT_EVALUATION_MAX_SEEDS] = {0};
    for (uint32_t i = 0; i < o->n; i++) {
        memcpy(&of_seed[i], (const char *)&o->r[i] + offset, sizeof(*of_seed));
    }
    report_of_seeds(o, group, name, of_seed);
}

static bool has_known(const double *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!isnan(v[i])) {
            return true;
        }
    }
    return false;
}

void dt_evaluation_report_places(const dt_host *h, const dt_metrics_api *m, const double *of_place, uint32_t n_seeds,
                                 uint32_t n_places)
{
    const out o = {.h = h, .m = m, .n = n_seeds < DT_EVALUATION_MAX_SEEDS ? n_seeds : DT_EVALUATION_MAX_SEEDS};
    for (uint32_t a = 0; a < n_places; a++) {
        char name[16];
        double of_seed[DT_EVALUATION_MAX_SEEDS] = {0};
        for (uint32_t i = 0; i < o.n; i++) {
            of_seed[i] = of_place[(size_t)i * n_places + a];
        }
        if (!has_known(of_seed, o.n)) { /* it never acted, as one of an opponent */
            continue;
        }
        snprintf(name, sizeof(name), "%u", a);
        report_of_seeds(&o, "place_returns", name, of_seed); /* "return" is one key of the document */
    }
}

void dt_evaluation_report_results(const dt_host *h, const dt_metrics_api *m, const dt_env_spec *spec,
                                  const uint64_t *seed, const dt_rollout_report *r, uint32_t n)
{
    const out o = {.h = h, .m = m, .r = r, .n = n < DT_EVALUATION_MAX_SEEDS ? n : DT_EVALUATION_MAX_SEEDS};
    double list[DT_EVALUATION_MAX_SEEDS] = {0}, rows = 0, interventions = 0, infeasible = 0;
    for (uint32_t i = 0; i < o.n; i++) {
        list[i] = (double)seed[i];
        rows += (double)r[i].agent_steps;
        if (r[i].agent_steps > 0) { /* of no rows there is no share */
            interventions += r[i].interventions * (double)r[i].agent_steps;
            infeasible += r[i].infeasible * (double)r[i].agent_steps;
        }
    }
    m->report(h, "seeds", list, o.n);
    report_mean_and_deviation(&o, "", "return", offsetof(dt_rollout_report, episode_return));
    report_mean_and_deviation(&o, "", "length", offsetof(dt_rollout_report, episode_length));
    for (uint32_t i = 0; i < spec->n_costs; i++) {
        report_mean_and_deviation(&o, "costs", spec->costs[i],
                                  offsetof(dt_rollout_report, episode_cost) + i * sizeof(double));
    }
    for (uint32_t i = 0; i < spec->n_metrics; i++) {
        report_mean_and_deviation(&o, "metrics", spec->metrics[i],
                                  offsetof(dt_rollout_report, metric) + i * sizeof(double));
    }
    infeasible = rows > 0 ? infeasible / rows : (double)NAN;
    interventions = rows > 0 ? interventions : (double)NAN;
    m->report(h, "shield/interventions", &interventions, 0);
    m->report(h, "shield/infeasible_rate", &infeasible, 0);
}
