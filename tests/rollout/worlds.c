/* SPDX-License-Identifier: Apache-2.0
 *
 * See worlds.h.
 */
#include <config.h>

#include "worlds.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "dtrain/ext/scene.h"
#include "experience/service.h"
#include "dtrain/helpers.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- counter and liar -------------------------------------------------------------------------------------------- */

typedef struct counter_config {
    const char *lie; /* what to do at step lie_step of episode 1 */
    int64_t lie_step, lie_episode;
} counter_config;

typedef struct counter {
    const dt_host *h;
    counter_config config;
    uint64_t seed;
    int64_t step, length, episodes;
    int32_t last;
    bool is_liar, is_wide;
} counter;

static dt_status counter_create(void *self, const dt_host *h, const void *config)
{
    counter *s = self;
    s->h = h;
    if (config != NULL) {
        s->config = *(const counter_config *)config;
    }
    return DT_OK;
}

/* Each instance adds a byte to a file; all but the first wait for the sixth, so they must be made side by side. */
static dt_status meet(const dt_host *h, const char *path)
{
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    struct stat file = {0};
    const bool is_told = fd >= 0 && write(fd, "x", 1) == 1 && fstat(fd, &file) == 0;
    for (int ms = 0; is_told && file.st_size > 1 && file.st_size < 6 && ms < 20000; ms++) {
        usleep(1000);
        (void)fstat(fd, &file);
    }
    close(fd);
    return file.st_size == 1 || file.st_size >= 6 ? DT_OK : (h->fail)(h, DT_EIO, NULL, "nobody else came");
}

/* Everything that a worker shares with its host, written over. */
static void scribble(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        const unsigned long begin = strtoul(line, NULL, 16), end = strtoul(strchr(line, '-') + 1, NULL, 16);
        if (strstr(line, "dtrain-env") != NULL) {
            memset((void *)begin, 0x7f, end - begin); /* NOLINT(performance-no-int-to-ptr) */
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
}

static void go_on_for_ever(void)
{
    volatile int turn = 1;
    while (turn != 0) {
    }
}

/* What a worker does to the host, not the environment to the agents; false: nothing of the kind. */
static bool misbehave(const char *what)
{
    static const char words[] = "la la la la la la la la la la la la la la la la la la la la\n";
    if (strcmp(what, "crash") == 0) {
        fprintf(stderr, "the world ends with a bang\n");
        raise(SIGABRT); /* sanitizers have a handler of their own for SIGSEGV */
    } else if (strcmp(what, "hang") == 0) {
        fprintf(stderr, "the world ends with a whimper\n");
        sleep(1000);
    } else if (strcmp(what, "leave") == 0) {
        _exit(0);
    } else if (strcmp(what, "loop") == 0) {
        go_on_for_ever();
    } else if (strcmp(what, "stop") == 0) {
        raise(SIGSTOP);
    } else if (strcmp(what, "scribble") == 0) {
        scribble();
    } else if (strcmp(what, "close") == 0) {
        for (int fd = 3; fd < 64; fd++) {
            close(fd);
        }
        go_on_for_ever();
    } else if (strcmp(what, "shrink") == 0) {
        (void)!ftruncate(4, 0);
    } else if (strcmp(what, "babble") == 0) {
        for (;;) {
            (void)!write(1, words, sizeof(words) - 1);
        }
    } else if (strcmp(what, "drip") == 0) { /* a byte of an answer now and then */
        for (;; usleep(20000)) {
            (void)!send(3, "", 1, MSG_NOSIGNAL);
        }
    } else if (strcmp(what, "nonsense") == 0) {
        (void)!send(3, words, 40, MSG_NOSIGNAL);
        sleep(1000);
    } else {
        return false;
    }
    return true;
}

static dt_status liar_create(void *self, const dt_host *h, const void *config)
{
    ((counter *)self)->is_liar = true;
    if (strcmp(((const counter_config *)config)->lie, "create") == 0) {
        return (h->fail)(h, DT_ENOTFOUND, NULL, "the world is not installed");
    }
    if (strncmp(((const counter_config *)config)->lie, "create ", 7) == 0) {
        (void)misbehave(((const counter_config *)config)->lie + 7);
    }
    if (strncmp(((const counter_config *)config)->lie, "meet ", 5) == 0) {
        DT_TRY(meet(h, ((const counter_config *)config)->lie + 5));
    }
    return counter_create(self, h, config);
}

static dt_status counter_spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"state", "A 3", DT_F32, 0}};
    static const int32_t choices[] = {3};
    static const char *const costs[] = {"hits"}, *const metrics[] = {"score"};
    const counter *s = self;
    out->n_agents = 1;
    out->obs = obs;
    out->n_obs = 1;
    out->choices = choices;
    out->n_heads = 1;
    out->costs = costs;
    out->n_costs = 1;
    out->metrics = metrics;
    out->n_metrics = s->is_wide ? 0 : 1;
    out->max_steps = s->is_liar && strcmp(s->config.lie, "open") == 0 ? 0 : 7;
    return DT_OK;
}

