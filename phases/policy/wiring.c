/* SPDX-License-Identifier: Apache-2.0
 *
 * The roles of a policy and what flows between them; see wiring.h.
 */
#include "wiring.h"

#include "dtrain/svc/graph.h"

#include <string.h>

enum { MAX_OFFERS = DT_ENV_MAX_OBS + 7, MAX_DIMS = DT_ENV_MAX_OBS + 10, MAX_OUTPUTS = 5 };

/* ---- what can be fed --------------------------------------------------------------------------------------------- */

/* What each agent observes of itself: the port "obs", else the first of dims "A D". It is offered as "obs", and like
 * all others under its own name. */
static dt_status find_own(ppo_wiring *w)
{
    for (uint32_t i = 0; i < w->spec->n_obs; i++) {
        const dt_port *p = &w->spec->obs[i];
        const bool is_row = p->dtype == DT_F32 && strncmp(p->dims, "A ", 2) == 0 && w->bind->port_dim(p, 1) > 0 &&
                            w->bind->port_dim(p, 2) < 0;
        if (is_row && (w->own == NULL || strcmp(p->name, "obs") == 0)) {
            w->own = p;
        }
    }
    if (w->own == NULL) {
        return DT_FAIL_H(w->h, DT_ESHAPE,
                         "environment %s shows its agents no row of their own, a port of dims \"A D\" (f32), which "
                         "a controller reads",
                         w->env);
    }
    return DT_OK;
}

/* Last number of dims, 0 where there is none. */
static int64_t columns(const ppo_wiring *w, const dt_port *p)
{
    int64_t last = 0;
    for (uint32_t i = 0, n = 0; p->dims[n] != '\0'; i++) {
        const int64_t d = w->bind->port_dim(p, i);
        last = d > 0 ? d : 0;
        n += (uint32_t)strcspn(p->dims + n, " ");
        n += (uint32_t)strspn(p->dims + n, " ");
    }
    return last;
}

/* Ports that a model may read, the sizes it is told, and room for their texts. */
typedef struct offer {
    dt_port port[MAX_OFFERS];
    dt_dim dim[MAX_DIMS];
    uint32_t n_ports, n_dims;
    char history[PPO_TEXT], present[PPO_TEXT];
} offer;

static void offer_port(offer *o, const char *name, const char *dims, uint32_t dtype)
{
    o->port[o->n_ports++] = (dt_port){name, dims, dtype, 0};
}

static void offer_dim(offer *o, const char *name, int64_t size)
{
    o->dim[o->n_dims++] = (dt_dim){name, size};
}

/* The environment as it is, and, but for perception itself, as perception sees it. */
static void offer_world(const ppo_wiring *w, offer *o)
{
    const dt_env_spec *e = w->spec;
    offer_port(o, "obs", w->own->dims, DT_F32);
    offer_dim(o, "D", columns(w, w->own));
    offer_dim(o, "choices", w->n_choices);
    offer_dim(o, "continuous", e->n_continuous);
    offer_dim(o, "K", e->n_costs);
    for (uint32_t i = 0; i < e->n_obs; i++) {
        if (strcmp(e->obs[i].name, "obs") != 0) {
            offer_port(o, e->obs[i].name, e->obs[i].dims, e->obs[i].dtype);
            offer_dim(o, e->obs[i].name, columns(w, &e->obs[i]));
        }
    }
    if (w->perception != NULL) {
        const dt_port *embedding = w->bind->model_output(w->perception, "embedding");
        offer_port(o, "embedding", embedding->dims, DT_F32);
        offer_port(o, "risk", "N", DT_F32);
        offer_dim(o, "H", w->bind->port_dim(embedding, 1));
    }
}

/* What the world model says to controllers, and to shields. */
static void offer_foresight(const ppo_wiring *w, offer *o, const char *name)
{
    const foresight *f = &w->foresight;
    if (w->has_foresight) {
        const bool is_whole = strcmp(name, "foreseen") == 0;
        offer_port(o, name, is_whole ? f->foreseen_dims : f->dims, DT_F32);
        offer_dim(o, name, is_whole ? 2 * f->F : f->columns);
        offer_dim(o, "F", f->F);
        offer_dim(o, "dt_ms", f->dt_ms);
    }
}

