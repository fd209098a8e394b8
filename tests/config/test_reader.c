/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/config/reader.c: the language, includes, and the numbers libconfig would misread.
 */
#include "fixture.h"

static void test_every_type(void **state)
{
    (void)state;
    dt_config *c = from("seed = 7; # comment\n"
                        "training = { epochs = 0x10; learning_rate = 1e-4; // another\n"
                        "  gradient_clip : 2; /* and 99999999999 here\n 3000000000 */ optimizer = \"sg\" \"d\"; };\n"
                        "engine = { reuse = False; };\n"
                        "data = { store = \"a \\\"b\\\" 99999999999\"; };\n");
    assert_int_equal(dt_config_check(c, NULL), DT_OK);
    dt_root_opts root;
    dt_training_opts t;
    dt_engine_opts e;
    assert_int_equal(dt_config_root(c, &root), DT_OK);
    assert_int_equal(dt_config_training(c, -1, &t), DT_OK);
    assert_int_equal(dt_config_engine(c, -1, &e), DT_OK);
    assert_int_equal(root.seed, 7);
    assert_int_equal(t.epochs, 16);
    assert_true(t.learning_rate == 1e-4 && t.gradient_clip == 2.0);
    assert_int_equal(t.optimizer, DT_OPTIMIZER_SGD);
    assert_int_equal(e.reuse, 0);
    origin_is(c, -1, "training.optimizer", "sgd", "run.cfg:4");
    dt_config_destroy(c);
}

static void test_wide_integers(void **state)
{
    (void)state;
    dt_config *c = from("seed = 9007199254740992L; checkpoint = { every_steps = 3000000000L; };");
    dt_root_opts root;
    assert_int_equal(dt_config_root(c, &root), DT_OK);
    assert_true(root.seed == 9007199254740992);
    dt_config_destroy(c);
    unreadable("\nseed = 3000000000;", DT_ECONFIG,
               "run.cfg:2: 3000000000 does not fit 32 bits; write it as 3000000000L");
    unreadable("seed = -3000000000;", DT_ECONFIG, "-3000000000 does not fit 32 bits");
    unreadable("seed = 0xFFFFFFFF;", DT_ECONFIG, "0xFFFFFFFF does not fit 32 bits; write it as 0xFFFFFFFFL");
    unreadable("seed = 99999999999999999999L;", DT_ECONFIG, "does not fit 64 bits");
    unreadable("training = {\n\n eps = 1e400; };", DT_ECONFIG, "run.cfg:3: 1e400 is too large for a number");
    unreadable("training = { eps = -1.5E+999; };", DT_ECONFIG, "too large");
}

static void test_syntax(void **state)
{
    (void)state;
    unreadable("seed = 1;\ntraining = { epochs = ; };\n", DT_ECONFIG, "run.cfg:2: syntax error");
    assert_says("a value is missing behind epochs =, before ;");
    assert_says("the line: training = { epochs = ; };");
    unreadable("seed = 1;\nseed = 2;\n", DT_ECONFIG, "run.cfg:2: duplicate setting name");
    assert_says("the line: seed = 2;");
    unreadable("seed = 1; /* never\nclosed", DT_ECONFIG, "run.cfg:2: the file ends inside a comment");
    unreadable("data = { store = \"never closed; };\n", DT_ECONFIG, "the file ends inside a string");
    dt_config *c = from(""); /* an empty file sets nothing */
    assert_int_equal(dt_config_check(c, NULL), DT_OK);
    assert_refused(dt_config_read_file(c, DT_FROM_FILE, "no/such.cfg"), DT_ENOTFOUND, "no/such.cfg");
    assert_says("No such file");
    int fd = -1;
    assert_int_equal(dt_fs_create(at("zero.cfg"), &fd), DT_OK);
    assert_int_equal(dt_fs_write(fd, at("zero.cfg"), "seed\0=1;", 8), DT_OK);
    assert_int_equal(dt_fs_sync_close(fd, at("zero.cfg")), DT_OK);
    assert_refused(dt_config_read_file(c, DT_FROM_FILE, at("zero.cfg")), DT_ECONFIG, "byte 4 is zero");
    dt_config_destroy(c);
}

