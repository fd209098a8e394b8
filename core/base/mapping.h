/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that are mapped, and what happens when one of them becomes shorter, or its disk fails, while it is in use: the
 * kernel then sends SIGBUS to whichever thread touches what is gone, and the program would be dead without a word.
 * Where the guard is installed, zeros take the place of what is gone from there to the end of the mapping, the thread
 * goes on, and the loss is on record: whoever is responsible for a result asks for the verdict before it uses one.
 * A SIGBUS that has to do with none of these files ends the program as it always did. Threads: any; guard [main].
 *
 * Why not end at once: other threads may be in the middle of a checkpoint, and a run that fails in order says so in its
 * logs and its meta.json. Why not jump out of the handler: the thread may hold locks.
 */
#ifndef DTRAIN_CORE_BASE_MAPPING_H
#define DTRAIN_CORE_BASE_MAPPING_H

#include "dtrain/status.h"

#include <stddef.h>

/* The program's entrance calls it once; a library must not: signals belong to the program. */
void dt_mapping_guard(void);
/* Of dt_fs_map and dt_fs_unmap. DT_ENOMEM. */
dt_status dt_mapping_add(const void *p, size_t bytes, const char *path) DT_NODISCARD;
void dt_mapping_remove(const void *p);
/* DT_EDATA from the moment on that a mapped file was found cut, with its name: results since then are worth nothing. */
dt_status dt_mapping_verdict(void) DT_NODISCARD;

#endif
