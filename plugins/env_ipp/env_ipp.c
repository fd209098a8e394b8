/* SPDX-License-Identifier: Apache-2.0
 *
 * env_ipp: several UAVs fly over a field and find out where it is of interest (informative path planning).
 *
 * Written from the rules of Westheider, Rueckin & Popovic 2023 (IROS, arXiv 2303.01150); no code of others is in it.
 *
 *   field      cells by cells, of which a share is of interest: a half plane on one of four sides, or patches
 *   places     points of a lattice, step_m apart, at three altitudes, which are step_m apart too. An episode begins at
 *              the top, over points of the lattice drawn without a place taken twice
 *   camera     a square of 2 tan(fov/2) times the altitude; every cell in it is measured, wrong with the error rate of
 *              the altitude. Fusion, entropy, weights: field.h
 *   moves      0 east 1 west 2 north 3 south 4 up 5 down, by one point; budget + 1 of them, all at the same time.
 *              Masked: what leads out of the field, and places where another UAV is now (unless nothing else is left)
 *   collision  moves are made in the order of the UAVs. A UAV that moves to a place that another one holds at that
 *   moment
 *              stays where it is and measures there again; both are charged one "collision". So no two are ever in
 *              one place, and a UAV that keeps to the mask collides only where two choose the same free place at the
 *              same time, or where others are all around
 *   messages   after every move, measurements reach the UAVs within communication_m (in space). Each UAV believes what
 *              it measured and received (belief.h); the map of all measurements (field.h) is what the reward is of
 *   reward     the same for all: reward_scale * (sum w (H before - H after) / sum w H before) - reward_offset, sums
 *              over the map before and after the measurements of a moment, weights w of the map after it
 *
 * rewarded = "after" counts the measurements that a move leads to; those at the start are not chosen and earn
 * nothing. rewarded = "before" counts those made before the move, as published: the last move then earns nothing, and
 * what a move earns does not depend on it. The default is "after", since a reward that comes with its action is what
 * algorithms expect; both give budget + 1 rewards. The sum of rewards does not telescope: each is relative to the
 * entropy that was left.
 *
 *   obs        "A D" f32, D = 7 points^2 (+ 6): seven planes of the lattice (observe.c), with lookahead also the gain
 *              of each move
 *   moves      "A 6 2" f32: of each move 0 the expected gain of the measurement there, by what the UAV believes,
 *              relative to one bit in every cell of the largest footprint; 1 a number in [0,1) drawn for it. For rules
 *   state      "G F" f32, one row, with the option state: the field as a centralised critic may know it
 *   agent_state "A" i32: its row of state
 *   end        terminated after budget + 1 moves: the budget, which is observed, is used up and nothing follows (time
 *              limits that are part of the task: Pardo et al. 2018, arXiv 1712.00378)
 *   metrics    entropy_* and f1_*: mean entropy of the cells of interest, and F1 of p > 1/2, after a third, two thirds
 *              and all of the moves; low, middle, high: shares of altitudes after moves; collisions: moves refused
 *
 * What differs from the published set-up: UAVs choose at the same time, so that a mask cannot know what others choose
 * now; all of them start at random points; log-odds are integers of 1/1024; what UAVs believe is kept at every
 * stride-th cell. An episode depends on its seed and the actions alone.
 */
#include "env_ipp.h"

enum { START_STREAM = 1, CHANCE_STREAM = 3, TRUTH_STREAM = 0, MOST_SAMPLES = 256 };

static const char *const truths[] = {"half_plane", "patches", NULL};
static const char *const rewards[] = {"after", "before", NULL};
static const char *const views[] = {"field", "own", NULL};

typedef ipp_config config;

