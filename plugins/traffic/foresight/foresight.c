/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/foresight/foresight.h"

#include "base/err.h"
#include "dtrain/svc/bind.h"
#include "dtrain/traffic/features.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { AXES = 2, MOTION = 6, MOTION_SPEED = 4, PRESENT = 6, PAST = 7, SEQUENCES_OF_AGENT = 2 };

/* ---- options ----------------------------------------------------------------------------------------------------- */

static bool is_whole(double x)
{
    return x >= 1 - 1e-6 && fabs(x - round(x)) < 1e-6;
}

static dt_status check_steps(const char *phase, const dt_wiring_config *c)
{
    if (is_whole(c->history_s * c->rate_hz) && is_whole(c->horizon_s * c->rate_hz) && is_whole(1000 / c->rate_hz)) {
        return DT_OK;
    }
    return DT_FAIL(DT_ECONFIG,
                   "%s: history_s %g and horizon_s %g at rate_hz %g are %g and %g steps of %g ms; all must be whole "
                   "numbers, and those of phase 1 if the world model comes from it",
                   phase, c->history_s, c->horizon_s, c->rate_hz, c->history_s * c->rate_hz, c->horizon_s * c->rate_hz,
                   1000 / c->rate_hz);
}

static dt_status init_foresight(const char *phase, const dt_wiring_config *c, dt_foresight *f)
{
    DT_TRY(check_steps(phase, c));
    *f = (dt_foresight){.T = llround(c->history_s * c->rate_hz),
                        .F = llround(c->horizon_s * c->rate_hz),
                        .dt_ms = llround(1000 / c->rate_hz)};
    for (int s = 1; s <= DT_FORESIGHT_MAX_SECONDS && llround(s * c->rate_hz) <= f->F; s++) {
        f->second[f->n_seconds++] = llround(s * c->rate_hz) - 1;
    }
    if (f->n_seconds == 0) {
        f->second[f->n_seconds++] = f->F - 1;
    }
    f->columns = SEQUENCES_OF_AGENT * (1 + 3 * f->n_seconds) + f->n_seconds;
    snprintf(f->dims, DT_FORESIGHT_TEXT, "A %lld", (long long)f->columns);
    snprintf(f->foreseen_dims, DT_FORESIGHT_TEXT, "A %lld", (long long)(2 * f->F));
    snprintf(f->text[0], DT_FORESIGHT_TEXT, "%.9g", c->history_s);
    snprintf(f->text[1], DT_FORESIGHT_TEXT, "%.9g", c->rate_hz);
    f->setting[0] = (dt_setting){"history_s", f->text[0]};
    f->setting[1] = (dt_setting){"history_hz", f->text[1]};
    return DT_OK;
}

/* ---- binding ----------------------------------------------------------------------------------------------------- */

static const dt_port *find_port(const dt_env_spec *e, const char *name)
{
    for (uint32_t i = 0; i < e->n_obs; i++) {
        if (strcmp(e->obs[i].name, name) == 0) {
            return &e->obs[i];
        }
    }
    return NULL;
}

static bool has_port(const dt_env_spec *e, const char *name, const char *dims, uint32_t dtype)
{
    const dt_port *p = find_port(e, name);
    return p != NULL && strcmp(p->dims, dims) == 0 && p->dtype == dtype;
}

/* The graph that perception was trained on. */
static bool has_graph(const dt_env_spec *e)
{
    return has_port(e, "nodes", "N 9", DT_F32) && has_port(e, "edges", "E 4", DT_F32);
}