static void counter_look(const counter *s, const dt_env_io *io)
{
    float *x = io->obs[0];
    x[0] = (float)s->step;
    x[1] = (float)(s->seed % 100);
    x[2] = (float)s->last;
    io->mask[1] = s->step != 1; /* choice 1 is forbidden in the second step */
}

static dt_status counter_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    counter *s = self;
    s->seed = seed;
    s->step = 0;
    s->length = s->is_liar && strcmp(s->config.lie, "ends") == 0 ? 7 : 3 + (int64_t)(seed % 5);
    s->last = -1;
    s->episodes++;
    io->alive[0] = 1;
    counter_look(s, io);
    s->is_wide = s->is_liar && s->episodes == s->config.lie_episode && strcmp(s->config.lie, "spec") == 0;
    return DT_OK;
}

static bool lies(const counter *s, const char *what)
{
    return s->is_liar && strcmp(s->config.lie, what) == 0;
}

static dt_status lie(counter *s, const dt_env_io *io)
{
    if (lies(s, "nan")) {
        ((float *)io->obs[0])[1] = NAN;
    } else if (lies(s, "reward")) {
        io->reward[0] = INFINITY;
    } else if (lies(s, "cost")) {
        io->cost[0] = -1;
    } else if (lies(s, "gone")) {
        io->alive[0] = 0;
        io->terminated[0] = io->truncated[0] = 0;
    } else if (lies(s, "undead")) {
        io->alive[0] = io->terminated[0] = 1;
    } else if (lies(s, "mask")) {
        io->alive[0] = 1;
        io->terminated[0] = io->truncated[0] = 0;
        memset(io->mask, 0, 3);
    } else if (lies(s, "endless")) {
        io->alive[0] = 1;
        io->terminated[0] = io->truncated[0] = 0;
        return DT_DONE;
    } else if (lies(s, "fail")) {
        return (s->h->fail)(s->h, DT_EIO, NULL, "the disk of the world is full");
    } else if (lies(s, "code")) {
        return (dt_status)5;
    } else if (lies(s, "interrupted")) {
        return DT_EINTERRUPTED; /* which is the host's to say */
    }
    (void)misbehave(s->config.lie);
    return DT_OK;
}

static dt_status counter_step(void *self, const dt_env_io *io)
{
    counter *s = self;
    s->step++;
    s->last = io->act_i[0];
    io->reward[0] = 1 + (float)s->last;
    io->cost[0] = (float)s->last;
    const bool is_endless = s->is_liar && (lies(s, "undying") || lies(s, "open"));
    const bool over = s->step == s->length && !is_endless;
    io->alive[0] = !over;
    io->terminated[0] = over && s->seed % 2 == 0 && !lies(s, "ends");
    io->truncated[0] = over && !io->terminated[0];
    io->metric[0] = 10.0 * (double)(s->seed % 100);
    counter_look(s, io);
    if (s->is_liar && s->episodes == s->config.lie_episode && s->step == s->config.lie_step) {
        const dt_status st = lie(s, io);
        if (st != DT_OK) {
            return st;
        }
    }
    return over ? DT_DONE : DT_OK;
}

static void no_destroy(void *self)
{
    (void)self;
}

static void counter_roads(const void *self, dt_scene_roads *out)
{
    (void)self;
    for (out->n = 0; out->n < 3; out->n++) {
        if (out->n < out->cap) {
            out->point[out->n] = (dt_scene_point){.x = (float)out->n, .y = 1, .width = 3, .lane = out->n / 2};
        }
    }
}

static void counter_scene(const void *self, dt_scene *out)
{
    const counter *s = self;
    if (s->is_liar && strcmp(s->config.lie, "look") == 0 && s->step == s->config.lie_step) {
        _exit(3);
    }
    out->time_s = (double)s->step;
    for (out->n_vehicles = 0; out->n_vehicles < s->step + 17; out->n_vehicles++) {
        if (out->n_vehicles < out->cap_vehicles) {
            out->vehicle[out->n_vehicles] = (dt_scene_vehicle){
                .x = (float)s->step, .length = 4, .risk = 0.25F, .id = (int32_t)out->n_vehicles, .agent = -1};
        }
    }
    out->n_signals = 1;
    if (out->cap_signals > 0) {
        out->signal[0] = (dt_scene_signal){.width = 3, .state = DT_SCENE_GREEN, .agent = 0};
    }
}

static const void *counter_extension(const char *id)
{
    static const dt_scene_api scene = {.struct_size = sizeof(scene), .roads = counter_roads, .look = counter_scene};
    return strcmp(id, DT_EXT_SCENE) == 0 ? &scene : NULL;
}

static const dt_env_ops counter_ops = {.struct_size = sizeof(dt_env_ops),
                                       .create = counter_create,
                                       .spec = counter_spec,
                                       .reset = counter_reset,
                                       .step = counter_step,
                                       .destroy = no_destroy};
static const dt_env_ops liar_ops = {.struct_size = sizeof(dt_env_ops),
                                    .create = liar_create,
                                    .spec = counter_spec,
                                    .reset = counter_reset,
                                    .step = counter_step,
                                    .destroy = no_destroy};
