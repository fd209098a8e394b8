/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of fs.h share: fault points, error texts, paths.
 */
#ifndef DTRAIN_CORE_BASE_FS_INTERNAL_H
#define DTRAIN_CORE_BASE_FS_INTERNAL_H

#include "dtrain/status.h"

#include <limits.h>
#include <stdbool.h>

/* True when a test injects a failure of this call; errno becomes reason. */
bool dt_fs_inject_fault(const char *point, int reason);
/* "cannot open run/x: No such file": DT_ENOTFOUND, DT_EDATA or DT_EIO by errno. */
dt_status dt_fs_fail_missing(const char *what, const char *path);
/* The same, but what is missing is DT_EIO, too. errno stays. */
dt_status dt_fs_fail_io(const char *what, const char *path);
/* The folder that holds path. */
dt_status dt_fs_parent_of(const char *path, char out[PATH_MAX]) DT_NODISCARD;

#endif