static const dt_option options[] = {
    DT_OPTION(config, uavs, DT_OPT_I64, "4", "UAVs", 1, IPP_UAVS, NULL, "number of UAVs"),
    DT_OPTION(config, budget, DT_OPT_I64, "14", "moves", 1, 100000, NULL,
              "an episode has one move more than this (arXiv 2303.01150: 14)"),
    DT_OPTION(config, field_m, DT_OPT_F64, "50", "m", 10, 10000, NULL, "side of the field"),
    DT_OPTION(config, cells, DT_OPT_I64, "493", "cells", 16, FIELD_MAX_CELLS, NULL,
              "cells along a side; time and memory grow with their square"),
    DT_OPTION(config, step_m, DT_OPT_F64, "5", "m", 0.5, 1000, NULL,
              "spacing of the lattice and of the altitudes; the lowest altitude is one step"),
    DT_OPTION(config, fov_deg, DT_OPT_F64, "60", "degrees", 1, 170, NULL, "angle of view of the camera"),
    DT_OPTION(config, noise_low, DT_OPT_F64, "0.01", "1", FIELD_CLAMP, 0.5, NULL,
              "share of cells measured wrong from the lowest altitude, to 1/32768; 0.5 carries no information"),
    DT_OPTION(config, noise_middle, DT_OPT_F64, "0.265", "1", FIELD_CLAMP, 0.5, NULL, "the same from the middle one"),
    DT_OPTION(config, noise_high, DT_OPT_F64, "0.375", "1", FIELD_CLAMP, 0.5, NULL, "the same from the highest one"),
    DT_OPTION(config, communication_m, DT_OPT_F64, "25", "m", 0, 1e6, NULL,
              "measurements reach UAVs within this distance; 0: none, twice the field or more: all"),
    DT_OPTION(config, truth, DT_OPT_ENUM, "half_plane", NULL, 0, 0, truths,
              "area of interest: one side of a line, or patches of a random field, which is harder"),
    DT_OPTION(config, covered_min, DT_OPT_F64, "0.3", "1", 0.01, 0.99, NULL, "minimum share of the field of interest"),
    DT_OPTION(config, covered_max, DT_OPT_F64, "0.6", "1", 0.01, 0.99, NULL,
              "maximum share; the share is uniform between both"),
    DT_OPTION(config, patch_m, DT_OPT_F64, "12", "m", 0.5, 10000, NULL,
              "truth = \"patches\": from a knot of the random field to the next (at most 64 in a row)"),
    DT_OPTION(config, rewarded, DT_OPT_ENUM, "after", NULL, 0, 0, rewards,
              "measurements that a move is rewarded for: those after it, or those before it, as published, with no "
              "reward for the last move"),
    DT_OPTION(config, reward_scale, DT_OPT_F64, "22", "1", 0, 1e6, NULL, "reward of removing all weighted entropy"),
    DT_OPTION(config, reward_offset, DT_OPT_F64, "0.5", "1", -1e6, 1e6, NULL, "cost of every move"),
    DT_OPTION(config, view, DT_OPT_ENUM, "field", NULL, 0, 0, views,
              "planes of observations: the whole field, or the same size centred on the UAV"),
    DT_OPTION(config, stride, DT_OPT_I64, "4", "cells", 1, 64, NULL,
              "subsampling of a UAV's belief map, in cells and rows; 1: all, slower"),
    DT_OPTION(config, lookahead, DT_OPT_BOOL, "false", NULL, 0, 0, NULL,
              "obs also holds the expected gain of each move, which the greedy rule follows"),
    DT_OPTION(config, state, DT_OPT_BOOL, "false", NULL, 0, 0, NULL,
              "the state of the whole field too, for a centralised critic"),
    DT_OPTION_END};

/* ---- options together -------------------------------------------------------------------------------------------- */

