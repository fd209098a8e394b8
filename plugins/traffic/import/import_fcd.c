/* SPDX-License-Identifier: Apache-2.0
 *
 * Floating-car output of SUMO (sumo --fcd-output, https://sumo.dlr.de/docs/Simulation/Output/FCDOutput.html): the
 * vehicles of every time step. Angles are degrees from +y clockwise and positions the centres of the front bumpers; how
 * long a vehicle is is given by its type, in another file. See import.h.
 */
#include <config.h>

#include "traffic/features/features.h"
#include "traffic/import/import.h"
#include "traffic/text/names.h"
#include "traffic/import/rows.h"
#include "traffic/text/values.h"
#include "traffic/text/xml_reader.h"
#include "base/err.h"
#include "base/mem.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define TIME_MAX_S 1e9
/* a vehicle that moves by less than this share of its speed has positions in degrees of longitude and latitude, 111 km
 * each */
#define DEGREES_SHARE 1e-3
#define DEGREES_M     100.0 /* of driving: below, nothing is reported */

typedef struct size {
    double length, width; /* length NAN: not known */
} size;

typedef struct type {
    size size;
    dt_road_user user;
} type;

/* SUMO's vehicle classes, as far as their sizes differ (docs/Vehicle_Type_Parameter_Defaults of SUMO); the first is the
 * class of a type that names none. */
static const struct {
    const char *name;
    size size;
} classes[] = {{"passenger", {5, 1.8}},    {"private", {5, 1.8}},      {"taxi", {5, 1.8}},    {"hov", {5, 1.8}},
               {"evehicle", {5, 1.8}},     {"custom1", {5, 1.8}},      {"custom2", {5, 1.8}}, {"ignoring", {5, 1.8}},
               {"authority", {5, 1.8}},    {"vip", {5, 1.8}},          {"army", {5, 1.8}},    {"bus", {12, 2.5}},
               {"coach", {14, 2.6}},       {"delivery", {6.5, 2.16}},  {"truck", {7.1, 2.4}}, {"trailer", {16.5, 2.55}},
               {"emergency", {6.5, 2.16}}, {"motorcycle", {2.2, 0.9}}, {"moped", {2.1, 0.8}}, {"bicycle", {1.6, 0.65}}};

typedef struct types {
    dt_names names;
    type *type; /* [cap] */
    int32_t cap, n_read;
} types;

typedef struct vehicle {
    int64_t frame; /* it was last seen in */
    double x, y;
} vehicle;

typedef struct fcd {
    const dt_import_options *opt;
    dt_rows *rows;
    types types;
    dt_names names; /* of vehicles */
    dt_ids ids;     /* the numbers that they are stored by */
    vehicle *vehicle;
    int32_t vehicles_cap;
    double time0, time, step_s; /* of the first step, of this one, between the first two */
    int64_t n_steps, frame;
    double rate_hz;
    int32_t scene;
    double by_position, by_speed; /* m, of vehicles from step to step */
    dt_users users;
    int64_t n_others, n_unsized; /* persons and containers; rows of types without a size */
    char unsized[64];            /* one of them */
} fcd;

/* ---- types ------------------------------------------------------------------------------------------------------- */

