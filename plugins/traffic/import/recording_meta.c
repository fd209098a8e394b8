/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/import/recording_meta.h"
#include "traffic/import/columns.h"
#include "traffic/text/csv.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { RATE, LOCATION, N_NEEDED, UTM_X = N_NEEDED, UTM_Y, RECORDING, LIMIT, UPPER, LOWER, N_WANTED };
#define MARKING_MOST_M 1e3
#define LIMIT_MOST_MPS 150.0
static const char *const wanted[N_WANTED] = {
    [RATE] = "frameRate",          [LOCATION] = "locationId",    [UTM_X] = "xUtmOrigin",
    [UTM_Y] = "yUtmOrigin",        [RECORDING] = "recordingId",  [LIMIT] = "speedLimit",
    [UPPER] = "upperLaneMarkings", [LOWER] = "lowerLaneMarkings"};

/* A number of the row. */
static dt_status read_number(const dt_csv *csv, char *const *cell, const int at[N_WANTED], int which, double lo,
                             double hi, double *out_p)
{
    const char *text = cell[at[which]];
    if (!dt_parse_f64(text, out_p) || !(*out_p >= lo && *out_p <= hi)) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s is \"%.60s\", not a number in [%g, %g]", dt_csv_path(csv),
                       dt_csv_line(csv), wanted[which], text, lo, hi);
    }
    return DT_OK;
}

/* "8.51;12.59;16.43": lines from top to bottom, as many as there are. */
static dt_status read_markings(const dt_csv *csv, const char *cell, int which, double out[DT_MARKINGS_MOST], int *n_p)
{
    const char *from = cell;
    int n = 0;
    while (*from != '\0') {
        char text[32] = "";
        const size_t bytes = strcspn(from, ";");
        if (bytes < sizeof(text)) {
            memcpy(text, from, bytes);
        }
        if (n == DT_MARKINGS_MOST || !dt_parse_f64(text, &out[n]) ||
            !(fabs(out[n]) <= MARKING_MOST_M && (n == 0 || out[n] > out[n - 1]))) {
            return DT_FAIL(DT_EDATA,
                           "%s:%" PRId64 ": %s is \"%.60s\", not at most %d rising numbers up to %g between ';'",
                           dt_csv_path(csv), dt_csv_line(csv), wanted[which], cell, DT_MARKINGS_MOST, MARKING_MOST_M);
        }
        n++;
        from += bytes;
        from += *from == ';';
    }
    if (n == 1) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s is \"%.60s\", only one line: a lane needs two", dt_csv_path(csv),
                       dt_csv_line(csv), wanted[which], cell);
    }
    *n_p = n;
    return DT_OK;
}

/* What is not in every table: the limit (-1: none), and the lines of the carriageways. */
static dt_status read_road(const dt_csv *csv, char *const *cell, const int at[N_WANTED], dt_recording_meta *m)
{
    for (int k = 0; k < 2; k++) {
        const int column = at[UPPER + k];
        DT_TRY(column >= 0 ? read_markings(csv, cell[column], UPPER + k, m->marking[k], &m->n_markings[k]) : DT_OK);
    }
    if (at[LIMIT] >= 0 && m->n_markings[0] + m->n_markings[1] > 0) { /* else nothing has it */
        DT_TRY(read_number(csv, cell, at, LIMIT, -1, LIMIT_MOST_MPS, &m->speed_limit));
        m->speed_limit = fmax(0, m->speed_limit);
    }
    return DT_OK;
}