static dt_status check(const dt_host *h, const void *cfg)
{
    const config *c = cfg;
    const double points = floor(c->field_m / c->step_m + 1e-9) + 1, step = c->step_m / c->field_m * (double)c->cells;
    if (points < 3 || points > IPP_MAX_POINTS) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "field_m %g and step_m %g make a lattice of %g points in a row, expected 3 to %d: set step_m "
                         "between %g and %g",
                         c->field_m, c->step_m, points, IPP_MAX_POINTS, c->field_m / (IPP_MAX_POINTS - 1),
                         c->field_m / 2);
    }
    if (c->stride > step / 2) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "stride %lld leaves points of the lattice without a cell: a step is %g cells and must be at "
                         "least two strides; set a smaller stride, or cells to %g or more",
                         (long long)c->stride, step, ceil(2 * (double)c->stride * c->field_m / c->step_m));
    }
    if (step / (double)c->stride > MOST_SAMPLES) {
        return DT_FAIL_H(h, DT_ECONFIG, "a step of %g cells with stride %lld is finer than %d samples: raise stride",
                         step, (long long)c->stride, MOST_SAMPLES);
    }
    if (c->truth == IPP_PATCHES && c->patch_m > c->field_m) {
        return DT_FAIL_H(h, DT_ECONFIG, "patch_m %g is more than the field, field_m %g: it would have no patches",
                         c->patch_m, c->field_m);
    }
    if (step * tan(c->fov_deg * M_PI / 360) < 1) {
        return DT_FAIL_H(h, DT_ECONFIG, "fov_deg %g sees less than two cells from the lowest altitude, %g m",
                         c->fov_deg, c->step_m);
    }
    return c->covered_min <= c->covered_max
               ? DT_OK
               : DT_FAIL_H(h, DT_ECONFIG, "covered_min %g is above covered_max %g", c->covered_min, c->covered_max);
}

/* ---- create ------------------------------------------------------------------------------------------------------ */

static void set_levels(ipp *s)
{
    const config *c = &s->config;
    const double error[FIELD_LEVELS] = {c->noise_low, c->noise_middle, c->noise_high};
    for (int k = 0; k < FIELD_LEVELS; k++) {
        const double metres = c->step_m * (k + 1);
        const double half = metres * tan(c->fov_deg * M_PI / 360) / c->field_m * (double)c->cells;
        s->level[k] = (field_level){.metres = metres,
                                    .error = error[k],
                                    .half = (int32_t)fmin(half, (double)c->cells),
                                    .odds = (int16_t)-field_odds(error[k]),
                                    .flip = (int16_t)lround(error[k] * 32768)};
    }
}

/* The belief of each UAV: with all in range always, there is one belief. */
static void set_beliefs(ipp *s)
{
    const config *c = &s->config;
    const double far = hypot(hypot(c->field_m, c->field_m), (FIELD_LEVELS - 1) * c->step_m);
    const bool is_one = c->communication_m >= far || c->uavs == 1;
    s->observes_all = is_one ? 0 : ipp_n(s);
    s->n_beliefs = is_one ? 1 : ipp_n(s) + (c->state != 0);
}

static void set_ports(ipp *s)
{
    snprintf(s->obs_text, sizeof(s->obs_text), "A %lld", (long long)ipp_obs_columns(s));
    snprintf(s->state_text, sizeof(s->state_text), "G %lld", (long long)ipp_state_columns(s));
    s->obs[0] = (dt_port){"obs", s->obs_text, DT_F32, 0};
    s->obs[1] = (dt_port){"moves", "A 6 2", DT_F32, 0};
    s->obs[2] = (dt_port){"state", s->state_text, DT_F32, 0};
    s->obs[3] = (dt_port){"agent_state", "A", DT_I32, DT_PORT_INDEX(1)};
    s->symbols[0] = (dt_dim){"G", 1};
}

static void describe_column(ipp *s, const char *port, const char *name, const char *unit, const char *meaning,
                            double high, uint32_t *first, uint32_t n)
{
    s->column[s->n_columns++] = (dt_column){port, name, unit, meaning, 0, high, *first, n, 1, 0};
    *first += n;
}

