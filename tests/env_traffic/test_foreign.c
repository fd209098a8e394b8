/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks and demand made to do harm: sums that do not fit, circles, places inside junctions, numbers
 * that stand still, small files that unpack to large ones. Each is refused with a message before anything is written.
 */
#include "files.h"

#include <sys/stat.h>
#include <zlib.h>

enum { BIG_MAX = 1 << 20 };

static void test_bad_numbers_of_nets(void **test)
{
    static const bad_file bad[] = {
        {"length=\"192.80\"", "length=\"nan\"", "length \"nan\" is not a number", DT_EDATA},
        {"length=\"192.80\"", "length=\"1e400\"", "length \"1e400\" is not a number", DT_EDATA},
        {"length=\"192.80\"", "length=\"1e7\"", "length 1e7 is outside", DT_EDATA},
        {"length=\"11.73\"", "length=\"2e6\"", "length 2e6 is outside", DT_EDATA}, /* a path over a junction */
        {"speed=\"8.30\"", "speed=\"1e-310\"", "is neither 0 (closed) nor at least 0.1", DT_EDATA},
        {"shape=\"307.20,198.40 500.00,198.40\"", "shape=\"307.20,198.40 inf,198.40\"", "no point x,y", DT_EDATA},
        {"shape=\"307.20,198.40 500.00,198.40\"", "shape=\"307.20,198.40 1,nan\"", "no point x,y", DT_EDATA},
        {"shape=\"307.20,198.40 500.00,198.40\"", "shape=\"307.20,198.40 1e300,1\"", "no point x,y", DT_EDATA},
        {"duration=\"42\" state=\"GGrr\"", "duration=\"-1\" state=\"GGrr\"", "duration -1 is outside", DT_EDATA},
        {"linkIndex=\"2\" dir", "linkIndex=\"2147483648\" dir", "linkIndex 2147483648 is outside", DT_EDATA},
        {"linkIndex=\"2\" dir", "linkIndex=\"-1\" dir", "linkIndex -1 is outside", DT_EDATA},
    };
    refuse_all(bad, sizeof(bad) / sizeof(bad[0]), 1);
}

/* What names lead to must be what is looked for there. */
static void test_bad_references(void **test)
{
    static const bad_file bad[] = {
        {"to=\"c_east\" fromLane=\"0\" toLane=\"0\" via=\":c_2_0\"",
         "to=\":c_0\" fromLane=\"0\" toLane=\"0\" via=\":c_2_0\"", "leads from a road to \":c_0\", which is inside",
         DT_EDATA},
        {"via=\":c_2_0\"", "via=\"c_north_0\"", "via=\"c_north_0\" is not a lane inside a junction", DT_EDATA},
        {"from=\":c_0\" to=\"c_east\"", "from=\":c_0\" to=\"c_east\" via=\"m_c_0\"", "is not a lane inside a junction",
         DT_EDATA},
        {"incLanes=\"c_east_0\" intLanes=\"\"", "incLanes=\"c_east_0\" intLanes=\":c_2_0\"",
         "lane \":c_2_0\" is in the intLanes of \"c\" already", DT_EDATA},
        {"<net ", "<!DOCTYPE net [<!ENTITY a \"aaaaaaaa\">]><net ", "a DOCTYPE; files of SUMO have none", DT_EDATA},
    };
    refuse_all(bad, sizeof(bad) / sizeof(bad[0]), 1);
}

