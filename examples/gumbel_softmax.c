/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel_softmax: a policy of discrete actions that learns through a differentiable action (Jang et al. 2017; Maddison
 * et al. 2017), written against installed headers only. In every round, per agent and step:
 *
 *   critic_loss   (Q(s, a) - advantage)^2               a: the action taken, one-hot
 *   policy_loss   -Q(s, y)                              y: a draw of the relaxed policy,
 *                                                       softmax((log p + Gumbel noise) / temperature)
 *   value_loss    value_coef (V(s) - target)^2          V is the baseline of the advantages
 *   entropy       -entropy_coef H(p(.|s))
 *
 * With straight_through the critic reads the one-hot of the greatest y, and the gradient is that of y. The critic's
 * parameters follow critic_loss alone, those of the controller the other three: two groups.
 *
 *   cc -shared -fPIC $(pkg-config --cflags dtrain) -DDT_PLUGIN_NAME=gumbel_softmax -o gumbel_softmax.so gumbel_softmax.c
 *   dtrain check ./gumbel_softmax.so && dtrain --plugin ./gumbel_softmax.so --set env.id=cartpole
 */
#include <dtrain/helpers.h>
#include <dtrain/svc/rounds.h>

#include <math.h>

#define ID        "gumbel_softmax"
#define FORBIDDEN (-1e9) /* logit of a choice that the mask forbids */

typedef struct gumbel_config {
    dt_wiring_config wiring;
    dt_rounds_config rounds;
    double temperature, temperature_end, value_coef, entropy_coef;
    uint8_t straight_through, reserved[7];
} gumbel_config;

typedef struct state {
    gumbel_config config;
    dt_wiring *wiring;
    dt_rounds *rounds;
    dt_model *critic;
    dt_train_group group[2];
    int64_t choices;
} state;

static const char *const critic_role = "critic", *const actor_role = "controller", *const critic_loss = "critic_loss";
static const char *const actor_loss[] = {"policy_loss", "value_loss", "entropy"};

/* clang-format off */
static const dt_option options[] = {
    DT_ROUNDS_OPTIONS(gumbel_config, rounds, "300"),
    DT_WIRING_OPTIONS(gumbel_config, wiring),
    DT_OPTION(gumbel_config, temperature, DT_OPT_F64, "1", "1", 1e-3, 1e3, NULL, "of the relaxed policy, first round"),
    DT_OPTION(gumbel_config, temperature_end, DT_OPT_F64, "0.5", "1", 1e-3, 1e3, NULL, "in the last round"),
    DT_OPTION(gumbel_config, value_coef, DT_OPT_F64, "0.5", "1", 0, 1e6, NULL, "weight of the value loss"),
    DT_OPTION(gumbel_config, entropy_coef, DT_OPT_F64, "0.1", "1", 0, 1e6, NULL, "weight of the entropy"),
    DT_OPTION(gumbel_config, straight_through, DT_OPT_BOOL, "true", NULL, 0, 0, NULL,
              "the critic reads one-hot actions, with the gradient of the relaxed ones"),
    DT_OPTION_END};
/* clang-format on */

/* Q(s, action) [A] of actions [A,choices]. */
static dt_tensor *record_q(const state *s, dt_graph *g, dt_tensor *action)
{
    const dt_named more = {"action", action};
    dt_named q = {"q", NULL};
    const dt_status st = s->wiring->api->record_model(s->wiring, g, NULL, s->critic, &more, 1, &q, 1);
    return st < 0 ? NULL : dt_merge(g, q.tensor);
}

/* A draw of the relaxed policy [A,choices]. Noise is for losses; where the graph only acts, the host draws. */
static dt_tensor *record_draw(const state *s, dt_graph *g, dt_tensor *logits)
{
    dt_tensor *allowed = dt_select(g, g->api->input(g, "mask"), logits, dt_fill(g, logits, FORBIDDEN));
    if (dt_purpose(g) == DT_FOR_TRAINING) {
        allowed = dt_add(g, allowed, dt_gumbel_noise(g, g->api->input(g, "row_key"), s->choices, 0));
    }
    dt_tensor *soft = dt_softmax(g, dt_div(g, allowed, g->api->step_input(g, "temperature", 1)));
    if (!s->config.straight_through) {
        return soft;
    }
    dt_tensor *hard = dt_one_hot(g, dt_argmax(g, soft), 0, s->choices);
    return dt_add(g, dt_stop(g, dt_sub(g, hard, soft)), soft);
}

