/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenarios of CommonRoad (https://commonroad.in.tum.de), XML of versions 2018b and 2020a: the trajectories of dynamic
 * obstacles, and lanelets (commonroad_map.h). Lights, planning problems, static obstacles and uncertain states are not
 * read. See import.h.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "data/commonroad_map.h"
#include "data/features.h"
#include "data/import.h"
#include "data/names.h"
#include "data/rows.h"
#include "data/values.h"
#include "data/xml_in.h"
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
    [VELOCITY] = {"velocity/exact", "velocity", -DT_SPEED_MAX_MPS, DT_SPEED_MAX_MPS, false},
    [ACCELERATION] = {"acceleration/exact", "acceleration", -1e3, 1e3, true},
};

typedef struct obstacle {
    bool is_open, is_dynamic, has_shape;
    dt_road_user user;
    dt_table_row last; /* the state before; its frame is last_step */
    int64_t id, n_states, last_step;
    double length, width;
    char type[48];
    double number[N_NUMBERS]; /* of the state being read; NAN: not there */
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
        return DT_FAIL(DT_EDATA, DT_XML_AT "is not commonRoad: no scenario of CommonRoad", DT_XML_HERE(x));
    }
    DT_TRY(dt_xml_need(x, "commonRoadVersion", &version));
    if (strcmp(version, "2018b") != 0 && strcmp(version, "2020a") != 0) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "is of version \"%.60s\"; 2018b and 2020a are read", DT_XML_HERE(x),
                       version);
    }
    snprintf(s->version, sizeof(s->version), "%s", version);
    DT_TRY(dt_xml_need_number(x, "timeStepSize", 1 / DT_RATE_MAX_HZ, 1 / DT_RATE_MIN_HZ, &step_s));
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

static dt_status begin_obstacle(const dt_xml *x, scenario *s)
{
    const char *id = NULL;
    int64_t number = 0;
    int32_t at = 0;
    bool is_new = false;
    s->n_lanelets += dt_xml_is(x, "lanelet");
    s->n_static += dt_xml_is(x, "staticObstacle");
    const bool is_old = dt_xml_is(x, "obstacle"); /* of 2018b: its role tells */
    if (!is_old && !dt_xml_is(x, "dynamicObstacle")) {
        return DT_OK;
    }
    DT_TRY(dt_xml_need(x, "id", &id));
    if (!dt_value_id(id, &number)) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "id is \"%.60s\", not an integer of 64 bits", DT_XML_HERE(x), id);
    }
    char canonical[32];
    snprintf(canonical, sizeof(canonical), "%" PRId64, number);
    DT_TRY(dt_names_add(&s->ids, canonical, &at, &is_new));
    if (!is_new) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "obstacle %s is there twice", DT_XML_HERE(x), canonical);
    }
    s->now = (obstacle){.is_open = true, .is_dynamic = !is_old, .id = number, .last_step = -1};
    s->n_below = 0;
    s->below[0] = '\0';
    return DT_OK;
}

static void clear_state(obstacle *o)
{
    for (int i = 0; i < N_NUMBERS; i++) {
        o->number[i] = NAN;
    }
}

static bool is_state(const scenario *s)
{
    return strcmp(s->below, "initialState") == 0 || strcmp(s->below, "trajectory/state") == 0;
}

static dt_status go_below(const dt_xml *x, scenario *s)
{
    const size_t n = strlen(x->element);
    if (s->n_below + n + 2 > sizeof(s->below)) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "lies below \"%.80s...\": no obstacle of CommonRoad has that",
                       DT_XML_HERE(x), s->below);
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

static void go_up(scenario *s)
{
    char *slash = strrchr(s->below, '/');
    s->n_below = slash == NULL ? 0 : (size_t)(slash - s->below);
    s->below[s->n_below] = '\0';
}

static dt_status begin(dt_xml *x)
{
    scenario *s = x->user;
    if (x->depth == 0) {
        return begin_scenario(x, s);
    }
    if (s->now.is_open) {
        return go_below(x, s);
    }
    DT_TRY(x->depth == 1 ? begin_obstacle(x, s) : DT_OK);
    return s->now.is_open ? DT_OK : dt_commonroad_map_begin(s->map, x);
}