static dt_status add_type(types *t, const char *name, const type *new)
{
    int32_t number = 0;
    bool is_new = false;
    DT_TRY(dt_names_add(&t->names, name, &number, &is_new));
    if (t->names.n > t->cap) {
        const int32_t cap = t->cap == 0 ? 16 : 2 * t->cap; /* of dt_names: at most DT_NAMES_MOST */
        type *grown = dt_realloc(t->type, (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %" PRId32 " vehicle types", cap);
        }
        t->type = grown;
        t->cap = cap;
    }
    t->type[number] = *new;
    return DT_OK;
}

/* Types are not checked beyond that: an unused type of 200 m is no reason to reject a file. */
static dt_status read_size(const dt_xml *x, const char *what, const char *text, double *out_p)
{
    double metres = 0;
    if (text == NULL) {
        return DT_OK;
    }
    DT_TRY(dt_xml_number(x, what, text, -DBL_MAX, DBL_MAX, &metres));
    *out_p = metres >= 0.01 && metres <= DT_SIZE_MAX_M ? metres : NAN;
    return DT_OK;
}

static dt_status begin_type(dt_xml *x)
{
    types *t = x->user;
    const char *id = NULL, *class = dt_xml_get(x, "vClass"), *length = dt_xml_get(x, "length"),
               *width = dt_xml_get(x, "width");
    if (!dt_xml_is(x, "vType")) {
        return DT_OK;
    }
    DT_TRY(dt_xml_require(x, "id", &id));
    size s = classes[0].size;
    size_t i = 0;
    const size_t n = sizeof(classes) / sizeof(classes[0]);
    while (class != NULL && i < n && strcmp(class, classes[i].name) != 0) {
        i++;
    }
    if (class != NULL && i < n) {
        s = classes[i].size;
    } else if (class != NULL) {
        s.length = NAN; /* of a class without a known size; only vehicles of the type matter */
    }
    DT_TRY(read_size(x, "length", length, &s.length));
    DT_TRY(read_size(x, "width", width, &s.width));
    t->n_read++;
    return add_type(t, id, &(type){s, class == NULL ? DT_USER_VEHICLE : dt_road_user_of(class)});
}

static dt_status read_types(types *t, const char *path)
{
    static const type default_type = {{5, 1.8}, DT_USER_VEHICLE}; /* of passenger cars */
    static const dt_xml_calls calls = {.begin = begin_type};
    dt_source *source = NULL;
    DT_TRY(add_type(t, "DEFAULT_VEHTYPE", &default_type));
    if (path == NULL || path[0] == '\0') {
        return DT_OK;
    }
    DT_TRY(dt_source_open(path, &source));
    const dt_status st = dt_xml_read(source, path, &calls, t);
    dt_source_close(source);
    DT_TRY(st);
    return t->n_read > 0 ? DT_OK : DT_FAIL(DT_EDATA, "%s has no vType, which import.types needs", path);
}

/* The type of a name; "TYPE@VEHICLE" is one that a simulation made of TYPE for a vehicle. NULL: not known. */
static const type *find_type(const types *t, const char *name)
{
    char base[128] = "";
    const char *mark = name == NULL ? NULL : strchr(name, '@');
    int32_t number = name == NULL ? -1 : dt_names_find(&t->names, name);
    if (number < 0 && mark != NULL && (size_t)(mark - name) < sizeof(base)) {
        memcpy(base, name, (size_t)(mark - name));
        number = dt_names_find(&t->names, base);
    }
    return number < 0 ? NULL : &t->type[number];
}

/* The road user of a type: from its vClass, else from its name, as DEFAULT_BIKETYPE. */
static dt_road_user find_road_user(const fcd *f, const char *name)
{
    const type *t = find_type(&f->types, name);
    const dt_road_user named = name == NULL ? DT_USER_VEHICLE : dt_road_user_of(name);
    return t != NULL ? t->user : named == DT_USER_UNKNOWN ? DT_USER_VEHICLE : named;
}

static size find_vehicle_size(fcd *f, const char *name)
{
    const type *t = find_type(&f->types, name);
    if (t != NULL && !isnan(t->size.length)) {
        return t->size;
    }
    if (f->n_unsized++ == 0) {
        snprintf(f->unsized, sizeof(f->unsized), "%s", name == NULL ? "" : name);
    }
    return (size){NAN, NAN};
}

/* ---- steps and vehicles ------------------------------------------------------------------------------------------ */

static dt_status check_root(const dt_xml *x)
{
    return dt_xml_is(x, "fcd-export")
               ? DT_OK
               : DT_FAIL(DT_EDATA, DT_XML_AT "is not fcd-export: not floating-car output of SUMO", DT_XML_HERE(x));
}

/* Seconds, or as --human-readable-time writes them. */
static dt_status read_time(const dt_xml *x, double *out_p)
{
    const char *text = NULL;
    DT_TRY(dt_xml_require(x, "time", &text));
    if (strchr(text, ':') == NULL) {
        return dt_xml_number(x, "time", text, -TIME_MAX_S, TIME_MAX_S, out_p);
    }
    return dt_value_parse_time(text, out_p) && fabs(*out_p) <= TIME_MAX_S
               ? DT_OK
               : DT_FAIL(DT_EDATA, DT_XML_AT "time is \"%.60s\", neither seconds nor [days:]hours:minutes:seconds",
                         DT_XML_HERE(x), text);
}

/* Times of the first two steps, which are all that the first reading is for. */
static dt_status begin_element_of_rate(dt_xml *x)
{
    fcd *f = x->user;
    double time = 0;
    if (x->depth == 0) {
        return check_root(x);
    }
    if (x->depth != 1 || !dt_xml_is(x, "timestep")) {
        return DT_OK;
    }
    DT_TRY(read_time(x, &time));
    if (f->n_steps++ == 0) {
        f->time0 = time;
        return DT_OK;
    }
    f->step_s = time - f->time0;
    return f->step_s > 0
               ? DT_DONE
               : DT_FAIL(DT_EDATA, DT_XML_AT "time runs backwards: %g s after %g s", DT_XML_HERE(x), time, f->time0);
}

static dt_status begin_step(dt_xml *x, fcd *f)
{
    double time = 0;
    DT_TRY(read_time(x, &time));
    if (f->n_steps++ > 0 && !(time > f->time)) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "time runs backwards: %g s after %g s", DT_XML_HERE(x), time, f->time);
    }
    const double frame = (time - f->time0) * f->rate_hz;
    if (fabs(frame - rint(frame)) > 0.1) {
        return DT_FAIL(DT_EDATA,
                       DT_XML_AT "time %g s is %.3f frames of %g Hz after the first step, not a whole number of them",
                       DT_XML_HERE(x), time, frame, f->rate_hz);
    }
    dt_rows_report_progress(f->rows, x->taken);
    f->time = time;
    f->frame = (int64_t)rint(frame);
    return DT_OK;
}

