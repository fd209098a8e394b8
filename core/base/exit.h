/* SPDX-License-Identifier: Apache-2.0
 *
 * Exit codes: the one table of them (docs/reference/exit-codes.md is tested against it), and how a status becomes one.
 * Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_EXIT_H
#define DTRAIN_CORE_BASE_EXIT_H

#include "dtrain/status.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    DT_EXIT_DONE = 0,
    DT_EXIT_FAILED = 1,
    DT_EXIT_USAGE = 2,
    DT_EXIT_PLUGIN = 3,
    DT_EXIT_DATA = 4,
    DT_EXIT_DEVICE = 5,
    DT_EXIT_PEER = 6,
    DT_EXIT_DIVERGED = 7,
    DT_EXIT_INTERRUPTED = 75
};

typedef struct dt_exit_row {
    int code;
    const char *meaning;
    bool is_rejection; /* of what was given: nothing was trained, and the same again ends alike */
} dt_exit_row;

static const dt_exit_row dt_exit_rows[] = {
    {DT_EXIT_DONE, "done", false},
    {DT_EXIT_FAILED, "the run failed", false},
    {DT_EXIT_USAGE, "usage or configuration", true},
    {DT_EXIT_PLUGIN, "plugin rejected, or it broke its contract", true},
    {DT_EXIT_DATA, "data rejected", true},
    {DT_EXIT_DEVICE, "environment or device missing", true},
    {DT_EXIT_PEER, "a peer lost, or a collective timed out", false},
    {DT_EXIT_DIVERGED, "training diverged", false},
    {DT_EXIT_INTERRUPTED, "interrupted, state saved: run again with --resume", false},
};
enum { DT_EXIT_ROWS = sizeof(dt_exit_rows) / sizeof(dt_exit_rows[0]) };

/* NULL: no code of dtrain, but 128 + a signal, or another program's. */
static inline const dt_exit_row *dt_exit_find(int code)
{
    for (size_t i = 0; i < DT_EXIT_ROWS; i++) {
        if (dt_exit_rows[i].code == code) {
            return &dt_exit_rows[i];
        }
    }
    return NULL;
}

static inline bool dt_exit_is_rejection(int code)
{
    const dt_exit_row *row = dt_exit_find(code);
    return row != NULL && row->is_rejection;
}

/* Of a phase's callbacks, DT_EINVAL and breaches of the contract are DT_EPLUGIN by then (err.h). DT_ENOTFOUND becomes
 * 2: a search for plugins or data turns it into DT_EABI or DT_EDATA first. */
static inline int dt_exit_code(dt_status st)
{
    switch (st) {
    case DT_EINVAL:
    case DT_ECONFIG:
    case DT_ESHAPE:
    case DT_ENOTFOUND:
        return DT_EXIT_USAGE;
    case DT_EABI:
    case DT_EPLUGIN:
        return DT_EXIT_PLUGIN;
    case DT_EDATA:
        return DT_EXIT_DATA;
    case DT_EUNSUPPORTED:
    case DT_ECUDA:
        return DT_EXIT_DEVICE;
    case DT_ECOMM:
    case DT_EPEER:
        return DT_EXIT_PEER;
    case DT_EDIVERGED:
        return DT_EXIT_DIVERGED;
    case DT_EINTERRUPTED:
        return DT_EXIT_INTERRUPTED;
    default:
        return st >= 0 ? DT_EXIT_DONE : DT_EXIT_FAILED;
    }
}

#endif
