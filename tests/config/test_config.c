/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/config/config.c and tree.c: layers, phases, and the check of the whole.
 */
#include "fixture.h"

static void test_precedence(void **state)
{
    dt_config *c = from("training = { epochs = 3; learning_rate = 0.3; beta1 = 0.3; momentum = 0.3; };\n"
                        "phases = ( { plugin = \"p\"; } );\n");
    put("profile.cfg", "training = { epochs = 2; weight_decay = 0.2; };");
    put("second.cfg", "training = { learning_rate = 0.4; };");
    assert_int_equal(dt_config_read_file(c, DT_FROM_PROFILE, at("profile.cfg")),
                     DT_OK); /* weaker, though it comes later */
    assert_int_equal(dt_config_read_file(c, DT_FROM_FILE, at("second.cfg")), DT_OK);
    char *const environment[] = {"HOME=/", "DTRAIN_LOG_LEVEL=info", "DTRAIN__TRAINING__BETA1=0.5",
                                 "DTRAIN__TRAINING__MOMENTUM=0.5", NULL};
    assert_int_equal(dt_config_read_env(c, environment), DT_OK);
    assert_int_equal(dt_config_set(c, "training.momentum=0.6"), DT_OK);
    assert_int_equal(dt_config_set_option(c, "seed", "9", "--seed"), DT_OK);
    const char *const defaults[] = {"training.epochs=1", "training.accumulation=4", "data.batch=16", NULL};
    assert_int_equal(dt_config_add_defaults(c, 0, "p", defaults), DT_OK);
    assert_int_equal(dt_config_check(c, NULL), DT_OK);

    origin_is(c, 0, "training.beta2", "0.999", "built-in");
    origin_is(c, 0, "training.accumulation", "4", "plugin p");
    origin_is(c, -1, "training.accumulation", "1", "built-in");
    origin_is(c, 0, "training.weight_decay", "0.2", "profile.cfg:1");
    origin_is(c, 0, "training.epochs", "3", "run.cfg:1");
    origin_is(c, 0, "training.learning_rate", "0.4", "second.cfg:1");
    origin_is(c, 0, "training.beta1", "0.5", "environment DTRAIN__TRAINING__BETA1");
    origin_is(c, 0, "training.momentum", "0.6", "--set");
    origin_is(c, 0, "seed", "9", "--seed");
    dt_training_opts t;
    dt_data_opts d;
    assert_int_equal(dt_config_training(c, 0, &t), DT_OK);
    assert_int_equal(dt_config_data(c, 0, &d), DT_OK);
    assert_int_equal(t.epochs, 3);
    assert_int_equal(t.accumulation, 4);
    assert_int_equal(d.batch, 16);
    dt_config_destroy(c);
}

