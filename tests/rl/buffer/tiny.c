/* SPDX-License-Identifier: Apache-2.0
 *
 * The model and the phase that act in the worlds of worlds.h.
 */
#include <config.h>

#include "worlds.h"

#include "base/mem.h"
#include "dtrain/helpers.h"

#include <string.h>

/* ---- the model --------------------------------------------------------------------------------------------------- */

enum { HIDDEN = 19 };

typedef struct net {
    int64_t D, M, C, K; /* inputs, choices, continuous, costs */
    dt_port out[5];
    char dims[5][16];
} net;

static dt_status net_create(void *self, const dt_host *h, const void *config, const dt_dim *dims, uint32_t n_dims)
{
    (void)h, (void)config;
    net *s = self;
    for (uint32_t i = 0; i < n_dims; i++) {
        int64_t *to = dims[i].name[0] == 'D'   ? &s->D
                      : dims[i].name[0] == 'M' ? &s->M
                      : dims[i].name[0] == 'C' ? &s->C
                                               : &s->K;
        *to = dims[i].size;
    }
    return DT_OK;
}

static const dt_port *net_inputs(const void *self, uint32_t *n_p)
{
    static const dt_port in[] = {{"x", "A D", DT_F32, 0}};
    *n_p = 1;
    return in;
}

static const dt_port *net_outputs(const void *self, uint32_t *n_p)
{
    static const dt_port out[] = {{"y", "A Y", DT_F32, 0}};
    *n_p = 1;
    return out;
}

static dt_status net_params(void *self, dt_params *reg)
{
    const net *s = self;
    const int64_t w1[] = {HIDDEN, s->D}, b1[] = {HIDDEN}, w2[] = {s->M + s->C + 1 + s->K, HIDDEN}, b2[] = {w2[0]};
    DT_TRY(reg->add(reg, "w1", w1, 2, DT_INIT_FAN_IN, 1));
    DT_TRY(reg->add(reg, "b1", b1, 1, DT_INIT_ZERO, 0));
    DT_TRY(reg->add(reg, "w2", w2, 2, DT_INIT_FAN_IN, 1));
    return reg->add(reg, "b2", b2, 1, DT_INIT_UNIFORM, 0.1);
}

static dt_status net_forward(void *self, dt_graph *g, dt_tensor *const *in, dt_tensor **out)
{
    const dt_graph_api *api = g->api;
    dt_tensor *h = dt_tanh(g, dt_linear(g, in[0], api->param(g, "w1"), api->param(g, "b1")));
    out[0] = dt_linear(g, h, api->param(g, "w2"), api->param(g, "b2"));
    return api->status(g);
}

static const dt_model_ops net_ops = {.struct_size = sizeof(dt_model_ops),
                                     .create = net_create,
                                     .inputs = net_inputs,
                                     .outputs = net_outputs,
                                     .params = net_params,
                                     .forward = net_forward,
                                     .destroy = no_destroy};
const dt_component tiny_net = {.struct_size = sizeof(dt_component),
                               .kind = DT_KIND_MODEL,
                               .id = "tiny_net",
                               .summary = "two layers",
                               .reference = "none",
                               .role = "controller",
                               .state_size = sizeof(net),
                               .ops = &net_ops};

/* ---- the phase --------------------------------------------------------------------------------------------------- */

typedef struct tiny_config {
    int64_t steps, window, epochs, iterations, transitions;
    int64_t replay, draw, n_step; /* samples; 0: it learns from each round alone */
    double alpha;
    const char *keep; /* a field of the rollout that the replay keeps alone; "" all */
    uint8_t normalise_obs, normalise_reward, normalise_advantage, shield, ahead, squash, carried;
    const char *kept;        /* dims of what is kept */
    const char *annotation;  /* dims of "note" */
    const char *note, *also; /* what "note" is called; an output of state that is not carried, "": none */
    int64_t batch;           /* of its trainer; 0: data.batch */
    const char *leak;        /* a field that is not known yet when an action is chosen */
    double shield_from;      /* least continuous action that the shield permits; the most is 0.375 more */
} tiny_config;

