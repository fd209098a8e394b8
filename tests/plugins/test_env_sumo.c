/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/env_sumo on a net of two signals that netconvert makes here: delays are those that the program sumo
 * reports. What SUMO logs is in test_env_sumo_logs.c. Skipped where SUMO or the module for it is missing.
 */
#include "sumo_pair.h"

static void test_spec(void **state)
{
    static const char *const wide[] = {"max_phases=2", "max_lanes=5", "decision_s=7", NULL};
    rig r;
    rig_open(&r, NULL);
    assert_true((r.component->flags & DT_COMP_PROCESS) != 0);
    assert_int_equal(r.spec.n_obs, 4);
    assert_string_equal(r.spec.obs[SIGNAL].name, "signal");
    assert_string_equal(r.spec.obs[SIGNAL].dims, "A 53"); /* 2 * 2 + 1 + 8 * 6 lanes */
    assert_string_equal(r.spec.obs[PHASE_TABLE].dims, "A 2 17");
    assert_string_equal(r.spec.obs[NEIGHBOUR + 1].name, "service");
    assert_string_equal(r.spec.obs[NEIGHBOUR + 1].dims, "A 2 5");
    assert_int_equal(r.spec.max_steps, 30);
    assert_true(r.spec.step_s == 10.0);
    assert_int_equal(r.spec.n_costs, 4);
    assert_string_equal(r.spec.costs[0], "conflicting_greens");
    assert_string_equal(r.spec.metrics[STRICT], "strict_delay_s");
    assert_string_equal(r.spec.metrics[NEVER], "never_inserted");
    assert_string_equal(r.spec.metrics[CONFLICT], "conflicting_greens");
    assert_string_equal(r.spec.metrics[LONGEST], "longest_red_s");
    assert_string_equal(r.spec.metrics[STUCK], "stuck");
    rig_reset(&r, 1);
    assert_int_equal(r.neighbour[0], 1); /* each other's only one */
    assert_int_equal(r.neighbour[1], 0);
    assert_int_equal(r.neighbour[4], 0);
    assert_int_equal(r.neighbour[5], 1);
    rig_close(&r);
    rig_open(&r, wide);
    assert_string_equal(r.spec.obs[SIGNAL].dims, "A 45");
    assert_int_equal(r.spec.max_steps, 43); /* the last one is shorter */
    int n_steps = 0;
    (void)play(&r, 1, 1, &n_steps);
    assert_int_equal(n_steps, 43);
    assert_true(r.metric[DEMAND] == 194);
    rig_close(&r);
}

static void test_same_seed_same_bytes(void **state)
{
    static const char *const graph[] = {"features=graph", "max_vehicles=200", NULL};
    rig r;
    int n = 0;
    rig_open(&r, graph);
    const uint64_t first = play(&r, 11, 5, &n), other = play(&r, 12, 5, &n), again = play(&r, 11, 5, &n);
    const uint64_t large = play(&r, UINT64_C(1) << 40, 5, &n), larger = play(&r, UINT64_C(3) << 40, 5, &n);
    assert_true(first == again);
    assert_true(first != other && large != larger);
    rig_close(&r);
    rig_open(&r, graph);
    assert_true(play(&r, 11, 5, &n) == first);
    /* an episode that is given up leaves nothing behind */
    rig_reset(&r, 4);
    (void)rig_step(&r, 0, 0);
    assert_true(play(&r, 11, 5, &n) == first);
    rig_close(&r);
}

