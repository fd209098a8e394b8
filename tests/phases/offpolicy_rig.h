/* SPDX-License-Identifier: Apache-2.0
 *
 * The losses that a phase off policy records, run in double on rows of two continuous actions and two critics. Actor
 * and critics are linear, so that losses and gradients have a closed form: the mean of row r is the field "mean" plus
 * the parameter "actor", and critic k is w_k a plus the parameter "critic"[k]. Rows of the next step and target
 * networks have fields of their own, by the prefixes next_ and target_.
 */
#ifndef DTRAIN_TESTS_PHASES_OFFPOLICY_RIG_H
#define DTRAIN_TESTS_PHASES_OFFPOLICY_RIG_H

#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */
#include "../../phases/offpolicy/learner.h"

#include "unit.h"

#include "base/err.h"
#include "engine/graph/plan.h"

enum { ROWS = 9, MOVES = 2, CRITICS = 2, VIEWS = 4, FIELDS = 32, ARENA = 1024 };
enum { NOW, NEXT, TARGET, TARGET_NEXT }; /* views: fields of the prefixes "", "next_", "target_", "target_next_" */
static const char *const prefix_of[VIEWS] = {"", "next_", "target_", "target_next_"};
static const float bound_low[MOVES] = {-3, -1}, bound_high[MOVES] = {3, 1};

typedef struct rows {
    float mean[VIEWS][ROWS][MOVES], log_std[VIEWS][ROWS][MOVES], w[VIEWS][CRITICS][ROWS][MOVES];
    float mask[ROWS][MOVES], next_mask[ROWS][MOVES]; /* of as many choices */
    int32_t taken[ROWS];
    float executed[ROWS][MOVES], reward[ROWS], discount[ROWS], weight[ROWS];
    int64_t key[ROWS];
} rows;

static inline double rows_draw(int i)
{
    return (double)(i * 37 % 101) / 50 - 1;
}

static inline void rows_fill(rows *x)
{
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < MOVES; i++) {
            for (int v = 0; v < VIEWS; v++) {
                x->mean[v][r][i] = (float)rows_draw(31 * v + 5 * r + i);
                x->log_std[v][r][i] = (float)(0.5 * rows_draw(17 * v + 3 * r + 7 * i) - 1);
                for (int k = 0; k < CRITICS; k++) {
                    x->w[v][k][r][i] = (float)(2 * rows_draw(13 * v + 11 * k + 7 * r + 3 * i));
                }
            }
            x->mask[r][i] = i == r % MOVES || r % 3 > 0 ? 1 : 0;
            x->next_mask[r][i] = i == (r + 1) % MOVES || r % 4 > 0 ? 1 : 0;
            x->executed[r][i] = bound_high[i] * (float)rows_draw(9 * r + 2 * i + 1);
        }
        x->taken[r] = r % MOVES;
        x->reward[r] = (float)(3 * rows_draw(r + 50));
        x->discount[r] = r % 3 == 0 ? 0 : 0.9F; /* every third row is terminal */
        x->weight[r] = r == 4 ? 0 : 0.5F + 0.25F * (float)(r % 3);
        x->key[r] = 1000 + 77 * r;
    }
}

/* ---- fakes ------------------------------------------------------------------------------------------------------- */

static int rig_temperature; /* its address is a model */
static int rig_critic;

static inline dt_tensor *rig_input(dt_graph *g, int view, const char *name)
{
    char text[64];
    snprintf(text, sizeof(text), "%s%s", prefix_of[view], name);
    return g->api->input(g, text);
}

static inline int rig_view(const dt_wiring_view *view)
{
    const bool is_next = strcmp(view->prefix, "next_") == 0, is_target = view->target != NULL;
    assert_true(is_next || view->prefix[0] == '\0');
    assert_true(!is_target || strcmp(view->target, "target") == 0);
    return is_target ? (is_next ? TARGET_NEXT : TARGET) : is_next ? NEXT : NOW;
}

static inline dt_status rig_record(dt_wiring *w, dt_graph *g, const dt_wiring_view *view, dt_policy_tensors *out)
{
    const int v = rig_view(view);
    out->mean = dt_add(g, rig_input(g, v, "mean"), g->api->param(g, "actor"));
    out->log_std = rig_input(g, v, "log_std");
    return g->api->status(g);
}

static int rig_n_seen; /* actions of this step that the critic was shown: first the actor's, then what was done */

