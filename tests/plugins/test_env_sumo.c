/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/env_sumo on a net of two signals that netconvert makes here: what SUMO shows is read from SUMO's own
 * log of signal states and not from the environment, delays are those that the program sumo reports. Skipped where
 * SUMO or the module for it is missing.
 */
#include "sumo_folder.h"

#include "dtrain/ext/scene.h"

enum { AGENTS = 2, PHASES = 2, ROW = 17, MAX_ROW = 256, MAX_NODES = 300, BEGIN = 100, END = 400 };
enum { SIGNAL, PHASE_TABLE, NEIGHBOUR, NODES, ROWPTR, COL, EDGES, AGENT_NODE };
enum {
    STRICT,
    RESCO,
    TRIP,
    WAITING,
    LOSS,
    DEPART,
    QUEUE,
    DEMAND,
    FINISHED,
    NEVER,
    CONFLICT = 14,
    LONGEST = 15,
    STUCK = 17
};

typedef struct rig {
    mock_host host;
    const dt_component *component;
    const dt_env_ops *ops;
    void *config, *self;
    dt_env_spec spec;
    dt_env_io io;
    void *obs[9];
    float signal[AGENTS * MAX_ROW], phases[AGENTS * PHASES * ROW], service[AGENTS * PHASES * 5], node[MAX_NODES * 9],
        edge[MAX_NODES * 16 * 4];
    int32_t neighbour[AGENTS * 4], rowptr[MAX_NODES + 1], col[MAX_NODES * 16], agent_node[AGENTS], action[AGENTS];
    int64_t size[2];
    uint8_t alive[AGENTS], mask[AGENTS * PHASES], terminated[AGENTS], truncated[AGENTS];
    float reward[AGENTS], cost[AGENTS * 4];
    double metric[DT_ENV_MAX_METRICS], episode_return, costs[4];
} rig;

/* DT_OK or what create said; settings follow sumocfg=<scenario> */
static dt_status rig_try(rig *r, const char *scenario, const char *const *more)
{
    static char cfg[2 * TEXT];
    const char *set[16] = {cfg};
    memset(r, 0, sizeof(*r));
    mock_host_init(&r->host);
    mock_host_serve(&r->host, DT_SVC_FEATURES, &features);
    r->component = mock_load("plugins", "env_sumo", "env_sumo");
    assert_non_null(r->component);
    snprintf(cfg, sizeof(cfg), "sumocfg=%s/%s", folder, scenario);
    for (int i = 0; more != NULL && more[i] != NULL; i++) {
        set[i + 1] = more[i];
    }
    r->ops = r->component->ops;
    r->config = mock_config(r->component, set);
    r->self = calloc(1, r->component->state_size);
    const dt_status st = r->component->check(&r->host.host, r->config);
    return st != DT_OK ? st : r->ops->create(r->self, &r->host.host, r->config);
}

static void rig_close(rig *r)
{
    r->ops->destroy(r->self);
    free(r->self);
    free(r->config);
    assert_int_equal(r->host.n_live, 0);
}

/* what it gives has places to go to */
static void rig_lend(rig *r)
{
    void *const obs[9] = {r->signal, r->phases, r->neighbour,  r->node,   r->rowptr,
                          r->col,    r->edge,   r->agent_node, r->service};
    r->spec.struct_size = sizeof(r->spec);
    assert_int_equal(r->ops->spec(r->self, &r->spec), DT_OK);
    memcpy(r->obs, obs, sizeof(obs));
    r->obs[r->spec.n_obs - 1] = r->service;
    r->io = (dt_env_io){.struct_size = sizeof(r->io),
                        .n_obs = r->spec.n_obs,
                        .obs = r->obs,
                        .size = r->size,
                        .alive = r->alive,
                        .mask = r->mask,
                        .reward = r->reward,
                        .cost = r->cost,
                        .terminated = r->terminated,
                        .truncated = r->truncated,
                        .metric = r->metric};
}

