/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/map/map_reader.h"
#include "traffic/features/features.h"
#include "traffic/map/utm.h"
#include "traffic/text/xml_reader.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

dt_status dt_map_origin_parse(const char *text, dt_map_origin *out_p)
{
    static const char utm[] = "utm:";
    dt_map_origin o = {.is_given = text[0] != '\0', .is_utm = strncmp(text, utm, strlen(utm)) == 0};
    char first[64] = "";
    const char *from = o.is_utm ? text + strlen(utm) : text, *comma = strchr(from, ',');
    if (!o.is_given) {
        *out_p = o;
        return DT_OK;
    }
    if (comma != NULL && (size_t)(comma - from) < sizeof(first)) {
        memcpy(first, from, (size_t)(comma - from));
    }
    const double most[2] = {o.is_utm ? 1e7 : DT_UTM_LATITUDE_MAX, o.is_utm ? 2e7 : 180};
    if (comma == NULL || !dt_parse_f64(first, &o.at[0]) || !dt_parse_f64(comma + 1, &o.at[1]) ||
        !(fabs(o.at[0]) <= most[0] && fabs(o.at[1]) <= most[1])) {
        return DT_FAIL(DT_EINVAL,
                       "an origin of \"%.60s\": it is \"LATITUDE,LONGITUDE\" in degrees, up to 84 and 180, or "
                       "\"utm:EASTING,NORTHING\" in metres",
                       text);
    }
    *out_p = o;
    return DT_OK;
}

dt_status dt_map_offset_parse(const char *text, double offset[2])
{
    char first[64] = "";
    const char *comma = strchr(text, ',');
    double by[2] = {0, 0};
    if (comma != NULL && (size_t)(comma - text) < sizeof(first)) {
        memcpy(first, text, (size_t)(comma - text));
    }
    if (text[0] != '\0' && (comma == NULL || !dt_parse_f64(first, &by[0]) || !dt_parse_f64(comma + 1, &by[1]) ||
                            !(fabs(by[0]) <= DT_POSITION_MAX_M && fabs(by[1]) <= DT_POSITION_MAX_M))) {
        return DT_FAIL(DT_EINVAL, "an offset of \"%.60s\": it is \"DX,DY\" in metres, up to %g", text,
                       DT_POSITION_MAX_M);
    }
    offset[0] = by[0];
    offset[1] = by[1];
    return DT_OK;
}

typedef struct input {
    const void *bytes; /* NULL: the file of that name */
    size_t n_bytes;
    const char *path;
} input;

static dt_status open_input(const input *in, dt_source **out_p)
{
    return in->bytes != NULL ? dt_source_open_mem(in->bytes, in->n_bytes, in->path, out_p)
                             : dt_source_open(in->path, out_p);
}

static dt_status note_root(dt_xml *x)
{
    snprintf(x->user, DT_XML_TEXT_BYTES, "%s", x->element);
    return DT_DONE;
}

static dt_status find_root(const input *in, char root[DT_XML_TEXT_BYTES])
{
    static const dt_xml_calls calls = {.begin = note_root};
    dt_source *source = NULL;
    DT_TRY(open_input(in, &source));
    const dt_status st = dt_xml_read(source, in->path, &calls, root);
    dt_source_close(source);
    return st == DT_DONE ? DT_OK : st;
}

/* The first character that is no blank; '\0': there is none among the first ones. */
static dt_status read_first_character(const input *in, char *out_p)
{
    dt_source *source = NULL;
    char head[256];
    DT_TRY(open_input(in, &source));
    const int64_t n = dt_source_read(source, head, sizeof(head));
    const dt_status st = n < 0 ? dt_error_status() : DT_OK;
    int64_t i = n > 0 ? (int64_t)dt_utf8_mark(head, (size_t)n) : 0;
    while (i < n && (head[i] == ' ' || head[i] == '\t' || head[i] == '\r' || head[i] == '\n')) {
        i++;
    }
    *out_p = i < n ? head[i] : '\0';
    dt_source_close(source);
    return st;
}

static dt_status read_json(const input *in, const dt_map_origin *origin, dt_str *notes, dt_roads *out_p)
{
    dt_source *source = NULL;
    DT_TRY(open_input(in, &source));
    const dt_status st = dt_map_read_argoverse(source, in->path, origin, notes, out_p);
    dt_source_close(source);
    return st;
}

static dt_status read_xml(const input *in, const dt_map_origin *origin, dt_str *notes, dt_roads *out_p)
{
    char root[DT_XML_TEXT_BYTES] = "";
    dt_source *source = NULL;
    DT_TRY(find_root(in, root));
    DT_TRY(open_input(in, &source));
    dt_status st;
    if (strcmp(root, "osm") == 0) {
        st = dt_map_read_lanelet2(source, in->path, origin, notes, out_p);
    } else if (strcmp(root, "net") == 0) {
        st = dt_map_read_sumo(source, in->path, origin, notes, out_p);
    } else {
        st = DT_FAIL(DT_EDATA, "%s: XML of <%.60s>, which is not a known map: osm (lanelet2) and net (SUMO) are",
                     in->path, root);
    }
    dt_source_close(source);
    return st;
}

