/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/env_sumo against SUMO's own logs of signal states and floating cars, on a net of two signals: what
 * signals show, and how a scene looks. Skipped where SUMO or the module for it is missing.
 */
#include "sumo_pair.h"

#include "dtrain/ext/scene.h"

typedef struct shown_signal { /* what SUMO's log says of one */
    char state[64];
    int since, at, n_changes;
} shown_signal;

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
    char option[3 * TEXT], log[2 * TEXT];
    snprintf(log, sizeof(log),
             "<additional><timedEvent type=\"SaveTLSStates\" source=\"a\" dest=\"states.xml\"/>"
             "<timedEvent type=\"SaveTLSStates\" source=\"b\" dest=\"states.xml\"/></additional>");
    write_text("states.add.xml", log);
    snprintf(option, sizeof(option), "sumo_options=--additional-files %s/states.add.xml", folder);
    const char *const logged[] = {option, "outputs=true", NULL};
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
    f->api->capture(f->self, &f->now[f->n]);
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

/* Pictures show what SUMO's own logs say, and nothing is different because of a viewer. */
static void test_scene_as_sumo_logs_it(void **state)
{
    char option[4 * TEXT];
    write_text("states.add.xml", "<additional><timedEvent type=\"SaveTLSStates\" source=\"a\" dest=\"states.xml\"/>"
                                 "<timedEvent type=\"SaveTLSStates\" source=\"b\" dest=\"states.xml\"/></additional>");
    snprintf(option, sizeof(option), "sumo_options=--additional-files %s/states.add.xml --fcd-output %s/fcd.xml",
             folder, folder);
    const char *const logged[] = {option, "outputs=true", NULL};
    static dt_scene_point point[2048];
    dt_scene_roads before = {.struct_size = sizeof(before), .cap = 2, .point = point};
    film *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    rig r;
    int n_steps = 0;
    rig_open(&r, logged);
    f->api = r.component->extension(DT_EXT_SCENE);
    f->self = r.self;
    assert_true(DT_HAS(f->api, roads) && DT_HAS(f->api, capture) && DT_HAS(f->api, set_observer));
    f->api->roads(r.self, &before); /* no episode yet; there are more than fit */
    assert_in_range(before.n, 100, 2048);
    const uint64_t unseen = play(&r, 3, 3, &n_steps);
    f->api->set_observer(r.self, take_picture, f);
    const uint64_t seen = play(&r, 3, 3, &n_steps);
    assert_true(unseen == seen);
    assert_int_equal(f->n, MOMENTS);

    dt_scene_vehicle vehicle[SEEN];
    dt_scene_signal signal[LIGHTS];
    dt_scene end = {
        .struct_size = sizeof(end), .cap_vehicles = SEEN, .vehicle = vehicle, .cap_signals = LIGHTS, .signal = signal};
    const dt_scene *last = &f->now[MOMENTS - 1];
    f->api->capture(r.self, &end); /* the episode is over: still its last moment */
    assert_true(end.time_s == last->time_s && end.n_vehicles == last->n_vehicles && end.n_signals == last->n_signals);
    assert_memory_equal(vehicle, last->vehicle, end.n_vehicles * sizeof(*vehicle));
    assert_memory_equal(signal, last->signal, end.n_signals * sizeof(*signal));
    dt_scene_roads roads = {.struct_size = sizeof(roads), .cap = 2048, .point = point};
    f->api->roads(r.self, &roads);
    assert_int_equal(roads.n, before.n);
    check_roads(&roads);
    check_vehicles(f);
    check_lights(f);

    f->api->set_observer(r.self, NULL, NULL);
    rig_reset(&r, 4);
    (void)rig_step(&r, 0, 0);
    assert_int_equal(f->n, MOMENTS); /* nothing is reported any more */
    rig_close(&r);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals_as_sumo_shows_them),
        cmocka_unit_test(test_scene_as_sumo_logs_it),
    };
    const int code = make_folder();
    return code != 0 ? code : cmocka_run_group_tests(tests, make_net, remove_folder);
}
