/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/config/options.c: tables are sound, every bound is tried, every type lands in its member.
 */
#include "fixture.h"

#include <math.h>

typedef struct all {
    uint8_t flag;
    int64_t count;
    double rate;
    const char *name, *file;
    uint32_t mode;
    int32_t narrow;
} all;
static const char *const modes[] = {"slow", "fast", NULL};
#define O(member, type, dfl, min, max, choices) DT_OPTION(all, member, type, dfl, "1", min, max, choices, "help")
static const dt_option table[] = {
    O(flag, DT_OPT_BOOL, "yes", 0, 0, NULL),
    O(count, DT_OPT_I64, "-5", -5, 7, NULL),
    O(rate, DT_OPT_F64, "1e-3", 0, INFINITY, NULL),
    O(name, DT_OPT_STR, "x y", 0, 0, NULL),
    O(file, DT_OPT_PATH, "", 0, 0, NULL),
    O(mode, DT_OPT_ENUM, "fast", 0, 0, modes),
    DT_OPTION_END,
};

static void test_every_member(void **state)
{
    assert_int_equal(dt_option_table_check(table, sizeof(all)), DT_OK);
    assert_int_equal(dt_option_table_check(NULL, 0), DT_OK);
    dt_config *c = fresh();
    assert_int_equal(dt_config_declare(c, "all", table, "tester"), DT_OK);
    assert_int_equal(dt_config_declare(c, "all", table, "tester"), DT_OK);
    all a;
    assert_int_equal(dt_config_section(c, -1, "all", NULL, 0, &a, sizeof(a)), DT_OK);
    assert_int_equal(a.flag, 1);
    assert_int_equal(a.count, -5);
    assert_true(a.rate == 1e-3);
    assert_string_equal(a.name, "x y");
    assert_string_equal(a.file, "");
    assert_int_equal(a.mode, 1);
    origin_is(c, -1, "all.count", "-5", "plugin tester");

    put("run.cfg",
        "all = { flag = false; count = 7; rate = 3; name = \"n\"; file = \"./sub/f.txt\"; mode = \"slow\"; };");
    assert_int_equal(dt_config_read_file(c, DT_FROM_FILE, at("run.cfg")), DT_OK);
    assert_int_equal(dt_config_section(c, -1, "all", NULL, 0, &a, sizeof(a)), DT_OK);
    assert_int_equal(a.flag, 0);
    assert_int_equal(a.count, 7);
    assert_true(a.rate == 3.0);
    assert_int_equal(a.mode, 0);
    char here[512], want[1200];
    assert_non_null(getcwd(here, sizeof(here)));
    snprintf(want, sizeof(want), "%s/%s/sub/f.txt", here, top); /* against the file that set it */
    assert_string_equal(a.file, want);
    assert_int_equal(dt_config_set(c, "all.file=f.txt"), DT_OK);
    assert_int_equal(dt_config_section(c, -1, "all", NULL, 0, &a, sizeof(a)), DT_OK);
    snprintf(want, sizeof(want), "%s/f.txt", here); /* against the current folder */
    assert_string_equal(a.file, want);
    assert_int_equal(dt_config_set(c, "all.file=/abs/f.txt"), DT_OK);
    assert_int_equal(dt_config_section(c, -1, "all", NULL, 0, &a, sizeof(a)), DT_OK);
    assert_string_equal(a.file, "/abs/f.txt");

    dt_option_view view;
    assert_int_equal(dt_config_option_at(c, -1, "all", 1, &view), DT_OK);
    assert_string_equal(view.option->name, "count");
    assert_string_equal(view.value, "7");
    assert_int_equal(view.origin.layer, DT_FROM_FILE);
    assert_int_equal(dt_config_option_at(c, -1, "all", 6, &view), DT_ENOTFOUND);
    dt_config_destroy(c);
}

