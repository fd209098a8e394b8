/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenarios of CommonRoad (https://commonroad.in.tum.de), XML of versions 2018b and 2020a: the trajectories of dynamic
 * obstacles, and lanelets (commonroad_map.h). Lights, planning problems, static obstacles and uncertain states are not
 * read. See import.h.
 *
 * A vehicle is stored as the box around its shape, along its orientation: rectangles that are turned or shifted,
 * circles, polygons, and several of them. The place that is stored is the middle of the box.
 */
#include <config.h>

#include "traffic/map/commonroad_map.h"
#include "traffic/features/features.h"
#include "traffic/import/import.h"
#include "traffic/text/names.h"
#include "traffic/import/rows.h"
#include "traffic/text/values.h"
#include "traffic/text/xml_reader.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 160, STEP_MOST = 1000000000 };

/* Numbers of a state. */
enum { TIME, X, Y, ORIENTATION, VELOCITY, ACCELERATION, N_NUMBERS };
static const struct {
    const char *path, *name; /* below the state */
    double lo, hi;
    bool may_be_missing;
} numbers[N_NUMBERS] = {
    [TIME] = {"time/exact", "time", 0, STEP_MOST, false},
    [X] = {"position/point/x", "position", -DT_POSITION_MAX_M, DT_POSITION_MAX_M, false},
    [Y] = {"position/point/y", "position", -DT_POSITION_MAX_M, DT_POSITION_MAX_M, false},
    [ORIENTATION] = {"orientation/exact", "orientation", -1e3, 1e3, false},
    [VELOCITY] = {"velocity/exact", "velocity", -DT_SPEED_MAX_MPS, DT_SPEED_MAX_MPS, true},
    [ACCELERATION] = {"acceleration/exact", "acceleration", -1e3, 1e3, true},
};

/* Numbers of a piece of a shape, relative to the position; NAN: not there. */
enum { LENGTH, WIDTH, RADIUS, TURN, CENTRE_X, CENTRE_Y, POINT_X, POINT_Y, N_PIECE };
static const struct {
    const char *path, *name; /* below the shape */
    int number;
    double lo, hi;
} piece_numbers[] = {
    {"rectangle/length", "the length", LENGTH, 0, DT_SIZE_MAX_M},
    {"rectangle/width", "the width", WIDTH, 0, DT_SIZE_MAX_M},
    {"rectangle/orientation", "the orientation", TURN, -1e3, 1e3},
    {"rectangle/center/x", "the center", CENTRE_X, -DT_SIZE_MAX_M, DT_SIZE_MAX_M},
    {"rectangle/center/y", "the center", CENTRE_Y, -DT_SIZE_MAX_M, DT_SIZE_MAX_M},
    {"circle/radius", "the radius", RADIUS, 0, DT_SIZE_MAX_M / 2},
    {"circle/center/x", "the center", CENTRE_X, -DT_SIZE_MAX_M, DT_SIZE_MAX_M},
    {"circle/center/y", "the center", CENTRE_Y, -DT_SIZE_MAX_M, DT_SIZE_MAX_M},
    {"polygon/point/x", "a point", POINT_X, -DT_SIZE_MAX_M, DT_SIZE_MAX_M},
    {"polygon/point/y", "a point", POINT_Y, -DT_SIZE_MAX_M, DT_SIZE_MAX_M},
};

typedef struct obstacle {
    bool is_open, is_dynamic;
    dt_road_user user;
    dt_table_row last; /* the state that was stored last; its frame is last_step */
    int64_t id, n_states, last_step;
    double piece[N_PIECE];  /* of the shape, being read */
    double low[2], high[2]; /* m, of the box so far, along the vehicle and across */
    int n_pieces;           /* in it */
    bool is_boxed;          /* they are not one rectangle or circle about the position */
    double before[2];       /* m: the position of the state before, stored or not */
    int64_t before_step;    /* its step, -1: none */
    char type[48];
    double number[N_NUMBERS]; /* of the state being read; NAN: not there */
    bool is_uncertain;        /* it has an interval or an area in place of an exact value */
} obstacle;

typedef struct scenario {
    const dt_import_options *opt;
    dt_rows *rows;
    const char *path;
    char version[16];
    double rate_hz;
    int32_t scene;
    dt_names ids; /* of obstacles */
    obstacle now;
    char below[PATH_BYTES]; /* the elements below the obstacle, as "trajectory/state/time/exact" */
    size_t n_below;
    dt_users users; /* dynamic obstacles */
    int64_t n_rows, n_static, n_lanelets, n_single, n_repeats;
    int64_t n_boxed;                            /* obstacles */
    int64_t n_uncertain, n_speeds, n_speedless; /* states: left out, with a speed by positions, without any */
    dt_commonroad_map *map;
    char map_name[128];
} scenario;

/* ---- the document ------------------------------------------------------------------------------------------------ */

static dt_status begin_scenario(const dt_xml *x, scenario *s)
{
    const char *version = NULL, *id = dt_xml_get(x, "benchmarkID");
    double step_s = 0;
    char site[128] = "unknown";
    dt_str stem = {0};
    if (!dt_xml_is(x, "commonRoad")) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "is not commonRoad: not a scenario of CommonRoad", DT_XML_HERE(x));
    }
    DT_TRY(dt_xml_require(x, "commonRoadVersion", &version));
    if (strcmp(version, "2018b") != 0 && strcmp(version, "2020a") != 0) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "is of version \"%.60s\"; 2018b and 2020a are read", DT_XML_HERE(x),
                       version);
    }
    snprintf(s->version, sizeof(s->version), "%s", version);
    DT_TRY(dt_xml_require_number(x, "timeStepSize", 1 / DT_RATE_MAX_HZ, 1 / DT_RATE_MIN_HZ, &step_s));
    const double rate = 1 / step_s;
    s->rate_hz = fabs(rate - rint(rate)) < 1e-6 ? rint(rate) : rate;
    if (s->opt->frame_rate_hz > 0 && fabs(s->opt->frame_rate_hz - s->rate_hz) > 1e-9) {
        return DT_FAIL(DT_EINVAL, "%s is of %g Hz, import.frame_rate_hz is %g: nothing is resampled", s->path,
                       s->rate_hz, s->opt->frame_rate_hz);
    }
    DT_TRY(dt_rows_file_begin(s->rows,
                              &(dt_rows_file){.path = s->path, .layout = "commonroad xml", .rate_hz = s->rate_hz}));
    if (s->opt->site != NULL && s->opt->site[0] != '\0') {
        snprintf(site, sizeof(site), "%s", s->opt->site);
    } else if (id != NULL) {
        dt_rows_site_of_benchmark(id, site, sizeof(site));
    }
    dt_status st = DT_OK;
    if (id != NULL) {
        dt_str_add(&stem, id);
    } else {
        st = dt_rows_stem(s->path, &stem);
    }
    if (st == DT_OK) {
        st = dt_str_status(&stem);
    }
    if (st == DT_OK) {
        st = dt_rows_scene(s->rows, x->line, dt_str_text(&stem), site, false, &s->scene);
    }
    if (st == DT_OK) {
        dt_rows_map_of_benchmark(dt_str_text(&stem), s->map_name, sizeof(s->map_name));
        st = dt_commonroad_map_create(s->path, strcmp(version, "2018b") == 0, &s->map);
    }
    dt_str_fini(&stem);
    return st;
}

