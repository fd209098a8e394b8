/* SPDX-License-Identifier: Apache-2.0
 *
 * template: a reinforcement-learning phase, advantage actor-critic (Sutton et al. 2000; Mnih et al. 2016). Of every
 * round of experience, rows being what one agent did in one step,
 *
 *   policy_loss   -log p(a|s) A        A: how much better the action was than the critic expected
 *   value_loss    value_coef (V(s) - target)^2
 *   entropy       -entropy_coef H(p(.|s)), which moves linearly to entropy_coef_end: the schedule
 *
 * A loss and a schedule is all that a phase defines. The host binds the environment, perception, controller and shield
 * that the configuration names, collects a round, computes advantages, makes the passes, evaluates and saves.
 *
 *   make && dtrain check ./template.so && dtrain --plugin ./template.so --set env.id=cartpole
 */
#include <dtrain/helpers.h>
#include <dtrain/svc/rounds.h>

#define ID "template"

typedef struct template_config { /* the host fills it from the section template */
    dt_wiring_config wiring;
    dt_rounds_config rounds;
    double value_coef, entropy_coef, entropy_coef_end;
} template_config;

typedef struct state { /* the host allocates it, zeroed */
    template_config config;
    dt_wiring *wiring;
    dt_rounds *rounds;
} state;

static const dt_option options[] = {
    DT_ROUNDS_OPTIONS(template_config, rounds, "300"),
    DT_WIRING_OPTIONS(template_config, wiring),
    DT_OPTION(template_config, value_coef, DT_OPT_F64, "0.5", "1", 0, 1e6, NULL, "weight of the value loss"),
    DT_OPTION(template_config, entropy_coef, DT_OPT_F64, "0.01", "1", 0, 1e6, NULL,
              "weight of the entropy in the first round"),
    DT_OPTION(template_config, entropy_coef_end, DT_OPT_F64, "0", "1", 0, 1e6, NULL,
              "weight of the entropy in the last round"),
    DT_OPTION_END};

/* The losses, recorded once; errors stick to the graph, so that recording goes straight through. p: the outputs of the
 * models of every row. Other fields of the round are inputs by name: dtrain/svc/rollout.h. */
static dt_status record(void *user, dt_graph *g, const dt_policy_tensors *p)
{
    const state *s = (const state *)user;
    const dt_graph_api *api = g->api;
    dt_tensor *log_prob = NULL, *entropy = NULL;
    DT_TRY_H(s->wiring->api->action_log_prob(s->wiring, g, p, &log_prob, &entropy));
    dt_tensor *gain = dt_mul(g, log_prob, api->input(g, "advantage"));
    dt_tensor *error = dt_value_loss(g, p->value, api->input(g, "target"), NULL, DT_VALUE_PLAIN, 0);
    dt_tensor *bonus = dt_mul(g, dt_split(g, entropy, 0), api->step_input(g, "entropy_coef", 1));
    DT_TRY_H(api->loss(g, "policy_loss", dt_sum(g, gain), -1.0, "A"));
    DT_TRY_H(api->loss(g, "value_loss", dt_sum(g, error), s->config.value_coef, "A"));
    DT_TRY_H(api->loss(g, "entropy_bonus", dt_sum(g, bonus), -1.0, "A"));
    return api->loss(g, "entropy", dt_sum(g, entropy), 0.0, "A"); /* weight 0: reported alone */
}

/* The schedule: before every round. */
static dt_status begin(void *user, uint64_t round)
{
    const state *s = (const state *)user;
    const template_config *c = &s->config;
    const uint64_t n = s->rounds->n_rounds;
    const double x = n > 1 ? (double)round / (double)(n - 1) : 0;
    const float coef = (float)(c->entropy_coef + (c->entropy_coef_end - c->entropy_coef) * x);
    return s->rounds->train->set(s->rounds->trainer, "entropy_coef", &coef, 1);
}

/* Wires what the configuration names. What does not fit is refused here, by name and shape. */
static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = (state *)self;
    const dt_wiring_api *wiring = NULL;
    const dt_rounds_api *rounds = NULL;
    s->config = *(const template_config *)cfg;
    DT_SERVICE_H(h, wiring, DT_SVC_WIRING, ID);
    DT_SERVICE_H(h, rounds, DT_SVC_ROUNDS, ID);
    const dt_wiring_desc w = DT_WIRING_DESC(ID, &s->config.wiring);
    DT_TRY_H(wiring->create(h, &w, &s->wiring));
    dt_rounds_desc r = DT_ROUNDS_DESC(ID, &s->config.rounds, s->wiring, s, record);
    r.begin = begin;
    return rounds->create(h, &r, &s->rounds);
}

DT_ROUNDS_OPS_DEFINE(run, state); /* start, iterate and evaluate, as rounds have them */
/* Defaults of the host's own sections, and of this one. */
DT_DEFAULTS_DEFINE(extension, "models.perception=", "models.controller=controller_mlp", "env.id=cartpole",
                   ID ".train_batch=512", ID ".fragment=16", ID ".sgd_epochs=1", "data.batch=128", "data.shards=4",
                   "training.optimizer=adam", "training.learning_rate=3e-3", "training.weight_decay=0",
                   "training.gradient_clip=0.5", "training.scheduler=linear", "training.warmup_epochs=0",
                   "training.eval_interval=50", "training.save_interval=50", "checkpoint.best_by=return/mean");
DT_PHASE_DEFINE(component, ID, "advantage actor-critic", "Mnih et al. 2016, arXiv 1602.01783", template_config, state,
                options,
                DT_OPS(DT_SET(create, create), DT_SET(start, run_start), DT_SET(iterate, run_iterate),
                       DT_SET(evaluate, run_evaluate), DT_SET(stop, dt_no_op),
                       DT_SET(destroy, dt_no_op)), /* everything belongs to the host */
                DT_SET(flags, DT_COMP_DETERMINISTIC), DT_SET(extension, extension));
DT_PLUGIN_DEFINE_ONE(component, ID, "0.1", "you", "Apache-2.0");