static const dt_option tiny_options[] = {
    DT_OPTION(tiny_config, steps, DT_OPT_I64, "8", "steps", 1, 100000, NULL, "of a collect"),
    DT_OPTION(tiny_config, window, DT_OPT_I64, "1", "steps", 1, 100, NULL, "of history"),
    DT_OPTION(tiny_config, epochs, DT_OPT_I64, "2", "epochs", 1, 100, NULL, "over what was collected"),
    DT_OPTION(tiny_config, iterations, DT_OPT_I64, "4", "1", 1, 100, NULL, "collects"),
    DT_OPTION(tiny_config, normalise_obs, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "see svc/rollout.h"),
    DT_OPTION(tiny_config, normalise_reward, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "see svc/rollout.h"),
    DT_OPTION(tiny_config, normalise_advantage, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "see svc/rollout.h"),
    DT_OPTION(tiny_config, shield, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "permit less"),
    DT_OPTION(tiny_config, shield_from, DT_OPT_F64, "-0.25", NULL, -10, 10, NULL, "of continuous actions"),
    DT_OPTION(tiny_config, transitions, DT_OPT_I64, "0", "1", 0, 9, NULL, "see svc/rollout.h"),
    DT_OPTION(tiny_config, replay, DT_OPT_I64, "0", "samples", 0, 1e15, NULL, "capacity of a replay"),
    DT_OPTION(tiny_config, draw, DT_OPT_I64, "36", "samples", 0, 1e6, NULL, "see svc/replay.h"),
    DT_OPTION(tiny_config, n_step, DT_OPT_I64, "1", "steps", 0, 100, NULL, "see svc/replay.h"),
    DT_OPTION(tiny_config, alpha, DT_OPT_F64, "0", "1", -1, 100, NULL, "see svc/replay.h"),
    DT_OPTION(tiny_config, keep, DT_OPT_STR, "", NULL, 0, 0, NULL, "see svc/replay.h: field"),
    DT_OPTION(tiny_config, squash, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "see svc/rollout.h"),
    DT_OPTION(tiny_config, carried, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "count an agent's steps while acting"),
    DT_OPTION(tiny_config, ahead, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "collect during learning"),
    DT_OPTION(tiny_config, kept, DT_OPT_STR, "", NULL, 0, 0, NULL, "dims of \"twice\", see svc/rollout.h"),
    DT_OPTION(tiny_config, annotation, DT_OPT_STR, "", NULL, 0, 0, NULL, "dims of \"note\", see svc/rollout.h"),
    DT_OPTION(tiny_config, note, DT_OPT_STR, "note", NULL, 0, 0, NULL, "name of the annotation"),
    DT_OPTION(tiny_config, also, DT_OPT_STR, "", NULL, 0, 0, NULL, "record carry/memory under this name, too"),
    DT_OPTION(tiny_config, batch, DT_OPT_I64, "0", "samples", 0, 1e6, NULL, "see svc/train.h"),
    DT_OPTION(tiny_config, leak, DT_OPT_STR, "", NULL, 0, 0, NULL, "act by this field, which is not known yet"),
    DT_OPTION_END};

static const tiny_config *config_of(const tiny *s)
{
    return (const tiny_config *)dt_stage_of(s->h)->config;
}

static bool is_crowd(const tiny *s)
{
    return strcmp(s->bind->env_id(s->env), "crowd") == 0;
}

static bool is_herd(const tiny *s)
{
    return strcmp(s->bind->env_id(s->env), "herd") == 0;
}

static dt_status tiny_remember(tiny *s, const tiny_config *c)
{
    const dt_replay_desc d = {.struct_size = sizeof(d),
                              .n_step = (uint32_t)c->n_step,
                              .capacity = (uint64_t)c->replay,
                              .draw = (uint64_t)c->draw,
                              .gamma = 0.5,
                              .alpha = c->alpha,
                              .beta = 0.5,
                              .field = &c->keep,
                              .n_fields = c->keep[0] != '\0'};
    s->replay = s->h->service(s->h, DT_SVC_REPLAY);
    return s->replay->create(s->h, s->r, &d, &s->p);
}

