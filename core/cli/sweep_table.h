/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of a sweep: its trials with their results and parameters, best first; for people, and as JSON for scripts.
 * Threads: [main].
 */
#ifndef DTRAIN_CORE_CLI_SWEEP_TABLE_H
#define DTRAIN_CORE_CLI_SWEEP_TABLE_H

#include "study/schedule.h"

typedef struct dt_sweep_row { /* of one trial */
    uint32_t trial, rung;     /* rung: of the result, or the one begun where there is none */
    bool has_failed, is_unknown;
    int exit_code; /* where it failed */
    double value;  /* NAN: none */
    uint64_t step; /* where that was */
} dt_sweep_row;

typedef struct dt_sweep_table {
    const dt_sweep *sweep;
    const dt_sweep_schedule *schedule;
    dt_sweep_row *row; /* [sweep->trials], which the call sorts */
} dt_sweep_table;

/* Prints it, and writes summary.json into the folder. Errors: DT_ENOMEM, DT_EIO. */
dt_status dt_sweep_table_write(const dt_sweep_table *t, const char *folder, bool as_json) DT_NODISCARD;

#endif
