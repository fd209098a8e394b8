/* SPDX-License-Identifier: Apache-2.0
 *
 * What valid files of SUMO may hold: every row of docs/reference/traffic-files.md is read, skipped and reported, or
 * rejected. One element is put into a file that is otherwise the same. No file is rejected for what is neither
 * simulated nor kept.
 */
#include "files.h"

enum { READ, SKIPPED, REJECTED };

/* Vehicles that are due in an episode. */
static int count_due(const char *net_xml, const char *routes_xml, dt_status *status_p, char *message)
{
    mock_host host;
    sim s = {0};
    int n = 0;
    store("corner.net.xml", net_xml);
    store("corner.rou.xml", routes_xml);
    mock_host_init(&host);
    traffic_config *config = mock_config(mock_load("plugins", "env_traffic", "env_traffic"), settings(NULL));
    *config = scenario_resolve(config);
    *status_p = sim_create(&s, &host.host, config);
    snprintf(message, MOCK_TEXT, "%s", *status_p != DT_OK ? host.message : host.log);
    if (*status_p == DT_OK) {
        sim_reset(&s, 1);
        for (int32_t k = 0; k < s.n_sources; k++) {
            n += s.source[k].n;
        }
    }
    sim_destroy(&s);
    free(config);
    assert_int_equal(host.n_live, 0);
    return n;
}

typedef struct content {
    const char *xml;
    int outcome;
    int n_more;       /* vehicles that it brings */
    const char *says; /* in the log, or the error; NULL: nothing */
} content;

static void check_row(const content *row, dt_status st, int n, const char *message)
{
    const int said = row->says == NULL || strstr(message, row->says) != NULL;
    const int good = row->outcome == REJECTED ? st == DT_EDATA && said : st == DT_OK && n == row->n_more && said;
    if (!good) {
        print_error("%s\n  status %d, %d vehicles, \"%s\"; expected outcome %d, %d vehicles, \"%s\"\n", row->xml,
                    (int)st, n, message, row->outcome, row->n_more, row->says != NULL ? row->says : "");
    }
    assert_true(good);
}

#define ROUTE "<route edges='south_c c_north'/>"
#define FLOW  "begin='100' end='700' period='60'"