static void describe_columns(ipp *s)
{
    static const char *const planes[IPP_PLANES][3] = {
        {"place", "0 or 1", "1 at the UAV (view own: 1 inside the field)"},
        {"others", "share", "altitude of UAVs within communication_m, relative to the highest"},
        {"altitude", "share", "own altitude, relative to the highest"},
        {"budget", "share", "moves left"},
        {"probability", "1", "belief that the tile is of interest"},
        {"entropy", "bits", "entropy of the belief"},
        {"footprint", "share", "of the tile that the UAV sees now"}};
    const uint32_t n = (uint32_t)(s->points * s->points);
    uint32_t at = 0;
    for (int i = 0; i < IPP_PLANES; i++) {
        describe_column(s, "obs", planes[i][0], planes[i][1], planes[i][2], 1, &at, n);
    }
    if (s->config.lookahead) {
        describe_column(s, "obs", "gain", "share", "expected information gain of each move", INFINITY, &at, IPP_MOVES);
    }
    at = 0;
    describe_column(s, "moves", "gain", "share", "expected information gain of the move", INFINITY, &at, 1);
    describe_column(s, "moves", "chance", "1", "random number for rules", 1, &at, 1);
    if (s->config.state) {
        at = 0;
        describe_column(s, "state", "truth", "share", "of each tile that is of interest", 1, &at, n);
        describe_column(s, "state", "probability", "1", "belief by all measurements", 1, &at, n);
        describe_column(s, "state", "entropy", "bits", "entropy of this belief", 1, &at, n);
        describe_column(s, "state", "uavs", "share", "x, y and altitude of each UAV", 1, &at,
                        IPP_STATE_OF_UAV * ipp_n(s));
        describe_column(s, "state", "budget", "share", "moves left", 1, &at, 1);
        at = 0;
        describe_column(s, "agent_state", "row", "row", "row of state", 0, &at, 1);
    }
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    ipp *s = self;
    s->h = h;
    s->config = *(const config *)cfg;
    const config *c = &s->config;
    s->points = (int32_t)floor(c->field_m / c->step_m + 1e-9) + 1;
    s->moves = c->budget + 1;
    s->step_cells = c->step_m / c->field_m * (double)c->cells;
    set_levels(s);
    set_beliefs(s);
    set_ports(s);
    describe_columns(s);
    DT_TRY_H(field_init(&s->field, h, (int32_t)c->cells));
    DT_TRY_H(belief_tables_init(&s->tables, h, &s->field, s->level, (int32_t)c->stride, s->points, s->step_cells));
    for (uint32_t i = 0; i < s->n_beliefs; i++) {
        DT_TRY_H(belief_init(&s->belief[i], h, &s->tables));
    }
    const int64_t room = belief_samples(&s->tables, s->level[FIELD_LEVELS - 1].half);
    for (uint32_t i = 0; i < ipp_n(s); i++) {
        s->view[i].stride = (int32_t)c->stride;
        s->view[i].seen = h->alloc(h, (uint64_t)room * sizeof(*s->view[i].seen));
        if (s->view[i].seen == NULL) {
            return DT_FAIL_H(h, DT_ENOMEM, "out of memory for a measurement of %lld samples", (long long)room);
        }
    }
    return DT_OK;
}

static void destroy(void *self)
{
    ipp *s = self;
    if (s->h == NULL) {
        return;
    }
    for (uint32_t i = 0; i < IPP_UAVS; i++) {
        s->h->release(s->h, s->view[i].seen);
    }
    for (uint32_t i = 0; i <= IPP_UAVS; i++) {
        belief_fini(&s->belief[i], s->h);
    }
    belief_tables_fini(&s->tables, s->h);
    field_fini(&s->field, s->h);
}

