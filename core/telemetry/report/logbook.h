/* SPDX-License-Identifier: Apache-2.0
 *
 * A run as a report shows it: its directory, read. What a run may lack (no step was made, no configuration was kept)
 * is empty; only what makes it a run must be there. Threads: an object belongs to one thread.
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_LOGBOOK_H
#define DTRAIN_CORE_TELEMETRY_REPORT_LOGBOOK_H

#include "telemetry/report/state.h"

typedef struct dt_logbook {
    char *path, *name; /* name: the folder's own */
    dt_flat meta, config, progress;
    dt_records_reader *reader; /* NULL: no metrics.jsonl */
    const dt_records *records;
    dt_run_state state;
    bool is_guarded; /* its folder is, while it is open */
} dt_logbook;

/* Errors: DT_ENOTFOUND when path is no run directory, DT_EDATA when one of its files is damaged, DT_EIO, DT_ENOMEM. */
dt_status dt_logbook_open(const char *path, dt_logbook *out) DT_NODISCARD;
/* Reads what changed since: records, and the state of the run. DT_DONE: nothing is new. */
dt_status dt_logbook_poll(dt_logbook *s) DT_NODISCARD;
void dt_logbook_close(dt_logbook *s);
/* What an evaluation left of a phase of the records: evaluation/<n>-<phase><end>, as written last. Empty where there is
 * none. Errors: DT_EDATA, DT_EIO, DT_ENOMEM. */
dt_status dt_logbook_read_evaluation(const dt_logbook *s, uint32_t phase, const char *end, dt_flat *out) DT_NODISCARD;

#endif
