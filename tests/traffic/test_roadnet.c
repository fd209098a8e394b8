/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/roadnet: small networks and flows of CityFlow and of the City Brain Challenge, what is
 * written of them for SUMO (places, lanes, right of way, letters of signals, vehicles), and files that are rejected.
 */
#include "fixture.h"

#include "traffic/roadnet/roadnet.h"

/* ---- CityFlow ---------------------------------------------------------------------------------------------------- */

/* Texts are written with ' for ". A signal at (0, 0): arms to the west (two lanes in), the east and the south. */
#define LANE                        "{'width':4,'maxSpeed':10}"
#define FAST                        "{'width':4,'maxSpeed':20}"
#define POINT(x, y)                 "{'x':" x ",'y':" y "}"
#define ENDS(from, to)              "'startIntersection':'" from "','endIntersection':'" to "'"
#define ROAD(id, ends, a, b, lanes) "{'id':'" id "','points':[" a "," b "],'lanes':[" lanes "]," ends "}"
#define BORDER(id, at)              "{'id':'" id "','point':" at ",'width':0,'roadLinks':[],'virtual':true}"
#define LANES(a, b)                 "'laneLinks':[{'startLaneIndex':" a ",'endLaneIndex':" b "}]"
#define WAY(type, from, to, lanes)                                                                                     \
    "{'type':'" type "','startRoad':'" from "','endRoad':'" to "','direction':0," lanes "}"

/* clang-format off */
static const char roadnet_text[] =
    "{'intersections':[\n"
    "{'id':'m','point':" POINT("0", "0") ",'width':10,'roads':['nowhere'],'roadLinks':[\n"
    WAY("go_straight", "w m", "me", LANES("0", "0")) ",\n"
    WAY("turn_right", "w m", "ms", LANES("1", "0")) ",\n"
    WAY("go_straight", "em", "mw", LANES("0", "0")) ",\n"
    WAY("turn_left", "em", "ms", LANES("0", "0")) ",\n"
    WAY("turn_left", "sm", "mw", LANES("0", "0")) ",\n"
    WAY("turn_right", "sm", "me", LANES("0", "0")) "],\n"
    "'trafficLight':{'roadLinkIndices':[0,1],'lightphases':[\n"
    "{'time':20,'availableRoadLinks':[0,1,2,3]},{'time':5,'availableRoadLinks':[4,5]}]},'virtual':false},\n"
    BORDER("w", POINT("-100", "0")) "," BORDER("e", POINT("100", "0")) "," BORDER("s", POINT("0", "-100"))
    "],\n'roads':[\n"
    ROAD("w m", ENDS("w", "m"), POINT("-100", "0"), POINT("0", "0"), LANE "," FAST) ",\n"
    ROAD("mw", ENDS("m", "w"), POINT("0", "0"), POINT("-100", "0"), LANE) ",\n"
    ROAD("em", ENDS("e", "m"), POINT("100", "0"), POINT("0", "0"), LANE) ",\n"
    ROAD("me", ENDS("m", "e"), POINT("0", "0"), POINT("100", "0"), LANE) ",\n"
    ROAD("sm", ENDS("s", "m"), POINT("0", "-100"), POINT("0", "0"), LANE) ",\n"
    ROAD("ms", ENDS("m", "s"), POINT("0", "0"), POINT("0", "-100"), LANE) "]}\n";
/* clang-format on */

#define VEHICLE                                                                                                        \
    "'vehicle':{'length':5,'width':2,'maxPosAcc':2,'maxNegAcc':6,'usualPosAcc':2.5,'usualNegAcc':4,"                   \
    "'minGap':2.5,'maxSpeed':16,'headwayTime':1.5}"
static const char flow_text[] = "[{" VEHICLE ",'route':['em','mw'],'interval':3,'startTime':10,'endTime':20},\n"
                                "{" VEHICLE ",'route':['w m','ms'],'interval':5,'startTime':0,'endTime':-1},\n"
                                "{" VEHICLE ",'route':['sm','mw'],'interval':1,'startTime':4,'endTime':4},\n"
                                "{" VEHICLE ",'route':['sm','em'],'interval':2,'startTime':30,'endTime':31}]\n";

