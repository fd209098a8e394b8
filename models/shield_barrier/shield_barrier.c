/* SPDX-License-Identifier: Apache-2.0
 *
 * shield_barrier, role shield: what agents may do without danger, in closed form from known dynamics. It reads what
 * environments provide to shields (traffic/ports.h), in SI units.
 *
 * Vehicles. A follower of speed v, that can brake at b, is gap behind something of speed u that may brake at B. Let
 *     D = gap - gap_m + u^2 / (2 B)             way until it must stand, when the one ahead brakes its hardest
 *     h = D - v^2 / (2 b)                       barrier: >= 0 where braking now is early enough
 * with b the lesser of b and B: then the gap is least at the end, and never before. (RSS, Shalev-Shwartz et al. 2017,
 * Definition 1, with the response time the time tau between two actions.) The action a holds for tau, after it the
 * follower can brake at b; the discrete barrier condition h(x') >= (1 - alpha) h(x) (Agrawal & Sreenath 2017;
 * in continuous time Ames et al. 2017), against the hardest braking ahead, is
 *     v1^2 / (2 b) + (v + v1) tau / 2 <= D - (1 - alpha) max(h, 0) =: R,   v1 = v + a tau >= 0
 * and its largest a, also where the vehicle comes to stand within tau (v1 = 0, and v^2 / (2 -a) <= R),
 *     a = max(0, sqrt((b tau / 2)^2 + b (2 R - v tau)) - b tau / 2) / tau - v^2 / (2 min(R, v tau / 2))
 * Motion by Euler's rule of step e needs (v - u) e / 2 less way, and at most b e^2 / 8 more of it. high is the least of
 * these over all that is ahead. From h >= 0 braking at b keeps it so: the set is invariant, and safe as long as the one
 * ahead brakes by at most B and no vehicle is put in between. Where high is below -b nothing is safe: hardest braking.
 *   Lanes: a change is allowed where the agent behind its new leader keeps an a of at least change_mps2, and the
 *   vehicle that would
 * be behind it keeps one of at least rear_mps2; high then holds for whichever allowed lane is drawn.
 *
 *   Look-ahead, with look_ahead_mps2 = c: what a world model foresees of the vehicle ahead, its way x_t at times t
 * with deviation sigma_t, tightens high again. R_t = gap - gap_m + x_t - look_ahead_z sigma_t is the way the agent
 * may make by t; m = min(t, tau). Holding a for tau and braking at c then it makes
 *     v t + a m (t - m / 2) - c (t - m)^2 / 2        while it moves at t: v + a tau >= c (t - m)
 *     (v + v1) tau / 2 + v1^2 / (2 c)                where it stands by then
 * The least over t of the a that make it R_t, but at least -c: a driver that sees far brakes early and softly; what
 * must be harder is the analytic bound's business, which is never loosened. Only where the phase offers "foreseen".
 *
 * Signals. allow: phases without conflicting greens; while a green is younger than min_green_s only that; not one
 * older than max_green_s; and the phase that waits longest alone, where putting it off by one more green could make any
 * vehicle wait longer than starvation_s: let w_p be what phase p would end (column 4 of service), r_p how many longer
 * waits others would end, Y the time from a choice to its green, S that to the next choice; served in the order of
 * their waits ("earliest deadline first", Liu & Layland 1973) with one other green before, p has its green in time as
 * long as
 *     w_p + (1 + r_p) S + Y <= starvation_s
 *   Where nothing satisfies all of it the least harm is done and said: allow is then 0 for that and -1 for the rest,
 * none above 0 (traffic/ports.h, infeasible). So it is while a wait is, or is sure to get, longer than starvation_s;
 * and where a vehicle waits for a link, or has the green of one, that no phase serves without a conflict: it is served.
 * Environments without the port "service" do not report Y, S and such links: the phase that has waited longer is then
 * served next.
 *
 * Learned barrier: a layer of `hidden` and one number per agent, > 0 where safe, for a phase to train. Where learned is
 * on, relu(-barrier) is added to gap_m, and to the time waited: it tightens the analytic bounds and never loosens them.
 *
 * Policy gradient. Continuous actions: the host executes the drawn action clamped to [low, high], and the phase learns
 * from the probability of the drawn one. The clamp is then part of the environment, P'(s' | s, a) = P(s' | s, clamp a),
 * and the gradient of the return in that environment is unbiased; the density of the clamped action would have atoms at
 * its bounds (Krasowski et al. 2023, "Provably safe reinforcement learning", action projection; Fujita & Maeda 2018,
 * "Clipped action policy gradient" for the estimator). Discrete ones: allow joins the mask before drawing, so that the
 * policy itself is the softmax over what is permitted, whose gradient is that of the masked logits (Huang & Ontanon
 * 2022, "A closer look at invalid action masking"). Threads: as dt_model_ops.
 */
