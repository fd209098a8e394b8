/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/map/map_reader.c, map_lanelet2.c and utm.c: maps of each format by hand, and bad ones with
 * place and reason; places of the UTM grid against points that are known.
 */
#include "fixture.h"
#include "../numbers.h"

#include "traffic/import/import.h"
#include "traffic/inspect/inspect.h"
#include "traffic/map/map_reader.h"
#include "traffic/map/utm.h"

static dt_roads roads;
static dt_str notes;

static void forget(void)
{
    dt_roads_fini(&roads);
    dt_str_fini(&notes);
}

static const dt_roads *read_from(const char *text, const char *origin)
{
    dt_map_origin o;
    forget();
    put("m.map", text);
    assert_ok(dt_map_origin_parse(origin, &o));
    assert_ok(dt_map_read(at("m.map"), &o, &notes, &roads));
    return &roads;
}

static void refuse(const char *text, const char *origin, dt_status code, const char *words)
{
    dt_map_origin o;
    forget();
    const uint64_t live = dt_alloc_live_bytes();
    put("m.map", text);
    assert_ok(dt_map_origin_parse(origin, &o));
    assert_fails(dt_map_read(at("m.map"), &o, &notes, &roads), code, words);
    forget();
    assert_int_equal(dt_alloc_live_bytes(), live);
}

