/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/config/writer.c: what is written reads back equal, origins are reported, the hash sees what matters.
 */
#include "fixture.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"

#include <unistd.h>

static const char text[] =
    "seed = 9000000000L; training = { learning_rate = 1e-5; gradient_clip = 3; freeze = [ \"a\", \"b\" ]; };\n"
    "data = { store = \"some/store\"; }; checkpoint = { best_by = \"tab\\tquote\\\" back\\\\ line\\n\"; };\n"
    "phases = ( { plugin = \"p\"; init = \"random\"; stop = { epochs = 3; }; training = { epochs = 9; beta1 = 0.5; }; "
    "},\n"
    "           { plugin = \"q\"; } );\n";

static void written(dt_config *c, dt_str *out)
{
    dt_status st = dt_config_check(c, NULL);
    if (st != DT_OK) {
        print_error("%s\n", dt_error_text());
    }
    assert_int_equal(st, DT_OK);
    assert_int_equal(dt_config_write(c, out), DT_OK);
}

static void test_round_trip(void **state)
{
    static const char *const defaults[] = {"training.epochs=77", "training.beta2=0.25", NULL};
    dt_config *c = from(text);
    assert_int_equal(dt_config_set(c, "training.beta1=0.75"), DT_OK); /* beats the first phase's override */
    assert_int_equal(dt_config_add_defaults(c, 1, "q", defaults), DT_OK);
    dt_str first = {0}, second = {0};
    written(c, &first);
    dt_config *again = from(dt_str_text(&first));
    written(again, &second);
    assert_string_equal(dt_str_text(&first), dt_str_text(&second));
    dt_training_opts a, b;
    for (int64_t phase = -1; phase < 2; phase++) {
        assert_int_equal(dt_config_training(c, phase, &a), DT_OK);
        assert_int_equal(dt_config_training(again, phase, &b), DT_OK);
        a.freeze = b.freeze = a.freeze_loaded = b.freeze_loaded = NULL;
        assert_memory_equal(&a, &b, sizeof(a));
        assert_true(a.beta1 == 0.75);
        assert_int_equal(a.epochs, phase == 0 ? 9 : phase == 1 ? 77 : 50);
        assert_true(a.beta2 == (phase == 1 ? 0.25 : 0.999));
    }
    char hash[65], same[65];
    assert_int_equal(dt_config_hash(c, hash), DT_OK);
    assert_int_equal(dt_config_hash(again, same), DT_OK);
    assert_string_equal(hash, same);
    assert_int_equal(strlen(hash), 64);
    dt_checkpoint_opts k;
    assert_int_equal(dt_config_checkpoint(again, -1, &k), DT_OK);
    assert_string_equal(k.best_by, "tab\tquote\" back\\ line\n");
    dt_str_fini(&first);
    dt_str_fini(&second);
    dt_config_destroy(c);
    dt_config_destroy(again);
}

static void test_origin(void **state)
{
    dt_config *c = from(text);
    assert_int_equal(dt_config_set_option(c, "data.batch", "32", "--set"), DT_OK);
    assert_int_equal(dt_config_check(c, NULL), DT_OK);
    dt_str out = {0};
    assert_int_equal(dt_config_write_origin(c, NULL, NULL, &out), DT_OK);
    static const char *const want[] = {"\"data.batch\"",
                                       "\"--set\"",
                                       "\"seed\"",
                                       "9000000000",
                                       "run.cfg:1",
                                       "\"phases.0.stop.epochs\"",
                                       "\"phases.0.training.epochs\"",
                                       "\"built-in\""};
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        assert_non_null(strstr(dt_str_text(&out), want[i]));
    }
    dt_json *json = NULL;
    dt_json_token token;
    assert_int_equal(dt_json_open_mem(dt_str_text(&out), strlen(dt_str_text(&out)), "origin", &json), DT_OK);
    do {
        assert_int_equal(dt_json_next(json, &token), DT_OK);
    } while (token.kind != DT_JSON_END);
    dt_json_close(json);
    dt_str_fini(&out);
    dt_config_destroy(c);
}