/* A junction without right of way that a signal of one of its connections makes a part of it. */
static void test_missing_requests(void **test)
{
    static char changed[FILE_MAX], more[FILE_MAX], last[FILE_MAX];
    char message[MOCK_TEXT];
    replace(net_text, "id=\"c\" type=\"traffic_light\"", "id=\"c\" type=\"unregulated\"", changed);
    assert_int_equal(try_files(changed, routes_text, message), DT_OK);
    replace(net_text, "id=\"c\" type=\"traffic_light\"", "id=\"c\" type=\"priority\"", changed);
    replace(changed, "<request index=\"3\" response=\"0000\" foes=\"0010\" cont=\"0\"/>", "", more);
    replace(more, "via=\":c_3_0\" tl=\"c\" linkIndex=\"3\"", "via=\":c_3_0\"", last);
    assert_int_equal(try_files(last, routes_text, message), DT_EDATA);
    assert_non_null(strstr(message, "<junction> has no <request> of index 3"));
}

/* Paths over lanes that lead to themselves. */
static void test_circles(void **test)
{
    static const bad_file bad[] = {
        {"<connection from=\":c_2\" to=\"c_east\" fromLane=\"0\" toLane=\"0\"",
         "<connection from=\":c_2\" to=\"c_east\" fromLane=\"0\" toLane=\"0\" via=\":c_2_0\"",
         "inside its junction, or in a circle", DT_EDATA}};
    static char changed[FILE_MAX];
    char message[MOCK_TEXT];
    replace(net_text, bad[0].from, bad[0].to, changed);
    assert_int_equal(try_files(changed, routes_text, message), DT_EDATA);
    assert_non_null(strstr(message, bad[0].says));
}

/* Adds to a text of BIG_MAX bytes at its end. */
static void add(char *text, size_t *at, const char *more)
{
    assert_true(*at + strlen(more) < BIG_MAX);
    memcpy(text + *at, more, strlen(more) + 1);
    *at += strlen(more);
}

/* Few bytes once packed: n_paths connections over one lane of n_points points, which follows itself. */
static char *make_long_net(int n_points, int n_paths, int is_circle)
{
    char *text = malloc(BIG_MAX);
    size_t at = 0;
    assert_non_null(text);
    add(text, &at, "<net><edge id=':x' function='internal'><lane id=':x_0' index='0' speed='9' length='9' shape='");
    for (int i = 0; i < n_points; i++) {
        add(text, &at, i % 2 == 0 ? "0,0 " : "1,0 ");
    }
    add(text, &at,
        "'/></edge><edge id='a' from='p' to='q'><lane id='a_0' index='0' speed='9' length='9' shape='0,0 9,0'"
        "/></edge><edge id='b' from='q' to='r'><lane id='b_0' index='0' speed='9' length='9' shape='9,0 18,0'"
        "/></edge><junction id='q' type='priority' intLanes=':x_0'><request index='0' response='0' foes='0'/>"
        "</junction>");
    if (is_circle) {
        add(text, &at, "<connection from=':x' to='b' fromLane='0' toLane='0' via=':x_0'/>");
    }
    for (int i = 0; i < n_paths; i++) {
        add(text, &at, "<connection from='a' to='b' fromLane='0' toLane='0' via=':x_0'/>");
    }
    add(text, &at, "</net>");
    return text;
}

/* 64 rounds of 32768 points for each of 1024 paths are 2^31 points: one more than an int32 counts to. */
static void test_sums_do_not_wrap(void **test)
{
    char message[MOCK_TEXT];
    char *text = make_long_net(32768, 1024, 1);
    assert_int_equal(try_files(text, routes_text, message), DT_EDATA);
    assert_non_null(strstr(message, "in a circle"));
    free(text);
    text = make_long_net(65536, 300, 0);
    assert_int_equal(try_files(text, routes_text, message), DT_EDATA);
    assert_non_null(strstr(message, "points or more; at most"));
    free(text);
}

