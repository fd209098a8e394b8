/* SPDX-License-Identifier: Apache-2.0
 *
 * How phases that learn off policy read and write actions, against the same written out in double: executed ones on the
 * critic's scale, the ones taken, probabilities of what is allowed, the least of several estimates, and what
 * a shield makes of moves.
 */
#include "mock/mock.h"
#include "../../phases/offpolicy/actor_critic.h"

#include "unit.h"

#include "base/err.h"
#include "engine/graph/plan.h"

enum { ROWS = 12, MOVES = 9, HEADS = 3, CHOICES = 9, WIDEST = 4, CRITICS = 3 };
static const int32_t choices[HEADS] = {3, 4, 2};
static const char *const symbol[] = {"B", "A"};

static float executed[ROWS][MOVES], logits[ROWS][CHOICES], mask[ROWS][CHOICES], q[ROWS][CRITICS];
static float shield_low[ROWS][MOVES], shield_high[ROWS][MOVES];
static int32_t taken[ROWS][HEADS];
static const dt_port fields[] = {{"executed", "A 9", DT_F32, 0},   {"action_i", "A 3", DT_I32, 0},
                                 {"logits", "A 9", DT_F32, 0},     {"mask", "A 9", DT_F32, 0},
                                 {"q", "A 3", DT_F32, 0},          {"shield_low", "A 9", DT_F32, 0},
                                 {"shield_high", "A 9", DT_F32, 0}};
static void *const field[] = {executed, taken, logits, mask, q, shield_low, shield_high};
enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]) };

static double draw(int i)
{
    return (double)(i * 37 % 101) / 50 - 1;
}

static void fill(void)
{
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < MOVES; i++) {
            executed[r][i] = (float)draw(r * MOVES + i);
            shield_low[r][i] = (float)(draw(7 * r + i) - 1);
            shield_high[r][i] = (float)(draw(7 * r + i) + 0.5 + draw(r + i) * draw(r + i));
        }
        for (int i = 0; i < CRITICS; i++) {
            q[r][i] = (float)draw(5 * r * CRITICS + 11 * i);
        }
        for (int h = 0, at = 0; h < HEADS; at += choices[h++]) {
            taken[r][h] = (r + h) % choices[h];
            for (int i = 0; i < choices[h]; i++) {
                logits[r][at + i] = (float)(20 * draw(r * CHOICES + at + i));
                mask[r][at + i] = r == ROWS - 1 || (r + i) % 3 == 0 ? 0 : 1; /* the last row may do nothing */
            }
        }
    }
}

typedef struct rig {
    dt_graph *g;
    dt_param_table table;
    dt_env_spec spec;
    actor_critic models;
} rig;

static void rig_open(rig *r, const float *low, const float *high)
{
    memset(r, 0, sizeof(*r));
    fill();
    const dt_graph_desc d = {
        .symbol = symbol, .n_symbols = 2, .field = fields, .n_fields = N_FIELDS, .params = &r->table};
    assert_int_equal(dt_graph_create(&d, &r->g), DT_OK);
    r->spec = (dt_env_spec){.n_heads = HEADS, .choices = choices, .n_continuous = MOVES, .low = low, .high = high};
    r->models = (actor_critic){.spec = &r->spec,
                               .n_choices = CHOICES,
                               .n_actions = CHOICES + MOVES,
                               .n_critics = CRITICS,
                               .widest = WIDEST,
                               .is_bounded = low != NULL};
}

static dt_status store_step_input(dt_train *to, const char *name, const float *value, uint32_t n)
{
    assert_string_equal(name, "eye");
    memcpy(to, value, n * sizeof(*value));
    return DT_OK;
}

