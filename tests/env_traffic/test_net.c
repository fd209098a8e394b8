/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks and demand from files of SUMO (scenario net): what is kept of them, who yields, programs of signals, and
 * what is refused, each with file and line.
 */
#include "files.h"
#include "../numbers.h"
#include "../../plugins/env_traffic/demand.h"
#include "../../plugins/env_traffic/signal.h"

#include <zlib.h>

static void open_corner(sim_rig *r, const char *const *more)
{
    store("corner.net.xml", net_text);
    store("corner.rou.xml", routes_text);
    rig_open(r, settings(more));
}

/* The link between two points of the drawing, by where its path begins and ends. */
static int32_t link_between(const net *n, double x0, double y0, double x1, double y1)
{
    for (int32_t k = 0; k < n->n_links; k++) {
        const net_lane *via = &n->lane[n->link[k].via], *to = &n->lane[n->link[k].to];
        if (hypot(via->x0 - x0, via->y0 - y0) < 0.1 && hypot(to->x0 - x1, to->y0 - y1) < 0.1) {
            return k;
        }
    }
    fail();
    return NET_NONE;
}

/* The texts that are numbers, as imports read them. */
static void test_numbers(void **test)
{
    static char changed[FILE_MAX];
    for (int i = 0; i < N_NUMBER_TEXTS; i++) {
        char message[MOCK_TEXT], speed[200];
        snprintf(speed, sizeof(speed), "speed=\"%s\"", number_texts[i].text);
        replace(net_text, "speed=\"13.90\"", speed, changed);
        const dt_status st = try_files(changed, routes_text, message);
        if (st != (number_texts[i].is_number ? DT_OK : DT_EDATA)) {
            fail_msg("\"%s\" gave %d: %s", number_texts[i].text, (int)st, message);
        }
    }
}

static void test_net_is_kept(void **test)
{
    sim_rig r;
    open_corner(&r, NULL);
    const net *n = &r.sim.net;
    assert_int_equal(n->n_edges, 6);
    assert_int_equal(n->n_links, 7);
    assert_int_equal(n->n_lanes, 8 + 7);
    assert_int_equal(n->n_junctions, 2);
    assert_int_equal(n->n_signals, 1);
    assert_int_equal(n->most_phases, 2);
    assert_int_equal(n->most_slots, 3);
    double total = 0, fastest = 0;
    for (int32_t k = 0; k < n->n_lanes; k++) {
        total += n->lane[k].length;
        fastest = fmax(fastest, n->lane[k].limit);
        double x, y, heading; /* shapes end where the file says: those of paths where the next lane begins */
        net_point(&n->lane[k], n->lane[k].length, &x, &y, &heading);
        if (n->lane[k].via_of != NET_NONE) {
            const net_lane *to = &n->lane[n->link[n->lane[k].via_of].to];
            rig_near(hypot(x - to->x0, y - to->y0), 0, 0.05);
        }
    }
    rig_near(total, 192.8 + 196 + 2 * 88.8 + 139.6 + 189.6 + 2 * 196 + 11.73 + 14.4 + 11.77 + 9.03 + 9.03 + 2 * 11.2,
             1e-6);
    rig_near(fastest, 13.9, 1e-9);

    /* the side street yields to the lane it joins, and not the other way round */
    const net_link *side = &n->link[link_between(n, 201.6, 189.6, 207.2, 195.2)];
    const net_link *main_right = &n->link[link_between(n, 196, 195.2, 207.2, 195.2)];
    const net_junction *m = &n->junction[side->junction];
    assert_int_equal(main_right->junction, side->junction);
    assert_int_equal(m->n_phases, 0);
    assert_true(net_has(&m->yields[side->bit], main_right->bit));
    assert_false(net_any(m->yields[main_right->bit]));
    assert_true(net_has(&m->crosses[main_right->bit], side->bit));
    const net_area *area = net_area_of(m, side->bit, main_right->bit);
    assert_true(area->in > 1 && area->in < area->out && area->out > 9); /* they meet at the end */

    /* lanes of one edge are neighbours */
    const int32_t right = main_right->from;
    assert_int_equal(n->lane[right].left, right + 1);
    assert_int_equal(n->lane[right + 1].right, right);
    rig_close(&r);
}

/* The program runs on the clock of the file, not on that of the episode. offset: in the file; zero_s: where the clock
 * of the file is when a cycle starts. */
