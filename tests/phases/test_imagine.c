/* SPDX-License-Identifier: Apache-2.0
 *
 * Imagined branches against a second computation in double that shares nothing with the graph: every step of both
 * branches of every row, for one action and for several, with nobody ahead, with a collision on the way, with bounds
 * that hold; that no gradient flows through a branch; and what is refused.
 */
#include "mock/mock.h"
#include "../../phases/ppo/imagine.h"

#include "unit.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "engine/graph/plan.h"

enum { ROWS = 40, EGO = 9, F = 20, OUT = 2, PARAMS = OUT * (EGO + 1) }; /* value and mean, linear in ego */
enum { SPEED, GAP, AHEAD, BEHIND_GAP, BEHIND, WANT, WAY, ACCEL };

static const float low[] = {-3}, high[] = {2};
static float ego[ROWS][EGO], foreseen[ROWS][2 * F], action[ROWS], advantage[ROWS], old[ROWS];
static const float unit = 0.25F;

static const dt_port own = {"ego", "A 9", DT_F32, 0};
static const dt_port fields[] = {{"ego", "A 9", DT_F32, 0},
                                 {"foreseen", "A 40", DT_F32, 0},
                                 {"action_f", "A 1", DT_F32, 0},
                                 {"advantage", "A", DT_F32, 0},
                                 {"log_prob", "A", DT_F32, 0}};
static void *const field[] = {ego, foreseen, action, advantage, old};
enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]) };

static double draw(uint32_t stream, uint64_t i, double from, double to)
{
    const dt_rng_key key = {.seed = 9, .op = stream};
    return from + (to - from) * dt_rng_uniform(&key, i);
}

static void fill(double *w)
{
    for (int i = 0; i < PARAMS; i++) {
        w[i] = draw(1, (uint64_t)i, -0.1, 0.1);
    }
    for (int i = 0; i < ROWS; i++) {
        const uint64_t at = (uint64_t)i;
        const double fact[EGO] = {draw(2, at, 0, 15),
                                  i % 5 == 0 ? 200 : draw(3, at, 1, 60),
                                  draw(4, at, 0, 15),
                                  i % 3 == 0 ? 200 : draw(5, at, 0, 50),
                                  draw(6, at, 0, 15),
                                  14,
                                  i % 4 == 0 ? 200 : draw(7, at, 0, 30),
                                  draw(8, at, -2, 2),
                                  draw(9, at, -2, 2)};
        for (int d = 0; d < EGO; d++) {
            ego[i][d] = (float)fact[d];
        }
        double x = 0;
        for (int f = 0; f < F; f++) { /* nobody ahead: zeros */
            x += draw(10, (uint64_t)(i * F + f), 0, 3);
            foreseen[i][f] = i % 5 == 0 ? 0 : (float)x;
        }
        action[i] = (float)draw(11, at, -5, 4);
        advantage[i] = (float)draw(12, at, -1, 1);
    }
}

/* ---- the second computation -------------------------------------------------------------------------------------- */

static double output(const double *w, const double *s, int o)
{
    double y = w[OUT * EGO + o];
    for (int d = 0; d < EGO; d++) {
        y += w[o * EGO + d] * s[d];
    }
    return y;
}

