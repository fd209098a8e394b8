/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/import/import_commonroad.c: scenarios of both versions, and bad ones with place and reason.
 */
#include "fixture.h"

#include "traffic/import/import.h"

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
    assert_non_null(strstr(dt_str_text(&report), "2 lanelets: map USA_Lanker-2"));
    assert_int_equal(v->n_maps, 1);
    assert_int_equal(v->scene_map[0], 0);
    assert_string_equal(v->map[0], "USA_Lanker-2");
    assert_int_equal(v->n_lanes, 2);
    static const double xy[] = {0, 1, 4, 1, 8, 2};
    assert_memory_equal(v->lane_xy, xy, sizeof(xy));
    assert_true(v->lane_width[0] == 2 && v->lane_width[2] == 4);
    assert_int_equal(v->lane_id[1], 2);
    assert_int_equal(v->n_lane_links, 1);
    assert_int_equal(v->lane_next_ptr[1], 1);
    assert_int_equal(v->lane_next[0], 1);
    assert_int_equal(v->lane_left[0], 1);
    assert_int_equal(v->lane_right[0], -1); /* the other way */
    assert_int_equal(v->lane_right[1], 0);
}

#define POINT(x, y) "<point><x>" x "</x><y>" y "</y></point>"
#define BOUNDS(left, right)                                                                                            \
    "<leftBound>" left "<lineMarking>solid</lineMarking></leftBound><rightBound>" right "</rightBound>"
#define STRAIGHT       BOUNDS(POINT("0", "2") POINT("8", "2"), POINT("0", "-2") POINT("8", "-2"))
#define SAME(side, id) "<adjacent" side " ref=\"" id "\" drivingDir=\"same\"/>"
#define LANELETS                                                                                                       \
    "<lanelet id=\"1\">" BOUNDS(POINT("0", "2") POINT("4", "2") POINT("8", "4"),                                       \
                                POINT("0", "0") POINT("4", "0") POINT("8", "0"))                                       \
        SAME("Left", "2") "<adjacentRight ref=\"2\" drivingDir=\"opposite\"/></lanelet>"                               \
                          "<lanelet id=\"02\">" STRAIGHT "<predecessor ref=\"1\"/>" SAME("Right", "1") "</lanelet>"
#define GOAL "<planningProblem id=\"9\"><initialState><time/></initialState></planningProblem>"

