/* SPDX-License-Identifier: Apache-2.0 */
#include "round_report.h"

#include <math.h>
#include <stdbool.h>
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
    const bool is_known = !isnan(r->episode_length); /* also where no agent acted, unlike return and costs */
    if (r->episodes > 0) {
        m->scalar(h, "charts/episodic_return", r->episode_return);
    }
    if (is_known) {
        m->scalar(h, "charts/episodic_length", r->episode_length);
    }
    if (r->episodes > 0) {
        report_named_values(h, m, "costs", e->costs, r->episode_cost, e->n_costs);
    }
    if (is_known) {
        report_named_values(h, m, "env", e->metrics, r->metric, e->n_metrics);
    }
    m->scalar(h, "charts/episodes", (double)r->episodes);
}