static void clear_shape(obstacle *o)
{
    for (int i = 0; i < N_PIECE; i++) {
        o->piece[i] = NAN;
    }
}

static dt_status begin_obstacle(const dt_xml *x, scenario *s)
{
    const char *id = NULL;
    int64_t number = 0;
    int32_t at = 0;
    bool is_new = false;
    s->n_lanelets += dt_xml_is(x, "lanelet");
    s->n_static += dt_xml_is(x, "staticObstacle");
    const bool is_old = dt_xml_is(x, "obstacle"); /* of 2018b: from its role */
    if (!is_old && !dt_xml_is(x, "dynamicObstacle")) {
        return DT_OK;
    }
    DT_TRY(dt_xml_require(x, "id", &id));
    if (!dt_value_parse_id(id, &number)) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "id is \"%.60s\", not an integer of 64 bits", DT_XML_HERE(x), id);
    }
    char canonical[32];
    snprintf(canonical, sizeof(canonical), "%" PRId64, number);
    DT_TRY(dt_names_add(&s->ids, canonical, &at, &is_new));
    if (!is_new) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "obstacle %s is defined twice", DT_XML_HERE(x), canonical);
    }
    s->now = (obstacle){.is_open = true, .is_dynamic = !is_old, .id = number, .last_step = -1, .before_step = -1};
    clear_shape(&s->now);
    s->n_below = 0;
    s->below[0] = '\0';
    return DT_OK;
}

