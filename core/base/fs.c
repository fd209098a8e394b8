/* SPDX-License-Identifier: Apache-2.0
 *
 * File system calls that check everything. See fs.h.
 */
#include <config.h>

#include "base/fs.h"
#include "base/fs_internal.h"
#include "base/hash.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/beneath.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool dt_fs_inject_fault(const char *point, int reason)
{
    if (!dt_fault(point)) {
        return false;
    }
    errno = reason;
    return true;
}

static dt_fs_tracer *tracer; /* set by tests before they start, so it needs no lock */
static void *tracer_user;

void dt_fs_set_tracer(dt_fs_tracer *new_tracer, void *user)
{
    tracer = new_tracer;
    tracer_user = user;
}

static void trace_change(dt_fs_change what, const char *path, const char *to, const void *p, size_t bytes)
{
    if (tracer != NULL) {
        tracer(tracer_user, what, path, to, p, bytes);
    }
}

const char *dt_fs_write_advice(const char *message)
{
    static const struct {
        int reason;
        const char *remedy;
    } all[] = {{ENOSPC, "free space there: old runs, checkpoints of other runs (dtrain runs, dtrain ckpt list RUN)"},
               {EDQUOT, "your quota there is used up: free space, as old runs (dtrain runs, dtrain ckpt list RUN)"},
               {EROFS, "mount the file system for writing"},
               {EACCES, "give this user the right to write there"},
               {EPERM, "give this user the right to write there"},
               {EFBIG, "raise ulimit -f"},
               {EMFILE, "raise ulimit -n"},
               {ENFILE, "close files of other programs"},
               {EEXIST, "remove what is in its place"},
               {ENOTDIR, "remove what is in its place"}};
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        if (strstr(message, strerror(all[k].reason)) != NULL) {
            return all[k].remedy;
        }
    }
    return NULL;
}

dt_status dt_fs_fail_missing(const char *what, const char *path)
{
    int reason = errno;
    bool is_missing = reason == ENOENT || reason == ENOTDIR;
    const dt_status st = is_missing ? DT_ENOTFOUND : dt_beneath_is_refusal(reason) ? DT_EDATA : DT_EIO;
    return DT_FAIL(st, "cannot %s %s: %s", what, path, dt_beneath_strerror(reason));
}

dt_status dt_fs_fail_io(const char *what, const char *path)
{
    const int reason = errno;
    const dt_status st = DT_FAIL(dt_beneath_is_refusal(reason) ? DT_EDATA : DT_EIO, "cannot %s %s: %s", what, path,
                                 dt_beneath_strerror(reason));
    errno = reason; /* for dt_lock_acquire */
    return st;
}

dt_status dt_fs_parent_of(const char *path, char out[PATH_MAX])
{
    size_t n = strlen(path);
    if (n >= PATH_MAX) {
        return DT_FAIL(DT_EINVAL, "a path of %zu bytes is longer than the limit of %d", n, PATH_MAX - 1);
    }
    while (n > 1 && path[n - 1] == '/') {
        n--;
    }
    while (n > 0 && path[n - 1] != '/') {
        n--;
    }
    while (n > 1 && path[n - 1] == '/') {
        n--;
    }
    if (n == 0) {
        strcpy(out, ".");
        return DT_OK;
    }
    memcpy(out, path, n);
    out[n] = '\0';
    return DT_OK;
}

enum { MKDIR_TRIES = 100 };

/* 0, also where it is there already; or errno. EAGAIN: there was something, and it has gone. */
static int make_folder(const char *path)
{
    const char *name = NULL;
    const int dir = dt_beneath_open_parent(path, &name);
    const bool is_made = dir != -1 && !dt_fs_inject_fault("fs.mkdir", ENOSPC) && mkdirat(dir, name, 0777) == 0;
    const int reason = errno;
    dt_beneath_close_parent(dir);
    if (is_made) {
        trace_change(DT_FS_MKDIR, path, NULL, NULL, 0);
        return 0;
    }
    struct stat info;
    if (reason != EEXIST || dt_fs_is_dir(path)) {
        return reason != EEXIST ? reason : 0;
    }
    if (dt_fs_kind_of(path) == DT_FS_NOTHING) {
        return EAGAIN;
    }
    return dt_beneath_stat(path, &info) == 0 && S_ISLNK(info.st_mode) ? ELOOP : EEXIST;
}

dt_status dt_fs_mkdir(const char *path)
{
    int reason = EAGAIN;
    for (int i = 0; i < MKDIR_TRIES && reason == EAGAIN; i++) { /* others may make and remove it at the same time */
        reason = make_folder(path);
    }
    errno = reason;
    return reason == 0 ? DT_OK : dt_fs_fail_io("make folder", path);
}