/* The scenario's own program gives what the program sumo gives. */
static void test_program_is_sumo(void **state)
{
    static const char *const own[] = {"control=program", NULL};
    rig r;
    rig_open(&r, own);
    rig_reset(&r, 6);
    while (!rig_step(&r, 0, 0)) {
    }
    assert_int_equal(shell("cd '%s' && sumo -c pair.sumocfg --xml-validation never --xml-validation.net never "
                           "--no-step-log --time-to-teleport -1 --seed 6 --tripinfo-output trips.xml "
                           "--tripinfo-output.write-unfinished >sumo.log 2>&1",
                           folder),
                     0);
    char *text = read_text("trips.xml");
    double n = 0, finished = 0, sum[4] = {0};
    static const char *const name[] = {"duration", "waitingTime", "timeLoss", "departDelay"};
    for (char *e = strstr(text, "<tripinfo "); e != NULL; e = strstr(e + 1, "<tripinfo ")) {
        char value[64];
        for (int i = 0; i < 4; i++) {
            attribute(e, name[i], value);
            sum[i] += strtod(value, NULL);
        }
        attribute(e, "arrival", value);
        finished += strtod(value, NULL) >= 0;
        n++;
    }
    free(text);
    assert_true(n > 100);
    assert_true(fabs(r.metric[TRIP] - sum[0] / n) < 1e-9);
    assert_true(fabs(r.metric[WAITING] - sum[1] / n) < 1e-9);
    assert_true(fabs(r.metric[LOSS] - sum[2] / n) < 1e-9);
    assert_true(fabs(r.metric[DEPART] - sum[3] / n) < 1e-9);
    assert_true(r.metric[FINISHED] == finished);
    /* 50 + 40 + 100 of the flows, 2 trips, 2 vehicles; those due before 100 s or after 400 s are no demand */
    assert_true(r.metric[DEMAND] == 194);
    assert_true(r.metric[NEVER] == 194 - n && r.metric[NEVER] > 0);
    rig_close(&r);
}

/* Who is due while the last step goes on is demand: a trip at 120.5 s, a vehicle of a flow at 137.5 s. */
static void test_due_in_the_last_second(void **state)
{
    static const struct {
        const char *end;
        double demand, delay_s;
    } cases[] = {{"end_s=120", 15, 0}, {"end_s=121", 16, 0.5}, {"end_s=137", 27, 0}, {"end_s=138", 28, 0.5}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const set[] = {"control=program", cases[i].end, NULL};
        rig r;
        rig_open(&r, set);
        rig_reset(&r, 6);
        while (!rig_step(&r, 0, 0)) {
        }
        if (r.metric[DEMAND] != cases[i].demand) {
            fail_msg("%s: a demand of %g, not of %g", cases[i].end, r.metric[DEMAND], cases[i].demand);
        }
        const double entered = r.metric[DEMAND] - r.metric[NEVER];
        const double inside = entered * (r.metric[LOSS] + r.metric[DEPART]);
        if (r.metric[NEVER] == 0) { /* then those that entered are all, as in SUMO's tripinfo */
            assert_true(fabs(r.metric[TRAVEL] - r.metric[TRIP] - r.metric[DEPART]) < 1e-6);
        }
        assert_true(r.metric[STRICT] * r.metric[DEMAND] >= inside + cases[i].delay_s - 1e-9);
        rig_close(&r);
    }
}

/* One street never gets green: the strict delay knows, RESCO's does not. */
static void test_starved_street(void **state)
{
    static const char *const strict[] = {"starve_s=100", NULL}, *const longer[] = {"end_s=600", NULL};
    rig r;
    rig_open(&r, strict);
    rig_reset(&r, 2);
    while (!rig_step(&r, 0, 0)) { /* the main road alone */
    }
    assert_true(r.metric[NEVER] > 60);
    assert_true(r.metric[STRICT] > 60 && r.metric[RESCO] < r.metric[STRICT] - 10);
    assert_true(r.metric[LONGEST] > 250);
    assert_true(r.costs[1] > 10);
    assert_true(r.metric[CONFLICT] == 0);
    /* minus the reward is the delay, but for what is lost behind the last signal and after the last look */
    const double seen_s = -r.episode_return * 100, lost_s = r.metric[STRICT] * r.metric[DEMAND];
    assert_true(seen_s > 0.9 * lost_s && seen_s < 1.1 * lost_s);
    assert_true(r.metric[STUCK] == 0); /* nobody can have stood for more than 300 s */
    rig_close(&r);
    rig_open(&r, longer);
    rig_reset(&r, 2);
    while (!rig_step(&r, 0, 0)) {
    }
    assert_true(r.metric[STUCK] > 10);
    rig_close(&r);
}

