/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading files: lines, whole files, mappings. See fs.h.
 */
#include <config.h>

#include "base/fs.h"
#include "base/fs_internal.h"
#include "base/err.h"
#include "base/beneath.h"
#include "base/mapping.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static dt_status append_byte(dt_fs_line *l, char c)
{
    if (l->kept + 1 >= l->cap) {
        const size_t cap = l->cap > 0 ? 2 * l->cap : 512;
        char *grown = dt_realloc(l->text, cap);
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for a line of %zu bytes", l->kept);
        }
        l->text = grown;
        l->cap = cap;
    }
    l->text[l->kept++] = c;
    l->text[l->kept] = '\0';
    return DT_OK;
}

/* Past what is kept of a line, a NUL may be the first byte of a hole of terabytes: continues at the next byte that was
 * written, or at the end of the file. */
static void skip_hole(FILE *f, dt_fs_line *l)
{
#ifdef SEEK_DATA
    const int fd = fileno(f);
    const off_t at = ftello(f), before = lseek(fd, 0, SEEK_CUR);
    if (at < 0 || before < 0) {
        return; /* a pipe */
    }
    off_t next = lseek(fd, at, SEEK_DATA);
    if (next < 0 && errno == ENXIO) {
        next = lseek(fd, 0, SEEK_END);
    }
    if (lseek(fd, before, SEEK_SET) == before && next > at && fseeko(f, next, SEEK_SET) == 0) {
        l->bytes += (uint64_t)(next - at);
    }
#else
#endif
}

dt_status dt_fs_read_line(FILE *f, size_t max, dt_fs_line *l)
{
    enum { LOOK = 1 << 16 }; /* bytes between two looks for a hole */
    dt_status st = DT_OK;
    l->kept = 0;
    l->bytes = 0;
    l->has_end = false;
    flockfile(f);
    for (int c = 0; st == DT_OK && !l->has_end && (c = getc_unlocked(f)) != EOF;) {
        l->has_end = c == '\n';
        l->bytes++;
        st = l->kept < max ? append_byte(l, (char)c) : DT_OK;
        if (c == '\0' && l->kept == max && l->bytes % LOOK == 0) {
            skip_hole(f, l);
        }
    }
    funlockfile(f);
    l->is_whole = l->has_end && l->kept == l->bytes;
    return st;
}

/* A plain file; or, as the user may name one, a pipe or a device, which is waited for. */
static dt_status open_for_read(const char *path, bool is_any, int *out_fd, struct stat *info)
{
    int fd = -1;
    if (!dt_fs_inject_fault("fs.open", EIO)) {
        fd = is_any ? dt_beneath_open(path, O_RDONLY, 0) : dt_beneath_open_plain(path);
    }
    if (fd < 0) {
        return errno == EISDIR ? DT_FAIL(DT_EDATA, "%s is a folder, not a file", path)
                               : dt_fs_fail_missing("open", path);
    }
    if (fstat(fd, info) != 0) {
        dt_status st = dt_fs_fail_io("examine", path);
        close(fd);
        return st;
    }
    if (S_ISDIR(info->st_mode)) {
        close(fd);
        return DT_FAIL(DT_EDATA, "%s is a folder, not a file", path);
    }
    *out_fd = fd;
    return DT_OK;
}

static dt_status read_all(const char *path, bool is_any, size_t max_bytes, char **out_p, size_t *bytes_p)
{
    int fd = -1;
    struct stat info;
    DT_TRY(open_for_read(path, is_any, &fd, &info));
    dt_status st = DT_OK;
    size_t used = 0;
    size_t cap = S_ISREG(info.st_mode) && (uint64_t)info.st_size < max_bytes ? (size_t)info.st_size : max_bytes;
    cap = cap < 4096 ? 4096 : cap;
    cap = S_ISREG(info.st_mode) || cap < 65536 ? cap : 65536; /* a pipe or /proc file has no known size */
    char *text = NULL;
    if ((uint64_t)info.st_size > max_bytes) {
        st = DT_FAIL(DT_EDATA, "%s has %lld bytes, the limit is %zu", path, (long long)info.st_size, max_bytes);
        goto err_close;
    }
    text = dt_alloc(cap + 2);
    if (text == NULL) {
        st = DT_FAIL(DT_ENOMEM, "no memory for %zu bytes of %s", cap, path);
        goto err_close;
    }
    for (;;) {
        if (used > cap) {
            char *grown = dt_realloc(text, cap * 2 + 2);
            if (grown == NULL) {
                st = DT_FAIL(DT_ENOMEM, "no memory for %zu bytes of %s", cap * 2, path);
                goto err_free;
            }
            text = grown;
            cap *= 2;
        }
        ssize_t n = dt_fs_inject_fault("fs.read", EIO)
                        ? -1
                        : read(fd, text + used, cap + 1 - used); /* one byte over detects the end */
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            st = dt_fs_fail_io("read", path);
            goto err_free;
        }
        if (n == 0) {
            break;
        }
        used += (size_t)n;
        if (used > max_bytes) {
            st = DT_FAIL(DT_EDATA, "%s has more bytes than the limit of %zu", path, max_bytes);
            goto err_free;
        }
    }
    close(fd);
    text[used] = '\0';
    *out_p = text;
    *bytes_p = used;
    return DT_OK;
err_free:
    dt_free(text);
err_close:
    close(fd);
    return st;
}

dt_status dt_fs_read_all(const char *path, size_t max_bytes, char **out_p, size_t *bytes_p)
{
    return read_all(path, false, max_bytes, out_p, bytes_p);
}

dt_status dt_fs_read_any(const char *path, size_t max_bytes, char **out_p, size_t *bytes_p)
{
    return read_all(path, true, max_bytes, out_p, bytes_p);
}

dt_status dt_fs_map(const char *path, const void **out_p, size_t *bytes_p)
{
    int fd = -1;
    struct stat info;
    DT_TRY(open_for_read(path, false, &fd, &info));
    dt_status st = DT_OK;
    void *p = MAP_FAILED;
    if (!S_ISREG(info.st_mode) || info.st_size <= 0) {
        st = DT_FAIL(DT_EDATA, "%s is empty or not a regular file", path);
    } else if ((uint64_t)info.st_size > SIZE_MAX) {
        st = DT_FAIL(DT_EUNSUPPORTED, "%s has %lld bytes, more than this machine can address", path,
                     (long long)info.st_size);
    } else {
        if (!dt_fs_inject_fault("fs.map", ENOMEM)) {
            p = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        }
        if (p == MAP_FAILED) {
            st = dt_fs_fail_io("map", path);
        }
    }
    if (st == DT_OK) {
        st = dt_mapping_add(p, (size_t)info.st_size, path, &info, fd);
        if (st < 0) {
            munmap(p, (size_t)info.st_size);
        }
    }
    close(fd);
    if (st == DT_OK) {
        *out_p = p;
        *bytes_p = (size_t)info.st_size;
    }
    return st;
}

void dt_fs_unmap(const void *p, size_t bytes)
{
    if (p != NULL) {
        dt_mapping_remove(p);
        munmap((void *)(uintptr_t)p, bytes);
    }
}
