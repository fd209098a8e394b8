/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "base/beneath.h"

#include "base/err.h"
#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct guard guard;
struct guard {
    guard *next;
    size_t bytes; /* of folder, without slashes at its end */
    uint32_t n;   /* times raised */
    char folder[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static guard *guarded;

static size_t length_without_slashes(const char *folder)
{
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/') {
        n--;
    }
    return n;
}

static guard **find_guarded(const char *folder, size_t bytes)
{
    guard **at = &guarded;
    while (*at != NULL && ((*at)->bytes != bytes || memcmp((*at)->folder, folder, bytes) != 0)) {
        at = &(*at)->next;
    }
    return at;
}

dt_status dt_beneath_guard(const char *folder)
{
    const size_t bytes = length_without_slashes(folder);
    if (bytes >= PATH_MAX) {
        return DT_FAIL(DT_EINVAL, "a path of %zu bytes is longer than the limit of %d", bytes, PATH_MAX - 1);
    }
    dt_status st = DT_OK;
    pthread_mutex_lock(&lock);
    guard **at = find_guarded(folder, bytes);
    if (*at == NULL) {
        guard *f = calloc(1, sizeof(*f) + bytes + 1); /* may stay for good: no leak of the caller's */
        if (f != NULL) {
            f->bytes = bytes;
            memcpy(f->folder, folder, bytes);
        }
        *at = f;
        st = f != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the folder %s", folder);
    }
    if (*at != NULL) {
        (*at)->n++;
    }
    pthread_mutex_unlock(&lock);
    return st;
}

void dt_beneath_unguard(const char *folder)
{
    pthread_mutex_lock(&lock);
    guard **at = find_guarded(folder, length_without_slashes(folder)), *f = *at;
    if (f != NULL && --f->n == 0) {
        *at = f->next;
        free(f);
    }
    pthread_mutex_unlock(&lock);
}

/* The outermost guarded folder around path, in root, and what of path is below. NULL: none. */
static const char *find_guard_and_rest(const char *path, char root[PATH_MAX])
{
    size_t best = SIZE_MAX;
    pthread_mutex_lock(&lock);
    for (const guard *f = guarded; f != NULL; f = f->next) {
        if (f->bytes < best && strncmp(path, f->folder, f->bytes) == 0 &&
            (path[f->bytes] == '/' || f->folder[f->bytes - 1] == '/')) {
            best = f->bytes;
            memcpy(root, f->folder, f->bytes + 1);
        }
    }
    pthread_mutex_unlock(&lock);
    if (best == SIZE_MAX) {
        return NULL;
    }
    const char *rest = path + best;
    rest += strspn(rest, "/");
    return *rest != '\0' ? rest : NULL; /* the folder itself is outside */
}

static bool has_parent_part(const char *path)
{
    for (const char *p = path; *p != '\0'; p += strspn(p, "/")) {
        const size_t n = strcspn(p, "/");
        if (n == 2 && memcmp(p, "..", 2) == 0) {
            return true;
        }
        p += n;
    }
    return false;
}

/* Part by part; each is a folder and no link. */
static int open_part_by_part(int at, char *path)
{
    int fd = dup(at);
    for (char *part = strtok_r(path, "/", &path); part != NULL && fd >= 0; part = strtok_r(NULL, "/", &path)) {
        const int next = openat(fd, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat info;
        int reason = errno;
        if (next < 0 && reason == ENOTDIR && fstatat(fd, part, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISLNK(info.st_mode)) {
            reason = ELOOP;
        }
        close(fd);
        fd = next;
        errno = next < 0 ? reason : 0;
    }
    return fd;
}

static int open_folder_below(int at, char *path)
{
#ifdef SYS_openat2
    const struct {
        uint64_t flags, mode, resolve;
    } how = {O_PATH | O_DIRECTORY | O_CLOEXEC, 0, 0x02 | 0x04 | 0x08}; /* no magic links, no links, beneath */
    if (!dt_fault("beneath.openat2")) {
        const long fd = syscall(SYS_openat2, at, path, &how, sizeof(how));
        if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EAGAIN)) {
            return (int)fd;
        }
    }
#endif
    return open_part_by_part(at, path);
}

int dt_beneath_open_parent(const char *path, const char **name_p)
{
    char root[PATH_MAX], folder[PATH_MAX];
    const char *rest = strlen(path) < PATH_MAX ? find_guard_and_rest(path, root) : NULL;
    *name_p = path;
    if (rest == NULL) {
        return AT_FDCWD;
    }
    if (has_parent_part(rest)) {
        errno = EXDEV;
        return -1;
    }
    size_t end = length_without_slashes(rest), begin = end;
    while (begin > 0 && rest[begin - 1] != '/') {
        begin--;
    }
    *name_p = rest + begin;
    const int at = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0 || begin == 0) {
        return at;
    }
    memcpy(folder, rest, begin);
    folder[begin] = '\0';
    const int fd = open_folder_below(at, folder);
    const int reason = errno;
    close(at);
    errno = reason;
    return fd;
}