#include "controller_net.h"

enum { GAP, LEADER, LEADER_BRAKE, FOLLOWER, FOLLOWER_BRAKE, ACTION_S, EULER_S, PAIR_COLUMNS };
enum { AHEAD_ROWS = 3, BESIDE_ROWS = 4, LANE_CHOICES = 3 };
enum { ASKABLE = 4, WAITED_S = 10, CONFLICTS, GREEN_S, PHASE_COLUMNS };
enum { LONELY, LONELY_S, CHANGE_S, LEAST_S, BEST_WAITED_S, SERVICE_COLUMNS };
enum { MAX_PORTS = 4, TEXT = 32 };

#define COUNTED_ON 0.99 /* of the hardest braking; the rest is for rounding */
#define LEAST_MPS2 0.1  /* braking, so that nothing is divided by 0 */
#define LEAST_M    1e-3 /* way, the same */
#define SHARP      1e6  /* slope of a step from 0 to 1 */
#define MOST_MPS2  1e3  /* of a bound, either way */
#define SAME_S     1e-3 /* waits that are one: several phases would end it */

typedef struct config {
    double gap_m, alpha, change_mps2, rear_mps2;
    double starvation_s, min_green_s, max_green_s;
    double look_ahead_mps2, look_ahead_z;
    int64_t hidden;
    uint8_t learned;
} config;

typedef struct state {
    config config;
    int64_t choices, n_features;
    int64_t F; /* steps of the future that are looked at, or 0 */
    double dt_s;
    bool has_vehicles, has_lanes, has_signals, has_service;
    dt_port in[MAX_PORTS], out[MAX_PORTS];
    uint32_t n_in, n_out; /* foreseen, or service, comes last */
    char phases_dims[TEXT], service_dims[TEXT], allow_dims[TEXT], foreseen_dims[TEXT];
} state;

static const dt_option options[] = {
    DT_OPTION(config, gap_m, DT_OPT_F64, "1", "m", 0, 100, NULL, "gap at standstill"),
    DT_OPTION(config, alpha, DT_OPT_F64, "1", "1", 0.01, 1, NULL,
              "share of the barrier that one action may use up; 1: all that is safe, less: a smoother approach"),
    DT_OPTION(config, change_mps2, DT_OPT_F64, "0", "m/s^2", -9, 9, NULL,
              "minimum acceleration left to the agent by a lane change"),
    DT_OPTION(config, rear_mps2, DT_OPT_F64, "2.6", "m/s^2", -9, 9, NULL,
              "minimum acceleration left to the follower by a lane change"),
    DT_OPTION(config, starvation_s, DT_OPT_F64, "90", "s", 1, 1e6, NULL,
              "longest wait for green of a first vehicle, if possible"),
    DT_OPTION(config, min_green_s, DT_OPT_F64, "5", "s", 0, 600, NULL, "a phase stays green at least this long"),
    DT_OPTION(config, max_green_s, DT_OPT_F64, "0", "s", 0, 3600, NULL,
              "a phase stays green at most this long; 0: open"),
    DT_OPTION(config, look_ahead_mps2, DT_OPT_F64, "2", "m/s^2", 0, 9, NULL,
              "braking that must suffice if the vehicle ahead does what the world model predicts, in phases that "
              "offer it; 0: off"),
    DT_OPTION(config, look_ahead_z, DT_OPT_F64, "1", "1", 0, 10, NULL,
              "standard deviations by which that vehicle may fall short of its prediction"),
    DT_OPTION(config, hidden, DT_OPT_I64, "128", "1", 1, 8192, NULL, "width of the learned barrier"),
    DT_OPTION(config, learned, DT_OPT_BOOL, "false", NULL, 0, 0, NULL,
              "the learned barrier tightens the analytic one; it must have been trained"),
    DT_OPTION_END};