static void test_demand(void **test)
{
    static const content all[] = {
        /* times */
        {"<vehicle id='v' depart='0:02:10'>" ROUTE "</vehicle>", READ, 1, NULL},
        {"<vehicle id='v' depart='0:00:02:10.5'>" ROUTE "</vehicle>", READ, 1, NULL},
        {"<vehicle id='v' depart='1.3e2'>" ROUTE "</vehicle>", READ, 1, NULL},
        {"<flow id='f' begin='0:01:40' end='0:11:40' period='0:01:00'>" ROUTE "</flow>", READ, 10, NULL},
        {"<vehicle id='v' depart='2:10'>" ROUTE "</vehicle>", REJECTED, 0, "is not a time"},
        {"<vehicle id='v' depart='-5'>" ROUTE "</vehicle>", REJECTED, 0, "outside"},
        {"<vehicle id='v' depart='soon'>" ROUTE "</vehicle>", REJECTED, 0, "is not a number"},
        {"<vehicle id='v'>" ROUTE "</vehicle>", REJECTED, 0, "has no depart"},
        /* departures that are events */
        {"<vehicle id='v' depart='triggered'>" ROUTE "</vehicle>", SKIPPED, 0, "<vehicle> is left out"},
        {"<vehicle id='v' depart='containerTriggered'>" ROUTE "</vehicle>", SKIPPED, 0, "<vehicle> is left out"},
        {"<vehicle id='v' depart='split'>" ROUTE "</vehicle>", SKIPPED, 0, "<vehicle> is left out"},
        {"<flow id='f' begin='triggered' number='3'>" ROUTE "</flow>", SKIPPED, 0, "<flow> is left out"},
        {"<trip id='t' depart='triggered' from='nowhere' to='south_c'/>", SKIPPED, 0, "<trip> is left out"},
        /* outside of the episode: nothing of it is needed */
        {"<vehicle id='v' depart='5' route='unknown' type='unknown'/>", SKIPPED, 0, NULL},
        {"<vehicle id='v' depart='0:20:00' departLane='77' route='unknown'/>", SKIPPED, 0, NULL},
        {"<flow id='f' begin='800' end='900' number='5' route='unknown'/>", SKIPPED, 0, NULL},
        /* types */
        {"<vType id='t' vClass='bus' color='1,0,0' guiShape='bus' personCapacity='80'/>"
         "<vehicle id='v' type='t' depart='200'>" ROUTE "</vehicle>",
         READ, 1, NULL},
        {"<vType id='t' length='enormous' sigma='7' vClass='spaceship'/>", SKIPPED, 0, NULL},
        {"<vType id='t' length='enormous'/>", SKIPPED, 0, NULL},
        {"<vType id='t' length='enormous'/><vehicle id='v' type='t' depart='200'>" ROUTE "</vehicle>", REJECTED, 0,
         "length \"enormous\" is not a number"},
        {"<vType id='t' scale='2.5'/><flow id='f' type='t' begin='100' end='700' period='60'>" ROUTE "</flow>", READ,
         25, NULL},
        {"<vType id='t' scale='0.1'/><flow id='f' type='t' begin='100' end='700' period='10'>" ROUTE "</flow>", READ, 6,
         NULL},
        {"<vType id='t' scale='0'/><vehicle id='v' type='t' depart='200'>" ROUTE "</vehicle>", READ, 0, NULL},
        {"<vType id='t' scale='1e9'/><vehicle id='v' type='t' depart='200'>" ROUTE "</vehicle>", REJECTED, 0, "scale"},
        {"<vType id='t' lcStrategic='5' jmIgnoreFoeProb='0.5'/><vehicle id='v' type='t' depart='200'>" ROUTE
         "</vehicle>",
         READ, 1, "not simulated"},
        {"<vType id='t' carFollowModel='Wiedemann'/><vehicle id='v' type='t' depart='200'>" ROUTE "</vehicle>", READ, 1,
         "Krauss drives"},
        {"<vType id='t'><carFollowing-Krauss accel='2'/><param key='a' value='b'/></vType>", SKIPPED, 0,
         "<carFollowing-Krauss> is left out"},
        {"<vehicle id='v' type='DEFAULT_VEHTYPE' depart='200'>" ROUTE "</vehicle>", READ, 1, NULL},
        {"<vehicle id='v' type='DEFAULT_TAXITYPE' depart='200'>" ROUTE "</vehicle>", READ, 1, NULL},
        {"<vehicle id='v' type='DEFAULT_BIKETYPE' depart='200' route='no'/>", SKIPPED, 0, "<vehicle> is left out"},
        {"<vehicle id='v' type='DEFAULT_PEDTYPE' depart='200'>" ROUTE "</vehicle>", SKIPPED, 0,
         "<vehicle> is left out"},
        {"<vehicle id='v' type='DEFAULT_CONTAINERTYPE' depart='x'/>", SKIPPED, 0, "<vehicle> is left out"},
        {"<vehicle id='v' type='DEFAULT_RAILTYPE' depart='200'/>", SKIPPED, 0, "<vehicle> is left out"},
        {"<vType id='b' vClass='bicycle'/><flow id='f' type='b' period='0' departLane='left'><route edges='no such'/>"
         "<stop lane='no_0' duration='x'/></flow>",
         SKIPPED, 0, "<flow> is left out"},
        {"<vehicle id='v' type='unknown' depart='200'>" ROUTE "</vehicle>", REJECTED, 0,
         "type \"unknown\" is not known"},
        /* distributions */
        {"<vType id='a'/><vType id='b' length='9'/><vTypeDistribution id='d' vTypes='a b' probabilities='1 3'/>"
         "<flow id='f' type='d' " FLOW ">" ROUTE "</flow>",
         READ, 10, NULL},
        {"<vTypeDistribution id='d'><vType id='a' probability='.2'/><vType id='b'/></vTypeDistribution>"
         "<flow id='f' type='d' " FLOW ">" ROUTE "</flow>",
         READ, 10, NULL},
        {"<vTypeDistribution id='d'><vType id='a' vClass='bicycle'/></vTypeDistribution>"
         "<flow id='f' type='d' " FLOW ">" ROUTE "</flow>",
         SKIPPED, 0, "<flow> is left out"},
        {"<vTypeDistribution id='d' vTypes='a none'/>", SKIPPED, 0, NULL},
        {"<vTypeDistribution id='d' vTypes='none'/><flow id='f' type='d' " FLOW ">" ROUTE "</flow>", REJECTED, 0,
         "type \"none\" is not known"},
        {"<vTypeDistribution id='d'/><flow id='f' type='d' " FLOW ">" ROUTE "</flow>", REJECTED, 0,
         "no probability above 0"},
        {"<vehicle id='v' depart='begin'>" ROUTE "</vehicle>", READ, 1, NULL},
        {"<routeDistribution id='d'><route id='a' edges='south_c c_north'/><route edges='west_m m_c c_east' "
         "probability='2'/></routeDistribution><flow id='f' route='d' " FLOW "/>",
         READ, 10, NULL},
        {"<route id='a' edges='south_c c_north'/><routeDistribution id='d'><route refId='a' probability='1'/>"
         "</routeDistribution><flow id='f' route='d' " FLOW "/>",
         READ, 10, NULL},
        {"<route id='a' edges='south_c c_north'/><routeDistribution id='d' routes='a a' probabilities='1 2'/>"
         "<vehicle id='v' depart='200' route='d'/>",
         READ, 1, NULL},
        {"<vehicle id='v' depart='200'><routeDistribution last='0'><route edges='south_c c_north' cost='9' "
         "probability='.5'/><route edges='south_c c_east' probability='.5'/></routeDistribution></vehicle>",
         READ, 1, NULL},
        {"<routeDistribution id='d'><route id='a' edges='south_c c_north' probability='0'/></routeDistribution>"
         "<flow id='f' route='d' " FLOW "/>",
         REJECTED, 0, "no probability above 0"},
        /* routes */
        {"<route id='a' edges='no such edges' color='yellow'/>", SKIPPED, 0, NULL},
        {"<route id='a' edges='south_c c_north'><stop lane='c_north_0' duration='0:00:20'/></route>", SKIPPED, 0,
         "<stop> is left out"},
        {"<vehicle id='v' depart='200' route='unknown'/>", REJECTED, 0, "route \"unknown\" is not known"},
        {"<vehicle id='v' depart='200'/>", REJECTED, 0, "has no route"},
        {"<vehicle id='v' depart='200'><route edges='south_c c_north' repeat='2'/></vehicle>", READ, 1, "repeat"},
        {"<trip id='t' depart='200' from='west_m' via='m_c' to='c_east'/>", READ, 1, NULL},
        /* zones and junctions */
        {"<taz id='a' edges='west_m south_c'/><taz id='b'><tazSink id='c_east' weight='1'/><tazSource id='no such'/>"
         "<param key='k' value='v'/></taz><trip id='t' depart='200' fromTaz='a' toTaz='b'/>",
         READ, 1, NULL},
        {"<taz id='a' edges='west_m south_c'/><flow id='f' fromTaz='a' toJunction='north' " FLOW "/>", READ, 10, NULL},
        {"<trip id='t' depart='200' fromJunction='west' toJunction='east'/>", READ, 1, NULL},
        {"<trip id='t' depart='200' fromJunction='west' to='c_east' via='m_c'/>", READ, 1, NULL},
        {"<trip id='t' depart='200' from='south_c' to='c_east' fromTaz='none' toTaz='none'/>", READ, 1, NULL},
        {"<vehicle id='v' depart='200' fromTaz='none' toTaz='none'>" ROUTE "</vehicle>", READ, 1, NULL},
        {"<trip id='t' depart='900' fromTaz='none' toTaz='none'/>", SKIPPED, 0, NULL},
        {"<taz id='a' edges='west_m'/><taz id='a' edges='south_c'/>", SKIPPED, 0, "is defined twice"},
        {"<trip id='t' depart='200' fromTaz='a' toTaz='b'/>", REJECTED, 0, "fromTaz \"a\" is not known"},
        {"<taz id='a' edges='no_such'/><trip id='t' depart='200' fromTaz='a' to='c_east'/>", REJECTED, 0,
         "\"no_such\", which is not in"},
        {"<taz id='a'/><trip id='t' depart='200' fromTaz='a' to='c_east'/>", REJECTED, 0, "has no edge with a lane"},
        {"<taz id='a' edges='c_north'/><trip id='t' depart='200' fromTaz='a' to='c_east'/>", REJECTED, 0,
         "there is no route for cars from \"a\" to \"c_east\""},
        {"<trip id='t' depart='200' fromJunction='nowhere' to='c_east'/>", REJECTED, 0, "is not a junction of"},
        {"<trip id='t' depart='200' from='south_c'/>", REJECTED, 0, "neither a route nor edges, zones or junctions"},
        {"<taz/>", REJECTED, 0, "has no id"},
        {"<vehicle id='v' depart='200' departEdge='1' arrivalEdge='1'><route edges='west_m m_c c_east'/></vehicle>",
         READ, 1, NULL},
        {"<vehicle id='v' depart='200' departEdge='3'><route edges='west_m m_c c_east'/></vehicle>", REJECTED, 0,
         "departEdge 3"},
        /* how vehicles begin and end */
        {"<vehicle id='v' depart='200' departLane='best' departPos='random_free' departSpeed='desired'>" ROUTE
         "</vehicle>",
         READ, 1, NULL},
        {"<vehicle id='v' depart='200' departLane='allowed' departPos='last' departSpeed='last'>" ROUTE "</vehicle>",
         READ, 1, NULL},
        {"<vehicle id='v' depart='200' departPos='stop'>" ROUTE "</vehicle>", READ, 1, "departPos"},
        {"<vehicle id='v' depart='200' departLane='leftmost'>" ROUTE "</vehicle>", REJECTED, 0, "departLane"},
        {"<vehicle id='v' depart='200' departPos='somewhere'>" ROUTE "</vehicle>", REJECTED, 0, "departPos"},
        {"<vehicle id='v' depart='200' departSpeed='fast'>" ROUTE "</vehicle>", REJECTED, 0, "departSpeed"},
        {"<vehicle id='v' depart='200' arrivalPos='random' arrivalLane='current'>" ROUTE "</vehicle>", READ, 1,
         "which are skipped"},
        {"<vehicle id='v' depart='200' line='7' color='red' personNumber='3' containerNumber='1' reroute='true' "
         "insertionChecks='none' parkingBadges='x'>" ROUTE "</vehicle>",
         READ, 1, NULL},
        /* what vehicles hold */
        {"<vehicle id='v' depart='200'>" ROUTE "<stop busStop='b' until='0:10:00' parking='true'/></vehicle>", READ, 1,
         "<stop> is left out"},
        {"<vehicle id='v' depart='200'>" ROUTE "<param key='has.battery.device' value='true'/></vehicle>", READ, 1,
         NULL},
        /* elements that are skipped with all that they hold */
        {"<person id='p' depart='triggered'><walk edges='no'/><ride from='a' to='b' lines='ANY'/><stop lane='x' "
         "duration='1:00:00'/></person>",
         SKIPPED, 0, "<person> is left out"},
        {"<person id='p' depart='0:03:00'><personTrip from='a' to='b' modes='car'/></person>", SKIPPED, 0,
         "<person> is left out"},
        {"<personFlow id='p' begin='0' end='0:10:00' period='exp(1)'><walk edges='x'/></personFlow>", SKIPPED, 0,
         "<personFlow> is left out"},
        {"<container id='c' depart='1'><transport from='a' to='b'/></container>", SKIPPED, 0,
         "<container> is left out"},
        {"<containerFlow id='c' begin='1' number='2'/>", SKIPPED, 0, "<containerFlow> is left out"},
        {"<rerouter id='r' edges='x'><interval begin='0' end='1:0:0'><closingReroute id='x'/><route id='up' edges='z'/>"
         "</interval></rerouter>",
         SKIPPED, 0, "<rerouter> is left out"},
        {"<calibrator id='c' edge='x' pos='0'><flow begin='0' end='0:10:00' vehsPerHour='100' speed='1' route='no'/>"
         "</calibrator>",
         SKIPPED, 0, "<calibrator> is left out"},
        {"<variableSpeedSign id='s' lanes='x_0'><step time='0:01:00' speed='5'/></variableSpeedSign>", SKIPPED, 0,
         "<variableSpeedSign> is left out"},
        {"<busStop id='b' lane='no_0' startPos='1' endPos='9'><access lane='x' pos='1'/></busStop>", SKIPPED, 0,
         "<busStop> is left out"},
        {"<trainStop id='b' lane='no_0'/>", SKIPPED, 0, "<trainStop> is left out"},
        {"<containerStop id='b' lane='no_0'/>", SKIPPED, 0, "<containerStop> is left out"},
        {"<parkingArea id='b' lane='no_0'><space x='1' y='1'/></parkingArea>", SKIPPED, 0, "<parkingArea> is left out"},
        {"<chargingStation id='b' lane='no_0'/>", SKIPPED, 0, "<chargingStation> is left out"},
        {"<inductionLoop id='d' lane='no_0' pos='1' period='0:15:00' file='x'/>", SKIPPED, 0,
         "<inductionLoop> is left out"},
        {"<e1Detector id='d' lane='no_0' pos='1' freq='9' file='x'/>", SKIPPED, 0, "<e1Detector> is left out"},
        {"<laneAreaDetector id='d' lanes='no_0'/>", SKIPPED, 0, "<laneAreaDetector> is left out"},
        {"<entryExitDetector id='d'><detEntry lane='x' pos='1'/><detExit lane='x' pos='2'/></entryExitDetector>",
         SKIPPED, 0, "<entryExitDetector> is left out"},
        {"<instantInductionLoop id='d' lane='no_0'/>", SKIPPED, 0, "<instantInductionLoop> is left out"},
        {"<routeProbe id='d' edge='x' begin='0' file='f'/>", SKIPPED, 0, "<routeProbe> is left out"},
        {"<edgeData id='d' file='f'/>", SKIPPED, 0, "<edgeData> is left out"},
        {"<laneData id='d' file='f'/>", SKIPPED, 0, "<laneData> is left out"},
        {"<timedEvent type='SaveTLSStates' source='c' dest='f'/>", SKIPPED, 0, "<timedEvent> is left out"},
        {"<vaporizer id='x' begin='0' end='9'/>", SKIPPED, 0, "<vaporizer> is left out"},
        {"<WAUT id='w' refTime='0' startProg='1'><wautSwitch time='0:10:00' to='2'/></WAUT>", SKIPPED, 0,
         "<WAUT> is left out"},
        {"<taz id='z' edges='no such'><tazSource id='x' weight='1'/></taz>", SKIPPED, 0, NULL},
        {"<tazs><taz id='z'/></tazs>", SKIPPED, 0, "<tazs> is left out"},
        /* order, and speeds of one vehicle */
        {"<vehicle id='v' depart='300'>" ROUTE "</vehicle><vehicle id='w' depart='200'>" ROUTE "</vehicle>", READ, 2,
         "additional file"},
        {"<vehicle id='v' depart='200' speedFactor='0.5'>" ROUTE "</vehicle>", READ, 1, NULL},
        {"<vehicle id='v' depart='200' speedFactor='0'>" ROUTE "</vehicle>", REJECTED, 0, "speedFactor"},
        /* intervals: what flows without begin or end have */
        {"<interval begin='0' end='9'><flow id='f' from='a' to='b' number='5'/></interval>", SKIPPED, 0, NULL},
        {"<interval begin='150' end='0:03:20'><flow id='f' number='5'>" ROUTE "</flow><flow id='g' period='10'>" ROUTE
         "</flow><flow id='h' begin='160' end='220' period='10'>" ROUTE "</flow></interval><flow id='i' begin='160' "
         "period='100'>" ROUTE "</flow>",
         READ, 5 + 5 + 6 + 6, NULL},
        {"<interval begin='150' end='200'><flow id='f' number='2' period='10'>" ROUTE "</flow></interval>", READ, 2,
         NULL},
        {"<interval begin='300' end='200'><flow id='f' number='2'>" ROUTE "</flow></interval>", REJECTED, 0,
         "before it begins"},
        {"<interval><vehicle id='v' depart='200'>" ROUTE "</vehicle><include href='x'/></interval>", REJECTED, 0,
         "<include>"},
        {"<poly id='p' shape='1,1'/>", SKIPPED, 0, "<poly> is left out"},
        {"<poi id='p' x='1' y='1'/>", SKIPPED, 0, "<poi> is left out"},
        {"<param key='a' value='b'/>", SKIPPED, 0, NULL},
        {"<somethingNew id='x'><vehicle id='v' depart='200' route='no'/></somethingNew>", SKIPPED, 0,
         "<somethingNew> is left out"},
    };
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        char text[4 * TEXT], message[MOCK_TEXT];
        dt_status st;
        snprintf(text, sizeof(text), "<routes>%s<vehicle id='base' depart='300'>" ROUTE "</vehicle></routes>",
                 all[k].xml);
        const int n = count_due(net_text, text, &st, message);
        check_row(&all[k], st, n - 1, message);
    }
}

