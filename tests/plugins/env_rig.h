/* SPDX-License-Identifier: Apache-2.0
 *
 * One instance of an environment in a fake host, stepped as the contract says: outputs zeroed and masks all ones before
 * every call, actions given, the episode's sums kept. Asserts what holds for every environment. Threads: one.
 */
#ifndef DTRAIN_TESTS_PLUGINS_ENV_RIG_H
#define DTRAIN_TESTS_PLUGINS_ENV_RIG_H

#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dtrain/random.h"

enum { RIG_OBS = 64, RIG_CHOICES = 16 };

typedef struct env_rig { /* environments of one agent and one flat observation */
    mock_host host;
    const dt_component *component;
    const dt_env_ops *ops;
    void *config, *self;
    dt_env_spec spec;
    dt_env_io io;
    void *obs_list[1];
    float obs[RIG_OBS], act_f[4], reward, cost[4];
    int32_t act_i[4];
    int64_t size[1];
    uint8_t alive, terminated, truncated, mask[RIG_CHOICES];
    double metric[8];
    double episode_return; /* of the running episode, or the last */
    int64_t episode_steps;
} env_rig;

static inline void rig_open(env_rig *r, const char *file, const char *const *set)
{
    memset(r, 0, sizeof(*r));
    mock_host_init(&r->host);
    r->component = mock_load("plugins", file, file);
    assert_non_null(r->component);
    assert_int_equal(r->component->kind, DT_KIND_ENV);
    r->ops = r->component->ops;
    r->config = mock_config(r->component, set);
    r->self = calloc(1, r->component->state_size);
    assert_int_equal(r->ops->create(r->self, &r->host.host, r->config), DT_OK);
    r->spec.struct_size = sizeof(r->spec);
    assert_int_equal(r->ops->spec(r->self, &r->spec), DT_OK);
    assert_int_equal(r->spec.n_agents, 1);
    assert_int_equal(r->spec.n_obs, 1);
    r->obs_list[0] = r->obs;
    r->io = (dt_env_io){.struct_size = sizeof(r->io),
                        .n_obs = 1,
                        .obs = r->obs_list,
                        .size = r->size,
                        .alive = &r->alive,
                        .mask = r->mask,
                        .reward = &r->reward,
                        .cost = r->cost,
                        .terminated = &r->terminated,
                        .truncated = &r->truncated,
                        .metric = r->metric};
}

static inline void rig_close(env_rig *r)
{
    r->ops->destroy(r->self);
    free(r->self);
    free(r->config);
    assert_int_equal(r->host.n_live, 0);
}

static inline void rig_clear(env_rig *r)
{
    memset(r->obs, 0, sizeof(r->obs));
    memset(r->cost, 0, sizeof(r->cost));
    memset(r->metric, 0, sizeof(r->metric));
    memset(r->mask, 1, sizeof(r->mask));
    r->reward = 0;
    r->alive = r->terminated = r->truncated = 0;
}

static inline void rig_reset(env_rig *r, uint64_t seed)
{
    rig_clear(r);
    r->io.act_i = NULL;
    r->io.act_f = NULL;
    r->episode_return = 0;
    r->episode_steps = 0;
    assert_int_equal(r->ops->reset(r->self, &r->io, seed), DT_OK);
    assert_int_equal(r->alive, 1);
}

/* with the actions in r->act_i and r->act_f; true when the episode is over */
static inline bool rig_step(env_rig *r)
{
    rig_clear(r);
    r->io.act_i = r->act_i;
    r->io.act_f = r->act_f;
    const dt_status st = r->ops->step(r->self, &r->io);
    assert_true(st == DT_OK || st == DT_DONE);
    assert_int_equal(r->terminated + r->truncated, st == DT_DONE); /* one of them, and only then */
    assert_int_equal(r->alive, st == DT_OK);
    assert_true(isfinite(r->reward));
    r->episode_return += (double)r->reward;
    r->episode_steps++;
    return st == DT_DONE;
}

static inline bool rig_choose(env_rig *r, int32_t action)
{
    r->act_i[0] = action;
    return rig_step(r);
}

static inline bool rig_push(env_rig *r, double action)
{
    r->act_f[0] = (float)action;
    return rig_step(r);
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