/* ---- obstacles --------------------------------------------------------------------------------------------------- */

static dt_status number_of(const dt_xml *x, const char *what, double lo, double hi, double *out_p)
{
    return x->is_cut ? DT_FAIL(DT_EDATA, DT_XML_AT "%s is a text of more than %d bytes", DT_XML_HERE(x), what,
                               DT_XML_TEXT_BYTES)
                     : dt_xml_number(x, what, x->text, lo, hi, out_p);
}

static dt_status end_shape(const dt_xml *x, const char *below, obstacle *o)
{
    double value = 0;
    if (strcmp(below, "rectangle/length") == 0) {
        return number_of(x, "the length", 0, DT_SIZE_MAX_M, &o->length);
    }
    if (strcmp(below, "rectangle/width") == 0) {
        return number_of(x, "the width", 0, DT_SIZE_MAX_M, &o->width);
    }
    if (strcmp(below, "circle/radius") == 0) {
        DT_TRY(number_of(x, "the radius", 0, DT_SIZE_MAX_M / 2, &value));
        o->length = o->width = 2 * value;
    }
    o->has_shape |= strcmp(below, "rectangle") == 0 || strcmp(below, "circle") == 0;
    const bool is_moved = strcmp(below, "rectangle/orientation") == 0 || strcmp(below, "rectangle/center/x") == 0 ||
                          strcmp(below, "rectangle/center/y") == 0 || strcmp(below, "circle/center/x") == 0 ||
                          strcmp(below, "circle/center/y") == 0;
    if (is_moved) {
        DT_TRY(number_of(x, below, -1e3, 1e3, &value));
        if (value != 0) {
            return DT_FAIL(DT_EDATA,
                           DT_XML_AT "%s of obstacle %" PRId64
                                     " is %g: a shape that is not about its vehicle's centre, "
                                     "which is not read",
                           DT_XML_HERE(x), below, o->id, value);
        }
    }
    return DT_OK;
}

static bool is_near(double a, double b)
{
    return !(fabs(a - b) > 1e-4); /* as files round numbers; NAN: one of them does not say it */
}

/* The state of the step before once more: trajectories may begin with the initial state. */
static bool is_repeat(const obstacle *o)
{
    return (int64_t)o->number[TIME] == o->last_step && is_near(o->number[X], o->last.x) &&
           is_near(o->number[Y], o->last.y) && is_near(o->number[ORIENTATION], o->last.heading) &&
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
    if (!o->has_shape || !(o->length > 0)) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "of obstacle %" PRId64 " comes without a rectangle or circle before it",
                       DT_XML_HERE(x), o->id);
    }
    if (o->number[TIME] != floor(o->number[TIME])) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "of obstacle %" PRId64 ": time %g is no whole step", DT_XML_HERE(x), o->id,
                       o->number[TIME]);
    }
    if ((int64_t)o->number[TIME] <= o->last_step && !is_repeat(o)) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "of obstacle %" PRId64 ": time runs backwards: step %g after step %" PRId64,
                       DT_XML_HERE(x), o->id, o->number[TIME], o->last_step);
    }
    return DT_OK;
}

static dt_status end_state(const dt_xml *x, scenario *s)
{
    obstacle *o = &s->now;
    if (!o->is_dynamic || !dt_road_user_is_read(o->user)) {
        return DT_OK;
    }
    DT_TRY(check_state(x, o));
    if ((int64_t)o->number[TIME] == o->last_step) {
        s->n_repeats++;
        return DT_OK;
    }
    o->last_step = (int64_t)o->number[TIME];
    o->n_states++;
    s->n_rows++;
    const dt_table_row row = {.scene = s->scene,
                              .frame = o->last_step,
                              .id = o->id,
                              .line = x->line,
                              .x = o->number[X],
                              .y = o->number[Y],
                              .heading = o->number[ORIENTATION],
                              .speed = o->number[VELOCITY],
                              .accel = o->number[ACCELERATION],
                              .length = o->length,
                              .width = o->width,
                              .stop_distance = NAN};
    o->last = row;
    return dt_rows_add(s->rows, &row);
}