static dt_status bind_foresight(const dt_host *h, dt_foresight *f, const dt_env_spec *spec, const char *env_id,
                                int64_t H)
{
    const dt_bind_api *api = h->service(h, DT_SVC_BIND);
    char past[DT_FORESIGHT_TEXT], latest[DT_FORESIGHT_TEXT], motion[DT_FORESIGHT_TEXT], present[DT_FORESIGHT_TEXT];
    char future[DT_FORESIGHT_TEXT];
    snprintf(past, DT_FORESIGHT_TEXT, "S %lld %d", (long long)f->T, PAST);
    snprintf(latest, DT_FORESIGHT_TEXT, "S %lld", (long long)H);
    snprintf(motion, DT_FORESIGHT_TEXT, "%lld S %d", (long long)f->T, MOTION);
    snprintf(present, DT_FORESIGHT_TEXT, "%lld S", (long long)f->T);
    snprintf(future, DT_FORESIGHT_TEXT, "S %lld %d", (long long)f->F, AXES);
    if (!has_port(spec, "past", past, DT_F32) || !has_port(spec, "seq_node", "S", DT_I32) ||
        !has_port(spec, "agent_seq", "A 2", DT_I32)) {
        return DT_FAIL(DT_ESHAPE,
                       "environment %s shows no past of vehicles for a world model, ports past [%s], seq_node [S] and "
                       "agent_seq [A 2]; turn foresight off or choose another environment",
                       env_id, past);
    }
    const dt_dim dims[] = {{"H", H}, {"T", f->T}, {"F", f->F}, {"dt_ms", f->dt_ms}};
    const dt_port offers[] = {
        {"motion", motion, DT_F32, 0}, {"present", present, DT_F32, 0}, {"latest", latest, DT_F32, 0}};
    const dt_port needs[] = {{"future", future, DT_F32, 0}, {"spread", future, DT_F32, 0}};
    const dt_model_request want = {.struct_size = sizeof(want),
                                   .n_dims = 4,
                                   .role = "world",
                                   .dims = dims,
                                   .offers = offers,
                                   .needs = needs,
                                   .n_offers = H > 0 ? 3 : 2,
                                   .n_needs = 2};
    return api->model(h, &want, &f->world);
}

/* ---- what perception sees ---------------------------------------------------------------------------------------- */

/* (x + shift) scale, column by column */
static dt_tensor *rescale(dt_graph *g, dt_tensor *x, const float *shift, const float *scale, int64_t from, int64_t to)
{
    enum { MOST = 8 };
    dt_tensor *part[MOST];
    uint32_t n = 0;
    for (int64_t d = from; d < to; d++) {
        const double s = (double)scale[d], offset = shift != NULL ? (double)shift[d] * s : 0;
        part[n++] = dt_affine(g, dt_slice(g, x, d, 1), s, offset);
    }
    return dt_concat(g, part, n);
}

static dt_tensor *scale_nodes(dt_graph *g, dt_tensor *nodes, dt_tensor *centre)
{
    static const float shift[DT_NODE_FEATURES] = DT_NODE_SHIFT, scale[DT_NODE_FEATURES] = DT_NODE_SCALE;
    dt_tensor *place = dt_slice(g, nodes, 0, AXES);
    place = centre != NULL ? dt_sub(g, place, centre) : place;
    dt_tensor *both[2] = {dt_affine(g, place, (double)scale[0], 0.0),
                          rescale(g, nodes, shift, scale, AXES, DT_NODE_FEATURES)};
    return dt_concat(g, both, 2);
}

static dt_tensor *find_named(const dt_named *list, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return list[i].tensor;
        }
    }
    return NULL;
}

static void scale_observation(dt_graph *g, const dt_env_spec *spec, dt_named *observation, uint32_t n)
{
    static const float edge_scale[DT_EDGE_FEATURES] = DT_EDGE_SCALE;
    dt_tensor *const centre = find_named(observation, n, "centre");
    for (uint32_t i = 0; i < n && has_graph(spec); i++) {
        dt_named *p = &observation[i];
        if (strcmp(p->name, "nodes") == 0) {
            p->tensor = scale_nodes(g, p->tensor, centre);
        } else if (strcmp(p->name, "edges") == 0) {
            p->tensor = rescale(g, p->tensor, NULL, edge_scale, 0, DT_EDGE_FEATURES);
        }
    }
}

/* ---- predictions ------------------------------------------------------------------------------------------------- */

/* axis of x [S,F,2]: [S,F] */
static dt_tensor *select_axis(dt_graph *g, dt_tensor *x, int64_t a)
{
    return dt_merge(g, dt_slice(g, x, a, 1));
}

/* x [S,n] of the agent and of the vehicle ahead: [A,2n] */
static dt_tensor *select_agents(dt_graph *g, dt_tensor *x, dt_tensor *agent_seq)
{
    return dt_merge(g, dt_gather(g, x, agent_seq));
}

