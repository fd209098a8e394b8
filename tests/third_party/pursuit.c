/* SPDX-License-Identifier: Apache-2.0
 *
 * pursuit: several pursuers chase a prey on a torus, each of them sees what is near, and a controller for them.
 *
 * The prey flees from those that it sees, slower than they are. A pursuer has fuel for some steps; when it is used up
 * the pursuer leaves, and its place holds another one after a while, elsewhere. So agents come and go, and who sees
 * which one changes in every step.
 *
 *   obs         "A 1" f32    fuel left, a share
 *   node        "N 2" f32    1 of the prey, else 0; fuel left. Pursuers in the order of their places, then the prey
 *   rowptr      "N+1" i32    CSR by the one who sees; every agent sees itself first
 *   col         "E"   i32    node that is seen
 *   edge        "E 3" f32    way to it over the radius of sight, along x and y; 1 / (1 + distance)
 *   agent_node  "A"   i32    node of the agent
 *   action      0 stay, 1 +x, 2 +y, 3 -x, 4 -y
 *   reward      to each pursuer 1 when the prey is caught, and 0.1 for every unit of length that it came nearer to a
 *               prey that it sees (Ng, Harada and Russell 1999), less 0.01 a step
 *   end         terminated when it is caught, truncated when time is over; a pursuer is truncated when its fuel is
 *   metrics     caught: 1 when it was; steps: until it was, nothing otherwise
 *
 * pursuit_controller: two rounds of messages between those who see each other; each node takes the mean of what
 *   m_ij = relu(W [h_j, e_ij] + b)
 * says, h_i' = tanh(V [h_i, mean_j m_ij] + c), and a pursuer acts by its own h (Gilmer et al. 2017). So a pursuer that
 * does not see the prey learns of it from one that does.
 *
 *   DTRAIN_PLUGIN_PATH=. dtrain --plugin phase2_ppo --set env.id=pursuit --set models.controller=pursuit_controller
 */
#include <dtrain/helpers.h>
#include <dtrain/random.h>
#include <dtrain/svc/graph.h>

#include "misbehave.h"

#include <math.h>
#include <string.h>

enum { MOST_PLACES = 64, N_ACTIONS = 5, NODE = 2, EDGE = 3 };
enum { N, E };          /* symbols of the environment, in its spec's order */
enum { START, COME };   /* kinds of chance */
#define CATCH_AT    1.0 /* units of length; a pursuer's step is 1 */
#define PREY_FLEES  0.5
#define STEP_REWARD (-0.01)
#define NEARER      0.1

/* ---- environment --------------------------------------------------------------------------------------------- */

typedef struct env_config {
    int64_t places, fuel, rest, steps;
    double side, sight;
} env_config;

typedef struct pursuer {
    double x, y;
    double from;        /* the prey, before the step */
    int64_t fuel, away; /* away: steps until the place holds an agent again; 0: it does */
} pursuer;

typedef struct env_state {
    env_config config;
    dt_random come;
    pursuer pursuer[MOST_PLACES];
    double x, y; /* the prey */
    int64_t time;
    dt_dim symbols[2];
} env_state;

static const dt_option env_options[] = {
    DT_OPTION(env_config, places, DT_OPT_I64, "4", "1", 1, MOST_PLACES, NULL, "pursuers at the same time, at most"),
    DT_OPTION(env_config, fuel, DT_OPT_I64, "40", "env steps", 1, 1e6, NULL, "how long a pursuer stays"),
    DT_OPTION(env_config, rest, DT_OPT_I64, "5", "env steps", 1, 1e6, NULL, "until another one takes its place"),
    DT_OPTION(env_config, steps, DT_OPT_I64, "100", "env steps", 1, 1e6, NULL, "longest episode"),
    DT_OPTION(env_config, side, DT_OPT_F64, "16", "steps of a pursuer", 4, 1000, NULL, "side of the torus"),
    DT_OPTION(env_config, sight, DT_OPT_F64, "5", "steps of a pursuer", 1, 1000, NULL, "how far everybody sees"),
    DT_OPTION_END};

static dt_status env_create(void *self, const dt_host *h, const void *cfg)
{
    env_state *s = self;
    (void)h;
    s->config = *(const env_config *)cfg;
    const int64_t most = s->config.places + 1;
    s->symbols[N] = (dt_dim){"N", most};
    s->symbols[E] = (dt_dim){"E", most * most};
    return DT_OK;
}