static const dt_option liar_options[] = {
    DT_OPTION(counter_config, lie, DT_OPT_STR, "", NULL, 0, 0, NULL, "what to do wrong"),
    DT_OPTION(counter_config, lie_step, DT_OPT_I64, "2", "steps", 1, 100, NULL, "in which step of the episode"),
    DT_OPTION(counter_config, lie_episode, DT_OPT_I64, "2", "1", 1, 1000000, NULL, "in which episode, from 1"),
    DT_OPTION_END};
static const dt_component counter_env = {.struct_size = sizeof(dt_component),
                                         .kind = DT_KIND_ENV,
                                         .id = "counter",
                                         .summary = "counts",
                                         .reference = "none",
                                         .state_size = sizeof(counter),
                                         .config_size = sizeof(counter_config),
                                         .ops = &counter_ops,
                                         .extension = counter_extension};
static const dt_component liar_env = {.struct_size = sizeof(dt_component),
                                      .kind = DT_KIND_ENV,
                                      .id = "liar",
                                      .summary = "counts until it lies",
                                      .reference = "none",
                                      .state_size = sizeof(counter),
                                      .config_size = sizeof(counter_config),
                                      .options = liar_options,
                                      .ops = &liar_ops,
                                      .extension = counter_extension};

/* ---- torque ------------------------------------------------------------------------------------------------------ */

static dt_status torque_spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"state", "A 3", DT_F32, 0}};
    static const float low[] = {-1}, high[] = {1};
    (void)self;
    out->n_agents = 1;
    out->obs = obs;
    out->n_obs = 1;
    out->low = low;
    out->high = high;
    out->n_continuous = 1;
    return DT_OK;
}

static dt_status torque_look(const counter *s, const dt_env_io *io)
{
    float *x = io->obs[0];
    x[0] = 100 + (float)s->step; /* far from 0, so that normalising matters */
    x[1] = (float)(s->seed % 7) * 0.01f;
    x[2] = 1;
    io->alive[0] = s->step < 6;
    io->truncated[0] = s->step == 6;
    return s->step == 6 ? DT_DONE : DT_OK;
}

static dt_status torque_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    counter *s = self;
    s->seed = seed;
    s->step = 0;
    return torque_look(s, io);
}

static dt_status torque_step(void *self, const dt_env_io *io)
{
    counter *s = self;
    s->step++;
    io->reward[0] = 50 * io->act_f[0];
    return torque_look(s, io);
}

static const dt_env_ops torque_ops = {.struct_size = sizeof(dt_env_ops),
                                      .create = counter_create,
                                      .spec = torque_spec,
                                      .reset = torque_reset,
                                      .step = torque_step,
                                      .destroy = no_destroy};
static const dt_component torque_env = {.struct_size = sizeof(dt_component),
                                        .kind = DT_KIND_ENV,
                                        .id = "torque",
                                        .summary = "pushes",
                                        .reference = "none",
                                        .state_size = sizeof(counter),
                                        .config_size = sizeof(counter_config),
                                        .ops = &torque_ops};

static dt_status torque_open_spec(const void *self, dt_env_spec *out)
{
    static const float high[] = {INFINITY};
    const dt_status st = torque_spec(self, out);
    out->high = high;
    return st;
}

static const dt_env_ops torque_open_ops = {.struct_size = sizeof(dt_env_ops),
                                           .create = counter_create,
                                           .spec = torque_open_spec,
                                           .reset = torque_reset,
                                           .step = torque_step,
                                           .destroy = no_destroy};
static const dt_component torque_open_env = {.struct_size = sizeof(dt_component),
                                             .kind = DT_KIND_ENV,
                                             .id = "torque_open",
                                             .summary = "pushes without an upper bound",
                                             .reference = "none",
                                             .state_size = sizeof(counter),
                                             .config_size = sizeof(counter_config),
                                             .ops = &torque_open_ops};

/* ---- crowd ------------------------------------------------------------------------------------------------------- */

enum { PLACES = 4, NODES = 9, EDGES = 30 };

typedef struct crowd {
    uint64_t seed;
    int64_t step;
    int32_t age[PLACES]; /* -1: nobody */
} crowd;

static dt_status crowd_create(void *self, const dt_host *h, const void *config)
{
    (void)self, (void)h, (void)config;
    return DT_OK;
}

static dt_status crowd_spec(const void *self, dt_env_spec *out)
{
    static const dt_dim symbols[] = {{"N", NODES}, {"E", EDGES}};
    static const dt_port obs[] = {{"own", "A 2", DT_F32, 0},
                                  {"node", "A", DT_I32, DT_PORT_INDEX(1)},
                                  {"nodes", "N 2", DT_F32, 0},
                                  {"rowptr", "N+1", DT_I32, DT_PORT_INDEX(2)},
                                  {"col", "E", DT_I32, DT_PORT_INDEX(1)},
                                  {"driver", "N", DT_I32, DT_PORT_INDEX(0)},
                                  {"own_steps", "A 3 2", DT_F32, DT_PORT_STEPS},
                                  {"node_steps", "N 2", DT_F32, DT_PORT_STEPS}};
    static const int32_t choices[] = {3, 2};
    static const float low[] = {-2}, high[] = {0.5f};
    static const char *const costs[] = {"near", "far"};
    (void)self;
    out->n_agents = PLACES;
    out->obs = obs;
    out->n_obs = 8;
    out->symbols = symbols;
    out->n_symbols = 2;
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
    io->size[0] = n;
    io->size[1] = e;
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
    static const dt_scene_api scene = {.struct_size = sizeof(scene), .roads = counter_roads, .look = crowd_scene};
    return strcmp(id, DT_EXT_SCENE) == 0 ? &scene : NULL;
}