static void test_bounds(void **state)
{
    static const struct {
        const char *set, *says; /* says NULL: accepted */
    } cases[] = {
        {"all.count=-5", NULL},
        {"all.count=7", NULL},
        {"all.count=0x7", NULL},
        {"all.count=-6", "in [-5, 7]"},
        {"all.count=8", "= 8"},
        {"all.count=", "= \"\""},
        {"all.count=1.0", NULL},
        {"all.count=0.6e1", NULL},
        {"all.count=1e1", "in [-5, 7]"},
        {"all.count=1.5", "1.5"},
        {"all.count=1e400", "an integer"},
        {"all.count=1x", "an integer"},
        {"all.rate=0", NULL},
        {"all.rate=1e300", NULL},
        {"all.rate=-1", "least 0"},
        {"all.rate=inf", "a number"},
        {"all.rate=nan", "a number"},
        {"all.flag=on", NULL},
        {"all.flag=0", NULL},
        {"all.flag=maybe", "true or false"},
        {"all.mode=fast", NULL},
        {"all.mode=Fast", "one of slow, fast"},
        {"all.mode=fst", "did you mean \"fast\"?"},
        {"all.name=", NULL},
        {"all.name=7", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_config *c = fresh();
        all a;
        assert_int_equal(dt_config_declare(c, "all", table, "tester"), DT_OK);
        assert_int_equal(dt_config_set(c, cases[i].set), DT_OK);
        dt_error_clear();
        dt_status st = dt_config_section(c, -1, "all", NULL, 0, &a, sizeof(a));
        if (cases[i].says == NULL) {
            assert_int_equal(st, DT_OK);
        } else {
            assert_int_equal(st, DT_ECONFIG);
            if (strcmp(cases[i].set, "all.count=8") == 0) {
                assert_says("all.count = \"8\" from --set");
            } else {
                assert_says(cases[i].says);
            }
        }
        dt_config_destroy(c);
    }
}

static void table_refused(const dt_option *t, const char *piece)
{
    assert_refused(dt_option_table_check(t, sizeof(all)), DT_EPLUGIN, piece);
}

static void test_bad_tables(void **state)
{
    table_refused((const dt_option[]){O(narrow, DT_OPT_I64, "1", 0, 9, NULL), DT_OPTION_END},
                  "option narrow is a integer and needs a member of 8 bytes, its member has 4");
    table_refused((const dt_option[]){O(count, DT_OPT_I64, "ten", 0, 9, NULL), DT_OPTION_END},
                  "option count: the default \"ten\" does not parse: expected an integer in [0, 9]");
    table_refused((const dt_option[]){O(count, DT_OPT_I64, "10", 0, 9, NULL), DT_OPTION_END}, "does not parse");
    table_refused((const dt_option[]){O(mode, DT_OPT_ENUM, "medium", 0, 0, modes), DT_OPTION_END}, "one of slow, fast");
    table_refused((const dt_option[]){O(mode, DT_OPT_ENUM, "fast", 0, 0, NULL), DT_OPTION_END}, "without choices");
    table_refused((const dt_option[]){O(count, DT_OPT_I64, "1", 9, 0, NULL), DT_OPTION_END}, "must not exceed");
    table_refused((const dt_option[]){O(rate, DT_OPT_F64, "1", NAN, 9, NULL), DT_OPTION_END}, "must not exceed");
    table_refused((const dt_option[]){O(count, DT_OPT_I64, NULL, 0, 9, NULL), DT_OPTION_END},
                  "has no default and is not DT_OPT_REQUIRED");
    table_refused((const dt_option[]){O(count, 77, "1", 0, 9, NULL), DT_OPTION_END}, "has type 77");
    table_refused((const dt_option[]){O(count, DT_OPT_I64, "1", 0, 9, NULL), O(count, DT_OPT_I64, "1", 0, 9, NULL),
                                      DT_OPTION_END},
                  "option count is declared twice");
    dt_option odd[] = {O(count, DT_OPT_I64, "1", 0, 9, NULL), DT_OPTION_END};
    odd[0].name = "Count";
    table_refused(odd, "an option: its name \"Count\"");
    odd[0].name = "count";
    odd[0].offset = sizeof(all);
    table_refused(odd, "outside its struct");
    odd[0].offset = 4;
    table_refused(odd, "unaligned");
}

static void test_required(void **state)
{
    dt_option need[] = {O(name, DT_OPT_STR, NULL, 0, 0, NULL), DT_OPTION_END};
    need[0].flags = DT_OPT_REQUIRED;
    assert_int_equal(dt_option_table_check(need, sizeof(all)), DT_OK);
    dt_config *c = fresh();
    all a;
    assert_int_equal(dt_config_declare(c, "all", need, "tester"), DT_OK);
    assert_refused(dt_config_section(c, -1, "all", NULL, 0, &a, sizeof(a)), DT_ECONFIG,
                   "all.name is not set and has no default: expected a string in quotes");
    assert_int_equal(dt_config_set(c, "all.name=me"), DT_OK);
    assert_int_equal(dt_config_section(c, -1, "all", NULL, 0, &a, sizeof(a)), DT_OK);
    assert_string_equal(a.name, "me");
    assert_refused(dt_config_section(c, -1, "all", NULL, 0, &a, 4), DT_EINVAL, "outside a struct of 4 bytes");
    dt_config_destroy(c);
}

/* every key of every host section: the default parses, both bounds are accepted, one step outside is refused */
static void test_host_sections(void **state)
{
    static const char *const sections[] = {"data", "training", "amp", "checkpoint", "engine", "comm", "env"};
    char out[512], set[256];
    int n_bounds = 0;
    for (size_t s = 0; s < sizeof(sections) / sizeof(sections[0]); s++) {
        dt_option_view view;
        dt_config *c = fresh();
        for (uint32_t i = 0; dt_config_option_at(c, -1, sections[s], i, &view) == DT_OK; i++) {
            const dt_option *o = view.option;
            assert_non_null(o->help);
            for (int side = 0; side < 4 && (o->type == DT_OPT_I64 || o->type == DT_OPT_F64); side++) {
                double bound = side < 2 ? o->min : o->max, outside = side < 2 ? -1 : 1;
                if (!isfinite(bound)) {
                    continue;
                }
                /* 1, or what a double of this size can distinguish */
                double v = side % 2 == 0 ? bound : bound + outside * fmax(1, fabs(bound) * 0x1p-40);
                dt_config *one = fresh();
                snprintf(set, sizeof(set), o->type == DT_OPT_I64 ? "%s.%s=%.0f" : "%s.%s=%.17g", sections[s], o->name,
                         v);
                assert_int_equal(dt_config_set(one, set), DT_OK);
                dt_status st = dt_config_section(one, -1, sections[s], NULL, 0, out, sizeof(out));
                assert_int_equal(st, side % 2 == 0 ? DT_OK : DT_ECONFIG);
                dt_config_destroy(one);
                n_bounds++;
            }
        }
        dt_config_destroy(c);
    }
    assert_true(n_bounds > 80);
}

static dt_status read_whole(dt_config *c, const char *section)
{
    static union {
        dt_data_opts data;
        dt_training_opts training;
        dt_amp_opts amp;
        dt_checkpoint_opts checkpoint;
        dt_engine_opts engine;
        dt_memory_opts memory;
        dt_comm_opts comm;
        dt_evaluation_opts evaluation;
    } o;
    return strcmp(section, "data") == 0         ? dt_config_data(c, -1, &o.data)
           : strcmp(section, "training") == 0   ? dt_config_training(c, -1, &o.training)
           : strcmp(section, "amp") == 0        ? dt_config_amp(c, -1, &o.amp)
           : strcmp(section, "checkpoint") == 0 ? dt_config_checkpoint(c, -1, &o.checkpoint)
           : strcmp(section, "engine") == 0     ? dt_config_engine(c, -1, &o.engine)
           : strcmp(section, "memory") == 0     ? dt_config_memory(c, -1, &o.memory)
           : strcmp(section, "comm") == 0       ? dt_config_comm(c, -1, &o.comm)
                                                : dt_config_evaluation(c, -1, &o.evaluation);
}

/* What options of a section must be to each other, on both sides of each bound. */
static void test_options_of_one_another(void **state)
{
    static const struct {
        const char *section, *set[4];
        const char *refused; /* the key that is named; NULL: it is accepted */
    } c[] = {
        {"data", {"data.shards=64"}, NULL},
        {"data", {"data.shards=65"}, "data.shards"},
        {"data", {"data.shards=63"}, "data.shards"},
        {"engine", {"engine.micro_shards=0"}, NULL},
        {"engine", {"engine.micro_shards=8"}, NULL},
        {"engine", {"engine.micro_shards=6"}, "engine.micro_shards"},
        {"training", {"training.scheduler=cosine", "training.learning_rate=0.01", "training.eta_min=0.01"}, NULL},
        {"training",
         {"training.scheduler=cosine", "training.learning_rate=0.01", "training.eta_min=0.011"},
         "training.eta_min"},
        {"training",
         {"training.scheduler=linear", "training.learning_rate=0.01", "training.eta_min=0.011"},
         "training.eta_min"},
        {"training", {"training.scheduler=constant", "training.learning_rate=0.01", "training.eta_min=0.011"}, NULL},
        {"amp", {"amp.initial_scale=8", "amp.min_scale=8", "amp.max_scale=16"}, NULL},
        {"amp", {"amp.initial_scale=16", "amp.min_scale=8", "amp.max_scale=16"}, NULL},
        {"amp", {"amp.initial_scale=4", "amp.min_scale=8", "amp.max_scale=16"}, "amp.initial_scale"},
        {"amp", {"amp.initial_scale=32", "amp.min_scale=8", "amp.max_scale=16"}, "amp.initial_scale"},
        {"amp", {"amp.initial_scale=12"}, "amp.initial_scale"},
        {"amp", {"amp.static_scale=3"}, "amp.static_scale"},
        {"amp", {"amp.min_scale=3"}, "amp.min_scale"},
        {"amp", {"amp.max_scale=3000000"}, "amp.max_scale"},
        {"amp", {"amp.growth_factor=3"}, "amp.growth_factor"},
        {"amp", {"amp.growth_factor=1"}, "amp.growth_factor"},
        {"amp", {"amp.growth_factor=2"}, NULL},
        {"amp", {"amp.backoff_factor=1"}, "amp.backoff_factor"},
        {"amp", {"amp.backoff_factor=0.5"}, NULL},
        {"checkpoint", {"checkpoint.hand_on=best"}, "checkpoint.hand_on"},
        {"checkpoint", {"checkpoint.hand_on=best", "checkpoint.best_by=x"}, NULL},
        {"memory", {"memory.warn_fraction=0.8", "memory.shed_fraction=0.8"}, NULL},
        {"memory", {"memory.warn_fraction=0.81", "memory.shed_fraction=0.8"}, "memory.warn_fraction"},
        {"memory", {"memory.warn_fraction=0.8", "memory.shed_fraction=0"}, NULL},
        {"memory", {"memory.warn_fraction=0", "memory.shed_fraction=0.8"}, NULL},
        {"comm", {"comm.backend=sim", "comm.ranks=3"}, NULL},
        {"comm", {"comm.ranks=3"}, "comm.ranks"},
        {"comm", {"comm.shard_weights=[\"1\", \"1000000\"]"}, NULL},
        {"comm", {"comm.shard_weights=[\"1\", \"0\"]"}, "comm.shard_weights"},
        {"comm", {"comm.shard_weights=[\"1000001\"]"}, "comm.shard_weights"},
        {"comm", {"comm.shard_weights=[\"1.5\"]"}, "comm.shard_weights"},
        {"evaluation", {"evaluation.seeds=1, 2 ,18446744073709551615"}, NULL},
        {"evaluation", {"evaluation.seeds=1,,2"}, "evaluation.seeds"},
        {"evaluation", {"evaluation.seeds=1,2,"}, "evaluation.seeds"},
        {"evaluation", {"evaluation.seeds=-1"}, "evaluation.seeds"},
        {"evaluation", {"evaluation.seeds=1 2"}, "evaluation.seeds"},
        {"evaluation", {"evaluation.seeds=18446744073709551616"}, "evaluation.seeds"}};
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        dt_config *one = fresh();
        for (int k = 0; k < 4 && c[i].set[k] != NULL; k++) {
            if (dt_config_set(one, c[i].set[k]) != DT_OK) {
                fail_msg("%s: %s", c[i].set[k], dt_error_text());
            }
        }
        const dt_status st = read_whole(one, c[i].section);
        if (st != (c[i].refused != NULL ? DT_ECONFIG : DT_OK) ||
            (c[i].refused != NULL && strstr(dt_error_text(), c[i].refused) == NULL)) {
            fail_msg("case %zu, %s: %d, %s", i, c[i].set[0], (int)st, dt_error_text());
        }
        dt_error_clear();
        dt_config_destroy(one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_member, begin, end),
        cmocka_unit_test_setup_teardown(test_bounds, begin, end),
        cmocka_unit_test_setup_teardown(test_bad_tables, begin, end),
        cmocka_unit_test_setup_teardown(test_required, begin, end),
        cmocka_unit_test_setup_teardown(test_host_sections, begin, end),
        cmocka_unit_test_setup_teardown(test_options_of_one_another, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