static void offer_history(const ppo_wiring *w, offer *o)
{
    offer_dim(o, "W", w->window);
    if (w->window > 1) {
        snprintf(o->history, PPO_TEXT, "%lld A %lld", (long long)w->window, (long long)columns(w, w->own));
        snprintf(o->present, PPO_TEXT, "%lld A", (long long)w->window);
        offer_port(o, "obs_history", o->history, DT_F32);
        offer_port(o, "present", o->present, DT_F32);
    }
}

/* What an imagined branch has: what the agent sees of itself. */
static void offer_branch(const ppo_wiring *w, offer *o)
{
    offer_world(w, o); /* for the sizes */
    o->n_ports = 0;
    offer_port(o, "obs", w->own->dims, DT_F32);
    offer_port(o, w->own->name, w->own->dims, DT_F32);
}

/* ---- binding ----------------------------------------------------------------------------------------------------- */

static dt_status bind_role(const ppo_wiring *w, const char *role, const offer *o, const dt_port *needs,
                           uint32_t n_needs, uint32_t flags, dt_model **out_p)
{
    const dt_model_want want = {.struct_size = sizeof(want),
                                .n_dims = o->n_dims,
                                .role = role,
                                .dims = o->dim,
                                .offers = o->port,
                                .needs = needs,
                                .n_offers = o->n_ports,
                                .n_needs = n_needs,
                                .flags = flags};
    return w->bind->model(w->h, &want, out_p);
}

static dt_status bind_perception(ppo_wiring *w)
{
    static const dt_port needs[] = {{"embedding", "N H", DT_F32, 0}, {"risk", "N", DT_F32, 0}};
    offer o = {.n_ports = 0};
    offer_world(w, &o);
    return bind_role(w, "perception", &o, needs, 2, DT_WANT_OPTIONAL, &w->perception);
}

static dt_status bind_controller(ppo_wiring *w)
{
    const dt_env_spec *e = w->spec;
    char logits[PPO_TEXT], gauss[PPO_TEXT], costs[PPO_TEXT];
    dt_port needs[MAX_OUTPUTS];
    uint32_t n = 0;
    snprintf(logits, PPO_TEXT, "A %u", w->n_choices);
    snprintf(gauss, PPO_TEXT, "A %u", e->n_continuous);
    snprintf(costs, PPO_TEXT, "A %u", e->n_costs);
    needs[n++] = (dt_port){"value", "A", DT_F32, 0};
    if (w->n_choices > 0) {
        needs[n++] = (dt_port){"logits", logits, DT_F32, 0};
    }
    if (e->n_continuous > 0) {
        needs[n++] = (dt_port){"mean", gauss, DT_F32, 0};
        needs[n++] = (dt_port){"log_std", gauss, DT_F32, 0};
    }
    if (e->n_costs > 0) {
        needs[n++] = (dt_port){"cost_value", costs, DT_F32, 0};
    }
    offer o = {.n_ports = 0};
    if (w->imagines) {
        offer_branch(w, &o);
    } else {
        offer_world(w, &o);
        offer_history(w, &o);
        offer_foresight(w, &o, "foresight");
    }
    return bind_role(w, "controller", &o, needs, n, 0, &w->controller);
}

static dt_status bind_shield(ppo_wiring *w)
{
    char bounds[PPO_TEXT], allow[PPO_TEXT];
    snprintf(bounds, PPO_TEXT, "A %u", w->spec->n_continuous);
    snprintf(allow, PPO_TEXT, "A %u", w->n_choices);
    const dt_port needs[] = {{"low", bounds, DT_F32, DT_PORT_OPTIONAL},
                             {"high", bounds, DT_F32, DT_PORT_OPTIONAL},
                             {"allow", allow, DT_F32, DT_PORT_OPTIONAL}};
    offer o = {.n_ports = 0};
    offer_world(w, &o);
    offer_foresight(w, &o, "foreseen");
    DT_TRY_H(bind_role(w, "shield", &o, needs, 3, DT_WANT_OPTIONAL, &w->shield));
    if (w->shield == NULL) {
        return DT_OK;
    }
    const bool has_bounds =
        w->bind->model_output(w->shield, "low") != NULL || w->bind->model_output(w->shield, "high") != NULL;
    const bool has_allow = w->bind->model_output(w->shield, "allow") != NULL;
    if ((w->n_choices == 0 || !has_allow) && (w->spec->n_continuous == 0 || !has_bounds)) {
        return DT_FAIL_H(w->h, DT_ESHAPE,
                         "shield %s bounds no action of environment %s: it gives neither allow [A %u] nor low, high "
                         "[A %u]; unset models.shield or choose another",
                         w->bind->model_id(w->shield), w->env, w->n_choices, w->spec->n_continuous);
    }
    return DT_OK;
}

