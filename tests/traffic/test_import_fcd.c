/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/import/import_fcd.c and xml_reader.c: floating-car output of SUMO, and bad XML with its
 * place and reason.
 */
#include "fixture.h"

#include "traffic/import/import.h"
#include "traffic/text/xml_reader.h"

#include <zlib.h>

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<fcd-export>\n"

static dt_str report;
static dt_store *store;

static void close_all(void)
{
    dt_store_close(store);
    store = NULL;
    dt_str_fini(&report);
}

static int finish(void **state)
{
    close_all();
    return end(state);
}

static const dt_store_view *import(const char *name, const dt_import_options *opt)
{
    close_all();
    assert_ok(dt_fs_remove_tree(at("s")));
    assert_ok(dt_data_import(&(const char *){at(name)}, 1, at("s"), opt, &report));
    assert_ok(dt_store_open(at("s"), &store));
    return dt_store_view_of(store);
}

static void refuse(const char *text, const dt_import_options *opt, dt_status code, const char *words)
{
    close_all();
    const uint64_t live = dt_alloc_live_bytes();
    put("t.xml", text);
    assert_fails(dt_data_import(&(const char *){at("t.xml")}, 1, at("s"), opt, &report), code, words);
    close_all();
    assert_int_equal(dt_alloc_live_bytes(), live);
    assert_false(dt_fs_is_dir(at("s")));
    assert_false(dt_fs_is_dir(at("s.partial")));
}

static const char two_steps[] =
    HEAD "  <timestep time=\"3600.00\">\n"
         "    <vehicle id=\"a\" x=\"10\" y=\"20\" angle=\"90\" type=\"DEFAULT_VEHTYPE\" speed=\"8\" pos=\"1\" "
         "lane=\"e_0\"/>\n"
         "    <vehicle id=\"b.0\" x=\"5\" y=\"5\" angle=\"0\" type=\"long\" speed=\"2\" acceleration=\"0.5\"/>\n"
         "    <person id=\"p\" x=\"5\" y=\"5\" angle=\"0\" speed=\"1\"/>\n"
         "  </timestep>\n"
         "  <timestep time=\"3600.10\">\n"
         "    <vehicle id=\"a\" x=\"10.8\" y=\"20\" angle=\"90\" type=\"DEFAULT_VEHTYPE\" speed=\"8\"/>\n"
         "  </timestep>\n"
         "  <timestep time=\"3600.20\"/>\n"
         "</fcd-export>\n";

static void check_two_steps(const dt_store_view *v, double bus_m)
{
    assert_true(v->frame_rate_hz == 10);
    assert_int_equal(v->n_rows, 3);
    assert_int_equal(v->n_tracks, 2);
    assert_true(v->pose[0] == 10 - 2.5 && v->pose[1] == 20 && v->pose[2] == 0);
    assert_true(v->motion[0] == 8 && v->motion[2] == 5 && v->motion[3] == 1.8f);
    const double half = isnan(bus_m) ? 2.25 : bus_m / 2; /* of an unknown length that of a passenger car */
    assert_true(v->pose[3] == 5 && v->pose[4] == 5 - half && v->pose[5] == M_PI / 2);
    assert_true(v->motion[4] == 2 && v->motion[5] == 0.5f);
    assert_true(isnan(bus_m) ? isnan(v->motion[6]) : v->motion[6] == (float)bus_m);
    assert_true(fabs(v->pose[6] - 8.3) < 1e-12);
}