/* Of the edges of zones and junctions those count between which the way is the quickest. */
static void test_zones(void **test)
{
    static const struct {
        const char *trip, *edges[4];
    } all[] = {
        {"fromTaz='a' toTaz='b'", {"south_c", "c_north", NULL}}, /* its turn to c_east is slow */
        {"fromTaz='a' toTaz='b' via='m_c'", {"west_m", "m_c", "c_east", NULL}},
        {"fromJunction='c' toTaz='b'", {"c_east", NULL}}, /* the shorter one */
        {"fromJunction='m' toJunction='c'", {"m_c", NULL}},
        {"from='west_m' toTaz='c'", {"west_m", "m_c", NULL}},
        {"fromJunction='west' fromTaz='a' toJunction='north'", {"west_m", "m_c", "c_north", NULL}},
    };
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        char text[2 * TEXT];
        snprintf(text, sizeof(text),
                 "<routes><taz id='a'><tazSource id='west_m' weight='9'/><tazSource id='south_c' weight='0'/></taz>"
                 "<taz id='b' edges='c_east c_north'/><taz id='c' edges='c_east'><tazSink id='m_c'/></taz>"
                 "<trip id='t' depart='200' %s/></routes>",
                 all[k].trip);
        store("corner.net.xml", net_text);
        store("corner.rou.xml", text);
        sim_rig r;
        rig_open(&r, settings(NULL));
        const plan_trip *t = PLAN_TRIP(&r.sim.plan, 0);
        static const char *const edge_names[] = {"c_east", "c_north", "m_c",
                                                 "side_m", "south_c", "west_m"}; /* as the file */
        int32_t n = 0;
        for (; all[k].edges[n] != NULL; n++) {
            assert_true(n < t->n_edges);
            assert_string_equal(edge_names[PLAN_EDGE(&r.sim.plan, t->edge + n)], all[k].edges[n]);
        }
        assert_int_equal(n, t->n_edges);
        rig_close(&r);
    }
}

