/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/inspect/normalisation.c: a store of two vehicles, whose numbers are known by hand, and one
 * of nothing.
 */
#include "fixture.h"

#include "traffic/import/import.h"
#include "traffic/inspect/inspect.h"
#include "traffic/inspect/normalisation.h"

/* One behind the other on a road along x, 40 m apart, 10 and 20 m/s, both 4 m long; n of them. */
static void write_pair(const char *name, uint32_t n)
{
    const dt_store_meta meta = {.frame_rate_hz = 10, .source = "test"};
    dt_store_writer *w = NULL;
    assert_int_equal(dt_store_create(at(name), &meta, &w), DT_OK);
    assert_int_equal(dt_store_scene_begin(w), DT_OK);
    for (int f = 0; f < 3; f++) {
        dt_vehicle v[2];
        for (uint32_t i = 0; i < 2; i++) {
            v[i] = (dt_vehicle){.id = 1 + i,
                                .x = 1000 + 40 * i,
                                .y = -500,
                                .speed = 10 + 10 * i,
                                .accel = i,
                                .length = 4,
                                .width = 2,
                                .stop_distance = NAN};
        }
        assert_int_equal(dt_store_frame(w, f, 0.1 * f, v, n), DT_OK);
    }
    assert_int_equal(dt_store_scene_end(w, "s", "site"), DT_OK);
    assert_int_equal(dt_store_commit(w), DT_OK);
    dt_store_destroy(w);
}

static void assert_is(dt_normaliser k, double shift, double scale, uint32_t is_left)
{
    assert_true(k.shift == shift && k.scale == scale);
    assert_int_equal(k.is_left, is_left);
}

static void test_numbers(void **state)
{
    dt_store *s = NULL;
    write_pair("s", 2);
    assert_int_equal(dt_store_open(at("s"), &s), DT_OK);
    const dt_normalisation k = dt_normalisation_measure(s);
    assert_is(k.node[0], 0, 1.0 / 20, 0); /* 20 m either side of the middle, wherever the scene lies */
    assert_is(k.node[1], 0, 1.0 / 20, 0);
    assert_is(k.node[2], -15, 0.2, 0);
    assert_is(k.node[3], 0, 0.2, 0);
    for (int d = 4; d < DT_NODE_FEATURES; d++) {
        assert_is(k.node[d], 0, 1, d == 6 || d == 7); /* all as long, no stop line; sine, cosine and the flag stay */
    }
    assert_is(k.edge[0], 0, 1.0 / 36, 0); /* 36 m ahead and behind, bumper to bumper */
    assert_is(k.edge[1], 0, 1, 1);
    dt_store_close(s);
}

static void test_reports(void **state)
{
    dt_str out = {0};
    write_pair("s", 2);
    assert_int_equal(dt_data_inspect(at("s"), false, &out), DT_OK);
    assert_non_null(
        strstr(dt_str_text(&out),
               "normalised by all of it (risk_gnn.normalise = \"store\"): positions as far as 20 m from the "
               "middle of their frame, accelerations within 5 m/s^2, measures by mean and std; constant, "
               "and not normalised: length, stop_distance, lateral_offset"));
    dt_str_clear(&out);
    assert_int_equal(dt_data_inspect(at("s"), true, &out), DT_OK);
    assert_non_null(
        strstr(dt_str_text(&out), "\"normalised\":{\"x\":{\"kind\":\"position\",\"shift\":0,\"scale\":0.05}"));
    assert_non_null(strstr(dt_str_text(&out), "\"speed\":{\"kind\":\"measure\",\"shift\":-15,\"scale\":0.2}"));
    assert_non_null(
        strstr(dt_str_text(&out), "\"acceleration\":{\"kind\":\"acceleration\",\"shift\":0,\"scale\":0.2}"));
    assert_non_null(strstr(dt_str_text(&out), "\"sin_heading\":{\"kind\":\"as it is\",\"shift\":0,\"scale\":1}"));
    assert_non_null(strstr(dt_str_text(&out), "\"length\":{\"kind\":\"as it is\",\"shift\":0,\"scale\":1}"));
    dt_str_fini(&out);
}

/* A vehicle alone has no neighbour and is in the middle of its frame. */
static void test_nothing_to_scale(void **state)
{
    dt_str out = {0};
    write_pair("s", 1);
    assert_int_equal(dt_data_inspect(at("s"), false, &out), DT_OK);
    assert_non_null(strstr(dt_str_text(&out),
                           "\"store\"): accelerations within 5 m/s^2, measures by mean and std; constant, and not "
                           "normalised: x, y, speed, length, stop_distance, longitudinal_gap, lateral_offset, "
                           "closing_speed, inverse_ttc\n"));
    dt_str_fini(&out);
}

/* What is no number, or impossible, is refused where the store is opened. */
static void test_hostile_statistics(void **state)
{
    static const char *const to[] = {"\"mean\":1e999", "\"mean\":null", "\"mean\":20.5", "\"mean\":9.9"};
    for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
        dt_store *s = NULL;
        char name[16], json[32];
        snprintf(name, sizeof(name), "s%zu", i);
        snprintf(json, sizeof(json), "s%zu/store.json", i);
        write_pair(name, 2);
        replace_in(json, "\"mean\":15", to[i]);
        assert_int_equal(dt_store_open(at(name), &s), DT_EDATA);
        assert_null(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_numbers, begin, end),
        cmocka_unit_test_setup_teardown(test_reports, begin, end),
        cmocka_unit_test_setup_teardown(test_nothing_to_scale, begin, end),
        cmocka_unit_test_setup_teardown(test_hostile_statistics, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