static void test_phases(void **state)
{
    dt_config *c = from("training = { epochs = 3; };\n"
                        "phases = ( { plugin = \"first\"; init = \"random\"; freeze = [ \"controller\", \"shield\" ];\n"
                        "             stop = { epochs = 50; time = 1.5; }; training = { epochs = 5; }; },\n"
                        "           { plugin = \"x/second.so\"; models = { world = \"world_gru\"; }; } );\n");
    assert_int_equal(dt_config_check(c, NULL), DT_OK);
    assert_int_equal(dt_config_n_phases(c), 2);
    dt_phase_opts p;
    dt_stop_opts stop;
    dt_training_opts t;
    assert_int_equal(dt_config_phase(c, 0, &p, &stop), DT_OK);
    assert_string_equal(p.plugin, "first");
    assert_string_equal(p.init, "random");
    assert_string_equal(p.freeze[1], "shield");
    assert_null(p.freeze[2]);
    assert_int_equal(stop.epochs, 50);
    assert_true(stop.time == 1.5 && stop.steps == 0);
    assert_int_equal(dt_config_training(c, 0, &t), DT_OK);
    assert_int_equal(t.epochs, 5); /* between equals the phase's own value wins */
    assert_int_equal(dt_config_training(c, 1, &t), DT_OK);
    assert_int_equal(t.epochs, 3);
    assert_string_equal(dt_config_model(c, 1, "world"), "world_gru");
    assert_string_equal(dt_config_model(c, 0, "world"), "");
    assert_string_equal(dt_config_model(c, 0, "controller"), "");
    assert_int_equal(dt_config_phase(c, 1, &p, &stop), DT_OK);
    assert_string_equal(p.init, "");
    assert_refused(dt_config_phase(c, 2, &p, &stop), DT_EINVAL, "no phase 2");

    assert_int_equal(dt_config_set(c, "training.epochs=7"), DT_OK); /* stronger than the override in the file */
    assert_int_equal(dt_config_training(c, 0, &t), DT_OK);
    assert_int_equal(t.epochs, 7);
    assert_int_equal(dt_config_set(c, "phases.0.training.epochs=8"), DT_OK);
    assert_int_equal(dt_config_training(c, 0, &t), DT_OK);
    assert_int_equal(t.epochs, 8);

    assert_int_equal(dt_config_use_plugin(c, "./second", "--plugin"), DT_OK);
    assert_int_equal(dt_config_n_phases(c), 1);
    assert_string_equal(dt_config_model(c, 0, "world"), "world_gru"); /* its entry is kept */
    assert_int_equal(dt_config_phase(c, 0, &p, &stop), DT_OK);
    assert_string_equal(p.plugin, "./second");
    assert_int_equal(dt_config_use_plugin(c, "third.so", "--plugin"), DT_OK);
    assert_int_equal(dt_config_n_phases(c), 1);
    assert_string_equal(dt_config_model(c, 0, "world"), "");
    assert_refused(dt_config_check_errors(c), DT_ECONFIG,
                   "phases has no entry of third.so"); /* the file's goes, reported */
    assert_int_equal(dt_config_check(c, NULL), DT_OK);
    dt_config_destroy(c);

    c = fresh();
    assert_int_equal(dt_config_n_phases(c), 0);
    assert_int_equal(dt_config_set(c, "phases.0.plugin=p"), DT_OK);
    assert_int_equal(dt_config_set(c, "phases.0.freeze=world, perception.*"), DT_OK);
    assert_int_equal(dt_config_phase(c, 0, &p, &stop), DT_OK);
    assert_string_equal(p.freeze[1], "perception.*");
    assert_int_equal(dt_config_set(c, "phases=( { plugin = \"a\" }, { plugin = \"b\" } )"), DT_OK);
    assert_int_equal(dt_config_n_phases(c), 2);
    assert_refused(dt_config_set(c, "phases.3.plugin=x"), DT_ECONFIG, "not an entry of a list of 2");
    dt_config_destroy(c);
}

static void test_unknown(void **state)
{
    refuses("\ntraining = { epoch = 3; };",
            "run.cfg:2: unknown key; did you mean \"epochs\"? training has the keys epochs,");
    refuses("trainig = { epochs = 3; };",
            "run.cfg:1: neither a section nor the id of a component; did you mean \"training\"? sections");
    refuses("sead = 3;", "did you mean \"seed\"?");
    refuses("zzzzzzzz = 3;", "sections are models, data, training,");
    refuses("models = { wrld = \"x\"; };", "models.wrld = \"x\" at ");
    refuses("phases = ( { plugin = \"p\"; inti = \"random\"; } );", "phases.0.inti");
    refuses("phases = ( { plugin = \"p\"; inti = \"random\"; } );", "did you mean \"init\"?");
    refuses("phases = ( { plugin = \"p\"; stop = { epoch = 1; }; } );", "phases.0.stop.epoch = 1 at");
    refuses("phases = ( { plugin = \"p\"; trainig = { epochs = 1; }; } );", "phases.0.trainig");
    refuses("phases = ( { plugin = \"p\"; training = { epoch = 1; }; } );", "phases.0.training.epoch = 1 at");
    dt_config *c = fresh();
    assert_int_equal(dt_config_set(c, "data.bacth=3"), DT_OK);
    assert_refused(dt_config_check(c, NULL), DT_ECONFIG,
                   "data.bacth = \"3\" from --set: unknown key; did you mean \"batch\"?");
    dt_config_destroy(c);
    c = fresh();
    char *const environment[] = {"DTRAIN__DATA__BACTH=3", NULL};
    assert_int_equal(dt_config_read_env(c, environment), DT_OK);
    assert_refused(dt_config_check(c, NULL), DT_ECONFIG, "from environment DTRAIN__DATA__BACTH");
    dt_config_destroy(c);
}

