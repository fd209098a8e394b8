/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/data/import_commonroad.c: scenarios of both versions, and bad ones with place and reason.
 */
#include "fixture.h"

#include "data/import.h"

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

static const dt_store_view *import(const char *text, const dt_import_options *opt)
{
    close_all();
    put("t.xml", text);
    assert_ok(dt_fs_remove_tree(at("s")));
    assert_ok(dt_data_import(&(const char *){at("t.xml")}, 1, at("s"), opt, &report));
    assert_ok(dt_store_open(at("s"), &store));
    return dt_store_view_of(store);
}

static void refuse(const char *text, const char *words)
{
    close_all();
    const uint64_t live = dt_alloc_live_bytes();
    put("t.xml", text);
    assert_fails(dt_data_import(&(const char *){at("t.xml")}, 1, at("s"), NULL, &report), DT_EDATA, words);
    close_all();
    assert_int_equal(dt_alloc_live_bytes(), live);
    assert_false(dt_fs_is_dir(at("s")));
    assert_false(dt_fs_is_dir(at("s.partial")));
}

#define ROAD(version)                                                                                                  \
    "<commonRoad commonRoadVersion=\"" version "\" benchmarkID=\"USA_Lanker-2_1_T-1\" timeStepSize=\"0.1\">\n"
#define BOX                "<shape><rectangle><length>4.5</length><width>2</width></rectangle></shape>"
#define EXACT(what, value) "<" what "><exact>" value "</exact></" what ">"
#define STATE(t, x, y, psi, v)                                                                                         \
    "<position><point><x>" x "</x><y>" y "</y></point></position>" EXACT("orientation", psi) EXACT("time", t)          \
        EXACT("velocity", v)
#define FIRST(t, x, y, psi, v) "<initialState>" STATE(t, x, y, psi, v) "</initialState>"
#define NEXT(t, x, y, psi, v)  "<state>" STATE(t, x, y, psi, v) "</state>"

static void check_pair(const dt_store_view *v)
{
    assert_true(v->frame_rate_hz == 10);
    assert_int_equal(v->n_rows, 3);
    assert_int_equal(v->n_tracks, 2);
    assert_string_equal(v->scene[0], "USA_Lanker-2_1_T-1");
    assert_string_equal(v->site[0], "Lanker");
    assert_true(v->pose[0] == 1 && v->pose[1] == 2 && v->pose[2] == 0.5);
    assert_true(v->motion[0] == 10 && v->motion[2] == 4.5f && v->motion[3] == 2);
    assert_true(v->pose[3] == 7 && v->motion[4 + 2] == 1 && v->motion[4 + 3] == 1); /* a circle */
    assert_true(v->pose[6] == 2 && v->motion[8] == 11);
    assert_non_null(strstr(dt_str_text(&report), "1 static obstacles: left out"));
    assert_non_null(strstr(dt_str_text(&report), "1 people on foot and on bicycles: left out"));
    assert_non_null(strstr(dt_str_text(&report), "1 dynamic obstacles without a trajectory"));
    assert_non_null(strstr(dt_str_text(&report), "2 lanelets: left out, a store has no place for roads"));
}

#define LANELETS "<lanelet id=\"1\"><leftBound><point><x>0</x><y>0</y></point></leftBound></lanelet><lanelet id=\"2\"/>"
#define GOAL     "<planningProblem id=\"9\"><initialState><time/></initialState></planningProblem>"

static void test_2018b(void **state)
{
    (void)state;
    check_pair(import(
        ROAD("2018b") LANELETS "<obstacle id=\"5\"><role>dynamic</role><type>car</type>" BOX
            FIRST("0", "1", "2", "0.5", "10") "<trajectory>" NEXT(
                "1", "2", "2", "0.5",
                " 11\n") "</trajectory></obstacle>"
                         "<obstacle id=\"6\"><role>static</role><type>parkedVehicle</type>" BOX
                         "<initialState/></obstacle>"
                         "<obstacle "
                         "id=\"7\"><role>dynamic</role><type>pedestrian</type><shape><polygon/></shape></obstacle>"
                         "<obstacle "
                         "id=\"8\"><role>dynamic</role><type>car</type><shape><circle><radius>0.5</radius></circle></"
                         "shape>" FIRST("0", "7", "2", "0", "0") "</obstacle>" GOAL "</commonRoad>",
        NULL));
}