/* ---- ports ------------------------------------------------------------------------------------------------------- */

static dt_status check(const dt_host *h, const void *cfg)
{
    const config *c = cfg;
    if (c->max_green_s > 0 && c->max_green_s < c->min_green_s) {
        return DT_FAIL_H(h, DT_ECONFIG, "shield_barrier.max_green_s = %g s is below min_green_s = %g s", c->max_green_s,
                         c->min_green_s);
    }
    return DT_OK;
}

static void add_input(state *s, const char *name, const char *dims, int64_t n_features)
{
    s->in[s->n_in++] = (dt_port){name, dims, DT_F32, 0};
    s->n_features += n_features;
}

static void add_output(state *s, const char *name, const char *dims)
{
    s->out[s->n_out++] = (dt_port){name, dims, DT_F32, 0};
}

/* Nothing to do where no world model is used. Errors: DT_ESHAPE. */
static dt_status add_foreseen_input(state *s, const dt_host *h, const dt_dim *dims, uint32_t n_dims)
{
    const int64_t columns = controller_dim(dims, n_dims, "foreseen", 0), F = controller_dim(dims, n_dims, "F", 0);
    const int64_t dt_ms = controller_dim(dims, n_dims, "dt_ms", 0);
    if (columns == 0) {
        return DT_OK;
    }
    if (columns != 2 * F || F < 1 || dt_ms < 1) {
        return DT_FAIL_H(h, DT_ESHAPE,
                         "the phase gives \"foreseen\" %lld columns, F %lld, dt_ms %lld: shield_barrier looks ahead by "
                         "[A 2F], with steps of 1 ms or more; look_ahead_mps2 = 0 does without",
                         (long long)columns, (long long)F, (long long)dt_ms);
    }
    s->F = F;
    s->dt_s = (double)dt_ms / 1000;
    snprintf(s->foreseen_dims, TEXT, "A %lld", (long long)(2 * s->F));
    add_input(s, "foreseen", s->foreseen_dims, 0);
    return DT_OK;
}

static dt_status create(void *self, const dt_host *h, const void *cfg, const dt_dim *dims, uint32_t n_dims)
{
    state *s = self;
    s->config = *(const config *)cfg;
    s->choices = controller_dim(dims, n_dims, "choices", 0);
    const int64_t continuous = controller_dim(dims, n_dims, "continuous", 0);
    const int64_t ahead = controller_dim(dims, n_dims, "ahead", 0), beside = controller_dim(dims, n_dims, "beside", 0);
    const int64_t phases = controller_dim(dims, n_dims, "phases", 0);
    s->has_vehicles = continuous == 1 && ahead == PAIR_COLUMNS;
    s->has_lanes = s->has_vehicles && s->choices == LANE_CHOICES && beside == PAIR_COLUMNS;
    s->has_signals = !s->has_vehicles && s->choices > 0 && phases >= PHASE_COLUMNS;
    if (!s->has_vehicles && !s->has_signals) {
        return DT_FAIL_H(h, DT_ESHAPE,
                         "shield_barrier needs an environment of vehicles, 1 continuous action and \"ahead\" [A 3 7], "
                         "or of signals, choices and \"phases\" [A choices %d]; this one has continuous %lld and %lld "
                         "columns of ahead, choices %lld and %lld columns of phases",
                         PHASE_COLUMNS, (long long)continuous, (long long)ahead, (long long)s->choices,
                         (long long)phases);
    }
    snprintf(s->phases_dims, TEXT, "A %lld %lld", (long long)s->choices, (long long)phases);
    s->has_service = s->has_signals && controller_dim(dims, n_dims, "service", 0) == SERVICE_COLUMNS;
    snprintf(s->service_dims, TEXT, "A %lld %d", (long long)s->choices, SERVICE_COLUMNS);
    snprintf(s->allow_dims, TEXT, "A %lld", (long long)s->choices);
    if (s->has_vehicles) {
        add_input(s, "ahead", "A 3 7", AHEAD_ROWS * PAIR_COLUMNS);
        add_output(s, "low", "A 1");
        add_output(s, "high", "A 1");
    }
    if (s->has_lanes) {
        add_input(s, "beside", "A 4 7", BESIDE_ROWS * PAIR_COLUMNS);
    }
    if (s->has_signals) {
        add_input(s, "phases", s->phases_dims, s->choices * phases);
    }
    if (s->has_service) {
        add_input(s, "service", s->service_dims, 0); /* the learned barrier does without */
    }
    if (s->has_lanes || s->has_signals) {
        add_output(s, "allow", s->allow_dims);
    }
    add_output(s, "barrier", "A");
    return s->has_vehicles && s->config.look_ahead_mps2 > 0 ? add_foreseen_input(s, h, dims, n_dims) : DT_OK;
}

