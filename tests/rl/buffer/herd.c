/* SPDX-License-Identifier: Apache-2.0
 *
 * World "herd" of worlds.h, and the controller "herd_net" that attends to its lists.
 */
#include <config.h>

#include "worlds.h"

#include "base/rng.h"

#include <string.h>

enum { PLACES = 4, NODES = 5, MOST = 12, CHOICES = 3, LENGTH = 9 };
enum { OWN, NEAR_PTR, NEAR, WHO, WHERE, STEPS, NODES_PORT, SPARE, PORTS };

typedef struct herd_config {
    const char *lists, *teams, *lie;
} herd_config;

typedef struct herd {
    const char *lists, *lie;
    bool has_teams;
    uint64_t seed;
    int64_t step, episodes;
    int32_t since[PLACES]; /* steps of the agent; -1: nobody, -2: it ended in this step */
    dt_port obs[PORTS];
} herd;

static const dt_option options[] = {
    DT_OPTION(herd_config, lists, DT_OPT_STR, "some", NULL, 0, 0, NULL, "\"none\": all of them are empty"),
    DT_OPTION(herd_config, teams, DT_OPT_STR, "one", NULL, 0, 0, NULL, "\"two\": places 1 and 3 are another's"),
    DT_OPTION(herd_config, lie, DT_OPT_STR, "", NULL, 0, 0, NULL, "what is wrong in its spec, or from step 2 on"),
    DT_OPTION_END};

static bool lies(const herd *s, const char *what)
{
    return strcmp(s->lie, what) == 0;
}

static void put_ports(herd *s)
{
    static const dt_port right[PORTS] = {[OWN] = {"own", "A 5", DT_F32, 0},
                                         [NEAR_PTR] = {"near_ptr", "A+1", DT_I32, DT_PORT_INDEX(1)},
                                         [NEAR] = {"near", "K 2", DT_F32, 0},
                                         [WHO] = {"near_who", "K", DT_I32, DT_PORT_INDEX(0)},
                                         [WHERE] = {"near_node", "K", DT_I32, DT_PORT_INDEX(2)},
                                         [STEPS] = {"near_steps", "K 2 2", DT_F32, DT_PORT_STEPS},
                                         [NODES_PORT] = {"nodes", "N 2", DT_F32, 0},
                                         [SPARE] = {"spare", "A", DT_F32, 0}};
    static const struct {
        const char *lie;
        uint32_t port;
        dt_port is;
    } lie[] = {{"twice", SPARE, {"spare", "A+1", DT_I32, DT_PORT_INDEX(1)}},
               {"counted", SPARE, {"spare", "A", DT_I32, DT_PORT_INDEX(1)}},
               {"nested", SPARE, {"spare", "K+1", DT_I32, DT_PORT_INDEX(2)}},
               {"bare", NEAR_PTR, {"near_ptr", "A+1", DT_I32, 0}},
               {"of_agents", NEAR_PTR, {"near_ptr", "A+1", DT_I32, DT_PORT_INDEX(0)}},
               {"floats", NEAR_PTR, {"near_ptr", "A+1", DT_F32, DT_PORT_INDEX(1)}},
               {"wide", NEAR_PTR, {"near_ptr", "A+1 2", DT_I32, DT_PORT_INDEX(1)}}};
    memcpy(s->obs, right, sizeof(s->obs));
    for (size_t i = 0; i < sizeof(lie) / sizeof(lie[0]); i++) {
        if (lies(s, lie[i].lie)) {
            s->obs[lie[i].port] = lie[i].is;
        }
    }
}

static dt_status herd_create(void *self, const dt_host *h, const void *config)
{
    const herd_config *c = config;
    *(herd *)self = (herd){.lists = c->lists, .lie = c->lie, .has_teams = strcmp(c->teams, "two") == 0};
    put_ports(self);
    return DT_OK;
}

static dt_status herd_spec(const void *self, dt_env_spec *out)
{
    static const dt_dim symbols[] = {{"K", MOST}, {"N", NODES}};
    static const int32_t choices[] = {CHOICES};
    static const uint32_t team[PLACES] = {1, 0, 1, 0};
    const herd *s = self;
    out->obs = s->obs;
    out->n_obs = PORTS;
    out->n_agents = PLACES;
    out->team = s->has_teams ? team : NULL;
    out->symbols = symbols;
    out->n_symbols = 2;
    out->choices = choices;
    out->n_heads = 1;
    out->max_steps = LENGTH;
    return DT_OK;
}