static dt_status tiny_create(void *self, const dt_host *h, const void *config)
{
    tiny *s = self;
    const tiny_config *c = config;
    s->h = h;
    s->bind = h->service(h, DT_SVC_BIND);
    s->train = h->service(h, DT_SVC_TRAIN);
    s->rollout = h->service(h, DT_SVC_ROLLOUT);
    s->graph = h->service(h, DT_SVC_GRAPH);
    s->epochs = c->epochs;
    s->most = c->iterations;
    DT_TRY(s->bind->env(h, NULL, 0, &s->env));
    const dt_env_spec *spec = s->bind->env_spec(s->env);
    int64_t M = 0;
    for (uint32_t i = 0; i < spec->n_heads; i++) {
        M += spec->choices[i];
    }
    const dt_dim dims[] = {{"D", is_herd(s)      ? 12
                                 : is_crowd(s)   ? 6
                                 : c->window > 1 ? 6
                                                 : 3},
                           {"M", M},
                           {"C", spec->n_continuous},
                           {"K", spec->n_costs}};
    const dt_port offers[] = {{"x", "A D", DT_F32, 0}, {"near", "K 2", DT_F32, 0}, {"near_ptr", "A+1", DT_I32, 0}};
    const dt_model_request want = {.struct_size = sizeof(want),
                                   .role = "controller",
                                   .dims = dims,
                                   .n_dims = 4,
                                   .offers = offers,
                                   .n_offers = is_herd(s) ? 3 : 1};
    DT_TRY(s->bind->model(h, &want, &s->net));
    const dt_port kept[] = {{"twice", c->kept, DT_F32, 0}, {"learnt", "A 1", DT_F32, 0}};
    const dt_port note = {c->note[0] != '-' ? c->note : NULL, c->annotation, DT_F32, 0},
                  carried = {"memory", "A 1", DT_F32, 0};
    s->desc = (dt_rollout_desc){.struct_size = sizeof(s->desc),
                                .steps = (uint32_t)c->steps,
                                .window = (uint32_t)c->window,
                                .normalise_obs = c->normalise_obs,
                                .normalise_reward = c->normalise_reward,
                                .normalise_advantage = c->normalise_advantage,
                                .gamma = 0.9,
                                .lambda = 0.8,
                                .cost_gamma = 0.95,
                                .cost_lambda = 0.7,
                                .clip_obs = 5,
                                .clip_reward = 5,
                                .transitions = (uint8_t)c->transitions,
                                .n_kept = c->kept[0] != '\0' ? 2 : 0,
                                .kept = kept,
                                .has_ahead = c->ahead,
                                .squash = c->squash,
                                .n_annotations = c->annotation[0] != '\0',
                                .annotation = &note,
                                .n_carried = c->carried,
                                .has_last_action = c->carried,
                                .carried = &carried};
    DT_TRY(s->rollout->create(h, s->env, &s->desc, &s->r));
    return c->replay > 0 ? tiny_remember(s, c) : DT_OK;
}

/* Acting, and learning, by who it is. */
static bool knows_places(const tiny *s)
{
    return config_of(s)->transitions > 1 && strcmp(s->bind->env_id(s->env), "relay") == 0;
}

static dt_tensor *tiny_input(const tiny *s, dt_graph *g)
{
    const dt_graph_api *api = g->api;
    if (is_herd(s)) {
        return herd_input(g);
    }
    if (is_crowd(s)) { /* own state, the node's, the mean of its neighbours */
        dt_tensor *nodes = api->input(g, "nodes"), *node = api->input(g, "node");
        dt_tensor *near = dt_segment_mean(g, dt_gather(g, nodes, api->input(g, "col")), api->input(g, "rowptr"));
        dt_tensor *part[] = {api->input(g, "own"), dt_gather(g, nodes, node), dt_gather(g, near, node)};
        api->output(g, "picture/risk", dt_merge(g, dt_affine(g, dt_slice(g, nodes, 1, 1), 4, -2)));
        return dt_concat(g, part, 3);
    }
    if (config_of(s)->window > 1) {
        dt_tensor *part[] = {api->input(g, "state"), dt_step(g, api->input(g, "state_history"), 0)};
        return dt_concat(g, part, 2);
    }
    dt_tensor *state = api->input(g, "state");
    if (knows_places(s)) {
        dt_tensor *table = dt_split(g, api->step_input(g, "table", 9), 3);
        return dt_add(g, state, dt_gather(g, table, api->input(g, "place")));
    }
    return state;
}

