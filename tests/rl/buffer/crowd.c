/* SPDX-License-Identifier: Apache-2.0
 *
 * World "crowd" of worlds.h.
 */
#include <config.h>

#include "worlds.h"

#include "base/rng.h"
#include "dtrain/helpers.h"

#include <string.h>

enum { PLACES = 4, NODES = 9, EDGES = 30, SPOTS = 2 };

typedef struct crowd_config {
    const char *lie; /* column: an edge that leads to nobody; spot: so does one to rows of another kind */
} crowd_config;

static const dt_option crowd_options[] = {
    DT_OPTION(crowd_config, lie, DT_OPT_STR, "", "", 0, 0, NULL, "what to do wrong"), DT_OPTION_END};

typedef struct crowd {
    const char *lie;
    uint64_t seed;
    int64_t step;
    int32_t age[PLACES]; /* -1: nobody */
} crowd;

static dt_status crowd_create(void *self, const dt_host *h, const void *config)
{
    ((crowd *)self)->lie = config != NULL ? ((const crowd_config *)config)->lie : "";
    return DT_OK;
}

static dt_status crowd_spec(const void *self, dt_env_spec *out)
{
    static const dt_dim symbols[] = {{"N", NODES}, {"E", EDGES}, {"M", SPOTS}};
    static const dt_port obs[] = {{"own", "A 2", DT_F32, 0},
                                  {"node", "A", DT_I32, DT_PORT_INDEX(1)},
                                  {"nodes", "N 2", DT_F32, 0},
                                  {"rowptr", "N+1", DT_I32, DT_PORT_INDEX(2)},
                                  {"col", "E", DT_I32, DT_PORT_INDEX(1)},
                                  {"driver", "N", DT_I32, DT_PORT_INDEX(0)},
                                  {"own_steps", "A 3 2", DT_F32, DT_PORT_STEPS},
                                  {"node_steps", "N 2", DT_F32, DT_PORT_STEPS},
                                  {"spot", "M 1", DT_F32, 0},
                                  {"to_spot", "E", DT_I32, DT_PORT_INDEX(3)}};
    const bool has_spots = strcmp(((const crowd *)self)->lie, "spot") == 0;
    static const int32_t choices[] = {3, 2};
    static const float low[] = {-2}, high[] = {0.5f};
    static const char *const costs[] = {"near", "far"};
    out->n_agents = PLACES;
    out->obs = obs;
    out->n_obs = has_spots ? 10 : 8;
    out->symbols = symbols;
    out->n_symbols = has_spots ? 3 : 2;
    out->choices = choices;
    out->n_heads = 2;
    out->low = low;
    out->high = high;
    out->n_continuous = 1;
    out->costs = costs;
    out->n_costs = 2;
    return DT_OK;
}

static uint32_t chance(const crowd *s, uint64_t what)
{
    const dt_rng_key key = {.seed = s->seed, .step = (uint64_t)s->step, .sample = what};
    uint32_t r[4];
    dt_philox(&key, 0, r);
    return r[0];
}

/* 2..9 nodes; node i has the neighbours i, i+1, ...; the agent at place a sits on node (a + 1) % nodes */
static void crowd_look(const crowd *s, const dt_env_io *io)
{
    const int32_t n = 2 + (int32_t)(chance(s, 100) % (NODES - 1));
    float *own = io->obs[0], *nodes = io->obs[2];
    float *own_steps = io->obs[6], *node_steps = io->obs[7];
    int32_t *node = io->obs[1], *rowptr = io->obs[3], *col = io->obs[4], *driver = io->obs[5];
    int32_t e = 0;
    for (int32_t i = 0; i < n; i++) {
        nodes[2 * i] = (float)i;
        nodes[2 * i + 1] = (float)(chance(s, 200 + (uint64_t)i) % 1000) * 0.001f;
        node_steps[2 * i] = nodes[2 * i] + 1;
        node_steps[2 * i + 1] = nodes[2 * i + 1] + 2;
        const int32_t degree = 1 + (int32_t)(chance(s, 300 + (uint64_t)i) % 3);
        rowptr[i] = e;
        driver[i] = -1;
        for (int32_t k = 0; k < degree && e < EDGES; k++) {
            col[e++] = (i + k) % n;
        }
    }
    rowptr[n] = e;
    col[1] = strcmp(s->lie, "column") == 0 && s->step == 3 ? -1 : col[1];
    io->size[0] = n;
    io->size[1] = e;
    if (strcmp(s->lie, "spot") == 0) { /* every node leads to the spots, of which one edge is none */
        float *spot = io->obs[8];
        int32_t *to = io->obs[9];
        for (int32_t k = 0; k < e; k++) {
            to[k] = k == 2 && s->step == 3 ? -1 : k % SPOTS;
        }
        spot[0] = spot[1] = 0;
        io->size[2] = SPOTS;
    }
    for (int32_t a = 0; a < PLACES; a++) {
        own[2 * a] = (float)s->age[a];
        own[2 * a + 1] = (float)a * 0.25f;
        for (int32_t k = 0; k < 6; k++) { /* [step, column] */
            own_steps[6 * a + k] = own[2 * a + k % 2] + 10 * (float)(k / 2 + 1);
        }
        node[a] = (a + 1) % n;
        driver[node[a]] = a;
        io->alive[a] = s->age[a] >= 0 && io->terminated[a] + io->truncated[a] == 0;
        io->mask[5 * a + (int32_t)(chance(s, 400 + (uint64_t)a) % 3)] = 0;
    }
}

