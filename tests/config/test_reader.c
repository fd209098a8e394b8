/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/config/reader.c: the language, includes, and the numbers libconfig would misread.
 */
#include "fixture.h"

#include <malloc.h>

static void test_every_type(void **state)
{
    dt_config *c = from("\xef\xbb\xbfseed = 7; # comment, after a byte order mark\n"
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

/* A word becomes the member of its list in base/choices.h. */
static void choose(const char *key, const char *word, dt_training_opts *t, dt_data_opts *d, dt_comm_opts *w)
{
    char text[80];
    dt_config *c = fresh();
    snprintf(text, sizeof(text), "%s=%s", key, word);
    assert_int_equal(dt_config_set(c, text), DT_OK);
    assert_int_equal(dt_config_training(c, -1, t), DT_OK);
    assert_int_equal(dt_config_data(c, -1, d), DT_OK);
    assert_int_equal(dt_config_comm(c, -1, w), DT_OK);
    dt_config_destroy(c);
}

static void test_choices(void **state)
{
    dt_training_opts t;
    dt_data_opts d;
    dt_comm_opts w;
#define CHOOSE(key, read, member, word) choose(key, word, &t, &d, &w), assert_int_equal(read, member);
#define OPTIMIZER(member, word)         CHOOSE("training.optimizer", t.optimizer, member, word)
#define SCHEDULE(member, word)          CHOOSE("training.scheduler", t.scheduler, member, word)
#define SAMPLING(member, word)          CHOOSE("data.sampling", d.sampling, member, word)
#define HALF(member, word)              CHOOSE("comm.wire", w.wire, member, word)
    DT_OPTIMIZERS(OPTIMIZER)
    DT_SCHEDULES(SCHEDULE)
    DT_SAMPLINGS(SAMPLING)
    DT_HALVES(HALF)
}

/* libconfig forgets a string that stands where its grammar has none; it never sees one */
static void test_refused_without_leaks(void **state)
{
    static const char *const texts[] = {"a = 1; b \"lost\";", "\"lost\" = 1;",   "a = [ 1 \"lost\" ];",
                                        "a = { \"lost\" };",  "a = 1 \"lost\";", "a = ( 1, { b = 2 \"lost\"; } );"};
    dt_config *c = fresh();
    size_t before = 0;
    for (int i = 0; i < 401; i++) {
        for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]) && i == 0; k++) {
            unreadable(texts[k], DT_ECONFIG, "syntax error");
        }
        assert_refused(
            dt_config_set(c, "a=[ 1 \"a text that is lost, of sixty bytes and more, and then another one\" ]"),
            DT_ECONFIG, "a comma is missing");
        before = i == 0 ? mallinfo2().uordblks : before;
    }
    assert_true(mallinfo2().uordblks < before + 400 * 60); /* a sanitizer counts by itself, and says 0 here */
    dt_config_destroy(c);
}

/* a word ends at a comment, as for libconfig */
static void test_comments_behind_words(void **state)
{
    dt_config *c = from("training = { epochs = 3// three\n; momentum = 0.5/* half */; eps = 1e-9#so\n; };");
    dt_training_opts t;
    assert_int_equal(dt_config_training(c, -1, &t), DT_OK);
    assert_true(t.epochs == 3 && t.momentum == 0.5);
    dt_config_destroy(c);
    c = fresh();
    assert_refused(dt_config_set(c, "a=( 1,\n@include \"no.cfg\"\n )"), DT_ECONFIG, "strings need double quotes");
    dt_config_destroy(c);
}

