/* SPDX-License-Identifier: Apache-2.0
 *
 * phase3_constrained: maximises reward while costs stay below their limits. Rounds of PPO (its loss: phase2_ppo.c) with
 * the advantage
 *
 *   A = (A_reward - sum_k lambda_k A_k) / (sigma_reward + sum_k lambda_k sigma_k)
 *
 * The divisor keeps the scale of A, and so a suitable learning rate, independent of multipliers and units; sigma are
 * deviations of advantages. The deviation of A itself would not do: at an optimum with a random choice it is noise.
 * After a round `algorithm` updates lambda_k from J_k, the mean cost of the episodes that ended in it, and its limit
 * d_k; e_k = (J_k - d_k) / max(d_k, J_k), u_k = sigma_reward / sigma_k (constraints/multiplier.h):
 *
 *   pid_lagrangian  a PID controller of e_k, gains in u_k (Stooke et al. 2020, arXiv 2007.03964)
 *   lagrangian      lambda_k + rate u_k e_k: dual ascent; its mean over rounds converges to the multiplier
 *   penalty         penalty u_k while J_k > d_k, else 0: the exact penalty of P3O (Zhang et al. 2022, arXiv
 *                   2205.11814), exact where it is above the multiplier of the solution
 *   log_barrier     u_k / (-t e_k): the slope of the barrier u_k d_k log(d_k - J_k) / t (IPO, Liu et al. 2020, arXiv
 *                   1910.09615), multiplier_max u_k at and above the limit; J_k stays d_k / t below it where u_k is the
 *                   multiplier
 *
 * The last two are slopes at the current policy: before every pass over a round's samples the change of the surrogate
 * of the cost is added to J_k, rows of an episode times the mean of max(ratio A_k, clipped ratio A_k). Unlike in both
 * papers, the ratio of the sum A above is clipped, not those of reward and costs.
 *
 * cpo, constrained policy optimisation (Achiam et al. 2017, arXiv 1705.10528), instead takes one step per round within
 * a trust region (trust_region.h), and minibatches train the values, without the parameters that the policy depends on
 * (a shared trunk changes with the policy). One cost constrains the step, the one with the largest e_k; the others only
 * stop the line search. J_k - d_k is divided by the rows of an episode. Entropy, clip and KL options of PPO have no
 * effect. lambda_k is the multiplier of the linearised constraint in the last step that was no recovery.
 *
 * A learned barrier of the shield is trained here, with the policy that it protects (barrier.h). Recorded scenes may be
 * mixed into the minibatches to train the world model and the barrier (stored.h); the policy gradient is of experience
 * alone.
 *
 * ki and rate follow the schedule of the learning rate; else multipliers would outrun a policy that changes less and
 * less. d_k is the limit less its margin. A round without an ended episode does not change multipliers, nor the costs
 * that constrain a step. Costs without a limit are only reported.
 */
#include "barrier.h"
#include "ppo/ppo.h"
#include "constraints/limits.h"
#include "constraints/multiplier.h"
#include "stored.h"
#include "trust_region.h"

#include <math.h>
#include <string.h>

#define ID "phase3_constrained"

enum { REACT_NONE, REACT_ALARM, REACT_STOP };
enum { ALGORITHM_CPO = MULTIPLIER_LOG_BARRIER + 1 };
#define MIN_SPREAD 1e-3 /* of a limit: a smaller deviation of advantages is noise of their estimate */

typedef struct config {
    dt_wiring_config wiring;
    dt_rounds_config rounds;
    ppo_config ppo;
    const char *limits;
    multiplier_config multiplier;
    int64_t max_violations;
    double margin, rate, penalty, barrier_t;
    double max_kl, cg_damping, backtrack;
    int64_t cg_iterations, line_search_steps;
    const char *shield_costs;
    double shield_alpha, shield_margin, shield_coef;
    int64_t shield_unsafe_steps, shield_safe_steps;
    int64_t stored_samples;
    double stored_coef, stored_ttc_s, stored_hard_mps2;
    uint32_t algorithm, on_violations;
    uint8_t learn_shield, stored_barrier;
} config;