/* Files that include others, by paths that begin where they are. */
static void test_includes(void **test)
{
    static const struct {
        const char *text;
        dt_status status;
        int n_more;
        const char *says;
    } all[] = {
        {"<include href='types.xml'/><vehicle id='v' type='own' depart='200'>" ROUTE "</vehicle>", DT_OK, 1, NULL},
        {"<include href='more.xml'/>", DT_OK, 2, "more.xml:2: <stop> is left out"},
        {"<include href='more.xml'><param key='a' value='b'/></include>", DT_OK, 2, "more.xml:2"},
        {"<include href='none.xml'/>", DT_ENOTFOUND, 0, "none.xml"},
        {"<include/>", DT_EDATA, 0, "<include> has no href"},
        {"<include href='corner.rou.xml'/>", DT_EDATA, 0, "nested more than 8 deep"},
        {"<include href='corner.net.xml'/>", DT_EDATA, 0, "is not the <routes> of SUMO"},
        {"<include href='bad.xml'/>", DT_EDATA, 0, "bad.xml:1: <vType> length \"x\" is not a number"},
        {"<rerouter id='r'><include href='none.xml'/></rerouter>", DT_OK, 0, "<rerouter> is left out"}};
    store("types.xml", "<additional><vType id='own' length='6'/></additional>");
    store("more.xml", "<add><include href='types.xml'/><flow id='f' type='own' begin='200' end='220' number='2'>\n"
                      "<route edges='south_c c_north'/><stop lane='c_north_0'/></flow></add>");
    store("bad.xml", "<add><vType id='b' length='x'/><vehicle id='w' type='b' depart='200'>" ROUTE "</vehicle></add>");
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        char text[2 * TEXT], message[MOCK_TEXT];
        dt_status st;
        snprintf(text, sizeof(text), "<routes>%s<vehicle id='base' depart='300'>" ROUTE "</vehicle></routes>",
                 all[k].text);
        const int n = count_due(net_text, text, &st, message);
        if (st != all[k].status || (st == DT_OK && n != 1 + all[k].n_more) ||
            (all[k].says != NULL && strstr(message, all[k].says) == NULL)) {
            fail_msg("%s: status %d, %d vehicles, \"%s\"", all[k].text, (int)st, n, message);
        }
    }
}

