/* SPDX-License-Identifier: Apache-2.0
 *
 * The roles of a policy in a graph, and what flows between them; see wiring.h.
 */
#include <config.h>

#include "rl/policy/wiring.h"
#include "base/err.h"
#include "dtrain/svc/graph.h"
#include "plugin/service/stage.h"

#include <stdio.h>
#include <string.h>

enum { TEXT = 128, MAX_OUTPUTS = 5, MAX_MORE = 16 };

/* ---- observations ------------------------------------------------------------------------------------------------ */

typedef struct inputs {
    dt_named in[DT_WIRING_MAX_OBS + 6 + MAX_MORE];
    uint32_t n;
} inputs;

static void add_model_input(inputs *x, const char *name, dt_tensor *t)
{
    x->in[x->n++] = (dt_named){name, t};
}

static const char *prefix_of_view(const dt_wiring_view *view)
{
    return view != NULL && view->prefix != NULL ? view->prefix : "";
}

static const char *target_of_view(const dt_wiring_view *view)
{
    return view != NULL ? view->target : NULL;
}

static bool is_view_of_rows(const dt_wiring_view *view)
{
    return prefix_of_view(view)[0] == '\0';
}

static dt_tensor *record_view_input(dt_graph *g, const dt_wiring_view *view, const char *name)
{
    char text[TEXT];
    snprintf(text, TEXT, "%s%s", prefix_of_view(view), name);
    return g->api->input(g, text);
}

/* Without a view all is; by one, rows of agents are in any case (svc/rollout.h, transitions). */
static bool is_port_in_view(const dt_wiring_view *view, const dt_port *p)
{
    return view == NULL || view->has_all != 0 || dt_wiring_is_row(p);
}

static void add_observation_inputs(const dt_wiring *w, dt_graph *g, const dt_wiring_view *view, inputs *x)
{
    add_model_input(x, "obs", record_view_input(g, view, w->own->name));
    for (uint32_t i = 0; i < w->spec->n_obs; i++) {
        const dt_port *p = &w->spec->obs[i];
        if (strcmp(p->name, "obs") != 0 && is_port_in_view(view, p)) {
            const bool is_ragged = !dt_wiring_is_of_agents(p); /* has both steps under one name */
            add_model_input(x, p->name, is_ragged ? g->api->input(g, p->name) : record_view_input(g, view, p->name));
        }
    }
}

/* ---- roles ------------------------------------------------------------------------------------------------------- */

static dt_status record_perception(const dt_wired *w, dt_graph *g, const dt_wiring_view *view, inputs *x,
                                   dt_policy_tensors *p)
{
    dt_named out[] = {{"embedding", NULL}, {"risk", NULL}};
    inputs seen = *x;
    if (w->predictor != NULL) {
        w->predictor->scale(g, w->face.spec, seen.in, seen.n);
    }
    DT_TRY(g->api->model(g, w->face.perception, seen.in, seen.n, out, 2));
    add_model_input(x, "embedding", p->embedding = out[0].tensor);
    add_model_input(x, "risk", p->risk = out[1].tensor);
    return is_view_of_rows(view) ? g->api->output(g, "picture/risk", p->risk) : DT_OK;
}

static dt_status record_foresight(const dt_wired *w, dt_graph *g, const dt_wiring_view *view, inputs *x,
                                  dt_policy_tensors *p)
{
    const dt_foresight_inputs in = {.observation = x->in,
                                    .n = x->n,
                                    .is_kept = is_view_of_rows(view),
                                    .prefix = prefix_of_view(view),
                                    .embedding = p->embedding,
                                    .risk = p->risk};
    DT_TRY(w->predictor->record(g, &w->foresight, &in, &p->foresight, &p->foreseen));
    add_model_input(x, "foresight", p->foresight);
    add_model_input(x, "foreseen", p->foreseen);
    return DT_OK;
}

static dt_status add_history_input(const dt_wiring *w, dt_graph *g, const dt_wiring_view *view, inputs *x)
{
    char history[TEXT];
    if (w->window <= 1 || dt_wiring_is_image(w->own)) {
        return DT_OK;
    }
    if (!is_view_of_rows(view)) {
        return DT_FAIL(DT_ECONFIG, "a window of %lld steps is known of rows themselves, not of rows \"%s\"",
                       (long long)w->window, prefix_of_view(view));
    }
    snprintf(history, TEXT, "%s_history", w->own->name);
    add_model_input(x, "obs_history", g->api->input(g, history));
    add_model_input(x, "present", g->api->input(g, "present"));
    return DT_OK;
}