static void try_program(const char *offset, const char *begin, double zero_s)
{
    static char changed[FILE_MAX];
    char text[TEXT], set[TEXT];
    snprintf(text, sizeof(text), "programID=\"0\" offset=\"%s\"", offset);
    snprintf(set, sizeof(set), "begin_s=%s", begin);
    replace(net_text, "programID=\"0\" offset=\"0\"", text, changed);
    store("corner.net.xml", changed);
    store("corner.rou.xml",
          "<routes><flow id='f' from='side_m' to='c_east' begin='0' end='2000' period='9'/></routes>");
    sim_rig r;
    rig_open(&r, settings((const char *const[]){"dt_s=1", set, NULL}));
    sim *s = &r.sim;
    const net_junction *j = &s->net.junction[0];
    const net_link *up = &s->net.link[link_between(&s->net, 301.6, 189.6, 301.6, 204)];
    const net_link *across = &s->net.link[link_between(&s->net, 296, 195.2, 307.2, 198.4)];
    assert_int_equal(up->junction, 0);
    assert_int_equal(j->n_steps, 4);
    for (int t = 0; t < 180; t++) {
        const net_show *g = &s->signal[0].show;
        const double in = fmod(t + strtod(begin, NULL) - zero_s + 900, 90);
        if (t > 0) { /* what is shown during step t was decided at its end of the step before */
            assert_int_equal(net_has(&g->green, up->bit), in < 42);
            assert_int_equal(net_has(&g->yellow, up->bit), in >= 42 && in < 45);
            assert_int_equal(net_has(&g->green, across->bit), in >= 45 && in < 87);
            assert_int_equal(net_has(&g->yellow, across->bit), in >= 87);
        }
        assert_int_equal(signal_program(s, 0), in < 42 || in >= 87 ? 0 : 1);
        sim_step(s);
    }
    assert_int_equal(s->sum.conflicting, 0);
    rig_close(&r);
}

static void test_program_of_the_file(void **test)
{
    static const struct {
        const char *offset, *begin;
        double zero_s;
    } all[] = {{"0", "0", 0},         {"0", "100", 0},           {"0", "930", 0},        {"0", "43.5", 0},
               {"10", "100", 10},     {"-7", "100", -7},         {"0:01:10", "100", 70}, {"10.5", "930", 10.5},
               {"-0:00:05", "0", -5}, {"0:00:00:20", "100", 20}, {"begin", "930", 930},  {"begin", "0", 0}};
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        try_program(all[k].offset, all[k].begin, all[k].zero_s);
    }
}

/* All of the demand is there, drives its way, and nobody is hurt. */
static void test_demand_of_the_file(void **test)
{
    sim_rig r;
    open_corner(&r, (const char *const[]){"episode_s=1000", NULL});
    sim *s = &r.sim;
    assert_non_null(strstr(r.host.log, "corner.rou.xml"));
    int64_t regular = 0, chance = 0, lorries = 0;
    for (int32_t k = 0; k < s->n_sources; k++) {
        for (int32_t i = 0; i < s->source[k].n; i++) {
            const arrival *a = &s->source[k].due[i];
            const plan_trip *t = PLAN_TRIP(&s->plan, a->trip);
            assert_true(a->due >= 0 && a->due < 1000);
            assert_true(i == 0 || s->source[k].due[i - 1].due <= a->due);
            assert_int_equal(PLAN_EDGE(&s->plan, t->edge), s->source[k].edge);
            lorries += PLAN_TYPE(&s->plan, t->type)->length == 7.1;
            chance += t->lane == PLAN_LANE_WIDEST;
            regular += t->lane != PLAN_LANE_WIDEST && PLAN_TYPE(&s->plan, t->type)->length == 4.5;
        }
    }
    assert_int_equal(regular, 120 + 20 + 30 + 2 + 1); /* "late" drives: the episode is longer */
    assert_true(chance > 15 && chance < 50);          /* 30 */
    assert_true(lorries > 3 && lorries < 25);         /* 12 */
    rig_run(&r, 1000);
    assert_int_equal(sim_waiting(s), 0);
    assert_int_equal(s->sum.inserted, regular + chance + lorries);
    assert_int_equal(s->sum.finished, s->sum.inserted);
    assert_int_equal(s->sum.collisions, 0);
    assert_true(s->driver.a == 2.6 && s->driver.b == 4.5 && s->driver.s0 == 2.5 && s->sigma == 0.5);
    const double delay = sim_delay(s);
    sim_reset(s, 1); /* the same seed: the same */
    rig_run(&r, 1000);
    assert_true(delay == sim_delay(s));
    sim_reset(s, 2);
    rig_run(&r, 1000);
    assert_true(delay != sim_delay(s));
    rig_close(&r);
}