static bool is_near(double a, double b, double most)
{
    return fabs(a - b) <= most;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Points by PROJ 9 (etmerc, EPSG:326xx). */
static void test_utm(void **state)
{
    static const struct {
        double latitude, longitude;
        int zone;
        double x, y;
    } known[] = {
        {0, 0, 31, 166021.443081, 0.000000},
        {0.009, 0.0085, 31, 166968.587433, 996.137018},
        {-0.002, 0.5, 31, 221723.683340, -221.272114},
        {50.78, 6.13, 32, 297679.285489, 5629287.699280},
        {34.139045, -118.362223, 11, 374402.582728, 3778411.188673},
        {-33.86, 151.21, 56, 334416.393990, -3748074.639648},
        {83.9, 9, 32, 500000.000000, 9316930.154067},
        {60.5, 11.9, 32, 659273.220583, 6710606.487190},
        {20, -25, 31, -2521749.790226, 2479203.869378},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        double xy[2];
        dt_utm_project(known[i].latitude, known[i].longitude, known[i].zone, xy);
        if (!is_near(xy[0], known[i].x, 1e-5) || !is_near(xy[1], known[i].y, 1e-5)) {
            print_error("%g %g: %.6f %.6f, known is %.6f %.6f\n", known[i].latitude, known[i].longitude, xy[0], xy[1],
                        known[i].x, known[i].y);
            fail();
        }
    }
    assert_int_equal(dt_utm_zone(-180), 1);
    assert_int_equal(dt_utm_zone(0), 31);
    assert_int_equal(dt_utm_zone(6.1), 32);
    assert_int_equal(dt_utm_zone(180), 60);
}

static void test_origins(void **state)
{
    dt_map_origin o;
    assert_ok(dt_map_origin_parse("", &o));
    assert_false(o.is_given);
    assert_ok(dt_map_origin_parse("-33.5,151", &o));
    assert_true(o.is_given && !o.is_utm && o.at[0] == -33.5 && o.at[1] == 151);
    assert_ok(dt_map_origin_parse("utm:293487.1224,5629711.58163", &o));
    assert_true(o.is_utm && o.at[0] == 293487.1224 && o.at[1] == 5629711.58163);
    static const char *const bad[] = {"1", "1;2", "85,0", "0,181", "a,b", "1,", ",1", "utm:1", "utm:1e8,0", "1,2,3"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_fails(dt_map_origin_parse(bad[i], &o), DT_EINVAL, "it is \"LATITUDE,LONGITUDE\" in degrees");
    }
}

/* ---- lanelet2 ---------------------------------------------------------------------------------------------------- */

#define OSM(inside)       "<osm version=\"0.6\">\n" inside "</osm>"
#define NODE(id, x, y)    "<node id=\"" id "\" x=\"" x "\" y=\"" y "\"/>\n"
#define GEO(id, lat, lon) "<node id=\"" id "\" lat=\"" lat "\" lon=\"" lon "\"/>\n"
#define ND(id)            "<nd ref=\"" id "\"/>"
#define WAY(id, nodes)    "<way id=\"" id "\">" nodes "</way>\n"
#define MEMBER(role, id)  "<member type=\"way\" ref=\"" id "\" role=\"" role "\"/>"
#define TAG(k, v)         "<tag k=\"" k "\" v=\"" v "\"/>"
#define LANELET(id, left, right, more)                                                                                 \
    "<relation id=\"" id "\">" MEMBER("left", left) MEMBER("right", right) TAG("type", "lanelet") more "</relation>\n"
#define RULE(id, more) "<relation id=\"" id "\">" TAG("type", "regulatory_element") more "</relation>\n"
#define OBEY(id)       "<member type=\"relation\" ref=\"" id "\" role=\"regulatory_element\"/>"

/* Two lanes eastwards at y 0..3 and 3..6, one westwards at 6..9, one that goes on eastwards; way 12 and 22 are drawn
 * from east to west. */
#define POINTS                                                                                                         \
    NODE("-1", "0", "0")                                                                                               \
    NODE("2", "10", "0")                                                                                               \
    NODE("3", "20", "0")                                                                                               \
    NODE("4", "0", "3")                                                                                                \
    NODE("5", "10", "3")                                                                                               \
    NODE("6", "20", "3")                                                                                               \
    NODE("7", "0", "6")                                                                                                \
    NODE("8", "10", "6")                                                                                               \
    NODE("9", "0", "9")                                                                                                \
    NODE("10", "10", "9")
#define LINES                                                                                                          \
    WAY("11", ND("-1") ND("2"))                                                                                        \
    WAY("12", ND("5") ND("4"))                                                                                         \
    WAY("13", ND("7") ND("8")) WAY("14", ND("9") ND("10")) WAY("21", ND("2") ND("3")) WAY("22", ND("6") ND("5"))
#define GRID POINTS LINES
#define STREET                                                                                                         \
    LANELET("101", "12", "11", TAG("subtype", "road") TAG("speed_limit", "36"))                                        \
    LANELET("102", "13", "12", TAG("subtype", "highway") OBEY("200") OBEY("201"))                                      \
    LANELET("103", "13", "14", TAG("subtype", "bus_lane")) LANELET("104", "22", "21", TAG("turn_direction", "left"))

static void check_street(const dt_roads *r)
{
    assert_int_equal(r->n_lanes, 4);
    static const double xy[] = {0, 1.5, 10, 1.5, 0, 4.5, 10, 4.5, 10, 7.5, 0, 7.5, 10, 1.5, 20, 1.5};
    for (int i = 0; i < 16; i++) {
        assert_true(is_near(r->xy[i], xy[i], 1e-4));
    }
    assert_true(is_near((double)r->width[0], 3, 1e-4));
    static const int32_t kind[] = {DT_LANE_ROAD, DT_LANE_HIGHWAY, DT_LANE_BUS, DT_LANE_JUNCTION};
    static const int32_t left[] = {1, -1, -1, -1}, right[] = {-1, 0, -1, -1};
    static const int64_t id[] = {101, 102, 103, 104}, next_ptr[] = {0, 1, 1, 1, 1};
    assert_memory_equal(r->kind, kind, sizeof(kind));
    assert_memory_equal(r->left, left, sizeof(left));
    assert_memory_equal(r->right, right, sizeof(right));
    assert_memory_equal(r->id, id, sizeof(id));
    assert_memory_equal(r->next_ptr, next_ptr, sizeof(next_ptr));
    assert_int_equal(r->next[0], 3);
    assert_true(r->limit[0] == 10 && is_near((double)r->limit[1], 13.4112, 1e-6) && r->limit[2] == 0);
}

#define RULES                                                                                                          \
    RULE("200", TAG("subtype", "speed_limit") TAG("sign_type", "de274-60"))                                            \
    RULE("201", TAG("sign_type", "30 mph") TAG("subtype", "speed_limit"))

static void test_lanelet2(void **state)
{
    const dt_roads *r = read_from(OSM(GRID RULES STREET), "");
    check_street(r);
    assert_non_null(strstr(dt_str_text(&notes), "m.map: 4 lanelets of lanelet2"));
    check_street(read_from(OSM(STREET RULES LINES POINTS), "")); /* in any order */
    check_street(read_from(OSM(LINES STREET POINTS RULES), ""));
    check_street(
        read_from(OSM("<node id=\"98\"/>" GEO("99", "1", "2") WAY("15", ND("97") ND("-1")) WAY("16", "")
                          GRID RULES STREET "<relation id=\"17\"><member type=\"way\" ref=\"96\" role=\"left\"/>"
                                            "</relation>"),
                  "")); /* what no lanelet uses may lack anything */
    r = read_from(
        OSM(GRID STREET RULES RULE("300", TAG("subtype", "right_of_way")) LANELET(
            "105", "12", "11",
            OBEY("300") TAG("speed_limit", "fast") TAG(
                "subtype",
                "parking")) "<node id=\"77\" action=\"delete\"/><relation id=\"9\"><tag k=\"type\" v=\"multipolygon\"/>"
                            "<member type=\"way\" ref=\"11\" role=\"outer\"/>" OBEY("999") "</relation>"),
        "");
    assert_int_equal(r->kind[4], DT_LANE_OTHER);
    assert_int_equal(r->limit[4], 0);
    assert_int_equal(r->left[4], 1);
    assert_int_equal(r->right[1], 0); /* the first of two */
    assert_int_equal(r->next_ptr[5] - r->next_ptr[4], 1);
    assert_non_null(strstr(dt_str_text(&notes), "1 limits of speed that are not understood (\"fast\"): left out"));
}

/* Nodes in degrees, as of INTERACTION: (0, 0) is the origin; tags of nodes; and a recording that counts from a place of
 * the grid. */
static void test_degrees(void **state)
{
    double zero[2], place[2], above[2];
    dt_utm_project(0, 0, 31, zero);
    dt_utm_project(0.00903, 0.0085, 31, above);
    dt_utm_project(0.009, 0.0085, 31, place);
    const dt_roads *r =
        read_from(OSM(GEO("1", "0.009", "0.0085") GEO("2", "0.009", "0.0086") GEO("3", "0.00903", "0.0085")
                          GEO("4", "0.00903", "0.0086") WAY("5", ND("1") ND("2")) WAY("6", ND("3") ND("4"))
                              LANELET("7", "6", "5", "")),
                  "");
    assert_true(is_near(r->xy[0], 0.5 * (place[0] + above[0]) - zero[0], 1e-6)); /* the middle of 1 and 3 */
    assert_true(is_near(r->xy[1], 0.5 * (place[1] + above[1]) - zero[1], 1e-6));
    assert_true(is_near((double)r->width[0], 3.3205, 0.001));
    assert_int_equal(r->kind[0], DT_LANE_UNKNOWN);
#define LOCAL(id, x, y) "<node id=\"" id "\" lat=\"50\" lon=\"6\">" TAG("local_x", x) TAG("local_y", y) "</node>"
    static const char aachen[] = OSM(GEO("1", "50.78", "6.13") GEO("2", "50.78", "6.1301") GEO("3", "50.78003", "6.13")
                                         GEO("4", "50.78003", "6.1301") WAY("5", ND("1") ND("2"))
                                             WAY("6", ND("3") ND("4")) LANELET("7", "6", "5", ""));
    dt_utm_project(50.78, 6.13, 32, place);
    char origin[64];
    snprintf(origin, sizeof(origin), "utm:%.6f,%.6f", place[0], place[1]);
    r = read_from(aachen, origin);
    assert_true(fabs(r->xy[0]) < 0.1 && is_near(r->xy[1], 0.5 * 3.337, 0.01));
    r = read_from(aachen, "50.78,6.13");
    assert_true(fabs(r->xy[0]) < 0.1 && is_near(r->xy[1], 0.5 * 3.337, 0.01));
    refuse(aachen, "0,60", DT_EDATA, "node 1 is at longitude 6.13, too far from zone 41 of the origin");
    r = read_from(OSM(LOCAL("1", "5", "0") LOCAL("2", "9", "0") LOCAL("3", "5", "4") LOCAL("4", "9", "4")
                          WAY("5", ND("1") ND("2")) WAY("6", ND("3") ND("4")) LANELET("7", "6", "5", "")),
                  "");
    assert_true(r->xy[0] == 5 && r->xy[1] == 2 && r->xy[2] == 9);
}

static void test_bad_lanelet2(void **state)
{
#define PAIR NODE("1", "0", "0") NODE("2", "9", "0") NODE("3", "0", "3") NODE("4", "9", "3")
#define TWO  PAIR WAY("5", ND("1") ND("2")) WAY("6", ND("3") ND("4"))
    static const char *const bad[][2] = {
        {"<nodes/>", "m.map: XML of <nodes>, which is not a known map: osm (lanelet2) and net (SUMO) are"},
        {OSM(""), "has no relation of type lanelet: no map of lanelet2"},
        {OSM("<node/>"), "m.map:2:1: <node> has no id"},
        {OSM("<node id=\"1.5\"/>"), "id is \"1.5\", not an integer"},
        {OSM(NODE("1", "x", "0")), "x is \"x\", not a finite number"},
        {OSM(NODE("1", "1e9", "0")), "x is 1e9, outside"},
        {OSM(GEO("1", "85", "0")), "lat is 85, outside [-84, 84]"},
        {OSM(NODE("1", "1", "0") NODE("01", "1", "0")), "m.map:3:1: <node> node 1 is defined twice"},
        {OSM(TWO WAY("8", ND("1") ND("9")) LANELET("7", "6", "8", "")),
         "m.map:9: lanelet 7 has way 8 on its right, whose node 9 does not exist"},
        {OSM(TWO WAY("5", "")), "way 5 is defined twice"},
        {OSM(TWO LANELET("7", "6", "8", "")), "lanelet 7 has way 8 on its right, which does not exist"},
        {OSM(TWO "<relation id=\"7\">" TAG("type", "lanelet") MEMBER("left", "5") "</relation>"),
         "m.map:8: lanelet 7 has no way on its right"},
        {OSM(TWO LANELET("7", "5", "6", MEMBER("left", "6"))), "lanelet 7 has more than one way on its left"},
        {OSM(TWO WAY("8", ND("1")) LANELET("7", "6", "8", "")),
         "lanelet 7 has way 8 on its right, which does not have two nodes"},
        {OSM(TWO LANELET("7", "6", "5", "") LANELET("7", "6", "5", "")), "m.map:9: lanelet 7 is defined twice"},
        {OSM(TWO LANELET("7", "6", "5", OBEY("70"))),
         "lanelet 7 refers to regulatory element 70, which does not exist"},
        {OSM(TWO RULE("70", "") RULE("70", "")), "regulatory element 70 is defined twice"},
        {OSM(TWO "<node id=\"99\"/>" WAY("8", ND("1") ND("99")) LANELET("7", "6", "8", "")),
         "node 99 has neither x and y nor lat and lon"},
        {OSM(TWO GEO("99", "1", "2") WAY("8", ND("1") ND("99")) LANELET("7", "6", "8", "")),
         "3 of 4 nodes have x and y: all must, or none"},
        {OSM(PAIR WAY("5", ND("1") ND("1")) WAY("6", ND("3") ND("3")) LANELET("7", "6", "5", "")),
         "lanelet 7 is not a line: of its 2 points, 1 are apart"},
        {OSM("<way id=\"1\"><tag k=\"a\"/></way>"), "<tag> has no v"},
        {"<osm><node id=\"1\"", "truncated"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refuse(bad[i][0], "", DT_EDATA, bad[i][1]);
    }
    static const char *const origin[] = {"1,2", "utm:1,2"};
    for (size_t i = 0; i < sizeof(origin) / sizeof(origin[0]); i++) {
        refuse(OSM(TWO LANELET("7", "6", "5", "")), origin[i], DT_EDATA,
               "node 1 has no lat and lon, which an origin needs");
    }
    dt_map_origin none = {.is_given = false};
    assert_fails(dt_map_read(at("nothing"), &none, &notes, &roads), DT_ENOTFOUND, "nothing");
}

/* ---- SUMO -------------------------------------------------------------------------------------------------------- */

#define NET(inside)           "<net version=\"1.16\">\n<location netOffset=\"0.00,0.00\"/>\n" inside "</net>"
#define EDGE(id, more, lanes) "<edge id=\"" id "\" " more ">" lanes "</edge>\n"
#define LANE(id, more, speed, shape)                                                                                   \
    "<lane id=\"" id "\" " more " speed=\"" speed "\" length=\"9\" shape=\"" shape "\"/>"
#define LINK(from, f, to, t, more)                                                                                     \
    "<connection from=\"" from "\" fromLane=\"" f "\" to=\"" to "\" toLane=\"" t "\" " more "/>\n"
#define TOWN                                                                                                           \
    EDGE(":j_0", "function=\"internal\"", LANE(":j_0_0", "", "7.5", "10,0 14,0"))                                      \
    EDGE(":j_w0", "function=\"walkingarea\"", LANE(":j_w0_0", "", "1", "0,0 1,0 1,1"))                                 \
    EDGE(":j_c0", "function=\"crossing\"", LANE(":j_c0_0", "width=\"4\"", "1", "9,9 9,3"))                             \
    EDGE("a", "type=\"highway.residential\"",                                                                          \
         LANE("a_0", "allow=\"pedestrian\" width=\"2\"", "1.4", "0,-3 10,-3")                                          \
             LANE("a_1", "allow=\"bus taxi\"", "13.9", "0,0,5 10,0,5") LANE("a_2", "", "13.9", "0,3 10,3"))            \
    EDGE("b", "type=\"highway.motorway\"", LANE("b_0", "", "36.11", "14,0 20,0"))                                      \
    EDGE("c", "type=\"highway.motorway_link\"", LANE("c_0", "", "36.11", "14,3 20,3"))                                 \
    EDGE("d", "", LANE("d_0", "allow=\"tram\"", "20", "0,9 9,9") LANE("d_1", "allow=\"bicycle\"", "5", "0,12 9,12"))   \
    LINK("a", "1", "b", "0", "via=\":j_0_0\"")                                                                         \
    LINK(":j_0", "0", "b", "0", "") LINK("a", "2", "c", "0", "") LINK(":j_w0", "0", ":j_c0", "0", "")

static void test_sumo(void **state)
{
    const dt_roads *r = read_from(NET(TOWN), "");
    static const int32_t kind[] = {DT_LANE_JUNCTION, DT_LANE_FOOT, DT_LANE_FOOT,  DT_LANE_BUS,    DT_LANE_ROAD,
                                   DT_LANE_HIGHWAY,  DT_LANE_RAMP, DT_LANE_OTHER, DT_LANE_BICYCLE};
    static const int32_t left[] = {-1, -1, -1, 4, -1, -1, -1, 8, -1}, right[] = {-1, -1, -1, -1, 3, -1, -1, -1, 7};
    static const int64_t next_ptr[] = {0, 1, 1, 1, 2, 3, 3, 3, 3, 3};
    static const int32_t next[] = {5, 0, 6};
    assert_int_equal(r->n_lanes, 9);
    assert_memory_equal(r->kind, kind, sizeof(kind));
    assert_memory_equal(r->left, left, sizeof(left));
    assert_memory_equal(r->right, right, sizeof(right));
    assert_memory_equal(r->next_ptr, next_ptr, sizeof(next_ptr));
    assert_memory_equal(r->next, next, sizeof(next));
    assert_true(r->limit[0] == 7.5f && r->width[0] == 3.2f && r->width[4] == 2 && r->id[3] == 0);
    assert_true(r->xy[2 * r->point[3]] == 0 && r->xy[2 * r->point[3] + 2] == 10);
    r = read_from(NET(EDGE(":j_0", "function=\"internal\"", LANE(":j_0_0", "", "7", "4,0 4,0"))
                          EDGE(":j_1", "function=\"internal\"", LANE(":j_1_0", "", "7", "4,0,1 4,0,1 4,0,1")) EDGE(
                              "a", "", LANE("a_0", "", "9", "0,0 4,0")) EDGE("b", "", LANE("b_0", "", "9", "4,0 9,0"))
                              LINK("a", "0", "b", "0", "via=\":j_0_0\"") LINK(":j_0", "0", "b", "0", "via=\":j_1_0\"")
                                  LINK(":j_1", "0", "b", "0", "")),
                  "");
    assert_int_equal(r->n_lanes, 2); /* what is one place is passed */
    assert_int_equal(r->n_links, 1);
    assert_int_equal(r->next[0], 1);
    assert_non_null(strstr(dt_str_text(&notes), "2 lanes that are one place: left out"));
    r = read_from("<net lefthand=\"true\">" EDGE(
                      "a", "", LANE("a_0", "", "9", "0,0 9,0") LANE("a_1", "", "9", "0,3 9,3")) "</net>",
                  "");
    assert_int_equal(r->right[0], 1);
    assert_int_equal(r->left[1], 0);
    assert_int_equal(r->left[0], -1);
}

/* The texts that are numbers, and limits that no lane has. */
static void test_numbers(void **state)
{
    for (int i = 0; i < N_NUMBER_TEXTS; i++) {
        char text[400];
        dt_map_origin none = {.is_given = false};
        snprintf(text, sizeof(text),
                 "<net><edge id=\"a\"><lane id=\"a_0\" speed=\"%s\" shape=\"0,0\t9,0\n18,0\"/></edge></net>",
                 number_texts[i].text);
        forget();
        put("m.map", text);
        dt_error_clear();
        const dt_status st = dt_map_read(at("m.map"), &none, &notes, &roads);
        if (st != (number_texts[i].is_number ? DT_OK : DT_EDATA) ||
            (st == DT_OK && roads.limit[0] != (float)number_texts[i].value)) {
            fail_msg("\"%s\" gave %s: %s", number_texts[i].text, dt_status_name(st), dt_error_text());
        }
        dt_error_clear();
    }
    const dt_roads *r = read_from(NET(EDGE("a", "", LANE("a_0", "", "1000", "0,0 9,0"))), "");
    assert_true(r->limit[0] == 0);
    assert_non_null(strstr(dt_str_text(&notes), "(\"1000\")"));
}

static void test_bad_sumo(void **state)
{
#define ONE(lane) NET(EDGE("a", "", lane))
    static const char *const bad[][2] = {
        {NET(""), "has not one lane"},
        {NET("<edge/>"), "m.map:3:1: <edge> has no id"},
        {ONE("<lane/>"), "<lane> has no id"},
        {ONE("<lane id=\"a_0\"/>"), "<lane> has no shape"},
        {ONE("<lane id=\"a_0\" shape=\"0,0 1,1\"/>"), "<lane> has no speed"},
        {ONE(LANE("a_0", "", "-1", "0,0 9,0")), "speed is -1, outside [0, "},
        {ONE(LANE("a_0", "width=\"-1\"", "20", "0,0 9,0")), "width is -1, outside"},
        {ONE(LANE("a_0", "", "20", "0,0 9")), "shape has \"9\", which is not a point"},
        {ONE(LANE("a_0", "", "20", "0,0 9,x")), "a point of the shape is \"x\", not a finite number"},
        {ONE(LANE("a_0", "", "20", "0,0 9,1e9")), "a point of the shape is 1e9, outside"},
        {ONE(LANE("a_0", "", "20", "0,0")), "m.map:3: lane a_0 is not a line: of its 1 points, 1 are apart"},
        {ONE(LANE("a_0", "", "20", "")), "of its 0 points"},
        {ONE(LANE("a_0", "", "20", "0,0 1,1") LANE("a_0", "", "20", "0,0 1,1")), "lane a_0 is defined twice"},
        {NET(TOWN LINK("x", "0", "b", "0", "")), "<connection> begins at lane x_0, which is not defined before it"},
        {NET(TOWN LINK("a", "1", "b", "7", "")), "lane a_1 is followed by b_7, which does not exist"},
        {NET(TOWN LINK("a", "1", "b", "0", "via=\":k\"")), "lane a_1 is followed by :k, which does not exist"},
        {NET(TOWN "<connection from=\"a\"/>"), "<connection> has no fromLane"},
        {NET(EDGE("p", "", LANE("p_0", "", "7", "4,0 4,0")) EDGE("a", "", LANE("a_0", "", "9", "0,0 4,0"))
                 LINK("p", "0", "p", "0", "") LINK("a", "0", "p", "0", "")),
         "m.map:6: <connection> leads through more than 64 lanes of one place"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refuse(bad[i][0], "", DT_EDATA, bad[i][1]);
    }
    refuse(NET(TOWN), "0,0", DT_EINVAL, "is in metres of its own, as floating cars are: leave out import.map_origin");
}

/* ---- Argoverse 2 ------------------------------------------------------------------------------------------------- */

#define P(x, y)              "{\"x\":" x ",\"y\":" y ",\"z\":1.5}"
#define BORDERS(left, right) "\"left_lane_boundary\":[" left "],\"right_lane_boundary\":[" right "]"
#define SEGMENT(id, borders, type, crossing, next, before, left, right)                                                \
    "\"" id "\":{\"id\":" id "," borders ",\"lane_type\":\"" type "\",\"is_intersection\":" crossing                   \
    ",\"successors\":[" next "],\"predecessors\":[" before "],\"left_neighbor_id\":" left                              \
    ",\"right_neighbor_id\":" right ",\"left_lane_mark_type\":\"NONE\"}"
#define CITY(lanes)  "{\"drivable_areas\":{\"1\":{\"area_boundary\":[]}},\"lane_segments\":{" lanes "}}"
#define EAST(y0, y1) BORDERS(P("0", y1) "," P("10", y1), P("0", y0) "," P("10", y0))

/* 1 and 2 eastwards, 3 westwards next to 2, 4 behind 1; what 4 goes on into lies outside. */
#define BLOCK                                                                                                          \
    SEGMENT("1", EAST("0", "3"), "VEHICLE", "false", "4", "", "2", "null")                                             \
    "," SEGMENT("2", EAST("3", "6"), "BUS", "false", "", "", "3", "1") "," SEGMENT(                                    \
        "3", BORDERS(P("10", "6") "," P("0", "6"), P("10", "9") "," P("5", "9") "," P("0", "9")), "BIKE", "true", "",  \
        "", "2", "null") "," SEGMENT("4", BORDERS(P("10", "3") "," P("20", "3"), P("10", "0") "," P("20", "0")),       \
                                     "VEHICLE", "true", "99,98", "1", "null",                                          \
                                     "null") ","                                                                       \
                                             "\"5\":{\"centerline\":[" P("0", "20") "," P("9", "20") "]}"

static void test_argoverse(void **state)
{
    const dt_roads *r = read_from(CITY(BLOCK), "");
    static const int32_t kind[] = {DT_LANE_ROAD, DT_LANE_BUS, DT_LANE_BICYCLE, DT_LANE_JUNCTION, DT_LANE_UNKNOWN};
    static const int32_t left[] = {1, -1, -1, -1, -1}, right[] = {-1, 0, -1, -1, -1};
    static const int64_t id[] = {1, 2, 3, 4, 5}, next_ptr[] = {0, 1, 1, 1, 1, 1}, point[] = {0, 2, 4, 7, 9, 11};
    static const double xy[] = {0, 1.5, 10, 1.5, 0, 4.5, 10, 4.5, 10, 7.5, 5, 7.5, 0, 7.5};
    assert_int_equal(r->n_lanes, 5);
    assert_memory_equal(r->kind, kind, sizeof(kind));
    assert_memory_equal(r->left, left, sizeof(left));
    assert_memory_equal(r->right, right, sizeof(right));
    assert_memory_equal(r->id, id, sizeof(id));
    assert_memory_equal(r->next_ptr, next_ptr, sizeof(next_ptr));
    assert_memory_equal(r->point, point, sizeof(point));
    assert_memory_equal(r->xy, xy, sizeof(xy));
    assert_int_equal(r->next[0], 3);
    assert_true(r->width[0] == 3 && r->width[9] == 0 && r->limit[0] == 0);
    assert_non_null(strstr(dt_str_text(&notes), "5 lane segments of Argoverse 2, 2 references to lanes outside"));
}

static void test_bad_argoverse(void **state)
{
    static const char *const bad[][2] = {
        {"[1]", "is not a known map: neither XML nor JSON"},
        {"{}", "has no lane_segments: no map of Argoverse 2"},
        {"{\"lane_segments\":{}}", "has no lane segment: no map"},
        {"{\"lane_segments\":[]}", "lane_segments must be an object, but is an array"},
        {CITY("\"a\":{\"centerline\":[" P("0", "0") "," P("1", "0") "]}"), "is called \"a\", not by an integer"},
        {CITY("\"1\":{}"), "lane segment 1 is not a line: of its 0 points"},
        {CITY("\"1\":{" BORDERS(P("0", "0") "," P("1", "0"), "") "}"), "has boundaries of 2 and 0 points"},
        {CITY("\"1\":{\"centerline\":[{\"x\":1}]}"), "a point has no x or no y"},
        {CITY("\"1\":{\"centerline\":[" P("0", "0") "," P("\"a\"", "0") "]}"), "x must be a number, but is a string"},
        {CITY("\"1\":{\"centerline\":[" P("0", "0") "," P("1e9", "0") "]}"), "is more than 1e+07 m away"},
        {CITY("\"1\":{\"centerline\":[" P("0", "0") "],\"centerline\":[]}"), "centerline is given twice"},
        {CITY("\"1\":{\"successors\":[\"2\"]}"), "is referred to by a string, not by an integer"},
        {CITY("\"1\":{\"left_neighbor_id\":1.5}"), "is referred to by a number, not by an integer"},
        {CITY("\"1\":{\"is_intersection\":0}"), "is_intersection must be true or false"},
        {CITY(SEGMENT("1", EAST("0", "3"), "BUS", "false", "", "", "null",
                      "null") "," SEGMENT("1", EAST("0", "3"), "BUS", "false", "", "", "null", "null")),
         "lane segment 1 is defined twice"},
        {CITY(SEGMENT("1", EAST("0", "3"), "BUS", "false", "", "", "1", "null")),
         "lane segment 1 has 1 on its left, itself"},
        {CITY(BLOCK) "x", "m.map:1:"},
        {"{\"lane_segments\":{\"1\":{", "m.map:1:"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refuse(bad[i][0], "", DT_EDATA, bad[i][1]);
    }
    refuse(CITY(BLOCK), "0,0", DT_EINVAL, "is in metres of its city");
}

/* ---- imports ----------------------------------------------------------------------------------------------------- */

static const char table[] = "scene,frame,id,x,y,speed,heading,length,width\n"
                            "a,0,1,1,2,3,0,4,2\na,1,1,2,2,3,0,4,2\nb,0,1,1,2,3,0,4,2\n";

static void test_import(void **state)
{
    dt_store *s = NULL;
    forget();
    put("t.csv", table);
    put("town.osm", OSM(GRID RULES STREET));
    char from[256], map[256];
    snprintf(from, sizeof(from), "%s", at("t.csv"));
    snprintf(map, sizeof(map), "%s", at("town.osm"));
    const char *const src[] = {from};
    dt_import_options opt = {
        .frame_rate_hz = 10, .map = map, .columns = "scene=scene,frame=frame,id=id,x=x,y=y,speed=speed"};
    assert_ok(dt_data_import(src, 1, at("s"), &opt, &notes));
    assert_ok(dt_store_open(at("s"), &s));
    const dt_store_view *v = dt_store_view_of(s);
    assert_int_equal(v->n_maps, 1);
    assert_string_equal(v->map[0], "town");
    assert_int_equal(v->n_scenes, 2);
    assert_int_equal(v->scene_map[0], 0);
    assert_int_equal(v->scene_map[1], 0);
    assert_int_equal(v->n_lanes, 4);
    dt_store_close(s);
    opt.map_origin = "somewhere";
    assert_fails(dt_data_import(src, 1, at("t"), &opt, &notes), DT_EINVAL, "an origin of \"somewhere\"");
    opt.map_origin = "";
    opt.map = "no.osm";
    assert_fails(dt_data_import(src, 1, at("t"), &opt, &notes), DT_ENOTFOUND, "no.osm");
    assert_false(dt_fs_is_dir(at("t")));
}

/* A map of another place is refused, until it is moved there; how many positions lie on its lanes is reported. */
static void test_far(void **state)
{
    char from[256], map[256];
    forget();
    put("t.csv", "scene,frame,id,x,y,speed\na,0,1,1000,2,3\na,1,1,1001,2,3\na,0,2,1000,20,3\n");
    put("town.osm", OSM(GRID RULES STREET));
    snprintf(from, sizeof(from), "%s", at("t.csv"));
    snprintf(map, sizeof(map), "%s", at("town.osm"));
    const char *const src[] = {from};
    dt_import_options opt = {
        .frame_rate_hz = 10, .map = map, .columns = "scene=scene,frame=frame,id=id,x=x,y=y,speed=speed"};
    assert_fails(dt_data_import(src, 1, at("s"), &opt, &notes), DT_EDATA,
                 "scene a is at x 1000 to 1001, y 2 to 20 m, and the lanes of map town at x 0 to 20, y 1.5 to 7.5 m: "
                 "980 m apart, at most 50 m are allowed. The map");
    assert_non_null(strstr(dt_error_text(), "import.map_offset=DX"));
    assert_false(dt_fs_is_dir(at("s")));
    assert_false(dt_fs_is_dir(at("s.partial")));
    opt.map_offset = "990,y";
    assert_fails(dt_data_import(src, 1, at("s"), &opt, &notes), DT_EINVAL, "an offset of \"990,y\"");
    opt.map_offset = "1e7,0";
    assert_fails(dt_data_import(src, 1, at("s"), &opt, &notes), DT_EDATA, "a lane reaches (1e+07");
    opt.map_offset = "990,0";
    forget();
    assert_ok(dt_data_import(src, 1, at("s"), &opt, &notes));
    assert_non_null(strstr(dt_str_text(&notes), "66.7 %"));
    opt.map_offset = "990,-40"; /* near, and not there */
    forget();
    assert_ok(dt_data_import(src, 1, at("t"), &opt, &notes));
    assert_non_null(strstr(dt_str_text(&notes), "0.0 %"));
    opt.map = "";
    assert_fails(dt_data_import(src, 1, at("u"), &opt, &notes), DT_ECONFIG, "import.map_offset is 990,-40");
    forget();
    assert_ok(dt_data_inspect(at("s"), true, &notes));
    assert_non_null(strstr(dt_str_text(&notes), "\"positions\":3,\"positions_on_lanes\":2"));
}

/* A folder with a map of each scene. */
static void test_folder(void **state)
{
    dt_store *s = NULL;
    char from[256], maps[256];
    forget();
    put("t.csv", table);
    assert_ok(dt_fs_mkdirs(at("maps/b")));
    put("maps/log_map_archive_a.json", CITY(BLOCK));
    snprintf(from, sizeof(from), "%s", at("t.csv"));
    snprintf(maps, sizeof(maps), "%s", at("maps"));
    const char *const src[] = {from};
    const dt_import_options opt = {
        .frame_rate_hz = 10, .map = maps, .columns = "scene=scene,frame=frame,id=id,x=x,y=y,speed=speed"};
    assert_fails(dt_data_import(src, 1, at("s"), &opt, &notes), DT_ENOTFOUND, "there is no map of scene b in");
    put("maps/b/log_map_archive_b.json", CITY("\"5\":{\"centerline\":[" P("0", "20") "," P("9", "20") "]}"));
    put("maps/a.net.xml", NET(TOWN));
    assert_fails(dt_data_import(src, 1, at("s"), &opt, &notes), DT_EDATA, "scene a has two maps, ");
    assert_non_null(strstr(dt_error_text(), "a.net.xml and "));
    assert_ok(dt_fs_remove_tree(at("maps/a.net.xml")));
    assert_ok(dt_data_import(src, 1, at("s"), &opt, &notes));
    assert_ok(dt_store_open(at("s"), &s));
    const dt_store_view *v = dt_store_view_of(s);
    assert_int_equal(v->n_maps, 2);
    assert_string_equal(v->map[v->scene_map[1]], "log_map_archive_b");
    assert_int_equal(v->map_lane[1], 5);
    assert_int_equal(v->n_lanes, 6);
    dt_store_close(s);
}

/* A recording of rounD says where on the grid it counts from, and the map is seen from there. */
static void test_import_by_grid(void **state)
{
    dt_store *s = NULL;
    double place[2];
    char meta[256];
    dt_utm_project(50.78, 6.13, 32, place);
    forget();
    snprintf(meta, sizeof(meta), "recordingId,locationId,frameRate,xUtmOrigin,yUtmOrigin\n0,1,25,%.4f,%.4f\n",
             place[0] - 100, place[1] - 200);
    put("00_recordingMeta.csv", meta);
    put("00_tracks.csv",
        "recordingId,trackId,frame,trackLifetime,xCenter,yCenter,heading,width,length,xVelocity,yVelocity,"
        "xAcceleration,yAcceleration,lonVelocity,latVelocity,lonAcceleration,latAcceleration\n"
        "0,1,0,0,105,201,0,2,4,1,0,0,0,1,0,0,0\n");
    put("m.osm", OSM(GEO("1", "50.78", "6.13") GEO("2", "50.78", "6.1301") GEO("3", "50.78003", "6.13")
                         GEO("4", "50.78003", "6.1301") WAY("5", ND("1") ND("2")) WAY("6", ND("3") ND("4"))
                             LANELET("7", "6", "5", "")));
    const dt_import_options opt = {.map = at("m.osm")};
    const char *const src[] = {at("00_tracks.csv")};
    assert_ok(dt_data_import(src, 1, at("s"), &opt, &notes));
    assert_ok(dt_store_open(at("s"), &s));
    const double *xy = dt_store_view_of(s)->lane_xy;
    assert_true(is_near(xy[0], 100, 0.1) && is_near(xy[1], 200 + 0.5 * 3.337, 0.01));
    dt_store_close(s);
}

/* Whatever allocation fails while a map is read, it is reported and nothing leaks. */
static void test_no_memory(void **state)
{
    static const char *const maps[] = {OSM(GRID RULES STREET), NET(TOWN), CITY(BLOCK)};
    const dt_map_origin none = {.is_given = false};
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
        dt_status st = DT_ENOMEM;
        const uint64_t live = dt_alloc_live_bytes();
        for (int n = 1; st != DT_OK; n++) {
            char spec[32];
            snprintf(spec, sizeof(spec), "alloc:%d", n);
            dt_fault_reset(spec);
            dt_error_clear();
            st = dt_map_check(maps[i], strlen(maps[i]), "m", &none);
            dt_fault_reset(NULL);
            assert_true(st == DT_OK || st == DT_ENOMEM);
            assert_true(st == DT_OK || *dt_error_text() != '\0');
            assert_int_equal(dt_alloc_live_bytes(), live);
            assert_true(n < 2000 && (n > 10 || st != DT_OK));
        }
    }
}

static int finish(void **state)
{
    forget();
    return end(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utm),
        cmocka_unit_test(test_origins),
        cmocka_unit_test_setup_teardown(test_lanelet2, begin, finish),
        cmocka_unit_test_setup_teardown(test_degrees, begin, finish),
        cmocka_unit_test_setup_teardown(test_bad_lanelet2, begin, finish),
        cmocka_unit_test_setup_teardown(test_sumo, begin, finish),
        cmocka_unit_test_setup_teardown(test_numbers, begin, finish),
        cmocka_unit_test_setup_teardown(test_bad_sumo, begin, finish),
        cmocka_unit_test_setup_teardown(test_argoverse, begin, finish),
        cmocka_unit_test_setup_teardown(test_bad_argoverse, begin, finish),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test_setup_teardown(test_folder, begin, finish),
        cmocka_unit_test_setup_teardown(test_import, begin, finish),
        cmocka_unit_test_setup_teardown(test_far, begin, finish),
        cmocka_unit_test_setup_teardown(test_import_by_grid, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
