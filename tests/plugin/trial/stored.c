/* SPDX-License-Identifier: Apache-2.0
 *
 * A phase that starts from stored rollouts of an environment which only its own plugin has: `dtrain check` must collect
 * them although no folder of plugins holds it. For tests alone.
 */
#include "dtrain/helpers.h"

#include <stdbool.h>
#include <unistd.h>

#define ID "stored"

/* ---- the environment: a counter -------------------------------------------------------------------------------- */

typedef struct env_config {
    int64_t steps;
} env_config;

typedef struct env_state {
    env_config config;
    int64_t step;
} env_state;

static const dt_option env_options[] = {
    DT_OPTION(env_config, steps, DT_OPT_I64, "8", "steps", 1, 64, NULL, "steps of an episode"), DT_OPTION_END};

static dt_status env_create(void *self, const dt_host *h, const void *cfg)
{
    env_state *s = self;
    (void)h;
    s->config = *(const env_config *)cfg;
    return DT_OK;
}

static dt_status env_spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"obs", "A 1", DT_F32, 0}};
    static const int32_t choices[] = {2};
    (void)self;
    out->n_agents = 1;
    out->obs = obs;
    out->n_obs = 1;
    out->choices = choices;
    out->n_heads = 1;
    out->max_steps = 64;
    return DT_OK;
}

static dt_status env_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    env_state *s = self;
    (void)seed;
    s->step = 0;
    ((float *)io->obs[0])[0] = 0;
    io->alive[0] = 1;
    return DT_OK;
}

static dt_status env_step(void *self, const dt_env_io *io)
{
    env_state *s = self;
    const bool is_over = ++s->step == s->config.steps;
    ((float *)io->obs[0])[0] = (float)s->step / 64;
    io->reward[0] = (float)io->act_i[0];
    io->terminated[0] = is_over;
    io->alive[0] = !is_over;
    return is_over ? DT_DONE : DT_OK;
}

DT_ENV_DEFINE(env, "stored_env", "a counter", "none", env_config, env_state, env_options,
              DT_OPS(.create = env_create, .spec = env_spec, .reset = env_reset, .step = env_step, .destroy = dt_no_op),
              .flags = DT_COMP_DETERMINISTIC);

/* ---- the phase ------------------------------------------------------------------------------------------------- */

typedef struct phase_config {
    const char *rollouts;
    int64_t rounds;
} phase_config;

typedef struct phase_state {
    phase_config config;
    int64_t round;
} phase_state;

static const dt_option phase_options[] = {
    DT_OPTION_WITH(phase_config, rollouts, DT_OPT_PATH, "", NULL, 0, 0, NULL, "folder of stored rollouts",
                   DT_OPT_ROLLOUTS, NULL),
    DT_OPTION(phase_config, rounds, DT_OPT_I64, "8", NULL, 1, 64, NULL, "iterations"), DT_OPTION_END};

static dt_status phase_create(void *self, const dt_host *h, const void *cfg)
{
    phase_state *s = self;
    s->config = *(const phase_config *)cfg;
    return s->config.rollouts[0] != '\0' && access(s->config.rollouts, R_OK) == 0
               ? DT_OK
               : DT_FAIL_H(h, DT_ECONFIG, ID ".rollouts = \"%s\": no such folder", s->config.rollouts);
}

static dt_status phase_start(void *self)
{
    (void)self;
    return DT_OK;
}

static dt_status phase_iterate(void *self, dt_progress *out)
{
    phase_state *s = self;
    out->step = (uint64_t)++s->round;
    return s->round < s->config.rounds ? DT_OK : DT_DONE;
}

DT_DEFAULTS_DEFINE(extension, "env.id=stored_env");
DT_PHASE_DEFINE(phase, ID, "reads stored rollouts", "none", phase_config, phase_state, phase_options,
                DT_OPS(.create = phase_create, .start = phase_start, .iterate = phase_iterate, .stop = dt_no_op,
                       .destroy = dt_no_op),
                .flags = DT_COMP_DETERMINISTIC, .extension = extension);
DT_PLUGIN_DEFINE_OF(ID, "0.1", "tests", "Apache-2.0", &phase, &env);
