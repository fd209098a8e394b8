/* SPDX-License-Identifier: Apache-2.0
 *
 * Binding the roles of a policy to the environment that it is for, and what each may read; see wiring.h.
 */
#include <config.h>

#include "rl/policy/wiring.h"
#include "base/err.h"
#include "base/mem.h"
#include "plugin/service/stage.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 64, ROLES = 4, MAX_WANTED = 16 };
enum { MAX_OFFERS = DT_ENV_MAX_OBS + 7 + MAX_WANTED, MAX_NUMBERS = DT_MAX_DIMS - 2 };
enum { MAX_DIMS = DT_ENV_MAX_OBS * (2 + MAX_NUMBERS) + 12 + MAX_WANTED, MAX_OUTPUTS = 5 };

/* ---- what can be fed --------------------------------------------------------------------------------------------- */

/* A row of numbers per agent, [A D] f32. */
static bool is_plain_row(const dt_port *p)
{
    return p->dtype == DT_F32 && strncmp(p->dims, "A ", 2) == 0 && dt_bind_service.port_dim(p, 1) > 0 &&
           dt_bind_service.port_dim(p, 2) < 0;
}

/* "obs": 3; another row: 2; another image: 1; what is no observation per agent: 0. */
static int rank_own_port(const dt_port *p)
{
    const int rank = is_plain_row(p) ? 2 : dt_wiring_is_image(p) ? 1 : 0;
    return rank > 0 && strcmp(p->name, "obs") == 0 ? 3 : rank;
}

/* What each agent observes of itself: the port "obs", else the first row, else the first image. It is offered as "obs",
 * and like all others under its own name. */
static dt_status find_own_port(dt_wiring *w)
{
    int best = 0;
    for (uint32_t i = 0; i < w->spec->n_obs; i++) {
        const dt_port *p = &w->spec->obs[i];
        const int rank = rank_own_port(p);
        if (rank == 0 && strcmp(p->name, "obs") == 0) {
            return DT_FAIL(DT_ESHAPE,
                           "port \"obs\" of environment %s has dims \"%s\": this name is for what each agent observes "
                           "of itself, dims \"A D\" (f32) or an image; rename the port",
                           w->env_id, p->dims);
        }
        w->own = rank > best ? p : w->own;
        best = rank > best ? rank : best;
    }
    if (w->own == NULL) {
        return DT_FAIL(DT_ESHAPE,
                       "environment %s provides no observation per agent, a port of dims \"A D\" (f32) or an image, "
                       "which a controller reads",
                       w->env_id);
    }
    return DT_OK;
}

/* Last number of dims, 0 where there is none. */
static int64_t count_columns(const dt_port *p)
{
    int64_t last = 0;
    for (uint32_t i = 0, n = 0; p->dims[n] != '\0'; i++) {
        const int64_t d = dt_bind_service.port_dim(p, i);
        last = d > 0 ? d : 0;
        n += (uint32_t)strcspn(p->dims + n, " ");
        n += (uint32_t)strspn(p->dims + n, " ");
    }
    return last;
}

/* Ports that a model may read, the sizes it is given, and room for their texts. */
typedef struct offer {
    dt_port port[MAX_OFFERS];
    dt_dim dim[MAX_DIMS];
    uint32_t n_ports, n_dims;
    char history[TEXT], present[TEXT], text[MAX_DIMS][TEXT];
} offer;

static void add_port(offer *o, const char *name, const char *dims, uint32_t dtype)
{
    o->port[o->n_ports++] = (dt_port){name, dims, dtype, 0};
}

static void add_dim(offer *o, const char *name, int64_t size)
{
    o->dim[o->n_dims++] = (dt_dim){name, size};
}

static void add_named_dim(offer *o, const char *name, uint32_t number, int64_t size)
{
    char *text = o->text[o->n_dims];
    if (number == 0) {
        snprintf(text, TEXT, "%.48s_bytes", name);
    } else {
        snprintf(text, TEXT, "%.48s_dim%u", name, number);
    }
    add_dim(o, text, size);
}

/* The sizes of an image: NAME_dim1, NAME_dim2, ... and NAME_bytes of each number. */
static void add_image_dims(offer *o, const dt_port *p, const char *name)
{
    int64_t size = 0;
    for (uint32_t i = 1; dt_wiring_is_image(p) && (size = dt_bind_service.port_dim(p, i)) > 0; i++) {
        add_named_dim(o, name, i, size);
    }
    if (dt_wiring_is_image(p)) {
        add_named_dim(o, name, 0, p->dtype == DT_U8 ? 1 : (int64_t)sizeof(float));
    }
}

