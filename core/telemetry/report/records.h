/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics.jsonl as series: every name of every phase with its numbers in order. Reads a file that is still written, as
 * far as it has whole lines, and continues from there when called again. Threads: an object belongs to one thread.
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_RECORDS_H
#define DTRAIN_CORE_TELEMETRY_REPORT_RECORDS_H

#include "dtrain/status.h"
#include <stdbool.h>

enum { DT_RECORDS_MAX_SERIES = 1 << 18 }; /* of a file; a record that brings more is damaged */

typedef struct dt_series { /* one name in one phase */
    char *name;
    uint32_t phase; /* index in dt_records.phase */
    uint32_t n, cap;
    uint32_t *at;  /* which record each value is of, rising */
    double *value; /* NAN: written as null, because it was not finite */
} dt_series;

typedef struct dt_phase_records { /* consecutive records of one phase; the same id may come again */
    char *id;
    uint32_t first, n;
    uint32_t first_series; /* those of a phase are adjacent in dt_records.series */
} dt_phase_records;

typedef struct dt_records {
    uint64_t *step; /* of the phase */
    double
        *wall_s; /* since the run began, the time of interruptions left out: it continues where a resume starts at 0 */
    uint32_t n, cap;
    dt_phase_records *phase;
    uint32_t n_phases, cap_phases;
    dt_series *series;
    uint32_t n_series, cap_series;
    uint32_t *slot; /* of a name in a phase: 1 + its series, 0: free; n_slots is a power of two */
    uint32_t n_slots;
    uint64_t
        n_looks; /* names compared while looking up, for tests: a file of many names costs no more than its length */
    uint64_t n_bad, first_bad; /* lines that are no records, and the line number of the first */
    bool is_cut;               /* the last line has no end: a crash, or a write under way */
} dt_records;

typedef struct dt_records_reader dt_records_reader;

/* Errors: DT_ENOTFOUND, DT_EIO, DT_ENOMEM. Nothing is read yet. */
dt_status dt_records_open(const char *path, dt_records_reader **out_p) DT_NODISCARD;
/* The records of a text, all at once; name is for messages. Nothing is new to a poll. Errors: DT_ENOMEM. */
dt_status dt_records_read_mem(const char *text, size_t bytes, const char *name, dt_records_reader **out_p) DT_NODISCARD;
void dt_records_close(dt_records_reader *r);
/* Takes what was written since. A file that was cut or replaced (a resume) is read again. DT_DONE: nothing is new. */
dt_status dt_records_poll(dt_records_reader *r) DT_NODISCARD;
const dt_records *dt_records_get(const dt_records_reader *r);

const dt_series *dt_records_find(const dt_records *r, uint32_t phase, const char *name); /* NULL: not there */
/* "loss", or "return/mean" of evaluations, of the last phase that has it; NULL: none has. */
const dt_series *dt_records_find_metric(const dt_records *r, const char *metric);
double dt_series_last(const dt_series *s);                           /* the last finite value */
uint32_t dt_records_series_end(const dt_records *r, uint32_t phase); /* past the last series of a phase */
/* The record of the phase's last evaluation ("eval/..."), UINT32_MAX: none. A later evaluation, as of a resumed run on
 * fewer seeds, may lack numbers that earlier ones had: their series end before it. */
uint32_t dt_records_last_evaluation(const dt_records *r, uint32_t phase);
bool dt_series_has_record(const dt_series *s, uint32_t record); /* is its last value of this record? */

#endif