static void test_types_and_ranges(void **state)
{
    refuses("training = { epochs = \"ten\"; };", "training.epochs = \"ten\" at test_config.");
    refuses("training = { epochs = \"ten\"; };", "[1, 1000000]");
    refuses("training = { epochs = \"10\"; };", "training.epochs = \"10\" at");
    refuses("training = { epochs = 1.5; };", "training.epochs = 1.5 at");
    refuses("training = { epochs = true; };", "training.epochs = true at");
    refuses("training = { epochs = 0; };", "training.epochs = 0 at");
    refuses("training = { epochs = 1000001; };", "[1, 1000000]");
    refuses("training = { epochs = [1, 2]; };", "training.epochs = ( ... ) at");
    refuses("training = { epochs = { a = 1; }; };", "= { ... } at");
    refuses("training = { beta1 = 1; };", "[0, 0.9999999]");
    refuses("training = { gradient_clip = -1; };", "training.gradient_clip = -1 at");
    refuses("training = { optimizer = \"adamv\"; };", "adamw, adam, sgd");
    refuses("training = { freeze = [1, 2]; };", "training.freeze = ");
    refuses("engine = { reuse = 1; };", "engine.reuse = 1 at");
    refuses("data = { source = 5; };", "data.source = 5 at");
    refuses("data = { shards = 6; };", "data.shards = 6 at");
    refuses("phases = { plugin = \"p\"; };", "phases = (");
    refuses("phases = ( 5 );", "expected a group");
    refuses("phases = ( ( { data = { batch = 3; }; } ) );", "expected a group");
    refuses("phases = ( { init = \"random\"; } );", "plugin");
    refuses("phases = ( { plugin = \"p\"; stop = 5; } );", "stop = { epochs = 50; }");
}

static void test_groups_against_values(void **state)
{
    unreadable("training = 5;", DT_ECONFIG, "run.cfg:1: ");
    dt_config *c = from("training = { epochs = 5; };");
    put("second.cfg", "training = { epochs = { from = 1; }; };");
    assert_refused(dt_config_read_file(c, DT_FROM_FILE, at("second.cfg")), DT_ECONFIG, "training.epochs");
    dt_config_destroy(c);
}

static void test_loss_scaling(void **state)
{
    refuses("amp = { initial_scale = 60000.0; };", "amp.initial_scale = 60000");
    refuses("amp = { growth_factor = 1.5; };", "amp.growth_factor = 1.5");
    refuses("amp = { backoff_factor = 0.7; };", "amp.backoff_factor");
    refuses("amp = { backoff_factor = 1.0; };", "amp.backoff_factor = 1");
    refuses("amp = { growth_factor = 1.0; };", "amp.growth_factor = 1");
    refuses("amp = { static_scale = 0.0; };", "amp.static_scale");
    refuses("amp = { max_scale = 1024.0; };", "amp.min_scale .. amp.max_scale");
    refuses("amp = { hysteresis = 0; };", "amp.hysteresis");
    refuses("amp = { scaling = \"sometimes\"; };", "dynamic");
}