static dt_status crowd_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    crowd *s = self;
    s->seed = seed;
    s->step = 0;
    for (int32_t a = 0; a < PLACES; a++) {
        s->age[a] = a < 2 ? 0 : -1;
    }
    crowd_look(s, io);
    return DT_OK;
}

static dt_status crowd_step(void *self, const dt_env_io *io)
{
    crowd *s = self;
    s->step++;
    const bool over = s->step == 11;
    for (int32_t a = 0; a < PLACES; a++) {
        const uint32_t c = chance(s, (uint64_t)a) % 8;
        if (s->age[a] == -2) {
            s->age[a] = -1; /* it ended in the step before */
        }
        if (s->age[a] >= 0) {
            s->age[a]++;
            io->reward[a] = io->act_f[a] + (float)io->act_i[2 * a];
            io->cost[2 * a] = (float)io->act_i[2 * a + 1];
            io->cost[2 * a + 1] = 0.5f;
            io->terminated[a] = c == 0;
            io->truncated[a] = c == 1 || (over && c != 0);
        } else if (c >= 5 && !over) {
            s->age[a] = 0;
        }
    }
    crowd_look(s, io);
    for (int32_t a = 0; a < PLACES; a++) {
        s->age[a] = io->terminated[a] + io->truncated[a] > 0 ? -2 : s->age[a];
    }
    return over ? DT_DONE : DT_OK;
}

/* its nodes, in another order; x of a vehicle is the second number of its node */
static void crowd_scene(const void *self, dt_scene *out)
{
    const crowd *s = self;
    const uint32_t n = 2 + chance(s, 100) % (NODES - 1);
    out->time_s = (double)s->step;
    out->n_signals = 0;
    for (out->n_vehicles = 0; out->n_vehicles < n; out->n_vehicles++) {
        const uint32_t i = n - 1 - out->n_vehicles;
        if (out->n_vehicles < out->cap_vehicles) {
            out->vehicle[out->n_vehicles] = (dt_scene_vehicle){.x = (float)(chance(s, 200 + i) % 1000) * 0.001f,
                                                               .risk = 0.125F,
                                                               .id = (int32_t)i,
                                                               .agent = -1,
                                                               .node = i + 1};
        }
    }
}

static const void *crowd_extension(const char *id)
{
    static const dt_scene_api scene = {.struct_size = sizeof(scene), .roads = counter_roads, .capture = crowd_scene};
    return strcmp(id, DT_EXT_SCENE) == 0 ? &scene : NULL;
}

static const dt_env_ops crowd_ops = {.struct_size = sizeof(dt_env_ops),
                                     .create = crowd_create,
                                     .spec = crowd_spec,
                                     .reset = crowd_reset,
                                     .step = crowd_step,
                                     .destroy = no_destroy};
const dt_component crowd_env = {.struct_size = sizeof(dt_component),
                                .kind = DT_KIND_ENV,
                                .id = "crowd",
                                .summary = "comes and goes",
                                .reference = "none",
                                .options = crowd_options,
                                .config_size = sizeof(crowd_config),
                                .state_size = sizeof(crowd),
                                .ops = &crowd_ops,
                                .extension = crowd_extension};