static void rig_open(rig *r, const char *const *more)
{
    if (rig_try(r, "pair.sumocfg", more) != DT_OK) {
        print_error("%s\n", r->host.message);
    }
    assert_int_equal(r->host.status, DT_OK);
    rig_lend(r);
    assert_int_equal(r->spec.n_agents, AGENTS);
    assert_int_equal(r->spec.choices[0], PHASES);
}

static void rig_clear(rig *r)
{
    memset(r->signal, 0, sizeof(r->signal));
    memset(r->phases, 0, sizeof(r->phases));
    memset(r->service, 0, sizeof(r->service));
    memset(r->reward, 0, sizeof(r->reward));
    memset(r->cost, 0, sizeof(r->cost));
    memset(r->mask, 1, sizeof(r->mask));
    memset(r->alive, 0, sizeof(r->alive));
    memset(r->terminated, 0, sizeof(r->terminated));
    memset(r->truncated, 0, sizeof(r->truncated));
}

static void rig_reset(rig *r, uint64_t seed)
{
    rig_clear(r);
    r->io.act_i = NULL;
    r->episode_return = 0;
    memset(r->costs, 0, sizeof(r->costs));
    if (r->ops->reset(r->self, &r->io, seed) != DT_OK) {
        print_error("%s\n", r->host.message);
        assert_true(false);
    }
    assert_true(r->alive[0] == 1 && r->alive[1] == 1);
}

static dt_status rig_act(rig *r, int32_t first, int32_t second)
{
    rig_clear(r);
    r->action[0] = first;
    r->action[1] = second;
    r->io.act_i = r->action;
    return r->ops->step(r->self, &r->io);
}

static bool rig_step(rig *r, int32_t first, int32_t second)
{
    const dt_status st = rig_act(r, first, second);
    if (st < 0) {
        print_error("%s\n", r->host.message);
    }
    assert_true(st == DT_OK || st == DT_DONE);
    for (int k = 0; k < AGENTS; k++) {
        assert_int_equal(r->terminated[k], 0);
        assert_int_equal(r->truncated[k], st == DT_DONE);
        assert_int_equal(r->alive[k], st == DT_OK);
        assert_true(isfinite(r->reward[k]));
        r->episode_return += (double)r->reward[k];
        for (int c = 0; c < 4; c++) {
            r->costs[c] += (double)r->cost[k * 4 + c];
        }
    }
    return st == DT_DONE;
}

/* one episode under random actions that the mask allows; a number that differs where any bit differs */
static uint64_t play(rig *r, uint64_t seed, uint64_t actions, int *n_steps)
{
    dt_random random;
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    bool is_over = false;
    dt_random_init(&random, actions, 0);
    *n_steps = 0;
    for (rig_reset(r, seed); !is_over; ++*n_steps) {
        int32_t action[AGENTS];
        for (int k = 0; k < AGENTS; k++) {
            action[k] = (int32_t)dt_random_below(&random, PHASES);
            if (r->mask[k * PHASES + action[k]] == 0) {
                action[k] = 1 - action[k];
            }
        }
        is_over = rig_step(r, action[0], action[1]);
        const struct {
            const void *p;
            size_t n;
        } seen[] = {{r->signal, sizeof(r->signal)},     {r->phases, sizeof(r->phases)},
                    {r->reward, sizeof(r->reward)},     {r->cost, sizeof(r->cost)},
                    {r->node, (size_t)r->size[0] * 36}, {r->col, (size_t)r->size[1] * 4},
                    {r->edge, (size_t)r->size[1] * 16}};
        for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
            for (size_t b = 0; b < seen[i].n; b++) {
                hash = (hash ^ ((const uint8_t *)seen[i].p)[b]) * UINT64_C(1099511628211);
            }
        }
    }
    for (size_t b = 0; b < r->spec.n_metrics * sizeof(double); b++) {
        hash = (hash ^ ((const uint8_t *)r->metric)[b]) * UINT64_C(1099511628211);
    }
    return hash;
}

