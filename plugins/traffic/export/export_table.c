/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/export/export_table.h"
#include "traffic/store/staging.h"
#include "traffic/store/cut.h"
#include "traffic/store/store.h"
#include "base/err.h"
#include "base/fs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 1 << 20 };
enum { STOP = 7, CONTROLLED = 8 }; /* node features */

typedef struct table {
    const dt_store *s;
    const dt_store_view *v;
    const int64_t *track_id;
    dt_str text; /* what is not written yet */
    const char *path;
    int fd;
} table;

/* A comma and the shortest text that reads back as this double; an empty cell where it is unknown. */
static void put_number(dt_str *out, double x)
{
    char text[32];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), ",%.*g", digits, x);
        if (strtod(text + 1, NULL) == x) {
            break;
        }
    }
    dt_str_add(out, isnan(x) ? "," : text);
}

/* The same of a float, which the store keeps. */
static void put_float(dt_str *out, float x)
{
    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof(text), ",%.*g", digits, (double)x);
        if (strtof(text + 1, NULL) == x) {
            break;
        }
    }
    dt_str_add(out, isnan(x) ? "," : text);
}

/* A name as a cell: in quotes where it needs them. */
static void write_name(dt_str *out, const char *name)
{
    if (strpbrk(name, ",\"") == NULL) {
        dt_str_add(out, name);
        return;
    }
    dt_str_add(out, "\"");
    for (; *name != '\0'; name++) {
        dt_str_add_n(out, name, 1);
        dt_str_add(out, *name == '"' ? "\"" : "");
    }
    dt_str_add(out, "\"");
}

static dt_status flush_table(table *t)
{
    DT_TRY(dt_str_status(&t->text));
    const dt_status st = dt_fs_write(t->fd, t->path, dt_str_text(&t->text), t->text.bytes);
    dt_str_clear(&t->text);
    return st;
}

static dt_status put_row(table *t, int64_t scene, int64_t frame, int64_t row)
{
    float node[DT_NODE_FEATURES];
    const float *stop = dt_store_stop_distance(t->s);
    const dt_store_view *v = t->v;
    const double *pose = v->pose + 3 * row;
    const float *motion = v->motion + 4 * row;
    DT_TRY(dt_store_read(t->s, DT_STORE_NODE, row, 1, node));
    write_name(&t->text, v->scene[scene]);
    dt_str_add(&t->text, ",");
    write_name(&t->text, v->site[v->scene_site[scene]]);
    dt_str_addf(&t->text, ",%" PRId64, frame - v->scene_frame[scene]);
    put_number(&t->text, v->frame_time[frame]);
    dt_str_addf(&t->text, ",%" PRId64, t->track_id[v->row_track[row]]);
    for (int k = 0; k < 3; k++) {
        put_number(&t->text, pose[k]);
    }
    for (int k = 0; k < 4; k++) {
        put_float(&t->text, motion[k]);
    }
    const float stop_m = stop != NULL ? stop[row] : node[STOP];
    put_float(&t->text, stop_m < (float)DT_STOP_DISTANCE_MAX_M ? stop_m : NAN); /* there it is unknown */
    dt_str_add(&t->text, node[CONTROLLED] != 0 ? ",1" : ",0");
    put_number(&t->text, v->frame_rate_hz);
    dt_str_add(&t->text, "\n");
    return DT_OK;
}

static dt_status put_rows(table *t)
{
    const dt_store_view *v = t->v;
    dt_str_add(&t->text, "scene,site,frame,time,id,x,y,heading,speed,accel,length,width,stop_distance,controlled,"
                         "frame_rate_hz\n");
    for (int64_t s = 0; s < v->n_scenes; s++) {
        for (int64_t f = v->scene_frame[s]; f < v->scene_frame[s + 1]; f++) {
            for (int64_t r = v->frame_row[f]; r < v->frame_row[f + 1]; r++) {
                DT_TRY(put_row(t, s, f, r));
            }
            if (t->text.bytes > BUFFER_BYTES) {
                DT_TRY(flush_table(t));
            }
        }
    }
    return flush_table(t);
}

static dt_status write_table(table *t, dt_staging *aside)
{
    t->path = dt_staging_path(aside);
    DT_TRY(dt_fs_create(t->path, &t->fd));
    const dt_status st = put_rows(t);
    const dt_status closed = dt_fs_sync_close(t->fd, t->path);
    DT_TRY(st);
    DT_TRY(closed);
    return dt_staging_commit(aside);
}

dt_status dt_data_export(const char *store, const char *file, dt_str *notes)
{
    dt_store *s = NULL;
    dt_staging *aside = NULL;
    DT_TRY(dt_staging_check(file, DT_STAGING_FILE));
    DT_TRY(dt_store_open(store, &s));
    table t = {.s = s, .v = dt_store_view_of(s), .track_id = dt_store_track_ids(s)};
    dt_status st = dt_cut_check_whole(s, "export");
    if (st == DT_OK) {
        st = dt_staging_open(file, DT_STAGING_FILE, &aside);
    }
    if (st == DT_OK) {
        st = write_table(&t, aside);
    }
    if (st == DT_OK) {
        dt_str_addf(notes, "%s: %" PRId64 " scenes, %" PRId64 " frames at %g Hz, %" PRId64 " rows\n", file,
                    t.v->n_scenes, t.v->n_frames, t.v->frame_rate_hz, t.v->n_rows);
    }
    dt_staging_close(aside);
    dt_str_fini(&t.text);
    dt_store_close(s);
    return st;
}