static const dt_env_ops crowd_ops = {.struct_size = sizeof(dt_env_ops),
                                     .create = crowd_create,
                                     .spec = crowd_spec,
                                     .reset = crowd_reset,
                                     .step = crowd_step,
                                     .destroy = no_destroy};
static const dt_component crowd_env = {.struct_size = sizeof(dt_component),
                                       .kind = DT_KIND_ENV,
                                       .id = "crowd",
                                       .summary = "comes and goes",
                                       .reference = "none",
                                       .state_size = sizeof(crowd),
                                       .ops = &crowd_ops,
                                       .extension = crowd_extension};

/* ---- the model --------------------------------------------------------------------------------------------------- */

enum { HIDDEN = 19 };

typedef struct net {
    int64_t D, M, C, K; /* inputs, choices, continuous, costs */
    dt_port out[5];
    char dims[5][16];
} net;

static dt_status net_create(void *self, const dt_host *h, const void *config, const dt_dim *dims, uint32_t n_dims)
{
    (void)h, (void)config;
    net *s = self;
    for (uint32_t i = 0; i < n_dims; i++) {
        int64_t *to = dims[i].name[0] == 'D'   ? &s->D
                      : dims[i].name[0] == 'M' ? &s->M
                      : dims[i].name[0] == 'C' ? &s->C
                                               : &s->K;
        *to = dims[i].size;
    }
    return DT_OK;
}

static const dt_port *net_inputs(const void *self, uint32_t *n_p)
{
    static const dt_port in[] = {{"x", "A D", DT_F32, 0}};
    (void)self;
    *n_p = 1;
    return in;
}

static const dt_port *net_outputs(const void *self, uint32_t *n_p)
{
    static const dt_port out[] = {{"y", "A Y", DT_F32, 0}};
    (void)self;
    *n_p = 1;
    return out;
}

static dt_status net_params(void *self, dt_params *reg)
{
    const net *s = self;
    const int64_t w1[] = {HIDDEN, s->D}, b1[] = {HIDDEN}, w2[] = {s->M + s->C + 1 + s->K, HIDDEN}, b2[] = {w2[0]};
    DT_TRY(reg->add(reg, "w1", w1, 2, DT_INIT_FAN_IN, 1));
    DT_TRY(reg->add(reg, "b1", b1, 1, DT_INIT_ZERO, 0));
    DT_TRY(reg->add(reg, "w2", w2, 2, DT_INIT_FAN_IN, 1));
    return reg->add(reg, "b2", b2, 1, DT_INIT_UNIFORM, 0.1);
}

static dt_status net_forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    (void)self;
    const dt_graph_api *api = g->api;
    dt_tensor *h = dt_tanh(g, dt_linear(g, in[0], api->param(g, "w1"), api->param(g, "b1")));
    out[0] = dt_linear(g, h, api->param(g, "w2"), api->param(g, "b2"));
    return api->status(g);
}

static const dt_model_ops net_ops = {.struct_size = sizeof(dt_model_ops),
                                     .create = net_create,
                                     .inputs = net_inputs,
                                     .outputs = net_outputs,
                                     .params = net_params,
                                     .forward = net_forward,
                                     .destroy = no_destroy};
static const dt_component net_model = {.struct_size = sizeof(dt_component),
                                       .kind = DT_KIND_MODEL,
                                       .id = "tiny_net",
                                       .summary = "two layers",
                                       .reference = "none",
                                       .role = "controller",
                                       .state_size = sizeof(net),
                                       .ops = &net_ops};

/* ---- the phase --------------------------------------------------------------------------------------------------- */

typedef struct tiny_config {
    int64_t steps, window, epochs, iterations, transitions;
    int64_t replay, draw, n_step; /* samples; 0: it learns from each round alone */
    double alpha;
    const char *keep; /* a field of the rollout that the replay keeps alone; "" all */
    uint8_t normalise_obs, normalise_reward, normalise_advantage, shield, ahead, squash;
    const char *kept;       /* dims of what is kept */
    const char *annotation; /* dims of "note" */
    const char *leak;       /* a field that is not known yet when an action is chosen */
} tiny_config;