/* The environment as it is, and, but for perception itself, as perception sees it. */
static void add_observation_ports(const dt_wired *w, offer *o)
{
    const dt_wiring *face = &w->face;
    const dt_env_spec *e = face->spec;
    add_port(o, "obs", face->own->dims, face->own->dtype);
    add_dim(o, "D", dt_wiring_is_image(face->own) ? 0 : count_columns(face->own));
    add_image_dims(o, face->own, "obs");
    add_dim(o, "choices", face->n_choices);
    add_dim(o, "continuous", e->n_continuous);
    add_dim(o, "K", e->n_costs);
    for (uint32_t i = 0; i < e->n_obs; i++) {
        const bool is_offered = (w->flags & DT_WIRING_AGENT_ROWS) == 0 || dt_wiring_is_row(&e->obs[i]);
        if (strcmp(e->obs[i].name, "obs") != 0 && is_offered) {
            o->port[o->n_ports++] = e->obs[i]; /* with its flags: rows with steps are no rows of agents */
            add_dim(o, e->obs[i].name, count_columns(&e->obs[i]));
            add_image_dims(o, &e->obs[i], e->obs[i].name);
        }
    }
    if (face->perception != NULL) {
        const dt_port *embedding = dt_bind_service.model_output(face->perception, "embedding");
        add_port(o, "embedding", embedding->dims, DT_F32);
        add_port(o, "risk", "N", DT_F32);
        add_dim(o, "H", dt_bind_service.port_dim(embedding, 1));
    }
}

/* What the world model provides to controllers and shields. */
static void add_foresight_ports(const dt_wired *w, offer *o, const char *name)
{
    const dt_foresight *f = &w->foresight;
    if (w->face.F > 0) {
        const bool is_whole = strcmp(name, "foreseen") == 0;
        add_port(o, name, is_whole ? f->foreseen_dims : f->dims, DT_F32);
        add_dim(o, name, is_whole ? 2 * f->F : f->columns);
        add_dim(o, "F", f->F);
        add_dim(o, "dt_ms", f->dt_ms);
    }
}

static void add_history_ports(const dt_wiring *w, offer *o)
{
    add_dim(o, "W", w->window);
    if (w->window > 1 && !dt_wiring_is_image(w->own)) {
        snprintf(o->history, TEXT, "%lld A %lld", (long long)w->window, (long long)count_columns(w->own));
        snprintf(o->present, TEXT, "%lld A", (long long)w->window);
        add_port(o, "obs_history", o->history, DT_F32);
        add_port(o, "present", o->present, DT_F32);
    }
}

/* What an imagined state has: what the agent sees of itself. */
static void add_own_observation_ports(const dt_wired *w, offer *o)
{
    add_observation_ports(w, o); /* for the sizes */
    o->n_ports = 0;
    add_port(o, "obs", w->face.own->dims, w->face.own->dtype);
    add_port(o, w->face.own->name, w->face.own->dims, w->face.own->dtype);
}

static void add_all_ports(const dt_wired *w, offer *o)
{
    if ((w->flags & DT_WIRING_OBS_ONLY) != 0) {
        add_own_observation_ports(w, o);
        return;
    }
    add_observation_ports(w, o);
    add_history_ports(&w->face, o);
    add_foresight_ports(w, o, "foresight");
}

/* Of all continuous actions there are. */
static bool has_bounds(const dt_env_spec *e)
{
    bool has = e->n_continuous > 0;
    for (uint32_t i = 0; i < e->n_continuous; i++) {
        has = has && isfinite(e->low[i]) && isfinite(e->high[i]);
    }
    return has;
}

/* How a controller learns what the phase requires of it. */
static void add_request_dims(const dt_wired *w, offer *o)
{
    if ((w->flags & DT_WIRING_NO_VALUE) != 0) {
        add_dim(o, "values", 0);
        for (uint32_t i = 0; i < o->n_dims; i++) {
            o->dim[i].size = strcmp(o->dim[i].name, "K") == 0 ? 0 : o->dim[i].size;
        }
    }
    if ((w->flags & DT_WIRING_STATE_LOG_STD) != 0) {
        add_dim(o, "spread", 1);
    }
    if ((w->flags & DT_WIRING_SQUASHED) != 0 && has_bounds(w->face.spec)) {
        add_dim(o, "squashed", 1);
    }
}