static void clear_state(obstacle *o)
{
    for (int i = 0; i < N_NUMBERS; i++) {
        o->number[i] = NAN;
    }
    o->is_uncertain = false;
}

static bool is_state(const scenario *s)
{
    return strcmp(s->below, "initialState") == 0 || strcmp(s->below, "trajectory/state") == 0;
}

static dt_status enter_element(const dt_xml *x, scenario *s)
{
    const size_t n = strlen(x->element);
    if (s->n_below + n + 2 > sizeof(s->below)) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "is inside \"%.80s...\": no obstacle of CommonRoad has that", DT_XML_HERE(x),
                       s->below);
    }
    if (s->n_below > 0) {
        s->below[s->n_below++] = '/';
    }
    memcpy(s->below + s->n_below, x->element, n + 1);
    s->n_below += n;
    if (is_state(s)) {
        clear_state(&s->now);
    }
    return DT_OK;
}

static void leave_element(scenario *s)
{
    char *slash = strrchr(s->below, '/');
    s->n_below = slash == NULL ? 0 : (size_t)(slash - s->below);
    s->below[s->n_below] = '\0';
}

static dt_status begin_element(dt_xml *x)
{
    scenario *s = x->user;
    if (x->depth == 0) {
        return begin_scenario(x, s);
    }
    if (s->now.is_open) {
        return enter_element(x, s);
    }
    DT_TRY(x->depth == 1 ? begin_obstacle(x, s) : DT_OK);
    return s->now.is_open ? DT_OK : dt_commonroad_map_begin(s->map, x);
}

/* ---- obstacles --------------------------------------------------------------------------------------------------- */

static double or_zero(double x)
{
    return isnan(x) ? 0 : x;
}

/* A piece of the shape that reaches so far along the vehicle and across from its centre. */
static void add_to_box(obstacle *o, double x, double y, double along, double across)
{
    const double low[2] = {x - along, y - across}, high[2] = {x + along, y + across};
    for (int d = 0; d < 2; d++) {
        o->low[d] = o->n_pieces == 0 ? low[d] : fmin(o->low[d], low[d]);
        o->high[d] = o->n_pieces == 0 ? high[d] : fmax(o->high[d], high[d]);
    }
    o->n_pieces++;
}

static dt_status fail_piece(const dt_xml *x, const obstacle *o, const char *what)
{
    return DT_FAIL(DT_EDATA, DT_XML_AT "of obstacle %" PRId64 " has no %s", DT_XML_HERE(x), o->id, what);
}

/* The end of a rectangle, of a circle, or of a point of a polygon: the box that it is in along the orientation. */
static dt_status end_piece(const dt_xml *x, const char *below, obstacle *o)
{
    const double *p = o->piece, cx = or_zero(p[CENTRE_X]), cy = or_zero(p[CENTRE_Y]), turn = or_zero(p[TURN]);
    const bool is_rectangle = strcmp(below, "rectangle") == 0, is_circle = strcmp(below, "circle") == 0;
    if (is_rectangle) {
        if (isnan(p[LENGTH]) || isnan(p[WIDTH])) {
            return fail_piece(x, o, "length or no width");
        }
        const double c = fabs(cos(turn)), s = fabs(sin(turn));
        o->is_boxed |= o->n_pieces > 0;
        add_to_box(o, cx, cy, 0.5 * (c * p[LENGTH] + s * p[WIDTH]), 0.5 * (s * p[LENGTH] + c * p[WIDTH]));
    } else if (is_circle) {
        if (isnan(p[RADIUS])) {
            return fail_piece(x, o, "radius");
        }
        o->is_boxed |= o->n_pieces > 0;
        add_to_box(o, cx, cy, p[RADIUS], p[RADIUS]);
    } else if (strcmp(below, "polygon/point") == 0) {
        if (isnan(p[POINT_X]) || isnan(p[POINT_Y])) {
            return fail_piece(x, o, "x or no y");
        }
        add_to_box(o, p[POINT_X], p[POINT_Y], 0, 0);
        o->is_boxed = true;
    } else {
        return DT_OK;
    }
    o->is_boxed |= cx != 0 || cy != 0 || turn != 0;
    clear_shape(o);
    return DT_OK;
}