static void test_2018b(void **state)
{
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

/* A scenario of one car and these roads. */
#define ROADS(version, roads)                                                                                          \
    ROAD(version)                                                                                                      \
    roads "<dynamicObstacle id=\"5\"><type>car</type>" BOX FIRST("0", "1", "2", "0.5", "10") "</dynamicObstacle>"      \
                                                                                             "</commonRoad>"
#define SIGN(id, name, value)                                                                                          \
    "<trafficSign id=\"" id "\"><trafficSignElement><trafficSignID>" name "</trafficSignID><additionalValue>" value    \
    "</additionalValue></trafficSignElement></trafficSign>"
#define REF(id)             "<trafficSignRef ref=\"" id "\"/>"
#define TYPE(type)          "<laneletType>" type "</laneletType>"
#define LANELET(id, inside) "<lanelet id=\"" id "\">" STRAIGHT inside "</lanelet>"

static void test_kinds_and_limits(void **state)
{
    const dt_store_view *v = import(
        ROADS("2020a",
              LANELET("1", TYPE("urban") TYPE("busLane") REF("21") REF("22")) LANELET("2", TYPE("crosswalk"))
                  LANELET("3", TYPE("urban")) LANELET("4", TYPE("shoulder")) LANELET("5", REF("23"))
                      LANELET("6", TYPE("highway") TYPE("exitRamp") REF("24")) LANELET("7", TYPE("unknown"))
                          SIGN("21", "R2-1", "11.5") SIGN("22", "274", "9.25") SIGN("23", "R3-4", "3")
                              SIGN("24", "r301", "30") "<intersection id=\"9\"><incoming id=\"10\"><incomingLanelet "
                                                       "ref=\"1\"/><successorsLeft ref=\"3\"/>"
                                                       "</incoming></intersection>"),
        NULL);
    static const int32_t kind[] = {DT_LANE_BUS,     DT_LANE_FOOT, DT_LANE_JUNCTION, DT_LANE_OTHER,
                                   DT_LANE_UNKNOWN, DT_LANE_RAMP, DT_LANE_UNKNOWN};
    static const float limit[] = {9.25f, 0, 0, 0, 0, 30, 0};
    assert_memory_equal(v->lane_kind, kind, sizeof(kind));
    assert_memory_equal(v->lane_limit, limit, sizeof(limit));
    v = import(
        ROADS("2018b", LANELET("1", "<speedLimit>13.75</speedLimit>") LANELET("2", "<speedLimit>inf</speedLimit>")),
        NULL);
    assert_true(v->lane_limit[0] == 13.75f && v->lane_limit[1] == 0);
}

/* Bounds of as many points as they like: the middle at every point of either, by its share of the length. */
static void test_unequal_bounds(void **state)
{
    const dt_store_view *v = import(
        ROADS("2020a",
              "<lanelet id=\"1\">" BOUNDS(
                  POINT("0", "2") POINT("2", "2") POINT("8", "2"),
                  POINT("0", "0") POINT("4", "0") POINT("6", "0") POINT(
                      "8", "0")) "</lanelet><lanelet id=\"2\">" BOUNDS(POINT("0", "1") POINT("0", "1") POINT("4", "1"),
                                                                       POINT("0", "-1") POINT("0", "-1") POINT(
                                                                           "2", "-1") POINT("4", "-1")) "</lanelet>"),
        NULL);
    static const double xy[] = {0, 1, 2, 1, 4, 1, 6, 1, 8, 1, 0, 0, 2, 0, 4, 0};
    assert_int_equal(v->n_lane_points, 8);
    assert_memory_equal(v->lane_xy, xy, sizeof(xy));
    assert_true(v->lane_width[3] == 2);
}

/* Scenarios of one map keep it once, where it lies at the same place. */
static void test_shared_map(void **state)
{
    close_all();
#define OF(id)                                                                                                         \
    "<commonRoad commonRoadVersion=\"2020a\" benchmarkID=\"" id "\" timeStepSize=\"0.1\">" LANELETS                    \
    "<dynamicObstacle id=\"5\"><type>car</type>" BOX FIRST("0", "1", "2", "0.5",                                       \
                                                           "10") "</dynamicObstacle></commonRoad>"
    put("a.xml", OF("USA_Lanker-2_1_T-1"));
    put("b.xml", OF("USA_Lanker-2_7_T-1"));
    put("c.xml", OF("DEU_Muc-1_1_T-1"));
    put("d.xml", ROADS("2020a", ""));
    assert_ok(dt_data_import((const char *const[]){at("a.xml"), at("b.xml"), at("c.xml")}, 3, at("s"), NULL, &report));
    assert_ok(dt_store_open(at("s"), &store));
    const dt_store_view *v = dt_store_view_of(store);
    assert_int_equal(v->n_maps, 2);
    const int32_t map[] = {0, 0, 1};
    assert_memory_equal(v->scene_map, map, sizeof(map));
    assert_string_equal(v->map[1], "DEU_Muc-1");
    assert_non_null(strstr(dt_str_text(&report), "roads: maps 2, lanes 4"));
    close_all();
    assert_ok(dt_data_import((const char *const[]){at("d.xml")}, 1, at("t"), NULL, &report));
    assert_ok(dt_store_open(at("t"), &store));
    assert_int_equal(dt_store_view_of(store)->n_maps, 0);
}

static void test_bad_roads(void **state)
{
    static const char *const bad[][2] = {
        {ROADS("2020a", "<lanelet/>"), "t.xml:2:1: <lanelet> has no id"},
        {ROADS("2020a", "<lanelet id=\"x\"/>"), "<lanelet> id is \"x\", not an integer of 64 bits"},
        {ROADS("2020a", "<lanelet id=\"1.5\"/>"), "<lanelet> id is \"1.5\", not an integer"},
        {ROADS("2020a", "<lanelet id=\"1\"/>"),
         "t.xml:2: lanelet 1 has a left bound of 0 points and a right one of 0: two at least can be"},
        {ROADS("2018b", "<lanelet id=\"1\">" BOUNDS(POINT("0", "2") POINT("1", "2"),
                                                    POINT("0", "2") POINT("1", "2") POINT("3", "0")) "</lanelet>"),
         "lanelet 1 has a left bound of 2 points and a right one of 3: two at least, and as many on either side in "
         "version 2018b"},
        {ROADS("2020a", "<lanelet id=\"1\">" BOUNDS(POINT("0", "2") POINT("0", "2"),
                                                    POINT("0", "0") POINT("0", "0")) "</lanelet>"),
         "t.xml:2: lanelet 1 is not a line: of its 2 points, 1 are apart"},
        {ROADS("2020a", "<lanelet id=\"1\">" BOUNDS("<point><x>1</x></point>", "") "</lanelet>"),
         "<point> of lanelet 1 has no x or no y"},
        {ROADS("2020a", "<lanelet id=\"1\">" BOUNDS(POINT("a", "1"), "") "</lanelet>"), "<x> x is \"a\", not a finite"},
        {ROADS("2020a", "<lanelet id=\"1\">" BOUNDS(POINT("0", "1e8"), "") "</lanelet>"), "<y> y is 1e8, outside"},
        {ROADS("2020a", "<lanelet id=\"1\">" STRAIGHT STRAIGHT "</lanelet>"),
         "<leftBound> of lanelet 1 is defined twice"},
        {ROADS("2020a", LANELET("1", "") "\n" LANELET("01", "")), "t.xml:3: lanelet 1 is defined twice"},
        {ROADS("2020a", LANELET("1", "<successor ref=\"2\"/>")),
         "t.xml:2: lanelet 1 is followed by 2, which does not exist"},
        {ROADS("2020a", LANELET("1", "<predecessor ref=\"2\"/>")), "lanelet 1 follows 2, which does not exist"},
        {ROADS("2020a", LANELET("1", "<successor/>")), "<successor> has no ref"},
        {ROADS("2020a", LANELET("1", SAME("Left", "3"))), "lanelet 1 has on its left 3, which does not exist"},
        {ROADS("2020a", LANELET("1", "<adjacentLeft ref=\"3\" drivingDir=\"opposite\"/>")),
         "lanelet 1 is adjacent to 3, which does not exist"},
        {ROADS("2020a", LANELET("1", "<adjacentLeft ref=\"3\"/>")), "<adjacentLeft> has no drivingDir"},
        {ROADS("2020a", LANELET("1", "<adjacentLeft ref=\"3\" drivingDir=\"up\"/>")),
         "drivingDir is \"up\", neither same nor opposite"},
        {ROADS("2020a", LANELET("1", SAME("Right", "1"))), "lanelet 1 has 1 on its right, itself"},
        {ROADS("2020a", LANELET("1", SAME("Right", "2") SAME("Right", "3")) LANELET("2", "") LANELET("3", "")),
         "lanelet 1 has 3 on its right and another one too"},
        {ROADS("2020a", LANELET("1", REF("7"))), "t.xml:2: lanelet 1 refers to sign 7, which does not exist"},
        {ROADS("2020a", LANELET("1", "") SIGN("7", "274", "1") SIGN("7", "274", "1")), "sign 7 is defined twice"},
        {ROADS("2020a", LANELET("1", "") "<intersection id=\"2\"><incoming><successorsRight ref=\"5\"/></incoming>"
                                         "</intersection>"),
         "an intersection has lanelet 5, which does not exist"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refuse(bad[i][0], bad[i][1]);
    }
    static const char *const limits[] = {ROADS("2020a", LANELET("1", "") SIGN("7", "274", "fast")),
                                         ROADS("2020a", LANELET("1", "") SIGN("7", "274", "500")),
                                         ROADS("2018b", LANELET("1", "<speedLimit>-1</speedLimit>"))};
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) { /* no reason to refuse a recording */
        import(limits[i], NULL);
        assert_non_null(strstr(dt_str_text(&report), "1 limits of speed that are not understood"));
    }
}

#define PIECE(length, width, x, y, turn)                                                                               \
    "<rectangle><length>" length "</length><width>" width "</width><orientation>" turn "</orientation><center><x>" x   \
    "</x><y>" y "</y><z>3</z></center></rectangle>"

#define CAR(inside) ROAD("2020a") "<dynamicObstacle id=\"5\"><type>car</type>" inside "</dynamicObstacle></commonRoad>"

/* The box around any shape, along the orientation, and its middle. */
static void test_shapes(void **state)
{
    static const struct {
        const char *text;
        double x, y, length, width;
        bool is_boxed;
    } shapes[] = {
        {PIECE("4", "2", "0", "0", "0"), 10, 20, 4, 2, false},
        {PIECE("4", "2", "1.5", "0", "0"), 10, 21.5, 4, 2, true},
        {PIECE("4", "2", "0", "0.5", "0"), 9.5, 20, 4, 2, true},
        {PIECE("4", "2", "0", "0", "1.5707963267948966"), 10, 20, 2, 4, true},
        {PIECE("4", "2", "0", "0", "0") PIECE("2", "1", "3", "0", "0"), 10, 21, 6, 2, true},
        {"<circle><radius>1</radius><center><x>-1</x><y>0</y></center></circle>", 10, 19, 2, 2, true},
        {"<polygon>" POINT("-1", "-1") POINT("3", "-1") POINT("3", "1") "<point><x>-1</x><y>1</y><z>0</z></point>"
                                                                        "</polygon>",
         10, 21, 4, 2, true},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        dt_str t = {0};
        dt_str_addf(&t,
                    ROAD("2020a") "<dynamicObstacle id=\"5\"><type>car</type><shape>%s</shape>" FIRST(
                        "0", "10", "20", "1.5707963267948966", "3") "</dynamicObstacle></commonRoad>",
                    shapes[i].text);
        const dt_store_view *v = import(dt_str_text(&t), NULL);
        if (fabs(v->pose[0] - shapes[i].x) > 1e-9 || fabs(v->pose[1] - shapes[i].y) > 1e-9 ||
            fabs((double)v->motion[2] - shapes[i].length) > 1e-6 ||
            fabs((double)v->motion[3] - shapes[i].width) > 1e-6 ||
            shapes[i].is_boxed != (strstr(dt_str_text(&report), "1 obstacles whose shape") != NULL)) {
            fail_msg("%s: %g %g, %g m long, %g m wide; %s", shapes[i].text, v->pose[0], v->pose[1],
                     (double)v->motion[2], (double)v->motion[3], dt_str_text(&report));
        }
        dt_str_fini(&t);
    }
}

/* Velocities may be missing; values within bounds are no values. */
static void test_states(void **state)
{
#define SLOW(t, x, y, psi)                                                                                             \
    "<state><position><point><x>" x "</x><y>" y "</y></point></position>" EXACT("orientation", psi)                    \
        EXACT("time", t) "</state>"
#define WITHIN(what) "<" what "><intervalStart>1</intervalStart><intervalEnd>2</intervalEnd></" what ">"
    const dt_store_view *v = import(
        CAR(BOX "<initialState><position><point><x>0</x><y>0</y></point></position>" EXACT("orientation", "0")
                EXACT("time", "0") "</initialState><trajectory>" SLOW("1", "1", "0", "0") SLOW("3", "5", "0", "0")
                    SLOW("4", "4.5", "0", "0") "<state>" STATE("5", "4", "0", "0", "-5") WITHIN(
                        "acceleration") "</state><state><position>"
                                        "<rectangle><length>1</length></rectangle></position>" EXACT("orientation", "0")
                                            EXACT("time", "6") "</state><state><position><point><x>1</x><y>0</y></"
                                                               "point></position>" WITHIN("orientation")
                                                                   EXACT("time", "7") "</state>" SLOW(
                                                                       "19", "9", "0", "0") "</trajectory>"),
        NULL);
    assert_int_equal(v->n_rows, 4);
    assert_true(v->motion[0] == 10 && v->motion[4] == 20 && v->motion[8] == -5 && v->motion[12] == -5);
    assert_non_null(strstr(dt_str_text(&report), "3 states without a velocity: made from positions"));
    assert_non_null(strstr(dt_str_text(&report), "2 states without a velocity, and none before them"));
    assert_non_null(
        strstr(dt_str_text(&report), "2 states with intervals or areas in place of exact values: left out"));
}

static void test_bad(void **state)
{
    static const char *const bad[][2] = {
        {"<commonRoad/>", "t.xml:1:1: <commonRoad> has no commonRoadVersion"},
        {ROAD("2017a") "</commonRoad>", "is of version \"2017a\"; 2018b and 2020a are read"},
        {"<commonRoad commonRoadVersion=\"2020a\" timeStepSize=\"0\"/>", "timeStepSize is 0, outside [0.001, 10]"},
        {"<commonRoad commonRoadVersion=\"2020a\" timeStepSize=\"0.1\" benchmarkID=\"a#b\"/>", "has a '#'"},
        {ROAD("2020a") "</commonRoad>", "contains no data: not one state of a dynamic obstacle"},
        {ROAD("2020a") "<dynamicObstacle/></commonRoad>", "t.xml:2:1: <dynamicObstacle> has no id"},
        {ROAD("2020a") "<dynamicObstacle id=\"1.5\"/></commonRoad>", "id is \"1.5\", not an integer"},
        {ROAD("2020a") "<dynamicObstacle id=\"5\"/><dynamicObstacle id=\"05\"/></commonRoad>",
         "obstacle 5 is defined twice"},
        {CAR(FIRST("0", "1", "2", "0", "1")), "<initialState> of obstacle 5 has a shape of length 0 before it"},
        {CAR("<shape><polygon><point/></polygon></shape>"), "<point> of obstacle 5 has no x or no y"},
        {CAR("<shape><polygon>" POINT("1", "1") "</polygon></shape>" FIRST("0", "1", "2", "0", "1")),
         "has a shape of length 0 before it, outside (0, 100]"},
        {CAR("<shape><rectangle><length>4</length></rectangle></shape>"),
         "<rectangle> of obstacle 5 has no length or no"},
        {CAR("<shape><circle/></shape>"), "<circle> of obstacle 5 has no radius"},
        {CAR("<shape>" PIECE("60", "2", "-40", "0", "0")
                 PIECE("60", "2", "40", "0", "0") "</shape>" FIRST("0", "1", "2", "0", "1")),
         "has a shape of length 140 before it, outside (0, 100]"},
        {CAR(BOX "<initialState/>"), "<initialState> of obstacle 5 has no exact time"},
        {CAR(BOX "<initialState><time><exact>0</exact></time><position><point/></position></initialState>"),
         "has no exact position"},
        {CAR(BOX "<initialState><time><exact>0</exact></time><position><rectangle/></position></initialState>"),
         "contains no data: not one state"}, /* an area is no place */
        {CAR(BOX FIRST("0", "x", "2", "0", "1")), "<x> position is \"x\", not a finite number"},
        {CAR(BOX FIRST("0", "1", "1e9", "0", "1")), "<y> position is 1e9, outside [-1e+07, 1e+07]"},
        {CAR(BOX FIRST("0", "1", "1", "0", "200")), "<exact> velocity is 200, outside [-150, 150]"},
        {CAR(BOX FIRST("0.5", "1", "1", "0", "1")), "time 0.5 is not a whole step"},
        {CAR(BOX FIRST("3", "1", "1", "0", "1") "<trajectory>" NEXT("2", "1", "1", "0", "1") "</trajectory>"),
         "<state> of obstacle 5: time runs backwards: step 2 after step 3"},
        {CAR(BOX FIRST("3", "1", "1", "0", "1") "<trajectory>" NEXT("3", "1", "1.5", "0", "1") "</trajectory>"),
         "step 3 after step 3"},
        {ROAD("2020a") "<dynamicObstacle id=\"5\"><type>car</type>" BOX "<initialState><time><exact>0", "truncated"},
        /* values that are there twice */
        {CAR(BOX "<initialState>" STATE("0", "1", "2", "0", "1") EXACT("velocity", "9") "</initialState>"),
         "<exact> velocity is given twice"},
        {CAR(BOX "<initialState>" STATE("0", "1", "2", "0", "1") "<position>" POINT("5", "2") "</position>"
                                                                                              "</initialState>"),
         "<x> position is given twice"},
        {CAR("<shape><rectangle><length>4</length><length>5</length></rectangle></shape>"),
         "<length> the length is given twice"},
        {CAR("<type>pedestrian</type>"), "<type> of obstacle 5 is given twice"},
        {ROADS("2018b", LANELET("1", "<speedLimit>9</speedLimit><speedLimit>8</speedLimit>")),
         "<speedLimit> of lanelet 1 is given twice"},
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
        cmocka_unit_test_setup_teardown(test_kinds_and_limits, begin, finish),
        cmocka_unit_test_setup_teardown(test_unequal_bounds, begin, finish),
        cmocka_unit_test_setup_teardown(test_shared_map, begin, finish),
        cmocka_unit_test_setup_teardown(test_bad_roads, begin, finish),
        cmocka_unit_test_setup_teardown(test_shapes, begin, finish),
        cmocka_unit_test_setup_teardown(test_states, begin, finish),
        cmocka_unit_test_setup_teardown(test_bad, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