/* Runs the graph, whose one output is y [ROWS,n], and closes the rig. */
static void rig_run(rig *r, dt_tensor *y, float *out, int n)
{
    static const int64_t live[] = {1, ROWS};
    const dt_plan_desc pd = {.kernels = DT_KERNELS_REF32, .reuse = true, .cap = live};
    const dt_kernel_run kernel = {0};
    float eye[WIDEST * WIDEST];
    const float *const inputs[] = {eye};
    const dt_train_api train = {.set = store_step_input};
    assert_int_equal(actor_critic_set_identity(&r->models, &train, (dt_train *)(void *)eye), DT_OK);
    const dt_exec_feed feed = {.size = live, .field = field, .step_input = inputs, .run = &kernel};
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    if (r->g->api->output(r->g, "y", y) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    assert_int_equal(dt_plan_compile(r->g, &pd, &p), DT_OK);
    assert_int_equal(dt_exec_create(p, &e), DT_OK);
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    const dt_view *v = dt_exec_output(e, "y");
    assert_int_equal(v->dim[0], ROWS);
    assert_int_equal(v->dim[1], n);
    memcpy(out, v->data, (size_t)(ROWS * n) * sizeof(*out));
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    dt_graph_destroy(r->g);
    dt_param_table_fini(&r->table);
}

static void near(double is, double want)
{
    if (!(fabs(is - want) <= 2e-6 * (1 + fabs(want)))) {
        fail_msg("%.9g is not %.9g", is, want);
    }
}

/* choices one after another, 1 for the one taken; then moves, -1 and 1 at the bounds */
static void test_what_was_done(void **state)
{
    static const float low[MOVES] = {-2, 0, -1, -1, -5, 1, 0, -0.5F, -9}, high[MOVES] = {2, 3, 1, 2, 5, 2, 8, 0.5F, 0};
    float y[ROWS][CHOICES + MOVES];
    rig r;
    rig_open(&r, low, high);
    rig_run(&r, actor_critic_executed_action(&r.models, r.g), &y[0][0], CHOICES + MOVES);
    for (int k = 0; k < ROWS; k++) {
        for (int h = 0, at = 0; h < HEADS; at += choices[h++]) {
            for (int i = 0; i < choices[h]; i++) {
                assert_true(y[k][at + i] == (i == taken[k][h] ? 1.0F : 0.0F));
            }
        }
        for (int i = 0; i < MOVES; i++) {
            const double middle = 0.5 * ((double)low[i] + (double)high[i]),
                         half = 0.5 * ((double)high[i] - (double)low[i]);
            near((double)y[k][CHOICES + i], ((double)executed[k][i] - middle) / half);
        }
    }
}

/* without bounds actions are as they are; the way back is the inverse */
static void test_units(void **state)
{
    static const float low[MOVES] = {-2, 0, -1, -1, -5, 1, 0, -0.5F, -9}, high[MOVES] = {2, 3, 1, 2, 5, 2, 8, 0.5F, 0};
    float y[ROWS][MOVES];
    rig r;
    rig_open(&r, NULL, NULL);
    r.models.n_choices = 0;
    rig_run(&r, actor_critic_executed_action(&r.models, r.g), &y[0][0], MOVES);
    assert_memory_equal(y, executed, sizeof(y));
    assert_true(actor_critic_action_scale(&r.models, 3) == 1);
    rig_open(&r, low, high);
    r.models.n_choices = 0;
    rig_run(&r, actor_critic_denormalise_action(&r.models, r.g, actor_critic_executed_action(&r.models, r.g)), &y[0][0],
            MOVES);
    for (int i = 0; i < ROWS * MOVES; i++) {
        near((double)(&y[0][0])[i], (double)(&executed[0][0])[i]);
    }
    assert_true(actor_critic_action_scale(&r.models, 3) == 1.5);
}

static void test_probabilities(void **state)
{
    float y[ROWS][CHOICES];
    rig r;
    rig_open(&r, NULL, NULL);
    const dt_graph_api *api = r.g->api;
    rig_run(&r, actor_critic_masked_softmax(&r.models, r.g, api->input(r.g, "logits"), api->input(r.g, "mask")),
            &y[0][0], CHOICES);
    for (int k = 0; k < ROWS; k++) {
        for (int h = 0, at = 0; h < HEADS; at += choices[h++]) {
            double most = -1e300, sum = 0;
            for (int i = at; i < at + choices[h]; i++) {
                most = mask[k][i] > 0 ? fmax(most, (double)logits[k][i]) : most;
            }
            for (int i = at; i < at + choices[h]; i++) {
                sum += mask[k][i] > 0 ? exp((double)logits[k][i] - most) : 0;
            }
            for (int i = at; i < at + choices[h]; i++) {
                const double p = mask[k][i] > 0 ? exp((double)logits[k][i] - most) / sum : 0;
                near((double)y[k][i], sum > 0 ? p : 1.0 / choices[h]);
            }
        }
    }
}

/* ---- a shield ---------------------------------------------------------------------------------------------------- */

static dt_model *const shield = (dt_model *)(void *)&shield_low; /* never looked into */

/* It says a bound for each move, of the rows' own fields. */
static dt_status record_shield(dt_wiring *w, dt_graph *g, const dt_wiring_view *view, dt_model *m, const dt_named *more,
                               uint32_t n_more, dt_named *out, uint32_t n_out)
{
    (void)w, (void)more, (void)n_more;
    assert_ptr_equal(m, shield);
    assert_string_equal(view->prefix, "next_");
    for (uint32_t i = 0; i < n_out; i++) {
        out[i].tensor = g->api->input(g, strcmp(out[i].name, "low") == 0 ? "shield_low" : "shield_high");
    }
    return g->api->status(g);
}

static const char *left_out; /* an output that the shield lacks */
static const dt_port *shield_output(const dt_model *m, const char *name)
{
    static const dt_port port = {"low", "A 9", DT_F32, 0};
    assert_ptr_equal(m, shield);
    return left_out != NULL && strcmp(name, left_out) == 0 ? NULL : &port;
}

/* What is wanted, on the critic's scale, becomes what the host would execute of it, and the gradient passes. */
static void shielded(const char *lacks)
{
    static const float low[MOVES] = {-2, 0, -1, -1, -5, 1, 0, -0.5F, -9}, high[MOVES] = {2, 3, 1, 2, 5, 2, 8, 0.5F, 0};
    static const dt_wiring_api wiring = {.struct_size = sizeof(wiring), .record_model = record_shield};
    static const dt_bind_api bind = {.struct_size = sizeof(bind), .model_output = shield_output};
    const dt_policy_tensors says = {.struct_size = sizeof(says)};
    dt_wiring w = {.api = &wiring, .shield = shield};
    float y[ROWS][MOVES];
    int n_moved = 0;
    rig r;
    left_out = lacks;
    rig_open(&r, low, high);
    r.models.wiring = &w;
    r.models.bind = &bind;
    dt_tensor *move = r.g->api->input(r.g, "executed");
    assert_int_equal(actor_critic_apply_shield(&r.models, r.g, "next_", &says, &move), DT_OK);
    rig_run(&r, move, &y[0][0], MOVES);
    for (int i = 0; i < ROWS * MOVES; i++) {
        const double l = (double)low[i % MOVES], h = (double)high[i % MOVES], half = (h - l) / 2, middle = (h + l) / 2;
        const double wanted = middle + half * (double)(&executed[0][0])[i];
        const double least = lacks != NULL && strcmp(lacks, "low") == 0 ? l : (double)(&shield_low[0][0])[i];
        const double most = lacks != NULL && strcmp(lacks, "high") == 0 ? h : (double)(&shield_high[0][0])[i];
        const double does = fmin(fmax(fmin(fmax(wanted, least), most), l), h);
        near((double)(&y[0][0])[i], (does - middle) / half);
        n_moved += fabs(does - wanted) > 1e-3;
    }
    assert_true(n_moved > 10);
}

/* The gradient passes a shield as if there were none. */
static void test_gradient_of_a_shield(void **state)
{
    static const float low[MOVES] = {-1, -1, -1, -1, -1, -1, -1, -1, -1}, high[MOVES] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const dt_wiring_api wiring = {.struct_size = sizeof(wiring), .record_model = record_shield};
    static const dt_bind_api bind = {.struct_size = sizeof(bind), .model_output = shield_output};
    static const int64_t live[] = {1, ROWS}, dim[] = {MOVES};
    const dt_policy_tensors says = {.struct_size = sizeof(says)};
    dt_wiring w = {.api = &wiring, .shield = shield};
    float params[MOVES] = {0}, grads[MOVES] = {0};
    const double seed[] = {1};
    double loss[1];
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    rig r;
    left_out = NULL;
    rig_open(&r, low, high);
    r.models.wiring = &w;
    r.models.bind = &bind;
    assert_int_equal(dt_param_table_add(&r.table, "net", "b", dim, 1, DT_INIT_ZERO, 0), DT_OK);
    dt_graph_set_scope(r.g, "net");
    dt_tensor *move = dt_add(r.g, r.g->api->input(r.g, "executed"), r.g->api->param(r.g, "b"));
    assert_int_equal(actor_critic_apply_shield(&r.models, r.g, "next_", &says, &move), DT_OK);
    dt_tensor *rows = dt_merge(r.g, dt_reduce_columns(r.g, DT_REDUCE_SUM, move));
    assert_int_equal(r.g->api->loss(r.g, "sum", dt_sum(r.g, rows), 1, "A"), DT_OK);
    const dt_plan_desc pd = {.kernels = DT_KERNELS_REF32, .training = true, .reuse = true, .cap = live};
    assert_int_equal(dt_plan_compile(r.g, &pd, &p), DT_OK);
    assert_int_equal(dt_exec_create(p, &e), DT_OK);
    const dt_kernel_run run = {.training = 1};
    const dt_exec_feed feed = {
        .size = live, .field = field, .params = params, .grads = grads, .loss_seed = seed, .loss = loss, .run = &run};
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    for (int i = 0; i < MOVES; i++) {
        near((double)grads[i], ROWS);
    }
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    dt_graph_destroy(r.g);
    dt_param_table_fini(&r.table);
}

static void test_shield(void **state)
{
    shielded(NULL);
    shielded("low");
    shielded("high");
}

static void test_least(void **state)
{
    float y[ROWS];
    rig r;
    rig_open(&r, NULL, NULL);
    rig_run(&r, actor_critic_min_q(&r.models, r.g, r.g->api->input(r.g, "q")), y, 1);
    for (int k = 0; k < ROWS; k++) {
        assert_true(y[k] == fminf(q[k][0], fminf(q[k][1], q[k][2])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_done),        cmocka_unit_test(test_units),
        cmocka_unit_test(test_probabilities),        cmocka_unit_test(test_shield),
        cmocka_unit_test(test_gradient_of_a_shield), cmocka_unit_test(test_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