typedef struct state {
    ppo ppo;
    dt_rounds *rounds;
    multiplier_rule rule;
    bool is_cpo;
    bool follows; /* multipliers are updated within a round */
    trust_region_config region_config;
    trust_region region;
    barrier barrier;
    stored stored;
    int64_t max_violations;
    uint32_t on_violations;
    limits limits;
    double aim;   /* share of a limit that is aimed at: 1 - margin */
    struct kept { /* in checkpoints */
        multiplier multiplier[DT_ENV_MAX_COSTS];
        uint64_t violations[DT_ENV_MAX_COSTS]; /* rounds in a row above the limit */
    } kept;
    double scale,
        before[DT_ENV_MAX_COSTS]; /* of the round: of surrogates in the cost's units; surrogates at its start */
    struct observed {             /* of the last round with episodes; kept too */
        double cost[DT_ENV_MAX_COSTS], rows; /* means over episodes; NAN: no episode so far */
        double rate, max_rate;               /* learning rate, and the largest so far */
    } observed;
} state;

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static dt_status set_advantage_mix(state *s)
{
    const uint32_t n = s->ppo.wiring->spec->n_costs;
    float mix[1 + DT_ENV_MAX_COSTS] = {0};
    double sum = 1;
    for (uint32_t k = 0; k < n; k++) {
        const multiplier *m = &s->kept.multiplier[k];
        if (s->limits.has[k] && !s->is_cpo && m->unit > 0) {
            sum += m->value / m->unit;
        }
    }
    mix[0] = (float)(1 / sum);
    for (uint32_t k = 0; k < n; k++) {
        mix[1 + k] = s->limits.has[k] && !s->is_cpo ? (float)(-s->kept.multiplier[k].value / sum) : 0;
    }
    return s->rounds->train->set(s->rounds->trainer, "advantage_mix", mix, 1 + n);
}

/* Mean cost and rows of episodes, of the last round in which any ended. */
static void observe_costs(state *s, const dt_rollout_report *r)
{
    if (r->episodes > 0 && r->env_steps > 0 && isfinite(r->episode_length)) {
        memcpy(s->observed.cost, r->episode_cost, sizeof(s->observed.cost));
        s->observed.rows = (double)r->agent_steps / (double)r->env_steps * r->episode_length;
    }
    s->scale = s->ppo.is_normalised ? r->advantage_std : 1;
}

static const char *const surrogate_loss[] = {"policy_loss"};

/* The surrogate of cost k for the current policy: the mean of max(ratio A_k, clipped ratio A_k). */
static dt_status evaluate_cost_surrogate(state *s, uint32_t k, double *out)
{
    float mix[1 + DT_ENV_MAX_COSTS] = {0};
    const dt_rounds *r = s->rounds;
    mix[1 + k] = -1;
    DT_TRY_H(r->train->set(r->trainer, "advantage_mix", mix, 1 + r->wiring->spec->n_costs));
    return r->train->losses(r->trainer, surrogate_loss, 1, out);
}

/* Before each pass: J_k plus the change of its surrogate since the start of the round. */
static dt_status update_multipliers_in_round(void *self, uint64_t pass)
{
    state *s = self;
    if (s->observed.rows > 0) {
        for (uint32_t k = 0; k < s->rounds->wiring->spec->n_costs; k++) {
            double now = 0;
            if (!s->limits.has[k]) {
                continue;
            }
            DT_TRY_H(evaluate_cost_surrogate(s, k, &now));
            s->before[k] = pass == 0 ? now : s->before[k];
            const double moved = s->observed.rows * s->scale * (now - s->before[k]);
            multiplier_update_in_round(&s->kept.multiplier[k], &s->rule, s->observed.cost[k] + moved,
                                       s->aim * s->limits.at[k]);
        }
    }
    return set_advantage_mix(s);
}

/* ---- the shield's barrier ---------------------------------------------------------------------------------------- */