static void test_later_work(void **state)
{
    refuses("engine = { reduction = \"quick\"; };", "engine.reduction = \"quick\"");
    refuses("comm = { ranks = 2; };", "comm.backend = \"sim\"");
    refuses("comm = { backend = \"sim\"; ranks = 300; };", "300");
    refuses("comm = { wire = \"int8\"; };", "comm.wire = \"int8\"");
    refuses("comm = { shard_weights = [ \"2\", \"0\" ]; };", "\"0\"");
    refuses("comm = { shard_weights = \"2,1000001\"; };", "\"1000001\"");
    refuses("comm = { shard_weights = [ \"2\", \"1.5\" ]; };", "\"1.5\"");
    refuses("comm = { shard_weights = [ 2, 1 ]; };", "comm.shard_weights");
    refuses("training = { eta_min = 0.5; };", "training.eta_min = 0.5");
    refuses("training = { scheduler = \"linear\"; eta_min = 0.5; };", "training.eta_min = 0.5");
    /* the default as well: what is written of a configuration gives every value, and has to be one that is read */
    refuses("training = { learning_rate = 1e-9; };", "training.eta_min = 1e-06 by default of dtrain");
    refuses("evaluation = { seeds = \"1,-2\"; };", "evaluation.seeds = \"1,-2\"");
    refuses("evaluation = { seeds = \"1,,2\"; };", "evaluation.seeds = \"1,,2\"");
    refuses("evaluation = { seeds = \"\"; };", "evaluation.seeds = \"\"");
    refuses("phases = ( { plugin = \"p\"; amp = { min_scale = 3.0; }; } );", "amp.min_scale = 3");
    dt_config *c = from("amp = { enabled = false; dtype = \"fp16\"; }; comm = { backend = \"sim\"; ranks = 4; };\n"
                        "env = { id = \"\"; }; training = { learning_rate = 1e-9; eta_min = 1e-9; };");
    assert_int_equal(dt_config_check(c, NULL), DT_OK);
    dt_comm_opts comm, dealt;
    dt_config *d = from("comm = { backend = \"sim\"; ranks = 3; shard_weights = [ \"2\", \"1\", \"1000000\" ]; };");
    uint32_t weight[3] = {0};
    assert_int_equal(dt_config_check(d, NULL), DT_OK);
    assert_int_equal(dt_config_comm(d, -1, &dealt), DT_OK);
    assert_int_equal(dealt.n_weights, 3);
    dt_comm_list_weights(&dealt, weight);
    assert_true(weight[0] == 2 && weight[1] == 1 && weight[2] == 1000000);
    dt_config_destroy(d);
    assert_int_equal(dt_config_comm(c, -1, &comm), DT_OK);
    assert_int_equal(comm.backend, DT_COMM_SIM);
    assert_int_equal(comm.ranks, 4);
    dt_config_destroy(c);
}

/* a reader corrects a file once: all errors, each once, a section's unknown keys last */
static void test_all_errors(void **state)
{
    dt_config *c = from("training = { epochs = 0; epoch = 3;\n optimizer = \"adamv\"; };\nsead = 3;\n"
                        "data = { shards = 6; };\n"
                        "phases = ( { init = 5; stop = { epoch = 1; steps = -1; }; data = { batch = 0; }; },\n"
                        "           { plugin = \"p\"; stop = 3; }, 7 );");
    assert_int_equal(dt_config_collect_error(c, dt_config_set(c, "training")),
                     DT_OK); /* reported with the others, before them */
    static const char *const lines[] = {"13 errors in the configuration",
                                        "--set training: expected section.key=value",
                                        "training.epochs = 0 at ",
                                        "training.optimizer = \"adamv\" at ",
                                        "training.epoch = 3 at ",
                                        "sead = 3 at ",
                                        "data.shards = 6 at ",
                                        "phases.0 = { ... } at ",
                                        "phases.0.init = 5 at ",
                                        "phases.0.stop.epoch = 1 at ",
                                        "phases.0.stop.steps = -1 at ",
                                        "phases.0.data.batch = 0 at ",
                                        "phases.1.stop = 3 at ",
                                        "phases.2 = 7 at "};
    const size_t n = sizeof(lines) / sizeof(lines[0]);
    assert_refused(dt_config_check(c, NULL), DT_ECONFIG, "13 errors in the configuration\n--set training");
    const char *at_line = dt_error_text();
    for (size_t i = 0; i < n; i++) {
        if (strncmp(at_line, lines[i], strlen(lines[i])) != 0) {
            print_error("line %zu is %.*s\n", i, (int)strcspn(at_line, "\n"), at_line);
            fail();
        }
        at_line += strcspn(at_line, "\n");
        at_line += *at_line == '\n';
    }
    assert_string_equal(at_line, "");
    dt_config_destroy(c);

    /* twenty are reported, the rest is counted */
    dt_str text = {0};
    for (int i = 0; i < 25; i++) {
        dt_str_addf(&text, "key%d = 1;\n", i);
    }
    c = from(dt_str_text(&text));
    assert_refused(dt_config_check(c, NULL), DT_ECONFIG, "25 errors in the configuration\nkey0 = 1 at ");
    assert_says("\nkey19 = 1 at ");
    assert_says("\nand 5 more");
    assert_null(strstr(dt_error_text(), "key20"));
    dt_config_destroy(c);
    dt_str_fini(&text);

    /* a status that is no error of the configuration passes */
    c = fresh();
    assert_int_equal(dt_config_collect_error(c, DT_FAIL(DT_ENOMEM, "out of memory")), DT_ENOMEM);
    assert_int_equal(dt_config_check(c, NULL), DT_OK);
    dt_config_destroy(c);
}

