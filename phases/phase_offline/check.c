/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits that other options of phase_offline would leave without effect; see offline.h.
 */
#include "offline.h"

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