static void test_2020a(void **state)
{
    (void)state;
    check_pair(import(
        ROAD("2020a") "<location/>" LANELETS "<dynamicObstacle id=\"5\"><type>car</type>" BOX
            FIRST("0", "1", "2", "0.5", "10") "<trajectory>" NEXT(
                "1", "2", "2", "0.5",
                "11") "</trajectory></dynamicObstacle>"
                      "<staticObstacle id=\"6\"><type>parkedVehicle</type>" BOX "<initialState/></staticObstacle>"
                      "<dynamicObstacle id=\"7\"><type>bicycle</type>" BOX FIRST(
                          "0", "9", "9", "0",
                          "1") "</dynamicObstacle>"
                               "<dynamicObstacle "
                               "id=\"8\"><type>taxi</type><shape><circle><radius>0.5</radius></circle></shape>" FIRST(
                                   "0", "7", "2", "0", "0") "<occupancySet/></dynamicObstacle>" GOAL "</commonRoad>",
        NULL));
    assert_string_equal(import(ROAD("2020a") "<dynamicObstacle id=\"5\"><type>car</type>" BOX FIRST(
                                   "4", "1", "2", "0.5", "10") "</dynamicObstacle></commonRoad>",
                               &(dt_import_options){.site = "here"})
                            ->site[0],
                        "here");
    assert_true(dt_store_view_of(store)->frame_time[0] == 0.4);
}

#define CAR(inside) ROAD("2020a") "<dynamicObstacle id=\"5\"><type>car</type>" inside "</dynamicObstacle></commonRoad>"

static void test_bad(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"<commonRoad/>", "t.xml:1:1: <commonRoad> has no commonRoadVersion"},
        {ROAD("2017a") "</commonRoad>", "is of version \"2017a\"; 2018b and 2020a are read"},
        {"<commonRoad commonRoadVersion=\"2020a\" timeStepSize=\"0\"/>", "timeStepSize is 0, outside [0.001, 10]"},
        {"<commonRoad commonRoadVersion=\"2020a\" timeStepSize=\"0.1\" benchmarkID=\"a#b\"/>", "has a '#'"},
        {ROAD("2020a") "</commonRoad>", "holds no data: not one state of a dynamic obstacle"},
        {ROAD("2020a") "<dynamicObstacle/></commonRoad>", "t.xml:2:1: <dynamicObstacle> has no id"},
        {ROAD("2020a") "<dynamicObstacle id=\"1.5\"/></commonRoad>", "id is \"1.5\", not an integer"},
        {ROAD("2020a") "<dynamicObstacle id=\"5\"/><dynamicObstacle id=\"05\"/></commonRoad>",
         "obstacle 5 is there twice"},
        {CAR(FIRST("0", "1", "2", "0", "1")), "<initialState> of obstacle 5 comes without a rectangle or circle"},
        {CAR("<shape><polygon><point/></polygon></shape>" FIRST("0", "1", "2", "0", "1")),
         "without a rectangle or circle"},
        {CAR(BOX "<initialState/>"), "<initialState> of obstacle 5 has no exact time"},
        {CAR(BOX "<initialState><time><exact>0</exact></time><position><rectangle/></position></initialState>"),
         "has no exact position"},
        {CAR(BOX FIRST("0", "x", "2", "0", "1")), "<x> position is \"x\", not a finite number"},
        {CAR(BOX FIRST("0", "1", "1e9", "0", "1")), "<y> position is 1e9, outside [-1e+07, 1e+07]"},
        {CAR(BOX FIRST("0", "1", "1", "0", "200")), "<exact> velocity is 200, outside [-150, 150]"},
        {CAR(BOX FIRST("0.5", "1", "1", "0", "1")), "time 0.5 is no whole step"},
        {CAR(BOX FIRST("3", "1", "1", "0", "1") "<trajectory>" NEXT("2", "1", "1", "0", "1") "</trajectory>"),
         "<state> of obstacle 5: time runs backwards: step 2 after step 3"},
        {CAR(BOX FIRST("3", "1", "1", "0", "1") "<trajectory>" NEXT("3", "1", "1", "0", "1") "</trajectory>"),
         "step 3 after step 3"},
        {CAR("<shape><rectangle><length>4</length><width>2</width><orientation>0.1</orientation></rectangle></shape>"),
         "rectangle/orientation of obstacle 5 is 0.1: a shape that is not about its vehicle's centre"},
        {ROAD("2020a") "<dynamicObstacle id=\"5\"><type>car</type>" BOX "<initialState><time><exact>0", "cut short"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refuse(bad[i][0], bad[i][1]);
    }
    dt_str t = {0};
    dt_str_add(&t, ROAD("2020a") "<dynamicObstacle id=\"5\">");
    for (int i = 0; i < 30; i++) {
        dt_str_add(&t, "<trajectory>");
    }
    refuse(dt_str_text(&t), "no obstacle of CommonRoad has that");
    dt_str_clear(&t);
    dt_str_add(&t, ROAD("2020a") "<dynamicObstacle id=\"5\"><type>car</type><shape><rectangle><length>");
    for (int i = 0; i < 300; i++) {
        dt_str_add(&t, "1");
    }
    dt_str_add(&t, "</length></rectangle></shape></dynamicObstacle></commonRoad>");
    refuse(dt_str_text(&t), "<length> the length is a text of more than 256 bytes");
    dt_str_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_2018b, begin, finish),
        cmocka_unit_test_setup_teardown(test_2020a, begin, finish),
        cmocka_unit_test_setup_teardown(test_bad, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
