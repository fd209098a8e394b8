/* SPDX-License-Identifier: Apache-2.0
 *
 * A phase on the services dtrain.wiring/1 and dtrain.rounds/1 that uses what the shipped ones on them do not: a
 * controller without values, a critic in a role of its own, its slow copy over the rows that come after, groups, and an
 * end of a round that the phase calls. Not a good algorithm; for tests alone.
 *
 *   actor    -log p(a|s) A                                     A: the discounted sum of rewards, normalised
 *   critic   (q(s, a) - (r + discount q'(s', mean(s'))))^2     q': the critic's target network
 */
#include "dtrain/helpers.h"
#include "dtrain/svc/metrics.h"
#include "dtrain/svc/rounds.h"

typedef struct config {
    dt_wiring_config wiring;
    dt_rounds_config rounds;
    double enough;
    uint32_t fault, reserved;
} config;

typedef struct state {
    const dt_host *h;
    const dt_metrics_api *metrics;
    config config;
    dt_wiring *wiring;
    dt_rounds *rounds;
    dt_model *critic;
    dt_train_target target;
    dt_train_group group[2];
    uint64_t n_collected, n_passes; /* of this process */
} state;

enum { NONE, ADOPT, CROWD, OFFERS, SECOND, SILENT };
static const char *const faults[] = {"none", "adopt", "crowd", "offers", "second", "silent", NULL};
static const dt_option options[] = {
    DT_ROUNDS_OPTIONS(config, rounds, "4"), DT_WIRING_OPTIONS(config, wiring),
    DT_OPTION(config, enough, DT_OPT_F64, "0", "1", 0, 1e9, NULL, "a pass whose critic loss is below it is the last"),
    DT_OPTION(config, fault, DT_OPT_ENUM, "none", NULL, 0, 0, faults, "what is done wrong"), DT_OPTION_END};

/* ---- losses ------------------------------------------------------------------------------------------------------ */

static dt_status record_q(const state *s, dt_graph *g, const dt_wiring_view *view, dt_tensor *action, dt_tensor **out_p)
{
    const dt_named more[] = {{"action", action}, {"absent", NULL}};
    dt_named q = {"q", NULL};
    DT_TRY_H(s->wiring->api->record_model(s->wiring, g, view, s->critic, more, 2, &q, 1));
    *out_p = q.tensor;
    return DT_OK;
}

static dt_status record(void *user, dt_graph *g, const dt_policy_tensors *p)
{
    state *s = (state *)user;
    const dt_graph_api *api = g->api;
    dt_tensor *log_prob = NULL, *q = NULL, *q_after = NULL;
    if (p->value != NULL || p->cost_value != NULL || p->mean == NULL || p->logits != NULL) {
        return DT_FAIL_H(s->h, DT_EPLUGIN, "a controller without values has them, or no mean");
    }
    const dt_wiring_view after = {.struct_size = sizeof(after), .prefix = "next_", .target = "slow"};
    const dt_wiring_view next = {.struct_size = sizeof(next), .prefix = "next_"};
    dt_policy_tensors then = {.struct_size = sizeof(then)};
    DT_TRY_H(s->wiring->api->record(s->wiring, g, &next, &then));
    DT_TRY_H(s->wiring->api->action_log_prob(s->wiring, g, p, &log_prob, NULL));
    DT_TRY_H(record_q(s, g, NULL, api->input(g, "action_f"), &q));
    DT_TRY_H(record_q(s, g, &after, dt_stop(g, then.mean), &q_after));
    dt_tensor *worth = dt_mul(g, dt_merge(g, q_after), api->input(g, "discount"));
    dt_tensor *target = dt_add(g, worth, dt_affine(g, api->input(g, "reward"), 0.1, 0));
    dt_tensor *error = dt_sub(g, dt_merge(g, q), dt_stop(g, target));
    dt_tensor *gain = dt_mul(g, log_prob, api->input(g, "advantage"));
    DT_TRY_H(api->loss(g, "actor", dt_sum(g, gain), -1.0, "A"));
    return api->loss(g, "critic", dt_sum(g, dt_mul(g, error, error)), 0.5, "A");
}

static dt_status collected(void *user, uint64_t round, const dt_rollout_report *r)
{
    state *s = (state *)user;
    s->n_collected++;
    s->n_passes = 0;
    s->metrics->scalar(s->h, "wired/round", (double)round);
    return r->agent_steps > 0 ? DT_OK : DT_FAIL_H(s->h, DT_EPLUGIN, "a round without steps");
}

static dt_status before_pass(void *user, uint64_t pass)
{
    state *s = (state *)user;
    return pass == s->n_passes ? DT_OK : DT_FAIL_H(s->h, DT_EPLUGIN, "pass %d is out of turn", (int)pass);
}

