/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "base/lock.h"
#include "base/err.h"
#include "base/beneath.h"
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { HOLDER_BYTES = 160 };

static struct flock describe_whole_file_lock(void)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}; /* l_pid must be 0 */
}

static dt_status fail_lock_held(int fd, const char *path)
{
    char holder[HOLDER_BYTES] = "";
    const ssize_t n = pread(fd, holder, sizeof(holder) - 1, 0);
    holder[n > 0 ? n : 0] = '\0';
    holder[strcspn(holder, "\n")] = '\0';
    (void)DT_FAIL(DT_EINVAL, "%s is held by %s", path, holder[0] != '\0' ? holder : "another process");
    return DT_AGAIN;
}

static dt_status open_locked(const char *path, short type, int *fd_p)
{
    struct flock lock = describe_whole_file_lock();
    int fd = -1;
    lock.l_type = type;
    const dt_status opened = dt_fs_open(path, O_RDWR | O_CREAT, &fd);
    if (opened != DT_OK) {
        return errno == ENOENT ? DT_FAIL(DT_ENOTFOUND, "cannot make %s: its folder does not exist", path) : opened;
    }
    if (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
        const int reason = errno;
        const bool is_held = reason == EAGAIN || reason == EACCES;
        const dt_status st =
            is_held ? fail_lock_held(fd, path) : DT_FAIL(DT_EUNSUPPORTED, "cannot lock %s: %s", path, strerror(reason));
        close(fd);
        return st;
    }
    *fd_p = fd;
    return DT_OK;
}

dt_status dt_lock_acquire_shared(const char *path, int *fd_p)
{
    return open_locked(path, F_RDLCK, fd_p);
}

dt_status dt_lock_share(int fd)
{
    struct flock lock = describe_whole_file_lock();
    lock.l_type = F_RDLCK;
    return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? DT_OK : DT_FAIL(DT_EIO, "cannot share a lock: %s", strerror(errno));
}

dt_status dt_lock_acquire(const char *path, int *fd_p)
{
    int fd = -1;
    const dt_status locked = open_locked(path, F_WRLCK, &fd);
    if (locked != DT_OK) {
        return locked;
    }
    char holder[HOLDER_BYTES];
    struct utsname host = {0};
    uname(&host);
    const int n = snprintf(holder, sizeof(holder), "process %ld on %.100s\n", (long)getpid(), host.nodename);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, holder, (size_t)n, 0) != n) {
        const dt_status st = DT_FAIL(DT_EIO, "cannot write %s: %s", path, strerror(errno));
        close(fd);
        return st;
    }
    *fd_p = fd;
    return DT_OK;
}

void dt_lock_release(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

/* The file, open, if a process holds it; else -1. */
static int open_if_locked(const char *path)
{
    struct flock lock = describe_whole_file_lock();
    const int fd = dt_beneath_open_plain(path);
    if (fd >= 0 && (fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)) {
        close(fd);
        return -1;
    }
    return fd;
}

dt_status dt_lock_check(const char *path)
{
    const int fd = open_if_locked(path);
    const dt_status st = fd >= 0 ? fail_lock_held(fd, path) : DT_OK;
    dt_lock_release(fd);
    return st;
}

bool dt_lock_is_held(const char *path)
{
    const int fd = open_if_locked(path);
    dt_lock_release(fd);
    return fd >= 0;
}