static dt_status record(void *user, dt_graph *g, const dt_policy_tensors *p)
{
    const state *s = (const state *)user;
    const dt_graph_api *api = g->api;
    dt_tensor *log_prob = NULL, *entropy = NULL, *target = api->input(g, "target");
    DT_TRY_H(s->wiring->api->action_log_prob(s->wiring, g, p, &log_prob, &entropy));
    dt_tensor *taken = record_q(s, g, dt_one_hot(g, api->input(g, "action_i"), 0, s->choices));
    dt_tensor *drawn = record_q(s, g, record_draw(s, g, p->logits));
    DT_TRY_H(api->status(g));
    dt_tensor *critic = dt_value_loss(g, taken, api->input(g, "advantage"), NULL, DT_VALUE_PLAIN, 0);
    dt_tensor *value = dt_value_loss(g, p->value, target, NULL, DT_VALUE_PLAIN, 0);
    DT_TRY_H(api->loss(g, "critic_loss", dt_sum(g, critic), 1.0, "A"));
    DT_TRY_H(api->loss(g, "policy_loss", dt_sum(g, drawn), -1.0, "A"));
    DT_TRY_H(api->loss(g, "value_loss", dt_sum(g, value), s->config.value_coef, "A"));
    return api->loss(g, "entropy", dt_sum(g, entropy), -s->config.entropy_coef, "A");
}

/* The temperature falls by the same factor in every round. */
static dt_status begin(void *user, uint64_t round)
{
    const state *s = (const state *)user;
    const gumbel_config *c = &s->config;
    const uint64_t n = s->rounds->n_rounds;
    const double x = n > 1 ? (double)round / (double)(n - 1) : 0;
    const float t = (float)(c->temperature * pow(c->temperature_end / c->temperature, x));
    return s->rounds->train->set(s->rounds->trainer, "temperature", &t, 1);
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = (state *)self;
    const dt_wiring_api *wiring = NULL;
    const dt_rounds_api *rounds = NULL;
    s->config = *(const gumbel_config *)cfg;
    DT_SERVICE_H(h, wiring, DT_SVC_WIRING, ID);
    DT_SERVICE_H(h, rounds, DT_SVC_ROUNDS, ID);
    const dt_wiring_desc w = DT_WIRING_DESC(ID, &s->config.wiring);
    DT_TRY_H(wiring->create(h, &w, &s->wiring));
    const dt_env_spec *e = s->wiring->spec;
    if (e->n_heads != 1 || e->n_continuous != 0) {
        return DT_FAIL_H(h, DT_ESHAPE, ID " requires one discrete action; %s has %u, and %u continuous ones",
                         s->wiring->env_id, e->n_heads, e->n_continuous);
    }
    s->choices = e->choices[0];
    char columns[32];
    (void)snprintf(columns, sizeof(columns), "A %lld", (long long)s->choices);
    const dt_dim dims[] = {{"P", s->choices}, {"Q", 1}};
    const dt_port offers[] = {{"action", columns, DT_F32, 0}}, needs[] = {{"q", "A 1", DT_F32, 0}};
    dt_model_request want = DT_MODEL_REQUEST("critic", offers, needs);
    want.dims = dims;
    want.n_dims = 2;
    DT_TRY_H(wiring->bind(s->wiring, &want, &s->critic));
    const uint32_t bytes = (uint32_t)sizeof(s->group[0]);
    s->group[0] = (dt_train_group){bytes, 1, 1, 0, "critic", &critic_role, &critic_loss, 0, 0};
    s->group[1] = (dt_train_group){bytes, 1, 3, 0, "actor", &actor_role, actor_loss, 0, 0};
    dt_rounds_desc r = DT_ROUNDS_DESC(ID, &s->config.rounds, s->wiring, s, record);
    r.begin = begin;
    r.group = s->group;
    r.n_groups = 2;
    return rounds->create(h, &r, &s->rounds);
}

DT_ROUNDS_OPS_DEFINE(run, state);
DT_DEFAULTS_DEFINE(extension, "models.perception=", "models.controller=controller_mlp", "models.critic=critic_mlp",
                   "env.id=cartpole", ID ".train_batch=1024", ID ".fragment=64", ID ".sgd_epochs=4", "data.batch=128",
                   "data.shards=4", "training.optimizer=adam", "training.learning_rate=1e-3", "training.weight_decay=0",
                   "training.gradient_clip=0.5", "training.scheduler=linear", "training.warmup_epochs=0",
                   "training.eval_interval=50", "training.save_interval=50", "checkpoint.best_by=return/mean");
DT_PHASE_DEFINE(component, ID, "a policy that learns through relaxed actions of its critic",
                "Jang et al. 2017, arXiv 1611.01144; Maddison et al. 2017, arXiv 1611.00712", gumbel_config, state,
                options,
                DT_OPS(DT_SET(create, create), DT_SET(start, run_start), DT_SET(iterate, run_iterate),
                       DT_SET(evaluate, run_evaluate), DT_SET(stop, dt_no_op), DT_SET(destroy, dt_no_op)),
                DT_SET(flags, DT_COMP_DETERMINISTIC), DT_SET(extension, extension));
DT_PLUGIN_DEFINE_ONE(component, ID, "0.1", "dtrain", "Apache-2.0");
