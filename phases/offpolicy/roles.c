/* SPDX-License-Identifier: Apache-2.0
 *
 * See roles.h.
 */
#include "roles.h"

#include "dtrain/svc/graph.h"

#include <math.h>
#include <string.h>

enum { MAX_PORTS = DT_ENV_MAX_OBS + 2, MAX_DIMS = DT_ENV_MAX_OBS + 12, MOST_JOINED = 8 };
#define FORBIDDEN 1e9 /* less than any logit by this: probability 0 */

/* ---- what can be fed --------------------------------------------------------------------------------------------- */

/* A row of numbers per agent, which experience has of the next step, too. */
static bool is_of_agents(const dt_port *p)
{
    const bool is_rows = p->dims[0] == 'A' && (p->dims[1] == ' ' || p->dims[1] == '\0');
    return p->dtype == DT_F32 && is_rows && (p->flags & DT_PORT_STEPS) == 0;
}

static int64_t columns(const offpolicy_roles *r, const dt_port *p)
{
    int64_t last = 0;
    for (uint32_t i = 1; r->bind->port_dim(p, i) > 0; i++) {
        last = r->bind->port_dim(p, i);
    }
    return last;
}

/* The port "obs", else the first of dims "A D". It is offered as "obs", and like all others under its own name. */
static dt_status find_own(offpolicy_roles *r)
{
    for (uint32_t i = 0; i < r->spec->n_obs; i++) {
        const dt_port *p = &r->spec->obs[i];
        const bool is_row = is_of_agents(p) && r->bind->port_dim(p, 1) > 0 && r->bind->port_dim(p, 2) < 0;
        if (is_row && (r->own == NULL || strcmp(p->name, "obs") == 0)) {
            r->own = p;
        }
    }
    if (r->own == NULL) {
        return DT_FAIL_H(r->h, DT_ESHAPE,
                         "environment %s shows its agents no row of their own, a port of dims \"A D\" (f32), which a "
                         "controller reads",
                         r->env);
    }
    r->D = columns(r, r->own);
    return DT_OK;
}

static dt_status measure_choices(offpolicy_roles *r)
{
    for (uint32_t i = 0; i < r->spec->n_heads; i++) {
        r->n_choices += r->spec->choices[i];
        r->widest = r->spec->choices[i] > r->widest ? r->spec->choices[i] : r->widest;
    }
    r->n_actions = r->n_choices + r->spec->n_continuous;
    if (r->widest > OFFPOLICY_MAX_CHOICES || r->n_actions > OFFPOLICY_MAX_COLUMNS) {
        return DT_FAIL_H(r->h, DT_ESHAPE,
                         "environment %s has %lld choices in one action and %lld columns of actions; %s takes at most "
                         "%d and %d",
                         r->env, (long long)r->widest, (long long)r->n_actions, r->phase, OFFPOLICY_MAX_CHOICES,
                         OFFPOLICY_MAX_COLUMNS);
    }
    return DT_OK;
}

static dt_status measure_bounds(offpolicy_roles *r)
{
    const uint32_t n = r->spec->n_continuous;
    uint32_t n_bounded = 0, n_open = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_bounded += isfinite(r->spec->low[i]) && isfinite(r->spec->high[i]);
        n_open += !isfinite(r->spec->low[i]) && !isfinite(r->spec->high[i]);
    }
    r->is_bounded = n_bounded == n;
    if (n > OFFPOLICY_MAX_ACTIONS || (n_bounded != n && n_open != n)) {
        return DT_FAIL_H(r->h, DT_ESHAPE,
                         "environment %s has %u continuous actions, %u with both bounds and %u with none; %s takes at "
                         "most %d, either all with bounds or all without",
                         r->env, n, n_bounded, n_open, r->phase, OFFPOLICY_MAX_ACTIONS);
    }
    return DT_OK;
}

/* ---- binding ----------------------------------------------------------------------------------------------------- */

typedef struct offer {
    dt_port port[MAX_PORTS];
    dt_dim dim[MAX_DIMS];
    uint32_t n_ports, n_dims;
} offer;

static void offer_port(offer *o, const char *name, const char *dims)
{
    o->port[o->n_ports++] = (dt_port){name, dims, DT_F32, 0};
}