static const dt_port *inputs(const void *self, uint32_t *n_p)
{
    const state *s = self;
    *n_p = s->n_in;
    return s->in;
}

static const dt_port *outputs(const void *self, uint32_t *n_p)
{
    const state *s = self;
    *n_p = s->n_out;
    return s->out;
}

static dt_status params(void *self, dt_params *reg)
{
    const state *s = self;
    DT_TRY_H(controller_add(reg, "barrier.hidden", s->config.hidden, s->n_features, CONTROLLER_HIDDEN_GAIN));
    return controller_add(reg, "barrier.out", 1, s->config.hidden, 0.01);
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

static dt_tensor *scale_by(dt_graph *g, dt_tensor *x, double factor)
{
    return dt_affine(g, x, factor, 0.0);
}

static dt_tensor *record_minimum(dt_graph *g, dt_tensor *a, dt_tensor *b)
{
    return dt_binary(g, DT_BIN_MIN, a, b);
}

static dt_tensor *clamp_below(dt_graph *g, dt_tensor *x, double bound)
{
    return dt_clamp(g, x, bound, INFINITY);
}

static dt_tensor *square_root(dt_graph *g, dt_tensor *x) /* x > 0 */
{
    return dt_unary(g, DT_FN_EXP, scale_by(g, dt_unary(g, DT_FN_LOG, x, 0), 0.5), 0);
}

static dt_tensor *reciprocal(dt_graph *g, dt_tensor *x) /* x > 0 */
{
    return dt_unary(g, DT_FN_EXP, scale_by(g, dt_unary(g, DT_FN_LOG, x, 0), -1.0), 0);
}

/* 1 where x >= 1 / SHARP, 0 where x <= 0 */
static dt_tensor *is_positive(dt_graph *g, dt_tensor *x)
{
    return dt_clamp(g, scale_by(g, x, SHARP), 0.0, 1.0);
}

static dt_tensor *one_minus(dt_graph *g, dt_tensor *x)
{
    return dt_affine(g, x, -1.0, 1.0);
}

/* [A, n] to [A, 1] by BIN_MIN or BIN_MAX */
static dt_tensor *reduce_columns(dt_graph *g, uint32_t fn, dt_tensor *x, int64_t n)
{
    for (; n > 1; n -= n / 2) {
        dt_tensor *pairs = dt_binary(g, fn, dt_slice(g, x, 0, n / 2), dt_slice(g, x, n - n / 2, n / 2));
        if (n % 2 == 0) {
            x = pairs;
        } else {
            dt_tensor *all[2] = {pairs, dt_slice(g, x, n / 2, 1)};
            x = dt_concat(g, all, 2);
        }
    }
    return x;
}

/* column k of x [A, n, columns]: [A, n] */
static dt_tensor *slice_column(dt_graph *g, dt_tensor *x, int64_t k)
{
    return dt_merge(g, dt_slice(g, x, k, 1));
}

/* ---- vehicles ---------------------------------------------------------------------------------------------------- */

/* pairs [A, n, 7] to the largest safe acceleration of each follower, [A, n]. more: [A, 1] m added to gap_m, or NULL.
 * Formula and symbols: at the top. */
static dt_tensor *safe_acceleration(const config *c, dt_graph *g, dt_tensor *pairs, dt_tensor *more)
{
    dt_tensor *gap = dt_affine(g, slice_column(g, pairs, GAP), 1.0, -c->gap_m);
    dt_tensor *u = slice_column(g, pairs, LEADER), *v = slice_column(g, pairs, FOLLOWER);
    dt_tensor *B = clamp_below(g, slice_column(g, pairs, LEADER_BRAKE), LEAST_MPS2);
    dt_tensor *b = record_minimum(
        g, clamp_below(g, scale_by(g, slice_column(g, pairs, FOLLOWER_BRAKE), COUNTED_ON), LEAST_MPS2), B);
    dt_tensor *tau = slice_column(g, pairs, ACTION_S), *e = slice_column(g, pairs, EULER_S);
    gap = more != NULL ? dt_sub(g, gap, more) : gap;

    /* D, then R */
    dt_tensor *leader_way = scale_by(g, dt_mul(g, dt_mul(g, u, u), reciprocal(g, B)), 0.5);
    dt_tensor *own_way = scale_by(g, dt_mul(g, dt_mul(g, v, v), reciprocal(g, b)), 0.5);
    dt_tensor *euler =
        dt_sub(g, scale_by(g, dt_mul(g, dt_sub(g, v, u), e), 0.5), scale_by(g, dt_mul(g, b, dt_mul(g, e, e)), 0.125));
    dt_tensor *way = dt_add(g, dt_add(g, gap, leader_way), euler);
    if (c->alpha < 1) {
        way = dt_sub(g, way, scale_by(g, dt_relu(g, dt_sub(g, way, own_way)), 1 - c->alpha));
    }

    /* the speed after the step that still stops in R, and the braking that stops within the step */
    dt_tensor *half = scale_by(g, dt_mul(g, b, tau), 0.5), *step = dt_mul(g, v, tau);
    dt_tensor *under = dt_add(g, dt_mul(g, half, half), dt_mul(g, b, dt_sub(g, scale_by(g, way, 2.0), step)));
    dt_tensor *speed = dt_relu(g, dt_sub(g, square_root(g, clamp_below(g, under, LEAST_M * LEAST_M)), half));
    dt_tensor *short_way = clamp_below(g, record_minimum(g, way, scale_by(g, step, 0.5)), LEAST_M);
    dt_tensor *stop = scale_by(g, dt_mul(g, dt_mul(g, v, v), reciprocal(g, short_way)), 0.5);
    return dt_clamp(g, dt_sub(g, dt_mul(g, speed, reciprocal(g, tau)), stop), -MOST_MPS2, MOST_MPS2);
}

/* foreseen [A, 2F], pairs [A, n, 7] whose first row is the vehicle ahead: the bound of look-ahead, [A, 1]. */
static dt_tensor *foreseen_acceleration(const state *s, dt_graph *g, dt_tensor *pairs, dt_tensor *foreseen)
{
    const double c = s->config.look_ahead_mps2;
    dt_tensor *gap = dt_affine(g, dt_slice(g, slice_column(g, pairs, GAP), 0, 1), 1.0, -s->config.gap_m);
    dt_tensor *v = dt_slice(g, slice_column(g, pairs, FOLLOWER), 0, 1),
              *tau = dt_slice(g, slice_column(g, pairs, ACTION_S), 0, 1);
    dt_tensor *along = dt_slice(g, foreseen, 0, s->F);
    dt_tensor *sigma = dt_unary(g, DT_FN_EXP, dt_slice(g, foreseen, s->F, s->F), 0);
    dt_tensor *way = dt_add(g, dt_sub(g, along, scale_by(g, sigma, s->config.look_ahead_z)), gap); /* R_t */

    /* t, m and t - m, [A, F] */
    dt_tensor *t = dt_merge(g, dt_cumsum(g, dt_split(g, dt_affine(g, along, 0.0, s->dt_s), 0)));
    dt_tensor *m = record_minimum(g, t, tau), *rest = dt_sub(g, t, m);

    /* while it moves; where it stands by then */
    dt_tensor *spare = dt_sub(g, way, dt_mul(g, t, v));
    spare = dt_add(g, spare, scale_by(g, dt_mul(g, rest, rest), 0.5 * c));
    dt_tensor *a = dt_mul(g, spare, reciprocal(g, dt_mul(g, m, dt_sub(g, t, scale_by(g, m, 0.5)))));
    dt_tensor *moves = is_positive(g, dt_sub(g, dt_add(g, dt_mul(g, a, tau), v), scale_by(g, rest, c)));
    dt_tensor *half = scale_by(g, tau, 0.5 * c), *step = dt_mul(g, v, tau);
    dt_tensor *under = dt_add(g, dt_sub(g, scale_by(g, way, 2 * c), scale_by(g, step, c)), dt_mul(g, half, half));
    dt_tensor *speed = dt_relu(g, dt_sub(g, square_root(g, clamp_below(g, under, LEAST_M * LEAST_M)), half));
    dt_tensor *stops = dt_mul(g, dt_sub(g, speed, v), reciprocal(g, tau));
    dt_tensor *both = dt_add(g, dt_mul(g, a, moves), dt_mul(g, stops, one_minus(g, moves)));
    return dt_clamp(g, reduce_columns(g, DT_BIN_MIN, both, s->F), -c, MOST_MPS2);
}

/* Adds choices to allow and bounds high so that it holds for all that are allowed; NULL: lanes are not chosen. */
static dt_tensor *guard_lanes(const config *c, dt_graph *g, dt_tensor *beside, dt_tensor *more, dt_tensor **high)
{
    dt_tensor *safe = safe_acceleration(c, g, beside, more); /* [A, 4] */
    dt_tensor *allow[LANE_CHOICES] = {dt_affine(g, *high, 0.0, 1.0)};
    for (int side = 0; side < 2; side++) {
        dt_tensor *own = dt_slice(g, safe, 2 * side, 1), *other = dt_slice(g, safe, 2 * side + 1, 1);
        dt_tensor *spare =
            record_minimum(g, dt_affine(g, own, 1.0, -c->change_mps2), dt_affine(g, other, 1.0, -c->rear_mps2));
        dt_tensor *bound = dt_add(g, own, scale_by(g, one_minus(g, is_positive(g, spare)), 2 * MOST_MPS2));
        *high = record_minimum(g, *high, bound);
        allow[1 + side] = dt_relu(g, dt_affine(g, spare, SHARP, -1.0)); /* only where the bound holds whole */
    }
    return dt_concat(g, allow, LANE_CHOICES);
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

typedef struct signals { /* [A, P], unless marked [A, 1]; 0 or 1, or s */
    dt_tensor *waited, *green, *is_green, *is_sound, *askable;
    dt_tensor *is_lonely, *is_needed; /* serves vehicles that only have conflicting phases; and now */
    dt_tensor *change_s, *least_s;    /* [A, 1] Y and S; NULL where they are not provided */
} signals;

static dt_tensor *at_least_one_of(dt_graph *g, dt_tensor *a, dt_tensor *b)
{
    return dt_binary(g, DT_BIN_MAX, a, b);
}

static signals read_signals(const state *s, dt_graph *g, dt_tensor *phases, dt_tensor *service, dt_tensor *more)
{
    signals x = {.waited = s->has_service ? slice_column(g, service, BEST_WAITED_S) : slice_column(g, phases, WAITED_S),
                 .green = slice_column(g, phases, GREEN_S)};
    x.waited = more != NULL ? dt_add(g, x.waited, more) : x.waited;
    x.is_sound = one_minus(g, is_positive(g, slice_column(g, phases, CONFLICTS)));
    x.is_green = is_positive(g, dt_affine(g, x.green, 1.0, 0.5)); /* -1 where it is not */
    x.askable = is_positive(g, slice_column(g, phases, ASKABLE));
    if (s->has_service) {
        x.is_needed = at_least_one_of(g, is_positive(g, slice_column(g, service, LONELY_S)), x.is_green);
        x.is_needed = dt_mul(g, x.is_needed, slice_column(g, service, LONELY));
        x.change_s = dt_slice(g, slice_column(g, service, CHANGE_S), 0, 1);
        x.least_s = dt_slice(g, slice_column(g, service, LEAST_S), 0, 1);
        /* the environment's least green may be shorter than this shield's */
        dt_tensor *rest = dt_affine(g, dt_sub(g, x.change_s, x.least_s), 1.0, s->config.min_green_s);
        x.least_s = dt_add(g, x.least_s, dt_mul(g, is_positive(g, rest), x.least_s));
    }
    return x;
}

/* [A, 1]: column p of x [A, P] */
static dt_tensor *column_of_phase(dt_graph *g, dt_tensor *x, int64_t p)
{
    return dt_slice(g, x, p, 1);
}

/* 1 for the first phase of all that would end one and the same wait, [A, P] */
static dt_tensor *first_of_wait(dt_graph *g, dt_tensor *waited, int64_t P)
{
    dt_tensor *first = NULL;
    for (int64_t p = 0; p < P; p++) {
        dt_tensor *here = column_of_phase(g, waited, p), *is_first = dt_affine(g, here, 0.0, 1.0);
        for (int64_t q = 0; q < p; q++) {
            dt_tensor *apart = dt_sub(g, here, column_of_phase(g, waited, q));
            apart = at_least_one_of(g, apart, scale_by(g, apart, -1.0));
            is_first = record_minimum(g, is_first, is_positive(g, dt_affine(g, apart, 1.0, -SAME_S)));
        }
        dt_tensor *both[2] = {first, is_first};
        first = first == NULL ? is_first : dt_concat(g, both, 2);
    }
    return first;
}

/* r_p S, [A, P] */
static dt_tensor *services_before(dt_graph *g, const signals *x, dt_tensor *waited, int64_t P)
{
    dt_tensor *first = first_of_wait(g, waited, P), *sum = NULL;
    for (int64_t q = 0; q < P; q++) {
        dt_tensor *more =
            dt_add(g, scale_by(g, waited, -1.0), dt_affine(g, column_of_phase(g, waited, q), 1.0, -SAME_S));
        dt_tensor *counts = dt_mul(g, is_positive(g, more), column_of_phase(g, first, q));
        sum = sum == NULL ? counts : dt_add(g, sum, counts);
    }
    return dt_mul(g, sum, x->least_s);
}

/* phases [A, P, F], service [A, P, 5] to what may be asked for, [A, P]. more: [A, 1] s added to the time waited, or
 * NULL; service NULL where there is none. */
static dt_tensor *guard_signals(const state *s, dt_graph *g, dt_tensor *phases, dt_tensor *service, dt_tensor *more)
{
    const config *c = &s->config;
    const int64_t P = s->choices;
    const signals x = read_signals(s, g, phases, service, more);
    dt_tensor *is_fit = s->has_service ? at_least_one_of(g, x.is_sound, x.is_needed) : x.is_sound;
    dt_tensor *is_young = dt_mul(g, x.is_green, is_positive(g, dt_affine(g, x.green, -1.0, c->min_green_s)));
    is_young = s->has_service ? dt_mul(g, is_young, is_fit) : is_young;
    dt_tensor *has_young = reduce_columns(g, DT_BIN_MAX, is_young, P);

    /* those that wait and can be served now; and those whose time has come */
    dt_tensor *waits = dt_mul(g, x.waited, dt_mul(g, is_fit, one_minus(g, x.is_green)));
    dt_tensor *helped = dt_mul(g, waits, dt_mul(g, x.askable, one_minus(g, has_young)));
    dt_tensor *is_due = is_positive(g, dt_affine(g, helped, 1.0, -c->starvation_s));
    if (s->has_service) {
        dt_tensor *later =
            dt_add(g, dt_add(g, services_before(g, &x, helped, P), helped), dt_add(g, x.least_s, x.change_s));
        is_due = dt_mul(g, is_positive(g, helped), is_positive(g, dt_affine(g, later, 1.0, -c->starvation_s)));
    }
    dt_tensor *has_due = reduce_columns(g, DT_BIN_MAX, is_due, P), *longest = reduce_columns(g, DT_BIN_MAX, helped, P);
    dt_tensor *is_longest = is_positive(g, dt_add(g, helped, dt_affine(g, longest, -1.0, SAME_S)));
    is_longest = dt_mul(g, is_longest, is_positive(g, helped));

    dt_tensor *allow = dt_mul(g, is_fit, dt_add(g, is_young, one_minus(g, has_young)));
    allow = dt_mul(g, allow, dt_add(g, dt_mul(g, is_longest, has_due), one_minus(g, has_due)));
    if (c->max_green_s > 0) {
        allow = dt_mul(g, allow, is_positive(g, dt_affine(g, x.green, -1.0, c->max_green_s)));
    }
    allow = is_positive(g, dt_affine(g, allow, 1.0, -0.5));
    if (!s->has_service) {
        return allow;
    }
    dt_tensor *late = is_positive(
        g, dt_affine(g, dt_add(g, waits, dt_mul(g, is_positive(g, waits), x.change_s)), 1.0, -c->starvation_s));
    dt_tensor *harm = at_least_one_of(g, late, dt_mul(g, x.is_needed, one_minus(g, x.is_sound)));
    return dt_sub(g, allow, reduce_columns(g, DT_BIN_MAX, harm, P));
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

/* [A, 1] */
static dt_tensor *learned_barrier(const state *s, dt_graph *g, dt_tensor *const *in)
{
    static const double scale = 0.1, most = 10; /* of metres, seconds, m/s alike */
    dt_tensor *part[MAX_PORTS];
    const uint32_t n = s->F > 0 || s->has_service ? s->n_in - 1 : s->n_in;
    for (uint32_t i = 0; i < n; i++) {
        part[i] = dt_clamp(g, scale_by(g, dt_merge(g, in[i]), scale), -most, most);
    }
    dt_tensor *x = n > 1 ? dt_concat(g, part, n) : part[0];
    return controller_linear(g, dt_relu(g, controller_linear(g, x, "barrier.hidden")), "barrier.out");
}

static dt_status forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const state *s = self;
    dt_tensor *barrier = learned_barrier(s, g, in);
    dt_tensor *more = s->config.learned ? dt_relu(g, scale_by(g, barrier, -1.0)) : NULL;
    dt_tensor *allow = NULL;
    uint32_t n = 0;
    if (s->has_vehicles) {
        dt_tensor *high = reduce_columns(g, DT_BIN_MIN, safe_acceleration(&s->config, g, in[0], more), AHEAD_ROWS);
        if (s->F > 0) {
            high = record_minimum(g, high, foreseen_acceleration(s, g, in[0], in[s->n_in - 1]));
        }
        if (s->has_lanes) {
            allow = guard_lanes(&s->config, g, in[1], more, &high);
        }
        dt_tensor *brake = dt_slice(g, slice_column(g, in[0], FOLLOWER_BRAKE), 0, 1);
        out[n++] = record_minimum(g, high, scale_by(g, brake, -1.0));
        out[n++] = high;
    } else {
        allow = guard_signals(s, g, in[0], s->has_service ? in[1] : NULL, more);
    }
    if (allow != NULL) {
        out[n++] = allow;
    }
    out[n++] = dt_merge(g, barrier);
    return g->api->status(g);
}

DT_MODEL_DEFINE(component, "shield_barrier", "safe accelerations, lanes and phases in closed form",
                "Ames et al. 2017; Agrawal & Sreenath 2017; Shalev-Shwartz et al. "
                "2017 (RSS)",
                config, state, options,
                DT_OPS(.create = create, .inputs = inputs, .outputs = outputs, .params = params, .forward = forward,
                       .destroy = dt_no_op),
                .role = "shield", .flags = DT_COMP_DETERMINISTIC, .check = check);

DT_PLUGIN_DEFINE_ONE(component, "shield_barrier", "1.0", "dtrain", "Apache-2.0");
