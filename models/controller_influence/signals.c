/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals. f_ap: the scaled features of phase p of signal a; t_ap: 1 where there is such a phase, else 0.
 *
 *   h_ap = tanh layers of f_ap                   the same ones for every phase of every signal
 *   z_a  = tanh(W_z sum_p t_ap h_ap / 4 + b_z)   (row: + W_r obs_a)
 *   u_a  = z_a + W_o [sum_n w_an V z_n]          n: a itself and the signals that its traffic comes from;
 *                                                w_an = softmax_n(s . tanh(Q z_a + K z_n)), for every head
 *   logit_ap = w . tanh(W_1 h_ap + W_2 u_a + b) + r (near_ap + wait_ap / 60 s)
 *   mean_a = linear in u_a, where there are continuous actions
 *   value_a, cost_value_a = linear in u_a, of the policy's trunk or of one of its own
 *
 * w_an is the influence of signal n on signal a; what it makes of all of a's phases it makes of them alike. r is
 * learned, from the option rule on; near_ap counts vehicles near the line on lanes that the phase gives green, wait_ap
 * is how long the first vehicle at a line has gone without the green that the phase would give its link: phases that
 * serve other links of the same lanes have as many near, and without it the one that is shown first would be shown for
 * ever. So with w = 0 the choice is drawn from a soft version of controller_greedy.
 *
 * Sources: one score per phase by shared weights as in FRAP (Zheng et al. 2019), which compares phases pair by pair
 * where here all meet in z_a; neighbours by additive attention (Velickovic et al. 2018; tanh before s as in Brody et
 * al. 2022), as CoLight (Wei et al. 2019) does with dot products and a fixed number of phases.
 */
#include "influence.h"

enum { IN_PHASES, IN_NEIGHBOUR };
enum { VEHICLES = 0, ALLOWED = 4, NEAR = 5, SHOWN = 7, WAITED = 10, N_NEIGHBOURS = 4, N_SOURCES = N_NEIGHBOURS + 1 };

#define PATIENCE_S 60.0 /* of waiting that count as one vehicle near the line */

/* columns of phases (traffic/ports.h, more in env_sumo) to order 1: vehicles / 10, those near the line / 5, s / 60 */
static const influence_run scales[] = {{3, 0.1}, {2, 1.0}, {1, 0.2},      {1, 1.0 / 60}, {1, 1.0},
                                       {1, 0.1}, {1, 0.2}, {1, 1.0 / 60}, {1, 1.0},      {1, 1.0 / 30},
                                       {1, 0.1}, {1, 0.2}, {1, 1.0 / 15}, {0, 0.01}};

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static dt_status add_weight(dt_params *reg, const char *trunk, const char *name, int64_t out, int64_t in, double gain)
{
    char text[CONTROLLER_TEXT];
    const int64_t w[2] = {out, in};
    return reg->add(reg, influence_param_name(text, trunk, name, -1), w, 2, DT_INIT_ORTHO, gain);
}

static dt_status trunk_params(const influence *s, dt_params *reg, const char *trunk)
{
    const int64_t H = s->config.hidden;
    char text[CONTROLLER_TEXT];
    for (int64_t i = 0; i < s->config.layers; i++) {
        DT_TRY_H(controller_add(reg, influence_param_name(text, trunk, "phase", i), H, i == 0 ? s->columns : H,
                                CONTROLLER_HIDDEN_GAIN));
    }
    DT_TRY_H(controller_add(reg, influence_param_name(text, trunk, "agent", -1), H, H, CONTROLLER_HIDDEN_GAIN));
    if (s->config.row) {
        DT_TRY_H(add_weight(reg, trunk, "row", H, s->net.D, CONTROLLER_HIDDEN_GAIN));
    }
    if (s->has_neighbours) {
        DT_TRY_H(add_weight(reg, trunk, "query", H, H, 1.0));
        DT_TRY_H(add_weight(reg, trunk, "key", H, H, 1.0));
        DT_TRY_H(add_weight(reg, trunk, "score", s->config.heads, H, 1.0));
        DT_TRY_H(add_weight(reg, trunk, "from", H, H, 1.0));
        DT_TRY_H(add_weight(reg, trunk, "out", H, H, 1.0));
    }
    return DT_OK;
}