static dt_status env_spec(const void *self, dt_env_spec *out)
{
    /* what an index counts: 0 is "A", then the symbols */
    static const dt_port obs[] = {{"obs", "A 1", DT_F32, 0},
                                  {"node", "N 2", DT_F32, 0},
                                  {"rowptr", "N+1", DT_I32, DT_PORT_INDEX(1 + E)},
                                  {"col", "E", DT_I32, DT_PORT_INDEX(1 + N)},
                                  {"edge", "E 3", DT_F32, 0},
                                  {"agent_node", "A", DT_I32, DT_PORT_INDEX(1 + N)}};
    static const int32_t choices[] = {N_ACTIONS};
    static const char *const metrics[] = {"caught", "steps"};
    const env_state *s = self;
    out->n_agents = (uint32_t)s->config.places;
    out->obs = obs;
    out->n_obs = sizeof(obs) / sizeof(obs[0]);
    out->symbols = s->symbols;
    out->n_symbols = 2;
    out->choices = choices;
    out->n_heads = 1;
    out->metrics = metrics;
    out->n_metrics = 2;
    out->max_steps = (uint32_t)s->config.steps;
    return DT_OK;
}

/* The shorter way round. */
static double way(const env_state *s, double from, double to)
{
    const double side = s->config.side, d = to - from;
    return d - side * floor(d / side + 0.5);
}

static double wrap(const env_state *s, double x)
{
    return x - s->config.side * floor(x / s->config.side);
}

static void come(env_state *s, pursuer *p, dt_random *r)
{
    p->x = dt_random_between(r, 0, s->config.side);
    p->y = dt_random_between(r, 0, s->config.side);
    p->fuel = s->config.fuel;
    p->away = 0;
}

typedef struct view { /* what there is to see, node by node */
    double x[MOST_PLACES + 1], y[MOST_PLACES + 1];
    float fuel[MOST_PLACES + 1];
    int32_t n;
} view;

static void add_node(view *v, double x, double y, float fuel)
{
    v->x[v->n] = x;
    v->y[v->n] = y;
    v->fuel[v->n] = fuel;
    v->n++;
}

/* The rows of places without a pursuer are not read. */
static void gather_nodes(const env_state *s, const dt_env_io *io, view *v)
{
    float *obs = io->obs[0];
    int32_t *agent_node = io->obs[5];
    v->n = 0;
    for (int64_t i = 0; i < s->config.places; i++) {
        const pursuer *p = &s->pursuer[i];
        if (p->away == 0) {
            obs[i] = (float)p->fuel / (float)s->config.fuel;
            agent_node[i] = v->n;
            add_node(v, p->x, p->y, obs[i]);
        }
    }
    add_node(v, s->x, s->y, 0);
}

static void observe(const env_state *s, const dt_env_io *io)
{
    float *node = io->obs[1], *edge = io->obs[4];
    int32_t *rowptr = io->obs[2], *col = io->obs[3], n_edges = 0;
    view v;
    gather_nodes(s, io, &v);
    for (int32_t i = 0; i < v.n; i++) {
        node[i * NODE] = i == v.n - 1;
        node[i * NODE + 1] = v.fuel[i];
        rowptr[i] = n_edges;
        for (int32_t k = 0; k < v.n; k++) {
            const int32_t j = (i + k) % v.n; /* itself first */
            const double dx = way(s, v.x[i], v.x[j]), dy = way(s, v.y[i], v.y[j]), d = hypot(dx, dy);
            if (d <= s->config.sight) {
                col[n_edges] = j;
                edge[n_edges * EDGE] = (float)(dx / s->config.sight);
                edge[n_edges * EDGE + 1] = (float)(dy / s->config.sight);
                edge[n_edges * EDGE + 2] = (float)(1 / (1 + d));
                n_edges++;
            }
        }
    }
    rowptr[v.n] = n_edges;
    io->size[N] = v.n;
    io->size[E] = n_edges;
}

static dt_status env_reset(void *self, const dt_env_io *io, uint64_t seed)
{
    env_state *s = self;
    dt_random r;
    dt_random_init(&r, seed, START);
    dt_random_init(&s->come, seed, COME);
    s->time = 0;
    s->x = s->y = s->config.side / 2;
    for (int64_t i = 0; i < s->config.places; i++) {
        come(s, &s->pursuer[i], &r);
        s->pursuer[i].fuel -= dt_random_below(&r, (uint32_t)s->config.fuel); /* not all leave at once */
        io->alive[i] = 1;
    }
    observe(s, io);
    return DT_OK;
}

static double distance(const env_state *s, const pursuer *p)
{
    return hypot(way(s, p->x, s->x), way(s, p->y, s->y));
}

static void move(env_state *s, pursuer *p, int32_t action)
{
    static const double dx[N_ACTIONS] = {0, 1, 0, -1, 0}, dy[N_ACTIONS] = {0, 0, 1, 0, -1};
    p->from = distance(s, p);
    p->x = wrap(s, p->x + dx[action]);
    p->y = wrap(s, p->y + dy[action]);
    p->fuel--;
}