/* Who is due while the last step goes on is demand, and waits: the trip "turn" at 10.5 s. */
static void test_due_in_the_last_second(void **test)
{
    sim_rig r;
    open_corner(&r, (const char *const[]){"episode_s=11", "dt_s=1", NULL});
    int64_t due = 0;
    rig_run(&r, 10);
    const double before = sim_delay(&r.sim) - r.sim.sum.loss_s;
    rig_run(&r, 1);
    for (int32_t k = 0; k < r.sim.n_sources; k++) {
        due += r.sim.source[k].n;
    }
    assert_int_equal(r.sim.sum.inserted + sim_waiting(&r.sim), due);
    assert_true(sim_delay(&r.sim) - r.sim.sum.loss_s >= before + 0.5);
    rig_close(&r);
}

/* The time of all that are due, in the network or before it, is the sum of their number over time. */
static void test_travel_time(void **test)
{
    sim_rig r;
    open_corner(&r, (const char *const[]){"episode_s=200", "dt_s=0.5", "max_vehicles=5", NULL});
    const tally *t = &r.sim.sum;
    double sum = 0, due = 0, most_outside = 0;
    for (int k = 0; k < 400; k++) {
        sim_step(&r.sim);
        due = (double)t->inserted + (double)sim_waiting(&r.sim);
        sum += (due - (double)t->finished) * 0.5;
        most_outside = fmax(most_outside, (double)sim_waiting(&r.sim));
    }
    assert_true(t->finished > 3 && most_outside > 3);
    rig_near(sim_travel(&r.sim), sum, 0.5 * due); /* they are due, enter and leave within a step */
    assert_true(sim_travel(&r.sim) > sim_delay(&r.sim));
    rig_close(&r);
}

/* A vehicle waiting for a full lane does not block those waiting for another lane of the edge. */
static void test_lanes_of_insertion(void **test)
{
    store("corner.net.xml", net_text);
    store("corner.rou.xml", "<routes><route id='r' edges='m_c c_east'/>"
                            "<flow id='many' route='r' departLane='0' begin='100' end='100' number='60'/>"
                            "<vehicle id='one' route='r' departLane='1' depart='101'/></routes>");
    sim_rig r;
    rig_open(&r, settings((const char *const[]){"dt_s=1", NULL}));
    sim *s = &r.sim;
    rig_run(&r, 2);
    assert_int_equal(s->n_sources, 2);
    assert_int_equal(s->sum.inserted, 2); /* the first of lane 0 stands in the way of the second */
    assert_int_equal(sim_waiting(s), 59);
    rig_close(&r);
}