static dt_status record_controller(const dt_wired *w, dt_graph *g, const dt_wiring_view *view, const inputs *x,
                                   dt_policy_tensors *p)
{
    const dt_wiring *face = &w->face;
    const bool has_value = (w->flags & DT_WIRING_NO_VALUE) == 0;
    const bool is_named = is_view_of_rows(view) && (w->flags & DT_WIRING_NO_OUTPUTS) == 0;
    const struct {
        const char *name;
        dt_tensor **place;
        bool is_there;
    } all[MAX_OUTPUTS] = {{"value", &p->value, has_value},
                          {"logits", &p->logits, face->n_choices > 0},
                          {"mean", &p->mean, face->spec->n_continuous > 0},
                          {"log_std", &p->log_std, dt_wired_has_spread(w)},
                          {"cost_value", &p->cost_value, face->spec->n_costs > 0 && has_value}};
    dt_named out[MAX_OUTPUTS];
    uint32_t n = 0;
    for (int i = 0; i < MAX_OUTPUTS; i++) {
        if (all[i].is_there) {
            out[n++] = (dt_named){all[i].name, NULL};
        }
    }
    inputs full = *x;
    DT_TRY(add_history_input(face, g, view, &full));
    DT_TRY(g->api->model_as(g, face->controller, target_of_view(view), full.in, full.n, out, n));
    n = 0;
    for (int i = 0; i < MAX_OUTPUTS; i++) {
        if (all[i].is_there) {
            *all[i].place = out[n].tensor;
            DT_TRY(is_named ? g->api->output(g, out[n].name, out[n].tensor) : DT_OK);
            n++;
        }
    }
    return DT_OK;
}

/* Its outputs are for the host, which acts by them: nothing here learns from a shield. */
static dt_status record_shield(const dt_wiring *w, dt_graph *g, const inputs *x)
{
    static const char *const names[] = {"low", "high", "allow"};
    dt_named out[3];
    uint32_t n = 0;
    for (int i = 0; i < 3; i++) {
        if (dt_bind_service.model_output(w->shield, names[i]) != NULL) {
            out[n++] = (dt_named){names[i], NULL};
        }
    }
    DT_TRY(g->api->model(g, w->shield, x->in, x->n, out, n));
    for (uint32_t i = 0; i < n; i++) {
        DT_TRY(g->api->output(g, out[i].name, out[i].tensor));
    }
    return DT_OK;
}

/* ---- members of the service -------------------------------------------------------------------------------------- */

dt_status dt_wiring_record(dt_wiring *face, dt_graph *g, const dt_wiring_view *view, dt_policy_tensors *out)
{
    const dt_wired *w = dt_wired_of(face);
    dt_policy_tensors p = {.struct_size = out->struct_size};
    inputs x = {.n = 0};
    add_observation_inputs(face, g, view, &x);
    if (face->perception != NULL && out->embedding != NULL) {
        add_model_input(&x, "embedding", p.embedding = out->embedding);
        add_model_input(&x, "risk", p.risk = out->risk);
    } else if (face->perception != NULL) {
        DT_TRY(record_perception(w, g, view, &x, &p));
    }
    if (face->F > 0) {
        DT_TRY(record_foresight(w, g, view, &x, &p));
    }
    DT_TRY(record_controller(w, g, view, &x, &p));
    if (face->shield != NULL && is_view_of_rows(view)) {
        DT_TRY(record_shield(face, g, &x));
    }
    memcpy(out, &p, out->struct_size < sizeof(p) ? out->struct_size : sizeof(p));
    return DT_OK;
}

dt_status dt_wiring_record_model(dt_wiring *w, dt_graph *g, const dt_wiring_view *view, dt_model *m,
                                 const dt_named *more, uint32_t n_more, dt_named *out, uint32_t n_out)
{
    inputs x = {.n = 0};
    if (n_more > MAX_MORE) {
        return DT_FAIL(DT_EINVAL, "a model is fed %u values in addition to observations, more than %d", n_more,
                       MAX_MORE);
    }
    add_observation_inputs(w, g, view, &x);
    for (uint32_t i = 0; i < n_more; i++) {
        if (more[i].tensor != NULL) {
            add_model_input(&x, more[i].name, more[i].tensor);
        }
    }
    return g->api->model_as(g, m, target_of_view(view), x.in, x.n, out, n_out);
}

static void sum_tensor(dt_graph *g, dt_tensor **sum, dt_tensor *x)
{
    *sum = *sum == NULL ? x : dt_add(g, *sum, x);
}

dt_status dt_wiring_drawn(const dt_wiring *w, dt_graph *g, const dt_policy_tensors *p, dt_tensor **log_prob_p,
                          dt_tensor **entropy_p)
{
    const dt_graph_api *api = g->api;
    dt_tensor *log_prob = NULL, *entropy = NULL;
    int64_t at = 0;
    for (uint32_t i = 0; i < w->spec->n_heads; i++) {
        const int64_t n = w->spec->choices[i];
        const bool is_only = w->spec->n_heads == 1;
        dt_tensor *logits = is_only ? p->logits : dt_slice(g, p->logits, at, n);
        dt_tensor *mask = is_only ? api->input(g, "mask") : dt_slice(g, api->input(g, "mask"), at, n);
        dt_tensor *h = NULL;
        sum_tensor(g, &log_prob, dt_categorical(g, logits, api->input(g, "action_i"), i, mask, &h));
        sum_tensor(g, &entropy, h);
        at += n;
    }
    if (w->spec->n_continuous > 0) {
        dt_tensor *h = NULL;
        sum_tensor(g, &log_prob, dt_gaussian(g, p->mean, p->log_std, api->input(g, "action_f"), &h));
        sum_tensor(g, &entropy, h);
    }
    *log_prob_p = log_prob;
    if (entropy_p != NULL) {
        *entropy_p = entropy;
    }
    return api->status(g);
}