/* Away from those in sight, the more so the nearer; returns the distance to the nearest one. */
static double flee(env_state *s)
{
    double away_x = 0, away_y = 0, nearest = INFINITY;
    for (int64_t i = 0; i < s->config.places; i++) {
        const pursuer *p = &s->pursuer[i];
        const double dx = way(s, p->x, s->x), dy = way(s, p->y, s->y), d = distance(s, p);
        if (p->away == 0) {
            nearest = fmin(nearest, d);
        }
        if (p->away == 0 && d <= s->config.sight) {
            away_x += dx / (d * d + 0.01);
            away_y += dy / (d * d + 0.01);
        }
    }
    const double length = hypot(away_x, away_y);
    if (nearest >= CATCH_AT && length > 1e-9) {
        s->x = wrap(s, s->x + PREY_FLEES * away_x / length);
        s->y = wrap(s, s->y + PREY_FLEES * away_y / length);
    }
    return nearest;
}

/* What the step was worth to those who acted, and who goes on. Those who leave are still to be seen in this step. */
static void settle(const env_state *s, const dt_env_io *io, const uint8_t *acted, int is_caught)
{
    const int is_late = s->time >= s->config.steps;
    for (int64_t i = 0; i < s->config.places; i++) {
        const pursuer *p = &s->pursuer[i];
        if (acted[i]) {
            const double nearer = p->from <= s->config.sight ? p->from - distance(s, p) : 0;
            io->reward[i] = (float)(STEP_REWARD + NEARER * nearer + (is_caught ? 1.0 : 0.0));
            io->terminated[i] = is_caught != 0;
            io->truncated[i] = !is_caught && (is_late || p->fuel == 0);
        }
        io->alive[i] = p->away == 0 && !is_caught && !is_late && !io->truncated[i];
    }
    io->metric[0] = is_caught;
    io->metric[1] = is_caught ? (double)s->time : NAN;
}

static dt_status env_step(void *self, const dt_env_io *io)
{
    env_state *s = self;
    uint8_t acted[MOST_PLACES];
    misbehave(self, sizeof(env_state));
    for (int64_t i = 0; i < s->config.places; i++) {
        pursuer *p = &s->pursuer[i];
        acted[i] = p->away == 0;
        if (acted[i]) {
            move(s, p, io->act_i[i]);
        } else if (--p->away == 0) {
            come(s, p, &s->come);
        }
    }
    s->time++;
    const int is_caught = flee(s) < CATCH_AT;
    settle(s, io, acted, is_caught);
    observe(s, io);
    for (int64_t i = 0; i < s->config.places; i++) {
        s->pursuer[i].away = acted[i] && s->pursuer[i].fuel == 0 ? s->config.rest : s->pursuer[i].away;
    }
    return is_caught || s->time >= s->config.steps ? DT_DONE : DT_OK;
}

static void env_destroy(void *self)
{
    (void)self;
}

static const dt_env_ops env_ops = {.struct_size = sizeof(dt_env_ops),
                                   .create = env_create,
                                   .spec = env_spec,
                                   .reset = env_reset,
                                   .step = env_step,
                                   .destroy = env_destroy};

/* ---- controller ---------------------------------------------------------------------------------------------- */

enum { ROUNDS = 2, TEXT = 32 };

typedef struct model_config {
    int64_t hidden;
} model_config;

typedef struct model_state {
    model_config config;
    int64_t choices;
    char logits[TEXT];
    dt_port out[2];
} model_state;

static const dt_option model_options[] = {
    DT_OPTION(model_config, hidden, DT_OPT_I64, "32", "1", 1, 1024, NULL, "width of nodes and messages"),
    DT_OPTION_END};

static dt_status model_create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    model_state *s = self;
    s->config = *(const model_config *)cfg;
    for (uint32_t i = 0; i < n_dims; i++) {
        s->choices = strcmp(dims[i].name, "choices") == 0 ? dims[i].size : s->choices;
    }
    if (s->choices < 1) {
        return DT_FAIL_H(h, DT_ESHAPE, "pursuit_controller chooses among actions, and the phase has none to choose");
    }
    snprintf(s->logits, TEXT, "A %lld", (long long)s->choices);
    s->out[0] = (dt_port){"logits", s->logits, DT_F32, 0};
    s->out[1] = (dt_port){"value", "A", DT_F32, 0};
    return DT_OK;
}