/* Writes a text to a file of the test, its ' as ". */
static void put_json(const char *name, const char *text)
{
    static char out[1 << 14];
    snprintf(out, sizeof(out), "%s", text);
    for (char *c = out; *c != '\0'; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    put(name, out);
}

static char *net_text, *route_text;
static dt_str notes;

static void forget(void)
{
    dt_free(net_text);
    dt_free(route_text);
    net_text = route_text = NULL;
    dt_str_fini(&notes);
}

static void convert(const char *roads, const char *flows)
{
    size_t n;
    forget();
    put_json("roads", roads);
    put_json("flows", flows);
    char path[512];
    snprintf(path, sizeof(path), "%s", at("roads"));
    char flow_path[512];
    snprintf(flow_path, sizeof(flow_path), "%s", at("flows"));
    assert_ok(roadnet_convert(path, flow_path, at("out"), &notes));
    assert_ok(dt_fs_read_all(at("out.net.xml"), 1 << 20, &net_text, &n));
    assert_ok(dt_fs_read_all(at("out.rou.xml"), 1 << 20, &route_text, &n));
}

static void has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in:\n%s", part, text);
    }
}

/* The text with the first `old` in it replaced. */
static const char *changed(const char *text, const char *old, const char *with)
{
    static char out[2][1 << 14]; /* of a change, and of a change of that */
    static int turn;
    const char *place = strstr(text, old);
    assert_non_null(place);
    turn = !turn;
    snprintf(out[turn], sizeof(out[turn]), "%.*s%s%s", (int)(place - text), text, with, place + strlen(old));
    return out[turn];
}

/* The link of `from` to `to`, as a place in the letters of the signal. */
static int link_of(const char *from, const char *to)
{
    char part[64];
    int index = -1;
    snprintf(part, sizeof(part), "<connection from=\"%s\" to=\"%s\"", from, to);
    const char *link = strstr(net_text, part);
    assert_non_null(link);
    assert_int_equal(sscanf(strstr(link, "linkIndex"), "linkIndex=\"%d\"", &index), 1);
    return index;
}

static void lanes_and_places(void **state)
{
    convert(roadnet_text, flow_text);
    /* lane 0 of CityFlow is the leftmost: index 1 of SUMO; a name that is no word is one; "width" begins 10 m before */
    has(net_text, "<lane id=\"w%20m_1\" index=\"1\" speed=\"10.00\" length=\"90.00\" width=\"4.00\" "
                  "shape=\"-100.00,-2.00 -10.00,-2.00\"/>");
    has(net_text, "<lane id=\"w%20m_0\" index=\"0\" speed=\"20.00\" length=\"90.00\" width=\"4.00\" "
                  "shape=\"-100.00,-6.00 -10.00,-6.00\"/>");
    has(net_text, "<lane id=\"sm_0\" index=\"0\" speed=\"10.00\" length=\"90.00\" width=\"4.00\" "
                  "shape=\"2.00,-100.00 2.00,-10.00\"/>");
    has(net_text, "<junction id=\"w\" type=\"dead_end\"");
    /* links in the order of SUMO: by road and lane from the right; the way straight on is 20 m long */
    has(net_text, "<connection from=\"w%20m\" to=\"ms\" fromLane=\"0\" toLane=\"0\" via=\":m_0_0\" tl=\"m\" "
                  "linkIndex=\"0\" dir=\"r\"");
    has(net_text, "<connection from=\"w%20m\" to=\"me\" fromLane=\"1\" toLane=\"0\" via=\":m_1_0\" tl=\"m\" "
                  "linkIndex=\"1\" dir=\"s\"");
    has(net_text, "<connection from=\":m_1\" to=\"me\" fromLane=\"0\" toLane=\"0\"");
    has(net_text, "index=\"0\" speed=\"10.00\" length=\"20.00\"");
    forget();
}