/* ---- the net ----------------------------------------------------------------------------------------------------- */

static char *read_text(const char *name)
{
    char path[2 * TEXT];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *text = calloc(1, 1 << 22);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 22) - 1, f) > 0);
    fclose(f);
    return text;
}

static void write_text(const char *name, const char *text)
{
    char path[2 * TEXT];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int make_net(void **state)
{
    (void)state;
    const char *source = getenv("DT_SRCDIR");
    source = source != NULL ? source : ".";
    return shell("cp %s/tests/fixtures/sumo/pair.* '%s' && chmod u+w '%s'/* && cd '%s' && netconvert -n pair.nod.xml "
                 "-e pair.edg.xml -o pair.net.xml --no-turnarounds --xml-validation never >netconvert.log 2>&1",
                 source, folder, folder, folder);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_spec(void **state)
{
    (void)state;
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

typedef struct shown_signal { /* what SUMO's log says of one */
    char state[64];
    int since, at, n_changes;
} shown_signal;

static void attribute(const char *element, const char *name, char *out)
{
    char key[32];
    snprintf(key, sizeof(key), " %s=\"", name);
    const char *at = strstr(element, key);
    assert_non_null(at);
    at += strlen(key);
    snprintf(out, 64, "%.*s", (int)strcspn(at, "\""), at);
}

static bool has(char c, const char *letters)
{
    return c != '\0' && strchr(letters, c) != NULL;
}

/* one signal's next second; yellow lasts 3 s, ends every green, and everything changes when a step says so */
static void check_second(shown_signal *s, const char *letters, int at)
{
    if (s->at == 0) {
        assert_int_equal(at, BEGIN);
        s->since = at;
    } else if (strcmp(s->state, letters) != 0) {
        const int in_step = (at - BEGIN) % 10;
        const bool was_yellow = strchr(s->state, 'y') != NULL, is_yellow = strchr(letters, 'y') != NULL;
        assert_int_equal(in_step, was_yellow ? 3 : 0);
        assert_true(at - s->since >= (was_yellow ? 3 : 7));
        for (size_t i = 0; letters[i] != '\0'; i++) {
            assert_false(has(s->state[i], "Gg") && has(letters[i], "r")); /* skipped yellow */
            assert_false(has(s->state[i], "y") && has(letters[i], "Gg"));
            assert_true(!is_yellow || !has(letters[i], "Gg") || has(s->state[i], "Gg")); /* no green before the time */
        }
        s->since = at;
        s->n_changes++;
    } else {
        assert_int_equal(at, s->at + 1);
        assert_true(strchr(letters, 'y') == NULL || at - s->since < 3);
    }
    /* the two roads of this net meet: never both green */
    const size_t n = strlen(letters);
    bool first = false, second = false;
    for (size_t i = 0; i < n; i++) {
        first |= has(letters[i], "Gg") && has("rrrGGGgrrrGGGg"[i], "Gg");
        second |= has(letters[i], "Gg") && has("GGgrrrrGGgrrrr"[i], "Gg");
    }
    assert_false(first && second);
    snprintf(s->state, sizeof(s->state), "%s", letters);
    s->at = at;
}

static void test_signals_as_sumo_shows_them(void **state)
{
    (void)state;
    char option[3 * TEXT], log[2 * TEXT];
    snprintf(log, sizeof(log),
             "<additional><timedEvent type=\"SaveTLSStates\" source=\"a\" dest=\"states.xml\"/>"
             "<timedEvent type=\"SaveTLSStates\" source=\"b\" dest=\"states.xml\"/></additional>");
    write_text("states.add.xml", log);
    snprintf(option, sizeof(option), "sumo_options=--additional-files %s/states.add.xml", folder);
    const char *const logged[] = {option, NULL};
    rig r;
    rig_open(&r, logged);
    int n_steps = 0;
    (void)play(&r, 3, 3, &n_steps);
    rig_close(&r);
    assert_int_equal(n_steps, 30);
    assert_true(r.metric[FINISHED] > 20); /* the demand did come */
    assert_true(r.metric[CONFLICT] == 0 && r.costs[0] == 0);
    char *text = read_text("states.xml");
    shown_signal signal[2] = {{.at = 0}, {.at = 0}};
    for (char *e = strstr(text, "<tlsState "); e != NULL; e = strstr(e + 1, "<tlsState ")) {
        char id[64], time[64], letters[64];
        attribute(e, "id", id);
        attribute(e, "time", time);
        attribute(e, "state", letters);
        check_second(&signal[id[0] == 'b'], letters, (int)strtod(time, NULL));
    }
    for (int k = 0; k < 2; k++) {
        assert_int_equal(signal[k].at, END - 1);
        assert_true(signal[k].n_changes > 10);
    }
    free(text);
}

/* ---- how it looks ------------------------------------------------------------------------------------------------ */

enum { MOMENTS = END - BEGIN, SEEN = 200, LIGHTS = 16 };
static const double MIDDLE_X = 425, MIDDLE_Y = 200; /* of the net: netconvert makes its corner 0, 0 */

typedef struct film { /* every second of an episode */
    const dt_scene_api *api;
    void *self;
    dt_scene now[MOMENTS];
    dt_scene_vehicle vehicle[MOMENTS][SEEN];
    dt_scene_signal signal[MOMENTS][LIGHTS];
    uint32_t n;
} film;

static void take_picture(void *user)
{
    film *f = user;
    assert_true(f->n < MOMENTS);
    f->now[f->n] = (dt_scene){.struct_size = sizeof(dt_scene),
                              .cap_vehicles = SEEN,
                              .vehicle = f->vehicle[f->n],
                              .cap_signals = LIGHTS,
                              .signal = f->signal[f->n]};
    f->api->look(f->self, &f->now[f->n]);
    assert_true(f->now[f->n].n_vehicles <= SEEN && f->now[f->n].n_signals <= LIGHTS);
    f->n++;
}

/* The moment that SUMO logs as `time`: what a step of it left behind. */
static const dt_scene *moment_of(const film *f, double time)
{
    const uint32_t i = (uint32_t)lround(time - BEGIN);
    assert_true(i < f->n && fabs(f->now[i].time_s - (time + 1 - BEGIN)) < 1e-9);
    return &f->now[i];
}

static double number_in(const char *element, const char *name)
{
    char text[64];
    attribute(element, name, text);
    return strtod(text, NULL);
}

/* Each vehicle of SUMO's log is in the picture, and nobody else is. */
static void check_vehicles(const film *f)
{
    char *text = read_text("fcd.xml");
    uint32_t left[MOMENTS], n = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        left[i] = f->now[i].n_vehicles;
    }
    for (char *t = strstr(text, "<timestep "); t != NULL; t = strstr(t + 1, "<timestep ")) {
        const dt_scene *now = moment_of(f, number_in(t, "time"));
        char *end = strstr(t + 1, "<timestep ");
        for (char *e = strstr(t, "<vehicle "); e != NULL && (end == NULL || e < end); e = strstr(e + 1, "<vehicle ")) {
            const double x = number_in(e, "x") - MIDDLE_X, y = number_in(e, "y") - MIDDLE_Y;
            const double heading = (90 - number_in(e, "angle")) * acos(-1) / 180;
            uint32_t i = 0;
            while (i < now->n_vehicles &&
                   fabs((double)now->vehicle[i].x - x) + fabs((double)now->vehicle[i].y - y) > 0.02) {
                i++;
            }
            assert_true(i < now->n_vehicles);
            assert_true(fabs((double)now->vehicle[i].speed - number_in(e, "speed")) < 0.006);
            assert_true(fabs(remainder((double)now->vehicle[i].heading - heading, 2 * acos(-1))) < 1e-3);
            assert_true(now->vehicle[i].agent == -1 && now->vehicle[i].length == 4.5f && now->vehicle[i].width == 1.8f);
            assert_true(now->vehicle[i].risk >= 0 && now->vehicle[i].risk <= 1);
            left[now - f->now]--;
            n++;
        }
    }
    for (uint32_t i = 0; i < f->n; i++) {
        assert_int_equal(left[i], 0);
    }
    assert_true(n > 2000);
    free(text);
}

typedef struct light { /* what is shown at the end of a lane */
    char lane[160], of;
    double x, y;
} light;

/* Stop lines as the net's file has them: of every lane with a link that a signal controls. */
static uint32_t read_lights(const char *net, light *out)
{
    uint32_t n = 0;
    for (const char *e = strstr(net, "<connection "); e != NULL; e = strstr(e + 1, "<connection ")) {
        char from[64], lane[64], id[160], tl[64];
        const char *end = strchr(e, '>'), *is_controlled = strstr(e, " tl=\"");
        if (is_controlled == NULL || is_controlled > end) {
            continue;
        }
        attribute(e, "from", from);
        attribute(e, "fromLane", lane);
        attribute(e, "tl", tl);
        snprintf(id, sizeof(id), "<lane id=\"%.48s_%.8s\"", from, lane);
        const char *at = strstr(net, id), *last = at;
        bool is_known = false;
        for (uint32_t i = 0; i < n; i++) {
            is_known |= strcmp(out[i].lane, id + 10) == 0;
        }
        if (is_known) {
            continue;
        }
        assert_true(at != NULL && n < LIGHTS);
        at = strstr(at, " shape=\"") + 8;
        for (const char *c = at; *c != '"'; c++) {
            last = *c == ' ' || c == at ? c : last;
        }
        assert_int_equal(sscanf(last, "%lf,%lf", &out[n].x, &out[n].y), 2);
        snprintf(out[n].lane, sizeof(out[n].lane), "%s", id + 10);
        out[n++].of = tl[0];
    }
    return n;
}

/* What the links of a lane show by a state of its signal, the best of them. */
static uint32_t state_by_log(const char *net, const char *lane, const char *letters)
{
    const char *const order = "GgyYr";
    static const uint32_t meaning[] = {DT_SCENE_GREEN, DT_SCENE_YIELD, DT_SCENE_YELLOW, DT_SCENE_YELLOW, DT_SCENE_RED};
    long best = 4;
    for (const char *e = strstr(net, "<connection "); e != NULL; e = strstr(e + 1, "<connection ")) {
        char from[64], number[64], own[144];
        const char *is_controlled = strstr(e, " tl=\"");
        if (is_controlled == NULL || is_controlled > strchr(e, '>')) {
            continue;
        }
        attribute(e, "from", from);
        attribute(e, "fromLane", number);
        snprintf(own, sizeof(own), "%s_%s\"", from, number);
        if (strcmp(own, lane) == 0) {
            const char *at = strchr(order, letters[(int)number_in(e, "linkIndex")]);
            best = at - order < best ? at - order : best;
        }
    }
    return meaning[best];
}

static void check_lights(const film *f)
{
    char *net = read_text("pair.net.xml"), *text = read_text("states.xml");
    light all[LIGHTS];
    const uint32_t n = read_lights(net, all);
    uint32_t n_states = 0, n_green = 0;
    assert_int_equal(n, 12); /* two lanes from west and east, one from north and south, at two signals */
    for (char *e = strstr(text, "<tlsState "); e != NULL; e = strstr(e + 1, "<tlsState ")) {
        char id[64], letters[64];
        attribute(e, "id", id);
        attribute(e, "state", letters);
        const dt_scene *now = moment_of(f, number_in(e, "time"));
        assert_int_equal(now->n_signals, n);
        for (uint32_t i = 0; i < n; i++) {
            if (all[i].of != id[0]) {
                continue;
            }
            const dt_scene_signal *s = now->signal;
            while (s < now->signal + n &&
                   fabs((double)s->x + MIDDLE_X - all[i].x) + fabs((double)s->y + MIDDLE_Y - all[i].y) > 0.02) {
                s++;
            }
            assert_true(s < now->signal + n);
            assert_int_equal(s->state, state_by_log(net, all[i].lane, letters));
            assert_int_equal(s->agent, id[0] == 'b');
            assert_true(s->width == 3.2f);
            n_green += s->state == DT_SCENE_GREEN;
            n_states++;
        }
    }
    assert_int_equal(n_states, MOMENTS * n);
    assert_in_range(n_green, n_states / 10, n_states);
    free(net);
    free(text);
}

/* Every lane of the net's file, point by point. */
static void check_roads(const dt_scene_roads *r)
{
    char *net = read_text("pair.net.xml");
    uint32_t n = 0, lane = 0;
    for (char *e = strstr(net, "<lane "); e != NULL; e = strstr(e + 1, "<lane "), lane++) {
        const char *at = strstr(e, " shape=\"") + 8;
        double x = 0, y = 0;
        for (int bytes = 0; sscanf(at, "%lf,%lf%n", &x, &y, &bytes) == 2; at += bytes) {
            uint32_t i = 0; /* SUMO has its own order of lanes */
            while (i < r->n &&
                   fabs((double)r->point[i].x + MIDDLE_X - x) + fabs((double)r->point[i].y + MIDDLE_Y - y) > 0.02) {
                i++;
            }
            assert_true(i < r->n && r->point[i].width == 3.2f);
            n++;
        }
    }
    assert_int_equal(r->n, n);
    uint32_t n_lanes = 1;
    for (uint32_t i = 1; i < r->n; i++) {
        n_lanes += r->point[i].lane != r->point[i - 1].lane;
    }
    assert_int_equal(n_lanes, lane);
    free(net);
}

/* Pictures show what SUMO's own logs say, and nothing is different because somebody looks. */
static void test_scene_as_sumo_logs_it(void **state)
{
    (void)state;
    char option[4 * TEXT];
    write_text("states.add.xml", "<additional><timedEvent type=\"SaveTLSStates\" source=\"a\" dest=\"states.xml\"/>"
                                 "<timedEvent type=\"SaveTLSStates\" source=\"b\" dest=\"states.xml\"/></additional>");
    snprintf(option, sizeof(option), "sumo_options=--additional-files %s/states.add.xml --fcd-output %s/fcd.xml",
             folder, folder);
    const char *const logged[] = {option, NULL};
    static dt_scene_point point[2048];
    dt_scene_roads before = {.struct_size = sizeof(before), .cap = 2, .point = point};
    film *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    rig r;
    int n_steps = 0;
    rig_open(&r, logged);
    f->api = r.component->extension(DT_EXT_SCENE);
    f->self = r.self;
    assert_true(DT_HAS(f->api, roads) && DT_HAS(f->api, look) && DT_HAS(f->api, watch));
    f->api->roads(r.self, &before); /* no episode yet; there are more than fit */
    assert_in_range(before.n, 100, 2048);
    const uint64_t unseen = play(&r, 3, 3, &n_steps);
    f->api->watch(r.self, take_picture, f);
    const uint64_t seen = play(&r, 3, 3, &n_steps);
    assert_true(unseen == seen);
    assert_int_equal(f->n, MOMENTS);

    dt_scene_vehicle vehicle[SEEN];
    dt_scene_signal signal[LIGHTS];
    dt_scene end = {
        .struct_size = sizeof(end), .cap_vehicles = SEEN, .vehicle = vehicle, .cap_signals = LIGHTS, .signal = signal};
    const dt_scene *last = &f->now[MOMENTS - 1];
    f->api->look(r.self, &end); /* the episode is over: still its last moment */
    assert_true(end.time_s == last->time_s && end.n_vehicles == last->n_vehicles && end.n_signals == last->n_signals);
    assert_memory_equal(vehicle, last->vehicle, end.n_vehicles * sizeof(*vehicle));
    assert_memory_equal(signal, last->signal, end.n_signals * sizeof(*signal));
    dt_scene_roads roads = {.struct_size = sizeof(roads), .cap = 2048, .point = point};
    f->api->roads(r.self, &roads);
    assert_int_equal(roads.n, before.n);
    check_roads(&roads);
    check_vehicles(f);
    check_lights(f);

    f->api->watch(r.self, NULL, NULL);
    rig_reset(&r, 4);
    (void)rig_step(&r, 0, 0);
    assert_int_equal(f->n, MOMENTS); /* nobody is told any more */
    rig_close(&r);
    free(f);
}

static void test_same_seed_same_bytes(void **state)
{
    (void)state;
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
    (void)state;
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
    (void)state;
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
        assert_true(r.metric[STRICT] * r.metric[DEMAND] >= inside + cases[i].delay_s - 1e-9);
        rig_close(&r);
    }
}

/* One street never gets green: the strict delay knows, RESCO's does not. */
static void test_starved_street(void **state)
{
    (void)state;
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
    (void)state;
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
    (void)state;
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
    (void)state;
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
    (void)state;
    refused("none.sumocfg", NULL, DT_EDATA, "none.sumocfg'");
    write_text("broken.sumocfg", "<configuration><input>");
    refused("broken.sumocfg", NULL, DT_EDATA, "broken.sumocfg");
    write_text("torn.net.xml", "<net><edge id=\"x\"");
    write_text("torn.sumocfg", "<configuration><input><net-file value=\"torn.net.xml\"/></input></configuration>");
    refused("torn.sumocfg", NULL, DT_EDATA, "torn.net.xml");
    write_text("netless.sumocfg", "<configuration><input><net-file value=\"no.net.xml\"/></input></configuration>");
    refused("netless.sumocfg", NULL, DT_EDATA, "no.net.xml");
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
        {{"also=no.sumocfg"}, DT_EDATA, "no.sumocfg: SUMO cannot load it"},
        {{"also=,a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,A,B,C,D,E,F"},
         DT_ECONFIG,
         "also names more than 31 scenarios"},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        const char *const set[] = {row[i].set[0], NULL};
        refused("pair.sumocfg", set, row[i].st, row[i].words);
    }
}

