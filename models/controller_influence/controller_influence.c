/* SPDX-License-Identifier: Apache-2.0
 *
 * controller_influence, role controller: attention over the signals or the vehicles of an environment decides which
 * count for which. One set of weights serves every net of roads: sizes do not depend on how many agents, phases or
 * vehicles there are, and what is read is scaled by constants. Ports: traffic/ports.h.
 *
 *   environments with "phases"   signals.c: every phase of every signal is scored by the same net
 *   environments with "ego"      vehicles.c: the attention that falls on a vehicle decides how far it departs from its
 *                                car-following model
 *
 * Sources: attention of Vaswani et al. 2017 and Velickovic et al. 2018; each file names its own and how it differs.
 */
#include "influence.h"

#define INFLUENCE_MOST 5.0

enum { MAX_PARTS = 32 };

static const char *const trunks[] = {"separate", "shared", NULL};

static const dt_option options[] = {
    DT_OPTION(influence_config, hidden, DT_OPT_I64, "64", "1", 1, 8192, NULL, "width of the hidden layers"),
    DT_OPTION(influence_config, layers, DT_OPT_I64, "2", "1", 1, 16, NULL,
              "layers that see one phase, or rounds of attention over vehicles"),
    DT_OPTION(influence_config, heads, DT_OPT_I64, "2", "1", 1, 64, NULL, "attention heads, a divisor of hidden"),
    DT_OPTION(influence_config, trunk, DT_OPT_ENUM, "separate", NULL, 0, 0, trunks,
              "whether values have layers of their own or share those of the policy"),
    DT_OPTION(
        influence_config, row, DT_OPT_BOOL, "false", "", 0, 0, NULL,
        "signals: read the row of lanes \"obs\" too; its width, and the weights, are specific to one road network"),
    DT_OPTION(influence_config, rule, DT_OPT_F64, "1", "1", 0, 1000, NULL,
              "signals: first weight of vehicles near the line in the score of a phase (trained from there); 0: an "
              "untrained controller has no preference"),
    DT_OPTION(influence_config, foresight, DT_OPT_BOOL, "true", "", 0, 0, NULL,
              "vehicles: read the predictions of a world model, in phases that offer them"),
    CONTROLLER_HEAD_OPTIONS(influence_config),
    DT_OPTION_END};

/* ---- shared by both nets ----------------------------------------------------------------------------------------- */

/* any number of tensors concatenated; part is overwritten */
static dt_tensor *concat_all(dt_graph *g, dt_tensor **part, uint32_t n)
{
    enum { MOST = 8 }; /* that one concat takes */
    while (n > 1) {
        const uint32_t k = n < MOST ? n : MOST;
        part[n - k] = dt_concat(g, part + (n - k), k);
        n -= k - 1;
    }
    return part[0];
}

dt_tensor *influence_scale_inputs(dt_graph *g, dt_tensor *x, const influence_run *run, int64_t columns)
{
    dt_tensor *part[MAX_PARTS];
    uint32_t n = 0;
    for (int64_t at = 0; at < columns; run++) {
        const int64_t width = run->n > 0 && at + run->n < columns ? run->n : columns - at;
        part[n++] = dt_affine(g, dt_slice(g, x, at, width), run->scale, 0.0);
        at += width;
    }
    return dt_clamp(g, concat_all(g, part, n), -INFLUENCE_MOST, INFLUENCE_MOST);
}

const char *influence_param_name(char *text, const char *trunk, const char *name, int64_t i)
{
    if (i < 0) {
        snprintf(text, CONTROLLER_TEXT, "%s.%s", trunk, name);
    } else {
        snprintf(text, CONTROLLER_TEXT, "%s.%s.%lld", trunk, name, (long long)i);
    }
    return text;
}

/* ---- ports ------------------------------------------------------------------------------------------------------- */

static void require_signals(influence *s)
{
    controller_net *n = &s->net;
    controller_input(n, "phases", "A %lld %lld", (long long)n->choices, (long long)s->columns);
    if (s->has_neighbours) {
        controller_index(n, "neighbour", "A 4");
    }
    if (s->config.row) {
        controller_input(n, "obs", "A %lld", (long long)n->D);
    }
}

