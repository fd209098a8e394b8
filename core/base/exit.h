/* SPDX-License-Identifier: Apache-2.0
 *
 * Exit codes (docs/reference/exit-codes.md) and how a status becomes one. Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_EXIT_H
#define DTRAIN_CORE_BASE_EXIT_H

#include "dtrain/status.h"

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

/* DT_ENOTFOUND becomes 2: whoever looks for plugins or data turns it into DT_EABI or DT_EDATA first. */
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