static dt_status find_vehicle(fcd *f, const dt_xml *x, const char *id, const dt_table_row *row, int32_t *number_p,
                              bool *is_new_p)
{
    DT_TRY(dt_names_add(&f->names, id, number_p, is_new_p));
    if (f->names.n > f->vehicles_cap) {
        const int32_t cap = f->vehicles_cap == 0 ? 256 : 2 * f->vehicles_cap; /* of dt_names */
        vehicle *grown = dt_realloc(f->vehicle, (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %" PRId32 " vehicles", cap);
        }
        f->vehicle = grown;
        f->vehicles_cap = cap;
    }
    const vehicle *v = &f->vehicle[*number_p];
    if (!*is_new_p && v->frame == f->frame && !(v->x == row->x && v->y == row->y)) { /* rows.c checks repetitions */
        return DT_FAIL(DT_EDATA, DT_XML_AT "\"%.60s\" is in the step of %g s twice", DT_XML_HERE(x), id, f->time);
    }
    return DT_OK;
}

static dt_status begin_vehicle(dt_xml *x, fcd *f)
{
    const char *id = NULL, *accel = dt_xml_get(x, "acceleration");
    double angle = 0;
    int32_t number = 0;
    bool is_new = false;
    dt_table_row row = {.scene = f->scene, .frame = f->frame, .line = x->line, .accel = NAN, .stop_distance = NAN};
    const char *type_name = dt_xml_get(x, "type"), *angle_text = dt_xml_get(x, "angle");
    const dt_road_user user = find_road_user(f, type_name);
    dt_users_add(&f->users, user, "");
    if (!dt_road_user_is_vehicle(user)) {
        return DT_OK;
    }
    DT_TRY(dt_xml_require(x, "id", &id));
    DT_TRY(dt_xml_require_number(x, "x", -DT_POSITION_MAX_M, DT_POSITION_MAX_M, &row.x));
    DT_TRY(dt_xml_require_number(x, "y", -DT_POSITION_MAX_M, DT_POSITION_MAX_M, &row.y));
    DT_TRY(angle_text != NULL ? dt_xml_number(x, "angle", angle_text, -360, 360, &angle) : DT_OK);
    DT_TRY(dt_xml_require_number(x, "speed", -DT_SPEED_MAX_MPS, DT_SPEED_MAX_MPS, &row.speed));
    DT_TRY(accel != NULL ? dt_xml_number(x, "acceleration", accel, -1e3, 1e3, &row.accel) : DT_OK);
    DT_TRY(find_vehicle(f, x, id, &row, &number, &is_new));
    vehicle *v = &f->vehicle[number];
    if (!is_new && v->frame == f->frame - 1) {
        f->by_position += hypot(row.x - v->x, row.y - v->y);
        f->by_speed += fabs(row.speed) / f->rate_hz;
    }
    *v = (vehicle){.frame = f->frame, .x = row.x, .y = row.y};
    const size s = find_vehicle_size(f, type_name);
    DT_TRY(dt_ids_get(&f->ids, id, &row.id));
    row.heading = angle_text == NULL ? NAN : remainder((90 - angle) * (M_PI / 180), 2 * M_PI);
    row.length = s.length;
    row.width = s.width;
    return dt_rows_add(f->rows, &row);
}

static dt_status begin_element(dt_xml *x)
{
    fcd *f = x->user;
    if (x->depth == 0) {
        return check_root(x);
    }
    if (x->depth == 1 && dt_xml_is(x, "timestep")) {
        return begin_step(x, f);
    }
    if (x->depth == 2 && dt_xml_is(x, "vehicle")) {
        return begin_vehicle(x, f);
    }
    f->n_others += x->depth == 2 && (dt_xml_is(x, "person") || dt_xml_is(x, "container"));
    return DT_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* bytes NULL: the file of that name. */
static dt_status parse_source(const dt_xml_calls *calls, const void *bytes, size_t n_bytes, const char *path, fcd *f)
{
    dt_source *source = NULL;
    f->n_steps = 0;
    DT_TRY(bytes != NULL ? dt_source_open_mem(bytes, n_bytes, path, &source) : dt_source_open(path, &source));
    const dt_status st = dt_xml_read(source, path, calls, f);
    dt_source_close(source);
    return st;
}

static dt_status find_rate(fcd *f, const char *path)
{
    const double wanted = f->opt->frame_rate_hz;
    const double rate = f->step_s > 0 ? 1 / f->step_s : wanted;
    f->rate_hz = fabs(rate - rint(rate)) < 1e-4 ? rint(rate) : rate; /* 0.1 s is what 3600.1 s - 3600 s is nearly */
    if (!(f->rate_hz >= DT_RATE_MIN_HZ && f->rate_hz <= DT_RATE_MAX_HZ)) {
        return DT_FAIL(DT_EDATA, "%s: %s %g Hz, outside [%g, %g]%s", path,
                       f->step_s > 0 ? "the first two steps make" : "has only one step, and import.frame_rate_hz is",
                       f->rate_hz, DT_RATE_MIN_HZ, DT_RATE_MAX_HZ, f->step_s > 0 ? "" : ": set import.frame_rate_hz");
    }
    return wanted == 0 || fabs(wanted - f->rate_hz) < 1e-9
               ? DT_OK
               : DT_FAIL(DT_EINVAL, "%s was written at %g Hz, import.frame_rate_hz is %g: nothing is resampled", path,
                         f->rate_hz, wanted);
}

static dt_status begin_file(fcd *f, const char *path)
{
    dt_str stem = {0};
    const char *site = f->opt->site != NULL && f->opt->site[0] != '\0' ? f->opt->site : "unknown";
    DT_TRY(dt_rows_file_begin(f->rows,
                              &(dt_rows_file){.path = path, .layout = "fcd", .rate_hz = f->rate_hz, .is_front = true}));
    dt_status st = dt_rows_stem(path, &stem);
    if (st == DT_OK) {
        st = dt_rows_scene(f->rows, 1, dt_str_text(&stem), site, false, &f->scene);
    }
    dt_str_fini(&stem);
    return st;
}

static dt_status read_file(fcd *f, const void *bytes, size_t n_bytes, const char *path)
{
    static const dt_xml_calls peek = {.begin = begin_element_of_rate}, all = {.begin = begin_element};
    dt_status st = parse_source(&peek, bytes, n_bytes, path, f);
    DT_TRY_DONE(st); /* of the second step */
    DT_TRY(find_rate(f, path));
    DT_TRY(begin_file(f, path));
    DT_TRY(parse_source(&all, bytes, n_bytes, path, f));
    if (f->names.n == 0) {
        return DT_FAIL(DT_EDATA, "%s contains no data: not one vehicle in %" PRId64 " time steps", path, f->n_steps);
    }
    if (f->by_speed > DEGREES_M && f->by_position < DEGREES_SHARE * f->by_speed) {
        return DT_FAIL(DT_EDATA,
                       "%s: vehicles move %.2g times as far as their speeds imply, as in degrees of longitude and "
                       "latitude: write it without --fcd-output.geo",
                       path, f->by_position / f->by_speed);
    }
    return DT_OK;
}

static void report_fcd(const fcd *f, dt_str *notes)
{
    dt_str_addf(notes, "floating cars of SUMO, %g Hz, %" PRId64 " time steps\n", f->rate_hz, f->n_steps);
    if (f->n_others > 0) {
        dt_str_addf(notes, "%" PRId64 " rows of persons and containers: left out\n", f->n_others);
    }
    dt_users_report(&f->users, "rows of ", notes);
    if (f->n_unsized > 0) {
        dt_str_addf(notes,
                    "%" PRId64 " rows of types whose size is not known, as \"%s\": import.types names the file of "
                    "SUMO that has them\n",
                    f->n_unsized, f->unsized);
    }
}

static dt_status import_fcd(const void *bytes, size_t n_bytes, const char *path, const dt_import_options *opt,
                            dt_str *notes, dt_rows *rows)
{
    fcd f = {.opt = opt, .rows = rows};
    dt_status st = read_types(&f.types, opt->types);
    if (st == DT_OK) {
        st = read_file(&f, bytes, n_bytes, path);
    }
    if (st == DT_OK) {
        report_fcd(&f, notes);
    }
    dt_names_fini(&f.types.names);
    dt_names_fini(&f.names);
    dt_ids_fini(&f.ids);
    dt_free(f.types.type);
    dt_free(f.vehicle);
    return st;
}

dt_status dt_fcd_read(const char *path, const dt_import_options *opt, dt_str *notes, dt_rows *rows)
{
    return import_fcd(NULL, 0, path, opt, notes, rows);
}

dt_status dt_fcd_check(const void *bytes, size_t n_bytes, const char *name, const dt_import_options *opt)
{
    dt_str notes = {0};
    dt_rows *rows = NULL;
    dt_status st = dt_rows_create(NULL, opt, &notes, &rows);
    if (st == DT_OK) {
        st = import_fcd(bytes, n_bytes, name, opt, &notes, rows);
    }
    dt_rows_destroy(rows);
    dt_str_fini(&notes);
    return st;
}
