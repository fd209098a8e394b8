/* SPDX-License-Identifier: Apache-2.0
 *
 * The small files of a run directory that are written once: config.cfg, config.origin.json, meta.json, progress.json.
 * Without them a folder is no run for `dtrain runs`, `watch` and `run --resume`, so what another program removes during
 * the run is written again. Threads: [main] of rank 0.
 */
#ifndef DTRAIN_CORE_RUN_RUNDIR_FILES_H
#define DTRAIN_CORE_RUN_RUNDIR_FILES_H

#include "base/str.h"
#include "dtrain/status.h"

enum { DT_RUNDIR_FILES = 4 };

typedef struct dt_rundir_files {
    struct {
        char name[24]; /* "": none */
        dt_str text;
    } file[DT_RUNDIR_FILES];
} dt_rundir_files;

/* Writes a file of the folder and keeps its text. Errors: DT_EIO, DT_ENOMEM. */
dt_status dt_rundir_files_write(dt_rundir_files *f, const char *dir, const char *name, const dt_str *text) DT_NODISCARD;
/* Those that are missing, with a warning each; files that were changed stay. Nothing happens without the folder. */
void dt_rundir_files_restore(const dt_rundir_files *f, const char *dir);
void dt_rundir_files_fini(dt_rundir_files *f);

#endif