static void test_minimum_green(void **state)
{
    static const char *const slow[] = {"min_green_s=25", NULL};
    rig r;
    rig_open(&r, slow);
    rig_reset(&r, 1);
    static const uint8_t held[] = {1, 0, 1, 0}, freed[] = {1, 1, 1, 1}, changed[] = {0, 1, 1, 1};
    assert_memory_equal(r.mask, freed, sizeof(freed)); /* an episode may begin with either */
    for (int i = 0; i < 2; i++) {
        (void)rig_step(&r, 0, 0);
        assert_memory_equal(r.mask, held, sizeof(held));
        assert_true(r.phases[4] == 1 && r.phases[ROW + 4] == 0);
        assert_true(r.phases[12] == (float)(10 * (i + 1)) && r.phases[ROW + 12] == -1);
    }
    (void)rig_step(&r, 0, 0);
    assert_memory_equal(r.mask, freed, sizeof(freed));
    (void)rig_step(&r, 1, 0);
    assert_memory_equal(r.mask, changed, sizeof(changed));
    assert_true(r.signal[1] == 1 && r.signal[2] == 7); /* shown since the yellow ended */
    assert_true(r.signal[3] == 10);                    /* and the phase before ended as yellow began */
    assert_int_equal(rig_act(&r, 0, 0), DT_EINVAL);
    assert_non_null(strstr(r.host.message, "phase 0 after 7 s of phase 1, min_green_s is 25"));
    assert_int_equal(rig_act(&r, 1, 2), DT_EINVAL);
    assert_non_null(strstr(r.host.message, "agent 1 (signal b): phase 2, expected 0 to 1"));
    assert_int_equal(rig_act(&r, -1, 0), DT_EINVAL);
    rig_close(&r);
}

static void test_observations(void **state)
{
    static const char *const few[] = {"features=graph", "max_vehicles=6", "near_m=30", NULL};
    rig r;
    rig_open(&r, few);
    rig_reset(&r, 1);
    bool had_more = false;
    double due = 0;
    while (!rig_step(&r, 1, 1)) { /* green for the side streets: the main road queues */
        const float *side = r.phases + ROW;
        due += (double)side[14];
        assert_true(side[14] <= side[0] - side[1] && (side[14] == 0 || side[15] > 0));
        assert_true((side[0] > 0) == (side[16] < 200));
        assert_true(r.size[0] >= AGENTS && r.size[0] <= AGENTS + 6);
        had_more |= r.size[0] == AGENTS + 6;
        assert_int_equal(r.rowptr[0], 0);
        assert_int_equal(r.rowptr[r.size[0]], r.size[1]);
        for (int64_t i = 0; i < r.size[0]; i++) {
            assert_int_equal(r.col[r.rowptr[i]], i); /* itself first */
            assert_true(r.node[i * 9 + 8] == (i < AGENTS ? 1.0F : 0.0F));
        }
        assert_true(r.agent_node[0] == 0 && r.agent_node[1] == 1);
    }
    assert_true(had_more);
    /* the middle of the stop lines, from the middle of the net */
    assert_true(fabs((double)(r.node[9] - r.node[0]) - 250) < 1 && fabs((double)(r.node[9] + r.node[0])) < 1);
    const float *a = r.phases;              /* what phase 0 of signal a would let go */
    assert_true(a[1] > 20 && a[0] >= a[1]); /* the queue of the main road stands */
    assert_true(a[5] > 4 && a[5] < a[0]);   /* and its head is near */
    assert_true(a[6] > 100 && a[2] > 20);
    assert_true(a[8] == a[0] && a[9] == a[5]); /* all of them go straight on */
    assert_true(a[7] == 0 && a[ROW + 7] == 1);
    assert_true(a[10] > 100 && a[ROW + 10] == 0); /* red all the while; the side street has green */
    assert_true(a[11] == 0 && a[ROW + 11] == 0 && a[12] == -1 && a[ROW + 12] > 100);
    assert_true(a[13] > 10 && a[13] <= a[1]); /* it stands on two lanes */
    assert_true(a[14] == 0 && a[15] < 1 && a[16] < 5);
    assert_true(due > 2);
    rig_close(&r);
}

