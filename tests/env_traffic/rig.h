/* SPDX-License-Identifier: Apache-2.0
 *
 * A simulation of plugins/env_traffic without the environment around it, configured as users do. Threads: one.
 */
#ifndef DTRAIN_TESTS_ENV_TRAFFIC_RIG_H
#define DTRAIN_TESTS_ENV_TRAFFIC_RIG_H

#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */
#include "../../plugins/env_traffic/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct sim_rig {
    mock_host host;
    traffic_config *config;
    sim sim;
} sim_rig;

/* set: "key=value" ..., NULL */
static inline void rig_open(sim_rig *r, const char *const *set)
{
    memset(r, 0, sizeof(*r));
    mock_host_init(&r->host);
    const dt_component *c = mock_load("plugins", "env_traffic", "env_traffic");
    assert_non_null(c);
    r->config = mock_config(c, set);
    *r->config = scenario_resolve(r->config);
    if (sim_create(&r->sim, &r->host.host, r->config) != DT_OK) {
        print_error("%s\n", r->host.message);
        fail();
    }
    sim_reset(&r->sim, 1);
}

static inline void rig_close(sim_rig *r)
{
    sim_destroy(&r->sim);
    free(r->config);
    assert_int_equal(r->host.n_live, 0);
}

static inline void rig_run(sim_rig *r, double seconds)
{
    const double end = r->sim.elapsed_s + seconds - 1e-9;
    while (r->sim.elapsed_s < end) {
        sim_step(&r->sim);
    }
}

/* |a - b| <= tolerance, which DT_TOL_SCALE scales (0 shows the residual) */
static inline void rig_near(double a, double b, double tolerance)
{
    const char *scale = getenv("DT_TOL_SCALE");
    tolerance *= scale != NULL ? strtod(scale, NULL) : 1.0;
    if (!(fabs(a - b) <= tolerance)) {
        print_error("%.12g is %.3g from %.12g, more than %.3g\n", a, fabs(a - b), b, tolerance);
    }
    assert_true(fabs(a - b) <= tolerance);
}

#endif