/* ---- binding ----------------------------------------------------------------------------------------------------- */

/* May it read what is offered to it and is no row of agents? */
static bool reads_graph(const dt_model *m, const offer *o)
{
    uint32_t n = 0;
    const dt_port *in = m->comp->ops.model.inputs(m->self, &n);
    bool reads = false;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < o->n_ports; k++) {
            reads = reads || (strcmp(in[i].name, o->port[k].name) == 0 && !dt_wiring_is_row(&o->port[k]));
        }
    }
    return reads;
}

static dt_status bind_role(dt_wired *w, const char *role, const offer *o, const dt_port *needs, uint32_t n_needs,
                           uint32_t flags, dt_model **out_p)
{
    const dt_model_request want = {.struct_size = sizeof(want),
                                   .n_dims = o->n_dims,
                                   .role = role,
                                   .dims = o->dim,
                                   .offers = o->port,
                                   .needs = needs,
                                   .n_offers = o->n_ports,
                                   .n_needs = n_needs,
                                   .flags = flags};
    DT_TRY(dt_bind_service.model(w->h, &want, out_p));
    if (*out_p != NULL && reads_graph(*out_p, o)) {
        w->face.has_graph = 1;
    }
    return DT_OK;
}

static dt_status bind_perception(dt_wired *w)
{
    static const dt_port needs[] = {{"embedding", "N H", DT_F32, 0}, {"risk", "N", DT_F32, 0}};
    offer o = {.n_ports = 0};
    add_observation_ports(w, &o);
    return bind_role(w, "perception", &o, needs, 2, DT_MODEL_OPTIONAL, &w->face.perception);
}

static dt_status bind_controller(dt_wired *w)
{
    const dt_env_spec *e = w->face.spec;
    char logits[TEXT], gauss[TEXT], costs[TEXT];
    dt_port needs[MAX_OUTPUTS];
    uint32_t n = 0;
    snprintf(logits, TEXT, "A %u", w->face.n_choices);
    snprintf(gauss, TEXT, "A %u", e->n_continuous);
    snprintf(costs, TEXT, "A %u", e->n_costs);
    const bool has_value = (w->flags & DT_WIRING_NO_VALUE) == 0;
    if (has_value) {
        needs[n++] = (dt_port){"value", "A", DT_F32, 0};
    }
    if (w->face.n_choices > 0) {
        needs[n++] = (dt_port){"logits", logits, DT_F32, 0};
    }
    if (e->n_continuous > 0) {
        needs[n++] = (dt_port){"mean", gauss, DT_F32, 0};
    }
    if (dt_wired_has_spread(w)) {
        needs[n++] = (dt_port){"log_std", gauss, DT_F32, 0};
    }
    if (e->n_costs > 0 && has_value) {
        needs[n++] = (dt_port){"cost_value", costs, DT_F32, 0};
    }
    offer o = {.n_ports = 0};
    add_all_ports(w, &o);
    add_request_dims(w, &o);
    return bind_role(w, "controller", &o, needs, n, 0, &w->face.controller);
}

static dt_status bind_shield(dt_wired *w)
{
    dt_wiring *face = &w->face;
    char bounds[TEXT], allow[TEXT];
    snprintf(bounds, TEXT, "A %u", face->spec->n_continuous);
    snprintf(allow, TEXT, "A %u", face->n_choices);
    const dt_port needs[] = {{"low", bounds, DT_F32, DT_PORT_OPTIONAL},
                             {"high", bounds, DT_F32, DT_PORT_OPTIONAL},
                             {"allow", allow, DT_F32, DT_PORT_OPTIONAL}};
    offer o = {.n_ports = 0};
    add_observation_ports(w, &o);
    add_foresight_ports(w, &o, "foreseen");
    DT_TRY(bind_role(w, "shield", &o, needs, 3, DT_MODEL_OPTIONAL, &face->shield));
    if (face->shield == NULL) {
        return DT_OK;
    }
    const dt_bind_api *bind = &dt_bind_service;
    const bool has_bounds =
        bind->model_output(face->shield, "low") != NULL || bind->model_output(face->shield, "high") != NULL;
    const bool has_allow = bind->model_output(face->shield, "allow") != NULL;
    if ((face->n_choices == 0 || !has_allow) && (face->spec->n_continuous == 0 || !has_bounds)) {
        return DT_FAIL(DT_ESHAPE,
                       "shield %s bounds no action of environment %s: it gives neither allow [A %u] nor low, high "
                       "[A %u]; unset models.shield or choose another",
                       bind->model_id(face->shield), face->env_id, face->n_choices, face->spec->n_continuous);
    }
    return DT_OK;
}

