/* SPDX-License-Identifier: Apache-2.0
 *
 * A lock that is a file: held by one process, and gone with it however it ends, kill -9 included. Held by the open file
 * (fcntl, F_OFD_SETLK of Linux), so that no other descriptor of the process can give it up. Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_LOCK_H
#define DTRAIN_CORE_BASE_LOCK_H

#include "dtrain/status.h"
#include <stdbool.h>

/* Takes it, without waiting, and leaves who did in the file ("process 4711 on host"). DT_AGAIN: somebody holds it, who
 * is named in the error text. Errors: DT_ENOTFOUND: the folder it lies in is not there, or no longer; DT_EIO;
 * DT_EUNSUPPORTED where the file system has no locks. */
dt_status dt_lock_acquire(const char *path, int *fd_p) DT_NODISCARD;
void dt_lock_release(int fd); /* -1 is fine; the file stays */
/* Takes nothing and changes nothing. DT_AGAIN: as above. No error where there is no such file. */
dt_status dt_lock_check(const char *path) DT_NODISCARD;
bool dt_lock_is_held(const char *path); /* by anybody, also by this process; false where there is no such file */

#endif