static dt_status select_unsafe_costs(state *s, const char *text)
{
    const dt_env_spec *e = s->ppo.wiring->spec;
    uint32_t n = 0;
    while (*(text += strspn(text, " ,")) != '\0') {
        const size_t length = strcspn(text, " ,");
        uint32_t k = 0;
        while (k < e->n_costs && (strlen(e->costs[k]) != length || strncmp(e->costs[k], text, length) != 0)) {
            k++;
        }
        if (k == e->n_costs) {
            return DT_FAIL_H(s->ppo.h, DT_ECONFIG,
                             "phase3_constrained.shield_costs: environment %s has no cost \"%.*s\"",
                             s->ppo.wiring->env_id, (int)length, text);
        }
        s->barrier.marks[k] = 1;
        n++;
        text += length;
    }
    if (n == 0) {
        memcpy(s->barrier.marks, s->limits.has, sizeof(s->limits.has));
    }
    return DT_OK;
}

static dt_status create_barrier(state *s, const config *c)
{
    dt_wiring *w = s->ppo.wiring;
    const dt_bind_api *bind = NULL;
    DT_SERVICE_H(s->ppo.h, bind, DT_SVC_BIND, ID);
    s->barrier.is_on = c->learn_shield && w->shield != NULL && bind->model_output(w->shield, "barrier") != NULL;
    if (!s->barrier.is_on) {
        return DT_OK;
    }
    s->barrier.config = (barrier_config){.alpha = c->shield_alpha,
                                         .margin = c->shield_margin,
                                         .coef = c->shield_coef,
                                         .unsafe_steps = c->shield_unsafe_steps,
                                         .safe_steps = c->shield_safe_steps};
    s->ppo.loss.has_more = true;
    return select_unsafe_costs(s, c->shield_costs);
}

/* ---- what is learned --------------------------------------------------------------------------------------------- */

static dt_status record(void *self, dt_graph *g, const dt_policy_tensors *p)
{
    state *s = self;
    DT_TRY_H(ppo_record(&s->ppo, g, p));
    return s->barrier.is_on ? barrier_record(&s->barrier, s->ppo.wiring, g, p) : DT_OK;
}

