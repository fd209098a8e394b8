/* SPDX-License-Identifier: Apache-2.0
 *
 * Options that say nothing beside others: whoever sets one is told, and not left to believe that it acts.
 */
#include "idle.h"

#include <stdlib.h>
#include <string.h>

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

static const dt_option *option_of(const dt_option *table, const char *name)
{
    while (table->name != NULL && strcmp(table->name, name) != 0) {
        table++;
    }
    return table->name != NULL ? table : NULL;
}

/* Numbers alone are listed above. */
static double value_of(const dt_option *o, const void *config)
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
        const dt_option *o = option_of(table, *name);
        const double value = o != NULL ? value_of(o, config) : 0;
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
