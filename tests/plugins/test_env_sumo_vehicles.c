/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of vehicles as agents of plugins/env_sumo, on the net of test_env_sumo and on a road without signals. What
 * agents see is compared with the graph of all vehicles; what they do with how the vehicle moves in it. Skipped where
 * SUMO or the module for it is missing.
 */
#include "sumo_folder.h"

#include "base/err.h"
#include "base/mem.h"
#include "traffic/import/import.h"
#include "dtrain/ext/scene.h"

enum { MOST = 40, NODES = 200, EGO = 9, PAIR = 7, COSTS = 5, PAST = 6, MOTION = 7 };
enum {
    DEMAND = 7,
    FINISHED = 8,
    NEVER = 9,
    COLLISIONS = 10,
    CONFLICT = 14,
    STUCK = 17,
    SPEED = 18,
    FLOW = 19,
    N_METRICS = 21
};
enum { V, GAP, V_AHEAD, GAP_BEHIND, V_BEHIND, WANTED, WAY, ACCEL, MODEL };

typedef struct rig {
    mock_host host;
    const dt_component *component;
    const dt_env_ops *ops;
    void *config, *self, *obs[16];
    dt_env_spec spec;
    dt_env_io io;
    float node[NODES * 9], edge[NODES * 16 * 4], ego[MOST * EGO], ahead[MOST * 3 * PAIR], beside[MOST * 4 * PAIR];
    float centre[NODES * 2], past[2 * MOST * PAST * MOTION];
    int32_t rowptr[NODES + 1], col[NODES * 16], agent_node[MOST], side[MOST], seq_node[2 * MOST], agent_seq[MOST * 2];
    int64_t size[3];
    uint8_t alive[MOST], acted[MOST], mask[MOST * 3], terminated[MOST], truncated[MOST];
    float accel[MOST], reward[MOST], cost[MOST * COSTS];
    double metric[DT_ENV_MAX_METRICS];
} rig;