dt_status dt_fs_mkdirs(const char *path)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof(part)) {
        return DT_FAIL(DT_EINVAL, "cannot make a folder with a name of %zu bytes (1 to %d)", n, PATH_MAX - 1);
    }
    if (dt_fs_is_dir(path)) {
        return DT_OK;
    }
    memcpy(part, path, n + 1);
    for (char *p = part + 1; *p != '\0'; p++) {
        if (*p != '/') {
            continue;
        }
        *p = '\0';
        if (!dt_fs_is_dir(part)) {
            DT_TRY(dt_fs_mkdir(part));
        }
        *p = '/';
    }
    return dt_fs_mkdir(part);
}

dt_status dt_fs_create(const char *path, int *out_fd)
{
    int fd = -1;
    if (!dt_fs_inject_fault("fs.open", ENOSPC)) {
        fd = dt_beneath_open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    }
    if (fd < 0) {
        int reason = errno;
        const dt_status st = reason == EEXIST ? DT_EINVAL : dt_beneath_is_refusal(reason) ? DT_EDATA : DT_EIO;
        return DT_FAIL(st, "cannot create %s: %s", path, dt_beneath_strerror(reason));
    }
    trace_change(DT_FS_CREATE, path, NULL, NULL, 0);
    *out_fd = fd;
    return DT_OK;
}

dt_status dt_fs_write(int fd, const char *path, const void *p, size_t bytes)
{
    bool is_torn = dt_fault("fs.write");
    const char *at = p;
    size_t left = is_torn ? bytes / 2 : bytes;
    while (left > 0) {
        ssize_t n = write(fd, at, left);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            errno = n == 0 ? ENOSPC : errno;
            return dt_fs_fail_io("write to", path);
        }
        at += n;
        left -= (size_t)n;
    }
    if (is_torn) {
        errno = ENOSPC;
        return dt_fs_fail_io("write to", path);
    }
    trace_change(DT_FS_WRITE, path, NULL, p, bytes);
    return DT_OK;
}

bool dt_fs_append(int fd, uint64_t *size_p, const void *p, size_t bytes)
{
    struct stat s;
    const bool is_torn = dt_fault("fs.append");
    const char *at = p;
    size_t left = is_torn ? bytes / 2 : bytes;
    if (fstat(fd, &s) != 0 || ((uint64_t)s.st_size > *size_p && ftruncate(fd, (off_t)*size_p) != 0)) {
        return false;
    }
    while (left > 0) {
        const ssize_t n = pwrite(fd, at, left, (off_t)(*size_p + (uint64_t)(at - (const char *)p)));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            errno = n == 0 ? ENOSPC : errno;
            break;
        }
        at += n;
        left -= (size_t)n;
    }
    if (left > 0 || is_torn) {
        const int reason = left > 0 ? errno : ENOSPC;
        (void)!ftruncate(fd, (off_t)*size_p);
        errno = reason;
        return false;
    }
    *size_p += bytes;
    return true;
}

dt_fs_fate dt_fs_check_appended(int fd, const char *path, uint64_t bytes)
{
    struct stat open, there;
    if (fstat(fd, &open) != 0) {
        return DT_FS_KEPT;
    }
    if (dt_beneath_stat(path, &there) != 0 ? errno == ENOENT
                                           : there.st_dev != open.st_dev || there.st_ino != open.st_ino) {
        return DT_FS_GONE;
    }
    return (uint64_t)open.st_size < bytes ? DT_FS_CUT : DT_FS_KEPT;
}

uint64_t dt_fs_whole_lines_bytes(int fd)
{
    char part[4096];
    struct stat s;
    if (fstat(fd, &s) != 0 || s.st_size <= 0) {
        return 0;
    }
    for (off_t end = s.st_size; end > 0;) {
        const off_t begin = end > (off_t)sizeof(part) ? end - (off_t)sizeof(part) : 0;
        const ssize_t n = pread(fd, part, (size_t)(end - begin), begin);
        if (n != (ssize_t)(end - begin)) {
            return (uint64_t)s.st_size;
        }
        const char *last = memrchr(part, '\n', (size_t)n);
        if (last != NULL) {
            return (uint64_t)(begin + (last - part) + 1);
        }
        end = begin;
    }
    return 0;
}

static _Thread_local bool is_flush_real =
    true; /* ranks of one process write mirrors and checkpoints at different times */

void dt_fs_set_flush(bool is_real)
{
    is_flush_real = is_real;
}

