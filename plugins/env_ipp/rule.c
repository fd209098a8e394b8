/* SPDX-License-Identifier: Apache-2.0
 *
 * ipp_greedy and ipp_random, role controller, without parameters: the baselines of env_ipp, from its port moves.
 *
 *   logits = SHARPNESS * moves[:, :, column]       column 0: expected gain of the next measurement, 1: chance
 *   value, cost_value and continuous actions 0
 *
 * The largest one that the mask leaves is the most likely by far, so that the action is the same drawn or not; of moves
 * that are expected to gain the same, the most likely one is the first. A move by chance is each of the valid ones with
 * the same probability. Threads: as dt_model_ops.
 */
#include "env_ipp.h"

#include "dtrain/svc/graph.h"

#define SHARPNESS 1e9
#define SURE      (-10.0) /* log_std: what is drawn is the rule's */

typedef struct rule_config {
    int64_t reserved;
} rule_config;

typedef struct rule {
    int64_t continuous, K;
    dt_port in[1], out[5];
    uint32_t n_out;
    char moves[IPP_TEXT], logits[IPP_TEXT], actions[IPP_TEXT], costs[IPP_TEXT];
} rule;

static int64_t find_dim(const dt_dim *dims, uint32_t n_dims, const char *name)
{
    for (uint32_t i = 0; i < n_dims; i++) {
        if (strcmp(dims[i].name, name) == 0) {
            return dims[i].size;
        }
    }
    return 0;
}

static void add_output(rule *r, const char *name, const char *dims)
{
    r->out[r->n_out++] = (dt_port){name, dims, DT_F32, 0};
}

/* Whether an environment has such a port, the host finds out. */
static dt_status create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    rule *r = self;
    const int64_t choices = find_dim(dims, n_dims, "choices");
    r->continuous = find_dim(dims, n_dims, "continuous");
    r->K = find_dim(dims, n_dims, "K");
    if (choices < 1 || r->continuous < 0 || r->K < 0) {
        return DT_FAIL_H(h, DT_ESHAPE,
                         "the phase gives choices %lld, continuous %lld, K %lld: a rule of env_ipp needs choices, its "
                         "%d moves",
                         (long long)choices, (long long)r->continuous, (long long)r->K, IPP_MOVES);
    }
    snprintf(r->moves, sizeof(r->moves), "A %lld %d", (long long)choices, IPP_COLUMNS);
    snprintf(r->logits, sizeof(r->logits), "A %lld", (long long)choices);
    snprintf(r->actions, sizeof(r->actions), "A %lld", (long long)r->continuous);
    snprintf(r->costs, sizeof(r->costs), "A %lld", (long long)r->K);
    r->in[0] = (dt_port){"moves", r->moves, DT_F32, 0};
    r->n_out = 0;
    add_output(r, "value", "A");
    add_output(r, "logits", r->logits);
    if (r->continuous > 0) {
        add_output(r, "mean", r->actions);
        add_output(r, "log_std", r->actions);
    }
    if (r->K > 0) {
        add_output(r, "cost_value", r->costs);
    }
    return DT_OK;
}

static const dt_port *inputs(const void *self, uint32_t *n_p)
{
    *n_p = 1;
    return ((const rule *)self)->in;
}

static const dt_port *outputs(const void *self, uint32_t *n_p)
{
    *n_p = ((const rule *)self)->n_out;
    return ((const rule *)self)->out;
}

static dt_status params(void *self, dt_params *reg)
{
    return DT_OK;
}

/* [A, 1] n times, concatenated */
static dt_tensor *repeat_columns(dt_graph *g, dt_tensor *one, int64_t n)
{
    dt_tensor *all = one;
    for (int64_t k = 1; k < n; k++) {
        dt_tensor *part[] = {all, one};
        all = dt_concat(g, part, 2);
    }
    return all;
}

static dt_status forward(const rule *r, dt_graph *g, dt_tensor *moves, int64_t column, dt_tensor **out)
{
    dt_tensor *what = dt_merge(g, dt_slice(g, moves, column, 1));      /* [A, choices] */
    dt_tensor *none = dt_affine(g, dt_slice(g, what, 0, 1), 0.0, 0.0); /* [A, 1] */
    uint32_t i = 0;
    out[i++] = dt_merge(g, none);
    out[i++] = dt_affine(g, what, SHARPNESS, 0.0);
    if (r->continuous > 0) {
        out[i] = repeat_columns(g, none, r->continuous);
        out[i + 1] = dt_affine(g, out[i], 0.0, SURE);
        i += 2;
    }
    if (r->K > 0) {
        out[i] = repeat_columns(g, none, r->K);
    }
    return g->api->status(g);
}

static dt_status forward_greedy(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    return forward(self, g, in[0], IPP_GAIN, out);
}

static dt_status forward_random(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    return forward(self, g, in[0], IPP_CHANCE, out);
}

static const dt_model_ops greedy_ops = {.struct_size = sizeof(dt_model_ops),
                                        .create = create,
                                        .inputs = inputs,
                                        .outputs = outputs,
                                        .params = params,
                                        .forward = forward_greedy,
                                        .destroy = dt_no_op};
static const dt_model_ops random_ops = {.struct_size = sizeof(dt_model_ops),
                                        .create = create,
                                        .inputs = inputs,
                                        .outputs = outputs,
                                        .params = params,
                                        .forward = forward_random,
                                        .destroy = dt_no_op};

#define RULE(ID, SUMMARY, OPS)                                                                                         \
    {                                                                                                                  \
        .struct_size = sizeof(dt_component), .kind = DT_KIND_MODEL, .id = ID, .summary = SUMMARY,                      \
        .reference = "Westheider, Rueckin & Popovic 2023, arXiv 2303.01150", .role = "controller",                     \
        .flags = DT_COMP_DETERMINISTIC, .config_size = sizeof(rule_config), .state_size = sizeof(rule), .ops = OPS     \
    }
const dt_component ipp_greedy =
    RULE("ipp_greedy", "every UAV moves where its next measurement is expected to be most informative", &greedy_ops);
const dt_component ipp_random = RULE("ipp_random", "every UAV makes any move that it may", &random_ops);