static uint64_t bytes_to_refuse(int n_keys)
{
    dt_str text = {0};
    dt_str_add(&text, "training = {\n");
    for (int i = 0; i < n_keys; i++) {
        dt_str_addf(&text, "k%d = 1;\n", i);
    }
    dt_str_add(&text, "};\n");
    for (int i = 0; i < n_keys; i++) {
        dt_str_addf(&text, "s%d = 1;\n", i);
    }
    dt_config *c = from(dt_str_text(&text));
    const uint64_t before = dt_alloc_live_bytes();
    assert_refused(dt_config_check(c, NULL), DT_ECONFIG, "errors in the configuration\ntraining.k0 = 1 at ");
    const uint64_t used = dt_alloc_live_bytes() - before;
    dt_config_destroy(c);
    dt_str_fini(&text);
    return used;
}

/* Errors that are only counted look for no names: each would take a list of them, hundreds of bytes, from the
 * configuration's memory, which grows by pieces of some thousand. */
static void test_counted_errors_cost_nothing(void **state)
{
    enum { PIECE = 16384 };
    const uint64_t few = bytes_to_refuse(20), many = bytes_to_refuse(900);
    assert_in_range(many, 0, few + PIECE);
}

/* A name with a line end begins no line of the message. */
static void test_names_begin_no_line(void **state)
{
    dt_config *c = from("data = { batch = \"x\nerror owned\"; };");
    assert_refused(dt_config_check(c, NULL), DT_ECONFIG, "data.batch = \"x?error owned\" at ");
    assert_null(strchr(dt_error_text(), '\n'));
    dt_config_destroy(c);
}

static void test_bad_assignments(void **state)
{
    dt_config *c = fresh();
    assert_refused(dt_config_set(c, "training.epochs"), DT_ECONFIG, "expected section.key=value");
    assert_refused(dt_config_set(c, "=3"), DT_ECONFIG, "expected section.key=value");
    assert_refused(dt_config_set(c, "training..epochs=3"), DT_ECONFIG, "a name is missing next to a dot");
    assert_refused(dt_config_set(c, "seed.x=3"), DT_ECONFIG, "\"seed\" is a value and has no keys");
    assert_refused(dt_config_set(c, "training=3"), DT_ECONFIG,
                   "training = \"3\" from --set: it is a group: expected training = { key = value; ... }");
    assert_refused(dt_config_set(c, "training.freeze=[a"), DT_ECONFIG, "double quotes: \"a\"; a list is");
    assert_int_equal(dt_config_set(c, "training.freeze=[\"a\", \"b.*\"]"), DT_OK);
    assert_int_equal(dt_config_set(c, "training.epochs = 12"), DT_OK); /* blanks around = do no harm */
    dt_training_opts t;
    assert_int_equal(dt_config_training(c, -1, &t), DT_OK);
    assert_string_equal(t.freeze[1], "b.*");
    assert_int_equal(t.epochs, 12);
    const char *const broken[] = {"training.epochs", NULL};
    assert_refused(dt_config_add_defaults(c, 0, "p", broken), DT_EINVAL, "no phase 0");
    assert_int_equal(dt_config_set(c, "phases.0.plugin=p"), DT_OK);
    assert_refused(dt_config_add_defaults(c, 0, "p", broken), DT_EPLUGIN, "defaults of plugin p");
    char *const environment[] = {"DTRAIN__=3", NULL};
    assert_refused(dt_config_read_env(c, environment), DT_ECONFIG, "environment DTRAIN__");
    dt_config_destroy(c);
}

