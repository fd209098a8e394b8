/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of phase_offline that others leave without effect are rejected; see offline.h.
 */
#include "offline.h"

#include <stdlib.h>
#include <string.h>

#define ID "phase_offline"

static dt_status check_clone(const dt_host *h, const offline_config *c)
{
    return DT_FAIL_H(h, DT_ECONFIG,
                     ID ".limits = \"%s\" has no effect with algorithm = \"clone\", which imitates the rollouts at any "
                        "cost; set algorithm = \"advantage\", or no limits",
                     c->limits);
}

static dt_status check_limits(const dt_host *h, const offline_config *c)
{
    if (c->clone_rounds >= c->iterations) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         ID ".limits = \"%s\" would never apply: clone_rounds = %lld of iterations = %lld rounds clone "
                            "the behaviour at any cost; lower the first or raise the second",
                         c->limits, (long long)c->clone_rounds, (long long)c->iterations);
    }
    if (c->margin >= 1) {
        return DT_FAIL_H(h, DT_ECONFIG, ID ".margin = 1 reduces every limit to 0; set it below 1");
    }
    return multiplier_check(h, ID, &c->multiplier, MULTIPLIER_PID);
}

dt_status offline_check(const dt_host *h, const offline_config *c)
{
    if (c->limits[0] == '\0') {
        return DT_OK;
    }
    return c->algorithm == OFFLINE_CLONE ? check_clone(h, c) : check_limits(h, c);
}

/* ---- options without effect -------------------------------------------------------------------------------------- */

typedef struct rule {
    const char *because, *remedy;
    const char *const *option; /* ends with NULL */
} rule;

static const char *const of_values[] = {
    "beta",         "weight_max",           "critics",     "tau",       "value_coef",
    "clone_rounds", "critic_learning_rate", "critic_clip", "ratio_max", NULL};
static const char *const of_limits[] = {"margin", "start",     "multiplier_max", "kp",        "ki",
                                        "kd",     "error_ema", "cost_ema",       "pid_delay", NULL};
static const char *const of_normalising[] = {"clip_obs", NULL};

static const dt_option *find_option(const dt_option *table, const char *name)
{
    while (table->name != NULL && strcmp(table->name, name) != 0) {
        table++;
    }
    return table->name != NULL ? table : NULL;
}

/* Numbers alone are listed above. */
static double read_option(const dt_option *o, const void *config)
{
    const char *at = (const char *)config + o->offset;
    int64_t whole;
    double x;
    if (o->type == DT_OPT_I64) {
        memcpy(&whole, at, sizeof(whole));
        return (double)whole;
    }
    memcpy(&x, at, sizeof(x));
    return x;
}

static dt_status check_rule(const dt_host *h, const dt_option *table, const void *config, const rule *r)
{
    for (const char *const *name = r->option; *name != NULL; name++) {
        const dt_option *o = find_option(table, *name);
        const double value = o != NULL ? read_option(o, config) : 0;
        if (o != NULL && value != strtod(o->dfl, NULL)) {
            return DT_FAIL_H(h, DT_ECONFIG, "phase_offline.%s = %g has no effect %s; %s, or leave it at %s", *name,
                             value, r->because, r->remedy, o->dfl);
        }
    }
    return DT_OK;
}

dt_status offline_check_idle(const dt_host *h, const dt_option *table, const offline_config *c)
{
    const rule clone = {"with algorithm = \"clone\", which trains no values", "set algorithm = \"advantage\"",
                        of_values};
    const rule free = {"without limits, which multipliers are of", "set limits", of_limits};
    const rule raw = {"without normalise_obs", "set normalise_obs = true", of_normalising};
    DT_TRY_H(c->algorithm == OFFLINE_CLONE ? check_rule(h, table, c, &clone) : DT_OK);
    DT_TRY_H(c->limits[0] == '\0' ? check_rule(h, table, c, &free) : DT_OK);
    return !c->normalise_obs ? check_rule(h, table, c, &raw) : DT_OK;
}