void dt_beneath_close_parent(int dir_fd)
{
    const int reason = errno;
    if (dir_fd >= 0) {
        close(dir_fd);
    }
    errno = reason;
}

/* What was opened is what it should be; else closed, with the reason in errno. */
static int check_opened_kind(int fd, int flags)
{
    struct stat info;
    const bool writes = (flags & O_ACCMODE) != O_RDONLY;
    int reason = 0;
    if (fstat(fd, &info) != 0) {
        reason = errno;
    } else if (S_ISDIR(info.st_mode) && (flags & O_DIRECTORY) == 0) {
        reason = EISDIR;
    } else if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        reason = EMEDIUMTYPE;
    } else if (writes && info.st_nlink > 1) {
        reason = EMLINK;
    }
    if (reason == 0 && (flags & O_TRUNC) != 0 && ftruncate(fd, 0) != 0) {
        reason = errno;
    }
    if (reason != 0) {
        close(fd);
        errno = reason;
        return -1;
    }
    return fd;
}

int dt_beneath_open(const char *path, int flags, mode_t mode)
{
    const char *name = NULL;
    const int dir = dt_beneath_open_parent(path, &name);
    if (dir == AT_FDCWD) {
        return open(path, flags | O_CLOEXEC, mode);
    }
    if (dir < 0) {
        return -1;
    }
    /* cut only once it is known to be ours; a pipe is not waited for; a terminal does not become ours */
    const int safe = (flags & ~O_TRUNC) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    const int fd = openat(dir, name, safe, mode);
    struct stat info;
    int reason = errno;
    if (fd < 0 && reason == ENOTDIR && fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode)) {
        reason = ELOOP;
    }
    dt_beneath_close_parent(dir);
    errno = reason == ENXIO ? EMEDIUMTYPE : reason; /* a socket, or a pipe without a reader */
    return fd >= 0 ? check_opened_kind(fd, flags) : -1;
}

int dt_beneath_open_plain(const char *path)
{
    const int fd = dt_beneath_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0); /* a pipe is not waited for */
    if (fd < 0) {
        errno = errno == ENXIO ? EMEDIUMTYPE : errno;
        return -1;
    }
    return check_opened_kind(fd, O_RDONLY);
}

int dt_beneath_stat(const char *path, struct stat *out)
{
    const char *name = NULL;
    const int dir = dt_beneath_open_parent(path, &name);
    if (dir == AT_FDCWD) {
        return stat(path, out);
    }
    if (dir < 0) {
        return -1;
    }
    const int failed = fstatat(dir, name, out, AT_SYMLINK_NOFOLLOW);
    dt_beneath_close_parent(dir);
    return failed;
}

bool dt_beneath_is_refusal(int reason)
{
    return reason == ELOOP || reason == EXDEV || reason == EMEDIUMTYPE || reason == EMLINK;
}

const char *dt_beneath_strerror(int reason)
{
    switch (reason) {
    case ELOOP:
        return "it is a link, and links are not followed in a folder that other users may have created; replace it by "
               "the file itself";
    case EXDEV:
        return "it points outside its folder, which other users may have created";
    case EMEDIUMTYPE:
        return "it is not a regular file, but a pipe, a socket or a device";
    case EMLINK:
        return "the file has a second name (a hard link), so writing to it would change that one; copy it first";
    default:
        return strerror(reason);
    }
}