static dt_status bind_foresight(ppo_wiring *w, const dt_env *e)
{
    const int64_t H =
        w->perception == NULL ? 0 : w->bind->port_dim(w->bind->model_output(w->perception, "embedding"), 1);
    return w->has_foresight ? foresight_bind(&w->foresight, w->h, w->bind, e, H) : DT_OK;
}

dt_status ppo_wire(ppo_wiring *w, const dt_host *h, const dt_bind_api *bind, const dt_env *e, int64_t window,
                   const foresight_config *see)
{
    *w = (ppo_wiring){.h = h, .bind = bind, .env = bind->env_id(e), .spec = bind->env_spec(e), .window = window};
    for (uint32_t i = 0; i < w->spec->n_heads; i++) {
        w->n_choices += (uint32_t)w->spec->choices[i];
    }
    w->has_foresight = see->on;
    w->imagines = see->imagines;
    foresight_init(&w->foresight, see);
    DT_TRY_H(find_own(w));
    DT_TRY_H(bind_perception(w));
    DT_TRY_H(bind_foresight(w, e));
    DT_TRY_H(bind_controller(w));
    return bind_shield(w);
}

uint32_t ppo_models(const ppo_wiring *w, dt_model *out[PPO_ROLES])
{
    dt_model *const all[PPO_ROLES] = {w->perception, w->foresight.world, w->controller, w->shield};
    uint32_t n = 0;
    for (int i = 0; i < PPO_ROLES; i++) {
        if (all[i] != NULL) {
            out[n++] = all[i];
        }
    }
    return n;
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

typedef struct inputs {
    dt_named in[MAX_OFFERS];
    uint32_t n;
} inputs;

static void feed(inputs *x, const char *name, dt_tensor *t)
{
    x->in[x->n++] = (dt_named){name, t};
}

static void feed_observations(const ppo_wiring *w, dt_graph *g, inputs *x)
{
    feed(x, "obs", g->api->input(g, w->own->name));
    for (uint32_t i = 0; i < w->spec->n_obs; i++) {
        const char *name = w->spec->obs[i].name;
        if (strcmp(name, "obs") != 0) {
            feed(x, name, g->api->input(g, name));
        }
    }
}

static dt_tensor *fed(const inputs *x, const char *name)
{
    for (uint32_t i = 0; i < x->n; i++) {
        if (strcmp(x->in[i].name, name) == 0) {
            return x->in[i].tensor;
        }
    }
    return NULL;
}

/* The graph of vehicles as in recordings, all else as it is. */
static void scale_graph(const ppo_wiring *w, dt_graph *g, inputs *x)
{
    if (foresight_has_graph(w->spec)) {
        for (uint32_t i = 0; i < x->n; i++) {
            dt_named *p = &x->in[i];
            if (strcmp(p->name, "nodes") == 0) {
                p->tensor = foresight_nodes(g, p->tensor, fed(x, "centre"));
            } else if (strcmp(p->name, "edges") == 0) {
                p->tensor = foresight_edges(g, p->tensor);
            }
        }
    }
}

static dt_status record_perception(const ppo_wiring *w, dt_graph *g, inputs *x)
{
    dt_named out[] = {{"embedding", NULL}, {"risk", NULL}};
    inputs seen = *x;
    scale_graph(w, g, &seen);
    DT_TRY_H(g->api->model(g, w->perception, seen.in, seen.n, out, 2));
    feed(x, "embedding", out[0].tensor);
    feed(x, "risk", out[1].tensor);
    return g->api->output(g, "picture/risk", out[1].tensor);
}

static dt_status record_controller(const ppo_wiring *w, dt_graph *g, const inputs *x, ppo_policy *p)
{
    const struct {
        const char *name;
        dt_tensor **place;
        bool is_there;
    } all[MAX_OUTPUTS] = {{"value", &p->value, true},
                          {"logits", &p->logits, w->n_choices > 0},
                          {"mean", &p->mean, w->spec->n_continuous > 0},
                          {"log_std", &p->log_std, w->spec->n_continuous > 0},
                          {"cost_value", &p->cost_value, w->spec->n_costs > 0}};
    dt_named out[MAX_OUTPUTS];
    uint32_t n = 0;
    for (int i = 0; i < MAX_OUTPUTS; i++) {
        if (all[i].is_there) {
            out[n++] = (dt_named){all[i].name, NULL};
        }
    }
    inputs full = *x;
    if (w->window > 1) {
        char history[PPO_TEXT];
        snprintf(history, PPO_TEXT, "%s_history", w->own->name);
        feed(&full, "obs_history", g->api->input(g, history));
        feed(&full, "present", g->api->input(g, "present"));
    }
    DT_TRY_H(g->api->model(g, w->controller, full.in, full.n, out, n));
    n = 0;
    for (int i = 0; i < MAX_OUTPUTS; i++) {
        if (all[i].is_there) {
            *all[i].place = out[n].tensor;
            DT_TRY_H(g->api->output(g, out[n].name, out[n].tensor));
            n++;
        }
    }
    return DT_OK;
}

/* Its outputs are for the host, which acts by them: nothing here learns from a shield. */
static dt_status record_shield(const ppo_wiring *w, dt_graph *g, const inputs *x)
{
    static const char *const names[] = {"low", "high", "allow"};
    dt_named out[3];
    uint32_t n = 0;
    for (int i = 0; i < 3; i++) {
        if (w->bind->model_output(w->shield, names[i]) != NULL) {
            out[n++] = (dt_named){names[i], NULL};
        }
    }
    DT_TRY_H(g->api->model(g, w->shield, x->in, x->n, out, n));
    for (uint32_t i = 0; i < n; i++) {
        DT_TRY_H(g->api->output(g, out[i].name, out[i].tensor));
    }
    return DT_OK;
}

dt_status ppo_record_policy(const ppo_wiring *w, dt_graph *g, ppo_policy *out)
{
    inputs x = {.n = 0};
    *out = (ppo_policy){.foreseen = NULL};
    feed_observations(w, g, &x);
    if (w->perception != NULL) {
        DT_TRY_H(record_perception(w, g, &x));
    }
    if (w->has_foresight) {
        dt_tensor *near = NULL, *far = NULL;
        DT_TRY_H(foresight_record(&w->foresight, g, fed(&x, "embedding"), fed(&x, "risk"), &near, &far));
        feed(&x, "foresight", near);
        feed(&x, "foreseen", far);
        out->foreseen = far;
    }
    DT_TRY_H(record_controller(w, g, &x, out));
    return w->shield != NULL ? record_shield(w, g, &x) : DT_OK;
}

bool ppo_has_barrier(const ppo_wiring *w)
{
    return w->shield != NULL && w->bind->model_output(w->shield, "barrier") != NULL;
}

dt_status ppo_record_barrier(const ppo_wiring *w, dt_graph *g, const char *prefix, dt_tensor *foreseen,
                             dt_tensor **out_p)
{
    char name[PPO_TEXT];
    inputs x = {.n = 0};
    dt_named out = {"barrier", NULL};
    for (uint32_t i = 0; i < w->spec->n_obs; i++) {
        const dt_port *p = &w->spec->obs[i];
        const bool is_of_agents = p->dims[0] == 'A' && (p->dims[1] == ' ' || p->dims[1] == '\0');
        if (p->dtype != DT_F32 || !is_of_agents || (p->flags & DT_PORT_STEPS) != 0) {
            continue;
        }
        snprintf(name, PPO_TEXT, "%s%s", prefix, p->name);
        feed(&x, p->name, g->api->input(g, name));
        if (p == w->own && strcmp(p->name, "obs") != 0) {
            feed(&x, "obs", g->api->input(g, name));
        }
    }
    if (foreseen != NULL) {
        feed(&x, "foreseen", foreseen);
    }
    DT_TRY_H(g->api->model(g, w->shield, x.in, x.n, &out, 1));
    *out_p = out.tensor;
    return DT_OK;
}