dt_status dt_recording_meta_parse(dt_csv *csv, dt_recording_meta *out_p)
{
    char *const *cell = NULL;
    int n = 0, n_header = 0, at[N_WANTED];
    for (int w = 0; w < N_WANTED; w++) {
        at[w] = -1;
    }
    const dt_status st = dt_csv_next(csv, &cell, &n_header);
    if (st != DT_OK) {
        return st == DT_DONE ? DT_FAIL(DT_EDATA, "%s contains no data: not even a header line", dt_csv_path(csv)) : st;
    }
    for (int i = 0; i < n_header; i++) {
        for (int w = 0; w < N_WANTED; w++) {
            at[w] = at[w] < 0 && strcasecmp(cell[i], wanted[w]) == 0 ? i : at[w];
        }
        at[RECORDING] = at[RECORDING] < 0 && strcasecmp(cell[i], "id") == 0 ? i : at[RECORDING]; /* of highD */
    }
    for (int w = 0; w < N_NEEDED; w++) {
        if (at[w] < 0) {
            return DT_FAIL(DT_EDATA, "%s:1: there is no column \"%s\"", dt_csv_path(csv), wanted[w]);
        }
    }
    dt_status next = dt_csv_next(csv, &cell, &n);
    if (next == DT_DONE) {
        return DT_FAIL(DT_EDATA, "%s contains no data: a header and no row", dt_csv_path(csv));
    }
    DT_TRY(next);
    if (n != n_header) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %d cells, the header has %d", dt_csv_path(csv), dt_csv_line(csv), n,
                       n_header);
    }
    double rate = 0, location = 0, recording = -1;
    DT_TRY(read_number(csv, cell, at, RATE, DT_RATE_MIN_HZ, DT_RATE_MAX_HZ, &rate));
    DT_TRY(read_number(csv, cell, at, LOCATION, 0, 1e9, &location));
    if (location != floor(location)) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": locationId is %g, not an integer", dt_csv_path(csv), dt_csv_line(csv),
                       location);
    }
    if (at[RECORDING] >= 0) {
        DT_TRY(read_number(csv, cell, at, RECORDING, 0, 1e9, &recording));
    }
    dt_recording_meta meta = {.recording = (int64_t)recording,
                              .frame_rate_hz = rate,
                              .location = (int64_t)location,
                              .has_utm = at[UTM_X] >= 0 && at[UTM_Y] >= 0};
    if (meta.has_utm) {
        DT_TRY(read_number(csv, cell, at, UTM_X, -1e7, 1e7, &meta.utm[0]));
        DT_TRY(read_number(csv, cell, at, UTM_Y, -2e7, 2e7, &meta.utm[1]));
    }
    DT_TRY(read_road(csv, cell, at, &meta));
    *out_p = meta;
    return DT_OK;
}

/* Of "data/07_tracks.csv" the 7; -1: it has no number there. from: where "_tracks." is. */
static int64_t parse_file_number(const char *tracks, const char *from)
{
    int64_t n = -1;
    const char *slash = memrchr(tracks, '/', (size_t)(from - tracks)), *name = slash != NULL ? slash + 1 : tracks;
    char digits[16] = "";
    if (from > name && (size_t)(from - name) < sizeof(digits)) {
        memcpy(digits, name, (size_t)(from - name));
    }
    return strspn(digits, "0123456789") == strlen(digits) && dt_parse_i64(digits, &n) ? n : -1;
}

/* Files of several recordings in one folder, mixed up, would give one the rate and place of another. */
static dt_status check_recording(const char *path, int64_t named, const dt_recording_meta *m)
{
    if (named < 0 || m->recording < 0 || named == m->recording) {
        return DT_OK;
    }
    return DT_FAIL(DT_EDATA, "%s: it is of recording %" PRId64 ", but the file name has %" PRId64, path, m->recording,
                   named);
}

/* "_tracks." in the name of the file, NULL: it has another form. */
static const char *find_word(const char *tracks)
{
    const char *slash = strrchr(tracks, '/');
    return strstr(slash == NULL ? tracks : slash, "_tracks.");
}

static dt_status path_of_table(const char *tracks, const char *word, dt_str *out)
{
    const char *from = find_word(tracks);
    if (from == NULL) {
        return DT_FAIL(DT_ENOTFOUND, "%s is not named NN_tracks.csv, so NN%s.csv cannot be found in its folder", tracks,
                       word);
    }
    dt_str_add_n(out, tracks, (size_t)(from - tracks));
    dt_str_addf(out, "%s.csv", word);
    return dt_str_status(out);
}