/* Formulas see the same traffic as the observations and the built-in rewards. */
static void test_formulas(void **state)
{
    static const char row[] =
        "observation=queue, exit_queue, pressure, waiting_s, diff_waiting_s, delay_s, throughput, "
        "changed_phase, shown_s, vehicles, speed_mps, relative_speed, longest_wait_s, pending, "
        "emergency_brakes, starvation, phase.near, phase.red_s";
    enum { Q_QUEUE, Q_EXIT, Q_PRESSURE, Q_WAITING, Q_DIFF, Q_DELAY, Q_THROUGHPUT, Q_CHANGES, Q_SHOWN, Q_VEHICLES };
    enum {
        Q_SPEED = Q_VEHICLES + 1,
        Q_RELATIVE,
        Q_LONGEST,
        Q_PENDING,
        Q_BRAKES,
        Q_STARVATION,
        Q_NEAR,
        Q_RED = Q_NEAR + PHASES
    };
    static const char *const set[] = {"reward=-delay_s", row, NULL}, *const both[] = {row, "reward=-pressure", NULL};
    static const char *const queue[] = {"reward=queue", NULL}, *const pressure[] = {"reward=pressure", NULL};
    static const char *const team[] = {"reward=-queue*10", "reward_shared=1", NULL};
    rig r, plain, other;
    rig_open(&plain, NULL);
    rig_reset(&plain, 3);
    double delay[64] = {0}, waiting = 0, passed = 0, sum_diff = 0;
    float first[AGENTS * PHASES * ROW] = {0};
    int n = 0;
    for (bool is_over = false; !is_over; n++) { /* the built-in reward, step by step */
        is_over = rig_step(&plain, n / 3 % 2, 0);
        delay[n] = (double)plain.reward[0];
        memcpy(first, plain.phases, sizeof(first));
    }
    rig_close(&plain);
    rig_open(&r, set);
    assert_string_equal(r.spec.obs[SIGNAL].dims, "A 20");
    rig_reset(&r, 3);
    assert_true(r.signal[Q_DIFF] == 0 && r.signal[Q_THROUGHPUT] == 0 && r.signal[Q_DELAY] == 0);
    int32_t before = -1;
    for (int i = 0; i < n; i++) {
        const int32_t action = i / 3 % 2;
        const double waiting_before = i > 0 ? waiting : 0;
        assert_int_equal(rig_step(&r, action, 0), i == n - 1);
        const float *q = r.signal;
        assert_true(r.reward[0] == (float)delay[i]); /* the same sum, in the same order */
        assert_true(fabs((double)q[Q_DELAY] + 100 * delay[i]) < 1e-3);
        assert_true(q[Q_PRESSURE] == q[Q_QUEUE] - q[Q_EXIT]);
        waiting = (double)q[Q_WAITING];
        assert_true(fabs((double)q[Q_DIFF] - (waiting_before - waiting)) < 1e-3);
        assert_true(q[Q_CHANGES] == (i > 0 && action != before));
        assert_true(q[Q_LONGEST] <= q[Q_WAITING] && q[Q_SPEED] >= 0 && q[Q_RELATIVE] >= 0 && q[Q_RELATIVE] < 1.5F);
        assert_true(q[Q_NEAR] == r.phases[5] && q[Q_NEAR + 1] == r.phases[ROW + 5]);
        assert_true(q[Q_RED] == 0 || q[Q_RED] == r.phases[10]);
        assert_true(q[Q_SHOWN] >= 0 && q[Q_BRAKES] == r.cost[3] && q[Q_STARVATION] == r.cost[1]);
        assert_true(q[Q_VEHICLES] == r.phases[0] + r.phases[ROW]); /* no lane is of both phases */
        passed += (double)q[Q_THROUGHPUT];
        sum_diff += (double)q[Q_DIFF];
        before = action;
    }
    assert_memory_equal(first, r.phases, sizeof(first)); /* the table stays as it is */
    assert_true(waiting > 0 && fabs(sum_diff + waiting) < 0.1);
    assert_true(passed > 30 && passed < 194);
    rig_close(&r);
    /* names of built-in rewards, which are negative already, and the same by formulas: a step takes 10 s */
    static const struct {
        const char *const *built_in, *by;
    } pairs[] = {{queue, "reward=-10*queue"}, {pressure, "reward=-10*pressure"}};
    for (size_t k = 0; k < 2; k++) {
        const char *const formula[] = {pairs[k].by, NULL};
        double sum = 0;
        rig_open(&r, pairs[k].built_in);
        rig_reset(&r, 4);
        while (!rig_step(&r, 1, 1)) {
        }
        sum = r.episode_return;
        rig_close(&r);
        rig_open(&other, formula);
        rig_reset(&other, 4);
        while (!rig_step(&other, 1, 1)) {
        }
        assert_true(sum < -1 && fabs(sum - other.episode_return) < 1e-6);
        rig_close(&other);
    }
    rig_open(&r, team);
    rig_reset(&r, 4);
    while (!rig_step(&r, 1, 0)) {
        assert_true(r.reward[0] == r.reward[1]);
    }
    rig_close(&r);
    rig_open(&r, both); /* an episode is the same whatever the instance did before */
    const uint64_t hash = play(&r, 7, 5, &n);
    (void)play(&r, 8, 6, &n);
    assert_true(play(&r, 7, 5, &n) == hash);
    rig_close(&r);
}