/* Vehicles that begin close to a line stop at its red light, and touch no vehicle past it. */
static void test_begin_at_line(void **test)
{
    static const char *const begins[] = {
        "departPos='last' departSpeed='max'",  "departPos='last'",
        "departPos='189.6' departSpeed='max'", "departPos='189.6'",
        "departPos='-5' departSpeed='max'",    "departPos='-12' departSpeed='speedLimit'"};
    for (size_t k = 0; k < sizeof(begins) / sizeof(begins[0]); k++) {
        char text[TEXT];
        snprintf(text, sizeof(text),
                 "<routes><flow id='f' begin='100' end='700' period='5' %s>" ROUTE "</flow></routes>", begins[k]);
        store("corner.net.xml", net_text);
        store("corner.rou.xml", text);
        sim_rig r;
        rig_open(&r, settings((const char *const[]){"control=vehicles", NULL}));
        sim *s = &r.sim;
        const net_link *link = NULL;
        for (int32_t i = 0; i < s->net.n_links; i++) {
            const net_link *l = &s->net.link[i];
            link = l->from == s->net.edge[s->source[0].edge].lane && l->via != NET_NONE &&
                           s->net.junction[l->junction].number[l->bit] == 1
                       ? l
                       : link;
        }
        assert_non_null(link);
        int n_red = 0;
        while (s->elapsed_s < 600) {
            const net_show *show = &s->signal[link->junction].show;
            const int is_red = !net_has(&show->green, link->bit) && !net_has(&show->yellow, link->bit);
            const int32_t before = s->lane[link->via].n;
            sim_step(s);
            n_red += is_red;
            assert_false(is_red && s->lane[link->via].n > before);
        }
        assert_true(n_red > 300 && s->sum.finished > 80);
        assert_int_equal(s->sum.collisions, 0);
        rig_close(&r);
    }
}