static dt_status bind_foresight(dt_wired *w)
{
    dt_wiring *face = &w->face;
    const dt_port *embedding =
        face->perception == NULL ? NULL : dt_bind_service.model_output(face->perception, "embedding");
    const int64_t H = embedding == NULL ? 0 : dt_bind_service.port_dim(embedding, 1);
    if (!w->config.foresight) {
        return DT_OK;
    }
    face->F = w->foresight.F;
    face->dt_ms = w->foresight.dt_ms;
    DT_TRY(w->predictor->bind(w->h, &w->foresight, face->spec, face->env_id, H));
    face->world = w->foresight.world;
    return DT_OK;
}

static dt_status bind_env(dt_wired *w, const dt_wiring_desc *d)
{
    enum { MAX_SETTINGS = 16 };
    dt_setting set[MAX_SETTINGS + DT_FORESIGHT_SETTINGS];
    const uint32_t first = w->config.foresight ? DT_FORESIGHT_SETTINGS : 0;
    if (d->n_settings > MAX_SETTINGS) {
        return DT_FAIL(DT_EINVAL, "%s sets %u options of its environment, more than %d", d->phase, d->n_settings,
                       MAX_SETTINGS);
    }
    memcpy(set, w->foresight.setting, sizeof(w->foresight.setting));
    for (uint32_t i = 0; i < d->n_settings; i++) {
        set[first + i] = d->settings[i];
    }
    const dt_status st = dt_bind_service.env(w->h, set, first + d->n_settings, &w->face.env);
    return st < 0 && first > 0
               ? DT_CONTEXT(st, "%s.foresight requests a history from the environment; turn it off if there is none",
                            d->phase)
               : st;
}

static void use_predictor_extension(void *user, const void *table, const dt_loaded_plugin *plugin,
                                    const dt_loaded *component)
{
    dt_wired *w = user;
    w->predictor = w->predictor != NULL ? w->predictor : table;
}

static dt_status bind_all(dt_wired *w, const dt_wiring_desc *d)
{
    dt_wiring *face = &w->face;
    dt_loader_visit_extensions(dt_stage_of(w->h)->d.loader, DT_EXT_FORESIGHT, use_predictor_extension, w);
    if (w->config.foresight && w->predictor == NULL) {
        return DT_FAIL(DT_ECONFIG, "%s.foresight needs a plugin with the extension " DT_EXT_FORESIGHT, d->phase);
    }
    DT_TRY(w->config.foresight ? w->predictor->init(d->phase, &w->config, &w->foresight) : DT_OK);
    DT_TRY(bind_env(w, d));
    face->env_id = dt_bind_service.env_id(face->env);
    face->spec = dt_bind_service.env_spec(face->env);
    for (uint32_t i = 0; i < face->spec->n_heads; i++) {
        face->n_choices += (uint32_t)face->spec->choices[i];
    }
    DT_TRY(find_own_port(face));
    DT_TRY(bind_perception(w));
    DT_TRY(bind_foresight(w));
    DT_TRY(bind_controller(w));
    return bind_shield(w);
}

/* ---- the service ------------------------------------------------------------------------------------------------- */

static dt_status wiring_create(const dt_host *h, const dt_wiring_desc *given, dt_wiring **out_p)
{
    if (given == NULL || out_p == NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s creates a wiring without a %s", dt_stage_of(h)->d.phase->desc.id,
                       given == NULL ? "description" : "place for its handle");
    }
    dt_wiring_desc d = {0}; /* what was compiled with an older header is shorter */
    memcpy(&d, given, given->struct_size < sizeof(d) ? given->struct_size : sizeof(d));
    if (d.phase == NULL) {
        d.phase = dt_stage_of(h)->d.phase->desc.id;
    }
    DT_TRY(dt_settings_check(d.phase, d.settings, d.n_settings));
    dt_wired *w = dt_alloc(sizeof(*w));
    if (w == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the wiring of %s", d.phase);
    }
    w->face.api = &dt_wiring_service;
    w->face.struct_size = sizeof(w->face);
    w->h = h;
    w->flags = d.flags;
    w->config = (dt_wiring_config){.history_s = 1, .horizon_s = 1, .rate_hz = 1};
    if (d.config != NULL) {
        memcpy(&w->config, d.config, d.config_size < sizeof(w->config) ? d.config_size : sizeof(w->config));
    }
    w->face.window = w->config.window > 1 ? w->config.window : 1;
    dt_status st = dt_stage_take_ownership(dt_stage_of(h), w, dt_free); /* also when it fails half-way */
    if (st < 0) {
        dt_free(w);
        return st;
    }
    st = bind_all(w, &d);
    if (st == DT_OK) {
        *out_p = &w->face;
    }
    return st;
}