static dt_status record_stored(void *self, dt_graph *g)
{
    const state *s = self;
    DT_TRY_H(stored_record(&s->stored, g));
    return s->barrier.has_stored ? barrier_record_stored(&s->barrier, s->ppo.wiring, g) : DT_OK;
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

static dt_status check_violation(state *s, uint32_t k, double cost)
{
    const char *name = s->ppo.wiring->spec->costs[k];
    uint64_t *rounds = &s->kept.violations[k];
    *rounds = limits_count_rounds(*rounds, cost, s->limits.at[k]);
    if (s->on_violations == REACT_NONE || *rounds < (uint64_t)s->max_violations) {
        return DT_OK;
    }
    if (s->on_violations == REACT_STOP) {
        return DT_FAIL_H(
            s->ppo.h, DT_EDIVERGED,
            "cost %s is %g, above its limit %g for %llu rounds in a row, as many as max_violations allows; "
            "raise the limit or max_violations, or set phase3_constrained.on_violations=alarm",
            name, cost, s->limits.at[k], (unsigned long long)*rounds);
    }
    if (*rounds == (uint64_t)s->max_violations) {
        dt_logf(s->ppo.h, 1, "cost %s is %g, above its limit %g for %llu rounds in a row", name, cost, s->limits.at[k],
                (unsigned long long)*rounds);
    }
    return DT_OK;
}

static void report_cost(const state *s, const char *what, uint32_t k, double value)
{
    char name[96];
    snprintf(name, sizeof(name), "%s/%s", what, s->ppo.wiring->spec->costs[k]);
    s->ppo.metrics->scalar(s->ppo.h, name, value);
}

/* Multipliers are unknown until an episode ended, or until a step of the trust region had a constraint. */
static void report_limit(const state *s, uint32_t k, uint64_t round)
{
    const multiplier *m = &s->kept.multiplier[k];
    report_cost(s, "limits", k, s->limits.at[k]);
    report_cost(s, "limits_fail_unevaluated", k, (double)(round + 1 - m->rounds));
    if (s->is_cpo ? isfinite(m->value) : m->rounds > 0) {
        report_cost(s, "multipliers", k, m->value);
    }
}

static dt_status update_multipliers(state *s, uint64_t round, const dt_rollout_report *r)
{
    for (uint32_t k = 0; k < s->ppo.wiring->spec->n_costs; k++) {
        const double cost = r->episode_cost[k];
        if (!s->limits.has[k]) {
            continue;
        }
        if (isfinite(cost)) {
            if (!s->is_cpo) {
                const double spread = fmax(r->cost_advantage_std[k], MIN_SPREAD * s->limits.at[k]);
                const double unit = spread > 0 ? r->advantage_std / spread : 0;
                const double share = s->observed.max_rate > 0 ? s->observed.rate / s->observed.max_rate : 1;
                multiplier_update(&s->kept.multiplier[k], &s->rule, cost, s->aim * s->limits.at[k], unit, share);
            } else {
                s->kept.multiplier[k].rounds++;
            }
            DT_TRY_H(check_violation(s, k, cost));
        }
        report_limit(s, k, round);
    }
    return set_advantage_mix(s);
}

static dt_status take_trust_region_step(state *s)
{
    double excess[DT_ENV_MAX_COSTS];
    trust_region_report moved;
    const ppo *l = &s->ppo;
    const int64_t k =
        limits_worst_excess(&s->limits, l->wiring->spec->n_costs, s->aim, s->observed.cost, s->observed.rows, excess);
    DT_TRY_H(trust_region_step(&s->region, excess, k, &moved));
    if (k >= 0 && isfinite(moved.solution.nu)) {
        for (uint32_t j = 0; j < l->wiring->spec->n_costs; j++) {
            s->kept.multiplier[j].value = j == k ? moved.solution.nu : 0;
        }
    }
    l->metrics->scalar(l->h, "trust_region/kl", moved.kl);
    l->metrics->scalar(l->h, "trust_region/share", moved.share);
    l->metrics->scalar(l->h, "trust_region/gain", moved.gain);
    l->metrics->scalar(l->h, "trust_region/recovering", moved.solution.kind == TRUST_REGION_RECOVER);
    return DT_OK;
}

static dt_status after_collect(void *self, uint64_t round, const dt_rollout_report *r)
{
    state *s = self;
    DT_TRY_H(ppo_after_collect(&s->ppo, round, r));
    observe_costs(s, r);
    if (s->barrier.is_on) {
        DT_TRY_H(barrier_after_collect(&s->barrier, &s->ppo));
    }
    if (s->is_cpo) {
        DT_TRY_H(take_trust_region_step(s));
    }
    return update_multipliers(s, round, r);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static stored_config make_stored_config(const config *c)
{
    return (stored_config){.samples = c->stored_samples,
                           .coef = c->stored_coef,
                           .ttc_s = c->stored_ttc_s,
                           .hard_mps2 = c->stored_hard_mps2,
                           .barrier = c->stored_barrier};
}

static dt_status check(const dt_host *h, const void *cfg)
{
    const config *c = cfg;
    if (c->algorithm == ALGORITHM_CPO && (c->ppo.kl_target > 0 || c->ppo.target_kl > 0)) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "phase3_constrained.%s applies to the clipped objective, but algorithm = \"cpo\" bounds the "
                         "divergence by max_kl; set it to 0",
                         c->ppo.kl_target > 0 ? "kl_target" : "target_kl");
    }
    if (c->shield_safe_steps < c->shield_unsafe_steps) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "phase3_constrained.shield_safe_steps = %lld is below shield_unsafe_steps = %lld: a state "
                         "would be both",
                         (long long)c->shield_safe_steps, (long long)c->shield_unsafe_steps);
    }
    if (c->margin >= 1) {
        return DT_FAIL_H(h, DT_ECONFIG, "phase3_constrained.margin = 1 reduces every limit to 0; set it below 1");
    }
    if (c->algorithm != ALGORITHM_CPO) {
        DT_TRY_H(multiplier_check(h, "phase3_constrained", &c->multiplier, c->algorithm));
    }
    const stored_config mixed = make_stored_config(c);
    return stored_check(h, ID, &mixed, &c->wiring);
}