/* Letters G and O yield to none, whatever the junction says; o yields. */
static void test_letters(void **test)
{
    static const struct {
        const char *state;
        int yields;
    } all[] = {{"GGGG", 0}, {"OOOO", 0}, {"ooGG", 1}, {"ggOO", 1}};
    const char *flows = "<routes><flow id='f' begin='100' end='700' period='3'>" ROUTE "</flow><flow id='g' "
                        "from='m_c' to='c_east' begin='100' end='700' period='3'/></routes>";
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        static char text[FILE_MAX];
        snprintf(text, sizeof(text), "%s", net_text);
        static const char *const states[] = {"GGrr", "yyrr", "rrGG", "rryy"};
        for (size_t i = 0; i < 4; i++) {
            memcpy(strstr(text, states[i]), all[k].state, 4);
        }
        store("corner.net.xml", text);
        store("corner.rou.xml", flows);
        sim_rig r;
        rig_open(&r, settings((const char *const[]){"control=vehicles", NULL}));
        rig_run(&r, 600);
        assert_true(r.sim.sum.finished > 150);
        assert_int_equal(r.sim.sum.waiting_s > 200, all[k].yields);
        rig_close(&r);
    }
}

/* Programs that never show green run as they are: nobody passes at r and u; one that cannot stop passes at y. */
static void test_closed(void **test)
{
    static const struct {
        const char *state;
        int passes; /* turns after a stop, too */
    } all[] = {{"rrrr", 0}, {"uuuu", 0}, {"rryy", 0}, {"yyyy", 0}, {"ssrr", 1}, {"rsrr", 1}};
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        static char text[FILE_MAX];
        snprintf(text, sizeof(text), "%s", net_text);
        static const char *const states[] = {"GGrr", "yyrr", "rrGG", "rryy"};
        for (size_t i = 0; i < 4; i++) {
            memcpy(strstr(text, states[i]), all[k].state, 4);
        }
        for (int is_agent = 0; is_agent < 2; is_agent++) {
            char message[MOCK_TEXT];
            dt_status st;
            const char *flow = "<routes><flow id='f' begin='100' end='400' period='10'>" ROUTE "</flow></routes>";
            (void)count_due(text, flow, &st, message);
            assert_int_equal(st, DT_OK);
            assert_non_null(strstr(message, "never shows green"));
            sim_rig r;
            rig_open(&r, settings((const char *const[]){is_agent ? "control=signals" : "control=vehicles", NULL}));
            assert_int_equal(r.sim.net.junction[0].n_phases, 1);
            rig_run(&r, 600);
            assert_int_equal(r.sim.sum.finished > 20, all[k].passes);
            assert_true(all[k].passes || r.sim.sum.finished == 0);
            rig_close(&r);
        }
    }
}