/* components come from a lookup */
typedef struct widget {
    int64_t hidden;
} widget;
static const dt_option widget_table[] = {DT_OPTION(widget, hidden, DT_OPT_I64, "8", "1", 1, 64, NULL, "width"),
                                         DT_OPTION_END};

static dt_status find_component(void *user, dt_config *c, const char *id, const char **role_p)
{
    if (strcmp(id, "widget") != 0) {
        return DT_FAIL(DT_ENOTFOUND, "no component %s", id);
    }
    *role_p = "gadget";
    return dt_config_declare(c, "widget", widget_table, "widgets");
}

static const char *const *known_ids(void *user)
{
    static const char *const ids[] = {"widget", NULL};
    return ids;
}

static void test_components(void **state)
{
    dt_config_lookup lookup = {find_component, known_ids, NULL};
    dt_config *c = from("widget = { hidden = 9; }; models = { gadget = \"widget\"; };");
    assert_int_equal(dt_config_check(c, &lookup), DT_OK);
    widget w;
    assert_int_equal(dt_config_section(c, -1, "widget", NULL, 0, &w, sizeof(w)), DT_OK);
    assert_int_equal(w.hidden, 9);
    const dt_setting over[] = {{"hidden", "10"}};
    assert_int_equal(dt_config_section(c, -1, "widget", over, 1, &w, sizeof(w)), DT_OK);
    assert_int_equal(w.hidden, 10);
    const dt_setting bad[] = {{"hiden", "10"}}, wide[] = {{"hidden", "65"}};
    assert_refused(dt_config_section(c, -1, "widget", bad, 1, &w, sizeof(w)), DT_ECONFIG, "no option hiden");
    assert_refused(dt_config_section(c, -1, "widget", wide, 1, &w, sizeof(w)), DT_ECONFIG, "in [1, 64]");
    assert_refused(dt_config_section(c, -1, "gone", NULL, 0, &w, sizeof(w)), DT_EINVAL,
                   "section gone was not declared");
    assert_refused(dt_config_declare(c, "training", widget_table, "widgets"), DT_EINVAL, "declared by dtrain already");
    dt_config_destroy(c);

    c = from("widgit = { hidden = 9; };");
    assert_refused(dt_config_check(c, &lookup), DT_ECONFIG, "did you mean \"widget\"?");
    dt_config_destroy(c);
    c = from("widget = { hidden = 99; };");
    assert_refused(dt_config_check(c, &lookup), DT_ECONFIG, "widget.hidden = 99 at");
    dt_config_destroy(c);
    c = from("models = { gizmo = \"widget\"; };");
    assert_refused(dt_config_check(c, &lookup), DT_ECONFIG, "widget is a model for the role gadget");
    dt_config_destroy(c);
    c = from("models = { gizmo = \"nothing\"; };");
    assert_refused(dt_config_check(c, &lookup), DT_ECONFIG,
                   "models has the keys perception, world, controller, shield");
    dt_config_destroy(c);
    c = fresh();
    origin_is(c, -1, "models.world", "", "built-in");
    const char *text = NULL;
    dt_origin where;
    assert_refused(dt_config_get(c, -1, "models.nothing", &text, &where), DT_ENOTFOUND, "no value models.nothing");
    dt_config_destroy(c);
}

/* a phase's plugin may hold sections, for every phase of that plugin */
typedef struct solver_config {
    int64_t rounds;
} solver_config;
static const dt_option solver_table[] = {
    DT_OPTION(solver_config, rounds, DT_OPT_I64, "10", NULL, 1, 100, NULL, "rounds"), DT_OPTION_END};
static dt_status find_solver(void *user, dt_config *c, const char *id, const char **role_p)
{
    *role_p = NULL;
    return strcmp(id, "solver") == 0 ? dt_config_declare_phase(c, id, solver_table, "libsolver") : DT_ENOTFOUND;
}