/* Angles from +y clockwise, front bumpers, sizes by type; plain and packed. */
static void test_steps(void **state)
{
    put("run.fcd.xml", two_steps);
    put("types.add.xml",
        "<additional><vTypeDistribution id=\"d\"><vType id=\"long\" vClass=\"bus\"/></vTypeDistribution>"
        "<vType id=\"x\" vClass=\"ship\" length=\"30\"/></additional>");
    check_two_steps(import("run.fcd.xml", NULL), NAN);
    assert_string_equal(dt_store_view_of(store)->scene[0], "run.fcd");
    assert_non_null(strstr(dt_str_text(&report), "1 rows of persons and containers: left out"));
    assert_non_null(strstr(dt_str_text(&report), "import.types"));
    char types[1024];
    snprintf(types, sizeof(types), "%s", at("types.add.xml"));
    check_two_steps(import("run.fcd.xml", &(dt_import_options){.types = types, .site = "here"}), 12);
    assert_string_equal(dt_store_view_of(store)->site[0], "here");
    assert_null(strstr(dt_str_text(&report), "not known"));

    gzFile z = gzopen(at("run.xml.gz"), "wb");
    assert_non_null(z);
    assert_int_equal(gzwrite(z, two_steps, sizeof(two_steps) - 1), sizeof(two_steps) - 1);
    assert_int_equal(gzclose(z), Z_OK);
    check_two_steps(import("run.xml.gz", &(dt_import_options){.types = types}), 12);
    assert_string_equal(dt_store_view_of(store)->scene[0], "run");
    assert_true(import("run.xml.gz", &(dt_import_options){.frame_rate_hz = 10})->n_rows == 3);
}

#define STEP(t, vehicles) "<timestep time=\"" t "\">" vehicles "</timestep>"
#define CAR               "<vehicle id=\"a\" x=\"1\" y=\"1\" angle=\"90\" speed=\"8\" type=\"DEFAULT_VEHTYPE\"/>"

/* Blanks around a number, as XML Schema allows them; none within. */
static void test_blanks(void **state)
{
    put("t.xml", HEAD STEP("0.00", CAR) STEP("  0.10\n\t ", CAR) "</fcd-export>");
    assert_true(import("t.xml", NULL)->frame_rate_hz == 10);
    close_all();
    assert_ok(dt_fs_remove_tree(at("s")));
    refuse(HEAD STEP("0 1", CAR) "</fcd-export>", NULL, DT_EDATA, "time is \"0 1\", not a finite number");
    refuse(HEAD STEP("   ", CAR) "</fcd-export>", NULL, DT_EDATA, "not a finite number");
}

/* A simulation may begin before its clock's zero, in seconds or as a clock shows them. */
static void test_times_before_zero(void **state)
{
    put("t.xml", HEAD STEP("-0.10", CAR) STEP("0.00", CAR) STEP("0.10", CAR) "</fcd-export>");
    const dt_store_view *v = import("t.xml", NULL);
    assert_true(v->n_rows == 3 && v->frame_rate_hz == 10);
    put("t.xml", HEAD STEP("-0:00:00.10", CAR) STEP("0:00:00.00", CAR) STEP("0:00:00.10", CAR) "</fcd-export>");
    v = import("t.xml", NULL);
    assert_true(v->n_rows == 3 && v->frame_rate_hz == 10);
    close_all();
    assert_ok(dt_fs_remove_tree(at("s")));
    refuse(HEAD STEP("-1000000000000", CAR) "</fcd-export>", NULL, DT_EDATA, "time");
}