/* A junction with lights and without right of way has no requests. */
static void test_no_requests(void **test)
{
    static char text[FILE_MAX], half[FILE_MAX];
    char message[MOCK_TEXT];
    replace(net_text, "type=\"traffic_light\"", "type=\"traffic_light_unregulated\"", half);
    const char *from = strstr(strstr(half, "traffic_light_unregulated"), "<request"), *to = strstr(from, "</junction>");
    snprintf(text, sizeof(text), "%.*s%s", (int)(from - half), half, to);
    dt_status st;
    assert_int_equal(count_due(text, "<routes><vehicle id='v' depart='300'>" ROUTE "</vehicle></routes>", &st, message),
                     1);
    assert_int_equal(st, DT_OK);
    assert_non_null(strstr(message, "no right of way"));
}

/* Where roads cross rails, netconvert names a signal at the roads and writes no program of it. */
static void test_level_crossing(void **test)
{
    static const char *const types[] = {"type=\"rail_crossing\"", "type=\"rail_signal\"", "type=\"priority\""};
    static char half[FILE_MAX], whole[FILE_MAX];
    char message[MOCK_TEXT];
    for (size_t k = 0; k < 3; k++) {
        dt_status st;
        replace(net_text, "type=\"traffic_light\"", types[k], half);
        replace(half, "<tlLogic id=\"c\"", "<tlLogic id=\"none\"", whole);
        count_due(whole, "<routes><vehicle id='v' depart='300'>" ROUTE "</vehicle></routes>", &st, message);
        assert_int_equal(st, k < 2 ? DT_OK : DT_EDATA);
        assert_non_null(strstr(message, k < 2 ? "for trains" : "has no tlLogic"));
    }
}

/* Roots that SUMO takes as well; files of another kind are rejected. */
static void test_roots(void **test)
{
    static const struct {
        const char *root;
        int outcome;
    } all[] = {{"routes", READ},  {"additional", READ},       {"trips", READ}, {"demand", READ}, {"add", READ},
               {"net", REJECTED}, {"configuration", REJECTED}};
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        char text[TEXT], message[MOCK_TEXT];
        snprintf(text, sizeof(text), "<%s><vehicle id='v' depart='300'>" ROUTE "</vehicle></%s>", all[k].root,
                 all[k].root);
        assert_int_equal(try_files(net_text, text, message), all[k].outcome == READ ? DT_OK : DT_EDATA);
    }
}

typedef struct net_content {
    const char *from, *to;
    int outcome;
    const char *says;
} net_content;

#define ZEROS "00000000000000000000000000000000000000000000000000"