static uint32_t chance(const herd *s, uint64_t what)
{
    const dt_rng_key key = {.seed = s->seed, .step = (uint64_t)s->step, .sample = what};
    uint32_t r[4];
    dt_philox(&key, 0, r);
    return r[0];
}

/* The agent at the place, or none. In some steps no agent's list has a row. */
static int32_t length_at(const herd *s, int32_t a)
{
    const bool is_empty = strcmp(s->lists, "none") == 0 || s->step % 4 == 2;
    return is_empty ? 0 : (int32_t)(chance(s, (uint64_t)a) % (MOST / PLACES + 1));
}

/* Row i of the list at place a, which is row k of all. */
static void put_row(const herd *s, const dt_env_io *io, int32_t a, int32_t i, int32_t k, int32_t nodes)
{
    float *near = (float *)io->obs[NEAR] + (ptrdiff_t)(2 * k), *steps = (float *)io->obs[STEPS] + (ptrdiff_t)(4 * k);
    near[0] = (float)(a + 10 * i);
    near[1] = (float)s->step;
    ((int32_t *)io->obs[WHO])[k] = (a + 1 + i) % PLACES;
    ((int32_t *)io->obs[WHERE])[k] = (a + i) % nodes;
    for (int32_t t = 0; t < 4; t++) { /* [step, column] */
        steps[t] = near[t % 2] + (float)(100 * (1 + t / 2));
    }
}

/* Pointers that are none, in the second step of the second episode. */
static void lie(const herd *s, int32_t *ptr, int32_t rows)
{
    if (s->step != 3 || s->episodes != 2) {
        return;
    }
    if (lies(s, "first")) {
        ptr[0] = 1;
    } else if (lies(s, "falls")) {
        ptr[1] = rows;
        ptr[2] = rows - 1;
    } else if (lies(s, "beyond")) {
        ptr[3] = ptr[4] = rows + 1;
    } else if (lies(s, "negative")) {
        ptr[1] = -1;
    } else if (lies(s, "short")) {
        ptr[1] = ptr[2] = ptr[3] = ptr[4] = rows - 1;
    }
}

static void look(const herd *s, const dt_env_io *io)
{
    float *own = io->obs[OWN], *nodes = io->obs[NODES_PORT];
    int32_t *ptr = io->obs[NEAR_PTR], k = 0;
    const int32_t n = 1 + (int32_t)(chance(s, 100) % NODES);
    for (int32_t i = 0; i < n; i++) {
        nodes[2 * i] = (float)i;
        nodes[2 * i + 1] = (float)s->step;
    }
    for (int32_t a = 0; a < PLACES; a++) {
        const int32_t length = length_at(s, a);
        const float row[] = {(float)a, (float)s->since[a], (float)s->step, (float)length,
                             (float)(s->seed >> 44) / (1 << 20)};
        memcpy(own + (ptrdiff_t)(5 * a), row, sizeof(row));
        ptr[a] = k;
        for (int32_t i = 0; i < length; i++) {
            put_row(s, io, a, i, k++, n);
        }
        io->alive[a] = s->since[a] >= 0 && io->terminated[a] + io->truncated[a] == 0;
    }
    ptr[PLACES] = k;
    io->size[0] = k;
    io->size[1] = n;
    lie(s, ptr, k);
}

static dt_status herd_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    herd *s = self;
    s->seed = seed;
    s->step = 0;
    s->episodes++;
    for (int32_t a = 0; a < PLACES; a++) {
        s->since[a] = chance(s, 50 + (uint64_t)a) % 3 == 0 ? -1 : 0;
    }
    look(s, io);
    return DT_OK;
}

static dt_status herd_step(void *self, const dt_env_io *io)
{
    herd *s = self;
    s->step++;
    const bool over = s->step == LENGTH;
    for (int32_t a = 0; a < PLACES; a++) {
        const uint32_t c = chance(s, 200 + (uint64_t)a) % 6;
        if (s->since[a] < 0) {
            s->since[a] = s->since[a] == -2 || over || c < 3 ? -1 : 0;
            continue;
        }
        s->since[a]++;
        io->reward[a] = (float)(io->act_i[a] * (1 + length_at(s, a)));
        io->terminated[a] = c == 0;
        io->truncated[a] = c == 1 || (over && c != 0);
    }
    look(s, io);
    for (int32_t a = 0; a < PLACES; a++) {
        s->since[a] = io->terminated[a] + io->truncated[a] > 0 ? -2 : s->since[a];
    }
    return over ? DT_DONE : DT_OK;
}

static const dt_env_ops ops = {.struct_size = sizeof(dt_env_ops),
                               .create = herd_create,
                               .spec = herd_spec,
                               .reset = herd_reset,
                               .step = herd_step,
                               .destroy = no_destroy};