static dt_status tiny_record(void *user, dt_graph *g)
{
    tiny *s = user;
    const dt_graph_api *api = g->api;
    const dt_env_spec *spec = s->bind->env_spec(s->env);
    int64_t M = 0;
    for (uint32_t i = 0; i < spec->n_heads; i++) {
        M += spec->choices[i];
    }
    dt_tensor *twice = api->kept(g, "twice", dt_affine(g, tiny_input(s, g), 2, 0));
    dt_named in[] = {{"x", dt_affine(g, twice, 0.5, 0)}, {"near", NULL}, {"near_ptr", NULL}};
    const uint32_t n_in = is_herd(s) ? 3 : 1;
    for (uint32_t i = 1; i < n_in; i++) {
        in[i].tensor = api->input(g, in[i].name);
    }
    dt_named out[] = {{"y", NULL}};
    DT_TRY(api->model(g, s->net, in, n_in, out, 1));
    dt_tensor *y = out[0].tensor;
    (void)api->kept(g, "learnt", dt_slice(g, y, 0, 1));
    int64_t at = 0;
    dt_tensor *loss = NULL;
    if (M > 0) {
        dt_tensor *logits = dt_slice(g, y, 0, M);
        if (config_of(s)->leak[0] != '\0') {
            dt_tensor *part[] = {dt_slice(g, logits, 0, M - 1), dt_split(g, api->input(g, config_of(s)->leak), 0)};
            logits = dt_concat(g, part, 2);
        }
        if (config_of(s)->carried) { /* the longer an agent is there the more it does what it did */
            dt_tensor *memory = api->input(g, "memory");
            api->output(g, "carry/memory", dt_affine(g, memory, 1, 1));
            if (config_of(s)->also[0] != '\0') {
                api->output(g, config_of(s)->also, dt_affine(g, memory, 1, 1));
            }
            logits = dt_add(g, logits, dt_mul(g, api->input(g, "last_action"), dt_affine(g, memory, 0.1, 0)));
        }
        api->output(g, "logits", logits);
        if (config_of(s)->shield) { /* nothing but choices whose logit is above 0 */
            api->output(g, "allow", logits);
        }
        at = M;
    }
    if (spec->n_continuous > 0) {
        dt_tensor *mean = dt_slice(g, y, at, spec->n_continuous);
        api->output(g, "mean", mean);
        api->output(g, "log_std", dt_affine(g, mean, 0, -0.5));
        if (config_of(s)->shield) {
            api->output(g, "low", dt_affine(g, mean, 0, config_of(s)->shield_from));
            api->output(g, "high", dt_affine(g, mean, 0, config_of(s)->shield_from + 0.375));
        }
        at += spec->n_continuous;
    }
    dt_tensor *value = dt_slice(g, y, at, 1);
    api->output(g, "value", dt_merge(g, value));
    dt_tensor *d = dt_sub(g, value, dt_split(g, api->input(g, "target"), 0));
    loss = dt_mul(g, d, d);
    if (spec->n_costs > 0) {
        dt_tensor *cost = dt_slice(g, y, at + 1, spec->n_costs);
        api->output(g, "cost_value", cost);
        dt_tensor *e = dt_sub(g, cost, api->input(g, "cost_target"));
        api->loss(g, "cost", dt_sum(g, dt_mul(g, e, e)), 0.5, "A");
    }
    /* pulls probabilities about, so that what is drawn depends on what was learnt */
    dt_tensor *log_prob = dt_split(g, api->input(g, "log_prob"), 0);
    dt_tensor *advantage = dt_split(g, api->input(g, "advantage"), 0);
    dt_tensor *first = dt_slice(g, y, 0, 1);
    api->loss(g, "policy", dt_sum(g, dt_mul(g, first, dt_mul(g, log_prob, advantage))), 0.1, "A");
    api->loss(g, "value", dt_sum(g, loss), 1, "A");
    if (config_of(s)->annotation[0] != '\0') {
        dt_tensor *far = dt_sub(g, value, dt_slice(g, api->input(g, "note"), 0, 1));
        api->loss(g, "note", dt_sum(g, dt_mul(g, far, far)), 0.25, "A");
    }
    return api->status(g);
}