static double value_of(const double *w, int row, double a, int steps, double tau, double dt, double gamma)
{
    double s[EGO];
    int lives = 1;
    const int n = (int)lround(tau / dt);
    for (int d = 0; d < EGO; d++) {
        s[d] = (double)ego[row][d];
    }
    for (int i = 0; i < steps; i++) {
        a = i > 0 ? output(w, s, 1) : a;
        a = fmin(fmax(a, (double)low[0]), (double)high[0]);
        const double v = fmax(0, s[SPEED] + a * tau), d = 0.5 * (s[SPEED] + v) * tau;
        const float *x = foreseen[row];
        const double from = i > 0 ? (double)x[i * n - 1] : 0, to = (double)x[(i + 1) * n - 1];
        const double before = (i + 1) * n > 1 ? (double)x[(i + 1) * n - 2] : 0;
        if (s[GAP] < 200) {
            s[GAP] += to - from - d;
            s[AHEAD] = (to - before) / dt;
        } else {
            s[AHEAD] = v;
        }
        lives = lives && s[GAP] > 0;
        s[BEHIND] = s[BEHIND_GAP] < 200 ? s[BEHIND] : v;
        s[BEHIND_GAP] += s[BEHIND_GAP] < 200 ? d - (double)ego[row][BEHIND] * tau : 0;
        s[WAY] -= s[WAY] < 200 ? d : 0;
        const int gaps[] = {GAP, BEHIND_GAP, WAY};
        for (int k = 0; k < 3; k++) {
            s[gaps[k]] = fmin(fmax(s[gaps[k]], 0), 200);
        }
        s[SPEED] = v;
        s[ACCEL] = a;
    }
    return lives ? pow(gamma, steps) * output(w, s, 0) : 0;
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

static dt_status forward(void *user, dt_graph *g, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out,
                         uint32_t n_out)
{
    (void)user, (void)m;
    assert_true(n_in == 2 && n_out == 1);
    assert_string_equal(in[0].name, "obs");
    dt_tensor *y = dt_linear(g, in[0].tensor, g->api->param(g, "w"), g->api->param(g, "b"));
    const int is_value = strcmp(out[0].name, "value") == 0;
    out[0].tensor = is_value ? dt_merge(g, dt_slice(g, y, 0, 1)) : dt_slice(g, y, 1, 1);
    return g->api->status(g);
}

/* Advantages of the rows where grad is NULL, else the gradient of a clipped objective that follows them. */
static void run(const imagine_config *c, double step_s, const double *w, double *out, double *grad)
{
    static const char *const symbol[] = {"A", "B"};
    static const int64_t cap[] = {ROWS, ROWS}, dim[2][2] = {{OUT, EGO}, {OUT, 0}};
    const dt_env_spec spec = {.struct_size = sizeof(spec),
                              .obs = &own,
                              .n_obs = 1,
                              .n_agents = 1,
                              .low = low,
                              .high = high,
                              .n_continuous = 1,
                              .step_s = step_s};
    const dt_wiring wiring = {.spec = &spec, .own = &own, .F = F, .dt_ms = 200};
    dt_param_table table = {0};
    dt_graph *g = NULL;
    dt_plan *plan = NULL;
    dt_exec *e = NULL;
    assert_int_equal(dt_param_table_add(&table, "controller", "w", dim[0], 2, DT_INIT_ZERO, 0), DT_OK);
    assert_int_equal(dt_param_table_add(&table, "controller", "b", dim[1], 1, DT_INIT_ZERO, 0), DT_OK);
    const dt_graph_desc d = {
        .symbol = symbol, .n_symbols = 2, .field = fields, .n_fields = N_FIELDS, .params = &table, .model = forward};
    assert_int_equal(dt_graph_create(&d, &g), DT_OK);
    dt_graph_set_scope(g, "controller");
    dt_tensor *x = g->api->input(g, "ego"), *y = dt_linear(g, x, g->api->param(g, "w"), g->api->param(g, "b"));
    dt_policy_tensors p = {.mean = dt_slice(g, y, 1, 1), .foreseen = g->api->input(g, "foreseen")};
    p.log_std = dt_affine(g, p.mean, 0.0, 0.0);
    dt_tensor *a = NULL, *unused = NULL;
    if (imagine_record(c, &wiring, g, &p, g->api->input(g, "advantage"), &a) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    assert_int_equal(g->api->output(g, "advantage_used", a), DT_OK);
    dt_tensor *log_prob = dt_gaussian(g, p.mean, p.log_std, g->api->input(g, "action_f"), &unused);
    dt_tensor *loss = dt_ppo_clip(g, log_prob, g->api->input(g, "log_prob"), a, 0.999999, 1e30, NULL, NULL);
    assert_int_equal(g->api->loss(g, "policy_loss", dt_sum(g, loss), 1.0, "A"), DT_OK);
    const dt_plan_desc pd = {.kernels = DT_KERNELS_REF64, .training = grad != NULL, .cap = cap};
    if (dt_plan_compile(g, &pd, &plan) != DT_OK || dt_exec_create(plan, &e) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    const float *step_input[] = {&unit};
    double *params = dt_alloc_n((size_t)table.total, sizeof(double));
    double *grads = dt_alloc_n((size_t)table.total, sizeof(double));
    double seed[DT_GRAPH_MAX_LOSSES] = {1}, got[DT_GRAPH_MAX_LOSSES] = {0};
    for (int i = 0; i < PARAMS; i++) {
        params[i < OUT * EGO ? table.param[0].offset + i : table.param[1].offset + i - OUT * EGO] = w[i];
    }
    static const int64_t size[] = {ROWS, ROWS};
    const dt_kernel_run kernel = {.training = grad != NULL};
    const dt_exec_feed feed = {.size = size,
                               .field = field,
                               .step_input = step_input,
                               .params = params,
                               .grads = grads,
                               .loss_seed = seed,
                               .loss = got,
                               .run = &kernel};
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    if (grad == NULL) {
        memcpy(out, dt_exec_output(e, "advantage_used")->data, ROWS * sizeof(*out));
    }
    for (int i = 0; i < PARAMS && grad != NULL; i++) {
        grad[i] = grads[i < OUT * EGO ? table.param[0].offset + i : table.param[1].offset + i - OUT * EGO];
    }
    dt_free(params);
    dt_free(grads);
    dt_exec_destroy(e);
    dt_plan_destroy(plan);
    dt_graph_destroy(g);
    dt_param_table_fini(&table);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

/* Returns how many branches ended early. */
static int check(int steps, double tau, double weight)
{
    const imagine_config c = {.weight = weight, .gamma = 0.9, .steps = steps};
    double w[PARAMS], is[ROWS], grad[PARAMS], want_grad[PARAMS] = {0};
    int n_apart = 0, n_dead = 0;
    fill(w);
    run(&c, tau, w, is, NULL);
    run(&c, tau, w, NULL, grad);
    for (int i = 0; i < ROWS; i++) {
        double s[EGO];
        for (int d = 0; d < EGO; d++) {
            s[d] = (double)ego[i][d];
        }
        const double mean = output(w, s, 1), a = (double)action[i];
        const double here = value_of(w, i, a, steps, tau, 0.2, 0.9);
        const double there = value_of(w, i, 2 * mean - a, steps, tau, 0.2, 0.9);
        const double want = (1 - weight) * (double)advantage[i] + 0.5 * weight * (here - there) * (double)unit;
        if (fabs(is[i] - want) > 1e-6) {
            fail_msg("row %d: %.9g, expected %.9g", i, is[i], want);
        }
        n_apart += fabs(here - there) > 0.01;
        n_dead += (here == 0) + (there == 0);
        /* -A r grad log p alone, r = p / e^0 */
        const double n = a - mean, r = exp(-0.5 * n * n - 0.5 * log(2 * acos(-1)) - (double)old[i]);
        for (int d = 0; d <= EGO; d++) {
            const int at = d < EGO ? EGO + d : OUT * EGO + 1;
            want_grad[at] -= want * r * n * (d < EGO ? s[d] : 1);
        }
    }
    assert_true(n_apart > ROWS / 4);
    for (int i = 0; i < PARAMS; i++) {
        if (fabs(grad[i] - want_grad[i]) > 1e-5 * (1 + fabs(want_grad[i]))) {
            fail_msg("parameter %d: %.9g, expected %.9g", i, grad[i], want_grad[i]);
        }
    }
    return n_dead;
}

static void test_one_action(void **test)
{
    assert_in_range(check(1, 1.0, 0.5), 1, ROWS);
    (void)check(1, 0.2, 1.0);
}

static void test_several_actions(void **test)
{
    assert_in_range(check(2, 1.0, 0.5), 2, ROWS);
    assert_in_range(check(4, 1.0, 0.3), 2, ROWS);
    assert_in_range(check(5, 0.4, 0.5), 2, ROWS);
}

static void test_refused(void **test)
{
    mock_host host;
    mock_host_init(&host);
    static const int32_t lanes[] = {3};
    static const dt_port other = {"obs", "A 4", DT_F32, 0};
    const dt_env_spec sees = {.struct_size = sizeof(sees), .n_continuous = 1, .low = low, .high = high, .step_s = 1};
    dt_env_spec chooses = sees, slow = sees;
    chooses.n_heads = 1;
    chooses.choices = lanes;
    slow.step_s = 0.3;
    const dt_wiring good = {.env_id = "e", .spec = &sees, .own = &own, .F = F, .dt_ms = 200};
    dt_wiring blind = good, far = good, lane = good, odd = good, near = good;
    blind.F = 0;
    near.F = F - 1;
    far.own = &other;
    lane.spec = &chooses;
    odd.spec = &slow;
    const imagine_config off = {.weight = 0, .steps = 1}, on = {.weight = 0.5, .steps = 4};
    const imagine_config scaled = {.weight = 0.5, .steps = 1, .is_scaled = true}, late = {.weight = 0.5, .steps = 5};
    const struct {
        const imagine_config *c;
        const dt_wiring *w;
        dt_status st;
        const char *words;
    } bad[] = {{&on, &blind, DT_ECONFIG, "p.imagine_weight 0.5 foresight models.world"},
               {&scaled, &good, DT_ECONFIG, "p.imagine_weight normalise_obs"},
               {&on, &far, DT_ESHAPE, "\"obs\" [A 4] 1 0"},
               {&on, &lane, DT_ESHAPE, "p.imagine_weight \"ego\""},
               {&on, &odd, DT_ECONFIG, "p.imagine_steps 4 0.3 20 200"},
               {&on, &near, DT_ECONFIG, "p.imagine_steps 4 19"},
               {&late, &good, DT_ECONFIG, "p.imagine_steps 5 1 20"}};
    assert_int_equal(imagine_check(&host.host, &off, &blind, "p"), DT_OK);
    assert_int_equal(imagine_check(&host.host, &on, &good, "p"), DT_OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(imagine_check(&host.host, bad[i].c, bad[i].w, "p"), bad[i].st);
        assert_true(mock_names(host.message, bad[i].words));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_action), cmocka_unit_test(test_several_actions),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