/* A net with one junction: a connection from every lane of a road of n_lanes over one lane of n_points points. */
static char *make_wide_net(int n_lanes, int n_points)
{
    char *text = malloc(BIG_MAX), part[256];
    size_t at = 0;
    assert_non_null(text);
    add(text, &at, "<net><edge id=':x' function='internal'><lane id=':x_0' index='0' speed='9' length='999' shape='");
    for (int i = 0; i < n_points; i++) {
        add(text, &at, i % 2 == 0 ? "0,0 " : "1,0 ");
    }
    add(text, &at, "'/></edge><edge id='a' from='p' to='q'>");
    for (int i = 0; i < n_lanes; i++) {
        snprintf(part, sizeof(part), "<lane id='a_%d' index='%d' speed='9' length='9' shape='0,0 9,0'/>", i, i);
        add(text, &at, part);
    }
    add(text, &at,
        "</edge><edge id='b' from='q' to='r'><lane id='b_0' index='0' speed='9' length='9' shape='9,0 18,0'/></edge>"
        "<junction id='q' type='priority' intLanes=':x_0'><request index='0' response='0' foes='1'/></junction>");
    for (int i = 0; i < n_lanes; i++) {
        snprintf(part, sizeof(part), "<connection from='a' to='b' fromLane='%d' toLane='0' via=':x_0'/>", i);
        add(text, &at, part);
    }
    add(text, &at, "</net>");
    return text;
}

static const char short_routes[] = "<routes><vehicle id='v' depart='200'><route edges='a b'/></vehicle></routes>";

/* Builds from memory; 0 where that fails. */
static int64_t count_compared(const char *text)
{
    mock_host host;
    const xml_text roads = {"a.net.xml", text, strlen(text)},
                   routes = {"a.rou.xml", short_routes, strlen(short_routes)};
    const dt_component *c = mock_load("plugins", "env_traffic", "env_traffic");
    traffic_config *config = mock_config(c, settings(NULL));
    *config = scenario_resolve(config);
    mock_host_init(&host);
    sim s = {.h = &host.host, .c = config};
    const dt_status st = scenario_build_from(&s, &roads, &routes);
    const int64_t n = s.net.n_compared;
    sim_destroy(&s);
    free(config);
    assert_int_equal(host.n_live, 0);
    return st == DT_OK ? n : 0;
}

/* 48 paths of 32767 pieces each meet: 1.9e11 pieces would be passed to find the points of all pairs, minutes. */
static void test_long_paths_are_not_walked(void **test)
{
    char *text = make_wide_net(48, 32768);
    const int64_t n = count_compared(text);
    assert_true(n > 0 && n < 200000000);
    free(text);
}

static void test_connections_of_a_lane(void **test)
{
    char message[MOCK_TEXT];
    char *text = make_long_net(2, NET_MAX_LINKS + 1, 0);
    assert_int_equal(try_files(text, short_routes, message), DT_EDATA);
    assert_non_null(strstr(message, "more than 256"));
    free(text);
}

/* A signal of n links in a row of parallel lanes, 64 lanes of a road. The last one yields to the first, as the file
 * says. Phases: the first half of the links, the others. */