static dt_status tiny_start(void *self)
{
    tiny *s = self;
    const dt_train_desc d = {.struct_size = sizeof(d),
                             .n_models = 1,
                             .user = s,
                             .record = tiny_record,
                             .data = s->p != NULL ? s->replay->data(s->p) : s->rollout->data(s->r),
                             .models = &s->net,
                             .batch = (uint64_t)config_of(s)->batch,
                             .epochs = (uint64_t)(s->epochs * s->most)};
    static const float table[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    DT_TRY(s->train->create(s->h, &d, &s->t));
    return knows_places(s) ? s->train->set(s->t, "table", table, 9) : DT_OK;
}

/* What follows from the round alone: a value of each row, and its returns. */
static dt_status tiny_annotate(tiny *s)
{
    const uint64_t n = s->report.agent_steps;
    float *value = dt_alloc_n(n + 1, sizeof(*value)), *y = dt_alloc_n(n + 1, sizeof(*y)), *rows = dt_alloc_n(n + 1, 8);
    dt_status st = value != NULL && y != NULL && rows != NULL ? DT_OK : DT_ENOMEM;
    for (uint64_t i = 0; i < n && st == DT_OK; i++) {
        value[i] = note_of_row(i);
    }
    if (st == DT_OK) {
        st = s->rollout->returns(s->r, value, value, 0.5, 0.75, y, n);
    }
    for (uint64_t i = 0; i < n && st == DT_OK; i++) {
        rows[2 * i] = y[i];
        rows[2 * i + 1] = value[i];
    }
    if (st == DT_OK) {
        st = s->rollout->annotate(s->r, "note", rows, n);
    }
    dt_free(value);
    dt_free(y);
    dt_free(rows);
    return st;
}

static dt_status tiny_err(void *user, const dt_rows *rows)
{
    tiny *s = user;
    int64_t dim[DT_MAX_DIMS] = {0};
    uint32_t rank = 0;
    const float *value = s->train->rows(rows, "value", dim, &rank),
                *target = s->train->rows(rows, "target", dim, &rank);
    for (int64_t i = 0; i < dim[0]; i++) {
        s->error[s->n_errors++] = value[i] - target[i];
    }
    return DT_OK;
}

/* And how far its values are from what was drawn is its priority. */
static dt_status tiny_draw(tiny *s)
{
    DT_TRY(s->replay->draw(s->p));
    if (config_of(s)->alpha > 0) {
        s->n_errors = 0;
        DT_TRY(s->train->evaluate(s->t, s->replay->data(s->p), s, tiny_err));
        DT_TRY(s->replay->priority(s->p, s->error, s->n_errors));
    }
    return DT_OK;
}

static dt_status tiny_iterate(void *self, dt_progress *out)
{
    tiny *s = self;
    uint64_t step = 0, steps = 0, per_epoch = 0;
    DT_TRY(s->train->position(s->t, &step, &steps, &per_epoch));
    if (step == steps) {
        return DT_DONE;
    }
    s->report.struct_size = sizeof(s->report);
    DT_TRY(s->rollout->collect(s->r, s->t, &s->report));
    DT_TRY(config_of(s)->annotation[0] != '\0' ? tiny_annotate(s) : DT_OK);
    if (config_of(s)->ahead) {
        DT_TRY(s->rollout->collect_ahead(s->r, s->t));
    }
    DT_TRY(s->p != NULL ? s->replay->add(s->p) : DT_OK);
    for (uint64_t i = 0; i < (uint64_t)s->epochs * per_epoch; i++) {
        dt_step_report r = {.struct_size = sizeof(r)};
        DT_TRY(s->p != NULL && i % per_epoch == 0 ? tiny_draw(s) : DT_OK);
        DT_TRY(s->train->step(s->t, &r));
        out->loss = r.loss;
        out->step = r.step;
        out->samples += r.samples;
    }
    out->steps = steps;
    s->iterations++;
    return DT_OK;
}

static void tiny_stop(void *self)
{
    tiny *s = self;
    s->train->destroy(s->t);
    s->t = NULL;
}

static const dt_phase_ops tiny_ops = {.struct_size = sizeof(dt_phase_ops),
                                      .create = tiny_create,
                                      .start = tiny_start,
                                      .iterate = tiny_iterate,
                                      .stop = tiny_stop,
                                      .destroy = no_destroy};
const dt_component tiny_phase = {.struct_size = sizeof(dt_component),
                                 .kind = DT_KIND_PHASE,
                                 .id = "tiny",
                                 .summary = "learns values",
                                 .reference = "none",
                                 .state_size = sizeof(tiny),
                                 .config_size = sizeof(tiny_config),
                                 .options = tiny_options,
                                 .ops = &tiny_ops};