/* Where and how fast a vehicle begins on an empty lane, or after one that stands 60 m from the start of the edge. */
static void test_how_vehicles_begin(void **test)
{
    static const struct {
        const char *attributes;
        double x, v; /* negative: it does not enter */
        int lane, is_behind;
    } all[] = {{"", 5, 0, 0, 0},
               {"departLane='1' departSpeed='5'", 5, 5, 1, 0},
               {"departLane='first' departPos='30'", 30, 0, 0, 0},
               {"departLane='1' departPos='-10'", 78.8, 0, 1, 0},
               {"departPos='base' departSpeed='max'", 5, 13.9, 0, 0},
               {"departPos='last'", 88.8, 0, 0, 0},
               {"departPos='1000'", 88.8, 0, 0, 0},
               {"departPos='free'", 46.9, 0, 0, 0},
               {"departSpeed='speedLimit' departLane='1'", 5, 13.9, 1, 0},
               {"departPos='40' departSpeed='0:0'", -1, 0, 0, 0},
               {"departSpeed='13.9'", 5, 13.9, 0, 0},
               {"departSpeed='14'", -1, 0, 0, 0}, /* above the limit, and speedDev is 0 */
               {"departSpeed='14' speedFactor='1.2'", 5, 14, 0, 0},
               {"departSpeed='17' speedFactor='1.2'", -1, 0, 0, 0},
               {"type='d' departSpeed='18'", 5, 18, 0, 0}, /* a drawn factor becomes 18 / 13.9 */
               {"type='d' departSpeed='60'", -1, 0, 0, 0}, /* above maxSpeed */
               {"departPos='40'", 40, 0, 0, 1},
               {"departPos='54'", -1, 0, 0, 1}, /* less than minGap from the other one */
               {"departPos='62'", -1, 0, 0, 1}, /* into it */
               {"departPos='75'", 75, 0, 0, 1}, /* ahead of it */
               {"departPos='last'", 52.5, 0, 0, 1},
               {"departPos='40' departSpeed='10'", -1, 0, 0, 1},
               {"departLane='free'", 5, 0, 1, 1},
               {"departLane='best' departSpeed='avg'", 5, 0, 0, 1}};
    store("corner.net.xml", net_text);
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        char text[4 * TEXT], message[MOCK_TEXT];
        snprintf(text, sizeof(text),
                 "<routes><vType id='t' speedDev='0'/><vType id='d' speedDev='0.1'/>"
                 "<route id='r' edges='m_c c_east'/>%s<vehicle id='v' %s route='r' depart='100' %s/></routes>",
                 all[k].is_behind ? "<vehicle id='o' type='t' route='r' depart='100' departPos='60'/>" : "",
                 strncmp(all[k].attributes, "type=", 5) == 0 ? "" : "type='t'", all[k].attributes);
        if (all[k].x < 0 && !all[k].is_behind) {
            assert_int_equal(try_files(net_text, text, message), DT_EDATA);
            continue;
        }
        store("corner.rou.xml", text);
        sim_rig r;
        rig_open(&r, settings(NULL));
        sim *s = &r.sim;
        demand_step(s);
        assert_int_equal(s->sum.inserted, 1 + all[k].is_behind - (all[k].x < 0));
        const int32_t edge = s->source[0].edge, lane = s->net.edge[edge].lane + all[k].lane;
        int found = all[k].x < 0;
        for (int32_t p = slot_front(&s->lane[lane]); p <= slot_back(&s->lane[lane]); p++) {
            found |= fabs(s->x[p] - all[k].x) < 0.1 && fabs(s->v[p] - all[k].v) < 1e-9;
        }
        if (!found) {
            print_error("%s\n", all[k].attributes);
        }
        assert_true(found);
        rig_close(&r);
    }
}

/* At a stop sign all stop; at a junction without any rule nobody looks. */
static void test_stop_signs(void **test)
{
    static char changed[FILE_MAX];
    replace(net_text, "dir=\"r\" state=\"m\"", "dir=\"r\" state=\"s\"", changed);
    store("corner.net.xml", changed);
    store("corner.rou.xml", routes_text);
    sim_rig r;
    rig_open(&r, settings(NULL));
    sim *s = &r.sim;
    const net_link *side = &s->net.link[link_between(&s->net, 201.6, 189.6, 207.2, 195.2)];
    assert_true(net_equal(s->net.junction[side->junction].stops, net_bit(side->bit)));
    const lane_state *l = &s->lane[side->from];
    int passed = 0;
    for (int i = 0; i < 1200; i++) {
        const int32_t first = l->n > 0 ? s->who[slot_front(l)] : NET_NONE;
        const double v = l->n > 0 ? s->v[slot_front(l)] : 0;
        sim_step(s);
        if (first != NET_NONE && s->vehicle[first].lane == side->via) {
            assert_true(v <= 2);
            passed++;
        }
    }
    assert_true(passed > 8 && passed < 15); /* of 21, in 10 minutes; SUMO, three seeds and two steps: 9 to 13 */
    rig_close(&r);

    replace(net_text, "id=\"m\" type=\"priority\"", "id=\"m\" type=\"unregulated\"", changed);
    store("corner.net.xml", changed);
    rig_open(&r, settings(NULL));
    assert_int_equal(r.sim.net.n_junctions, 1);
    rig_close(&r);
}