static char *make_many_links(int n)
{
    enum { LANES = 64 };
    char *text = malloc(BIG_MAX), part[1024];
    size_t at = 0;
    assert_non_null(text);
    assert_true(n <= 2 * NET_MAX_LINKS);
    add(text, &at, "<net>");
    for (int k = 0; k < n; k++) {
        snprintf(part, sizeof(part),
                 "<edge id=':x%d' function='internal'><lane id=':x%d_0' index='0' speed='9' length='9' "
                 "shape='100,%d 109,%d'/></edge>",
                 k, k, 4 * k, 4 * k);
        add(text, &at, part);
    }
    for (int e = 0; e * LANES < 2 * n; e++) {
        const int is_out = e * LANES >= n, first = e * LANES - (is_out ? n : 0);
        snprintf(part, sizeof(part), "<edge id='%c%d' from='%s' to='%s'>", is_out ? 'b' : 'a', first / LANES,
                 is_out ? "q" : "p", is_out ? "r" : "q");
        add(text, &at, part);
        for (int k = 0; k < LANES; k++) {
            const int x = is_out ? 109 : 0, y = 4 * (first + k);
            snprintf(part, sizeof(part), "<lane id='%c%d_%d' index='%d' speed='9' length='100' shape='%d,%d %d,%d'/>",
                     is_out ? 'b' : 'a', first / LANES, k, k, x, y, x + 100, y);
            add(text, &at, part);
        }
        add(text, &at, "</edge>");
    }
    add(text, &at, "<tlLogic id='q' type='static' offset='0'>");
    for (int p = 0; p < 2; p++) {
        add(text, &at, "<phase duration='300' state='");
        for (int k = 0; k < n; k++) {
            add(text, &at, (k < n / 2) == (p == 0) ? "G" : "r");
        }
        add(text, &at, "'/>");
    }
    add(text, &at, "</tlLogic><junction id='q' type='traffic_light' intLanes='");
    for (int k = 0; k < n; k++) {
        snprintf(part, sizeof(part), ":x%d_0 ", k);
        add(text, &at, part);
    }
    add(text, &at, "'>");
    for (int k = 0; k < n; k++) {
        char foes[2 * NET_MAX_LINKS + 1];
        memset(foes, '0', (size_t)n); /* the rightmost letter is of link 0 */
        foes[n] = '\0';
        foes[n - 1] = k == n - 1 ? '1' : '0';
        snprintf(part, sizeof(part), "<request index='%d' response='%s' ", k, foes);
        add(text, &at, part);
        foes[0] = k == 0 ? '1' : '0';
        snprintf(part, sizeof(part), "foes='%s'/>", foes);
        add(text, &at, part);
    }
    add(text, &at, "</junction>");
    for (int k = 0; k < n; k++) {
        snprintf(part, sizeof(part),
                 "<connection from='a%d' to='b%d' fromLane='%d' toLane='%d' via=':x%d_0' tl='q' linkIndex='%d'/>",
                 k / LANES, k / LANES, k % LANES, k % LANES, k, k);
        add(text, &at, part);
    }
    add(text, &at, "</net>");
    return text;
}

/* As many links as SUMO takes: each has its own light, and foes across all words of their masks. */
static void test_many_links(void **test)
{
    static const char routes[] = "<routes><vehicle id='v' depart='300' departLane='3'><route edges='a0 b0'/></vehicle>"
                                 "<vehicle id='w' depart='300' departLane='60'><route edges='a3 b3'/></vehicle>"
                                 "</routes>";
    char message[MOCK_TEXT];
    char *text = make_many_links(NET_MAX_LINKS);
    store("corner.net.xml", text);
    store("corner.rou.xml", routes);
    sim_rig r;
    rig_open(&r, settings((const char *const[]){"control=vehicles", NULL}));
    const net *n = &r.sim.net;
    const net_junction *j = &n->junction[0];
    assert_int_equal(j->n_links, NET_MAX_LINKS);
    assert_int_equal(j->n_numbers, NET_MAX_LINKS);
    assert_int_equal(j->n_phases, 2);
    for (int32_t k = 0; k < j->n_links; k++) {
        assert_int_equal(j->number[k], k);
        assert_int_equal(net_count(j->foes[k]), k == 0 || k == NET_MAX_LINKS - 1);
        assert_int_equal(net_has(&j->responds[k], 0), k == NET_MAX_LINKS - 1);
        for (int32_t p = 0; p < 2; p++) {
            assert_int_equal(net_letter_of(j, p, k), (k < NET_MAX_LINKS / 2) == (p == 0) ? NET_GO : NET_RED);
        }
    }
    while (r.sim.elapsed_s < 600) { /* the episode begins at 100 s, and the lights change at 300 s, 600 s ... */
        sim_step(&r.sim);
        const int first = r.sim.elapsed_s + 100 >= 600 && r.sim.elapsed_s + 100 < 900;
        assert_true(r.sim.sum.finished <= (first ? 2 : 1));
    }
    assert_int_equal(r.sim.sum.finished, 2);
    rig_close(&r);
    free(text);
    text = make_many_links(NET_MAX_LINKS + 64);
    assert_int_equal(try_files(text, routes, message), DT_EDATA);
    assert_non_null(strstr(message, "at most 256"));
    free(text);
}

