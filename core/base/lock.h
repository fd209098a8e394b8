/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock file: held by one process and released when it ends, also by kill -9. The open file holds the lock (fcntl,
 * F_OFD_SETLK of Linux), so that closing another descriptor does not release it. Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_LOCK_H
#define DTRAIN_CORE_BASE_LOCK_H

#include "dtrain/status.h"
#include <stdbool.h>

/* Does not wait; writes the owner to the file ("process 4711 on host"). DT_AGAIN: the lock is held, by the owner named
 * in the error text. Errors: DT_ENOTFOUND: its folder does not exist; DT_EIO; DT_EUNSUPPORTED: the file system has no
 * locks. */
dt_status dt_lock_acquire(const char *path, int *fd_p) DT_NODISCARD;
/* The same for several holders at a time; DT_AGAIN while one holds it alone. The file keeps its owner's name. */
dt_status dt_lock_acquire_shared(const char *path, int *fd_p) DT_NODISCARD;
dt_status dt_lock_share(int fd) DT_NODISCARD; /* of a lock that is held alone, in one step */
void dt_lock_release(int fd);                 /* -1 is fine; the file stays */
/* Takes nothing and changes nothing. DT_AGAIN: as above. No error where there is no such file. */
dt_status dt_lock_check(const char *path) DT_NODISCARD;
bool dt_lock_is_held(const char *path); /* by any process, this one included; false without the file */

#endif