static void test_bad_steps(void **state)
{
    static const char *const bad[][2] = {
        {HEAD STEP("1", CAR) STEP("0.5", CAR) "</fcd-export>", "<timestep> time runs backwards: 0.5 s after 1 s"},
        {HEAD STEP("0", CAR) STEP("1", CAR) STEP("1", CAR) "</fcd-export>", "t.xml:3:"},
        {HEAD STEP("0", CAR) STEP("1", CAR) STEP("2.5", CAR) "</fcd-export>",
         "2.500 frames of 1 Hz after the first step"},
        {HEAD STEP("0", CAR "<vehicle id=\"a\" x=\"2\" y=\"1\" angle=\"90\" speed=\"8\"/>")
             STEP("1", "") "</fcd-export>",
         "<vehicle> \"a\" is in the step of 0 s twice"},
        {HEAD STEP("x", "") "</fcd-export>", "t.xml:3:1: <timestep> time is \"x\", not a finite number"},
        {HEAD "<timestep/></fcd-export>", "<timestep> has no time"},
        {HEAD STEP("0", "") STEP("1e-9", "") "</fcd-export>", "the first two steps make 1e+09 Hz, outside [0.1, 1000]"},
        {HEAD STEP("0", CAR) "</fcd-export>", "has only one step"},
        {HEAD STEP("0", "") STEP("1", "") "</fcd-export>", "contains no data: not one vehicle in 2 time steps"},
        {HEAD STEP("0", "<vehicle id=\"a\" x=\"1\" y=\"1\" angle=\"400\" speed=\"8\"/>") STEP("1", "") "</fcd-export>",
         "<vehicle> angle is 400, outside [-360, 360]"},
        {HEAD STEP("0", "<vehicle id=\"a\" x=\"1\" y=\"1\" angle=\"4\" speed=\"999\"/>") STEP("1", "") "</fcd-export>",
         "<vehicle> speed is 999, outside [-150, 150]"},
        {HEAD STEP("0", CAR) STEP("1", CAR), "t.xml:3:"},
        {HEAD STEP("0", CAR) "<timestep time=\"1\"><vehi", "the file is truncated: copy it again"},
        {HEAD "</timestep>", "mismatched tag"},
        {"<!DOCTYPE fcd-export [<!ENTITY a SYSTEM \"/etc/passwd\">]><fcd-export>&a;</fcd-export>", "a DOCTYPE"},
        {"<fcd-export>&nbsp;</fcd-export>", "undefined entity"},
        {"<fcd-import/>", "XML of <fcd-import>, which is not known"},
        {" <", "t.xml:1:"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refuse(bad[i][0], NULL, DT_EDATA, bad[i][1]);
    }
    refuse(two_steps, &(dt_import_options){.frame_rate_hz = 1}, DT_EINVAL, "was written at 10 Hz");
    refuse(two_steps, &(dt_import_options){.types = "nowhere.xml"}, DT_ENOTFOUND, "nowhere.xml");

    char types[1024];
    snprintf(types, sizeof(types), "%s", at("types.xml"));
    static const char *const bad_types[][2] = {
        {"<a/>", "types.xml has no vType"},
        {"<a><vType length=\"3\"/></a>", "<vType> has no id"},
        {"<a><vType id=\"x\" length=\"long\"/></a>", "<vType> length is \"long\", not a finite number"},
    };
    for (size_t i = 0; i < sizeof(bad_types) / sizeof(bad_types[0]); i++) {
        put("types.xml", bad_types[i][0]);
        refuse(two_steps, &(dt_import_options){.types = types}, DT_EDATA, bad_types[i][1]);
    }
}

/* Ids are those of the file where they are integers. Types that no vehicle is of say what they like; "TYPE@VEHICLE" is
 * of TYPE. */
static void test_ids_and_types(void **state)
{
#define TYPED(id, x, type) "<vehicle id=\"" id "\" x=\"" x "\" y=\"0\" angle=\"90\" speed=\"0\" type=\"" type "\"/>"
    put("t.xml", HEAD STEP("0", TYPED("70000000001", "0", "long") TYPED("8", "20", "x") TYPED("flow.3", "60", "long@8")
                                    TYPED("9", "90", "y")) STEP("1", "") "</fcd-export>");
    put("types.xml", "<a><vType id=\"long\" vClass=\"bus\"/><vType id=\"x\" vClass=\"ship\"/><vType id=\"y\" "
                     "length=\"300\"/><vType id=\"z\" vClass=\"dragon\" length=\"0\"/></a>");
    char types[1024];
    snprintf(types, sizeof(types), "%s", at("types.xml"));
    const dt_store_view *v = import("t.xml", &(dt_import_options){.types = types});
    const int64_t *id = dt_store_track_ids(store);
    assert_int_equal(v->n_tracks, 4);
    int found = 0;
    for (int64_t r = 0; r < 4; r++) {
        const int64_t vehicle = id[v->row_track[r]];
        found += vehicle == 70000000001 && v->motion[4 * r + 2] == 12;
        found += (vehicle == 8 || vehicle == 9) && isnan(v->motion[4 * r + 2]);
        found += vehicle < 0 && v->motion[4 * r + 2] == 12; /* a text among integers */
    }
    assert_int_equal(found, 4);
    assert_non_null(strstr(dt_str_text(&report), "2 rows of types whose size is not known, as \"x\""));
}

/* Degrees of longitude and latitude look like metres, but nobody would move. */
static void test_degrees(void **state)
{
    dt_str t = {0};
    dt_str_add(&t, HEAD);
    for (int i = 0; i < 20; i++) {
        dt_str_addf(&t,
                    "<timestep time=\"%d\"><vehicle id=\"a\" x=\"%.6f\" y=\"48.1\" angle=\"90\" speed=\"10\"/>"
                    "</timestep>\n",
                    i, 11.5 + 1.34e-4 * i);
    }
    dt_str_add(&t, "</fcd-export>");
    refuse(dt_str_text(&t), NULL, DT_EDATA, "in degrees of longitude and latitude: write it without --fcd-output.geo");
    dt_str_fini(&t);
}

/* Depth and length have limits, and text between elements none. */
static void test_limits(void **state)
{
    dt_str t = {0};
    dt_str_add(&t, HEAD);
    for (int i = 0; i < DT_XML_DEPTH; i++) {
        dt_str_add(&t, "<x>");
    }
    refuse(dt_str_text(&t), NULL, DT_EDATA, "<x> is nested more than 64 deep");
    dt_str_clear(&t);
    dt_str_add(&t, HEAD "<!-- ");
    for (int i = 0; i < 40000; i++) {
        dt_str_add(&t, "a comment that goes on and on and on");
    }
    refuse(dt_str_text(&t), NULL, DT_EDATA, "an element or comment of more than 1048576 bytes");
    dt_str_clear(&t);
    dt_str_add(&t, HEAD);
    for (int i = 0; i < 40000; i++) {
        dt_str_add(&t, "text that goes on and on and on and on");
    }
    dt_str_add(&t, strstr(two_steps, "<timestep"));
    put("t.xml", dt_str_text(&t));
    assert_int_equal(import("t.xml", NULL)->n_rows, 3);
    dt_str_fini(&t);
}

/* Memory that fails anywhere leaves nothing behind. */
static void test_no_memory(void **state)
{
    put("t.xml", two_steps);
    for (int n = 1;; n++) {
        char fault[32];
        close_all();
        const uint64_t live = dt_alloc_live_bytes();
        snprintf(fault, sizeof(fault), "alloc:%d", n);
        dt_fault_reset(fault);
        const dt_status st = dt_data_import(&(const char *){at("t.xml")}, 1, at("s"), NULL, &report);
        const bool is_over = dt_fault_count() == 0;
        dt_fault_reset(NULL);
        close_all();
        assert_int_equal(dt_alloc_live_bytes(), live);
        if (is_over) {
            assert_int_equal(st, DT_OK);
            break;
        }
        assert_int_equal(st, DT_ENOMEM);
        assert_false(dt_fs_is_dir(at("s")));
        assert_false(dt_fs_is_dir(at("s.partial")));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_steps, begin, finish),
        cmocka_unit_test_setup_teardown(test_bad_steps, begin, finish),
        cmocka_unit_test_setup_teardown(test_blanks, begin, finish),
        cmocka_unit_test_setup_teardown(test_times_before_zero, begin, finish),
        cmocka_unit_test_setup_teardown(test_ids_and_types, begin, finish),
        cmocka_unit_test_setup_teardown(test_degrees, begin, finish),
        cmocka_unit_test_setup_teardown(test_limits, begin, finish),
        cmocka_unit_test_setup_teardown(test_no_memory, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