/* Links: 0 w-s right, 1 w-e straight, and of em and sm as roads were named: 2 em-mw, 3 em-ms, 4 sm-me, 5 sm-mw. */
static void right_of_way(void **state)
{
    convert(roadnet_text, flow_text);
    has(net_text, "<request index=\"0\" response=\"000000\"");
    has(net_text, "<request index=\"1\" response=\"000000\"");
    const char *em_ms = strstr(net_text, "from=\"em\" to=\"ms\"");
    assert_non_null(em_ms);
    int index;
    assert_int_equal(sscanf(strstr(em_ms, "linkIndex"), "linkIndex=\"%d\"", &index), 1);
    char request[64];
    snprintf(request, sizeof(request), "<request index=\"%d\" response=\"", index);
    has(net_text, request);
    const char *bits = strstr(net_text, request) + strlen(request);
    assert_int_equal(bits[5], '1'); /* the left turn yields to the right turn into its lane */
    assert_int_equal(bits[4], '1'); /* and to the oncoming */
    forget();
}

static void letters(void **state)
{
    convert(roadnet_text, flow_text);
    assert_non_null(strstr(dt_str_text(&notes), "3 s"));
    const char *program = strstr(net_text, "<tlLogic id=\"m\"");
    assert_non_null(program);
    char state_of[3][16];
    double duration[3];
    for (int k = 0; k < 3; k++) {
        program = strstr(program + 1, "<phase ");
        assert_int_equal(sscanf(program, "<phase duration=\"%lf\" state=\"%15[^\"]", &duration[k], state_of[k]), 2);
    }
    assert_true(duration[0] == 17 && duration[1] == 3 && duration[2] == 5); /* too short for yellow */
    for (int i = 0; i < 6; i++) {
        const char *link = net_text;
        int number = -1, is_sm = 0, is_left = 0;
        while ((link = strstr(link + 1, "<connection from=\"")) != NULL && number != i) {
            if (link[18] != ':') {
                sscanf(strstr(link, "linkIndex"), "linkIndex=\"%d\"", &number);
                is_sm = strncmp(link + 18, "sm", 2) == 0;
                is_left = strncmp(link + 18, "em\" to=\"ms", 10) == 0;
            }
        }
        assert_int_equal(number, i);
        assert_int_equal(state_of[0][i], is_sm ? 'r' : is_left ? 'g' : 'G');
        assert_int_equal(state_of[1][i], is_sm ? 'r' : 'y');
        assert_true(is_sm == (state_of[2][i] != 'r'));
    }
    forget();
}

static void vehicles(void **state)
{
    convert(roadnet_text, flow_text);
    has(route_text, "<vType id=\"t0\" length=\"5\" width=\"2\" minGap=\"2.5\" accel=\"2.5\" decel=\"4\" "
                    "emergencyDecel=\"6\" tau=\"1.5\" maxSpeed=\"16\" sigma=\"0\"");
    /* by their begin; 10, 13, 16 and 19 s are four vehicles */
    has(route_text, "<flow id=\"0\" type=\"t0\" departLane=\"best\" departSpeed=\"max\" begin=\"0.00\" "
                    "end=\"2000000000.000\" period=\"5\"><route edges=\"w%20m ms\"/></flow>");
    has(route_text, "<vehicle id=\"1\" type=\"t0\" departLane=\"best\" departSpeed=\"max\" depart=\"4.00\">");
    has(route_text, "begin=\"10.00\" end=\"20.500\" period=\"3\"><route edges=\"em mw\"/></flow>");
    /* a route that leaves out what is between: the quickest way */
    has(route_text,
        "<trip id=\"3\" type=\"t0\" departLane=\"best\" departSpeed=\"max\" depart=\"30.00\" from=\"sm\" to=\"em\"/>");
    forget();
}

