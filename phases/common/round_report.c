/* SPDX-License-Identifier: Apache-2.0 */
#include "round_report.h"

#include <time.h>

double report_seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void report_named_values(const dt_host *h, const dt_metrics_api *m, const char *group, const char *const *name,
                                const double *value, uint32_t n)
{
    char key[96];
    for (uint32_t i = 0; i < n; i++) {
        snprintf(key, sizeof(key), "%s/%s", group, name[i]);
        m->scalar(h, key, value[i]);
    }
}

void report_episodes(const dt_host *h, const dt_metrics_api *m, const dt_env_spec *e, const dt_rollout_report *r)
{
    if (r->episodes > 0) {
        m->scalar(h, "charts/episodic_return", r->episode_return);
        m->scalar(h, "charts/episodic_length", r->episode_length);
        report_named_values(h, m, "costs", e->costs, r->episode_cost, e->n_costs);
        report_named_values(h, m, "env", e->metrics, r->metric, e->n_metrics);
    }
    m->scalar(h, "charts/episodes", (double)r->episodes);
}