dt_status dt_fs_sync_close(int fd, const char *path)
{
    dt_status st = DT_OK;
    if (dt_fs_inject_fault("fs.fsync", EIO) || (is_flush_real && fsync(fd) != 0)) {
        st = dt_fs_fail_io("flush to disk", path); /* never retried: the kernel may have dropped the dirty pages */
    } else {
        trace_change(DT_FS_FLUSH, path, NULL, NULL, 0);
    }
    bool is_refused = dt_fs_inject_fault("fs.close", EIO);
    int reason = errno;
    if (close(fd) != 0 || is_refused) {
        errno = is_refused ? reason : errno;
        if (st == DT_OK) {
            st = dt_fs_fail_io("close", path);
        }
    }
    return st;
}

dt_status dt_fs_sync_dir(const char *path)
{
    int fd = -1;
    if (!dt_fs_inject_fault("fs.open", EIO)) {
        fd = dt_beneath_open(path, O_RDONLY | O_DIRECTORY, 0);
    }
    if (fd < 0) {
        return dt_fs_fail_missing("open folder", path);
    }
    return dt_fs_sync_close(fd, path);
}

/* renameat2 between two paths, each in its folder; flags as there. */
static bool call_renameat2(const char *from, const char *to, unsigned flags)
{
    const char *from_name = NULL, *to_name = NULL;
    const int from_dir = dt_beneath_open_parent(from, &from_name);
    const int to_dir = from_dir != -1 ? dt_beneath_open_parent(to, &to_name) : -1;
    const bool is_done = from_dir != -1 && to_dir != -1 && !dt_fs_inject_fault("fs.rename", EIO) &&
                         (flags == 0 ? renameat(from_dir, from_name, to_dir, to_name)
                                     : renameat2(from_dir, from_name, to_dir, to_name, flags)) == 0;
    dt_beneath_close_parent(from_dir);
    dt_beneath_close_parent(to_dir);
    return is_done;
}

/* A rename takes the place of whatever is there: of a device or a pipe, too, or of a link to one (/dev/stdout). */
static dt_status check_rename_target(const char *to)
{
    const char *name = NULL;
    struct stat st;
    const int dir = dt_beneath_open_parent(to, &name);
    if (dir == -1) {
        return DT_OK; /* the rename reports the reason */
    }
    const bool is_there = fstatat(dir, name, &st, 0) == 0;
    dt_beneath_close_parent(dir);
    if (is_there && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        return DT_FAIL(DT_ECONFIG, "%s is a %s and would be replaced by a file; name a file", to,
                       S_ISFIFO(st.st_mode)   ? "pipe"
                       : S_ISSOCK(st.st_mode) ? "socket"
                                              : "device");
    }
    return DT_OK;
}

dt_status dt_fs_rename(const char *from, const char *to)
{
    DT_TRY(check_rename_target(to));
    if (!call_renameat2(from, to, 0)) {
        int reason = errno;
        return DT_FAIL(DT_EIO, "cannot rename %s to %s: %s", from, to, dt_beneath_strerror(reason));
    }
    trace_change(DT_FS_RENAME, from, to, NULL, 0);
    return DT_OK;
}

dt_status dt_fs_swap(const char *a, const char *b)
{
    if (!call_renameat2(a, b, RENAME_EXCHANGE)) {
        int reason = errno;
        return DT_FAIL(DT_EIO, "cannot exchange %s and %s: %s", a, b, dt_beneath_strerror(reason));
    }
    trace_change(DT_FS_SWAP, a, b, NULL, 0);
    return DT_OK;
}

static void unlink_quietly(const char *path, int flags)
{
    const int reason = errno;
    const char *name = NULL;
    const int dir = dt_beneath_open_parent(path, &name);
    if (dir != -1) {
        (void)unlinkat(dir, name, flags);
    }
    dt_beneath_close_parent(dir);
    errno = reason;
}

void dt_fs_try_remove(const char *path)
{
    unlink_quietly(path, 0);
}

void dt_fs_try_remove_folder(const char *path)
{
    unlink_quietly(path, AT_REMOVEDIR);
}

void dt_fs_try_move(const char *from, const char *to)
{
    const int reason = errno;
    (void)call_renameat2(from, to, 0);
    errno = reason;
}

