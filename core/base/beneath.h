/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders that somebody else may have made (a run, a checkpoint, a store) are guarded: below them no link is followed,
 * nothing outside is reached, and only plain files are opened, so that neither a link nor a pipe in one makes us read,
 * cut, write or wait for anything else. The guarded folder itself may be reached by links: it is the user's word.
 *
 * Whoever opens such a folder guards it once; every path that begins with that folder's, however it is put together
 * later, then goes through here: fs.h calls nothing else, and code that needs a call of the system on a path below a
 * run, a checkpoint or a store gets its descriptor here. tests/raw_open.sh finds code that does not.
 * Linux' openat2 does it in one step; before 5.6, or where a sandbox refuses it, the way is walked part by part.
 * Errors are errno's: ELOOP for a link, EXDEV for "..", EMEDIUMTYPE for what is no plain file, EMLINK for a file to be
 * written that has a second name (a hard link). Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_BENEATH_H
#define DTRAIN_CORE_BASE_BENEATH_H

#include "dtrain/status.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Guard a folder, as often as one likes; each time ends by one call, or stays for good. DT_ENOMEM, DT_EINVAL. */
dt_status dt_beneath_begin(const char *folder) DT_NODISCARD;
void dt_beneath_end(const char *folder);

/* The open folder that path lies in, and its last part in *name_p, for calls that end in "at"; to be given back.
 * Outside of guarded folders: AT_FDCWD and path. -1: errno. */
int dt_beneath_enter(const char *path, const char **name_p);
void dt_beneath_leave(int dir_fd);

/* Like open(2) with O_CLOEXEC. Below a guarded folder: a plain file, or with O_DIRECTORY a folder. */
int dt_beneath_open(const char *path, int flags, mode_t mode);
/* To read, O_NONBLOCK: a plain file, wherever it lies, so that no pipe, socket or device is waited for; a folder is
 * EISDIR. */
int dt_beneath_open_plain(const char *path);
/* Like stat(2); below a guarded folder a link is a link. */
int dt_beneath_stat(const char *path, struct stat *out);
/* The words for errno, which say more where the guard refused. */
const char *dt_beneath_reason(int reason);
/* True for what the guard refuses: the folder's fault, DT_EDATA. */
bool dt_beneath_refused(int reason);

#endif