static dt_status end_shape(const dt_xml *x, const char *below, obstacle *o)
{
    for (size_t i = 0; i < sizeof(piece_numbers) / sizeof(piece_numbers[0]); i++) {
        if (strcmp(below, piece_numbers[i].path) == 0) {
            return dt_xml_text_number(x, piece_numbers[i].name, piece_numbers[i].lo, piece_numbers[i].hi,
                                      &o->piece[piece_numbers[i].number]);
        }
    }
    return end_piece(x, below, o);
}

static bool is_near(double a, double b)
{
    return !(fabs(a - b) > 1e-4); /* as files round numbers; NAN: one of them does not have it */
}

/* The state of the step before again: trajectories may begin with the initial state. */
static bool is_repeat(const obstacle *o)
{
    return (int64_t)o->number[TIME] == o->last_step && is_near(o->number[X], o->before[0]) &&
           is_near(o->number[Y], o->before[1]) && is_near(o->number[ORIENTATION], o->last.heading) &&
           is_near(o->number[VELOCITY], o->last.speed) && is_near(o->number[ACCELERATION], o->last.accel);
}

static dt_status check_state(const dt_xml *x, const obstacle *o)
{
    for (int i = 0; i < N_NUMBERS; i++) {
        if (isnan(o->number[i]) && !numbers[i].may_be_missing) {
            return DT_FAIL(DT_EDATA, DT_XML_AT "of obstacle %" PRId64 " has no exact %s", DT_XML_HERE(x), o->id,
                           numbers[i].name);
        }
    }
    const double length = o->high[0] - o->low[0];
    if (!(length > 0) || !(length <= DT_SIZE_MAX_M)) {
        return DT_FAIL(DT_EDATA,
                       DT_XML_AT "of obstacle %" PRId64 " has a shape of length %g before it, outside (0, %g]",
                       DT_XML_HERE(x), o->id, length, DT_SIZE_MAX_M);
    }
    if (o->number[TIME] != floor(o->number[TIME])) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "of obstacle %" PRId64 ": time %g is not a whole step", DT_XML_HERE(x),
                       o->id, o->number[TIME]);
    }
    if ((int64_t)o->number[TIME] <= o->last_step && !is_repeat(o)) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "of obstacle %" PRId64 ": time runs backwards: step %g after step %" PRId64,
                       DT_XML_HERE(x), o->id, o->number[TIME], o->last_step);
    }
    return DT_OK;
}

/* The speed of a state that has none: of the way since the state before, which is no more than a second ago. NAN: there
 * is none. */
static double speed_by_positions(const scenario *s, const obstacle *o)
{
    const int64_t steps = (int64_t)o->number[TIME] - o->before_step;
    const double x = o->number[X] - o->before[0], y = o->number[Y] - o->before[1], h = o->number[ORIENTATION];
    if (o->before_step < 0 || steps < 1 || (double)steps > s->rate_hz) {
        return NAN;
    }
    const double speed = hypot(x, y) * s->rate_hz / (double)steps;
    return x * cos(h) + y * sin(h) < 0 ? -speed : speed;
}

static dt_status add_state(const dt_xml *x, scenario *s)
{
    obstacle *o = &s->now;
    const double h = o->number[ORIENTATION],
                 middle[2] = {0.5 * (o->low[0] + o->high[0]), 0.5 * (o->low[1] + o->high[1])};
    o->last_step = (int64_t)o->number[TIME];
    o->n_states++;
    s->n_rows++;
    dt_table_row row = {.scene = s->scene,
                        .frame = o->last_step,
                        .id = o->id,
                        .line = x->line,
                        .x = o->number[X],
                        .y = o->number[Y],
                        .heading = h,
                        .speed = o->number[VELOCITY],
                        .accel = o->number[ACCELERATION],
                        .length = o->high[0] - o->low[0],
                        .width = o->high[1] - o->low[1],
                        .stop_distance = NAN};
    if (middle[0] != 0 || middle[1] != 0) {
        row.x += middle[0] * cos(h) - middle[1] * sin(h);
        row.y += middle[0] * sin(h) + middle[1] * cos(h);
    }
    o->last = row;
    return dt_rows_add(s->rows, &row);
}