/* The end of an element below an obstacle. */
static dt_status end_below(const dt_xml *x, scenario *s)
{
    static const char shape[] = "shape/", *const state[] = {"initialState/", "trajectory/state/"};
    obstacle *o = &s->now;
    if (strcmp(s->below, "role") == 0) {
        o->is_dynamic = strcmp(x->text, "dynamic") == 0;
    } else if (strcmp(s->below, "type") == 0) {
        o->user = dt_road_user_of(x->text);
        snprintf(o->type, sizeof(o->type), "%.40s", x->text);
    } else if (strncmp(s->below, shape, strlen(shape)) == 0) {
        return o->is_dynamic && dt_road_user_is_read(o->user) ? end_shape(x, s->below + strlen(shape), o) : DT_OK;
    } else if (is_state(s)) {
        return end_state(x, s);
    }
    for (int k = 0; k < 2; k++) {
        const size_t n = strlen(state[k]);
        for (int i = 0; i < N_NUMBERS && strncmp(s->below, state[k], n) == 0; i++) {
            if (strcmp(s->below + n, numbers[i].path) == 0) {
                return number_of(x, numbers[i].name, numbers[i].lo, numbers[i].hi, &o->number[i]);
            }
        }
    }
    return DT_OK;
}

static dt_status end(dt_xml *x)
{
    scenario *s = x->user;
    obstacle *o = &s->now;
    if (x->depth < 1 || !o->is_open) {
        return x->depth < 1 ? DT_OK : dt_commonroad_map_end(s->map, x);
    }
    if (x->depth > 1) {
        const dt_status st = end_below(x, s);
        go_up(s);
        return st;
    }
    s->n_static += !o->is_dynamic;
    if (o->is_dynamic) {
        dt_users_add(&s->users, o->user, o->type);
    }
    s->n_single += o->is_dynamic && o->n_states == 1;
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

static void tell(const scenario *s, dt_str *notes)
{
    dt_str_addf(notes, "CommonRoad %s, %g Hz, %d obstacles, %" PRId64 " states\n", s->version, s->rate_hz, s->ids.n,
                s->n_rows);
    if (s->n_static > 0) {
        dt_str_addf(notes, "%" PRId64 " static obstacles: left out\n", s->n_static);
    }
    dt_users_tell(&s->users, "", notes);
    if (s->n_repeats > 0) {
        dt_str_addf(notes, "%" PRId64 " states that repeat the one before: left out\n", s->n_repeats);
    }
    if (s->n_single > 0) {
        dt_str_addf(notes, "%" PRId64 " dynamic obstacles without a trajectory: their first state alone\n",
                    s->n_single);
    }
    const char *limit = NULL;
    const int64_t n_limits = dt_commonroad_map_unknown(s->map, &limit);
    if (n_limits > 0) {
        dt_str_addf(notes, "%" PRId64 " limits of speed that are not understood (\"%s\"): left out\n", n_limits, limit);
    }
    if (s->n_lanelets > 0) {
        dt_str_addf(notes, "%" PRId64 " lanelets: map %s\n", s->n_lanelets, s->map_name);
    }
}

/* bytes NULL: the file of that name. */
static dt_status import_scenario(const void *bytes, size_t n_bytes, const char *path, const dt_import_options *opt,
                                 dt_str *notes, dt_rows *rows)
{
    static const dt_xml_calls calls = {.begin = begin, .end = end};
    scenario s = {.opt = opt, .rows = rows, .path = path};
    dt_source *source = NULL;
    dt_status st = bytes != NULL ? dt_source_open_mem(bytes, n_bytes, path, &source) : dt_source_open(path, &source);
    if (st == DT_OK) {
        st = dt_xml_read(source, path, &calls, &s);
    }
    if (st == DT_OK && s.n_rows == 0) {
        st = DT_FAIL(DT_EDATA, "%s holds no data: not one state of a dynamic obstacle", path);
    }
    if (st == DT_OK) {
        st = keep_map(&s);
    }
    if (st == DT_OK) {
        tell(&s, notes);
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
