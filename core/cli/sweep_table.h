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
    int exit_code;            /* where it failed */
    double value;             /* NAN: none */
    uint64_t step;            /* where that was */
    const double *seed_value; /* [sweep->n_seeds] of the last rung whose seeds have all ended; NAN: none */
} dt_sweep_row;

typedef struct dt_sweep_table {
    const dt_sweep *sweep;
    const dt_sweep_schedule *schedule;
    dt_sweep_row *row; /* [sweep->trials], which the call sorts */
} dt_sweep_table;

typedef enum dt_sweep_print { DT_SWEEP_PRINT_NOTHING, DT_SWEEP_PRINT_TABLE, DT_SWEEP_PRINT_JSON } dt_sweep_print;

/* Prints it, and writes summary.json into the folder, which reports are made from (study/sweep_page.h). Errors:
 * DT_ENOMEM, DT_EIO. */
dt_status dt_sweep_table_write(const dt_sweep_table *t, const char *folder, dt_sweep_print print) DT_NODISCARD;

#endif