static void offer_dim(offer *o, const char *name, int64_t size)
{
    o->dim[o->n_dims++] = (dt_dim){name, size};
}

static void offer_observations(const offpolicy_roles *r, offer *o)
{
    offer_port(o, "obs", r->own->dims);
    offer_dim(o, "D", r->D);
    for (uint32_t i = 0; i < r->spec->n_obs; i++) {
        const dt_port *p = &r->spec->obs[i];
        if (is_of_agents(p) && strcmp(p->name, "obs") != 0) {
            offer_port(o, p->name, p->dims);
            offer_dim(o, p->name, columns(r, p));
        }
    }
}

static dt_status bind_role(const offpolicy_roles *r, const char *role, const offer *o, const dt_port *needs,
                           uint32_t n_needs, dt_model **out_p)
{
    const dt_model_want want = {.struct_size = sizeof(want),
                                .n_dims = o->n_dims,
                                .role = role,
                                .dims = o->dim,
                                .offers = o->port,
                                .needs = needs,
                                .n_offers = o->n_ports,
                                .n_needs = n_needs};
    return r->bind->model(r->h, &want, out_p);
}

static dt_status bind_actor(offpolicy_roles *r)
{
    char logits[OFFPOLICY_TEXT], gauss[OFFPOLICY_TEXT];
    dt_port needs[3];
    uint32_t n = 0;
    offer o = {.n_ports = 0};
    offer_observations(r, &o);
    offer_dim(&o, "choices", r->n_choices);
    offer_dim(&o, "continuous", r->spec->n_continuous);
    offer_dim(&o, "values", 0);
    offer_dim(&o, "spread", r->has_spread);
    offer_dim(&o, "squashed", r->has_tanh && r->is_bounded && r->spec->n_continuous > 0);
    snprintf(logits, OFFPOLICY_TEXT, "A %lld", (long long)r->n_choices);
    snprintf(gauss, OFFPOLICY_TEXT, "A %u", r->spec->n_continuous);
    if (r->n_choices > 0) {
        needs[n++] = (dt_port){"logits", logits, DT_F32, 0};
    }
    if (r->spec->n_continuous > 0) {
        needs[n++] = (dt_port){"mean", gauss, DT_F32, 0};
    }
    if (r->spec->n_continuous > 0 && r->has_spread) {
        needs[n++] = (dt_port){"log_std", gauss, DT_F32, 0};
    }
    return bind_role(r, "controller", &o, needs, n, &r->actor);
}

static dt_status bind_critic(offpolicy_roles *r)
{
    char action[OFFPOLICY_TEXT], q[OFFPOLICY_TEXT];
    snprintf(action, OFFPOLICY_TEXT, "A %lld", (long long)r->n_actions);
    snprintf(q, OFFPOLICY_TEXT, "A %lld", (long long)r->n_critics);
    const dt_port needs[] = {{"q", q, DT_F32, 0}};
    offer o = {.n_ports = 0};
    offer_observations(r, &o);
    offer_port(&o, "action", action);
    offer_dim(&o, "P", r->n_actions);
    offer_dim(&o, "Q", r->n_critics);
    return bind_role(r, "critic", &o, needs, 1, &r->critic);
}

/* A model that is asked for and would not be used, a shield above all, is no small matter. */
static dt_status refuse_others(const offpolicy_roles *r)
{
    static const char *const roles[] = {"perception", "shield"};
    for (uint32_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        const dt_model_want want = {.struct_size = sizeof(want), .role = roles[i], .flags = DT_WANT_OPTIONAL};
        dt_model *m = NULL;
        if (r->bind->model(r->h, &want, &m) < 0 || m != NULL) {
            return DT_FAIL_H(r->h, DT_ECONFIG, "%s acts by a controller alone: unset models.%s", r->phase, roles[i]);
        }
    }
    return DT_OK;
}