/* Every kind of element that is not simulated is reported once; 100000 kinds are not, nor is each compared with all. */
static void test_kinds_of_elements(void **test)
{
    char message[MOCK_TEXT], part[32], *text = malloc(BIG_MAX);
    size_t at = 0;
    assert_non_null(text);
    add(text, &at, "<net>");
    for (int i = 0; i < 100000; i++) {
        snprintf(part, sizeof(part), "<k%d/>", i);
        add(text, &at, part);
    }
    add(text, &at, strstr(net_text, "<location"));
    static const char routes[] =
        "<routes><vehicle id='v' depart='200'><route edges='south_c c_north'/></vehicle></routes>";
    assert_int_equal(try_files(text, routes, message), DT_OK);
    assert_non_null(strstr(message, "(and 99"));
    assert_null(strstr(message, "<k64>"));
    free(text);
}

/* Expat begins an element again with every piece of it: one of 256 MB would take hours. */
static void test_endless_element(void **test)
{
    enum { MANY = 6 << 20 };
    char message[MOCK_TEXT], *text = malloc(MANY + 16);
    assert_non_null(text);
    memset(text, ' ', MANY);
    memcpy(text, "<net a='", 8);
    snprintf(text + MANY, 16, "'></net>");
    assert_int_equal(try_files(text, short_routes, message), DT_EDATA);
    assert_non_null(strstr(message, "4194304"));
    free(text);
}

/* Lanes as long as may be: more vehicles would fit than slots can be counted, but no more drive than max_vehicles. */
static dt_status try_long_lanes(int n, char *message)
{
    char lane[256], *text = malloc(BIG_MAX);
    size_t at = 0;
    assert_non_null(text);
    add(text, &at, "<net>");
    for (int i = 0; i < n; i++) {
        snprintf(
            lane, sizeof(lane),
            "<edge id='e%d' from='p' to='q'><lane id='e%d_0' index='0' speed='9' length='1e6' shape='0,0 9,0'/></edge>",
            i, i);
        add(text, &at, lane);
    }
    add(text, &at, "</net>");
    static const char routes[] = "<routes><vehicle id='v' depart='200'><route edges='e0'/></vehicle></routes>";
    const dt_status st = try_files(text, routes, message);
    free(text);
    return st;
}

static void test_room_is_bounded(void **test)
{
    char message[MOCK_TEXT];
    assert_int_equal(try_long_lanes(3000, message), DT_OK); /* 266 MB; by their length alone they had 50 GB */
    assert_int_equal(try_long_lanes(8400, message), DT_ECONFIG);
    assert_non_null(strstr(message, "8388608"));
    assert_non_null(strstr(message, "1000 of them"));
}

/* A net of so many junctions has 1 GB and more: nothing is allocated. */
static void test_net_is_bounded(void **test)
{
    size_t bytes;
    const net_size large = {.lanes = 1000, .edges = 500, .links = 300000, .junctions = 300000};
    const net_size city = {.lanes = 100000, .edges = 50000, .links = 100000, .junctions = 20000, .pieces = 1000000};
    assert_false(net_size_bytes(&large, &bytes));
    assert_true(bytes > NET_BYTES_MOST);
    assert_true(net_size_bytes(&city, &bytes));
}