/* Ways that cross exactly at a point of one of them. */
static void crossing_at_a_point(void **state)
{
    const char *text = changed(roadnet_text, WAY("go_straight", "w m", "me", LANES("0", "0")),
                               WAY("go_straight", "w m", "me",
                                   "'laneLinks':[{'startLaneIndex':0,'endLaneIndex':0,'points':[{'x':-10,'y':-2},"
                                   "{'x':2,'y':-2},{'x':10,'y':-2}]}]"));
    text =
        changed(text, WAY("turn_left", "sm", "mw", LANES("0", "0")),
                WAY("turn_left", "sm", "mw",
                    "'laneLinks':[{'startLaneIndex':0,'endLaneIndex':0,'points':[{'x':2,'y':-10},{'x':2,'y':10}]}]"));
    convert(text, flow_text);
    char request[64];
    snprintf(request, sizeof(request), "<request index=\"%d\" response=\"", link_of("sm", "mw"));
    has(net_text, request);
    const char *bits = strstr(net_text, request) + strlen(request);
    assert_int_equal(bits[5 - link_of("w%20m", "me")], '1');
    has(net_text, "length=\"20.00\" shape=\"-10.00,-2.00 2.00,-2.00 10.00,-2.00\"/>");
    forget();
}

static void marks_and_endless_flows(void **state)
{
    char text[1 << 13];
    snprintf(text, sizeof(text), "\xef\xbb\xbf%s", roadnet_text);
    convert(text, changed(flow_text, "'interval':5", "'interval':0.5")); /* 10^9 vehicles: SUMO counts in 32 bits */
    has(route_text, "begin=\"0.00\" end=\"500000000.000\" period=\"0.5\">");
    /* a dead end with a program has nothing to control */
    convert(changed(roadnet_text, "'width':0,'roadLinks':[],'virtual':true",
                    "'width':0,'roadLinks':[],'trafficLight':{'lightphases':[{'time':9,'availableRoadLinks':[]},"
                    "{'time':9,'availableRoadLinks':[]}]},'virtual':false"),
            flow_text);
    has(net_text, "<junction id=\"w\" type=\"dead_end\"");
    forget();
}

/* ---- the City Brain Challenge ------------------------------------------------------------------------------------ */

/* A signal with four arms, 100 m each; the streets are written towards it. Roads in: 1 (north), 3, 5, 7 clockwise. */
static const char brain_text[] = "5\n30.0 120.0 10 1\n30.001 120.0 11 0\n30.0 120.001 12 0\n29.999 120.0 13 0\n"
                                 "30.0 119.999 14 0\n4\n"
                                 "11 10 100 15 3 3 1 2\n1 0 0 0 1 0 0 0 1\n1 0 0 0 1 0 0 0 1\n"
                                 "12 10 100 15 3 3 3 4\n1 0 0 0 1 0 0 0 1\n1 0 0 0 1 0 0 0 1\n"
                                 "13 10 100 15 3 3 5 6\n1 0 0 0 1 0 0 0 1\n1 0 0 0 1 0 0 0 1\n"
                                 "14 10 100 15 3 3 7 8\n1 0 0 0 1 0 0 0 1\n1 0 0 0 1 0 0 0 1\n"
                                 "1\n10 2 4 6 8\n";
static const char brain_flow[] = "2\n5 25 10\n2\n1 6\n0 0 1\n2\n3 4\n";