static void test_nobody_drives(void **state)
{
    (void)state;
    static const char *const late[] = {"begin_s=1000", "end_s=1020", NULL};
    rig r;
    rig_open(&r, late);
    rig_reset(&r, 1);
    assert_false(rig_step(&r, 0, 0));
    assert_int_equal(rig_act(&r, 0, 0), DT_EDATA);
    assert_non_null(strstr(r.host.message, "no vehicle was due from 1000 s to 1020 s"));
    assert_int_equal(rig_act(&r, 0, 0), DT_EINVAL);
    assert_non_null(strstr(r.host.message, "reset first"));
    rig_close(&r);
}

/* A second instance in this process is refused and does no harm to the first. */
static void test_one_per_process(void **state)
{
    (void)state;
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
    (void)state;
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
        cmocka_unit_test(test_signals_as_sumo_shows_them),
        cmocka_unit_test(test_scene_as_sumo_logs_it),
        cmocka_unit_test(test_same_seed_same_bytes),
        cmocka_unit_test(test_several_scenarios),
        cmocka_unit_test(test_program_is_sumo),
        cmocka_unit_test(test_due_in_the_last_second),
        cmocka_unit_test(test_starved_street),
        cmocka_unit_test(test_minimum_green),
        cmocka_unit_test(test_observations),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_nobody_drives),
        cmocka_unit_test(test_one_per_process),
        cmocka_unit_test(test_memory),
    };
    const int code = make_folder();
    return code != 0 ? code : cmocka_run_group_tests(tests, make_net, remove_folder);
}