static const dt_option tiny_options[] = {
    DT_OPTION(tiny_config, steps, DT_OPT_I64, "8", "steps", 1, 100000, NULL, "of a collect"),
    DT_OPTION(tiny_config, window, DT_OPT_I64, "1", "steps", 1, 100, NULL, "of history"),
    DT_OPTION(tiny_config, epochs, DT_OPT_I64, "2", "epochs", 1, 100, NULL, "over what was collected"),
    DT_OPTION(tiny_config, iterations, DT_OPT_I64, "4", "1", 1, 100, NULL, "collects"),
    DT_OPTION(tiny_config, normalise_obs, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "see svc/rollout.h"),
    DT_OPTION(tiny_config, normalise_reward, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "see svc/rollout.h"),
    DT_OPTION(tiny_config, normalise_advantage, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "see svc/rollout.h"),
    DT_OPTION(tiny_config, shield, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "permit less"),
    DT_OPTION(tiny_config, transitions, DT_OPT_I64, "0", "1", 0, 9, NULL, "see svc/rollout.h"),
    DT_OPTION(tiny_config, replay, DT_OPT_I64, "0", "samples", 0, 1e15, NULL, "capacity of a replay"),
    DT_OPTION(tiny_config, draw, DT_OPT_I64, "36", "samples", 0, 1e6, NULL, "see svc/replay.h"),
    DT_OPTION(tiny_config, n_step, DT_OPT_I64, "1", "steps", 0, 100, NULL, "see svc/replay.h"),
    DT_OPTION(tiny_config, alpha, DT_OPT_F64, "0", "1", -1, 100, NULL, "see svc/replay.h"),
    DT_OPTION(tiny_config, keep, DT_OPT_STR, "", NULL, 0, 0, NULL, "see svc/replay.h: field"),
    DT_OPTION(tiny_config, squash, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "see svc/rollout.h"),
    DT_OPTION(tiny_config, ahead, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "collect beside learning"),
    DT_OPTION(tiny_config, kept, DT_OPT_STR, "", NULL, 0, 0, NULL, "dims of \"twice\", see svc/rollout.h"),
    DT_OPTION(tiny_config, annotation, DT_OPT_STR, "", NULL, 0, 0, NULL, "dims of \"note\", see svc/rollout.h"),
    DT_OPTION(tiny_config, leak, DT_OPT_STR, "", NULL, 0, 0, NULL, "act by this field, which is not known yet"),
    DT_OPTION_END};

static const tiny_config *config_of(const tiny *s)
{
    return (const tiny_config *)dt_stage_of(s->h)->config;
}

static bool is_crowd(const tiny *s)
{
    return strcmp(s->bind->env_id(s->env), "crowd") == 0;
}

static dt_status tiny_remember(tiny *s, const tiny_config *c)
{
    const dt_replay_desc d = {.struct_size = sizeof(d),
                              .n_step = (uint32_t)c->n_step,
                              .capacity = (uint64_t)c->replay,
                              .draw = (uint64_t)c->draw,
                              .gamma = 0.5,
                              .alpha = c->alpha,
                              .beta = 0.5,
                              .field = &c->keep,
                              .n_fields = c->keep[0] != '\0'};
    s->replay = s->h->service(s->h, DT_SVC_REPLAY);
    return s->replay->create(s->h, s->r, &d, &s->p);
}

static dt_status tiny_create(void *self, const dt_host *h, const void *config)
{
    tiny *s = self;
    const tiny_config *c = config;
    s->h = h;
    s->bind = h->service(h, DT_SVC_BIND);
    s->train = h->service(h, DT_SVC_TRAIN);
    s->rollout = h->service(h, DT_SVC_ROLLOUT);
    s->graph = h->service(h, DT_SVC_GRAPH);
    s->epochs = c->epochs;
    s->most = c->iterations;
    DT_TRY(s->bind->env(h, NULL, 0, &s->env));
    const dt_env_spec *spec = s->bind->env_spec(s->env);
    int64_t M = 0;
    for (uint32_t i = 0; i < spec->n_heads; i++) {
        M += spec->choices[i];
    }
    const dt_dim dims[] = {{"D", is_crowd(s)     ? 6
                                 : c->window > 1 ? 6
                                                 : 3},
                           {"M", M},
                           {"C", spec->n_continuous},
                           {"K", spec->n_costs}};
    const dt_port offers[] = {{"x", "A D", DT_F32, 0}};
    const dt_model_want want = {
        .struct_size = sizeof(want), .role = "controller", .dims = dims, .n_dims = 4, .offers = offers, .n_offers = 1};
    DT_TRY(s->bind->model(h, &want, &s->net));
    const dt_port kept[] = {{"twice", c->kept, DT_F32, 0}, {"learnt", "A 1", DT_F32, 0}};
    const dt_port note = {"note", c->annotation, DT_F32, 0};
    s->desc = (dt_rollout_desc){.struct_size = sizeof(s->desc),
                                .steps = (uint32_t)c->steps,
                                .window = (uint32_t)c->window,
                                .normalise_obs = c->normalise_obs,
                                .normalise_reward = c->normalise_reward,
                                .normalise_advantage = c->normalise_advantage,
                                .gamma = 0.9,
                                .lambda = 0.8,
                                .cost_gamma = 0.95,
                                .cost_lambda = 0.7,
                                .clip_obs = 5,
                                .clip_reward = 5,
                                .transitions = (uint8_t)c->transitions,
                                .n_kept = c->kept[0] != '\0' ? 2 : 0,
                                .kept = kept,
                                .has_ahead = c->ahead,
                                .squash = c->squash,
                                .n_annotations = c->annotation[0] != '\0',
                                .annotation = &note};
    DT_TRY(s->rollout->create(h, s->env, &s->desc, &s->r));
    return c->replay > 0 ? tiny_remember(s, c) : DT_OK;
}