static dt_status begin_round(void *self, uint64_t round)
{
    return ppo_begin_round(&((state *)self)->ppo, round);
}

static dt_status after_pass(void *self, const dt_pass_report *r)
{
    return ppo_after_pass(&((state *)self)->ppo, r);
}

static dt_status create_rounds(state *s, const config *c)
{
    const dt_rounds_api *rounds = NULL;
    const bool follows = c->algorithm == MULTIPLIER_PENALTY || c->algorithm == MULTIPLIER_LOG_BARRIER;
    const dt_rounds_desc d = {.struct_size = sizeof(d),
                              .config_size = sizeof(c->rounds),
                              .phase = ID,
                              .config = &c->rounds,
                              .wiring = s->ppo.wiring,
                              .user = s,
                              .record = record,
                              .begin = begin_round,
                              .collected = after_collect,
                              .before_pass = follows ? update_multipliers_in_round : NULL,
                              .after_pass = after_pass,
                              .manual_loss = s->is_cpo ? "policy_loss" : NULL,
                              .stored = s->stored.mixed,
                              .record_stored = record_stored,
                              .n_stored = s->stored.n,
                              .normalise = s->is_cpo ? DT_NORMALISE_MEAN : DT_NORMALISE_BY_REWARD,
                              .transitions = s->barrier.is_on};
    s->follows = follows;
    DT_SERVICE_H(s->ppo.h, rounds, DT_SVC_ROUNDS, ID);
    DT_TRY_H(rounds->create(s->ppo.h, &d, &s->rounds));
    s->ppo.rounds = s->rounds;
    return DT_OK;
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    const config *c = cfg;
    s->max_violations = c->max_violations;
    s->aim = 1 - c->margin;
    s->on_violations = c->on_violations;
    s->rule = multiplier_rule_from_config(&c->multiplier, c->algorithm);
    s->rule.rate = c->rate;
    s->rule.penalty = c->penalty;
    s->rule.sharpness = c->barrier_t;
    for (uint32_t k = 0; k < DT_ENV_MAX_COSTS; k++) {
        multiplier_init(&s->kept.multiplier[k]);
    }
    s->is_cpo = c->algorithm == ALGORITHM_CPO;
    for (uint32_t k = 0; k < DT_ENV_MAX_COSTS && s->is_cpo; k++) {
        s->kept.multiplier[k].value = NAN; /* unknown until the first constrained step */
    }
    s->region_config = (trust_region_config){.max_kl = c->max_kl,
                                             .damping = c->cg_damping,
                                             .backtrack = c->backtrack,
                                             .cg_iterations = c->cg_iterations,
                                             .line_search_steps = c->line_search_steps};
    s->observed.rows = NAN;
    DT_TRY_H(ppo_create(&s->ppo, h, ID, &c->ppo, &c->wiring, &c->rounds));
    ppo_loss_config *loss = &s->ppo.loss;
    loss->has_mix = true;
    loss->is_apart = s->is_cpo;
    loss->has_entropy = loss->has_entropy && !s->is_cpo;
    DT_TRY_H(limits_parse(&s->limits, h, ID, s->ppo.wiring, c->limits));
    DT_TRY_H(create_barrier(s, c));
    const stored_config mixed = make_stored_config(c);
    DT_TRY_H(stored_create(&s->stored, &mixed, &c->wiring, &s->ppo, &s->barrier));
    return create_rounds(s, c);
}

static dt_status start(void *self)
{
    state *s = self;
    const dt_rounds *r = s->rounds;
    DT_TRY_H(r->api->start(s->rounds));
    DT_TRY_H(set_advantage_mix(s)); /* for evaluations */
    DT_TRY_H(stored_start(&s->stored, &s->ppo));
    if (s->barrier.is_on) {
        DT_TRY_H(barrier_start(&s->barrier, &s->ppo));
    }
    if (s->follows) {
        DT_TRY_H(r->train->plan_losses(r->trainer, surrogate_loss, 1, 0));
    }
    return s->is_cpo ? trust_region_init(&s->region, s->ppo.h, r->train, r->trainer, &s->region_config,
                                         r->wiring->spec->n_costs)
                     : DT_OK;
}