/* From the file that names it, not from where the program runs; an id and what a command says stay as they are. */
static void test_plugins_by_path(void **state)
{
    dt_config *c = fresh();
    put("run.cfg",
        "phases = ( { plugin = \"./x/solver.so\"; }, { plugin = \"solver\"; }, { plugin = \"/x/solver.so\"; } );\n");
    assert_int_equal(dt_config_read_file(c, DT_FROM_FILE, at("run.cfg")), DT_OK);
    const char *want = at("x/solver.so"), *got = dt_config_plugin(c, 0);
    want += strncmp(want, "./", 2) == 0 ? 2 : 0;
    assert_true(got[0] == '/' && strlen(got) >= strlen(want));
    assert_string_equal(got + strlen(got) - strlen(want), want);
    assert_string_equal(dt_config_plugin(c, 1), "solver");
    assert_string_equal(dt_config_plugin(c, 2), "/x/solver.so");
    dt_config_destroy(c);
    c = fresh();
    assert_int_equal(dt_config_use_plugin(c, "./x/solver.so", "--plugin"), DT_OK);
    assert_string_equal(dt_config_plugin(c, 0), "./x/solver.so");
    dt_config_destroy(c);
}

static void test_groups_of_a_phase(void **state)
{
    const dt_config_lookup lookup = {.component = find_solver};
    dt_config *c = fresh();
    put("profile.cfg", "training = { epochs = 5; };\n"
                       "solver = { rounds = 20; data = { batch = 8; shards = 2; }; training = { epochs = 7; };\n"
                       "           stop = { iterations = 3; }; };\n");
    put("run.cfg", "phases = ( { plugin = \"solver\"; data = { batch = 4; }; }, { plugin = \"x/solver.so\"; }, "
                   "{ plugin = \"other\"; } );\n");
    assert_int_equal(dt_config_read_file(c, DT_FROM_PROFILE, at("profile.cfg")), DT_OK);
    assert_int_equal(dt_config_read_file(c, DT_FROM_FILE, at("run.cfg")), DT_OK);
    assert_int_equal(dt_config_set(c, "solver.training.warmup_epochs=1"), DT_OK);
    assert_refused(dt_config_distribute_groups(c, 0, "solver"), DT_EINVAL,
                   "solver is not a declared plugin of phase 0");
    assert_int_equal(dt_config_declare_phase(c, "solver", solver_table, "libsolver"), DT_OK);
    const char *const defaults[] = {"data.batch=64", "data.shards=16", "training.epochs=70", NULL};
    for (int64_t i = 0; i < 2; i++) {
        assert_int_equal(dt_config_add_defaults(c, i, "solver", defaults), DT_OK);
        assert_int_equal(dt_config_distribute_groups(c, i, "solver"), DT_OK);
    }
    assert_int_equal(dt_config_check(c, &lookup), DT_OK);
    char where[600];
    snprintf(where, sizeof(where), "%s:2", at("profile.cfg"));
    origin_is(c, 0, "training.epochs", "7", where); /* below the plugin before common, and before its defaults */
    origin_is(c, 0, "data.shards", "2", where);
    origin_is(c, 1, "data.batch", "8", where);
    origin_is(c, 1, "training.warmup_epochs", "1", "--set");
    dt_data_opts data;
    dt_training_opts training;
    dt_phase_opts phase;
    dt_stop_opts stop;
    solver_config own;
    assert_int_equal(dt_config_data(c, 0, &data), DT_OK);
    assert_int_equal(data.batch, 4); /* the phase's own */
    assert_int_equal(dt_config_phase(c, 1, &phase, &stop), DT_OK);
    assert_int_equal(stop.iterations, 3);
    assert_int_equal(dt_config_training(c, 2, &training), DT_OK);
    assert_int_equal(training.epochs, 5); /* another plugin's phase */
    assert_int_equal(dt_config_section(c, 1, "solver", NULL, 0, &own, sizeof(own)), DT_OK);
    assert_int_equal(own.rounds, 20);
    /* written out and read again it is the same */
    dt_str text = {0};
    char hash[65], again[65];
    assert_int_equal(dt_config_write(c, &text), DT_OK);
    assert_int_equal(dt_config_hash(c, hash), DT_OK);
    put("effective.cfg", text.text);
    dt_str_fini(&text);
    dt_config_destroy(c);
    c = fresh();
    assert_int_equal(dt_config_read_file(c, DT_FROM_FILE, at("effective.cfg")), DT_OK);
    assert_int_equal(dt_config_check(c, &lookup), DT_OK);
    assert_int_equal(dt_config_hash(c, again), DT_OK);
    assert_string_equal(hash, again);
    dt_config_destroy(c);

    /* what is wrong is reported once, whether such a phase runs or not; other components hold no groups */
    const char *const wrong[] = {"solver = { data = { btach = 8; }; };", "unknown key; did you mean \"batch\"?",
                                 "solver = { nowhere = { a = 1; }; };",  "neither a section nor the id of a component",
                                 "solver = { stop = { epoch = 1; }; };", "did you mean \"epochs\"?",
                                 "data = { stop = { epochs = 1; }; };",  "data.stop = { ... }"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i += 2) {
        c = from(wrong[i]);
        assert_refused(dt_config_check(c, &lookup), DT_ECONFIG, wrong[i + 1]);
        dt_config_destroy(c);
        char running[256];
        snprintf(running, sizeof(running), "%s phases = ( { plugin = \"solver\"; } );", wrong[i]);
        c = from(running);
        assert_int_equal(dt_config_declare_phase(c, "solver", solver_table, "libsolver"), DT_OK);
        assert_int_equal(dt_config_distribute_groups(c, 0, "solver"), DT_OK);
        assert_refused(dt_config_check(c, &lookup), DT_ECONFIG, wrong[i + 1]);
        assert_null(strchr(dt_error_text(), '\n'));
        dt_config_destroy(c);
    }
}

