/* SPDX-License-Identifier: Apache-2.0
 *
 * Mapped files that become shorter, or whose disk fails, while they are in use: the kernel sends SIGBUS to the thread
 * that touches a lost page. With the guard installed, the lost part of the mapping is replaced by zeros, the thread
 * continues, and the loss is recorded; dt_mapping_check reports it before results are used. A SIGBUS outside of mapped
 * files ends the program as usual. Threads: any; guard [main].
 *
 * A file that is overwritten in place changes under the reader after its indices were checked. dt_mapping_check
 * compares size and modification time with those at the time of mapping. Where only the time differs, as after `touch`,
 * the content decides: hashes are kept for files of up to 256 MiB together; beyond, the time decides. After a crash the
 * same check makes the exit code that of data (4). A file replaced by another one of the same name is unchanged: the
 * mapping keeps the old one.
 *
 * The process does not exit at once, because other threads may be saving a checkpoint and an orderly failure is
 * recorded in logs and meta.json. The handler does not jump, because the thread may hold locks.
 */
#ifndef DTRAIN_CORE_BASE_MAPPING_H
#define DTRAIN_CORE_BASE_MAPPING_H

#include "dtrain/status.h"

#include <stddef.h>
#include <sys/stat.h>

/* Called once by the program; not by a library: signals belong to the program. */
void dt_mapping_install_guard(void);
/* Of dt_fs_map and dt_fs_unmap; file: as it was when fd was opened, from which the content is read. DT_ENOMEM. */
dt_status dt_mapping_add(const void *p, size_t bytes, const char *path, const struct stat *file, int fd) DT_NODISCARD;
void dt_mapping_remove(const void *p);
/* DT_EDATA, with its name, once a mapped file was found truncated or changed: results since then are invalid. every_s:
 * files are checked again if the last check is longer ago; 0: now. */
dt_status dt_mapping_check(double every_s) DT_NODISCARD;

#endif