/* Acting, and learning, by who it is. */
static bool knows_places(const tiny *s)
{
    return config_of(s)->transitions > 1 && strcmp(s->bind->env_id(s->env), "relay") == 0;
}

static dt_tensor *tiny_input(const tiny *s, dt_graph *g)
{
    const dt_graph_api *api = g->api;
    if (is_crowd(s)) { /* own state, the node's, the mean of its neighbours */
        dt_tensor *nodes = api->input(g, "nodes"), *node = api->input(g, "node");
        dt_tensor *near = dt_segment_mean(g, dt_gather(g, nodes, api->input(g, "col")), api->input(g, "rowptr"));
        dt_tensor *part[] = {api->input(g, "own"), dt_gather(g, nodes, node), dt_gather(g, near, node)};
        api->output(g, "picture/risk", dt_merge(g, dt_affine(g, dt_slice(g, nodes, 1, 1), 4, -2)));
        return dt_concat(g, part, 3);
    }
    if (config_of(s)->window > 1) {
        dt_tensor *part[] = {api->input(g, "state"), dt_step(g, api->input(g, "state_history"), 0)};
        return dt_concat(g, part, 2);
    }
    dt_tensor *state = api->input(g, "state");
    if (knows_places(s)) {
        dt_tensor *table = dt_split(g, api->step_input(g, "table", 9), 3);
        return dt_add(g, state, dt_gather(g, table, api->input(g, "place")));
    }
    return state;
}

static dt_status tiny_record(void *user, dt_graph *g)
{
    tiny *s = user;
    const dt_graph_api *api = g->api;
    const dt_env_spec *spec = s->bind->env_spec(s->env);
    int64_t M = 0;
    for (uint32_t i = 0; i < spec->n_heads; i++) {
        M += spec->choices[i];
    }
    dt_tensor *twice = api->kept(g, "twice", dt_affine(g, tiny_input(s, g), 2, 0));
    const dt_named in[] = {{"x", dt_affine(g, twice, 0.5, 0)}};
    dt_named out[] = {{"y", NULL}};
    DT_TRY(api->model(g, s->net, in, 1, out, 1));
    dt_tensor *y = out[0].tensor;
    (void)api->kept(g, "learnt", dt_slice(g, y, 0, 1));
    int64_t at = 0;
    dt_tensor *loss = NULL;
    if (M > 0) {
        dt_tensor *logits = dt_slice(g, y, 0, M);
        if (config_of(s)->leak[0] != '\0') {
            dt_tensor *part[] = {dt_slice(g, logits, 0, M - 1), dt_split(g, api->input(g, config_of(s)->leak), 0)};
            logits = dt_concat(g, part, 2);
        }
        api->output(g, "logits", logits);
        if (config_of(s)->shield) { /* nothing but choices whose logit is above 0 */
            api->output(g, "allow", logits);
        }
        at = M;
    }
    if (spec->n_continuous > 0) {
        dt_tensor *mean = dt_slice(g, y, at, spec->n_continuous);
        api->output(g, "mean", mean);
        api->output(g, "log_std", dt_affine(g, mean, 0, -0.5));
        if (config_of(s)->shield) {
            api->output(g, "low", dt_affine(g, mean, 0, -0.25));
            api->output(g, "high", dt_affine(g, mean, 0, 0.125));
        }
        at += spec->n_continuous;
    }
    dt_tensor *value = dt_slice(g, y, at, 1);
    api->output(g, "value", dt_merge(g, value));
    dt_tensor *d = dt_sub(g, value, dt_split(g, api->input(g, "target"), 0));
    loss = dt_mul(g, d, d);
    if (spec->n_costs > 0) {
        dt_tensor *cost = dt_slice(g, y, at + 1, spec->n_costs);
        api->output(g, "cost_value", cost);
        dt_tensor *e = dt_sub(g, cost, api->input(g, "cost_target"));
        api->loss(g, "cost", dt_sum(g, dt_mul(g, e, e)), 0.5, "A");
    }
    /* pulls probabilities about, so that what is drawn depends on what was learnt */
    dt_tensor *log_prob = dt_split(g, api->input(g, "log_prob"), 0);
    dt_tensor *advantage = dt_split(g, api->input(g, "advantage"), 0);
    dt_tensor *first = dt_slice(g, y, 0, 1);
    api->loss(g, "policy", dt_sum(g, dt_mul(g, first, dt_mul(g, log_prob, advantage))), 0.1, "A");
    api->loss(g, "value", dt_sum(g, loss), 1, "A");
    if (config_of(s)->annotation[0] != '\0') {
        dt_tensor *far = dt_sub(g, value, dt_slice(g, api->input(g, "note"), 0, 1));
        api->loss(g, "note", dt_sum(g, dt_mul(g, far, far)), 0.25, "A");
    }
    return api->status(g);
}

