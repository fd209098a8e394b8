/* SPDX-License-Identifier: Apache-2.0
 *
 * core/state/snapshot/mismatch.c: which tensors keep their initial values where weights are for another number of
 * costs. A fake trainer knows what outputs are computed from.
 */
#define dt_trainer_params_of_acting fake_params_of_acting
#define dt_bind_env_spec            fake_env_spec
#include "../../../core/state/snapshot/mismatch.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { COSTS = 4, WIDTH = 8, N = 6 };
enum { OF_POLICY, OF_COSTS, OF_NOTHING }; /* what a parameter is needed for */

static dt_env_spec spec;
static uint32_t use[N];
static dt_status recorded;

dt_status fake_params_of_acting(dt_trainer *t, const char *const *except, bool *param_p)
{
    assert_true(except[0] == NULL || (strcmp(except[0], "cost_value") == 0 && except[1] == NULL));
    for (uint32_t i = 0; i < N; i++) {
        param_p[i] = use[i] == OF_POLICY || (use[i] == OF_COSTS && except[0] == NULL);
    }
    return recorded;
}

const dt_env_spec *fake_env_spec(const dt_env *e)
{
    return &spec;
}

/* ---- a stage, and weights from elsewhere ------------------------------------------------------------------------- */

static char names[][24] = {"controller.net.w", "controller.head.w",      "controller.head.b",
                           "critic.net.w",     "controller@late.head.w", "controller@late.head.b"};
static dt_param params[N];
static dt_stage stage;

typedef struct weights {
    const char *name;
    int64_t dim[3];
    uint32_t n_dims;
} weights;
static weights there[N];
static int rollout, trainer; /* of which only the addresses count */

static const int64_t *find(const void *user, const char *name, uint32_t *n_dims_p)
{
    assert_ptr_equal(user, there);
    for (uint32_t i = 0; i < N; i++) {
        if (there[i].name != NULL && strcmp(there[i].name, name) == 0) {
            *n_dims_p = there[i].n_dims;
            return there[i].dim;
        }
    }
    *n_dims_p = 0;
    return NULL;
}

/* The same model with costs_there in place of COSTS. */
static void begin(int64_t costs_there)
{
    static const uint32_t needed_for[] = {OF_POLICY, OF_COSTS, OF_COSTS, OF_NOTHING, OF_NOTHING, OF_NOTHING};
    const dt_param head = {.dim = {COSTS, WIDTH}, .n_dims = 2}, bias = {.dim = {COSTS}, .n_dims = 1},
                   net = {.dim = {WIDTH, 3}, .n_dims = 2};
    const dt_param as[] = {net, head, bias, net, head, bias};
    recorded = DT_OK;
    spec.n_costs = COSTS;
    stage = (dt_stage){.params = {.param = params, .n = N}};
    stage.rollout = (void *)&rollout;
    stage.trainer = (void *)&trainer;
    for (uint32_t i = 0; i < N; i++) {
        params[i] = as[i];
        params[i].name = names[i];
        params[i].is_target = i > 3;
        params[i].of = i > 3 ? i - 3 : 0;
        use[i] = needed_for[i];
        there[i] = (weights){.name = names[i], .n_dims = as[i].n_dims};
        memcpy(there[i].dim, as[i].dim, sizeof(there[i].dim));
        there[i].dim[0] = as[i].dim[0] == COSTS ? costs_there : as[i].dim[0];
        there[i].name = there[i].dim[0] == 0 ? NULL : names[i];
    }
}

/* Which of them keep their initial values: a digit for each that does. */
static const char *renewed(const char *role, int64_t costs_there)
{
    static char text[N + 1];
    uint32_t n = 0;
    dt_renewed r;
    assert_int_equal(dt_mismatch_find_renewed(&stage, role, find, there, &r), DT_OK);
    for (uint32_t i = 0; i < N; i++) {
        const bool is = dt_mismatch_is_renewed(&stage, &r, names[i]);
        assert_int_equal(is, r.param != NULL && r.param[i]);
        if (is) {
            text[n++] = (char)('0' + i);
        }
    }
    text[n] = '\0';
    assert_int_equal(r.n, n);
    assert_false(dt_mismatch_is_renewed(&stage, &r, "controller.other"));
    if (n > 0) {
        assert_true(r.there == costs_there && r.here == COSTS);
    }
    dt_mismatch_renewed_fini(&r);
    return text;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_other_number(void **state)
{
    const int64_t costs[] = {0, 1, 5};
    for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
        begin(costs[i]);
        assert_string_equal(renewed("controller", costs[i]), "12");
        assert_string_equal(renewed("controller@late", costs[i]), "45"); /* as its model */
        assert_string_equal(renewed("critic", costs[i]), "");
    }
    begin(WIDTH); /* the number there is a width here */
    assert_string_equal(renewed("controller", WIDTH), "12");
    begin(5); /* what fits, too: the head is of one piece */
    use[0] = OF_COSTS;
    assert_string_equal(renewed("controller", 5), "012");
}

static void test_other_reasons(void **state)
{
    begin(COSTS); /* the same number */
    assert_string_equal(renewed("controller", 0), "");
    begin(COSTS);
    there[1].dim[1] = 9; /* another width alone, or with another number */
    assert_string_equal(renewed("controller", 0), "");
    begin(5);
    there[1].dim[1] = 9;
    assert_string_equal(renewed("controller", 0), "");
    begin(5);
    there[2].dim[0] = 6; /* two numbers */
    assert_string_equal(renewed("controller", 0), "");
    begin(5);
    there[1].n_dims = 3;
    assert_string_equal(renewed("controller", 0), "");
    for (uint32_t i = 1; i < 3; i++) { /* half of it is there */
        begin(5);
        there[i].name = NULL;
        assert_string_equal(renewed("controller", 0), "");
        begin(COSTS);
        there[i].name = NULL;
        assert_string_equal(renewed("controller", 0), "");
    }
    begin(5); /* acting needs it */
    use[1] = use[2] = OF_POLICY;
    assert_string_equal(renewed("controller", 0), "");
    begin(0); /* nothing of the acting is computed from it: a network of values */
    there[3].name = NULL;
    assert_string_equal(renewed("critic", 0), "");
}

static void test_nothing_acts(void **state)
{
    begin(5);
    stage.rollout = NULL;
    assert_string_equal(renewed("controller", 0), "");
    begin(5);
    stage.trainer = NULL;
    assert_string_equal(renewed("controller", 0), "");
    begin(5);
    spec.n_costs = 0;
    assert_string_equal(renewed("controller", 0), "");
    dt_renewed r;
    begin(5);
    recorded = DT_ECONFIG;
    assert_int_equal(dt_mismatch_find_renewed(&stage, "controller", find, there, &r), DT_ECONFIG);
    assert_int_equal(r.n, 0);
    dt_mismatch_renewed_fini(&r);
    assert_int_equal(dt_alloc_live_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_other_number), cmocka_unit_test(test_other_reasons),
                                       cmocka_unit_test(test_nothing_acts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