/* Actions that the critic sees are outputs, by which the reference knows what was drawn. */
static inline dt_status rig_record_model(dt_wiring *w, dt_graph *g, const dt_wiring_view *view, dt_model *m,
                                         const dt_named *more, uint32_t n_more, dt_named *out, uint32_t n_out)
{
    static const char *const name[CRITICS] = {"w0", "w1"};
    dt_tensor *q[CRITICS];
    (void)w, (void)n_more;
    assert_ptr_equal(m, &rig_critic);
    assert_true(strcmp(more[0].name, "action") == 0 && n_out == 1);
    const int v = rig_view(view);
    for (int k = 0; k < CRITICS; k++) {
        q[k] = dt_reduce_columns(g, DT_REDUCE_SUM, dt_mul(g, more[0].tensor, rig_input(g, v, name[k])));
    }
    out[0].tensor = dt_concat(g, q, CRITICS);
    if (view->target != NULL) {
        assert_int_equal(v, TARGET_NEXT); /* what is learnt towards is the target network's, at the next step */
        return g->api->output(g, "next_action", more[0].tensor);
    }
    assert_int_equal(v, NOW);
    out[0].tensor = dt_add(g, out[0].tensor, g->api->param(g, "critic"));
    return rig_n_seen++ == 0 ? g->api->output(g, "action", more[0].tensor) : g->api->status(g);
}

static inline dt_status rig_model(dt_graph *g, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out,
                                  uint32_t n_out)
{
    (void)in, (void)n_in;
    assert_ptr_equal(m, &rig_temperature);
    assert_true(n_out == 1 && strcmp(out[0].name, "log_alpha") == 0);
    out[0].tensor = g->api->param(g, "log_alpha");
    return g->api->status(g);
}

static const dt_wiring_api rig_wiring = {
    .struct_size = sizeof(rig_wiring), .record = rig_record, .record_model = rig_record_model};

/* ---- a run ------------------------------------------------------------------------------------------------------- */

typedef struct rig_params {
    double actor[MOVES], critic[CRITICS], log_alpha;
} rig_params;

typedef struct rig_result {
    double loss[DT_GRAPH_MAX_LOSSES];
    rig_params grad; /* of the loss that was asked for, times its weight */
    double action[ROWS][MOVES], next_action[ROWS][MOVES], surprise[ROWS], logits[ROWS][MOVES];
} rig_result;

static inline double rig_loss(const rig_result *r, const dt_graph *g, const char *name, double *weight_p)
{
    const dt_graph_loss *loss = NULL;
    const uint32_t n = dt_graph_losses(g, &loss);
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(loss[i].name, name) == 0) {
            *weight_p = loss[i].weight;
            return r->loss[i];
        }
    }
    fail_msg("there is no loss %s", name);
    return NAN;
}

typedef struct rig {
    rows rows;
    rig_params params;
    dt_env_spec spec;
    dt_wiring wiring;
    dt_param_table table;
    dt_graph *g;
    dt_graph_api api;
    dt_port port[FIELDS];
    void *field[FIELDS];
    char name[FIELDS][32];
    uint32_t n_fields;
    const float *step_input[4];
} rig;

static inline void rig_field(rig *r, int view, const char *name, const char *dims, uint32_t dtype, void *at)
{
    char *text = r->name[r->n_fields];
    snprintf(text, sizeof(r->name[0]), "%s%s", prefix_of[view], name);
    r->port[r->n_fields] = (dt_port){text, dims, dtype, 0};
    r->field[r->n_fields++] = at;
}