static dt_status tiny_start(void *self)
{
    tiny *s = self;
    const dt_train_desc d = {.struct_size = sizeof(d),
                             .n_models = 1,
                             .user = s,
                             .record = tiny_record,
                             .data = s->p != NULL ? s->replay->data(s->p) : s->rollout->data(s->r),
                             .models = &s->net,
                             .epochs = (uint64_t)(s->epochs * s->most)};
    static const float table[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    DT_TRY(s->train->create(s->h, &d, &s->t));
    return knows_places(s) ? s->train->set(s->t, "table", table, 9) : DT_OK;
}

/* What follows from the round alone: a value of each row, and its returns. */
static dt_status tiny_annotate(tiny *s)
{
    const uint64_t n = s->report.agent_steps;
    float *value = dt_alloc_n(n + 1, sizeof(*value)), *y = dt_alloc_n(n + 1, sizeof(*y)), *rows = dt_alloc_n(n + 1, 8);
    dt_status st = value != NULL && y != NULL && rows != NULL ? DT_OK : DT_ENOMEM;
    for (uint64_t i = 0; i < n && st == DT_OK; i++) {
        value[i] = note_of_row(i);
    }
    if (st == DT_OK) {
        st = s->rollout->returns(s->r, value, value, 0.5, 0.75, y, n);
    }
    for (uint64_t i = 0; i < n && st == DT_OK; i++) {
        rows[2 * i] = y[i];
        rows[2 * i + 1] = value[i];
    }
    if (st == DT_OK) {
        st = s->rollout->annotate(s->r, "note", rows, n);
    }
    dt_free(value);
    dt_free(y);
    dt_free(rows);
    return st;
}

static dt_status tiny_err(void *user, const dt_rows *rows)
{
    tiny *s = user;
    int64_t dim[DT_MAX_DIMS] = {0};
    uint32_t rank = 0;
    const float *value = s->train->rows(rows, "value", dim, &rank),
                *target = s->train->rows(rows, "target", dim, &rank);
    for (int64_t i = 0; i < dim[0]; i++) {
        s->error[s->n_errors++] = value[i] - target[i];
    }
    return DT_OK;
}

/* And how far its values are from what was drawn is its priority. */
static dt_status tiny_draw(tiny *s)
{
    DT_TRY(s->replay->draw(s->p));
    if (config_of(s)->alpha > 0) {
        s->n_errors = 0;
        DT_TRY(s->train->evaluate(s->t, s->replay->data(s->p), s, tiny_err));
        DT_TRY(s->replay->priority(s->p, s->error, s->n_errors));
    }
    return DT_OK;
}

static dt_status tiny_iterate(void *self, dt_progress *out)
{
    tiny *s = self;
    uint64_t step = 0, steps = 0, per_epoch = 0;
    DT_TRY(s->train->position(s->t, &step, &steps, &per_epoch));
    if (step == steps) {
        return DT_DONE;
    }
    s->report.struct_size = sizeof(s->report);
    DT_TRY(s->rollout->collect(s->r, s->t, &s->report));
    DT_TRY(config_of(s)->annotation[0] != '\0' ? tiny_annotate(s) : DT_OK);
    if (config_of(s)->ahead) {
        DT_TRY(s->rollout->ahead(s->r, s->t));
    }
    DT_TRY(s->p != NULL ? s->replay->add(s->p) : DT_OK);
    for (uint64_t i = 0; i < (uint64_t)s->epochs * per_epoch; i++) {
        dt_step_report r = {.struct_size = sizeof(r)};
        DT_TRY(s->p != NULL && i % per_epoch == 0 ? tiny_draw(s) : DT_OK);
        DT_TRY(s->train->step(s->t, &r));
        out->loss = r.loss;
        out->step = r.step;
        out->samples += r.samples;
    }
    out->steps = steps;
    s->iterations++;
    return DT_OK;
}

static void tiny_stop(void *self)
{
    tiny *s = self;
    s->train->destroy(s->t);
    s->t = NULL;
}

static const dt_phase_ops tiny_ops = {.struct_size = sizeof(dt_phase_ops),
                                      .create = tiny_create,
                                      .start = tiny_start,
                                      .iterate = tiny_iterate,
                                      .stop = tiny_stop,
                                      .destroy = no_destroy};
static const dt_component tiny_phase = {.struct_size = sizeof(dt_component),
                                        .kind = DT_KIND_PHASE,
                                        .id = "tiny",
                                        .summary = "learns values",
                                        .reference = "none",
                                        .state_size = sizeof(tiny),
                                        .config_size = sizeof(tiny_config),
                                        .options = tiny_options,
                                        .ops = &tiny_ops};

static const dt_component *const components[] = {&counter_env, &liar_env,  &torque_env, &torque_open_env,
                                                 &crowd_env,   &relay_env, &net_model,  &tiny_phase};
const dt_plugin worlds_plugin = {DT_PLUGIN_PREFIX,        .name = "worlds",
                                 .version = "1",          .vendor = "dtrain",
                                 .license = "Apache-2.0", .n_components = sizeof(components) / sizeof(components[0]),
                                 .components = components};

/* ---- a stage around it ------------------------------------------------------------------------------------------- */

static dt_status declare(void *user, dt_config *c, const char *id, const char **role_p)
{
    const dt_loaded *l = NULL;
    if (dt_loader_find(user, 0, id, &l) != DT_OK) {
        return DT_ENOTFOUND;
    }
    *role_p = l->desc.role;
    return l->desc.options != NULL ? dt_config_declare(c, id, l->desc.options, "worlds") : DT_OK;
}

#define assert_ok(expr)                                                                                                \
    do {                                                                                                               \
        dt_status st_ = (expr);                                                                                        \
        if (st_ != DT_OK) {                                                                                            \
            print_error("%s\n", dt_error_text());                                                                      \
        }                                                                                                              \
        assert_int_equal(st_, DT_OK);                                                                                  \
    } while (0)

void world_open(world *w, const char *const *settings, dt_comm *comm)
{
    static const char *const defaults[] = {"env.instances=6",
                                           "data.batch=12",
                                           "data.shards=4",
                                           "models.controller=tiny_net",
                                           "models.perception=",
                                           "models.world=",
                                           "training.optimizer=adam",
                                           "training.learning_rate=0.02",
                                           "training.warmup_epochs=0",
                                           NULL};
    memset(w, 0, sizeof(*w));
    dt_services_bare(&w->host);
    pthread_mutex_init(&w->lock, NULL);
    const dt_loader_desc ld = {.host = &w->host, .program_dir = "/no/build", .plugin_dir = "/no/where"};
    assert_ok(dt_loader_create(&ld, &w->loader));
    assert_ok(dt_loader_add(w->loader, &worlds_plugin));
    assert_ok(dt_config_create(&w->config));
    assert_ok(dt_config_use_plugin(w->config, "tiny", "--plugin"));
    for (size_t i = 0; defaults[i] != NULL; i++) {
        assert_ok(dt_config_set(w->config, defaults[i]));
    }
    for (size_t i = 0; settings[i] != NULL; i++) {
        assert_ok(dt_config_set(w->config, settings[i]));
    }
    static const char *const known[] = {"tiny", "liar", "relay"};
    const char *role = NULL;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        assert_ok(declare(w->loader, w->config, known[i], &role));
    }
    if (comm == NULL) {
        assert_ok(dt_comm_null(&comm));
    }
    w->comm = comm;
}