static dt_status move_roads(dt_roads *r, const char *path, const double offset[2])
{
    for (int64_t i = 0; i < r->n_points; i++) {
        double *p = r->xy + 2 * i;
        p[0] += offset[0];
        p[1] += offset[1];
        if (!(fabs(p[0]) <= DT_POSITION_MAX_M && fabs(p[1]) <= DT_POSITION_MAX_M)) {
            return DT_FAIL(DT_EDATA, "%s: moved by %g, %g m, a lane reaches (%g, %g), more than %g m away", path,
                           offset[0], offset[1], p[0], p[1], DT_POSITION_MAX_M);
        }
    }
    return DT_OK;
}

static dt_status read_map(const input *in, const dt_map_origin *origin, dt_str *notes, dt_roads *out_p)
{
    char first = '\0';
    DT_TRY(read_first_character(in, &first));
    if (first != '{' && first != '<') {
        return DT_FAIL(DT_EDATA, "%s is not a known map: neither XML nor JSON", in->path);
    }
    return first == '{' ? read_json(in, origin, notes, out_p) : read_xml(in, origin, notes, out_p);
}

dt_status dt_map_read(const char *path, const dt_map_origin *origin, dt_str *notes, dt_roads *out_p)
{
    dt_roads roads = {.n_lanes = 0};
    DT_TRY(read_map(&(input){.path = path}, origin, notes, &roads));
    const dt_status st =
        origin->offset[0] != 0 || origin->offset[1] != 0 ? move_roads(&roads, path, origin->offset) : DT_OK;
    if (st != DT_OK) {
        dt_roads_fini(&roads);
        return st;
    }
    *out_p = roads;
    return DT_OK;
}

/* Names of scenes may have '/', as of recordings of several sites; they come from files. */
static bool leaves_folder(const char *scene, size_t n)
{
    for (size_t at = 0; at <= n;) {
        const size_t bytes = strcspn(scene + at, "/#");
        if (bytes == 2 && strncmp(scene + at, "..", 2) == 0) {
            return true;
        }
        at += bytes + 1;
    }
    return scene[0] == '/';
}

dt_status dt_map_find(const char *folder, const char *scene, dt_str *path)
{
    static const struct {
        const char *before, *after;
        bool is_inside; /* a folder of the scene's name */
    } names[] = {{"", ".osm", false},
                 {"", ".net.xml", false},
                 {"", ".json", false},
                 {"log_map_archive_", ".json", false},
                 {"log_map_archive_", ".json", true}};
    const int n = (int)strcspn(scene, "#");
    if (leaves_folder(scene, (size_t)n)) {
        return DT_FAIL(DT_ENOTFOUND, "scene %.*s has no map in %s: its name would point outside the folder", n, scene,
                       folder);
    }
    dt_str each = {0};
    dt_status st = DT_OK;
    dt_str_clear(path);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && st == DT_OK; i++) {
        dt_str_clear(&each);
        dt_str_addf(&each, "%s/", folder);
        if (names[i].is_inside) {
            dt_str_addf(&each, "%.*s/", n, scene);
        }
        dt_str_addf(&each, "%s%.*s%s", names[i].before, n, scene, names[i].after);
        st = dt_str_status(&each);
        if (st != DT_OK || !dt_fs_is_file(dt_str_text(&each))) {
            continue;
        }
        if (path->bytes > 0) {
            st = DT_FAIL(DT_EDATA, "scene %.*s has two maps, %s and %s: leave one of them in the folder", n, scene,
                         dt_str_text(path), dt_str_text(&each));
            continue;
        }
        dt_str_add(path, dt_str_text(&each));
        st = dt_str_status(path);
    }
    dt_str_fini(&each);
    if (st != DT_OK || path->bytes > 0) {
        return st;
    }
    return DT_FAIL(DT_ENOTFOUND,
                   "there is no map of scene %.*s in %s: %.*s.osm, .net.xml, .json or log_map_archive_%.*s.json", n,
                   scene, folder, n, scene, n, scene);
}

dt_status dt_map_check(const void *bytes, size_t n_bytes, const char *name, const dt_map_origin *origin)
{
    dt_str notes = {0};
    dt_roads roads = {.n_lanes = 0};
    const dt_status st = read_map(&(input){.bytes = bytes, .n_bytes = n_bytes, .path = name}, origin, &notes, &roads);
    dt_roads_fini(&roads);
    dt_str_fini(&notes);
    return st;
}
