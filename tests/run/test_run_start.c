/* SPDX-License-Identifier: Apache-2.0
 *
 * core/run/run_start.c: where a run continues, by the checkpoint that it finds; core/run/layers.c: which layer of a
 * configuration overrides which; core/run/session.c: phases that --phase selects; core/run/initial_weights.c: shapes
 * that the phases before hand over.
 */
#include "../../core/run/session.c"
#include "run/initial_weights.h"
#include "run/run_start.h"

#include "base/fs.h"
#include "engine/backend/kernel.h"
#include "state/snapshot/snapshot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char top[64];
static dt_session s;
static dt_sections opts[3];
static dt_loaded phase[3];

static const char *at(const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", top, name);
    return path;
}

static void put(const char *name, const char *text)
{
    assert_int_equal(dt_fs_write_atomic(at(name), text, strlen(text)), DT_OK);
}

static int begin(void **state)
{
    static const char *const id[] = {"one", "two", "three"};
    snprintf(top, sizeof(top), "test_run_start.%ld.tmp", (long)getpid());
    if (dt_fs_mkdirs(top) != DT_OK || dt_fs_mkdirs(at("evaluation")) != DT_OK) {
        return -1;
    }
    put("three.cfg", "phases = ({plugin=\"one\";}, {plugin=\"two\";}, {plugin=\"three\";});\n");
    s = (dt_session){.n_phases = 3, .last = 3, .ranks = 1, .n_processes = 1};
    for (int i = 0; i < 3; i++) {
        phase[i].desc.id = id[i];
        s.phase[i] = &phase[i];
    }
    s.opts = opts;
    if (dt_config_create(&s.config) != DT_OK || dt_config_read_file(s.config, DT_FROM_FILE, at("three.cfg")) != DT_OK) {
        return -1;
    }
    for (int i = 0; i < 3; i++) {
        if (dt_config_sections(s.config, i, &opts[i]) != DT_OK) {
            return -1;
        }
    }
    return 0;
}

static int end(void **state)
{
    dt_config_destroy(s.config);
    return dt_fs_remove_tree(top) != DT_OK;
}

/* A checkpoint of phase two at its step 7, the 107th of the run; changed by the caller before it is saved. */
static dt_ckpt_save_desc d;
static char state_json[128];
static dt_ckpt_info *describe(const char *pending)
{
    static float value = 1;
    static const int64_t dim[1] = {1};
    static dt_ckpt_tensor t;
    t = (dt_ckpt_tensor){.name = "world.w", .dim = dim, .n_dims = 1, .data = &value};
    snprintf(state_json, sizeof(state_json), "{\"step\":7,\"base_step\":100%s}", pending);
    d = (dt_ckpt_save_desc){.run_dir = top, .model = &t, .n_model = 1, .state_json = state_json};
    d.info = (dt_ckpt_info){.phase = "two", .phase_index = 1, .step = 107, .phase_ms = 1500, .ranks = 1, .leaves = 4};
    assert_int_equal(dt_snapshot_cpu_class(s.config, 1, d.info.cpu, sizeof(d.info.cpu)), DT_OK);
    assert_int_equal(dt_config_hash(s.config, d.info.config_hash), DT_OK);
    assert_int_equal(dt_config_hash_phase(s.config, 1, d.info.phase_hash), DT_OK);
    return &d.info;
}

static dt_run_start resume(void)
{
    dt_run_start r;
    assert_int_equal(dt_ckpt_save(&d, NULL), DT_OK);
    assert_int_equal(dt_run_start_resume(&s, top, false, &r), DT_OK);
    return r;
}

static void assert_refused(void)
{
    dt_run_start r;
    assert_int_equal(dt_ckpt_save(&d, NULL), DT_OK);
    assert_int_equal(dt_run_start_resume(&s, top, false, &r), DT_ECONFIG);
}

static void test_fresh(void **state)
{
    dt_run_start r;
    s.first = 1;
    assert_int_equal(dt_run_start_find(&s, NULL, false, &r), DT_OK);
    assert_int_equal(r.begin, 1);
    assert_null(r.resume);
    assert_int_equal(dt_run_start_resume(&s, top, false, &r), DT_ENOTFOUND);
    assert_int_equal(dt_run_start_find(&s, top, false, &r), DT_ECONFIG);
}

static void test_within_phase(void **state)
{
    describe(",\"owed\":1");
    dt_run_start r = resume();
    assert_non_null(r.resume);
    assert_int_equal(r.begin, 1);
    assert_int_equal(r.base_step, 100);
    assert_int_equal(r.spent_ms, 1500);
    assert_int_equal(r.pending, DT_PENDING_EVALUATION);
    assert_false(r.is_other_cpu || r.is_other_sum);
    dt_run_start_fini(&r);
    assert_null(r.resume);
}