dt_status signals_params(const influence *s, dt_params *reg)
{
    const int64_t H = s->config.hidden, one[1] = {1};
    const int64_t w[2] = {1, H};
    DT_TRY_H(trunk_params(s, reg, "policy"));
    if (s->config.trunk == INFLUENCE_SEPARATE) {
        DT_TRY_H(trunk_params(s, reg, "critic"));
    }
    DT_TRY_H(controller_add(reg, "head.phase", H, H, CONTROLLER_HIDDEN_GAIN));
    DT_TRY_H(add_weight(reg, "head", "agent", H, H, 1.0));
    DT_TRY_H(reg->add(reg, "head.logits", w, 2, DT_INIT_ORTHO, s->net.policy_gain));
    DT_TRY_H(reg->add(reg, "head.rule", one, 1, DT_INIT_CONST, s->config.rule));
    if (s->net.continuous > 0) {
        DT_TRY_H(controller_gaussian_params(&s->net, reg, H));
    }
    if (s->net.K > 0) {
        DT_TRY_H(controller_add(reg, "head.cost_value", s->net.K, H, CONTROLLER_VALUE_GAIN));
    }
    return s->net.has_value ? controller_add(reg, "head.value", 1, H, CONTROLLER_VALUE_GAIN) : DT_OK;
}

/* ---- graph ------------------------------------------------------------------------------------------------------- */

static dt_tensor *apply_weight(dt_graph *g, dt_tensor *x, const char *trunk, const char *name)
{
    char text[CONTROLLER_TEXT];
    return dt_linear(g, x, g->api->param(g, influence_param_name(text, trunk, name, -1)), NULL);
}

/* [A, P, 1]: 1 where the phase may be asked for, is shown or has traffic, else 0 */
static dt_tensor *phase_is_there(const influence *s, dt_graph *g, dt_tensor *phases)
{
    enum { SURE = 1000 };
    dt_tensor *any = dt_add(g, dt_slice(g, phases, ALLOWED, 1), dt_slice(g, phases, VEHICLES, 1));
    any = s->columns > SHOWN ? dt_add(g, any, dt_slice(g, phases, SHOWN, 1)) : any;
    return dt_clamp(g, dt_affine(g, any, SURE, 0.0), 0.0, 1.0);
}

/* x [A, P, H] -> sum over P, [A, H] */
static dt_tensor *sum_phases(const influence *s, dt_graph *g, dt_tensor *x)
{
    const int64_t H = s->config.hidden;
    dt_tensor *row = dt_merge(g, x), *sum = dt_slice(g, row, 0, H);
    for (int64_t p = 1; p < s->net.choices; p++) {
        sum = dt_add(g, sum, dt_slice(g, row, p * H, H));
    }
    return sum;
}

/* z [A, H]: what the signals around, itself among them, are to each signal, [A, H] */
static dt_tensor *attend_to_neighbours(const influence *s, dt_graph *g, dt_tensor *z, dt_tensor *neighbour,
                                       const char *trunk)
{
    const int64_t H = s->config.hidden, heads = s->config.heads, C = H / heads;
    dt_tensor *query = apply_weight(g, z, trunk, "query");
    dt_tensor *key = apply_weight(g, z, trunk, "key"), *near_key = dt_merge(g, dt_gather(g, key, neighbour));
    dt_tensor *from = apply_weight(g, z, trunk, "from"), *near_from = dt_merge(g, dt_gather(g, from, neighbour));
    dt_tensor *score[N_SOURCES], *value[N_SOURCES], *sum = NULL;
    for (int n = 0; n < N_SOURCES; n++) {
        const bool is_self = n == N_NEIGHBOURS;
        dt_tensor *k = is_self ? key : dt_slice(g, near_key, n * H, H);
        value[n] = is_self ? from : dt_slice(g, near_from, n * H, H);
        score[n] = apply_weight(g, dt_tanh(g, dt_add(g, query, k)), trunk, "score");
    }
    for (int64_t head = 0; head < heads; head++) {
        dt_tensor *logit[N_SOURCES], *mix = NULL;
        for (int n = 0; n < N_SOURCES; n++) {
            logit[n] = dt_slice(g, score[n], head, 1);
        }
        dt_tensor *w = dt_softmax(g, dt_concat(g, logit, N_SOURCES)); /* [A, N_SOURCES] */
        for (int n = 0; n < N_SOURCES; n++) {
            dt_tensor *x = dt_mul(g, dt_slice(g, value[n], head * C, C), dt_slice(g, w, n, 1));
            mix = mix == NULL ? x : dt_add(g, mix, x);
        }
        dt_tensor *both[2] = {sum, mix};
        sum = sum == NULL ? mix : dt_concat(g, both, 2);
    }
    return apply_weight(g, sum, trunk, "out");
}