dt_status dt_recording_meta_path(const char *tracks, dt_str *out)
{
    return path_of_table(tracks, "_recordingMeta", out);
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

/* "007" and "7" are one id. */
static void write_id(const char *text, char *out, size_t bytes)
{
    int64_t id = 0;
    if (dt_value_parse_id(text, &id)) {
        snprintf(out, bytes, "%" PRId64, id);
    } else {
        snprintf(out, bytes, "%.60s", text);
    }
}

static dt_status add_user(dt_recording_users *u, const char *text, dt_road_user user)
{
    char id[64];
    int32_t number = 0;
    bool is_new = false;
    write_id(text, id, sizeof(id));
    DT_TRY(dt_names_add(&u->ids, id, &number, &is_new));
    if (number >= u->cap) {
        const int32_t cap = u->cap == 0 ? 256 : 2 * u->cap; /* of dt_names: at most DT_NAMES_MOST */
        dt_road_user *grown = dt_realloc(u->user, (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for the classes of %" PRId32 " vehicles", cap);
        }
        u->user = grown;
        u->cap = cap;
    }
    u->user[number] = user;
    return DT_OK;
}

static dt_status read_users(dt_csv *csv, dt_recording_users *u)
{
    char *const *cell = NULL;
    int n = 0, n_header = 0, id = -1, class = -1;
    dt_status st = dt_csv_next(csv, &cell, &n_header);
    for (int i = 0; i < n_header && st == DT_OK; i++) {
        const bool is_id = strcasecmp(cell[i], "trackId") == 0 || strcasecmp(cell[i], "id") == 0;
        id = id < 0 && is_id ? i : id;
        class = class < 0 && strcasecmp(cell[i], "class") == 0 ? i : class;
    }
    while (st == DT_OK && id >= 0 && class >= 0 && (st = dt_csv_next(csv, &cell, &n)) == DT_OK) {
        if (n != n_header) {
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %d cells, the header has %d", dt_csv_path(csv), dt_csv_line(csv),
                           n, n_header);
        }
        DT_TRY(add_user(u, cell[id], dt_road_user_of(cell[class])));
    }
    return st == DT_DONE ? DT_OK : st;
}

dt_status dt_recording_users_read(const char *tracks, dt_recording_users *out)
{
    dt_str path = {0};
    dt_csv *csv = NULL;
    if (find_word(tracks) == NULL) {
        return DT_OK;
    }
    dt_status st = path_of_table(tracks, "_tracksMeta", &path);
    if (st == DT_OK && dt_fs_is_file(dt_str_text(&path))) {
        st = dt_csv_open(dt_str_text(&path), &csv);
        if (st == DT_OK) {
            st = read_users(csv, out);
        }
    }
    dt_csv_close(csv);
    dt_str_fini(&path);
    return st;
}

dt_road_user dt_recording_user(const dt_recording_users *u, const char *text)
{
    char id[64];
    write_id(text, id, sizeof(id));
    const int32_t number = dt_names_find(&u->ids, id);
    return number < 0 ? DT_USER_UNKNOWN : u->user[number];
}

void dt_recording_users_fini(dt_recording_users *u)
{
    dt_names_fini(&u->ids);
    dt_free(u->user);
    *u = (dt_recording_users){.cap = 0};
}

/* ---- the recording ----------------------------------------------------------------------------------------------- */

dt_status dt_recording_meta_read(const char *tracks, dt_recording_meta *out_p)
{
    dt_str path = {0};
    dt_csv *csv = NULL;
    dt_status st = dt_recording_meta_path(tracks, &path);
    if (st == DT_OK && !dt_fs_is_file(dt_str_text(&path))) {
        st = DT_FAIL(DT_ENOTFOUND, "there is no %s", dt_str_text(&path));
    }
    if (st == DT_OK) {
        st = dt_csv_open(dt_str_text(&path), &csv);
    }
    if (st == DT_OK) {
        st = dt_recording_meta_parse(csv, out_p);
    }
    if (st == DT_OK) {
        st = check_recording(dt_str_text(&path), parse_file_number(tracks, find_word(tracks)), out_p);
    }
    dt_csv_close(csv);
    dt_str_fini(&path);
    return st;
}
