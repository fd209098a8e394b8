/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/import/motion_check.h"
#include "base/err.h"

#include <math.h>

void dt_motion_check_init(dt_motion_check *m, double rate_hz)
{
    m->rate_hz = rate_hz;
    dt_tracker_init(&m->live, rate_hz);
}

void dt_motion_check_scene(dt_motion_check *m)
{
    dt_tracker_clear(&m->live);
}

static dt_table_row make_row(const dt_vehicle *v)
{
    return (dt_table_row){.line = -1,
                          .id = v->id,
                          .x = v->x,
                          .y = v->y,
                          .heading = v->heading,
                          .speed = v->speed,
                          .accel = v->accel,
                          .length = v->length,
                          .width = v->width,
                          .stop_distance = v->stop_distance};
}

static void count_unknown(dt_rows_report *t, const dt_vehicle *v)
{
    t->no_length += isnan(v->length);
    t->no_width += isnan(v->width);
    t->no_accel += isnan(v->accel);
    t->unknown_heading += isnan(v->heading);
}

dt_status dt_motion_check_frame(dt_motion_check *m, int64_t frame, const dt_vehicle *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        dt_tracked_vehicle *l = NULL;
        bool is_new = false;
        DT_TRY(dt_tracker_get(&m->live, v[i].id, frame, &l, &is_new));
        const dt_table_row row = make_row(&v[i]);
        const double before_s = is_new ? 0 : (double)(frame - l->frame) / m->rate_hz;
        dt_units_add_row(&m->units, &l->window, &row, before_s, l->last_x, l->last_y);
        count_unknown(&m->report, &v[i]);
        l->frame = frame;
        l->last_x = row.x;
        l->last_y = row.y;
    }
    dt_units_add_frame(&m->units, m->rate_hz, frame, v, n);
    return DT_OK;
}

dt_status dt_motion_check_report(dt_motion_check *m, const char *path, dt_str *notes)
{
    dt_rows_report_units(&m->report, &m->units, path, NULL);
    DT_TRY(dt_str_status(&m->report.warnings));
    dt_rows_report_print(&m->report, notes);
    return dt_str_status(notes);
}

void dt_motion_check_fini(dt_motion_check *m)
{
    dt_tracker_fini(&m->live);
    dt_str_fini(&m->report.warnings);
}