static dt_status end_state(const dt_xml *x, scenario *s)
{
    obstacle *o = &s->now;
    if (!o->is_dynamic || !dt_road_user_is_vehicle(o->user)) {
        return DT_OK;
    }
    if (o->is_uncertain) {
        s->n_uncertain++;
        return DT_OK;
    }
    DT_TRY(check_state(x, o));
    if ((int64_t)o->number[TIME] == o->last_step) {
        s->n_repeats++;
        return DT_OK;
    }
    const bool has_velocity = !isnan(o->number[VELOCITY]);
    if (!has_velocity) {
        o->number[VELOCITY] = speed_by_positions(s, o);
    }
    o->before_step = (int64_t)o->number[TIME];
    o->before[0] = o->number[X];
    o->before[1] = o->number[Y];
    if (isnan(o->number[VELOCITY])) {
        s->n_speedless++;
        return DT_OK;
    }
    s->n_speeds += !has_velocity;
    return add_state(x, s);
}

/* Values of a state that are known only within bounds: an interval, an area, a lanelet. */
static bool is_bounds(const char *below)
{
    static const char *const paths[] = {"time/intervalStart", "orientation/intervalStart", "velocity/intervalStart",
                                        "position/rectangle", "position/circle",           "position/polygon",
                                        "position/lanelet"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        if (strcmp(below, paths[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* The end of an element below an obstacle. */
static dt_status end_obstacle_part(const dt_xml *x, scenario *s)
{
    static const char shape[] = "shape/", *const state[] = {"initialState/", "trajectory/state/"};
    obstacle *o = &s->now;
    if (strcmp(s->below, "role") == 0) {
        o->is_dynamic = strcmp(x->text, "dynamic") == 0;
    } else if (strcmp(s->below, "type") == 0) {
        if (o->type[0] != '\0') {
            return DT_FAIL(DT_EDATA, DT_XML_AT "of obstacle %" PRId64 " is given twice", DT_XML_HERE(x), o->id);
        }
        o->user = dt_road_user_of(x->text);
        snprintf(o->type, sizeof(o->type), "%.40s", x->text);
    } else if (strncmp(s->below, shape, strlen(shape)) == 0) {
        return o->is_dynamic && dt_road_user_is_vehicle(o->user) ? end_shape(x, s->below + strlen(shape), o) : DT_OK;
    } else if (is_state(s)) {
        return end_state(x, s);
    }
    const bool is_read = o->is_dynamic && dt_road_user_is_vehicle(o->user);
    for (int k = 0; k < 2; k++) {
        const size_t n = strlen(state[k]);
        const bool is_in_state = strncmp(s->below, state[k], n) == 0;
        o->is_uncertain |= is_in_state && is_bounds(s->below + n);
        for (int i = 0; i < N_NUMBERS && is_in_state && is_read; i++) {
            if (strcmp(s->below + n, numbers[i].path) == 0) {
                return dt_xml_text_number(x, numbers[i].name, numbers[i].lo, numbers[i].hi, &o->number[i]);
            }
        }
    }
    return DT_OK;
}

static dt_status end_element(dt_xml *x)
{
    scenario *s = x->user;
    obstacle *o = &s->now;
    if (x->depth < 1 || !o->is_open) {
        return x->depth < 1 ? DT_OK : dt_commonroad_map_end(s->map, x);
    }
    if (x->depth > 1) {
        const dt_status st = end_obstacle_part(x, s);
        leave_element(s);
        return st;
    }
    s->n_static += !o->is_dynamic;
    if (o->is_dynamic) {
        dt_users_add(&s->users, o->user, o->type);
    }
    s->n_single += o->is_dynamic && o->n_states == 1;
    s->n_boxed += o->is_boxed && o->n_states > 0;
    *o = (obstacle){.is_open = false};
    return DT_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static dt_status keep_map(scenario *s)
{
    const dt_roads *roads = NULL;
    int32_t number = 0;
    DT_TRY(dt_commonroad_map_close(s->map, &roads));
    if (roads != NULL && s->opt->map != NULL && s->opt->map[0] != '\0') {
        return DT_FAIL(DT_EINVAL, "%s has lanelets of its own, and import.map is %s: leave it out", s->path,
                       s->opt->map);
    }
    if (roads != NULL) {
        DT_TRY(dt_rows_map(s->rows, s->map_name, roads, &number));
        dt_rows_scene_map(s->rows, s->scene, number);
    }
    return DT_OK;
}

static void report_scenario(const scenario *s, dt_str *notes)
{
    dt_str_addf(notes, "CommonRoad %s, %g Hz, %d obstacles, %" PRId64 " states\n", s->version, s->rate_hz, s->ids.n,
                s->n_rows);
    if (s->n_static > 0) {
        dt_str_addf(notes, "%" PRId64 " static obstacles: left out\n", s->n_static);
    }
    dt_users_report(&s->users, "", notes);
    if (s->n_repeats > 0) {
        dt_str_addf(notes, "%" PRId64 " states that repeat the one before: left out\n", s->n_repeats);
    }
    if (s->n_single > 0) {
        dt_str_addf(notes, "%" PRId64 " dynamic obstacles without a trajectory: only their first state\n", s->n_single);
    }
    if (s->n_boxed > 0) {
        dt_str_addf(notes,
                    "%" PRId64
                    " obstacles whose shape is not a rectangle or circle about their position: stored as the box "
                    "around it\n",
                    s->n_boxed);
    }
    if (s->n_uncertain > 0) {
        dt_str_addf(notes, "%" PRId64 " states with intervals or areas in place of exact values: left out\n",
                    s->n_uncertain);
    }
    if (s->n_speeds > 0) {
        dt_str_addf(notes, "%" PRId64 " states without a velocity: made from positions\n", s->n_speeds);
    }
    if (s->n_speedless > 0) {
        dt_str_addf(notes, "%" PRId64 " states without a velocity, and none before them to compute it from: left out\n",
                    s->n_speedless);
    }
    dt_commonroad_map_report(s->map, notes);
    if (s->n_lanelets > 0) {
        dt_str_addf(notes, "%" PRId64 " lanelets: map %s\n", s->n_lanelets, s->map_name);
    }
}

/* bytes NULL: the file of that name. */
static dt_status import_scenario(const void *bytes, size_t n_bytes, const char *path, const dt_import_options *opt,
                                 dt_str *notes, dt_rows *rows)
{
    static const dt_xml_calls calls = {.begin = begin_element, .end = end_element};
    scenario s = {.opt = opt, .rows = rows, .path = path};
    dt_source *source = NULL;
    dt_status st = bytes != NULL ? dt_source_open_mem(bytes, n_bytes, path, &source) : dt_source_open(path, &source);
    if (st == DT_OK) {
        st = dt_xml_read(source, path, &calls, &s);
    }
    if (st == DT_OK && s.n_rows == 0) {
        st = DT_FAIL(DT_EDATA, "%s contains no data: not one state of a dynamic obstacle", path);
    }
    if (st == DT_OK) {
        st = keep_map(&s);
    }
    if (st == DT_OK) {
        report_scenario(&s, notes);
    }
    dt_source_close(source);
    dt_names_fini(&s.ids);
    dt_commonroad_map_destroy(s.map);
    return st;
}

dt_status dt_commonroad_read(const char *path, const dt_import_options *opt, dt_str *notes, dt_rows *rows)
{
    return import_scenario(NULL, 0, path, opt, notes, rows);
}

dt_status dt_commonroad_check(const void *bytes, size_t n_bytes, const char *name, const dt_import_options *opt)
{
    dt_str notes = {0};
    dt_rows *rows = NULL;
    dt_status st = dt_rows_create(NULL, opt, &notes, &rows);
    if (st == DT_OK) {
        st = import_scenario(bytes, n_bytes, name, opt, &notes, rows);
    }
    dt_rows_destroy(rows);
    dt_str_fini(&notes);
    return st;
}