dt_status world_create(world *w)
{
    const dt_loaded *phase = NULL;
    assert_ok(dt_loader_find(w->loader, DT_KIND_PHASE, "tiny", &phase));
    const dt_stage_desc d = {.config = w->config,
                             .loader = w->loader,
                             .comm = w->comm,
                             .phase = phase,
                             .demo_store = "",
                             .run_dir = w->run_dir,
                             .seed = 77,
                             .threads = w->threads > 0 ? w->threads : 2,
                             .device_ops = w->device_ops,
                             .device = w->device,
                             .rollouts = &dt_experience,
                             .config_lock = &w->lock};
    DT_TRY(dt_stage_create(&d, &w->stage));
    w->phase = w->stage->self;
    return dt_stage_start(w->stage);
}

void world_start(world *w)
{
    assert_ok(world_create(w));
}

void world_close(world *w)
{
    dt_stage_destroy(w->stage);
    dt_config_destroy(w->config);
    dt_loader_destroy(w->loader);
    dt_comm_destroy(w->comm);
    pthread_mutex_destroy(&w->lock);
}

dt_status world_iterate(world *w)
{
    dt_progress p;
    return dt_stage_iterate(w->stage, &p);
}

const dt_samples *world_source(const world *w)
{
    const tiny *s = w->phase;
    return s->p != NULL ? &s->replay->data(s->p)->source : &s->rollout->data(s->r)->source;
}

void world_keep(const world *w, float *params, dt_rollout_report *r)
{
    assert_true(w->stage->params.total <= 2048);
    memcpy(params, dt_trainer_params(w->stage->trainer), (size_t)w->stage->params.total * sizeof(float));
    *r = w->phase->report;
    r->env_s = r->policy_s = r->wait_s = r->total_s = 0;
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

uint32_t field_of(const world *w, const char *name)
{
    const dt_samples *s = world_source(w);
    for (uint32_t f = 0; f < s->n_fields; f++) {
        if (strcmp(s->field[f].name, name) == 0) {
            return f;
        }
    }
    fail_msg("no field %s", name);
    return 0;
}

void read_samples(const world *w, const uint64_t *index, uint32_t n, sample *out)
{
    const dt_samples *s = world_source(w);
    memset(out, 0, sizeof(*out));
    assert_done(s->ops->sizes(s->self, index, n, out->size));
    out->size[s->n_symbols] = n;
    for (uint32_t f = 0; f < s->n_fields; f++) {
        out->at[f] = calloc(1, dt_samples_field_bytes(s, f, out->size) + 1);
    }
    const uint64_t key[64] = {0};
    assert_done(s->ops->read(s->self, index, key, n, (void *const *)out->at));
}

void drop_sample(const world *w, sample *s)
{
    for (uint32_t f = 0; f < world_source(w)->n_fields; f++) {
        free(s->at[f]);
    }
}

float f32(const world *w, const sample *s, const char *field, int64_t i)
{
    return ((const float *)(const void *)s->at[field_of(w, field)])[i];
}

int32_t i32(const world *w, const sample *s, const char *field, int64_t i)
{
    return ((const int32_t *)(const void *)s->at[field_of(w, field)])[i];
}
