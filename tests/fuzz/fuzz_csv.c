/* SPDX-License-Identifier: Apache-2.0
 *
 * Recordings as a table, plain or packed by gzip or xz: cut into cells, and read as an import reads it; and the table
 * in addition to one that says its rate and lanes. Line breaks in cells, which only quotes allow, are counted as lines.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "traffic/text/csv.h"
#include "traffic/import/import.h"
#include "traffic/import/lane_markings.h"

#include <string.h>

static void cut(const uint8_t *bytes, size_t n, int is_ahead)
{
    dt_csv *c = NULL;
    char *const *cell = NULL;
    int n_cells = 0;
    int64_t last = 0; /* line on which the row before ends, at least */
    if (dt_csv_open_mem(bytes, n, "input", &c) != DT_OK) {
        fuzz_hold(*dt_error_text() != '\0');
        return;
    }
    if (is_ahead) {
        dt_csv_read_ahead(c);
    }
    while (dt_csv_next(c, &cell, &n_cells) == DT_OK) {
        fuzz_hold(n_cells > 0 && n_cells <= DT_CSV_CELLS && dt_csv_line(c) > last);
        last = dt_csv_line(c);
        for (int i = 0; i < n_cells; i++) {
            fuzz_touch_text(cell[i]);
            for (const char *at = cell[i]; (at = strchr(at, '\n')) != NULL; at++) {
                last++;
            }
        }
    }
    dt_csv_close(c);
}

/* The table next to one of highD, and the lanes between the lines that it names. */
static void read_meta(const uint8_t *bytes, size_t n)
{
    static const double seen[2] = {0, 400};
    dt_csv *c = NULL;
    dt_recording_meta m;
    dt_roads roads = {.n_lanes = 0};
    if (dt_csv_open_mem(bytes, n, "input", &c) != DT_OK) {
        return;
    }
    if (dt_recording_meta_parse(c, &m) != DT_OK) {
        fuzz_hold(*dt_error_text() != '\0');
    } else {
        fuzz_hold(m.n_markings[0] <= DT_MARKINGS_MOST && m.n_markings[1] <= DT_MARKINGS_MOST);
        fuzz_hold(dt_roads_from_markings(&m, seen, "input", &roads) == DT_OK || *dt_error_text() != '\0');
        fuzz_accepted();
    }
    dt_roads_fini(&roads);
    dt_csv_close(c);
}

DT_FUZZ(csv)
{
    static const dt_import_options plain = {.frame_rate_hz = 10},
                                   mapped = {.columns = "id=a,frame=b,x=c*0.3048,y=d,speed=e",
                                             .frame_rate_hz = 10,
                                             .memory_bytes = 1 << 16};
    static const dt_import_options ahead = {.frame_rate_hz = 10, .jobs = 2};
    const uint8_t *all = bytes;
    fuzz_begin();
    all = fuzz_expand(bytes, n, &n);
    cut(all, n, 0);
    if (all != bytes || fuzz_is_chosen(all, n)) { /* by a thread, in blocks */
        cut(all, n, 1);
        (void)!dt_table_check(all, n, "input", &ahead);
    }
    read_meta(all, n);
    if (dt_table_check(all, n, "input", &plain) != DT_OK) {
        fuzz_hold(*dt_error_text() != '\0');
        (void)!dt_table_check(all, n, "input", &mapped);
    } else {
        fuzz_accepted();
    }
    fuzz_end();
    return 0;
}