static inline void rig_open(rig *r)
{
    static const char *const symbol[] = {"B", "A"};
    static const int64_t dim[] = {MOVES, CRITICS, 1};
    static const char *const param[] = {"actor", "critic", "log_alpha"};
    memset(r, 0, sizeof(*r));
    rig_n_seen = 0;
    rows_fill(&r->rows);
    for (int v = 0; v < VIEWS; v++) {
        rig_field(r, v, "mean", "A 2", DT_F32, r->rows.mean[v]);
        rig_field(r, v, "log_std", "A 2", DT_F32, r->rows.log_std[v]);
        rig_field(r, v, "w0", "A 2", DT_F32, r->rows.w[v][0]);
        rig_field(r, v, "w1", "A 2", DT_F32, r->rows.w[v][1]);
    }
    rig_field(r, NOW, "executed", "A 2", DT_F32, r->rows.executed);
    rig_field(r, NOW, "mask", "A 2", DT_F32, r->rows.mask);
    rig_field(r, NOW, "next_mask", "A 2", DT_F32, r->rows.next_mask);
    rig_field(r, NOW, "action_i", "A 1", DT_I32, r->rows.taken);
    rig_field(r, NOW, "reward", "A", DT_F32, r->rows.reward);
    rig_field(r, NOW, "discount", "A", DT_F32, r->rows.discount);
    rig_field(r, NOW, "weight", "A", DT_F32, r->rows.weight);
    rig_field(r, NOW, "row_key", "A", DT_I64, r->rows.key);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dt_param_table_add(&r->table, "m", param[i], &dim[i], 1, DT_INIT_ZERO, 0), DT_OK);
    }
    const dt_graph_desc d = {
        .symbol = symbol, .n_symbols = 2, .field = r->port, .n_fields = r->n_fields, .params = &r->table};
    assert_int_equal(dt_graph_create(&d, &r->g), DT_OK);
    dt_graph_set_scope(r->g, "m");
    r->api = *r->g->api;
    r->api.model = rig_model;
    r->g->api = &r->api;
    r->spec = (dt_env_spec){.n_continuous = MOVES, .low = bound_low, .high = bound_high, .n_agents = 1};
    r->wiring = (dt_wiring){.api = &rig_wiring, .spec = &r->spec, .env_id = "test"};
    r->params = (rig_params){.actor = {0.3, -0.2}, .critic = {0.2, 0.1}, .log_alpha = -0.9};
}

static inline void rig_exec(rig *r, bool is_training, const double *seed, double *grads, rig_result *out)
{
    static const int64_t live[] = {1, ROWS};
    const dt_plan_desc pd = {.kernels = DT_KERNELS_REF64, .training = is_training, .reuse = true, .cap = live};
    const dt_kernel_run how = {.seed = 5, .step = 3, .training = 1};
    double *const at[] = {r->params.actor, r->params.critic, &r->params.log_alpha};
    double params[ARENA] = {0};
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    for (uint32_t i = 0; i < r->table.n; i++) {
        memcpy(params + r->table.param[i].offset, at[i], (size_t)r->table.param[i].count * sizeof(double));
    }
    if (dt_plan_compile(r->g, &pd, &p) != DT_OK || dt_exec_create(p, &e) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    const dt_exec_feed feed = {.size = live,
                               .field = r->field,
                               .step_input = r->step_input,
                               .params = params,
                               .grads = grads,
                               .loss_seed = seed,
                               .loss = out->loss,
                               .run = &how};
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    static const char *const name[] = {"action", "next_action", "logits", "td_error"};
    double *const to[] = {&out->action[0][0], &out->next_action[0][0], &out->logits[0][0], out->surprise};
    for (int i = 0; i < 4 && !is_training; i++) {
        const dt_view *v = dt_exec_output(e, name[i]);
        if (v != NULL) {
            memcpy(to[i], v->data, (i < 3 ? ROWS * MOVES : ROWS) * sizeof(double));
        }
    }
    dt_exec_destroy(e);
    dt_plan_destroy(p);
}

/* Losses, actions, and the gradient of one of the losses, as the graph is recorded. */
static inline void rig_run(rig *r, const char *of, rig_result *out)
{
    const dt_graph_loss *loss = NULL;
    double seed[DT_GRAPH_MAX_LOSSES] = {0}, grads[ARENA] = {0};
    double *const to[] = {out->grad.actor, out->grad.critic, &out->grad.log_alpha};
    const uint32_t n = dt_graph_losses(r->g, &loss);
    for (uint32_t i = 0; i < n; i++) {
        seed[i] = strcmp(loss[i].name, of) == 0 ? loss[i].weight : 0;
    }
    memset(out, 0, sizeof(*out));
    assert_true(r->table.total <= ARENA);
    rig_exec(r, false, seed, NULL, out);
    memset(out->loss, 0, sizeof(out->loss));
    rig_exec(r, true, seed, grads, out);
    for (uint32_t i = 0; i < r->table.n; i++) {
        memcpy(to[i], grads + r->table.param[i].offset, (size_t)r->table.param[i].count * sizeof(double));
    }
}

static inline void rig_close(rig *r)
{
    dt_graph_destroy(r->g);
    dt_param_table_fini(&r->table);
}

static inline void rig_near(const char *what, double is, double want)
{
    if (!(fabs(is - want) <= 1e-9 * (1 + fabs(want)))) {
        fail_msg("%s: %.12g is not %.12g", what, is, want);
    }
}

#endif