dt_status dt_fs_write_atomic(const char *path, const void *p, size_t bytes)
{
    char temp[PATH_MAX], parent[PATH_MAX];
    DT_TRY(dt_fs_parent_of(path, parent));
    if (snprintf(temp, sizeof(temp), "%s.tmp.%ld", path, (long)getpid()) >= (int)sizeof(temp)) {
        return DT_FAIL(DT_EINVAL, "path %s is too long (limit %d bytes)", path, PATH_MAX - 1);
    }
    dt_fs_try_remove(temp); /* left by a process of the same number that died here */
    int fd = -1;
    DT_TRY(dt_fs_create(temp, &fd));
    dt_status st = dt_fs_write(fd, temp, p, bytes);
    if (st != DT_OK) {
        close(fd);
        goto err_unlink;
    }
    st = dt_fs_sync_close(fd, temp);
    if (st != DT_OK) {
        goto err_unlink;
    }
    st = dt_fs_rename(temp, path);
    if (st != DT_OK) {
        goto err_unlink;
    }
    return dt_fs_sync_dir(parent);
err_unlink:
    dt_fs_try_remove(temp);
    return st;
}

dt_status dt_fs_write_text(const dt_str *path, const dt_str *text)
{
    DT_TRY(dt_str_status(path));
    DT_TRY(dt_str_status(text));
    return dt_fs_write_atomic(dt_str_text(path), dt_str_text(text), text->bytes);
}

dt_status dt_fs_open(const char *path, int flags, int *fd_p)
{
    const bool reads = (flags & (O_ACCMODE | O_CREAT | O_DIRECTORY)) == O_RDONLY;
    *fd_p = dt_fs_inject_fault("fs.open", EIO) ? -1
            : reads                            ? dt_beneath_open_plain(path)
                                               : dt_beneath_open(path, flags, 0666);
    if (*fd_p >= 0) {
        return DT_OK;
    }
    if (reads && errno == EISDIR) {
        return DT_FAIL(DT_EDATA, "%s is a folder, not a file", path);
    }
    return (flags & O_CREAT) != 0 ? dt_fs_fail_io("open", path) : dt_fs_fail_missing("open", path);
}

dt_status dt_fs_open_stream(const char *path, int flags, const char *mode, FILE **out_p)
{
    int fd = -1;
    DT_TRY(dt_fs_open(path, flags, &fd));
    *out_p = fdopen(fd, mode);
    if (*out_p == NULL) {
        const dt_status st = dt_fs_fail_io("open", path);
        close(fd);
        return st;
    }
    return DT_OK;
}

/* Remove name inside the open folder; path is for messages and grows with the depth. */
static dt_status remove_at(int dir_fd, const char *name, const char *path)
{
    if (dt_fs_inject_fault("fs.unlink", EIO)) {
        return dt_fs_fail_io("remove", path);
    }
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT) {
        return DT_OK;
    }
    if (errno != EISDIR && errno != EPERM) {
        return dt_fs_fail_io("remove", path);
    }
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return dt_fs_fail_io("open folder", path);
    }
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        dt_status st = dt_fs_fail_io("open folder", path);
        close(fd);
        return st;
    }
    dt_status st = DT_OK;
    for (struct dirent *e = readdir(dir); e != NULL && st == DT_OK; e = readdir(dir)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        dt_str inner = {0};
        dt_str_addf(&inner, "%s/%s", path, e->d_name);
        st = remove_at(dirfd(dir), e->d_name, dt_str_text(&inner));
        dt_str_fini(&inner);
    }
    closedir(dir);
    if (st == DT_OK && unlinkat(dir_fd, name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
        return dt_fs_fail_io("remove folder", path);
    }
    return st;
}

dt_status dt_fs_remove_tree(const char *path)
{
    const char *name = NULL;
    const int dir = dt_beneath_open_parent(path, &name);
    if (dir == -1) {
        return errno == ENOENT ? DT_OK : dt_fs_fail_io("remove", path);
    }
    const dt_status st = remove_at(dir, name, path);
    dt_beneath_close_parent(dir);
    DT_TRY(st);
    trace_change(DT_FS_REMOVE, path, NULL, NULL, 0);
    return DT_OK;
}