static void test_end_of_phase(void **state)
{
    describe("")->phase_end = true;
    dt_run_start r = resume(); /* the next one starts */
    assert_null(r.resume);
    assert_int_equal(r.begin, 2);
    assert_int_equal(r.base_step, 107);
    assert_int_equal(r.spent_ms, 0);
    describe("")->phase_end = true;
    d.info.phase_index = 2;
    snprintf(d.info.phase, sizeof(d.info.phase), "three");
    assert_int_equal(dt_config_hash_phase(s.config, 2, d.info.phase_hash), DT_OK);
    r = resume(); /* the last one: nothing is left */
    assert_int_equal(r.begin, 3);
    describe("")->phase_end = true;
    s.last = 2;
    r = resume(); /* the same by --phase */
    assert_int_equal(r.begin, 2);
    s.last = 3;
    s.first = 2;
    r = resume();
    assert_int_equal(r.begin, 2);
    s.first = 0;
    snprintf(describe("")->phase_hash, 8, "other"); /* its configuration changed: it continues */
    d.info.phase_end = true;
    r = resume();
    assert_non_null(r.resume);
    assert_int_equal(r.begin, 1);
    assert_int_equal(r.base_step, 100);
    dt_run_start_fini(&r);
    s.first = 2; /* --phase 3 says that it is over */
    r = resume();
    assert_null(r.resume);
    assert_int_equal(r.begin, 2);
}

static void test_baselines_are_pending(void **state)
{
    describe("")->phase_end = true;
    put("evaluation/2-two.baselines.pending", "");
    dt_run_start r = resume();
    assert_non_null(r.resume);
    assert_int_equal(r.begin, 1);
    assert_int_equal(r.pending, DT_PENDING_END);
    dt_run_start_fini(&r);
    s.first = 2; /* of a phase that is not trained here */
    r = resume();
    assert_null(r.resume);
}

static void test_refusals(void **state)
{
    dt_run_start r;
    describe("");
    s.first = 2; /* not over yet */
    assert_refused();
    s.first = 0;
    s.last = 1; /* after the last one */
    assert_refused();
    s.last = 3;
    snprintf(describe("")->phase, 8, "three");
    assert_refused();
    describe("")->phase_index = 3;
    assert_refused();
    describe("");
    d.state_json = "{\"step\":7}"; /* no base_step */
    assert_int_equal(dt_ckpt_save(&d, NULL), DT_OK);
    assert_int_equal(dt_run_start_resume(&s, top, false, &r), DT_EDATA);
}

static void test_reproducible(void **state)
{
    snprintf(describe("")->cpu, 16, "abacus");
    dt_run_start r = resume();
    assert_true(r.is_other_cpu);
    dt_run_start_fini(&r);
    describe("")->cpu[0] = '\0'; /* no class is not the one of this machine */
    r = resume();
    assert_true(r.is_other_cpu);
    dt_run_start_fini(&r);
    describe("")->ranks = 2; /* exact sums do not depend on ranks */
    r = resume();
    assert_false(r.is_other_sum);
    dt_run_start_fini(&r);
    opts[2].engine.reduction = DT_REDUCTION_FAST;
    describe("")->ranks = 2;
    r = resume();
    assert_true(r.is_other_sum);
    dt_run_start_fini(&r);
    s.ranks = 2;
    r = resume();
    assert_false(r.is_other_sum);
    dt_run_start_fini(&r);
    s.n_processes = 3;
    r = resume();
    assert_true(r.is_other_sum);
    dt_run_start_fini(&r);
}

static void test_retryable(void **state)
{
    static const dt_status yes[] = {DT_ENOMEM, DT_EIO, DT_EPLUGIN, DT_ECOMM, DT_EPEER, DT_EDIVERGED};
    static const dt_status no[] = {DT_OK,   DT_EINVAL, DT_ECONFIG,      DT_ESHAPE,      DT_ENOTFOUND,
                                   DT_EABI, DT_EDATA,  DT_EUNSUPPORTED, DT_EINTERRUPTED};
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        assert_true(dt_status_is_retryable(yes[i]));
    }
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
        assert_false(dt_status_is_retryable(no[i]));
    }
}

/* ---- --phase ----------------------------------------------------------------------------------------------------- */

static void assert_phases(const char *wanted, int64_t first, int64_t last)
{
    assert_int_equal(select_phases(&s, wanted), DT_OK);
    assert_int_equal(s.first, first);
    assert_int_equal(s.last, last);
}