static const dt_port *model_inputs(const void *self, uint32_t *n_p)
{
    static const dt_port in[] = {{"node", "N 2", DT_F32, 0},
                                 {"rowptr", "N+1", DT_I32, 0},
                                 {"col", "E", DT_I32, 0},
                                 {"edge", "E 3", DT_F32, 0},
                                 {"agent_node", "A", DT_I32, 0}};
    (void)self;
    *n_p = sizeof(in) / sizeof(in[0]);
    return in;
}

static const dt_port *model_outputs(const void *self, uint32_t *n_p)
{
    *n_p = 2;
    return ((const model_state *)self)->out;
}

static dt_status add_layer(dt_params *reg, const char *layer, int i, int64_t out, int64_t in, double gain)
{
    const int64_t w[] = {out, in};
    char name[TEXT];
    snprintf(name, TEXT, "%s%d.w", layer, i);
    DT_TRY_H(reg->add(reg, name, w, 2, DT_INIT_ORTHO, gain));
    snprintf(name, TEXT, "%s%d.b", layer, i);
    return reg->add(reg, name, &out, 1, DT_INIT_ZERO, 0.0);
}

static dt_tensor *layer(dt_graph *g, dt_tensor *x, const char *layer, int i)
{
    char w[TEXT], b[TEXT];
    snprintf(w, TEXT, "%s%d.w", layer, i);
    snprintf(b, TEXT, "%s%d.b", layer, i);
    return dt_linear(g, x, g->api->param(g, w), g->api->param(g, b));
}

static dt_status model_params(void *self, dt_params *reg)
{
    const model_state *s = self;
    const int64_t H = s->config.hidden;
    for (int i = 0; i < ROUNDS; i++) {
        const int64_t width = i == 0 ? NODE : H;
        DT_TRY_H(add_layer(reg, "say", i, H, width + EDGE, 1.0));
        DT_TRY_H(add_layer(reg, "hear", i, H, width + H, 1.0));
    }
    DT_TRY_H(add_layer(reg, "logits", 0, s->choices, H, 0.01));
    return add_layer(reg, "value", 0, 1, H, 1.0);
}

static dt_status model_forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    dt_tensor *h = in[0]; /* [N, width] */
    misbehave(self, sizeof(model_state));
    for (int i = 0; i < ROUNDS; i++) {
        dt_tensor *seen[] = {dt_gather(g, h, in[2]), in[3]};
        dt_tensor *message = dt_relu(g, layer(g, dt_concat(g, seen, 2), "say", i)); /* [E, H] */
        dt_tensor *heard[] = {h, dt_segment_mean(g, message, in[1])};
        h = dt_tanh(g, layer(g, dt_concat(g, heard, 2), "hear", i));
    }
    dt_tensor *own = dt_gather(g, h, in[4]); /* [A, H] */
    out[0] = layer(g, own, "logits", 0);
    out[1] = dt_merge(g, layer(g, own, "value", 0));
    return g->api->status(g);
}

static void model_destroy(void *self)
{
    (void)self;
}

static const dt_model_ops model_ops = {.struct_size = sizeof(dt_model_ops),
                                       .create = model_create,
                                       .inputs = model_inputs,
                                       .outputs = model_outputs,
                                       .params = model_params,
                                       .forward = model_forward,
                                       .destroy = model_destroy};

/* ---- what this file holds ------------------------------------------------------------------------------------ */

static const dt_component env = {.struct_size = sizeof(dt_component),
                                 .kind = DT_KIND_ENV,
                                 .id = "pursuit",
                                 .summary = "pursuers that come and go chase a prey, and see what is near",
                                 .reference = "Benda, Jagannathan and Dodhiawala (1986), the pursuit problem",
                                 .flags = DT_COMP_DETERMINISTIC,
                                 .config_size = sizeof(env_config),
                                 .state_size = sizeof(env_state),
                                 .options = env_options,
                                 .ops = &env_ops};
static const dt_component model = {.struct_size = sizeof(dt_component),
                                   .kind = DT_KIND_MODEL,
                                   .id = "pursuit_controller",
                                   .summary = "acts by messages between those who see each other",
                                   .reference = "Gilmer et al. (2017), arXiv:1704.01212",
                                   .role = "controller",
                                   .flags = DT_COMP_DETERMINISTIC,
                                   .config_size = sizeof(model_config),
                                   .state_size = sizeof(model_state),
                                   .options = model_options,
                                   .ops = &model_ops};
static const dt_component *const components[] = {&env, &model};
static const dt_plugin plugin = {DT_PLUGIN_PREFIX,        .name = "pursuit",       .version = "0.1",
                                 .vendor = "a stranger",  .license = "Apache-2.0", .n_components = 2,
                                 .components = components};
DT_PLUGIN_DEFINE(plugin);