/* h_p [A, P, H] each phase, u_p [A, H] each signal */
static void record_trunk(const influence *s, dt_graph *g, dt_tensor *const *in, const char *trunk, dt_tensor **h_p,
                         dt_tensor **u_p)
{
    char text[CONTROLLER_TEXT];
    dt_tensor *h = influence_scale_inputs(g, in[IN_PHASES], scales, s->columns);
    for (int64_t i = 0; i < s->config.layers; i++) {
        h = dt_tanh(g, controller_linear(g, h, influence_param_name(text, trunk, "phase", i)));
    }
    dt_tensor *sum = sum_phases(s, g, dt_mul(g, h, phase_is_there(s, g, in[IN_PHASES])));
    dt_tensor *z = controller_linear(g, dt_affine(g, sum, 0.25, 0.0), influence_param_name(text, trunk, "agent", -1));
    if (s->config.row) {
        z = dt_add(g, z, apply_weight(g, in[IN_NEIGHBOUR + s->has_neighbours], trunk, "row"));
    }
    z = dt_tanh(g, z);
    *h_p = h;
    *u_p = s->has_neighbours ? dt_add(g, z, attend_to_neighbours(s, g, z, in[IN_NEIGHBOUR], trunk)) : z;
}

static dt_tensor *score_phases(const influence *s, dt_graph *g, dt_tensor *phases, dt_tensor *h, dt_tensor *u)
{
    const int64_t P = s->net.choices;
    dt_tensor *every = dt_split(g, controller_columns(g, apply_weight(g, u, "head", "agent"), P), P);
    dt_tensor *x = dt_tanh(g, dt_add(g, controller_linear(g, h, "head.phase"), every));
    dt_tensor *near = dt_slice(g, phases, s->columns > NEAR ? NEAR : VEHICLES, 1);
    if (s->columns > WAITED) {
        near = dt_add(g, near, dt_affine(g, dt_slice(g, phases, WAITED, 1), 1 / PATIENCE_S, 0.0));
    }
    dt_tensor *rule = dt_mul(g, near, g->api->param(g, "head.rule"));
    return dt_merge(g, dt_add(g, apply_weight(g, x, "head", "logits"), rule));
}

dt_status signals_forward(const influence *s, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    dt_tensor *h = NULL, *u = NULL, *critic = NULL, *unused = NULL;
    uint32_t i = 0;
    record_trunk(s, g, in, "policy", &h, &u);
    critic = u;
    if (s->config.trunk == INFLUENCE_SEPARATE) {
        record_trunk(s, g, in, "critic", &unused, &critic);
    }
    if (s->net.has_value) {
        out[i++] = dt_merge(g, controller_linear(g, critic, "head.value"));
    }
    out[i++] = score_phases(s, g, in[IN_PHASES], h, u);
    if (s->net.continuous > 0) {
        controller_gaussian(&s->net, g, u, &out[i], &out[i + 1]);
        i += 2;
    }
    if (s->net.K > 0) {
        out[i++] = controller_linear(g, critic, "head.cost_value");
    }
    return g->api->status(g);
}