/* the pair, of whose signals only a has lights, until 250 s */
static void make_single(void)
{
    assert_int_equal(shell("cd '%s' && sed '/id=\"b\"/s/ type=\"traffic_light\"//' pair.nod.xml >single.nod.xml && "
                           "netconvert -n single.nod.xml -e pair.edg.xml -o single.net.xml --no-turnarounds "
                           "--xml-validation never >single.log 2>&1",
                           folder),
                     0);
    write_text("single.sumocfg", "<configuration><input><net-file value=\"single.net.xml\"/><route-files "
                                 "value=\"pair.rou.xml\"/></input><time><begin value=\"100\"/><end value=\"250\"/>"
                                 "</time></configuration>");
}

/* an episode of signal a alone under fixed actions: rewards and what it sees */
static double play_single(rig *r, uint64_t seed, int *n_steps)
{
    double sum = 0;
    dt_status st = DT_OK;
    rig_clear(r);
    r->alive[1] = 1; /* as an episode of two left it */
    r->io.act_i = NULL;
    assert_int_equal(r->ops->reset(r->self, &r->io, seed), DT_OK);
    assert_true(r->alive[0] == 1 && (r->spec.n_agents == 1 || r->alive[1] == 0));
    for (*n_steps = 0; st == DT_OK; ++*n_steps) {
        st = rig_act(r, *n_steps / 2 % 2, 7); /* nobody reads the action of an empty place */
        assert_true(st == DT_OK || st == DT_DONE);
        assert_true(r->spec.n_agents == 1 || (r->alive[1] == 0 && r->truncated[1] == 0 && r->reward[1] == 0));
        for (int i = 0; i < PHASES * ROW; i++) {
            sum += (double)r->reward[0] * (i + 1) + (double)r->phases[i];
        }
    }
    return sum + r->metric[STRICT];
}

/* Episodes of several scenarios are those of each alone, in places and rows that all have room in. */
static void test_several_scenarios(void **state)
{
    static char also[2 * TEXT];
    const char *const several[] = {"features=graph", "max_vehicles=200", also, NULL};
    rig r;
    int n = 0;
    make_single();
    snprintf(also, sizeof(also), "also=%s/single.sumocfg", folder);
    rig_open(&r, several);
    assert_int_equal(r.spec.max_steps, 30);
    const uint64_t pair = play(&r, 12, 5, &n);
    assert_int_equal(n, 30);
    const double single = play_single(&r, 7, &n);
    assert_int_equal(n, 15);
    assert_true(play(&r, 12, 5, &n) == pair); /* nothing is left of the other net */
    assert_true(play_single(&r, 7, &n) == single);
    rig_close(&r);

    rig_open(&r, (const char *const[]){"features=graph", "max_vehicles=200", NULL});
    assert_true(play(&r, 12, 5, &n) == pair);
    rig_close(&r);
    assert_int_equal(rig_try(&r, "single.sumocfg", NULL), DT_OK);
    rig_lend(&r);
    assert_int_equal(r.spec.n_agents, 1);
    assert_true(play_single(&r, 7, &n) == single);
    rig_close(&r);
}

static void refused(const char *scenario, const char *const *set, dt_status st, const char *words)
{
    rig r;
    const dt_status is = rig_try(&r, scenario, set);
    if (is != st || strstr(r.host.message, words) == NULL) {
        print_error("%d '%s', expected %d '%s'\n", is, r.host.message, st, words);
        assert_true(false);
    }
    rig_close(&r);
}