bool dt_fs_is_dir(const char *path)
{
    struct stat info;
    return dt_beneath_stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

dt_status dt_fs_check_access(const char *path)
{
    struct stat info;
    return dt_beneath_stat(path, &info) == 0 || errno != EACCES ? DT_OK : dt_fs_fail_io("open", path);
}

bool dt_fs_is_file(const char *path)
{
    struct stat info;
    return dt_beneath_stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

dt_fs_kind dt_fs_kind_of(const char *path)
{
    struct stat info;
    const char *name = NULL;
    const int dir = dt_beneath_open_parent(path, &name);
    const bool is_there = dir != -1 && fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
    dt_beneath_close_parent(dir);
    return !is_there               ? DT_FS_NOTHING
           : S_ISREG(info.st_mode) ? DT_FS_FILE
           : S_ISDIR(info.st_mode) ? DT_FS_FOLDER
           : S_ISLNK(info.st_mode) ? DT_FS_LINK
                                   : DT_FS_OTHER;
}

dt_status dt_fs_program_dir(dt_str *out)
{
    static const char hidden[] = "/.libs";
    char path[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return DT_FAIL(DT_EIO, "/proc/self/exe cannot be read, so the program's own folder is unknown");
    }
    *slash = '\0';
    slash = strrchr(path, '/');
    if (slash != NULL && strcmp(slash, hidden) == 0) {
        *slash = '\0';
    }
    dt_str_add(out, path);
    return dt_str_status(out);
}

void dt_fs_relocate(const char *configured, const char *bindir, const char *program_dir, dt_str *out)
{
    size_t common = 0; /* bytes of the folders that both paths begin with */
    for (size_t i = 0; configured[i] == bindir[i] && bindir[i] != '\0'; i++) {
        common = bindir[i] == '/' ? i : common;
    }
    const size_t bytes = strlen(program_dir), own = strlen(bindir + common);
    if (own > 0 && bytes >= own && strcmp(program_dir + bytes - own, bindir + common) == 0) {
        dt_str_addf(out, "%.*s%s", (int)(bytes - own), program_dir, configured + common);
    }
}

dt_status dt_fs_installed_dir(const char *configured, dt_str *out)
{
    dt_str program = {0}, moved = {0};
    if (dt_fs_program_dir(&program) == DT_OK) {
        dt_fs_relocate(configured, DTRAIN_BINDIR, dt_str_text(&program), &moved);
    } else {
        dt_error_clear(); /* without /proc nothing is moved */
    }
    dt_str_add(out, moved.bytes > 0 && dt_fs_is_dir(dt_str_text(&moved)) ? dt_str_text(&moved) : configured);
    dt_str_fini(&moved);
    dt_str_fini(&program);
    return dt_str_status(out);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

dt_status dt_fs_list(const char *path, char ***out_p, size_t *n_p)
{
    const int fd = dt_fs_inject_fault("fs.list", EIO) ? -1 : dt_beneath_open(path, O_RDONLY | O_DIRECTORY, 0);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        const dt_status why = dt_fs_fail_missing("open folder", path);
        if (fd >= 0) {
            close(fd);
        }
        return why;
    }
    dt_status st = DT_OK;
    size_t n = 0, cap = 16;
    char **names = dt_alloc_n(cap, sizeof(*names));
    if (names == NULL) {
        goto err_memory;
    }
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(dir);
        if (e == NULL) {
            if (errno != 0) {
                st = dt_fs_fail_io("read folder", path);
                goto err_free;
            }
            break;
        }
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        if (n == cap) {
            char **grown = dt_realloc(names, cap * 2 * sizeof(*names));
            if (grown == NULL) {
                goto err_memory;
            }
            names = grown;
            cap *= 2;
        }
        names[n] = dt_strdup(e->d_name);
        if (names[n] == NULL) {
            goto err_memory;
        }
        n++;
    }
    closedir(dir);
    qsort(names, n, sizeof(*names), compare_names);
    *out_p = names;
    *n_p = n;
    return DT_OK;
err_memory:
    st = DT_FAIL(DT_ENOMEM, "no memory for the names in folder %s", path);
err_free:
    closedir(dir);
    dt_fs_list_free(names, n);
    return st;
}

void dt_fs_list_free(char **names, size_t n)
{
    if (names != NULL) {
        for (size_t i = 0; i < n; i++) {
            dt_free(names[i]);
        }
    }
    dt_free(names);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

void dt_fs_encode_name(const char *text, dt_str *out)
{
    const size_t begin = out->bytes;
    for (const char *p = text; *p != '\0'; p++) {
        const unsigned char c = (unsigned char)*p;
        const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                             c == '+' || c > 127;
        if (is_word || (p > text && (c == '.' || c == '-'))) {
            dt_str_add_n(out, p, 1);
        } else {
            dt_str_addf(out, "%%%02X", c);
        }
    }
    if (text[0] == '\0') {
        dt_str_add(out, "%");
    }
    if (out->bytes - begin > DT_FS_NAME_BYTES && !out->failed) {
        enum { END_BYTES = 18 }; /* "%~" and 16 digits */
        out->bytes = begin + DT_FS_NAME_BYTES - END_BYTES;
        dt_str_addf(out, "%%~%016" PRIx64, dt_hash64(text, strlen(text), 0));
    }
}