/* Compressed files are the same files. */
static void test_compressed(void **test)
{
    sim_rig r;
    open_corner(&r, NULL);
    rig_run(&r, 600);
    const double delay = sim_delay(&r.sim);
    rig_close(&r);
    const char *const files[] = {"corner.net.xml", "corner.rou.xml"}, *const texts[] = {net_text, routes_text};
    for (int k = 0; k < 2; k++) {
        char path[2 * TEXT];
        snprintf(path, sizeof(path), "%s/%s", folder, files[k]);
        gzFile out = gzopen(path, "wb");
        assert_non_null(out);
        assert_int_equal(gzputs(out, texts[k]), (int)strlen(texts[k]));
        assert_int_equal(gzclose(out), Z_OK);
    }
    rig_open(&r, settings(NULL));
    rig_run(&r, 600);
    assert_true(delay == sim_delay(&r.sim));
    rig_close(&r);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void test_bad_nets(void **test)
{
    static const bad_file bad[] = {
        {"<location ", "<location <", "not well-formed XML", DT_EDATA},
        {"<net ", "<network ", "is not the <net> of a SUMO network", DT_EDATA},
        {"edge id=\"c_north\" from", "edge id=\"c_north\" off", "has no from", DT_EDATA},
        {"edge id=\"c_north\"", "edge id=\"c_east\"", "is defined twice", DT_EDATA},
        {"length=\"192.80\"", "length=\"far\"", "length \"far\" is not a number", DT_EDATA},
        {"length=\"192.80\"", "length=\"-1\"", "length -1 is outside 0", DT_EDATA},
        {"id=\"c_east_0\" index=\"0\"", "id=\"c_east_0\" index=\"3\"", "index 3, where 0", DT_EDATA},
        {"shape=\"307.20,198.40 500.00,198.40\"", "shape=\"307.20,198.40 500.00\"", "no point x,y at \"500.00\"",
         DT_EDATA},
        {"shape=\"307.20,198.40 500.00,198.40\"", "shape=\"307.20,198.40\"", "less than 2 points", DT_EDATA},
        {"state=\"GGrr\"", "state=\"GGxr\"", "has the letter 'x'", DT_EDATA},
        {"linkIndex=\"2\" dir", "linkIndex=\"9\" dir", "linkIndex 9 is outside state", DT_EDATA},
        {"response=\"0100\"", "response=\"01x0\"", "is not made of 0 and 1", DT_EDATA},
        {"request index=\"1\"", "request index=\"2\"", "index 2, where 1", DT_EDATA},
        {"from=\"m_c\" to=\"c_east\"", "from=\"m_x\" to=\"c_east\"", "from=\"m_x\" is not an edge", DT_EDATA},
        {"fromLane=\"1\" toLane=\"0\"", "fromLane=\"2\" toLane=\"0\"", "has 2 lanes, and no lane 2", DT_EDATA},
        {"via=\":c_3_0\"", "via=\":c_9_0\"", "is not a lane of this net", DT_EDATA},
        {"via=\":c_3_0\"", "", "no lanes inside junctions", DT_EDATA},
        {"via=\":c_3_0\"", "via=\":m_0_0\"", "is in no intLanes", DT_EDATA},
        {"tl=\"c\" linkIndex=\"2\"", "tl=\"d\" linkIndex=\"2\"", "has no tlLogic", DT_EDATA},
        {"fromLane=\"0\" toLane=\"0\"", "fromLane=\"0.5\" toLane=\"0\"", "is not a whole number", DT_EDATA},
    };
    refuse_all(bad, sizeof(bad) / sizeof(bad[0]), 1);
}

static void test_bad_routes(void **test)
{
    static const bad_file bad[] = {
        {"edges=\"south_c c_north\"", "edges=\"south_c c_norht\"", "edge \"c_norht\" is not in", DT_EDATA},
        {"edges=\"south_c c_north\"", "edges=\"south_c west_m\"", "edge \"south_c\" does not lead to \"west_m\"",
         DT_EDATA},
        {"edges=\"south_c c_north\"", "edges=\"\"", "has no edges", DT_EDATA},
        {"from=\"west_m\" to=\"c_east\"", "from=\"west_m\" to=\"side_m\"", "no route for cars from \"west_m\"",
         DT_EDATA},
        {"from=\"side_m\" to=\"c_north\"", "fromTaz=\"side_m\" to=\"c_north\"", "fromTaz \"side_m\" is not known",
         DT_EDATA},
        {"route=\"up\" begin", "route=\"down\" begin", "route \"down\" is not known", DT_EDATA},
        {"type=\"lorry\"", "type=\"ship\"", "type \"ship\" is not known", DT_EDATA},
        {"vehsPerHour=\"180\"", "", "has no period", DT_EDATA},
        {"exp(0.02)", "exp(fast)", "neither a time nor exp(rate)", DT_EDATA},
        {"depart=\"110.5\"", "depart=\"1:10\"", "depart \"1:10\" is not a time", DT_EDATA},
        {"speedFactor=\"norm(0.9,0.05)\"", "speedFactor=\"about 1\"", "is neither a number nor norm", DT_EDATA},
        {"type=\"lorry\" from", "route=\"any\" from", "route \"any\" is not known", DT_EDATA},
        {"departLane=\"free\"", "departLane=\"7\"", "departLane 7 is none of its edge", DT_EDATA},
        {"<routes>", "<net>", "is not the <routes> of SUMO", DT_EDATA},
    };
    refuse_all(bad, sizeof(bad) / sizeof(bad[0]), 0);
}

static void test_no_vehicle_drives(void **test)
{
    char message[MOCK_TEXT];
    static char closed[FILE_MAX];
    assert_int_equal(try_files(net_text, "<routes><vType id=\"car\"/></routes>", message), DT_ECONFIG);
    assert_non_null(strstr(message, "corner.rou.xml"));
    assert_int_equal(try_files("<net></net>", routes_text, message), DT_EDATA);
    assert_non_null(strstr(message, "corner.net.xml"));
    replace(net_text, "id=\"side_m_0\" index", "id=\"side_m_0\" allow=\"pedestrian bus\" index", closed);
    assert_int_equal(try_files(closed, routes_text, message), DT_EDATA);
    assert_non_null(strstr(message, "edge \"side_m\" of "));
    assert_non_null(strstr(message, "has no lane for cars"));
}

/* What is left out is said, with its line. */
static void test_what_is_left_out(void **test)
{
    char message[MOCK_TEXT], where[64];
    static char changed[FILE_MAX];
    static char cars[FILE_MAX]; /* the last line of the log is seen here: nothing about lorries */
    replace(routes_text,
            "<vehicle id=\"stroll\" type=\"walker\" depart=\"210\"><route edges=\"west_m m_c c_east\"/></vehicle>", "",
            changed);
    replace(changed, "vClass=\"truck\"", "", cars);
    const int line = replace(cars, "<trip id=\"turn\"", "<person id=\"p\"/><trip id=\"turn\"", changed);
    assert_int_equal(try_files(net_text, changed, message), DT_OK);
    snprintf(where, sizeof(where), "corner.rou.xml:%d: <person> is left out", line);
    assert_non_null(strstr(message, where));
}

/* Files and settings that are not there. */
static void test_settings(void **test)
{
    static const struct {
        const char *set[6];
        const char *says;
        dt_status status;
    } bad[] = {
        {{"scenario=net", NULL}, "env_traffic.net_file: scenario \"net\" needs one", DT_ECONFIG},
        {{"scenario=net", "net_file=/nowhere/a.net.xml", NULL}, "env_traffic.routes_file: scenario", DT_ECONFIG},
        {{"scenario=net", "net_file=/nowhere/a.net.xml", "routes_file=b", NULL},
         "/nowhere/a.net.xml: No such file",
         DT_ENOTFOUND},
    };
    const dt_component *c = mock_load("plugins", "env_traffic", "env_traffic");
    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
        mock_host host;
        mock_host_init(&host);
        void *config = mock_config(c, bad[k].set), *self = calloc(1, c->state_size);
        const dt_env_ops *ops = c->ops;
        assert_int_equal(ops->create(self, &host.host, config), bad[k].status);
        assert_non_null(strstr(host.message, bad[k].says));
        ops->destroy(self);
        free(self);
        free(config);
        assert_int_equal(host.n_live, 0);
    }
}