static void test_refusals(void **state)
{
    refused("none.sumocfg", NULL, DT_EDATA, "none.sumocfg'");
    write_text("broken.sumocfg", "<configuration><input>");
    refused("broken.sumocfg", NULL, DT_EDATA, "broken.sumocfg");
    write_text("torn.net.xml", "<net><edge id=\"x\"");
    write_text("torn.sumocfg", "<configuration><input><net-file value=\"torn.net.xml\"/></input></configuration>");
    refused("torn.sumocfg", NULL, DT_EDATA, "torn.net.xml");
    write_text("netless.sumocfg", "<configuration><input><net-file value=\"no.net.xml\"/></input></configuration>");
    refused("netless.sumocfg", NULL, DT_EDATA, "no.net.xml");
    write_text("option.sumocfg", "<configuration><input><nosuch value=\"1\"/></input></configuration>");
    refused("option.sumocfg", NULL, DT_EDATA, "option.sumocfg'.;"); /* the name, not that of a copy in memory */
    write_text("endless.sumocfg", "<configuration><input><net-file value=\"pair.net.xml\"/></input></configuration>");
    refused("endless.sumocfg", NULL, DT_ECONFIG, "names no end of the simulation; set end_s");
    assert_int_equal(shell("cd '%s' && sed 's/ type=\"traffic_light\"//' pair.nod.xml >plain.nod.xml && netconvert -n "
                           "plain.nod.xml -e pair.edg.xml -o plain.net.xml --xml-validation never >plain.log 2>&1",
                           folder),
                     0);
    write_text("plain.sumocfg", "<configuration><input><net-file value=\"plain.net.xml\"/></input><time><end "
                                "value=\"60\"/></time></configuration>");
    refused("plain.sumocfg", NULL, DT_ECONFIG, "none of the 0 traffic signals");
    static const struct {
        const char *set[2];
        dt_status st;
        const char *words;
    } row[] = {
        {{"module=/nowhere/env_sumo_shim.so"}, DT_EUNSUPPORTED, "Debian: apt-get install sumo"},
        {{"module=/dev/null"}, DT_EUNSUPPORTED, "SUMO cannot be loaded: "},
        {{"module=libm.so.6"}, DT_EUNSUPPORTED, "there is no libm.so.6"},
        {{"max_phases=1"}, DT_ECONFIG, "2 green phases, above max_phases = 1"},
        {{"decision_s=2.5"}, DT_ECONFIG, "yellow_s 3 leaves no green in decision_s 2.5"},
        {{"decision_s=4.5"}, DT_ECONFIG, "decision_s 4.5 s is not a whole number of SUMO's steps of 1 s"},
        {{"begin_s=500"}, DT_EDATA, "The end time should be after the begin time"},
        {{"begin_s=400"}, DT_ECONFIG, "the end, 400 s, is not after the begin, 400 s"},
        {{"near_m=300"}, DT_ECONFIG, "near_m 300 is beyond detection_m 200"},
        {{"sumo_options=--random"}, DT_ECONFIG, "--random is set by dtrain itself"},
        {{"sumo_options=--no-such-thing 1"}, DT_EDATA, "no-such-thing"},
        {{"reward=-queue / vehicles"}, DT_ECONFIG, "env_sumo.reward = \"-queue / vehicles\": character 8: the divisor"},
        {{"reward= "}, DT_ECONFIG, "env_sumo.reward is empty"},
        {{"observation=queue, near"}, DT_ECONFIG, "env_sumo.observation = \"queue, near\": character 8: \"near\" is"},
        {{"reward=-queue", "control=vehicles"}, DT_ECONFIG, "env_sumo.reward is for signals that learn"},
        {{"also=no.sumocfg"}, DT_EDATA, "no.sumocfg: SUMO cannot load it"},
        {{"also=,a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A,B,C,D,E,F"},
         DT_ECONFIG,
         "also names more than 31 scenarios"},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        const char *const set[] = {row[i].set[0], row[i].set[1], NULL};
        refused("pair.sumocfg", set, row[i].st, row[i].words);
    }
}