static dt_status spec(const void *self, dt_env_spec *out)
{
    static const int32_t choices[] = {IPP_MOVES};
    static const char *const costs[] = {"collision"};
    static const char *const metrics[] = {
        "entropy_third", "entropy_two_thirds", "entropy_end", "f1_third", "f1_two_thirds", "f1_end", "low", "middle",
        "high",          "collisions"};
    const ipp *s = self;
    out->n_agents = ipp_n(s);
    out->obs = s->obs;
    out->n_obs = s->config.state ? 4 : 2;
    out->symbols = s->symbols;
    out->n_symbols = s->config.state != 0;
    out->choices = choices;
    out->n_heads = 1;
    out->costs = costs;
    out->n_costs = 1;
    out->metrics = metrics;
    out->n_metrics = sizeof(metrics) / sizeof(metrics[0]);
    out->max_steps = (uint32_t)s->moves;
    out->columns = s->column;
    out->n_columns = s->n_columns;
    return DT_OK;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* All moves, in the order of the UAVs; charges collisions. */
static void move_all(ipp *s, const dt_env_io *io)
{
    static const float turn[] = {0, (float)M_PI, (float)(0.5 * M_PI), (float)(-0.5 * M_PI)};
    for (uint32_t i = 0; i < ipp_n(s); i++) {
        ipp_place to;
        (void)ipp_target(s, &s->place[i], io->act_i[i], &to);
        const uint32_t other = ipp_occupant(s, i, &to);
        if (other < ipp_n(s)) {
            io->cost[i] += 1;
            io->cost[other] += 1;
            s->episode.n_collisions++;
        } else {
            s->place[i] = to;
            s->heading[i] = io->act_i[i] < IPP_UP ? turn[io->act_i[i]] : s->heading[i];
        }
        s->episode.n_at_level[s->place[i].level]++;
    }
}

static void place_all(ipp *s)
{
    dt_random r;
    dt_random_init(&r, s->seed, START_STREAM);
    for (uint32_t i = 0; i < ipp_n(s); i++) {
        s->heading[i] = 0;
        s->place[i].x = -1; /* nowhere, for those before it */
    }
    for (uint32_t i = 0; i < ipp_n(s); i++) {
        ipp_place at;
        do {
            at.x = (int32_t)dt_random_below(&r, (uint32_t)s->points);
            at.y = (int32_t)dt_random_below(&r, (uint32_t)s->points);
            at.level = FIELD_LEVELS - 1;
        } while (ipp_occupant(s, i, &at) < ipp_n(s));
        s->place[i] = at;
    }
}

/* ---- measurements ------------------------------------------------------------------------------------------------ */

static void share_measurements(ipp *s, uint32_t to, uint32_t from)
{
    belief_add(&s->belief[to], &s->tables, &s->view[from]);
}

/* All measure where they are and send it to each other; the reward for that. */
static double measure_all(ipp *s)
{
    field_worth worth;
    for (uint32_t i = 0; i < ipp_n(s); i++) {
        s->view[i].at = ipp_footprint(s, &s->place[i]);
        s->view[i].level = s->place[i].level;
        field_noise_init(&s->view[i].noise, s->seed, (uint32_t)s->step, i);
    }
    field_measure(&s->field, s->view, ipp_n(s), s->level, &worth);
    for (uint32_t from = 0; from < ipp_n(s); from++) {
        for (uint32_t to = 0; to < s->n_beliefs; to++) {
            if (to == s->observes_all || ipp_receives(s, to, from)) {
                share_measurements(s, to, from);
            }
        }
    }
    const double share = worth.before > 0 ? (double)worth.gained / (double)worth.before : 0;
    return s->config.reward_scale * share - s->config.reward_offset;
}

static void draw_truth(ipp *s)
{
    const config *c = &s->config;
    dt_random r;
    dt_random_init(&r, s->seed, TRUTH_STREAM);
    const double share = dt_random_between(&r, c->covered_min, c->covered_max);
    if (c->truth == IPP_HALF_PLANE) {
        field_half_plane(&s->field, dt_random_below(&r, 4), share);
    } else {
        field_patches(&s->field, s->seed, (int32_t)fmin(lround(c->field_m / c->patch_m) + 1, 65), share);
    }
}

/* ---- an episode -------------------------------------------------------------------------------------------------- */

static dt_status reset(void *self, const dt_env_io *io, uint64_t seed)
{
    ipp *s = self;
    s->seed = seed;
    s->step = 0;
    memset(&s->episode, 0, sizeof(s->episode));
    dt_random_init(&s->chance, seed, CHANCE_STREAM);
    draw_truth(s);
    place_all(s);
    for (uint32_t i = 0; i < s->n_beliefs; i++) {
        belief_reset(&s->belief[i], &s->tables);
    }
    s->pending = measure_all(s);
    ipp_observe(s, io, true);
    return DT_OK;
}

/* After a third, two thirds and all of the moves. */
static void record_checkpoint_metrics(ipp *s)
{
    for (int k = 0; k < IPP_THIRDS; k++) {
        if (s->step == ((k + 1) * s->moves + IPP_THIRDS - 1) / IPP_THIRDS) {
            const field_score f = field_score_of(&s->field);
            s->episode.entropy[k] = (double)f.H / FIELD_ONE / (double)s->field.n_target;
            s->episode.f1[k] = 2 * (double)f.n_found / (double)(s->field.n_target + f.n_claimed);
        }
    }
}

static void write_metrics(const ipp *s, double *metric)
{
    const ipp_episode *e = &s->episode;
    for (int k = 0; k < IPP_THIRDS; k++) {
        *metric++ = e->entropy[k];
    }
    for (int k = 0; k < IPP_THIRDS; k++) {
        *metric++ = e->f1[k];
    }
    for (int k = 0; k < FIELD_LEVELS; k++) {
        *metric++ = (double)e->n_at_level[k] / (double)(s->moves * s->config.uavs);
    }
    *metric = (double)e->n_collisions;
}

static dt_status check_actions(const ipp *s, const dt_env_io *io)
{
    ipp_place to;
    for (uint32_t i = 0; i < ipp_n(s); i++) {
        const int32_t move = io->act_i[i];
        if (move < 0 || move >= IPP_MOVES) {
            return DT_FAIL_H(s->h, DT_EINVAL, "action %d of UAV %u, expected 0 to %d", move, i, IPP_MOVES - 1);
        }
        if (!ipp_target(s, &s->place[i], move, &to)) {
            return DT_FAIL_H(s->h, DT_EINVAL, "action %d of UAV %u leads out of the field, which its mask forbids",
                             move, i);
        }
    }
    return DT_OK;
}

static dt_status step(void *self, const dt_env_io *io)
{
    ipp *s = self;
    DT_TRY_H(check_actions(s, io));
    move_all(s, io);
    s->step++;
    const double earned = measure_all(s);
    const double reward = s->config.rewarded == IPP_AFTER ? earned : s->pending;
    s->pending = earned;
    record_checkpoint_metrics(s);
    const bool is_over = s->step >= s->moves;
    for (uint32_t i = 0; i < ipp_n(s); i++) {
        io->reward[i] = (float)reward;
        io->terminated[i] = is_over;
    }
    ipp_observe(s, io, !is_over);
    if (!is_over) {
        return DT_OK;
    }
    write_metrics(s, io->metric);
    return DT_DONE;
}

static const char *const results[] = {"metrics/entropy_*||share of the first|lower|weighted entropy of the belief",
                                      "metrics/f1_*|||higher|score of the belief map",
                                      "metrics/collisions||collisions|lower|", NULL};

static const void *extension(const char *id)
{
    static const char *const baselines[] = {"ipp_random", "ipp_greedy", NULL};
    if (strcmp(id, DT_EXT_SCENE) == 0) {
        return &ipp_scene;
    }
    if (strcmp(id, DT_EXT_RESULTS) == 0) {
        return results;
    }
    return strcmp(id, DT_EXT_BASELINES) == 0 ? baselines : NULL;
}

DT_ENV_DEFINE(component, "env_ipp", "informative path planning: UAVs map the area of interest of a field",
              "Westheider, Rueckin & Popovic 2023, arXiv 2303.01150", ipp_config, ipp, options,
              DT_OPS(.create = create, .spec = spec, .reset = reset, .step = step, .destroy = destroy),
              .flags = DT_COMP_DETERMINISTIC, .check = check, .extension = extension);

DT_PLUGIN_DEFINE_OF("env_ipp", "1.0", "dtrain", "Apache-2.0", &component, &ipp_greedy, &ipp_random);