static void test_memory(void **test)
{
    store("corner.net.xml", net_text);
    store("corner.rou.xml", routes_text);
    const dt_component *c = mock_load("plugins", "env_traffic", "env_traffic");
    traffic_config *config = mock_config(c, settings(NULL));
    *config = scenario_resolve(config);
    for (int64_t n = 1;; n++) {
        mock_host host;
        sim s = {0};
        mock_host_init(&host);
        host.fail_alloc = n;
        const dt_status st = sim_create(&s, &host.host, config);
        sim_destroy(&s);
        assert_int_equal(host.n_live, 0);
        if (st == DT_OK) {
            assert_true(n > 50);
            break;
        }
        assert_int_equal(st, DT_ENOMEM);
        assert_non_null(strstr(host.message, "no memory"));
    }
    free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_net_is_kept),
        cmocka_unit_test(test_program_of_the_file),
        cmocka_unit_test(test_demand_of_the_file),
        cmocka_unit_test(test_due_in_the_last_second),
        cmocka_unit_test(test_travel_time),
        cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_bad_nets),
        cmocka_unit_test(test_bad_routes),
        cmocka_unit_test(test_no_vehicle_drives),
        cmocka_unit_test(test_what_is_left_out),
        cmocka_unit_test(test_stop_signs),
        cmocka_unit_test(test_lanes_of_insertion),
        cmocka_unit_test(test_how_vehicles_begin),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