/* Flows that would never end, or that ask for more vehicles than can be counted. */
static void test_bad_flows(void **test)
{
    static const bad_file bad[] = {
        {"period=\"5\"", "period=\"0\"", "period 0 is outside", DT_EDATA},
        {"period=\"5\"", "period=\"1e-300\"", "period 1e-300 is outside", DT_EDATA},
        {"period=\"5\"", "period=\"-1\"", "period -1 is outside", DT_EDATA},
        {"period=\"5\"", "period=\"nan\"", "period \"nan\" is not a number", DT_EDATA},
        {"period=\"5\"", "period=\"inf\"", "period \"inf\" is not a number", DT_EDATA},
        {"exp(0.02)", "exp(1e-320)", "neither a time nor exp(rate)", DT_EDATA},
        {"exp(0.02)", "exp(nan)", "neither a time nor exp(rate)", DT_EDATA},
        {"departLane=\"free\"\n        probability=\"0.05\"", "probability=\"1e-320\"", "makes a vehicle every",
         DT_EDATA},
        {"vehsPerHour=\"180\"", "vehsPerHour=\"1e-320\"", "makes a vehicle every", DT_EDATA},
        {"begin=\"100\" end=\"400\" number=\"20\"", "begin=\"100\" end=\"400\" number=\"100000000\"",
         "makes a vehicle every 3e-06 s", DT_EDATA},
        {"begin=\"100\" end=\"400\" number=\"20\"", "begin=\"400\" end=\"100\" number=\"20\"",
         "ends at 100 s, before it begins at 400 s", DT_EDATA},
        {"begin=\"100\" end=\"400\" number=\"20\"", "begin=\"1e9\" end=\"1e9\" number=\"2147483648\"",
         "number 2147483648 is outside", DT_EDATA},
        {"depart=\"110.5\"", "depart=\"1e17\"", "depart 1e17 is outside", DT_EDATA},
        {"speedFactor=\"norm(0.9,0.05)\"", "speedFactor=\"norm(nan,0.05)\"", "is neither a number nor norm", DT_EDATA},
    };
    refuse_all(bad, sizeof(bad) / sizeof(bad[0]), 0);
}

/* So many vehicles in so short a time that their period vanishes next to the hour: t + period == t. */
static void test_flow_that_stands_still(void **test)
{
    static char changed[FILE_MAX];
    char message[MOCK_TEXT];
    replace(routes_text, "begin=\"100\" end=\"400\" number=\"20\"",
            "begin=\"100\" end=\"100.00001\" number=\"100000000\"", changed);
    assert_int_equal(try_files(net_text, changed, message), DT_EDATA);
    assert_non_null(strstr(message, "makes a vehicle every"));
}

static void test_too_many_vehicles(void **test)
{
    char message[MOCK_TEXT], flow[256], *text = malloc(BIG_MAX);
    size_t at = 0;
    assert_non_null(text);
    add(text, &at, "<routes>");
    for (int i = 0; i < 4000; i++) { /* 600 s at a thousand a second, 4000 times: more than 2^31 */
        snprintf(flow, sizeof(flow),
                 "<flow id='f%d' begin='100' end='700' period='0.001'><route edges='south_c c_north'/></flow>", i);
        add(text, &at, flow);
    }
    add(text, &at, "</routes>");
    assert_int_equal(try_files(net_text, text, message), DT_EDATA);
    assert_non_null(strstr(message, "20000000"));
    free(text);
}

/* Nobody needs a network of 400 MB that is 400 kB long. */
static void test_bomb(void **test)
{
    char path[2 * TEXT], message[MOCK_TEXT];
    char *blank = malloc(BIG_MAX);
    assert_non_null(blank);
    memset(blank, ' ', BIG_MAX);
    store("corner.net.xml", net_text);
    snprintf(path, sizeof(path), "%s/corner.rou.xml", folder);
    gzFile out = gzopen(path, "wb9");
    assert_non_null(out);
    assert_true(gzputs(out, "<routes>") > 0);
    for (int i = 0; i < 400; i++) {
        assert_int_equal(gzwrite(out, blank, BIG_MAX), BIG_MAX);
    }
    assert_true(gzputs(out, "</routes>") > 0);
    assert_int_equal(gzclose(out), Z_OK);
    mock_host host;
    sim s = {0};
    mock_host_init(&host);
    const dt_component *c = mock_load("plugins", "env_traffic", "env_traffic");
    traffic_config *config = mock_config(c, settings(NULL));
    *config = scenario_resolve(config);
    const dt_status st = sim_create(&s, &host.host, config);
    snprintf(message, sizeof(message), "%s", host.message);
    sim_destroy(&s);
    free(config);
    free(blank);
    assert_int_equal(host.n_live, 0);
    assert_int_equal(st, DT_EDATA);
    assert_non_null(strstr(message, "250 times"));
}