static dt_status iterate(void *self, dt_progress *out)
{
    state *s = self;
    const dt_status st = s->rounds->api->iterate(s->rounds, out);
    if (st >= 0 && out->epoch_end) {
        s->observed.rate = out->learning_rate;
        s->observed.max_rate = fmax(s->observed.max_rate, s->observed.rate);
    }
    return st;
}

static dt_status evaluate(void *self, dt_progress *out)
{
    state *s = self;
    DT_TRY_H(stored_evaluate(&s->stored, &s->ppo));
    DT_TRY_H(s->rounds->api->evaluate(s->rounds, out));
    limits_report(&s->limits, s->ppo.h, s->ppo.metrics, s->ppo.wiring);
    return DT_OK;
}

static dt_status finish(void *self)
{
    const state *s = self;
    const dt_env_spec *e = s->ppo.wiring->spec;
    for (uint32_t k = 0; k < e->n_costs; k++) {
        if (s->limits.has[k] && s->kept.multiplier[k].rounds == 0) {
            return limits_fail_unevaluated(s->ppo.h, ID, s->ppo.wiring, k, s->limits.at[k]);
        }
    }
    return DT_OK;
}

static void destroy(void *self)
{
    state *s = self;
    trust_region_fini(&s->region);
    stored_fini(&s->stored);
}

static dt_status save(void *self, dt_writer *w)
{
    state *s = self;
    DT_TRY_H(ppo_save(&s->ppo, w));
    DT_TRY_H(w->write(w, &s->kept, sizeof(s->kept)));
    return w->write(w, &s->observed, sizeof(s->observed));
}

static dt_status load(void *self, dt_reader *r, uint32_t version)
{
    state *s = self;
    DT_TRY_H(ppo_load(&s->ppo, r, version));
    DT_TRY_H(r->read(r, &s->kept, sizeof(s->kept)));
    return version < 2 ? DT_OK : r->read(r, &s->observed, sizeof(s->observed));
}

/* ---- descriptor -------------------------------------------------------------------------------------------------- */

#define ROW(member, type, dfl, unit, min, max, help) DT_OPTION(config, member, type, dfl, unit, min, max, NULL, help)

static const char *const algorithms[] = {"pid_lagrangian", "lagrangian", "penalty", "log_barrier", "cpo", NULL};
static const char *const reactions[] = {"none", "alarm", "stop", NULL};