static dt_status check_role_capacity(const dt_wired *w, const char *role)
{
    return w->n_others < DT_WIRING_MAX_MODELS
               ? DT_OK
               : DT_FAIL(DT_EINVAL, "no room for a model in the role %s: %d other roles are bound", role,
                         DT_WIRING_MAX_MODELS);
}

static dt_status wiring_bind(dt_wiring *face, const dt_model_request *want, dt_model **out_p)
{
    dt_wired *w = dt_wired_of(face);
    offer o = {.n_ports = 0};
    if (want == NULL || out_p == NULL || want->role == NULL || (want->offers == NULL && want->n_offers > 0) ||
        (want->dims == NULL && want->n_dims > 0)) {
        return DT_FAIL(DT_EPLUGIN, "wiring->bind is called without a %s",
                       want == NULL         ? "description"
                       : out_p == NULL      ? "place for the handle"
                       : want->role == NULL ? "role"
                                            : "list of ports or sizes");
    }
    *out_p = NULL;
    DT_TRY(check_role_capacity(w, want->role));
    if (want->n_offers > MAX_WANTED || want->n_dims > MAX_WANTED) {
        return DT_FAIL(DT_EINVAL, "role %s has %u ports and %u sizes, at most %d of each are possible", want->role,
                       want->n_offers, want->n_dims, MAX_WANTED);
    }
    add_all_ports(w, &o);
    for (uint32_t i = 0; i < want->n_offers; i++) {
        o.port[o.n_ports++] = want->offers[i];
    }
    for (uint32_t i = 0; i < want->n_dims; i++) {
        o.dim[o.n_dims++] = want->dims[i];
    }
    DT_TRY(bind_role(w, want->role, &o, want->needs, want->n_needs, want->flags, out_p));
    if (*out_p != NULL) {
        w->other[w->n_others++] = *out_p;
    }
    return DT_OK;
}

static uint32_t wiring_models(const dt_wiring *face, dt_model **out, uint32_t capacity)
{
    const dt_wired *w = dt_wired_of_const(face);
    dt_model *const role[ROLES] = {face->perception, face->world, face->controller, face->shield};
    uint32_t n = 0;
    for (uint32_t i = 0; i < ROLES + w->n_others; i++) {
        dt_model *m = i < ROLES ? role[i] : w->other[i - ROLES];
        if (m != NULL && n < capacity) {
            out[n] = m;
        }
        n += m != NULL;
    }
    return n;
}

static dt_status wiring_adopt(dt_wiring *face, dt_model *m)
{
    dt_wired *w = dt_wired_of(face);
    dt_model *all[ROLES + DT_WIRING_MAX_MODELS];
    if (m == NULL) {
        return DT_FAIL(DT_EINVAL, "wiring->add_model is called with the model NULL; pass what bind->model returned");
    }
    const uint32_t n = wiring_models(face, all, ROLES + DT_WIRING_MAX_MODELS);
    for (uint32_t i = 0; i < n; i++) {
        if (all[i] == m) {
            return DT_FAIL(DT_EINVAL, "model %s is already part of the wiring", dt_bind_service.model_id(m));
        }
    }
    if (strcmp(m->role, "world") == 0 && face->world == NULL) {
        face->world = m;
        return DT_OK;
    }
    DT_TRY(check_role_capacity(w, m->role));
    w->other[w->n_others++] = m;
    return DT_OK;
}

const dt_wiring_api dt_wiring_service = {.struct_size = sizeof(dt_wiring_api),
                                         .create = wiring_create,
                                         .bind = wiring_bind,
                                         .add_model = wiring_adopt,
                                         .models = wiring_models,
                                         .record = dt_wiring_record,
                                         .record_model = dt_wiring_record_model,
                                         .action_log_prob = dt_wiring_drawn};