const dt_component herd_env = {.struct_size = sizeof(dt_component),
                               .kind = DT_KIND_ENV,
                               .id = "herd",
                               .summary = "looks about",
                               .reference = "none",
                               .config_size = sizeof(herd_config),
                               .state_size = sizeof(herd),
                               .options = options,
                               .ops = &ops};

/* ---- the controller ---------------------------------------------------------------------------------------------- */

enum { HIDDEN = 7, WIDTH = 6 };

/* Own state, and means over the own list: of the agents it names, and of the nodes that they are at. */
dt_tensor *herd_input(dt_graph *g)
{
    const dt_graph_api *api = g->api;
    dt_tensor *own = api->input(g, "own"), *ptr = api->input(g, "near_ptr");
    dt_tensor *who = dt_gather(g, own, api->input(g, "near_who"));
    dt_tensor *where = dt_gather(g, api->input(g, "nodes"), api->input(g, "near_node"));
    dt_tensor *part[] = {own, dt_segment_mean(g, who, ptr), dt_segment_mean(g, where, ptr)};
    return dt_affine(g, dt_concat(g, part, 3), 0.1, 0);
}

typedef struct herd_net {
    int64_t D, Y; /* inputs, outputs */
} herd_net;

static dt_status net_create(void *self, const dt_host *h, const void *config, const dt_dim *dims, uint32_t n_dims)
{
    (void)h, (void)config;
    herd_net *s = self;
    s->Y = 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        if (strcmp(dims[i].name, "D") == 0) {
            s->D = dims[i].size;
        } else {
            s->Y += dims[i].size;
        }
    }
    return DT_OK;
}

static const dt_port *net_inputs(const void *self, uint32_t *n_p)
{
    static const dt_port in[] = {{"x", "A D", DT_F32, 0}, {"near", "K 2", DT_F32, 0}, {"near_ptr", "A+1", DT_I32, 0}};
    *n_p = 3;
    return in;
}

static const dt_port *net_outputs(const void *self, uint32_t *n_p)
{
    static const dt_port out[] = {{"y", "A Y", DT_F32, 0}};
    *n_p = 1;
    return out;
}

static dt_status net_params(void *self, dt_params *reg)
{
    const herd_net *s = self;
    const int64_t near[] = {WIDTH, 2}, score[] = {1, WIDTH}, w1[] = {HIDDEN, s->D + WIDTH}, w2[] = {s->Y, HIDDEN};
    DT_TRY(reg->add(reg, "near", near, 2, DT_INIT_FAN_IN, 1));
    DT_TRY(reg->add(reg, "score", score, 2, DT_INIT_FAN_IN, 1));
    DT_TRY(reg->add(reg, "w1", w1, 2, DT_INIT_FAN_IN, 1));
    return reg->add(reg, "w2", w2, 2, DT_INIT_FAN_IN, 1);
}

/* Softmax over each agent's list, by two means: of e^score rows, over that of e^score; nothing where it is empty. */
static dt_status net_forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const dt_graph_api *api = g->api;
    dt_tensor *rows = dt_tanh(g, dt_linear(g, dt_affine(g, in[1], 0.05, 0), api->param(g, "near"), NULL));
    dt_tensor *e = dt_unary(g, DT_FN_EXP, dt_linear(g, rows, api->param(g, "score"), NULL), 0);
    dt_tensor *sum = dt_segment_mean(g, dt_mul(g, rows, e), in[2]);
    dt_tensor *all = dt_affine(g, dt_segment_mean(g, e, in[2]), 1, 1e-6);
    dt_tensor *part[] = {in[0], dt_binary(g, DT_BIN_DIV, sum, all)};
    dt_tensor *h = dt_tanh(g, dt_linear(g, dt_concat(g, part, 2), api->param(g, "w1"), NULL));
    out[0] = dt_linear(g, h, api->param(g, "w2"), NULL);
    return api->status(g);
}

static const dt_model_ops net_ops = {.struct_size = sizeof(dt_model_ops),
                                     .create = net_create,
                                     .inputs = net_inputs,
                                     .outputs = net_outputs,
                                     .params = net_params,
                                     .forward = net_forward,
                                     .destroy = no_destroy};
const dt_component herd_model = {.struct_size = sizeof(dt_component),
                                 .kind = DT_KIND_MODEL,
                                 .id = "herd_net",
                                 .summary = "attends to its own list",
                                 .reference = "none",
                                 .role = "controller",
                                 .state_size = sizeof(herd_net),
                                 .ops = &net_ops};