static const dt_option options[] = {
    DT_ROUNDS_OPTIONS(config, rounds, "100"),
    DT_WIRING_OPTIONS(config, wiring),
    PPO_OPTIONS(config, ppo),
    DT_OPTION(config, algorithm, DT_OPT_ENUM, "pid_lagrangian", NULL, 0, 0, algorithms,
              "how multipliers follow from costs and limits; cpo: steps within a trust region"),
    ROW(limits, DT_OPT_STR, "collisions:0.1", NULL, 0, 0,
        "limits as cost:limit,... on the mean over episodes, all agents together"),
    ROW(margin, DT_OPT_F64, "0", "1", 0, 1,
        "safety margin: share by which every limit is lowered, as costs fluctuate around their target"),
    ROW(max_violations, DT_OPT_I64, "5", "rounds", 1, 1e9,
        "rounds in a row above a limit before on_violations applies"),
    DT_OPTION(config, on_violations, DT_OPT_ENUM, "alarm", NULL, 0, 0, reactions,
              "none; alarm: a warning in the log; stop: the phase fails"),
    MULTIPLIER_OPTIONS(config, multiplier, "pid_lagrangian, lagrangian: ", "pid_lagrangian: "),
    ROW(rate, DT_OPT_F64, "0.1", "u", 0, 1e9, "lagrangian: step of the multiplier per relative excess of the cost"),
    ROW(penalty, DT_OPT_F64, "5", "u", 0, 1e9, "penalty: its weight"),
    ROW(barrier_t, DT_OPT_F64, "400", "1", 1e-9, 1e9, "log_barrier: sharpness; the cost stays about limit/t away"),
    ROW(max_kl, DT_OPT_F64, "0.01", "nats", 1e-9, 1e3, "cpo: bound of a step's mean KL divergence"),
    ROW(cg_iterations, DT_OPT_I64, "10", "1", 1, 1e4, "cpo: of conjugate gradients, for reward and cost each"),
    ROW(cg_damping, DT_OPT_F64, "0.1", "1", 0, 1e9, "cpo: added to the diagonal of the Hessian of the divergence"),
    ROW(line_search_steps, DT_OPT_I64, "10", "1", 1, 1000, "cpo: lengths that are tried"),
    ROW(backtrack, DT_OPT_F64, "0.8", "1", 0.01, 0.99, "cpo: of a length to the one before"),
    DT_OPTION(config, learn_shield, DT_OPT_BOOL, "true", NULL, 0, 0, NULL,
              "train the learned barrier of the shield, if it has one"),
    ROW(shield_costs, DT_OPT_STR, "", NULL, 0, 0,
        "costs, separated by commas, that make states unsafe for the barrier; empty: those with limits"),
    ROW(shield_unsafe_steps, DT_OPT_I64, "2", "steps", 0, 1e6, "steps before such a cost in which a state is unsafe"),
    ROW(shield_safe_steps, DT_OPT_I64, "10", "steps", 0, 1e6,
        "a state is safe if no such cost follows within this many steps"),
    ROW(shield_alpha, DT_OPT_F64, "0.1", "1", 0, 1, "share of the learned barrier that one step may use up"),
    ROW(shield_margin, DT_OPT_F64, "1", "1", 0, 1e6, "margin of the learned barrier at labelled states"),
    ROW(shield_coef, DT_OPT_F64, "0.01", "1", 0, 1e6,
        "weight of the barrier's loss: small, so that gradient_clip sees the policy; Adam does without size"),
    ROW(stored_samples, DT_OPT_I64, "0", "samples", 0, 1e9,
        "recorded scenes mixed into each round, to train models.world and the barrier of a shield of vehicles; 0: "
        "none"),
    ROW(stored_coef, DT_OPT_F64, "0.01", "1", 0, 1e6, "weight of the world model's losses, small like shield_coef"),
    DT_OPTION(config, stored_barrier, DT_OPT_BOOL, "true", NULL, 0, 0, NULL,
              "train the barrier on them too, labelled by the costs collisions, time_to_collision and hard_braking"),
    ROW(stored_ttc_s, DT_OPT_F64, "1.5", "s", 0, 60, "times to collision below this count, as in the environment"),
    ROW(stored_hard_mps2, DT_OPT_F64, "3", "m/s^2", 0, 20, "braking harder than this counts, as in the environment"),
    DT_OPTION_END};

DT_DEFAULTS_DEFINE(extension, "models.perception=", "models.world=world_lstm", "data.source=data_trajectory",
                   "models.controller=controller_mlp", "env.id=env_traffic", "data.batch=96", "data.shards=4",
                   "training.learning_rate=1e-4", "training.weight_decay=1e-4",
                   "training.freeze_loaded=perception,world", "training.optimizer=adam", "training.eps=1e-8",
                   "training.gradient_clip=0.5", "training.scheduler=cosine",
                   "training.warmup_epochs=100", /* 10 rounds of 10 passes */
                   "training.eval_interval=20", "training.save_interval=10", "checkpoint.best_by=return/mean");

DT_PHASE_DEFINE(component, ID, "maximises reward while costs stay below their limits",
                "Stooke, Achiam & Abbeel 2020, arXiv 2007.03964", config, state, options,
                DT_OPS(.create = create, .start = start, .iterate = iterate, .evaluate = evaluate, .stop = dt_no_op,
                       .destroy = destroy, .save = save, .load = load, .finish = finish),
                .flags = DT_COMP_DETERMINISTIC, .state_version = 2, .check = check, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, ID, "1.0", "dtrain", "Apache-2.0");