static void test_choice_of_phases(void **state)
{
    static const char *const bad[] = {"0", "4", "3-2", "-", "", "two-one", "four", "1-4"};
    assert_phases(NULL, 0, 3);
    assert_phases("all", 0, 3);
    assert_phases("1", 0, 1);
    assert_phases("3", 2, 3);
    assert_phases("two", 1, 2);
    assert_phases("2-", 1, 3);
    assert_phases("-2", 0, 2);
    assert_phases("2-2", 1, 2);
    assert_phases("one-two", 0, 2);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(select_phases(&s, bad[i]), DT_ECONFIG);
    }
    s.n_phases = 0;
    assert_int_equal(select_phases(&s, NULL), DT_ECONFIG);
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static void assert_value(const dt_args *a, const char *resumed, const char *key, const char *expected, dt_layer layer)
{
    dt_config *c = NULL;
    const char *value = NULL;
    dt_origin origin;
    assert_int_equal(dt_config_create(&c), DT_OK);
    assert_int_equal(dt_layers_read(a, resumed, c), DT_OK);
    assert_int_equal(dt_config_get(c, -1, key, &value, &origin), DT_OK);
    assert_string_equal(value, expected);
    assert_int_equal(origin.layer, layer);
    dt_config_destroy(c);
}

static void test_layers(void **state)
{
    static dt_args a;
    char profile[256], run[256], file[256], other[256], in_env[256];
    memset(&a, 0, sizeof(a));
    put("p.cfg", "seed = 1;\n");
    put("r.cfg", "seed = 2;\n");
    put("f.cfg", "seed = 3;\n");
    put("g.cfg", "seed = 4;\n");
    put("e.cfg", "seed = 5;\n");
    snprintf(profile, sizeof(profile), "%s", at("p.cfg"));
    snprintf(run, sizeof(run), "%s", at("r.cfg"));
    snprintf(file, sizeof(file), "%s", at("f.cfg"));
    snprintf(other, sizeof(other), "%s", at("g.cfg"));
    snprintf(in_env, sizeof(in_env), "%s", at("e.cfg"));
    a.profile = profile;
    assert_value(&a, NULL, "seed", "1", DT_FROM_PROFILE);
    assert_value(&a, run, "seed", "2", DT_FROM_RUN);
    setenv("DTRAIN_CONFIG", in_env, 1);
    assert_value(&a, NULL, "seed", "5", DT_FROM_FILE);
    assert_value(&a, run, "seed", "2", DT_FROM_RUN); /* a resumed run has its configuration */
    a.config[a.n_config++] = file;
    assert_value(&a, NULL, "seed", "3", DT_FROM_FILE);
    a.config[a.n_config++] = other;
    assert_value(&a, run, "seed", "4", DT_FROM_FILE);
    setenv("DTRAIN_CONFIG", "", 1);
    a.n_config = 0;
    assert_value(&a, run, "seed", "2", DT_FROM_RUN);
    setenv("DTRAIN__SEED", "6", 1);
    a.n_config = 2;
    assert_value(&a, run, "seed", "6", DT_FROM_ENV);
    a.set[a.n_set++] = "seed=7";
    a.set[a.n_set++] = "seed=8";
    assert_value(&a, run, "seed", "8", DT_FROM_SET);
    a.seed = "9";
    assert_value(&a, run, "seed", "9", DT_FROM_SET);
    unsetenv("DTRAIN__SEED");
    unsetenv("DTRAIN_CONFIG");
    a.profile = "none/such.cfg";
    dt_config *c = NULL;
    assert_int_equal(dt_config_create(&c), DT_OK);
    assert_true(dt_layers_read(&a, NULL, c) < 0);
    dt_config_destroy(c);
}

static void test_short_options(void **state)
{
    static dt_args a;
    memset(&a, 0, sizeof(a));
    assert_value(&a, NULL, "engine.graphs", "true", DT_FROM_BUILTIN);
    a.env = "cartpole";
    a.episodes = "11";
    a.seeds = "12";
    a.check_sync = "13";
    a.threads = "14";
    a.device = "cuda:1";
    a.no_graphs = true;
    a.plugin = "phase_x";
    assert_value(&a, NULL, "env.id", "cartpole", DT_FROM_SET);
    assert_value(&a, NULL, "evaluation.episodes", "11", DT_FROM_SET);
    assert_value(&a, NULL, "evaluation.seeds", "12", DT_FROM_SET);
    assert_value(&a, NULL, "comm.check_every", "13", DT_FROM_SET);
    assert_value(&a, NULL, "engine.threads", "14", DT_FROM_SET);
    assert_value(&a, NULL, "engine.device", "cuda:1", DT_FROM_SET);
    assert_value(&a, NULL, "engine.graphs", "false", DT_FROM_SET);
    dt_config *c = NULL;
    assert_int_equal(dt_config_create(&c), DT_OK);
    assert_int_equal(dt_layers_read(&a, NULL, c), DT_OK);
    assert_int_equal(dt_config_n_phases(c), 1);
    assert_string_equal(dt_config_plugin(c, 0), "phase_x");
    dt_config_destroy(c);
}

