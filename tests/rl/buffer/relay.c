/* SPDX-License-Identifier: Apache-2.0
 *
 * World "relay" of worlds.h.
 */
#include <config.h>

#include "worlds.h"

enum { PLACES = 3, CHOICES = 3 };

enum { ONE, TWO, ALONE }; /* option teams */

typedef struct relay_config {
    uint32_t teams;
} relay_config;

typedef struct relay {
    uint32_t teams;
    uint64_t seed;
    int64_t step, length;
    int32_t since[PLACES]; /* steps of the agent; -1: nobody, -2: it ended in this step */
} relay;

static const char *const teams[] = {"one", "two", "alone", NULL};
static const dt_option options[] = {DT_OPTION(relay_config, teams, DT_OPT_ENUM, "one", NULL, 0, 0, teams,
                                              "place 1 is another's; it is, and has nobody"),
                                    DT_OPTION_END};

static dt_status relay_create(void *self, const dt_host *h, const void *config)
{
    ((relay *)self)->teams = ((const relay_config *)config)->teams;
    return DT_OK;
}

static dt_status relay_spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"state", "A 3", DT_F32, 0}};
    static const int32_t choices[] = {CHOICES};
    static const uint32_t team[PLACES] = {1, 0, 1};
    out->team = ((const relay *)self)->teams == ONE ? NULL : team;
    out->n_agents = PLACES;
    out->obs = obs;
    out->n_obs = 1;
    out->choices = choices;
    out->n_heads = 1;
    out->max_steps = 7;
    return DT_OK;
}

static void look(const relay *s, const dt_env_io *io)
{
    float *x = io->obs[0];
    for (int32_t a = 0; a < PLACES; a++) {
        x[3 * a] = (float)a;
        x[3 * a + 1] = (float)s->since[a];
        x[3 * a + 2] = (float)(s->seed % 100);
        io->alive[a] = s->since[a] >= 0 && !(s->teams == ALONE && a == 1) && io->terminated[a] + io->truncated[a] == 0;
        io->mask[CHOICES * a + s->step % CHOICES] = 0;
    }
}

static dt_status relay_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    relay *s = self;
    *s = (relay){.teams = s->teams, .seed = seed, .length = 5 + (int64_t)(seed % 3), .since = {0, 0, -1}};
    look(s, io);
    return DT_OK;
}

static void step_of(relay *s, const dt_env_io *io, int32_t a, bool over)
{
    const bool leaves = (s->step + a) % 4 == 0;
    if (s->teams == ALONE && a == 1) {
        return;
    }
    if (s->since[a] < 0) {
        s->since[a] = s->since[a] == -2 ? -1 : over ? -1 : 0;
        return;
    }
    s->since[a]++;
    io->reward[a] = (float)(10 * a + io->act_i[a]);
    io->terminated[a] = (leaves && a == 1) || (over && !leaves && s->seed % 2 == 0);
    io->truncated[a] = (leaves || over) && !io->terminated[a];
}

static dt_status relay_step(void *self, const dt_env_io *io)
{
    relay *s = self;
    for (int32_t a = 0; a < PLACES; a++) {
        const bool acts = s->since[a] >= 0 && !(s->teams == ALONE && a == 1);
        if (acts && io->act_i[a] == (int32_t)(s->step % CHOICES)) {
            return DT_EPLUGIN; /* that choice was forbidden */
        }
    }
    s->step++;
    const bool over = s->step == s->length;
    for (int32_t a = 0; a < PLACES; a++) {
        step_of(s, io, a, over);
    }
    look(s, io);
    for (int32_t a = 0; a < PLACES; a++) {
        s->since[a] = io->terminated[a] + io->truncated[a] > 0 ? -2 : s->since[a];
    }
    return over ? DT_DONE : DT_OK;
}

static const dt_env_ops ops = {.struct_size = sizeof(dt_env_ops),
                               .create = relay_create,
                               .spec = relay_spec,
                               .reset = relay_reset,
                               .step = relay_step,
                               .destroy = no_destroy};
const dt_component relay_env = {.struct_size = sizeof(dt_component),
                                .kind = DT_KIND_ENV,
                                .id = "relay",
                                .summary = "takes turns",
                                .reference = "none",
                                .config_size = sizeof(relay_config),
                                .state_size = sizeof(relay),
                                .options = options,
                                .ops = &ops};