/* SUMO warns of letters after the last link, and runs programs that show a state twice. */
static void test_states_that_sumo_takes(void **state)
{
    rig r;
    int n = 0;
    rig_open(&r, NULL);
    const uint64_t pair = play(&r, 3, 3, &n);
    rig_close(&r);
    assert_int_equal(
        shell("cd '%s' && sed '/<phase /s/ state=\"[^\"]*/&rGy/' pair.net.xml >longer.net.xml && "
              "awk '{ print } /<phase / && !was { print } { was = /<phase / }' longer.net.xml >twice.net.xml",
              folder),
        0);
    for (int i = 0; i < 2; i++) {
        char cfg[TEXT];
        snprintf(cfg, sizeof(cfg),
                 "<configuration><net-file value=\"%s.net.xml\"/><route-files value=\"pair.rou.xml\"/>"
                 "<begin value=\"100\"/><end value=\"400\"/></configuration>",
                 i == 0 ? "longer" : "twice");
        write_text("states.sumocfg", cfg);
        assert_int_equal(rig_try(&r, "states.sumocfg", NULL), DT_OK);
        rig_lend(&r);
        assert_true(r.spec.n_agents == AGENTS && r.spec.choices[0] == PHASES);
        const uint64_t same = play(&r, 3, 3, &n);
        assert_int_equal(n, 30);
        assert_true(same == pair || i == 1); /* its program takes longer */
        rig_close(&r);
    }
}

static void test_no_vehicle_drives(void **state)
{
    static const char *const late[] = {"begin_s=1000", "end_s=1020", NULL};
    rig r;
    rig_open(&r, late);
    rig_reset(&r, 1);
    assert_false(rig_step(&r, 0, 0));
    assert_int_equal(rig_act(&r, 0, 0), DT_EDATA);
    assert_non_null(strstr(r.host.message, "1000 s to 1020 s"));
    assert_int_equal(rig_act(&r, 0, 0), DT_EINVAL);
    assert_non_null(strstr(r.host.message, "reset first"));
    rig_close(&r);
}

/* A second instance in this process is refused and does no harm to the first. */
static void test_one_per_process(void **state)
{
    rig first, second;
    rig_open(&first, NULL);
    assert_int_equal(rig_try(&second, "pair.sumocfg", NULL), DT_EUNSUPPORTED);
    assert_non_null(strstr(second.host.message, "libsumo has one simulation per process"));
    rig_close(&second);
    rig_reset(&first, 1);
    assert_false(rig_step(&first, 0, 0));
    rig_close(&first);
    rig_open(&second, NULL);
    rig_close(&second);
}

static void test_memory(void **state)
{
    static const char *const graph[] = {"features=graph", "max_vehicles=200", NULL};
    for (int64_t n = 1;; n++) {
        rig r;
        char cfg[2 * TEXT];
        memset(&r, 0, sizeof(r));
        mock_host_init(&r.host);
        mock_host_serve(&r.host, DT_SVC_FEATURES, &features);
        r.component = mock_load("plugins", "env_sumo", "env_sumo");
        r.ops = r.component->ops;
        snprintf(cfg, sizeof(cfg), "sumocfg=%s/pair.sumocfg", folder);
        const char *const set[] = {cfg, graph[0], graph[1], NULL};
        r.config = mock_config(r.component, set);
        r.self = calloc(1, r.component->state_size);
        r.host.fail_alloc = n;
        const dt_status st = r.ops->create(r.self, &r.host.host, r.config);
        rig_close(&r);
        if (st == DT_OK) {
            assert_true(n > 20);
            return;
        }
        assert_int_equal(st, DT_ENOMEM);
        assert_non_null(strstr(r.host.message, "no memory"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec),
        cmocka_unit_test(test_same_seed_same_bytes),
        cmocka_unit_test(test_several_scenarios),
        cmocka_unit_test(test_program_is_sumo),
        cmocka_unit_test(test_due_in_the_last_second),
        cmocka_unit_test(test_starved_street),
        cmocka_unit_test(test_minimum_green),
        cmocka_unit_test(test_observations),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_states_that_sumo_takes),
        cmocka_unit_test(test_no_vehicle_drives),
        cmocka_unit_test(test_one_per_process),
        cmocka_unit_test(test_memory),
    };
    const int code = make_folder();
    return code != 0 ? code : cmocka_run_group_tests(tests, make_net, remove_folder);
}