/* ---- shapes of the phases before --------------------------------------------------------------------------------- */

static dt_stage planned_stage(int64_t index, dt_param *param, uint32_t n)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static dt_loaded net;
    net.desc.id = "net";
    return (dt_stage){.d = {.index = index, .phase = s.phase[index], .config = s.config, .config_lock = &lock},
                      .n_models = n > 2 ? 2 : 1,
                      .model = {{.role = "world", .comp = &net}, {.role = "critic", .comp = &net}},
                      .params = {.param = param, .n = n}};
}

static dt_status hand_over(const dt_planned_shapes *p, dt_param *param, uint32_t n, bool is_fresh)
{
    static const char *const fresh[] = {"world", NULL};
    const dt_initial_weights_desc desc = {.session = &s, .planned = p};
    const dt_initial_weights from = {.is_after = true, .fresh = is_fresh ? fresh : NULL};
    const dt_stage stage = planned_stage(2, param, n);
    return dt_initial_weights_check_shapes(&desc, &from, &stage);
}

static void test_planned_shapes(void **state)
{
    char w[] = "world.w", b[] = "world.b", target[] = "world@target.w", other[] = "critic.w";
    dt_planned_shapes *p = NULL;
    dt_param first[] = {{.name = w, .dim = {2, 3}, .n_dims = 2}, {.name = b, .dim = {4, 5, 6}, .n_dims = 3}};
    dt_param then[] = {{.name = w, .dim = {2, 3}, .n_dims = 2},
                       {.name = b, .dim = {4, 5, 6}, .n_dims = 3},
                       {.name = target, .dim = {9}, .n_dims = 1, .is_target = true},
                       {.name = other, .dim = {7}, .n_dims = 1}};
    assert_int_equal(dt_planned_shapes_create(&p), DT_OK);
    assert_int_equal(hand_over(p, then, 4, false), DT_OK); /* no phase before has any */
    dt_stage stage = planned_stage(0, first, 2);
    assert_int_equal(dt_planned_shapes_add(p, &stage), DT_OK);
    assert_int_equal(hand_over(p, then, 4, false), DT_OK); /* a target network is a copy, a new role random */
    then[1].n_dims = 2;
    assert_int_equal(hand_over(p, then, 4, false), DT_ESHAPE);
    assert_int_equal(hand_over(p, then, 4, true), DT_OK);
    then[1].n_dims = 3;
    then[1].dim[2] = 7;
    assert_int_equal(hand_over(p, then, 4, false), DT_ESHAPE);
    first[1].dim[2] = 7; /* the newest phase that has the role counts */
    stage = planned_stage(1, first, 2);
    assert_int_equal(dt_planned_shapes_add(p, &stage), DT_OK);
    assert_int_equal(hand_over(p, then, 4, false), DT_OK);
    stage = planned_stage(1, first, 1); /* without world.b */
    assert_int_equal(dt_planned_shapes_add(p, &stage), DT_OK);
    assert_int_equal(hand_over(p, then, 4, false), DT_ESHAPE);
    dt_param both[] = {then[0], then[1], {.name = other, .dim = {8}, .n_dims = 1}};
    stage = planned_stage(1, both, 3);
    assert_int_equal(dt_planned_shapes_add(p, &stage), DT_OK);
    assert_int_equal(hand_over(p, then, 4, false), DT_ESHAPE); /* of the second model */
    both[2].dim[0] = 7;
    assert_int_equal(dt_planned_shapes_add(p, &stage), DT_OK);
    assert_int_equal(hand_over(p, then, 4, false), DT_OK);
    both[2].dim[0] = 8;
    assert_int_equal(dt_planned_shapes_add(p, &stage), DT_OK);
    dt_planned_shapes_remove(p, &stage); /* created, and not started: nothing is known */
    assert_int_equal(hand_over(p, then, 4, false), DT_OK);
    dt_error_clear();
    dt_planned_shapes_destroy(p);
}

#define OF(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF(test_fresh),         OF(test_within_phase),     OF(test_end_of_phase),  OF(test_baselines_are_pending),
        OF(test_refusals),      OF(test_reproducible),     OF(test_retryable),     OF(test_layers),
        OF(test_short_options), OF(test_choice_of_phases), OF(test_planned_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