/* running out of memory at any call is reported, never fatal, and leaks nothing */
#include "base/fault.h"

static dt_status read_all(dt_config **c_p)
{
    dt_training_opts t;
    DT_TRY(dt_config_create(c_p));
    DT_TRY(dt_config_read_file(*c_p, DT_FROM_FILE, at("run.cfg")));
    DT_TRY(dt_config_set(*c_p, "training.epochs=3"));
    DT_TRY(dt_config_check(*c_p, NULL));
    return dt_config_training(*c_p, 0, &t);
}

static void test_memory(void **state)
{
    put("run.cfg", "seed = 1; training = { freeze = [\"a\"]; };\nphases = ( { plugin = \"p\"; } );\n");
    for (int i = 1;; i++) {
        char spec[32];
        snprintf(spec, sizeof(spec), "alloc:%d", i);
        dt_fault_reset(spec);
        dt_config *c = NULL;
        dt_status st = read_all(&c);
        bool is_over = dt_fault_count() == 0;
        dt_fault_reset(NULL);
        dt_config_destroy(c);
        assert_int_equal(dt_alloc_live_bytes(), bytes_before);
        if (is_over) {
            assert_int_equal(st, DT_OK);
            assert_true(i > 5);
            break;
        }
        assert_true(st == DT_ENOMEM || st == DT_OK); /* a message may lose its decoration */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_precedence, begin, end),
        cmocka_unit_test_setup_teardown(test_phases, begin, end),
        cmocka_unit_test_setup_teardown(test_unknown, begin, end),
        cmocka_unit_test_setup_teardown(test_types_and_ranges, begin, end),
        cmocka_unit_test_setup_teardown(test_groups_against_values, begin, end),
        cmocka_unit_test_setup_teardown(test_loss_scaling, begin, end),
        cmocka_unit_test_setup_teardown(test_later_work, begin, end),
        cmocka_unit_test_setup_teardown(test_all_errors, begin, end),
        cmocka_unit_test_setup_teardown(test_counted_errors_cost_nothing, begin, end),
        cmocka_unit_test_setup_teardown(test_names_begin_no_line, begin, end),
        cmocka_unit_test_setup_teardown(test_bad_assignments, begin, end),
        cmocka_unit_test_setup_teardown(test_components, begin, end),
        cmocka_unit_test_setup_teardown(test_plugins_by_path, begin, end),
        cmocka_unit_test_setup_teardown(test_groups_of_a_phase, begin, end),
        cmocka_unit_test_setup_teardown(test_memory, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