dt_status offpolicy_wire(offpolicy_roles *r, const dt_env *e)
{
    r->env = r->bind->env_id(e);
    r->spec = r->bind->env_spec(e);
    DT_TRY_H(refuse_others(r));
    DT_TRY_H(find_own(r));
    DT_TRY_H(measure_choices(r));
    DT_TRY_H(measure_bounds(r));
    DT_TRY_H(bind_actor(r));
    return bind_critic(r);
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

/* Observations under the names they were offered by; their number. */
static uint32_t feed(const offpolicy_roles *r, dt_graph *g, const char *prefix, dt_named *in)
{
    char name[OFFPOLICY_TEXT];
    uint32_t n = 0;
    snprintf(name, OFFPOLICY_TEXT, "%s%s", prefix, r->own->name);
    in[n++] = (dt_named){"obs", g->api->input(g, name)};
    for (uint32_t i = 0; i < r->spec->n_obs; i++) {
        const dt_port *p = &r->spec->obs[i];
        if (is_of_agents(p) && strcmp(p->name, "obs") != 0) {
            snprintf(name, OFFPOLICY_TEXT, "%s%s", prefix, p->name);
            in[n++] = (dt_named){p->name, g->api->input(g, name)};
        }
    }
    return n;
}

static dt_status record(dt_graph *g, dt_model *m, const char *shadow, const dt_named *in, uint32_t n_in, dt_named *out,
                        uint32_t n_out)
{
    return shadow == NULL ? g->api->model(g, m, in, n_in, out, n_out)
                          : g->api->model_as(g, m, shadow, in, n_in, out, n_out);
}

dt_status offpolicy_act(const offpolicy_roles *r, dt_graph *g, const char *prefix, const char *shadow,
                        offpolicy_policy *out)
{
    dt_named in[MAX_PORTS], says[3];
    dt_tensor **place[3];
    uint32_t n = 0;
    *out = (offpolicy_policy){NULL, NULL, NULL};
    if (r->n_choices > 0) {
        place[n] = &out->logits;
        says[n++] = (dt_named){"logits", NULL};
    }
    if (r->spec->n_continuous > 0) {
        place[n] = &out->mean;
        says[n++] = (dt_named){"mean", NULL};
    }
    if (r->spec->n_continuous > 0 && r->has_spread) {
        place[n] = &out->log_std;
        says[n++] = (dt_named){"log_std", NULL};
    }
    const uint32_t n_in = feed(r, g, prefix, in);
    DT_TRY_H(record(g, r->actor, shadow, in, n_in, says, n));
    for (uint32_t i = 0; i < n; i++) {
        *place[i] = says[i].tensor;
    }
    return DT_OK;
}

dt_status offpolicy_judge(const offpolicy_roles *r, dt_graph *g, const char *prefix, const char *shadow,
                          dt_tensor *action, dt_tensor **q_p)
{
    dt_named in[MAX_PORTS], q = {"q", NULL};
    uint32_t n = feed(r, g, prefix, in);
    in[n++] = (dt_named){"action", action};
    DT_TRY_H(record(g, r->critic, shadow, in, n, &q, 1));
    *q_p = q.tensor;
    return DT_OK;
}

/* Columns beside each other, however many. */
static dt_tensor *join(dt_graph *g, dt_tensor **column, uint32_t n)
{
    dt_tensor *all = column[0];
    for (uint32_t k = 1; k < n;) {
        dt_tensor *part[MOST_JOINED] = {all};
        uint32_t m = 1;
        while (m < MOST_JOINED && k < n) {
            part[m++] = column[k++];
        }
        all = dt_concat(g, part, m);
    }
    return all;
}

/* Each column times a scale and plus a shift of its own. */
static dt_tensor *scale_columns(dt_graph *g, dt_tensor *x, uint32_t n, const double *scale, const double *shift)
{
    dt_tensor *column[OFFPOLICY_MAX_ACTIONS];
    bool is_alike = true;
    for (uint32_t i = 1; i < n; i++) {
        is_alike = is_alike && scale[i] == scale[0] && shift[i] == shift[0];
    }
    if (is_alike) {
        return dt_affine(g, x, scale[0], shift[0]);
    }
    for (uint32_t i = 0; i < n; i++) {
        column[i] = dt_affine(g, dt_slice(g, x, i, 1), scale[i], shift[i]);
    }
    return join(g, column, n);
}

static double middle(const offpolicy_roles *r, uint32_t i)
{
    return 0.5 * ((double)r->spec->low[i] + (double)r->spec->high[i]);
}

double offpolicy_unit(const offpolicy_roles *r, uint32_t i)
{
    return r->is_bounded ? 0.5 * ((double)r->spec->high[i] - (double)r->spec->low[i]) : 1;
}

dt_tensor *offpolicy_in_units(const offpolicy_roles *r, dt_graph *g, dt_tensor *action)
{
    double scale[OFFPOLICY_MAX_ACTIONS], shift[OFFPOLICY_MAX_ACTIONS];
    for (uint32_t i = 0; i < r->spec->n_continuous; i++) {
        scale[i] = offpolicy_unit(r, i);
        shift[i] = r->is_bounded ? middle(r, i) : 0;
    }
    return r->is_bounded ? scale_columns(g, action, r->spec->n_continuous, scale, shift) : action;
}

/* What the environment executed, -1 at the low bound and 1 at the high one. */
static dt_tensor *executed(const offpolicy_roles *r, dt_graph *g)
{
    double scale[OFFPOLICY_MAX_ACTIONS], shift[OFFPOLICY_MAX_ACTIONS];
    for (uint32_t i = 0; i < r->spec->n_continuous; i++) {
        scale[i] = 1 / offpolicy_unit(r, i);
        shift[i] = r->is_bounded ? -middle(r, i) / offpolicy_unit(r, i) : 0;
    }
    dt_tensor *x = g->api->input(g, "executed");
    return r->is_bounded ? scale_columns(g, x, r->spec->n_continuous, scale, shift) : x;
}

/* A row of an identity matrix for each action, since no op makes a 1 at an index. */
static dt_tensor *chosen(const offpolicy_roles *r, dt_graph *g)
{
    dt_tensor *head[DT_ENV_MAX_HEADS];
    dt_tensor *eye = dt_split(g, g->api->step_input(g, "eye", r->widest * r->widest), r->widest);
    dt_tensor *all = dt_merge(g, dt_gather(g, eye, g->api->input(g, "action_i"))); /* [A, heads * widest] */
    if (r->n_choices == r->widest * r->spec->n_heads) {
        return all;
    }
    for (uint32_t i = 0; i < r->spec->n_heads; i++) {
        head[i] = dt_slice(g, all, r->widest * i, r->spec->choices[i]);
    }
    return join(g, head, r->spec->n_heads);
}

void offpolicy_eye(const offpolicy_roles *r, float *out)
{
    for (int64_t i = 0; i < r->widest * r->widest; i++) {
        out[i] = i % (r->widest + 1) == 0 ? 1 : 0;
    }
}

dt_tensor *offpolicy_done(const offpolicy_roles *r, dt_graph *g)
{
    if (r->n_choices == 0) {
        return executed(r, g);
    }
    if (r->spec->n_continuous == 0) {
        return chosen(r, g);
    }
    dt_tensor *both[2] = {chosen(r, g), executed(r, g)};
    return dt_concat(g, both, 2);
}

dt_tensor *offpolicy_probabilities(const offpolicy_roles *r, dt_graph *g, dt_tensor *logits, dt_tensor *mask)
{
    dt_tensor *head[DT_ENV_MAX_HEADS];
    int64_t at = 0;
    dt_tensor *allowed = dt_add(g, logits, dt_affine(g, mask, FORBIDDEN, -FORBIDDEN));
    for (uint32_t i = 0; i < r->spec->n_heads; i++) {
        const int64_t n = r->spec->choices[i];
        head[i] = dt_softmax(g, r->spec->n_heads == 1 ? allowed : dt_slice(g, allowed, at, n));
        at += n;
    }
    return join(g, head, r->spec->n_heads);
}

dt_tensor *offpolicy_least(const offpolicy_roles *r, dt_graph *g, dt_tensor *q)
{
    dt_tensor *least = r->n_critics == 1 ? q : dt_slice(g, q, 0, 1);
    for (int64_t i = 1; i < r->n_critics; i++) {
        least = dt_min(g, least, dt_slice(g, q, i, 1));
    }
    return least;
}
