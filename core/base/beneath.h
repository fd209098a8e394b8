/* SPDX-License-Identifier: Apache-2.0
 *
 * Files beneath untrusted folders (a run, a checkpoint, a store), as with RESOLVE_BENEATH of openat2(2): below a
 * guarded folder no link is followed, no path leads out of it, and only plain files are opened, so that a link or pipe
 * in it cannot redirect or block reads and writes. The guarded folder itself may be reached through links.
 *
 * The code that opens such a folder guards it once; from then on every path that begins with that folder's path is
 * checked here: fs.h uses nothing else, and other system calls on such paths get their descriptor here.
 * tests/raw_open.sh reports code that does not. Before Linux 5.6, or where a sandbox forbids openat2, paths are opened
 * part by part. Errors are in errno: ELOOP for a link, EXDEV for "..", EMEDIUMTYPE for a file that is not plain, EMLINK
 * for a file to be written that has a second name (a hard link). Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_BENEATH_H
#define DTRAIN_CORE_BASE_BENEATH_H

#include "dtrain/status.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Guards are counted: each dt_beneath_unguard ends one. DT_ENOMEM, DT_EINVAL. */
dt_status dt_beneath_guard(const char *folder) DT_NODISCARD;
void dt_beneath_unguard(const char *folder);

/* Descriptor of the folder that contains path, and its last part in *name_p, for calls that end in "at"; close it with
 * dt_beneath_close_parent. Outside of guarded folders: AT_FDCWD and path. -1: errno. */
int dt_beneath_open_parent(const char *path, const char **name_p);
void dt_beneath_close_parent(int dir_fd);

/* Like open(2) with O_CLOEXEC. Below a guarded folder: a plain file, or with O_DIRECTORY a folder. */
int dt_beneath_open(const char *path, int flags, mode_t mode);
/* To read, O_NONBLOCK: a plain file, guarded or not, so that no pipe, socket or device blocks; a folder is EISDIR. */
int dt_beneath_open_plain(const char *path);
/* Like stat(2); below a guarded folder a link is a link. */
int dt_beneath_stat(const char *path, struct stat *out);
/* Like strerror, with explanations of what the guard rejects. */
const char *dt_beneath_strerror(int reason);
/* True for what the guard rejects: DT_EDATA. */
bool dt_beneath_is_refusal(int reason);

#endif