static void test_network(void **test)
{
    static const net_content all[] = {
        /* lanes inside junctions: the id counts */
        {"lane id=\":m_0_0\" index=\"0\"", "lane id=\":m_0_0\" index=\"7\"", READ, NULL},
        {"lane id=\":m_0_0\" index=\"0\"", "lane id=\":m_0_0\"", READ, NULL},
        {"lane id=\"c_east_0\" index=\"0\"", "lane id=\"c_east_0\" index=\"7\"", REJECTED, "index 7"},
        /* lanes and connections that no car uses are not checked */
        {"<edge id=\"c_east\"",
         "<edge id=\"walk\" from=\"m\" to=\"c\"><lane id=\"walk_0\" index=\"0\" allow=\"pedestrian\" "
         "speed=\"0.01\" length=\"-\" shape=\"\"/></edge><edge id=\"c_east\"",
         SKIPPED, "not for cars"},
        {"<edge id=\"c_east\"",
         "<edge id=\"rail\" from=\"m\" to=\"c\"><lane id=\"rail_0\" index=\"0\" allow=\"rail\" "
         "speed=\"300\" length=\"9e6\" shape=\"0,0\"/></edge><edge id=\"c_east\"",
         SKIPPED, "not for cars"},
        {"<edge id=\"c_east\"",
         "<edge id=\":c_w0\" function=\"walkingarea\"><lane id=\":c_w0_0\" index=\"0\" "
         "allow=\"pedestrian\" speed=\"x\" length=\"1\"/></edge><edge id=\"c_east\"",
         SKIPPED, "no pedestrians"},
        {"<edge id=\"c_east\"",
         "<edge id=\":c_c0\" function=\"crossing\" crossingEdges=\"x\"><lane id=\":c_c0_0\" index=\"0\" "
         "allow=\"pedestrian\"/></edge><edge id=\"c_east\"",
         SKIPPED, "no pedestrians"},
        {"<connection from=\"m_c\" to=\"c_east\"",
         "<connection from=\"m_c\" to=\"c_east\" fromLane=\"1\" toLane=\"0\" "
         "via=\":no_0\" allow=\"bicycle\"/><connection from=\"m_c\" to=\"c_east\"",
         SKIPPED, NULL},
        {"<connection from=\"m_c\" to=\"c_east\"",
         "<connection from=\"m_c\" to=\"none\" fromLane=\"1\" toLane=\"0\"/>"
         "<connection from=\"m_c\" to=\"c_east\"",
         REJECTED, "is not an edge"},
        /* programs */
        {"state=\"GGrr\"", "state=\"GGrrrrGG\"", READ, NULL},
        {"state=\"GGrr\"", "state=\"GG\"", REJECTED, "is outside state"},
        {"duration=\"42\" state=\"GGrr\"", "duration=\"0:00:42\" state=\"GGrr\"", READ, NULL},
        {"duration=\"42\" state=\"GGrr\"", "duration=\"42\" minDur=\"0:00:05\" maxDur=\"x\" name=\"a\" state=\"GGrr\"",
         READ, NULL},
        {"duration=\"42\" state=\"GGrr\"", "duration=\"0:42\" state=\"GGrr\"", REJECTED, "is not a time"},
        {"programID=\"0\" offset=\"0\"", "programID=\"0\" offset=\"0:00:10\"", READ, NULL},
        {"programID=\"0\" offset=\"0\"", "programID=\"0\" offset=\"begin\"", READ, NULL},
        {"programID=\"0\" offset=\"0\"", "programID=\"0\" offset=\"later\"", REJECTED, "offset"},
        {"type=\"static\"", "type=\"actuated\"", READ, "fixed program"},
        {"type=\"static\"", "type=\"NEMA\"", READ, "fixed program"},
        {"<tlLogic id=\"c\"",
         "<tlLogic id=\"x\" type=\"rail_signal\" programID=\"0\" offset=\"0\"><phase duration=\"x\" "
         "state=\"?\"/></tlLogic><tlLogic id=\"c\"",
         SKIPPED, "for trains"},
        {"<tlLogic id=\"c\"",
         "<tlLogic id=\"unused\" type=\"static\" programID=\"0\" offset=\"0\"><phase duration=\"5\" "
         "state=\"rrrrr\"/></tlLogic><tlLogic id=\"c\"",
         SKIPPED, NULL},
        /* junctions */
        {"id=\"east\" type=\"dead_end\"", "id=\"east\" type=\"rail_crossing\"", SKIPPED, "for trains"},
        {"id=\"east\" type=\"dead_end\"", "id=\"east\" type=\"rail_signal\"", SKIPPED, "for trains"},
        {"id=\"m\" type=\"priority\"", "id=\"m\" type=\"zipper\"", READ, "only for its right of way"},
        {"id=\"m\" type=\"priority\"", "id=\"m\" type=\"right_before_left\"", READ, NULL},
        {"id=\"m\" type=\"priority\"", "id=\"m\" type=\"unregulated\"", READ, "no right of way"},
        {"<net ", "<net lefthand=\"true\" ", READ, NULL},
        /* requests of more links than are simulated, of which cars use few; bits past them count */
        {"response=\"", "response=\"" ZEROS ZEROS ZEROS ZEROS, READ, NULL},
        {"foes=\"", "foes=\"1" ZEROS ZEROS ZEROS, READ, NULL},
        {"foes=\"", "foes=\"" ZEROS ZEROS ZEROS ZEROS ZEROS ZEROS, REJECTED, "SUMO takes at most 256"},
        /* what else a network may hold */
        {"</net>", "<roundabout nodes=\"a b\" edges=\"x y\"/></net>", SKIPPED, NULL},
        {"</net>", "<type id=\"highway\" priority=\"1\"/></net>", SKIPPED, NULL},
        {"</net>", "<prohibition prohibitor=\"a\" prohibited=\"b\"/></net>", SKIPPED, "<prohibition> is left out"},
        {"</net>", "<poly id=\"p\"/></net>", SKIPPED, "<poly> is left out"},
        {"</net>", "<crossing id=\"p\"/></net>", SKIPPED, "<crossing> is left out"},
        {"</net>", "<district id=\"p\"/></net>", SKIPPED, "<district> is left out"},
        {"</net>", "<param key=\"a\" value=\"b\"/></net>", SKIPPED, NULL},
        {"</net>", "<WAUT id=\"w\" refTime=\"0\" startProg=\"0\"/></net>", SKIPPED, "<WAUT> is left out"},
        {"</net>", "<somethingNew/></net>", SKIPPED, "<somethingNew> is left out"},
    };
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        static char changed[FILE_MAX];
        char message[MOCK_TEXT];
        dt_status st;
        replace(net_text, all[k].from, all[k].to, changed);
        const int n =
            count_due(changed, "<routes><vehicle id='v' depart='300'>" ROUTE "</vehicle></routes>", &st, message);
        check_row(&(content){all[k].to, all[k].outcome, 0, all[k].says}, st, n - 1, message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_demand),         cmocka_unit_test(test_zones),         cmocka_unit_test(test_includes),
        cmocka_unit_test(test_roots),          cmocka_unit_test(test_begin_at_line), cmocka_unit_test(test_letters),
        cmocka_unit_test(test_begin_at_line),  cmocka_unit_test(test_closed),        cmocka_unit_test(test_no_requests),
        cmocka_unit_test(test_level_crossing), cmocka_unit_test(test_network)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