static void eight_phases(void **state)
{
    convert(brain_text, brain_flow);
    static const struct {
        const char *green[4]; /* from, to, from, to */
    } want[8] = {{{"1", "4", "5", "8"}}, {{"1", "6", "5", "2"}}, {{"3", "6", "7", "2"}}, {{"3", "8", "7", "4"}},
                 {{"1", "4", "1", "6"}}, {{"3", "6", "3", "8"}}, {{"5", "8", "5", "2"}}, {{"7", "2", "7", "4"}}};
    const char *at_phase = strstr(net_text, "<tlLogic");
    for (int p = 0; p < 8; p++) {
        char letters_of[64];
        at_phase = strstr(at_phase + 1, "<phase ");
        assert_non_null(at_phase);
        assert_int_equal(sscanf(strstr(at_phase, "state="), "state=\"%63[^\"]", letters_of), 1);
        int green = 0;
        for (size_t k = 0; letters_of[k] != '\0'; k++) {
            green += letters_of[k] != 'r';
        }
        for (int k = 0; k < 4; k += 2) {
            assert_true(letters_of[link_of(want[p].green[k], want[p].green[k + 1])] != 'r');
        }
        /* right turns always; 3 to 4 turns back with the left turns of its arm */
        assert_int_equal(green, 2 + 4 + (p == 2 || p == 5));
        at_phase = strstr(at_phase + 1, "<phase "); /* yellow */
        at_phase = strstr(at_phase + 1, "<phase "); /* all red */
    }
    assert_null(strstr(at_phase + 1, "<phase "));
    has(net_text, "length=\"100.00\""); /* of the file, whatever its places say */
    has(route_text, "begin=\"5.00\" end=\"30.000\" period=\"10\"><route edges=\"1 6\"/></flow>");
    has(route_text, "depart=\"0.00\"><route edges=\"3 4\"/></vehicle>"); /* it turns back: there is a way */
    forget();
}

/* Where no lane of an arm turns left, those who turn back have a phase of their own. */
static void turning_back(void **state)
{
    const char *text = changed(brain_text, "12 10 100 15 3 3 3 4\n1", "12 10 100 15 3 3 3 4\n0");
    convert(changed(text, "14 10 100 15 3 3 7 8\n1", "14 10 100 15 3 3 7 8\n0"), brain_flow);
    int green = 0;
    for (const char *phase = net_text; (phase = strstr(phase + 1, "<phase ")) != NULL;) {
        char letters_of[64];
        assert_int_equal(sscanf(strstr(phase, "state="), "state=\"%63[^\"]", letters_of), 1);
        green += letters_of[link_of("3", "4")] == 'G' || letters_of[link_of("3", "4")] == 'g';
    }
    assert_int_equal(green, 1);
    forget();
}

/* ---- files that are rejected ------------------------------------------------------------------------------------- */

static void refuse(const char *roads, const char *flows, const char *words)
{
    forget();
    const uint64_t live = dt_alloc_live_bytes();
    char path[512], flow_path[512];
    put_json("roads", roads);
    put_json("flows", flows);
    snprintf(path, sizeof(path), "%s", at("roads"));
    snprintf(flow_path, sizeof(flow_path), "%s", at("flows"));
    assert_fails(roadnet_convert(path, flow_path, at("none"), &notes), DT_EDATA, words);
    assert_false(dt_fs_is_file(at("none.net.xml")));
    dt_str_fini(&notes);
    assert_int_equal(dt_alloc_live_bytes(), live);
}

static void bad_roadnets(void **state)
{
    static const struct {
        const char *old, *with, *words;
    } bad[] = {
        {"'startRoad':'em'", "'startRoad':'gone'", "gone"},
        {"'endIntersection':'e'", "'endIntersection':'void'", "void"},
        {"'startIntersection':'m'", "'startIntersection':'e'", "begin at"},
        {"'endLaneIndex':0", "'endLaneIndex':3", "lane 3"},
        {"'startLaneIndex':1", "'startLaneIndex':-1", "-1"},
        {"[4,5]", "[4,6]", "roadLink 6"},
        {"[4,5]", "[4.5]", "4.5"},
        {"'time':20", "'time':0", "time"},
        {"'type':'turn_left'", "'type':'turn_over'", "turn_over"},
        {"'width':4", "'width':0", "width"},
        {"'maxSpeed':20", "'maxSpeed':1e9", "maxSpeed"},
        {"'x':-100,'y':0},'width'", "'x':1e300,'y':0},'width'", "x"},
        {"'id':'me'", "'id':'mw'", "twice"},
        {"'id':'e'", "'id':'w'", "twice"},
        {"'roads':[\n", "'streets':[\n", "roads"},
        {"'points':[{'x':-100,'y':0},{'x':0,'y':0}]", "'points':[]", "0 points"},
        {WAY("turn_right", "w m", "ms", LANES("1", "0")), WAY("go_straight", "w m", "me", LANES("0", "0")), "two ways"},
    };
    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
        refuse(changed(roadnet_text, bad[k].old, bad[k].with), flow_text, bad[k].words);
    }
    refuse("<net/>", flow_text, "CityFlow");
    refuse("{'roadnetFile':'roadnet.json'}", flow_text, "roadnetFile");
    refuse("{'intersections':[],'roads':[]}", "[]", "no road");
}