static void require_vehicles(influence *s)
{
    controller_net *n = &s->net;
    controller_input(n, "ego", "A %lld", (long long)s->columns);
    controller_input(n, s->has_embedding ? "embedding" : "nodes", "N %lld", (long long)s->source);
    controller_index(n, "rowptr", "N+1");
    controller_index(n, "col", "E");
    controller_input(n, "edges", "E 4");
    controller_index(n, "agent_node", "A");
    if (s->Z > 0) {
        controller_input(n, "foresight", "A %lld", (long long)s->Z);
    }
}

static dt_status create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    enum { EGO = 9, NODE = 9, PHASE = 5, NEIGHBOURS = 4 }; /* columns that are needed */
    influence *s = self;
    s->config = *(const influence_config *)cfg;
    const int64_t phases = controller_dim(dims, n_dims, "phases", 0), ego = controller_dim(dims, n_dims, "ego", 0);
    DT_TRY_H(controller_net_init(&s->net, h, dims, n_dims, s->config.policy_gain, s->config.log_std_init));
    s->has_neighbours = controller_dim(dims, n_dims, "neighbour", 0) == NEIGHBOURS;
    s->has_embedding = controller_dim(dims, n_dims, "H", 0) > 0;
    s->source = s->has_embedding ? controller_dim(dims, n_dims, "H", 0) : controller_dim(dims, n_dims, "nodes", 0);
    s->has_vehicles = phases == 0;
    s->columns = s->has_vehicles ? ego : phases;
    s->Z = s->has_vehicles && s->config.foresight ? controller_dim(dims, n_dims, "foresight", 0) : 0;
    if (phases >= PHASE && s->net.choices > 0) {
        if (s->config.row) {
            DT_TRY_H(controller_require_obs(&s->net, h));
        }
        require_signals(s);
        return DT_OK;
    }
    if (s->has_vehicles && ego >= EGO && s->net.continuous > 0 && (s->has_embedding || s->source == NODE)) {
        require_vehicles(s);
        return DT_OK;
    }
    return DT_FAIL_H(
        h, DT_ESHAPE,
        "controller_influence needs signals, which choose by \"phases\" [A choices 5 or more], or vehicles, which "
        "choose continuous actions by \"ego\" [A 9] and the graph \"nodes\" [N 9]; this environment has "
        "choices %lld, continuous %lld, %lld columns of phases, %lld of ego, %lld of nodes",
        (long long)s->net.choices, (long long)s->net.continuous, (long long)phases, (long long)ego,
        (long long)controller_dim(dims, n_dims, "nodes", 0));
}

static dt_status check(const dt_host *h, const void *cfg)
{
    const influence_config *c = cfg;
    if (c->hidden % c->heads != 0) {
        return DT_FAIL_H(h, DT_ECONFIG, "controller_influence.heads %lld does not divide hidden = %lld",
                         (long long)c->heads, (long long)c->hidden);
    }
    return DT_OK;
}

static const dt_port *inputs(const void *self, uint32_t *n_p)
{
    return controller_inputs(&((const influence *)self)->net, n_p);
}

static const dt_port *outputs(const void *self, uint32_t *n_p)
{
    return controller_outputs(&((const influence *)self)->net, n_p);
}

static dt_status params(void *self, dt_params *reg)
{
    const influence *s = self;
    return s->has_vehicles ? vehicles_params(s, reg) : signals_params(s, reg);
}

static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const influence *s = self;
    return s->has_vehicles ? vehicles_forward(s, g, in, out) : signals_forward(s, g, in, out);
}

DT_MODEL_DEFINE(component, "controller_influence", "influence attention over signals or vehicles, for nets of any size",
                "Vaswani et al. 2017; Velickovic et al. 2018; Zheng et al. 2019", influence_config, influence, options,
                DT_OPS(.create = create, .inputs = inputs, .outputs = outputs, .params = params, .forward = forward,
                       .destroy = dt_no_op),
                .role = "controller", .flags = DT_COMP_DETERMINISTIC, .check = check);

DT_PLUGIN_DEFINE_ONE(component, "controller_influence", "1.0", "dtrain", "Apache-2.0");