static dt_status rig_try(rig *r, const char *const *set, int64_t fail_alloc)
{
    static char cfg[2 * TEXT];
    const char *all[20] = {"control=vehicles", cfg};
    const char *scenario = "calm.sumocfg";
    memset(r, 0, sizeof(*r));
    mock_host_init(&r->host);
    mock_host_serve(&r->host, DT_SVC_FEATURES, &features);
    r->component = mock_load("plugins", "env_sumo", "env_sumo");
    assert_non_null(r->component);
    int n = 2;
    for (int i = 0; set != NULL && set[i] != NULL; i++) {
        if (strncmp(set[i], "scenario=", 9) == 0) {
            scenario = set[i] + 9;
        } else {
            all[n++] = set[i];
        }
    }
    snprintf(cfg, sizeof(cfg), "sumocfg=%s/%s", folder, scenario);
    r->ops = r->component->ops;
    r->config = mock_config(r->component, all);
    r->self = calloc(1, r->component->state_size);
    r->host.fail_alloc = fail_alloc;
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

static void rig_open(rig *r, const char *const *set)
{
    if (rig_try(r, set, 0) != DT_OK) {
        print_error("%s\n", r->host.message);
    }
    assert_int_equal(r->host.status, DT_OK);
    r->spec.struct_size = sizeof(r->spec);
    assert_int_equal(r->ops->spec(r->self, &r->spec), DT_OK);
    assert_true(r->spec.n_agents <= MOST && r->spec.symbols[0].size <= NODES);
    const struct {
        const char *name;
        void *at;
    } place[] = {{"nodes", r->node},  {"rowptr", r->rowptr},     {"col", r->col},
                 {"edges", r->edge},  {"ego", r->ego},           {"agent_node", r->agent_node},
                 {"ahead", r->ahead}, {"beside", r->beside},     {"centre", r->centre},
                 {"past", r->past},   {"seq_node", r->seq_node}, {"agent_seq", r->agent_seq}};
    for (uint32_t i = 0; i < r->spec.n_obs; i++) {
        for (size_t k = 0; k < sizeof(place) / sizeof(place[0]); k++) {
            r->obs[i] = strcmp(r->spec.obs[i].name, place[k].name) == 0 ? place[k].at : r->obs[i];
        }
        assert_non_null(r->obs[i]);
    }
    r->io = (dt_env_io){.struct_size = sizeof(r->io),
                        .n_obs = r->spec.n_obs,
                        .obs = r->obs,
                        .size = r->size,
                        .alive = r->alive,
                        .mask = r->mask,
                        .act_f = r->accel,
                        .reward = r->reward,
                        .cost = r->cost,
                        .terminated = r->terminated,
                        .truncated = r->truncated,
                        .metric = r->metric};
}

static void rig_clear(rig *r)
{
    memset(r->node, 0, sizeof(r->node));
    memset(r->ego, 0, sizeof(r->ego));
    memset(r->ahead, 0, sizeof(r->ahead));
    memset(r->beside, 0, sizeof(r->beside));
    memset(r->agent_node, 0, sizeof(r->agent_node));
    memset(r->past, 0, sizeof(r->past));
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
    memset(r->accel, 0, sizeof(r->accel));
    memset(r->side, 0, sizeof(r->side));
    if (r->ops->reset(r->self, &r->io, seed) != DT_OK) {
        print_error("%s\n", r->host.message);
        assert_true(false);
    }
    r->io.act_i = r->side;
}

/* The actions are in accel and side. */
static bool rig_step(rig *r)
{
    memcpy(r->acted, r->alive, sizeof(r->acted));
    rig_clear(r);
    const dt_status st = r->ops->step(r->self, &r->io);
    if (st < 0) {
        print_error("%s\n", r->host.message);
    }
    assert_true(st == DT_OK || st == DT_DONE);
    for (uint32_t k = 0; k < r->spec.n_agents; k++) {
        const int ended = r->terminated[k] + r->truncated[k];
        assert_true(ended == 0 || (ended == 1 && r->acted[k] == 1 && r->alive[k] == 0));
        assert_true(st == DT_OK || r->acted[k] == 0 || ended == 1);
        assert_true(r->acted[k] == 0 || ended == 1 || r->alive[k] == 1);
        assert_true(r->reward[k] >= 0 && r->reward[k] <= 1);
        if (r->alive[k] != 0) {
            const int32_t n = r->agent_node[k];
            assert_true(n >= 0 && n < r->size[0] && r->node[n * 9 + 8] == 1.0F);
        }
    }
    return st == DT_DONE;
}

/* ---- the nets ---------------------------------------------------------------------------------------------------- */

/* pair: two signals. calm: the same with perfect drivers that change no lanes without need. road: one edge of two
 * lanes and nothing else; a slow car in front of a quick one. */
static int make_nets(void **state)
{
    const char *source = getenv("DT_SRCDIR");
    source = source != NULL ? source : ".";
    return shell(
        "cp %s/tests/fixtures/sumo/pair.* %s/tests/fixtures/sumo/road.* '%s' && chmod u+w '%s'/* && cd '%s' && "
        "netconvert -n pair.nod.xml -e pair.edg.xml -o pair.net.xml --no-turnarounds --xml-validation never "
        ">netconvert.log 2>&1 && netconvert -n road.nod.xml -e road.edg.xml -o road.net.xml --xml-validation "
        "never >>netconvert.log 2>&1 && sed 's/speedDev=\"0.1\"/speedDev=\"0\" sigma=\"0\" lcSpeedGain=\"0\" "
        "lcKeepRight=\"0\"/' pair.rou.xml >calm.rou.xml && sed s/pair.rou/calm.rou/ pair.sumocfg >calm.sumocfg",
        source, source, folder, folder, folder);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_spec(void **state)
{
    static const char *const lanes[] = {"lane_actions=true", "agents=3", "max_vehicles=100", NULL};
    static const char *const names[] = {"nodes", "rowptr", "col", "edges", "agent_node", "ego", "ahead", "centre"};
    static const char *const costs[] = {"collisions", "time_to_collision", "hard_braking", "conflicting_greens",
                                        "starvation"};
    rig r;
    rig_open(&r, lanes + 1);
    assert_int_equal(r.spec.n_agents, 3);
    assert_int_equal(r.spec.n_obs, 8);
    assert_int_equal(r.spec.n_symbols, 2);
    for (int i = 0; i < 8; i++) {
        assert_string_equal(r.spec.obs[i].name, names[i]);
    }
    assert_string_equal(r.spec.obs[5].dims, "A 9");
    assert_int_equal(r.spec.n_heads, 0);
    assert_int_equal(r.spec.n_continuous, 1);
    assert_true(r.spec.low[0] == -3.0F && r.spec.high[0] == 1.5F);
    assert_int_equal(r.spec.n_costs, COSTS);
    for (int i = 0; i < COSTS; i++) {
        assert_string_equal(r.spec.costs[i], costs[i]);
    }
    assert_int_equal(r.spec.max_steps, 300); /* one step of SUMO each */
    assert_int_equal(r.spec.n_metrics, N_METRICS);
    assert_string_equal(r.spec.metrics[SPEED], "mean_speed_mps");
    assert_string_equal(r.spec.metrics[FLOW], "flow_vph");
    rig_close(&r);
    rig_open(&r, lanes);
    assert_int_equal(r.spec.n_obs, 9);
    assert_string_equal(r.spec.obs[7].name, "beside");
    assert_string_equal(r.spec.obs[7].dims, "A 4 7");
    assert_string_equal(r.spec.obs[8].name, "centre");
    assert_int_equal(r.spec.n_heads, 1);
    assert_int_equal(r.spec.choices[0], 3);
    rig_close(&r);
}

/* Along x, of straight roads: the gap to the next vehicle in the same row of the graph, 1e9: nobody. */
static double gap_in_graph(const rig *r, int32_t i, double *speed)
{
    const float *me = &r->node[i * 9];
    const double way = (double)me[5] > 0 ? 1 : -1; /* cos of the heading */
    double best = 1e9;
    for (int32_t j = 0; j < r->size[0]; j++) {
        const float *other = &r->node[j * 9];
        const double far = way * (double)(other[0] - me[0]);
        if (j != i && fabs((double)(other[1] - me[1])) < 1 && (double)(other[5] * me[5]) > 0.9 && far > 0 &&
            far - (double)(other[6] + me[6]) / 2 < best) {
            best = far - (double)(other[6] + me[6]) / 2;
            *speed = (double)other[2];
        }
    }
    return best;
}

/* Every vehicle is an agent and drives as SUMO likes: what they see is what the graph shows, and the model's choice is
 * what SUMO does next. */
/* From above there is who is in the graph, agents in their places, at the risk of what they have ahead. */
static void check_scene(const rig *r, bool is_over)
{
    const dt_scene_api *api = r->component->extension(DT_EXT_SCENE);
    dt_scene_vehicle seen[NODES];
    dt_scene now = {.struct_size = sizeof(now), .cap_vehicles = NODES, .vehicle = seen};
    int n_agents = 0, n_alive = 0;
    api->capture(r->self, &now);
    assert_true(now.n_vehicles <= NODES);
    for (uint32_t i = 0; i < now.n_vehicles; i++) {
        const dt_scene_vehicle *v = &seen[i];
        assert_true(v->node > 0 && v->node <= (uint32_t)r->size[0]);
        const float *node = &r->node[(v->node - 1) * 9];
        assert_true(fabs((double)(v->x - node[0]) - 0.5 * (double)v->length * cos((double)v->heading)) < 1e-2);
        assert_true(fabs((double)(v->y - node[1]) - 0.5 * (double)v->length * sin((double)v->heading)) < 1e-2);
        if (v->agent >= 0) {
            const float *e = &r->ego[v->agent * EGO];
            assert_int_equal(r->agent_node[v->agent], v->node - 1);
            const double risk = e[GAP] < 199 ? (double)dt_scene_risk(e[GAP], (double)(e[V] - e[V_AHEAD])) : 0;
            assert_true(fabs((double)v->risk - risk) < 1e-3);
            n_agents++;
        }
    }
    for (int k = 0; k < MOST && !is_over; k++) {
        n_alive += r->alive[k];
    }
    assert_true(is_over || n_agents == n_alive);
}

static void test_sight(void **state)
{
    static const char *const all[] = {"penetration=1",    "agents=40",         "baseline=true",
                                      "max_vehicles=150", "lane_actions=true", NULL};
    rig r;
    rig_open(&r, all);
    rig_reset(&r, 3);
    double model[MOST] = {0}, off = 0;
    int n_gaps = 0, n_model = 0, n_red = 0, n_far_off = 0, n_ended = 0;
    bool is_over = false;
    while (!is_over) {
        is_over = rig_step(&r);
        check_scene(&r, is_over);
        for (int k = 0; k < 40; k++) {
            const float *e = &r.ego[k * EGO], *ahead = &r.ahead[k * 3 * PAIR];
            n_ended += r.truncated[k] && !is_over;
            assert_int_equal(r.terminated[k], 0);
            if (r.alive[k] == 0) {
                continue;
            }
            const int32_t i = r.agent_node[k];
            assert_true(fabs((double)(e[V] - r.node[i * 9 + 2])) < 1e-4);
            double speed = 0;
            const double gap = fabs((double)r.node[i * 9 + 5]) > 0.99 ? gap_in_graph(&r, i, &speed) : 1e9;
            if (gap < 60 && (double)e[GAP] < 60 && fabs((double)e[V_AHEAD] - speed) < 1e-4) {
                assert_true(fabs((double)e[GAP] - gap) < 0.05);
                assert_true(ahead[0] == e[GAP] && ahead[1] == e[V_AHEAD] && ahead[2] == 9.0F && ahead[3] == e[V]);
                n_gaps++;
            }
            assert_true(ahead[4] == 3.0F && ahead[5] == 1.0F && ahead[6] == 1.0F);
            assert_true(ahead[2 * PAIR] == 1000.0F);
            if (ahead[PAIR] < 1000.0F) { /* a red light or the end of a lane */
                assert_true(ahead[PAIR] <= e[WAY] + 1e-3F || e[WAY] == 200.0F);
                n_red++;
            }
            if (r.acted[k] && model[k] < 100) {
                off += fabs((double)e[ACCEL] - model[k]);
                n_far_off += fabs((double)e[ACCEL] - model[k]) > 0.5;
                n_model++;
            }
            model[k] = (double)e[MODEL];
        }
        for (int k = 0; k < 40; k++) {
            model[k] = r.alive[k] ? model[k] : 1000;
        }
    }
    assert_true(n_gaps > 500 && n_red > 500 && n_ended > 30);
    assert_true(off / n_model < 0.05 && n_far_off < n_model / 50);
    assert_true(r.metric[FINISHED] > 50 && r.metric[COLLISIONS] == 0 && isnan(r.metric[CONFLICT]));
    assert_true(r.metric[SPEED] > 2 && r.metric[SPEED] < 13.9);
    assert_true(fabs(r.metric[FLOW] - r.metric[FINISHED] * 12) < 1e-9); /* 300 s */
    rig_close(&r);
}

/* ---- floating cars ----------------------------------------------------------------------------------------------- */

enum { FRAMES = 60 };

typedef struct frame {
    int64_t n;
    float node[NODES * 9];
} frame;

/* The rows of the store's frame are the vehicles of the graph, moved by (x, y), whatever their order. */
static bool is_same_frame(const dt_store_view *v, int64_t store_frame, const frame *f, const double offset[2])
{
    const int64_t begin = v->frame_row[store_frame], end = v->frame_row[store_frame + 1];
    bool is_same = end - begin == f->n;
    for (int64_t i = 0; i < f->n && is_same; i++) {
        const float *node = &f->node[i * 9];
        bool is_there = false;
        for (int64_t r = begin; r < end; r++) {
            const double *pose = v->pose + 3 * r;
            const float *motion = v->motion + 4 * r;
            is_there |= hypot(pose[0] - offset[0] - (double)node[0], pose[1] - offset[1] - (double)node[1]) < 2e-3 &&
                        fabs((double)(motion[0] - node[2])) < 1e-3 && fabs(sin(pose[2]) - (double)node[4]) < 1e-3 &&
                        fabs(cos(pose[2]) - (double)node[5]) < 1e-3 && motion[2] == node[6];
        }
        is_same = is_there;
    }
    return is_same;
}

/* What SUMO writes as floating cars is imported as the places, headings, speeds and lengths that it reports here. */
static void test_floating_cars(void **state)
{
    static frame seen[FRAMES];
    char option[2 * TEXT], cars[TEXT + 32], types[TEXT + 32], out[TEXT + 32];
    snprintf(option, sizeof(option), "sumo_options=--precision 8 --fcd-output %s/cars.xml", folder);
    snprintf(cars, sizeof(cars), "%s/cars.xml", folder);
    snprintf(types, sizeof(types), "%s/calm.rou.xml", folder);
    snprintf(out, sizeof(out), "%s/cars", folder);
    const char *const set[] = {option, "baseline=true", "max_vehicles=150", NULL};
    rig r;
    rig_open(&r, set);
    rig_reset(&r, 3);
    for (int k = 0; k < FRAMES; k++) {
        assert_false(rig_step(&r));
        seen[k].n = r.size[0];
        memcpy(seen[k].node, r.node, sizeof(r.node));
    }
    rig_close(&r);

    dt_str report = {0};
    dt_store *store = NULL;
    const dt_import_options opt = {.types = types};
    const dt_status st = dt_data_import(&(const char *){cars}, 1, out, &opt, &report);
    if (st != DT_OK) {
        print_error("%s\n", dt_error_text());
    }
    assert_int_equal(st, DT_OK);
    assert_null(strstr(dt_str_text(&report), "not known")); /* every type is in calm.rou.xml */
    assert_int_equal(dt_store_open(out, &store), DT_OK);
    const dt_store_view *v = dt_store_view_of(store);
    /* coordinates of the graph begin elsewhere, and so does its time: both must be the same for all frames */
    const frame *last = &seen[FRAMES - 1];
    bool is_found = false;
    assert_true(last->n > 10);
    for (int64_t shift = 0; shift + FRAMES <= v->n_frames && !is_found; shift++) {
        const int64_t begin = v->frame_row[shift + FRAMES - 1];
        for (int64_t row = begin; row < v->frame_row[shift + FRAMES] && !is_found; row++) {
            const double offset[2] = {v->pose[3 * row] - (double)last->node[0],
                                      v->pose[3 * row + 1] - (double)last->node[1]};
            is_found = true;
            for (int k = 0; k < FRAMES && is_found; k++) {
                is_found = is_same_frame(v, shift + k, &seen[k], offset);
            }
        }
    }
    assert_true(is_found);
    dt_store_close(store);
    dt_str_fini(&report);
}

/* ---- the past ---------------------------------------------------------------------------------------------------- */

enum { SECONDS = 4 }; /* back from now, this one included */

typedef struct trace { /* of the agent of a place: its node now, a second ago, ... */
    float node[SECONDS][9];
    int n;
} trace;

static void remember(trace *t, const float *node)
{
    memmove(t->node[1], t->node[0], sizeof(t->node[0]) * (SECONDS - 1));
    memcpy(t->node[0], node, sizeof(t->node[0]));
    t->n += t->n < SECONDS;
}

/* Column c half seconds ago: SUMO steps by whole seconds, between them motion is straight. */
static double then(const trace *t, int halves, int c)
{
    const int i = halves / 2;
    const double now = (double)t->node[i][c];
    return halves % 2 == 0 ? now : (now + (double)t->node[i + 1][c]) / 2;
}

/* row [PAST, MOTION] is what was seen of the agent; returns how many steps it was there. */
static int check_past(const trace *t, const float *row)
{
    const double v = (double)t->node[0][2], sin_h = (double)t->node[0][4], cos_h = (double)t->node[0][5];
    int n = 0;
    for (int k = 0; k < PAST; k++, row += MOTION) {
        const int halves = PAST - 1 - k;
        const bool was_there = (halves + 1) / 2 < t->n;
        assert_true(row[6] == (was_there ? 1.0F : 0.0F));
        if (!was_there) {
            assert_true(row[0] == 0 && row[1] == 0 && row[4] == 0);
            continue;
        }
        const double dx = then(t, halves, 0) - then(t, 0, 0), dy = then(t, halves, 1) - then(t, 0, 1);
        assert_true(fabs((double)row[0] - (dx * cos_h + dy * sin_h + v * halves / 2)) < 1e-3);
        assert_true(fabs((double)row[1] - (dy * cos_h - dx * sin_h)) < 1e-3);
        assert_true(fabs((double)row[4] - then(t, halves, 2)) < 1e-4);
        if (halves % 2 == 0) {
            const double s = then(t, halves, 4), c = then(t, halves, 5);
            assert_true(fabs((double)row[2] - (c * cos_h + s * sin_h)) < 1e-5);
            assert_true(fabs((double)row[3] - (s * cos_h - c * sin_h)) < 1e-5);
        }
        n++;
    }
    return n;
}

/* What world models read is what the graph showed in the seconds before, of every agent and of the one ahead of it. */
static void test_past(void **state)
{
    static const char *const all[] = {
        "penetration=0.5", "agents=40", "baseline=true", "max_vehicles=150", "history_s=3", "history_hz=2", NULL};
    static trace seen[MOST];
    rig r;
    int n_rows = 0, n_ahead = 0, n_strange = 0, n_short = 0;
    rig_open(&r, all);
    assert_int_equal(r.spec.n_symbols, 3);
    assert_string_equal(r.spec.symbols[2].name, "S");
    assert_int_equal(r.spec.symbols[2].size, 80);
    assert_string_equal(r.spec.obs[8].dims, "S 6 7");
    for (int episode = 0; episode < 2; episode++) {
        memset(seen, 0, sizeof(seen));
        rig_reset(&r, 4);
        while (!rig_step(&r)) {
            double x = 0;
            for (int32_t i = 0; i < r.size[0]; i++) {
                x += (double)r.node[i * 9] / (double)r.size[0];
            }
            assert_true(r.size[0] == 0 || fabs((double)r.centre[0] - x) < 1e-3);
            assert_true(r.size[2] <= r.size[0]); /* each vehicle once */
            for (int k = 0; k < 40; k++) {
                const int32_t own = r.agent_seq[2 * k], ahead = r.agent_seq[2 * k + 1];
                const float *e = &r.ego[k * EGO];
                if (r.alive[k] == 0) {
                    seen[k].n = 0;
                    continue;
                }
                remember(&seen[k], &r.node[r.agent_node[k] * 9]);
                assert_true(own >= 0 && own < r.size[2] && r.seq_node[own] == r.agent_node[k]);
                const int n = check_past(&seen[k], &r.past[own * PAST * MOTION]);
                n_rows += n;
                n_short += n < PAST;
                if (ahead < 0) {
                    continue;
                }
                const float *node = &r.node[r.seq_node[ahead] * 9];
                assert_true(ahead < r.size[2] && e[GAP] <= 200.0F && fabsf(node[2] - e[V_AHEAD]) < 1e-4F);
                assert_true(fabsf(r.past[(ahead * PAST + PAST - 1) * MOTION + 4] - node[2]) < 1e-4F);
                n_strange += node[8] == 0; /* nobody's agent */
                n_ahead++;
            }
        }
    }
    assert_true(n_rows > 5000 && n_short > 50 && n_ahead > 500 && n_strange > 100);
    rig_close(&r);
}

/* The road: car "slow" at 5 m/s is ahead of car "quick"; the agent is quick. */
static void open_road(rig *r, const char *const *more)
{
    const char *set[16] = {"scenario=road.sumocfg", "agent_type=quick", "penetration=1", "max_vehicles=100"};
    for (int i = 0; more != NULL && more[i] != NULL; i++) {
        set[4 + i] = more[i];
    }
    rig_open(r, set);
    rig_reset(r, 1);
    assert_int_equal(r->alive[0], 0); /* nobody is on the road before the first step */
    while (r->alive[0] == 0) {
        assert_false(rig_step(r));
    }
}

static void test_acceleration_as_asked(void **state)
{
    static const char *const free[] = {"speed_mode=0", NULL}, *const two[] = {"speed_mode=0", "decision_s=2", NULL};
    static const float ask[] = {1.5F, 1.0F, -0.5F, 0, -3, -3, -3, -3, -3, 0.25F, 1};
    rig r;
    for (int pass = 0; pass < 2; pass++) {
        open_road(&r, pass == 0 ? free : two);
        const double step_s = pass + 1;
        assert_true((double)r.ahead[5] == step_s && r.ahead[6] == 1.0F);
        for (size_t i = 0; i < sizeof(ask) / sizeof(ask[0]); i++) {
            const double v = (double)r.ego[V], x = (double)r.node[r.agent_node[0] * 9];
            double then = v, way = 0;
            for (int t = 0; t <= pass; t++) {
                then = fmax(0, then + (double)ask[i]);
                way += then;
            }
            r.accel[0] = ask[i];
            assert_false(rig_step(&r));
            assert_true(fabs((double)r.ego[V] - then) < 1e-4);
            assert_true(fabs((double)r.node[r.agent_node[0] * 9] - x - way) < 1e-2);
            assert_true((r.cost[2] > 0) == (v - then > 3.0001 * step_s)); /* braking at the limit is not hard */
        }
        rig_close(&r);
    }
}

/* What an agent earns: its own pace, that of all, or a share of each. The traffic is the same in all three. */
static void test_reward(void **state)
{
    enum { STEPS = 60 };
    static const char *const part[] = {"reward_shared=0", "reward_shared=1", "reward_shared=0.25"};
    static float earned[3][STEPS][MOST];
    int n_apart = 0;
    for (int i = 0; i < 3; i++) {
        rig r;
        rig_open(&r, (const char *const[]){part[i], "penetration=1", "agents=4", "max_vehicles=40", NULL});
        rig_reset(&r, 3);
        for (int t = 0; t < STEPS; t++) {
            for (uint32_t k = 0; k < r.spec.n_agents; k++) {
                r.accel[k] = 0.25F * (float)(k + 1);
            }
            assert_false(rig_step(&r));
            memcpy(earned[i][t], r.reward, sizeof(r.reward));
            float team = -1;
            for (uint32_t k = 0; k < r.spec.n_agents; k++) {
                const float *ego = r.ego + (size_t)k * EGO;
                if (r.acted[k] == 0 || r.alive[k] == 0) {
                    continue;
                }
                if (i == 0) {
                    assert_float_equal(r.reward[k], fminf(1, ego[0] / ego[5]), 1e-6);
                } else if (i == 1) {
                    assert_true(team < 0 || team == r.reward[k]);
                    team = r.reward[k];
                } else {
                    assert_float_equal(r.reward[k], 0.75F * earned[0][t][k] + 0.25F * earned[1][t][k], 1e-6);
                    n_apart += fabsf(earned[0][t][k] - earned[1][t][k]) > 0.1F;
                }
            }
        }
        rig_close(&r);
    }
    assert_true(n_apart > STEPS);
}

static void test_collision(void **state)
{
    static const char *const rash[] = {"speed_mode=0", NULL},
                             *const on[] = {"speed_mode=0", "end_at_collision=false", NULL},
                             *const safe[] = {"speed_mode=31", NULL};
    rig r;
    open_road(&r, rash);
    bool is_over = false, was_close = false;
    while (!is_over) {
        was_close |= r.cost[1] > 0;
        r.accel[0] = 1.5F;
        is_over = rig_step(&r);
    }
    assert_true(was_close);
    assert_true(r.terminated[0] == 1 && r.truncated[0] == 0 && r.cost[0] == 1.0F);
    assert_true(r.metric[COLLISIONS] == 1);
    rig_close(&r);
    open_road(&r, on);
    int n_terminated = 0, n_steps = 0;
    for (is_over = false; !is_over; n_steps++) {
        r.accel[0] = 1.5F;
        is_over = rig_step(&r);
        n_terminated += r.terminated[0];
    }
    assert_true(n_terminated == 1 && n_steps > 60 && r.metric[COLLISIONS] == 1);
    rig_close(&r);
    open_road(&r, safe);
    int n_truncated = 0;
    for (is_over = false; !is_over;) {
        r.accel[0] = 1.5F;
        is_over = rig_step(&r);
        assert_int_equal(r.terminated[0], 0);
        n_truncated += r.truncated[0];
    }
    assert_true(n_truncated == 1 && r.metric[COLLISIONS] == 0 && r.metric[FINISHED] == 2); /* it arrived */
    rig_close(&r);
}

/* Nearer than SUMO's drivers ever stand (their minGap, 2.5 m) is near, and no collision. */
static void test_near_is_no_collision(void **state)
{
    static const char *const unsafe[] = {"speed_mode=30", NULL};
    rig r;
    open_road(&r, unsafe);
    double nearest = 1000;
    for (bool is_over = false; !is_over;) {
        const double gap = (double)r.ego[GAP], left = fmax(0, gap - 1); /* to 1 m, braking at 2 m/s^2 */
        const double want = (double)r.ego[V_AHEAD] + fmin(0.3 * left, sqrt(2 * 2 * left));
        r.accel[0] = gap < 200 ? (float)fmin(1.5, fmax(-3, want - (double)r.ego[V])) : 0;
        nearest = r.alive[0] && gap < nearest ? gap : nearest;
        is_over = rig_step(&r);
        assert_int_equal(r.terminated[0], 0);
    }
    assert_true(nearest > 0.5 && nearest < 2);
    assert_true(r.metric[COLLISIONS] == 0 && r.metric[FINISHED] == 2);
    rig_close(&r);
}

static void test_lanes(void **state)
{
    static const char *const lanes[] = {"lane_actions=true", NULL};
    rig r;
    open_road(&r, lanes);
    assert_true(r.mask[0] == 1 && r.mask[1] == 1 && r.mask[2] == 0); /* it drives on the right */
    assert_true(r.beside[0] == 1000.0F && r.beside[PAIR] == 1000.0F && r.beside[2 * PAIR] == 0.0F);
    const double y = (double)r.node[r.agent_node[0] * 9 + 1];
    r.side[0] = 1;
    assert_false(rig_step(&r));
    assert_true(fabs((double)r.node[r.agent_node[0] * 9 + 1] - y - 3.2) < 0.01);
    assert_true(r.mask[1] == 0 && r.mask[2] == 1);
    /* the slow one is now ahead on the right; its speed is known, and the gap to it */
    double speed = 0;
    for (int32_t j = 0; j < r.size[0]; j++) {
        if (j != r.agent_node[0]) {
            const float *other = &r.node[j * 9], *me = &r.node[r.agent_node[0] * 9];
            const double gap = (double)(other[0] - me[0]) - (double)(other[6] + me[6]) / 2;
            speed = (double)other[2];
            assert_true(fabs((double)r.beside[2 * PAIR] - gap) < 0.02);
        }
    }
    assert_true(speed > 4 && fabs((double)r.beside[2 * PAIR + 1] - speed) < 1e-4);
    r.side[0] = 0;
    for (int i = 0; i < 5; i++) { /* and it stays there */
        assert_false(rig_step(&r));
        assert_true(fabs((double)r.node[r.agent_node[0] * 9 + 1] - y - 3.2) < 0.01);
    }
    r.side[0] = 2;
    assert_false(rig_step(&r));
    assert_true(fabs((double)r.node[r.agent_node[0] * 9 + 1] - y) < 0.01);
    rig_close(&r);
}

/* Numbers of agent-steps and of vehicles that came to be agents. */
static void count(rig *r, const char *const *set, int *n_steps, int *n_agents)
{
    rig_open(r, set);
    rig_reset(r, 5);
    *n_steps = *n_agents = 0;
    bool is_over = false;
    while (!is_over) {
        is_over = rig_step(r);
        for (uint32_t k = 0; k < r->spec.n_agents; k++) {
            *n_steps += r->acted[k];
            *n_agents += r->acted[k] != 0 && r->alive[k] == 0;
        }
    }
    rig_close(r);
}

static void test_who_is_chosen(void **state)
{
    static const char *const all[] = {"penetration=1", "agents=40", "max_vehicles=150", "baseline=true", NULL},
                             *const some[] = {"penetration=0.25", "agents=40", "max_vehicles=150", "baseline=true",
                                              NULL},
                             *const route[] = {"penetration=1", "agents=40",           "max_vehicles=150",
                                               "baseline=true", "agent_route=through", NULL},
                             *const none[] = {"penetration=1", "agent_type=lorry", "max_vehicles=150", NULL},
                             *const one[] = {"penetration=1", "agents=1", "max_vehicles=150", "baseline=true", NULL};
    rig r;
    int n, of_all, of_some, of_route, of_none, of_one;
    count(&r, all, &n, &of_all);
    const double demand = r.metric[DEMAND];
    assert_true(of_all > 80 && of_all <= demand);
    count(&r, some, &n, &of_some);
    const double entered = demand - r.metric[NEVER];
    assert_true(of_some > 0.15 * entered && of_some < 0.35 * entered);
    count(&r, route, &n, &of_route);
    assert_true(of_route > 30 && of_route <= 50);
    count(&r, none, &n, &of_none);
    assert_true(n == 0 && of_none == 0);
    assert_true(r.metric[DEMAND] == demand);
    count(&r, one, &n, &of_one);
    assert_true(of_one > 2 && of_one < 20); /* one after the other */
}

static uint64_t play(rig *r, uint64_t seed)
{
    dt_random random;
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    dt_random_init(&random, 9, 0);
    rig_reset(r, seed);
    for (bool is_over = false; !is_over;) {
        for (int k = 0; k < 8; k++) {
            r->accel[k] = (float)(4.5 * dt_random_uniform(&random) - 3);
            r->side[k] = (int32_t)dt_random_below(&random, 3);
            r->side[k] = r->mask[k * 3 + r->side[k]] != 0 ? r->side[k] : 0;
        }
        is_over = rig_step(r);
        const struct {
            const void *p;
            size_t n;
        } seen[] = {{r->ego, sizeof(r->ego)},       {r->ahead, sizeof(r->ahead)}, {r->beside, sizeof(r->beside)},
                    {r->reward, sizeof(r->reward)}, {r->cost, sizeof(r->cost)},   {r->node, (size_t)r->size[0] * 36},
                    {r->mask, sizeof(r->mask)}};
        for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
            for (size_t b = 0; b < seen[i].n; b++) {
                hash = (hash ^ ((const uint8_t *)seen[i].p)[b]) * UINT64_C(1099511628211);
            }
        }
    }
    return hash;
}

static void test_same_seed_same_bytes(void **state)
{
    static const char *const some[] = {"scenario=pair.sumocfg", "penetration=0.3", "agents=8", "max_vehicles=30",
                                       "lane_actions=true",     "end_s=250",       NULL};
    rig r;
    rig_open(&r, some);
    const uint64_t first = play(&r, 11), other = play(&r, 12), again = play(&r, 11);
    assert_true(first == again && first != other);
    rig_reset(&r, 4); /* an episode that is given up leaves nothing behind */
    (void)rig_step(&r);
    assert_true(play(&r, 11) == first);
    rig_close(&r);
    rig_open(&r, some);
    assert_true(play(&r, 11) == first);
    rig_close(&r);
}

/* Of many vehicles the agents are kept. */
static void test_little_room(void **state)
{
    static const char *const few[] = {"penetration=0.2", "agents=3", "max_vehicles=4", "baseline=true", NULL};
    rig r;
    rig_open(&r, few);
    rig_reset(&r, 2);
    bool is_over = false, was_full = false;
    while (!is_over) {
        is_over = rig_step(&r); /* checks the node of every agent that is alive */
        assert_true(r.size[0] <= 4);
        was_full |= r.size[0] == 4;
    }
    assert_true(was_full);
    rig_close(&r);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *set[2];
        dt_status st;
        const char *words;
    } row[] = {
        {{"sumo_options=--collision.action warn"}, DT_ECONFIG, "--collision.action is set by dtrain itself"},
        {{"decision_s=1.5"}, DT_ECONFIG, "decision_s 1.5 s is not a whole number of SUMO's steps of 1 s"},
        {{"end_s=1e9", "decision_s=0.1"}, DT_ECONFIG, "are 9999999000 decisions, at most 2147483647 fit; set end_s"},
        {{"max_vehicles=2", "agents=3"}, DT_ECONFIG, "max_vehicles 2 has no room for 3 agents"},
        {{"history_s=0.3", "history_hz=5"}, DT_ECONFIG, "history_s 0.3 at history_hz 5 is 1.5 steps; a whole number"},
        {{"history_s=3", "control=signals"}, DT_ECONFIG, "with control = \"signals\" no vehicle is an agent"},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        const char *const set[] = {row[i].set[0], row[i].set[1], NULL};
        rig r;
        const dt_status is = rig_try(&r, set, 0);
        if (is != row[i].st || strstr(r.host.message, row[i].words) == NULL) {
            print_error("%d '%s', expected '%s'\n", is, r.host.message, row[i].words);
            assert_true(false);
        }
        rig_close(&r);
    }
}

static void test_memory(void **state)
{
    for (int64_t n = 1;; n++) {
        rig r;
        static const char *const set[] = {"history_s=1", NULL};
        const dt_status st = rig_try(&r, set, n);
        rig_close(&r);
        if (st == DT_OK) {
            assert_true(n > 3);
            return;
        }
        assert_int_equal(st, DT_ENOMEM);
        assert_non_null(strstr(r.host.message, "no memory"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec),        cmocka_unit_test(test_sight),
        cmocka_unit_test(test_collision),   cmocka_unit_test(test_acceleration_as_asked),
        cmocka_unit_test(test_lanes),       cmocka_unit_test(test_who_is_chosen),
        cmocka_unit_test(test_little_room), cmocka_unit_test(test_same_seed_same_bytes),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_memory),
        cmocka_unit_test(test_past),        cmocka_unit_test(test_near_is_no_collision),
        cmocka_unit_test(test_reward),      cmocka_unit_test(test_floating_cars),
    };
    const int code = make_folder();
    return code != 0 ? code : cmocka_run_group_tests(tests, make_nets, remove_folder);
}