static void bad_flows(void **state)
{
    static const struct {
        const char *old, *with, *words;
    } bad[] = {
        {"['em','mw']", "['em','mx']", "mx"},
        {"['em','mw']", "[]", "route"},
        {"'interval':3", "'interval':0", "interval"},
        {"'endTime':20", "'endTime':9", "endTime"},
        {"'endTime':20", "'endTime':1e300", "endTime"},
        {"'usualNegAcc':4", "'usualNegAcc':-4", "usualNegAcc"},
        {"'minGap':2.5,", "", "minGap"},
        {VEHICLE ",", "", "vehicle"},
    };
    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
        refuse(roadnet_text, changed(flow_text, bad[k].old, bad[k].with), bad[k].words);
    }
    refuse(roadnet_text, brain_flow, "'['");
}

static void bad_brains(void **state)
{
    static const struct {
        const char *old, *with, *words;
    } bad[] = {
        {"11 10 100", "99 10 100", ":8:"},
        {"1\n10 2 4 6 8\n", "1\n10 2 4 6\n", "ends"},
        {"10 2 4 6 8", "10 -1 -1 -1 -1", "no arm"},
        {"10 2 4 6 8", "10 1 4 6 8", "arm 1"},
        {"10 2 4 6 8", "10 2 4 6 -1", "road 7"},
        {"1 0 0 0 1", "1 0 2 0 1", "permission"},
        {"100 15", "0 15", "length"},
        {"100 15", "100 x", "\"x\""},
        {"30.001", "91", "latitude"},
        {"12 10 100 15 3 3 3 4", "12 10 100 15 3 3 1 4", "twice"},
        {"1\n10 2 4 6 8", "2\n10 2 4 6 8\n10 2 4 6 8", "two signals"},
    };
    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
        refuse(changed(brain_text, bad[k].old, bad[k].with), brain_flow, bad[k].words);
    }
    refuse(brain_text, changed(brain_flow, "5 25 10", "5 4 10"), "before");
    refuse(brain_text, changed(brain_flow, "1 6", "1 77"), "flows:4: a route names road 77");
    refuse(brain_text, changed(brain_flow, "5 25 10", "5 25 0"), "interval");
}

static int finish(void **state)
{
    forget();
    return end(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lanes_and_places, begin, finish),
        cmocka_unit_test_setup_teardown(right_of_way, begin, finish),
        cmocka_unit_test_setup_teardown(letters, begin, finish),
        cmocka_unit_test_setup_teardown(vehicles, begin, finish),
        cmocka_unit_test_setup_teardown(eight_phases, begin, finish),
        cmocka_unit_test_setup_teardown(crossing_at_a_point, begin, finish),
        cmocka_unit_test_setup_teardown(marks_and_endless_flows, begin, finish),
        cmocka_unit_test_setup_teardown(turning_back, begin, finish),
        cmocka_unit_test_setup_teardown(bad_roadnets, begin, finish),
        cmocka_unit_test_setup_teardown(bad_flows, begin, finish),
        cmocka_unit_test_setup_teardown(bad_brains, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