static void test_wide_integers(void **state)
{
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
    unreadable("seed = 1;\ntraining = { epochs = ; };\n", DT_ECONFIG, "run.cfg:2: syntax error");
    assert_says("a value is missing after epochs =, before ;");
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
    static const struct {
        const char *text, *at, *says;
    } of[] = {
        {"env = {\n  id = cartpole;\n};", ":2:", "strings need double quotes: \"cartpole\""},
        {"env = { id = 'cartpole'; };", ":1:", "double quotes, not single ones: 'cartpole'"},
        {"env = { id = 3cart; };", ":1:", "3cart is not a number; strings need double quotes"},
        {"seed = 1.2.3;", ":1:", "1.2.3 is not a number"},
        {"seed = 1;\ntraining = {\n  epochs = 3;\n\nseed2 = 2;\n", ":2:", "is never closed: } is missing"},
        {"training = { epochs = 3; };\n};\n", ":2:", "this } closes nothing"},
        {"seed 3;", ":1:", "= is missing after seed"},
        {"training {\n epochs = 3; };", ":1:", "= is missing after training"},
        {"training.epochs = 3;", ":1:", "training = { epochs = ...; }; dots are for --set"},
        {"seed = 3;;", ":1:", "nothing before this ;"},
        {"seed = 3 4;", ":1:", "found 4; put several values of one key into [ ]"},
        {"\"seed\" = 3;", ":1:", "a key has no quotes"},
        {"a = [ 1, 2.5 ];", ":1:", "must have one type, and 2.5 has another"},
        {"a = [ 1,\n { b = 1; } ];", ":2:", "[ ] contains plain values"},
        {"a = ( 1,\n 2;\nb = 1;", ":1:", "the ( is not closed before ;: ) is missing"},
        {"a = ( 1, 2", ":1:", "the ( is not closed before the file's end"},
        {"phases = ( { plugin = \"a\"; }\n{ plugin = \"b\"; } );", ":2:", "a comma is missing before {"},
        {"phases = ( { plugin = \"a\";\n stop = { steps = 1; ) );", ":2:", "is not closed before ): } is missing"},
        {"# a comment = {\n/* two\nlines */ a = \"x\"\n \"y\"; b = ;", ":4:", "a value is missing after b ="},
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
    assert_refused(dt_config_set(c, "training.freeze=[ a ]"), DT_ECONFIG, "strings need double quotes: \"a\"");
    dt_config_destroy(c);
}

/* What a group or a file holds is bounded before a search through its keys for each key. */
static void test_too_many_settings(void **state)
{
    dt_str text = {0};
    for (int i = 0; i <= 1000; i++) {
        dt_str_addf(&text, "k%d = 1;\n", i);
    }
    unreadable(dt_str_text(&text), DT_ECONFIG, "run.cfg:1001: syntax error: more than 1000 keys in one group");
    text.text[text.bytes - strlen("k1000 = 1;\n")] = '\0'; /* one fewer is read */
    dt_config_destroy(from(dt_str_text(&text)));
    dt_str_fini(&text);

    dt_str_add(&text, "phases = (\n");
    for (int i = 0; i <= 1000; i++) {
        dt_str_addf(&text, "%s{ }", i == 0 ? "" : ",\n");
    }
    dt_str_add(&text, " );");
    unreadable(dt_str_text(&text), DT_ECONFIG, "run.cfg:1002: syntax error: more than 1000 entries in one list");
    dt_str_fini(&text);

    for (int i = 0; i < 21; i++) { /* and groups do not hide them */
        dt_str_addf(&text, "g%d = {\n", i);
        for (int k = 0; k < 999; k++) {
            dt_str_addf(&text, "k%d = 1;\n", k);
        }
        dt_str_add(&text, "};\n");
    }
    unreadable(dt_str_text(&text), DT_ECONFIG, "syntax error: more than 20000 settings and values in all");
    dt_str_fini(&text);
}

static void test_includes(void **state)
{
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
    dt_config *foreign = fresh(); /* what lies in a run opens no other files */
    put("in_run.cfg", "seed = 1;\n @include \"parts/train.cfg\"\n");
    assert_refused(dt_config_read_file(foreign, DT_FROM_RUN, at("in_run.cfg")), DT_ECONFIG, "in_run.cfg:2: the conf");
    put("in_run.cfg", "seed = 1;\n/*\n \t@include \"parts/train.cfg\"\n*/\n");
    assert_refused(dt_config_read_file(foreign, DT_FROM_RUN, at("in_run.cfg")), DT_ECONFIG, "in_run.cfg:3: a line");
    dt_config_destroy(foreign);
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
        cmocka_unit_test_setup_teardown(test_choices, begin, end),
        cmocka_unit_test_setup_teardown(test_refused_without_leaks, begin, end),
        cmocka_unit_test_setup_teardown(test_comments_behind_words, begin, end),
        cmocka_unit_test_setup_teardown(test_wide_integers, begin, end),
        cmocka_unit_test_setup_teardown(test_syntax, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_missing, begin, end),
        cmocka_unit_test_setup_teardown(test_too_many_settings, begin, end),
        cmocka_unit_test_setup_teardown(test_includes, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