/* What lies in memory is read as a file is, messages and all. */
static void test_from_memory(void **test)
{
    mock_host host;
    const xml_text good = {"a.net.xml", net_text, strlen(net_text)},
                   routes = {"a.rou.xml", routes_text, strlen(routes_text)};
    const xml_text half = {"a.net.xml", net_text, strlen(net_text) / 2};
    const dt_component *c = mock_load("plugins", "env_traffic", "env_traffic");
    traffic_config *config = mock_config(c, settings(NULL));
    *config = scenario_resolve(config);
    mock_host_init(&host);
    sim s = {.h = &host.host, .c = config};
    assert_int_equal(scenario_build_from(&s, &good, &routes), DT_OK);
    assert_int_equal(s.net.n_links, 7);
    sim_destroy(&s);
    s = (sim){.h = &host.host, .c = config};
    assert_int_equal(scenario_build_from(&s, &half, &routes), DT_EDATA);
    assert_non_null(strstr(host.message, "a.net.xml:"));
    sim_destroy(&s);
    free(config);
    assert_int_equal(host.n_live, 0);
}

/* In the place of a file: a pipe that nobody writes to, a device without an end, a folder. */
static void test_no_plain_file(void **test)
{
    mock_host host;
    char path[2 * TEXT];
    const dt_component *c = mock_load("plugins", "env_traffic", "env_traffic");
    for (int k = 0; k < 6; k++) {
        store("corner.net.xml", net_text);
        store("corner.rou.xml", routes_text);
        snprintf(path, sizeof(path), "%s/corner.%s.xml", folder, k % 2 == 0 ? "net" : "rou");
        assert_int_equal(unlink(path), 0);
        assert_int_equal(k < 2 ? mkfifo(path, 0600) : k < 4 ? symlink("/dev/zero", path) : mkdir(path, 0700), 0);
        mock_host_init(&host);
        traffic_config *config = mock_config(c, settings(NULL));
        *config = scenario_resolve(config);
        sim s = {0};
        alarm(60);
        assert_int_equal(sim_create(&s, &host.host, config), DT_EDATA);
        alarm(0);
        assert_non_null(strstr(host.message, k % 2 == 0 ? "corner.net.xml: is not" : "corner.rou.xml: is not"));
        sim_destroy(&s);
        free(config);
        assert_int_equal(host.n_live, 0);
        assert_int_equal(k < 4 ? unlink(path) : rmdir(path), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_numbers_of_nets),
        cmocka_unit_test(test_bad_references),
        cmocka_unit_test(test_missing_requests),
        cmocka_unit_test(test_circles),
        cmocka_unit_test(test_sums_do_not_wrap),
        cmocka_unit_test(test_room_is_bounded),
        cmocka_unit_test(test_net_is_bounded),
        cmocka_unit_test(test_long_paths_are_not_walked),
        cmocka_unit_test(test_connections_of_a_lane),
        cmocka_unit_test(test_many_links),
        cmocka_unit_test(test_kinds_of_elements),
        cmocka_unit_test(test_endless_element),
        cmocka_unit_test(test_bad_flows),
        cmocka_unit_test(test_flow_that_stands_still),
        cmocka_unit_test(test_too_many_vehicles),
        cmocka_unit_test(test_bomb),
        cmocka_unit_test(test_from_memory),
        cmocka_unit_test(test_no_plain_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