static void hash_after(const char *set, const char *config, char out[65])
{
    dt_config *c = from(config);
    if (set != NULL) {
        assert_int_equal(dt_config_set(c, set), DT_OK);
    }
    assert_int_equal(dt_config_check(c, NULL), DT_OK);
    assert_int_equal(dt_config_hash(c, out), DT_OK);
    dt_config_destroy(c);
}

static void test_hash(void **state)
{
    static const char plain[] = "phases = ( { plugin = \"p\"; } ); training = { epochs = 3; beta1 = 0.5; };";
    static const char *const same[] = {"engine.threads=3",    "engine.reuse=false",       "checkpoint.every_seconds=9",
                                       "comm.backend=sim",    "data.prefetch=0",          "data.store=/elsewhere",
                                       "training.epochs=0x3", "phases.0.plugin=/x/y/p.so"};
    static const char *const other[] = {"seed=43",          "training.epochs=4",      "training.momentum=0.5",
                                        "data.batch=32",    "models.world=world_gru", "phases.0.training.beta2=0.5",
                                        "phases.0.plugin=q"};
    char base[65], hash[65];
    hash_after(NULL, plain, base);
    hash_after(NULL, "training = { beta1 = 0.5; epochs = 3; }; phases = ( { plugin = \"p\"; } );", hash);
    assert_string_equal(base, hash); /* the order of keys is no matter */
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        hash_after(same[i], plain, hash);
        assert_string_equal(base, hash);
    }
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        hash_after(other[i], plain, hash);
        assert_string_not_equal(base, hash);
    }
}

static void test_differences(void **state)
{
    static const char plain[] = "phases = ( { plugin = \"p\"; } ); training = { epochs = 3; beta1 = 0.5; };";
    static const struct {
        const char *set, *names;
    } row[] = {
        {"seed=43", "seed"},
        {"training.epochs=4", "training.epochs"},
        {"training.beta2=0.5", "training.beta2"},
        {"phases.0.training.beta2=0.5", "training.beta2"},
        {"phases.0.training.beta2=0.999", ""},
        {"models.world=world_gru", "models.world"},
        {"amp.enabled=true", "amp.enabled"},
        {"training.beta1=5e-1", ""},
        {"training.momentum=0.5", ""}, /* of sgd */
        {"training.step_size=3", ""},
        {"training.eval_interval=1", ""},
        {"amp.max_skips=7", ""},
        {"phases.0.stop.steps=9", ""},
        {"engine.threads=3", ""},
    };
    dt_config *c = from(plain);
    dt_str written = {0};
    char path[64];
    snprintf(path, sizeof(path), "test_writer.%ld.cfg", (long)getpid());
    assert_int_equal(dt_config_check(c, NULL), DT_OK);
    assert_int_equal(dt_config_write(c, &written), DT_OK);
    assert_int_equal(dt_fs_write_atomic(path, dt_str_text(&written), written.bytes), DT_OK);
    dt_str_fini(&written);
    dt_config_destroy(c);
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        dt_str names = {0};
        c = from(plain);
        assert_int_equal(dt_config_set(c, row[i].set), DT_OK);
        assert_int_equal(dt_config_check(c, NULL), DT_OK);
        if (dt_config_list_differences(c, path, &names) != DT_OK) {
            fail_msg("%s", dt_error_text());
        }
        assert_string_equal(dt_str_text(&names), row[i].names);
        dt_str_fini(&names);
        dt_config_destroy(c);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, begin, end),
        cmocka_unit_test_setup_teardown(test_origin, begin, end),
        cmocka_unit_test_setup_teardown(test_hash, begin, end),
        cmocka_unit_test_setup_teardown(test_differences, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