/* Columns of each sequence: risk, then along, left and log of the deviation for every second. */
static dt_tensor *describe_futures(const dt_foresight *f, dt_graph *g, dt_tensor *along, dt_tensor *left,
                                   dt_tensor *deviation, dt_tensor *speed, dt_tensor *risk)
{
    enum { OF_ONE = 3 };
    dt_tensor *second[DT_FORESIGHT_MAX_SECONDS + 1] = {risk};
    for (int64_t i = 0; i < f->n_seconds; i++) {
        const int64_t at = f->second[i];
        const double ahead_s = (double)((at + 1) * f->dt_ms) / 1000;
        dt_tensor *gain = dt_sub(g, dt_slice(g, along, at, 1), dt_affine(g, speed, ahead_s, 0.0));
        dt_tensor *part[OF_ONE] = {dt_affine(g, gain, 0.1, 0.0), dt_affine(g, dt_slice(g, left, at, 1), 0.25, 0.0),
                                   dt_slice(g, deviation, at, 1)};
        second[1 + i] = dt_concat(g, part, OF_ONE);
    }
    if (f->n_seconds == DT_FORESIGHT_MAX_SECONDS) { /* one more than a concat takes */
        dt_tensor *last[2] = {second[f->n_seconds - 1], second[f->n_seconds]};
        second[f->n_seconds - 1] = dt_concat(g, last, 2);
        return dt_concat(g, second, DT_FORESIGHT_MAX_SECONDS);
    }
    return dt_concat(g, second, (uint32_t)(1 + f->n_seconds));
}

/* x [S,F] at the seconds, the vehicle ahead less the agent: [A,n_seconds] */
static dt_tensor *difference_to_leader(const dt_foresight *f, dt_graph *g, dt_tensor *x, dt_tensor *agent_seq)
{
    const int64_t n = f->n_seconds;
    dt_tensor *second[DT_FORESIGHT_MAX_SECONDS];
    for (int64_t i = 0; i < n; i++) {
        second[i] = dt_slice(g, x, f->second[i], 1);
    }
    dt_tensor *both = select_agents(g, n > 1 ? dt_concat(g, second, (uint32_t)n) : second[0], agent_seq);
    return dt_sub(g, dt_slice(g, both, n, n), dt_slice(g, both, 0, n));
}

/* As a rollout may have kept it. */
static dt_tensor *keep_tensor(dt_graph *g, const dt_foresight_inputs *in, const char *name, dt_tensor *x)
{
    return in->is_kept ? g->api->kept(g, name, x) : x;
}

static dt_status record_foresight(dt_graph *g, const dt_foresight *f, const dt_foresight_inputs *in,
                                  dt_tensor **foresight_p, dt_tensor **foreseen_p)
{
    dt_tensor *past = find_named(in->observation, in->n, "past");
    dt_tensor *seq_node = find_named(in->observation, in->n, "seq_node");
    dt_tensor *agent_seq = find_named(in->observation, in->n, "agent_seq");
    if (past == NULL || seq_node == NULL || agent_seq == NULL) {
        return DT_FAIL(
            DT_EINVAL,
            "foresight of rows \"%s\" needs their past, seq_node and agent_seq; set has_all if the data has them",
            in->prefix);
    }
    dt_tensor *motion = dt_slice(g, past, 0, MOTION);
    dt_named fed[3] = {{"motion", motion}, {"present", dt_merge(g, dt_slice(g, past, PRESENT, 1))}, {"latest", NULL}};
    dt_named guess[] = {{"future", NULL}, {"spread", NULL}};
    fed[2].tensor = in->embedding != NULL ? dt_gather(g, in->embedding, seq_node) : NULL;
    DT_TRY(g->api->model(g, f->world, fed, in->embedding != NULL ? 3 : 2, guess, 2));

    dt_tensor *along = select_axis(g, guess[0].tensor, 0), *left = select_axis(g, guess[0].tensor, 1);
    dt_tensor *deviation = select_axis(g, guess[1].tensor, 0);
    dt_tensor *speed = dt_slice(g, dt_step(g, motion, -1), MOTION_SPEED, 1); /* [S,1] */
    dt_tensor *danger = in->risk != NULL ? dt_sigmoid(g, dt_gather(g, dt_split(g, in->risk, 0), seq_node))
                                         : dt_affine(g, speed, 0.0, 0.0);
    dt_tensor *each = select_agents(g, describe_futures(f, g, along, left, deviation, speed, danger), agent_seq);
    dt_tensor *all[2] = {each, dt_affine(g, difference_to_leader(f, g, along, agent_seq), 0.02, 0.0)};
    *foresight_p = keep_tensor(g, in, "foresight", dt_concat(g, all, 2));

    dt_tensor *trajectory[2] = {along, deviation};
    dt_tensor *both = select_agents(g, dt_concat(g, trajectory, 2), agent_seq);
    *foreseen_p = keep_tensor(g, in, "foreseen", dt_slice(g, both, 2 * f->F, 2 * f->F));
    return g->api->status(g);
}

const dt_foresight_api dt_traffic_foresight = {.struct_size = sizeof(dt_foresight_api),
                                               .init = init_foresight,
                                               .bind = bind_foresight,
                                               .scale = scale_observation,
                                               .record = record_foresight};
