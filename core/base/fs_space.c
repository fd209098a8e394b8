/* SPDX-License-Identifier: Apache-2.0
 *
 * Space on a disk: free bytes, scratch memory in a file. See fs.h.
 */
#include <config.h>

#include "base/fs.h"
#include "base/fs_internal.h"
#include "base/err.h"
#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* errno has the reason. */
static void *map_scratch_file(int fd, size_t bytes)
{
    const int reason = bytes > INT64_MAX                        ? EFBIG
                       : dt_fs_inject_fault("fs.write", ENOSPC) ? ENOSPC
                                                                : posix_fallocate(fd, 0, (off_t)bytes);
    if (reason != 0) {
        errno = reason;
        return MAP_FAILED;
    }
    return dt_fs_inject_fault("fs.map", ENOMEM) ? MAP_FAILED
                                                : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

/* Of the first folder on the way up that is there. */
static bool stat_free_space(const char *folder, struct statvfs *out)
{
    char path[2][PATH_MAX];
    while (statvfs(folder, out) != 0) {
        char *above = path[folder == path[0]];
        if (errno != ENOENT || dt_fs_parent_of(folder, above) < 0 || strcmp(above, folder) == 0) {
            dt_error_clear();
            return false;
        }
        folder = above;
    }
    return true;
}

uint64_t dt_fs_free_bytes(const char *folder)
{
    struct statvfs fs;
    uint64_t bytes = 0;
    const bool is_known = stat_free_space(folder, &fs) && fs.f_frsize > 0;
    return is_known && !__builtin_mul_overflow((uint64_t)fs.f_bavail, (uint64_t)fs.f_frsize, &bytes) ? bytes
                                                                                                     : UINT64_MAX;
}

dt_status dt_fs_map_scratch(const char *path, size_t bytes, void **out_p)
{
    int fd = -1;
    DT_TRY(dt_fs_open(path, O_RDWR | O_CREAT | O_EXCL, &fd));
    dt_fs_try_remove(path);
    void *p = map_scratch_file(fd, bytes);
    const int reason = errno;
    close(fd);
    if (p == MAP_FAILED) {
        return DT_FAIL(DT_EIO, "cannot reserve %zu bytes in %s: %s", bytes, path, strerror(reason));
    }
    *out_p = p;
    return DT_OK;
}

dt_status dt_fs_check_free(const char *folder, size_t bytes)
{
    char path[2][PATH_MAX];
    struct stat info;
    while (dt_beneath_stat(folder, &info) != 0) {
        char *above = path[folder == path[0]];
        if (errno != ENOENT || dt_fs_parent_of(folder, above) < 0 || strcmp(above, folder) == 0) {
            return dt_fs_fail_io("make folder", folder);
        }
        folder = above;
    }
    int fd = -1;
    dt_str name = {0};
    dt_str_addf(&name, "%s/.dtrain-%ld", folder, (long)getpid());
    dt_status st = dt_str_status(&name);
    if (st == DT_OK) {
        st = dt_fs_open(dt_str_text(&name), O_RDWR | O_CREAT | O_EXCL, &fd);
    }
    if (st == DT_OK) {
        dt_fs_try_remove(dt_str_text(&name));
        const int reason = posix_fallocate(fd, 0, (off_t)bytes);
        close(fd);
        st = reason == 0 ? DT_OK
                         : DT_FAIL(DT_EIO, "cannot write %zu bytes below %s: %s", bytes, folder, strerror(reason));
    }
    dt_str_fini(&name);
    return st;
}

void dt_fs_unmap_scratch(void *p, size_t bytes)
{
    if (p != NULL) {
        munmap(p, bytes);
    }
}
