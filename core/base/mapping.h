/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that are mapped, and what happens when one of them becomes shorter, or its disk fails, while it is in use: the
 * kernel then sends SIGBUS to whichever thread touches what is gone, and the program would be dead without a word.
 * Where the guard is installed, zeros take the place of what is gone from there to the end of the mapping, the thread
 * goes on, and the loss is on record: whoever is responsible for a result asks for the verdict before it uses one.
 * A SIGBUS that has to do with none of these files ends the program as it always did. Threads: any; guard [main].
 *
 * A file that is overwritten in place changes under the reader: indices that were checked are not those that are used.
 * The verdict compares its size and its time of modification with those of the mapping. Where only the time differs,
 * as after `touch`, the content decides: a hash of it is kept for files of up to 256 MiB together; of more, the time
 * is all that is known. A crash does so, too, and then ends the program by the exit code of data (4) with the file's
 * name, and not by its signal. A file that was replaced by another
 * one of the same name is not changed: the mapping keeps the old one.
 *
 * Why not end at once: other threads may be in the middle of a checkpoint, and a run that fails in order says so in its
 * logs and its meta.json. Why not jump out of the handler: the thread may hold locks.
 */
#ifndef DTRAIN_CORE_BASE_MAPPING_H
#define DTRAIN_CORE_BASE_MAPPING_H

#include "dtrain/status.h"

#include <stddef.h>
#include <sys/stat.h>

/* The program's entrance calls it once; a library must not: signals belong to the program. */
void dt_mapping_guard(void);
/* Of dt_fs_map and dt_fs_unmap; file: as it was when fd was opened, from which the content is read. DT_ENOMEM. */
dt_status dt_mapping_add(const void *p, size_t bytes, const char *path, const struct stat *file, int fd) DT_NODISCARD;
void dt_mapping_remove(const void *p);
/* DT_EDATA from the moment on that a mapped file was found cut or changed, with its name: results since then are worth
 * nothing. every_s: files are looked at again if the last time is longer ago; 0: now. */
dt_status dt_mapping_verdict(double every_s) DT_NODISCARD;

#endif
