/* SPDX-License-Identifier: Apache-2.0
 *
 * Recordings as a table, plain or packed by gzip or xz: cut into cells, and read as an import reads it. Cells are texts
 * without what separates them.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "data/csv.h"
#include "data/import.h"

#include <string.h>

static void cut(const uint8_t *bytes, size_t n)
{
    dt_csv *c = NULL;
    char *const *cell = NULL;
    int n_cells = 0;
    int64_t line = 0;
    if (dt_csv_open_mem(bytes, n, "input", &c) != DT_OK) {
        fuzz_hold(*dt_error_text() != '\0');
        return;
    }
    while (dt_csv_next(c, &cell, &n_cells) == DT_OK) {
        fuzz_hold(n_cells > 0 && n_cells <= DT_CSV_CELLS && dt_csv_line(c) > line);
        line = dt_csv_line(c);
        for (int i = 0; i < n_cells; i++) {
            fuzz_hold(strchr(cell[i], '\n') == NULL);
            fuzz_touch_text(cell[i]);
        }
    }
    dt_csv_close(c);
}

DT_FUZZ(csv)
{
    static const dt_import_options plain = {.frame_rate_hz = 10},
                                   mapped = {.columns = "id=a,frame=b,x=c*0.3048,y=d,speed=e",
                                             .frame_rate_hz = 10,
                                             .memory_bytes = 1 << 16};
    fuzz_begin();
    cut(bytes, n);
    if (dt_table_check(bytes, n, "input", &plain) != DT_OK) {
        fuzz_hold(*dt_error_text() != '\0');
        (void)!dt_table_check(bytes, n, "input", &mapped);
    } else {
        fuzz_accepted();
    }
    fuzz_end();
    return 0;
}