/* The line that is to blame, and what to do, for the mistakes that people make. */
static void test_what_is_missing(void **state)
{
    (void)state;
    static const struct {
        const char *text, *at, *says;
    } of[] = {
        {"env = {\n  id = cartpole;\n};", ":2:", "text stands in double quotes: \"cartpole\""},
        {"env = { id = 'cartpole'; };", ":1:", "double quotes, not in single ones: 'cartpole'"},
        {"env = { id = 3cart; };", ":1:", "3cart is no number; text stands in double quotes"},
        {"seed = 1.2.3;", ":1:", "1.2.3 is no number"},
        {"seed = 1;\ntraining = {\n  epochs = 3;\n\nseed2 = 2;\n", ":2:", "is never closed: } is missing"},
        {"training = { epochs = 3; };\n};\n", ":2:", "this } closes nothing"},
        {"seed 3;", ":1:", "= is missing behind seed"},
        {"training {\n epochs = 3; };", ":1:", "= is missing behind training"},
        {"training.epochs = 3;", ":1:", "training = { epochs = ...; }; dots are for --set"},
        {"seed = 3;;", ":1:", "nothing stands before this ;"},
        {"seed = 3 4;", ":1:", "found 4; several values of one key stand in [ ]"},
        {"\"seed\" = 3;", ":1:", "a key has no quotes"},
        {"a = [ 1, 2.5 ];", ":1:", "all of one kind, and 2.5 is of another"},
        {"a = [ 1,\n { b = 1; } ];", ":2:", "[ ] holds plain values"},
        {"a = ( 1,\n 2;\nb = 1;", ":1:", "the ( is not closed before ;: ) is missing"},
        {"a = ( 1, 2", ":1:", "the ( is not closed before the file's end"},
        {"phases = ( { plugin = \"a\"; }\n{ plugin = \"b\"; } );", ":2:", "a comma is missing before {"},
        {"phases = ( { plugin = \"a\";\n stop = { steps = 1; ) );", ":2:", "is not closed before ): } is missing"},
        {"# a comment = {\n/* two\nlines */ a = \"x\"\n \"y\"; b = ;", ":4:", "a value is missing behind b ="},
    };
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        unreadable(of[i].text, DT_ECONFIG, of[i].says);
        assert_says(of[i].at);
        assert_says("; the line: ");
    }
    dt_config *c =
        from("seed = 0x1F; a : -1.5e-3 b = \"x\" \"y\", c = [ true, FALSE ]; d = ( 1, ( ), { e = 2L; } ); f = [ ];");
    dt_config_destroy(c);
    c = fresh();
    assert_refused(dt_config_set(c, "training.freeze=[ a ]"), DT_ECONFIG, "text stands in double quotes: \"a\"");
    dt_config_destroy(c);
}

static void test_includes(void **state)
{
    (void)state;
    assert_int_equal(dt_fs_mkdirs(at("parts/deep")), DT_OK);
    put("parts/train.cfg", "training = {\n  @include \"deep/epochs.cfg\" # inner\n  learning_rate = 0.5;\n};\n");
    put("parts/deep/epochs.cfg", "\nepochs = 3;");
    dt_config *c = from("seed = 1;\n  @include \"parts/train.cfg\"\ndata = { batch = 2; };\n");
    origin_is(c, -1, "training.epochs", "3", "parts/deep/epochs.cfg:2");
    origin_is(c, -1, "training.learning_rate", "0.5", "parts/train.cfg:3");
    origin_is(c, -1, "data.batch", "2", "run.cfg:3");
    assert_int_equal(dt_config_check(c, NULL), DT_OK);
    dt_config_destroy(c);

    unreadable("\n@include \"gone.cfg\"\n", DT_ECONFIG, "run.cfg:2: @include: ");
    assert_says("gone.cfg");
    assert_says("No such file");
    unreadable("@include gone.cfg\n", DT_ECONFIG, "run.cfg:1: expected @include \"file\"");
    unreadable("@include \"x\" seed = 1;\n", DT_ECONFIG, "only a comment may follow");
    unreadable("@include \"run.cfg\"\n", DT_ECONFIG, "includes nest deeper than 10");
    put("bad.cfg", "\n\nepochs = = 1;\n");
    unreadable("training = {\n@include \"bad.cfg\"\n};\n", DT_ECONFIG, "bad.cfg:3: syntax error");
    put("bad.cfg", "epochs = 5000000000;\n");
    unreadable("training = {\n@include \"bad.cfg\"\n};\n", DT_ECONFIG, "bad.cfg:1: 5000000000 does not fit");
    c = from("data = { store = \"@include \\\"nothing\\\"\"; };\n# @include \"gone.cfg\"\n");
    dt_config_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_type, begin, end),
        cmocka_unit_test_setup_teardown(test_wide_integers, begin, end),
        cmocka_unit_test_setup_teardown(test_syntax, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_missing, begin, end),
        cmocka_unit_test_setup_teardown(test_includes, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