static dt_status after_pass(void *user, const dt_pass_report *r)
{
    state *s = (state *)user;
    s->n_passes++;
    s->metrics->scalar(s->h, "wired/passes", (double)(r->pass + 1));
    if (r->n_losses != 2 || strcmp(r->loss_name[1], "critic") != 0 || r->pass >= r->passes || r->steps == 0) {
        return DT_FAIL_H(s->h, DT_EPLUGIN, "a pass tells %u losses", r->n_losses);
    }
    return r->loss_value[1] < s->config.enough ? DT_DONE : DT_OK;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static dt_status bind_critic(state *s, uint32_t n_offers, dt_model **out_p)
{
    const dt_port offers[20] = {{"action", "A 1", DT_F32, 0}};
    const dt_port needs[] = {{"q", "A 1", DT_F32, 0}};
    const dt_dim dims[] = {{"P", 1}, {"Q", 1}};
    dt_model_request want = DT_MODEL_REQUEST("critic", offers, needs);
    want.n_offers = n_offers;
    want.dims = dims;
    want.n_dims = 2;
    return s->wiring->api->bind(s->wiring, &want, out_p);
}

static dt_status create_wiring(state *s)
{
    const dt_wiring_api *wiring = NULL;
    dt_wiring_desc d = DT_WIRING_DESC("wired", &s->config.wiring);
    const dt_setting set[] = {{"max_steps", "50"}};
    d.flags = DT_WIRING_NO_VALUE | DT_WIRING_STATE_LOG_STD;
    d.settings = set;
    d.n_settings = 1;
    DT_SERVICE_H(s->h, wiring, DT_SVC_WIRING, "wired");
    DT_TRY_H(wiring->create(s->h, &d, &s->wiring));
    dt_wiring *other = NULL;
    return s->config.fault == SECOND ? wiring->create(s->h, &d, &other) : DT_OK;
}

static dt_status check_models(const state *s)
{
    const dt_wiring *w = s->wiring;
    dt_model *all[4] = {NULL}, *one = NULL;
    const uint32_t n = w->api->models(w, all, 4);
    const uint32_t n_of_one = w->api->models(w, &one, 1);
    const int is_right = n == 2 && n_of_one == 2 && all[0] == w->controller && all[1] == s->critic && one == all[0];
    return is_right && w->perception == NULL && w->world == NULL && w->shield == NULL && w->n_choices == 0
               ? DT_OK
               : DT_FAIL_H(s->h, DT_EPLUGIN, "%u models are wired, and not in their order", n);
}

static dt_status make_fault(state *s)
{
    dt_model *other = NULL;
    if (s->config.fault == ADOPT) {
        return s->wiring->api->add_model(s->wiring, s->wiring->controller);
    }
    for (int i = 0; s->config.fault == CROWD && i < 20; i++) {
        DT_TRY_H(bind_critic(s, 1, &other));
    }
    return s->config.fault == OFFERS ? bind_critic(s, 20, &other) : DT_OK;
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    static const char *const of[2][2] = {{"controller", "critic"}, {"actor", "critic"}};
    state *s = (state *)self;
    const dt_rounds_api *rounds = NULL;
    s->h = h;
    s->config = *(const config *)cfg;
    DT_SERVICE_H(h, rounds, DT_SVC_ROUNDS, "wired");
    DT_SERVICE_H(h, s->metrics, DT_SVC_METRICS, "wired");
    DT_TRY_H(create_wiring(s));
    DT_TRY_H(bind_critic(s, 1, &s->critic));
    DT_TRY_H(check_models(s));
    DT_TRY_H(make_fault(s));
    s->target = (dt_train_target){
        .struct_size = sizeof(s->target), .name = "slow", .model = s->critic, .tau = 0.05, .every = 1};
    for (int i = 0; i < 2; i++) {
        s->group[i] = (dt_train_group){.struct_size = sizeof(s->group[i]),
                                       .n_roles = 1,
                                       .n_losses = 1,
                                       .name = of[1][i],
                                       .role = &of[0][i],
                                       .loss = &of[1][i],
                                       .learning_rate = i == 0 ? 1e-3 : 3e-3};
    }
    dt_rounds_desc d = DT_ROUNDS_DESC("wired", &s->config.rounds, s->wiring, s, record);
    d.collected = collected;
    d.before_pass = before_pass;
    d.after_pass = after_pass;
    d.transitions = 2;
    d.target = &s->target;
    d.n_targets = 1;
    d.group = s->group;
    d.n_groups = 2;
    d.record = s->config.fault == SILENT ? NULL : record;
    return rounds->create(h, &d, &s->rounds);
}

DT_ROUNDS_OPS_DEFINE(run, state);
DT_DEFAULTS_DEFINE(extension, "env.id=pendulum", "env.instances=4",
                   "models.perception=", "models.controller=controller_mlp", "models.critic=critic_mlp",
                   "controller_mlp.hidden=16", "critic_mlp.hidden=16", "wired.train_batch=128", "wired.fragment=16",
                   "wired.sgd_epochs=3", "data.batch=64", "data.shards=4", "training.optimizer=adam",
                   "training.weight_decay=0", "training.warmup_epochs=0", "training.eval_interval=0",
                   "evaluation.baselines=");
DT_PHASE_DEFINE(component, "wired", "a phase on wiring and rounds", "none", config, state, options,
                DT_OPS(DT_SET(create, create), DT_SET(start, run_start), DT_SET(iterate, run_iterate),
                       DT_SET(evaluate, run_evaluate), DT_SET(stop, dt_no_op), DT_SET(destroy, dt_no_op)),
                DT_SET(flags, DT_COMP_DETERMINISTIC), DT_SET(extension, extension));
DT_PLUGIN_DEFINE_ONE(component, "wired", "0.1", "tests", "Apache-2.0");
