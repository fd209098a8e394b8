/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy's array file. See npy.h.
 */
#include <config.h>

#include "traffic/store/npy.h"
#include "base/err.h"
#include "base/beneath.h"
#include "base/fs.h"
#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_BYTES = 128, PREFIX_BYTES = 10, BUFFER_BYTES = 1 << 16, HEADER_LIMIT = 4096 };
static const char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

typedef struct kind {
    uint32_t dtype;
    const char *descr;
    size_t bytes;
} kind;

static const kind kinds[] = {
    {DT_F32, "<f4", 4}, {DT_F64, "<f8", 8}, {DT_I32, "<i4", 4}, {DT_I64, "<i8", 8}, {DT_U8, "|u1", 1}};

static const kind *find_kind(uint32_t dtype)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (kinds[i].dtype == dtype) {
            return &kinds[i];
        }
    }
    return NULL;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

struct dt_npy_writer {
    int fd;
    const kind *kind;
    int64_t width, rows;
    size_t row_bytes, fill;
    char *path;
    bool is_unflushed;
    unsigned char buffer[BUFFER_BYTES];
};

static void make_header(const kind *k, int64_t rows, int64_t width, char out[HEADER_BYTES])
{
    char shape[64], dict[HEADER_BYTES];
    if (width == 0) {
        snprintf(shape, sizeof(shape), "(%" PRId64 ",)", rows);
    } else {
        snprintf(shape, sizeof(shape), "(%" PRId64 ", %" PRId64 ")", rows, width);
    }
    int n = snprintf(dict, sizeof(dict), "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", k->descr, shape);
    memset(out, ' ', HEADER_BYTES);
    memcpy(out, magic, sizeof(magic));
    out[6] = 1;
    out[7] = 0;
    out[8] = (char)(HEADER_BYTES - PREFIX_BYTES);
    out[9] = 0;
    memcpy(out + PREFIX_BYTES, dict, (size_t)n);
    out[HEADER_BYTES - 1] = '\n';
}

static dt_status check_new(const char *path, uint32_t dtype, int64_t width)
{
    if (find_kind(dtype) == NULL || width < 0 || width > 1 << 20) {
        return DT_FAIL(DT_EINVAL, "%s: dtype %" PRIu32 " with rows of %" PRId64 " is not a .npy array of ours", path,
                       dtype, width);
    }
    return DT_OK;
}

dt_status dt_npy_create(const char *path, uint32_t dtype, int64_t width, dt_npy_writer **out_p)
{
    DT_TRY(check_new(path, dtype, width));
    dt_npy_writer *w = dt_alloc(sizeof(*w));
    char *copy = dt_strdup(path);
    int fd = -1;
    dt_status st = DT_OK;
    if (w == NULL || copy == NULL) {
        st = DT_FAIL(DT_ENOMEM, "no memory to write %s", path);
        goto err_free;
    }
    st = dt_fs_create(path, &fd);
    if (st != DT_OK) {
        goto err_free;
    }
    *w = (dt_npy_writer){.fd = fd, .kind = find_kind(dtype), .width = width, .path = copy};
    w->row_bytes = w->kind->bytes * (width == 0 ? 1 : (size_t)width);
    make_header(w->kind, 0, width, (char *)w->buffer);
    w->fill = HEADER_BYTES;
    *out_p = w;
    return DT_OK;
err_free:
    dt_free(copy);
    dt_free(w);
    return st;
}

static dt_status flush_buffer(dt_npy_writer *w)
{
    size_t n = w->fill;
    w->fill = 0;
    return n == 0 ? DT_OK : dt_fs_write(w->fd, w->path, w->buffer, n);
}

dt_status dt_npy_append(dt_npy_writer *w, const void *rows, int64_t n_rows)
{
    size_t bytes = (size_t)n_rows * w->row_bytes;
    if (w->fill + bytes > sizeof(w->buffer)) {
        DT_TRY(flush_buffer(w));
    }
    if (bytes > sizeof(w->buffer)) {
        DT_TRY(dt_fs_write(w->fd, w->path, rows, bytes));
    } else if (bytes > 0) {
        memcpy(w->buffer + w->fill, rows, bytes);
        w->fill += bytes;
    }
    w->rows += n_rows;
    return DT_OK;
}

void dt_npy_unflushed(dt_npy_writer *w)
{
    w->is_unflushed = true;
}

int64_t dt_npy_rows(const dt_npy_writer *w)
{
    return w->rows;
}

dt_status dt_npy_truncate(dt_npy_writer *w, int64_t rows)
{
    const off_t bytes = HEADER_BYTES + (off_t)rows * (off_t)w->row_bytes;
    DT_TRY(flush_buffer(w));
    if (ftruncate(w->fd, bytes) != 0 || lseek(w->fd, bytes, SEEK_SET) != bytes) {
        return DT_FAIL(DT_EIO, "cannot cut %s to %" PRId64 " rows: %s", w->path, rows, strerror(errno));
    }
    w->rows = rows;
    return DT_OK;
}

dt_status dt_npy_close(dt_npy_writer *w)
{
    char header[HEADER_BYTES];
    dt_status st = flush_buffer(w);
    make_header(w->kind, w->rows, w->width, header);
    if (st == DT_OK && pwrite(w->fd, header, sizeof(header), 0) != (ssize_t)sizeof(header)) {
        st = DT_FAIL(DT_EIO, "cannot write %s: %s", w->path, strerror(errno));
    }
    if (st == DT_OK && !w->is_unflushed) {
        st = dt_fs_sync_close(w->fd, w->path);
    } else if (close(w->fd) != 0 && st == DT_OK) {
        st = DT_FAIL(DT_EIO, "cannot write %s: %s", w->path, strerror(errno));
    }
    dt_free(w->path);
    dt_free(w);
    return st;
}

void dt_npy_abandon(dt_npy_writer *w)
{
    if (w != NULL) {
        close(w->fd);
        dt_free(w->path);
        dt_free(w);
    }
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The value of a key of the header's dictionary: the text after "'key':", blanks skipped; NULL when missing. */
static const char *dict_value(const char *dict, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof(quoted), "'%s':", key);
    const char *p = strstr(dict, quoted);
    if (p == NULL) {
        return NULL;
    }
    p += strlen(quoted);
    while (*p == ' ') {
        p++;
    }
    return p;
}

/* "(12,)" or "(12, 9)"; false for anything else, negative or beyond 2^53. */
static bool parse_shape(const char *p, int64_t *rows_p, int64_t *width_p)
{
    int64_t dim[2] = {0, 0};
    int n = 0;
    if (*p++ != '(') {
        return false;
    }
    while (n < 2 && isdigit((unsigned char)*p)) {
        for (; isdigit((unsigned char)*p); p++) {
            dim[n] = dim[n] * 10 + (*p - '0');
            if (dim[n] > INT64_C(1) << 53) {
                return false;
            }
        }
        n++;
        bool has_comma = *p == ',';
        p += has_comma;
        while (*p == ' ') {
            p++;
        }
        if (!has_comma && (n == 1 || *p != ')')) {
            return false;
        }
    }
    *rows_p = dim[0];
    *width_p = dim[1];
    return *p == ')' && n >= 1 && (n == 1 || dim[1] > 0);
}

static dt_status check_file(const char *path, const unsigned char *p, size_t bytes, uint32_t dtype, int64_t width,
                            dt_npy *out)
{
    const kind *k = find_kind(dtype);
    if (bytes < PREFIX_BYTES || memcmp(p, magic, sizeof(magic)) != 0) {
        return DT_FAIL(DT_EDATA, "%s is not a .npy file", path);
    }
    if (p[6] != 1 || p[7] != 0) {
        return DT_FAIL(DT_EDATA, "%s: .npy version %d.%d, this program reads 1.0", path, p[6], p[7]);
    }
    size_t header = p[8] + 256u * p[9];
    if (header > HEADER_LIMIT || PREFIX_BYTES + header > bytes) {
        return DT_FAIL(DT_EDATA, "%s: a header of %zu bytes does not fit (file %zu, limit %d)", path, header, bytes,
                       HEADER_LIMIT);
    }
    char dict[HEADER_LIMIT + 1];
    memcpy(dict, p + PREFIX_BYTES, header);
    dict[header] = '\0';
    const char *descr = dict_value(dict, "descr"), *order = dict_value(dict, "fortran_order");
    const char *shape = dict_value(dict, "shape");
    int64_t rows = 0, got = 0;
    if (descr == NULL || order == NULL || shape == NULL || !parse_shape(shape, &rows, &got)) {
        return DT_FAIL(DT_EDATA, "%s: the header's dictionary is damaged", path);
    }
    if (descr[0] != '\'' || strncmp(descr + 1, k->descr, 3) != 0 || descr[4] != '\'') {
        return DT_FAIL(DT_EDATA, "%s: values are %.5s, expected '%s'", path, descr, k->descr);
    }
    if (strncmp(order, "False", 5) != 0) {
        return DT_FAIL(DT_EDATA, "%s: the array is in Fortran order, expected C order (numpy.ascontiguousarray)", path);
    }
    if (got != width) {
        return DT_FAIL(DT_EDATA, "%s: rows of %" PRId64 " values, expected %" PRId64, path, got, width);
    }
    size_t row_bytes = k->bytes * (width == 0 ? 1 : (size_t)width), data = 0;
    if ((PREFIX_BYTES + header) % k->bytes != 0) {
        return DT_FAIL(DT_EDATA, "%s: the data begin at byte %zu, not aligned to %zu", path, PREFIX_BYTES + header,
                       k->bytes);
    }
    if (!dt_mul_size((size_t)rows, row_bytes, &data) || data != bytes - PREFIX_BYTES - header) {
        return DT_FAIL(DT_EDATA, "%s: %zu bytes of data, but %" PRId64 " rows of %zu are announced", path,
                       bytes - PREFIX_BYTES - header, rows, row_bytes);
    }
    out->data = rows == 0 ? NULL : p + PREFIX_BYTES + header;
    out->rows = rows;
    out->width = width;
    out->dtype = dtype;
    return DT_OK;
}

dt_status dt_npy_map(const char *path, uint32_t dtype, int64_t width, dt_npy *out_p)
{
    DT_TRY(check_new(path, dtype, width));
    dt_npy a = {0};
    DT_TRY(dt_fs_map(path, &a.map, &a.map_bytes));
    dt_status st = check_file(path, a.map, a.map_bytes, dtype, width, &a);
    if (st != DT_OK) {
        dt_fs_unmap(a.map, a.map_bytes);
        return st;
    }
    *out_p = a;
    return DT_OK;
}

/* Does the header of a file have this type of values? What else is in it is checked by check_file. */
static bool has_dtype(const unsigned char *p, size_t bytes, uint32_t dtype)
{
    char dict[HEADER_LIMIT + 1];
    const size_t header = bytes < PREFIX_BYTES ? 0 : p[8] + 256u * p[9];
    if (header == 0 || header > HEADER_LIMIT || PREFIX_BYTES + header > bytes) {
        return false;
    }
    memcpy(dict, p + PREFIX_BYTES, header);
    dict[header] = '\0';
    const char *descr = dict_value(dict, "descr");
    return descr != NULL && descr[0] == '\'' && strncmp(descr + 1, find_kind(dtype)->descr, 3) == 0;
}

dt_status dt_npy_map_either(const char *path, const uint32_t dtype[2], int64_t width, dt_npy *out_p)
{
    const void *map = NULL;
    size_t bytes = 0;
    DT_TRY(check_new(path, dtype[0], width));
    DT_TRY(check_new(path, dtype[1], width));
    DT_TRY(dt_fs_map(path, &map, &bytes));
    const bool is_second = has_dtype(map, bytes, dtype[1]);
    dt_fs_unmap(map, bytes);
    return dt_npy_map(path, dtype[is_second], width, out_p);
}

dt_status dt_npy_open_bytes(const void *bytes, size_t n_bytes, const char *name, uint32_t dtype, int64_t width,
                            dt_npy *out_p)
{
    DT_TRY(check_new(name, dtype, width));
    dt_npy a = {0};
    DT_TRY(check_file(name, bytes, n_bytes, dtype, width, &a));
    *out_p = a;
    return DT_OK;
}

static dt_status map_rw(const char *path, uint32_t dtype, int64_t width, dt_npy *out_p)
{
    struct stat sb;
    int fd = dt_beneath_open(path, O_RDWR, 0);
    if (fd < 0 || fstat(fd, &sb) != 0 || sb.st_size < PREFIX_BYTES) {
        dt_status st =
            DT_FAIL(DT_EIO, "cannot open %s: %s", path, fd < 0 ? dt_beneath_strerror(errno) : "it is truncated");
        if (fd >= 0) {
            close(fd);
        }
        return st;
    }
    void *p = mmap(NULL, (size_t)sb.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int reason = errno;
    close(fd);
    if (p == MAP_FAILED) {
        return DT_FAIL(DT_EIO, "cannot map %s: %s", path, strerror(reason));
    }
    dt_npy a = {.map = p, .map_bytes = (size_t)sb.st_size, .is_writable = 1};
    dt_status st = check_file(path, p, a.map_bytes, dtype, width, &a);
    if (st != DT_OK) {
        munmap(p, a.map_bytes);
        return st;
    }
    *out_p = a;
    return DT_OK;
}

dt_status dt_npy_map_rw(const char *path, uint32_t dtype, int64_t width, dt_npy *out_p)
{
    DT_TRY(check_new(path, dtype, width));
    return map_rw(path, dtype, width, out_p);
}

dt_status dt_npy_create_mapped(const char *path, uint32_t dtype, int64_t width, int64_t n_rows, dt_npy *out_p)
{
    DT_TRY(check_new(path, dtype, width));
    char header[HEADER_BYTES];
    const kind *k = find_kind(dtype);
    make_header(k, n_rows, width, header);
    int fd = -1;
    DT_TRY(dt_fs_create(path, &fd));
    dt_status st = dt_fs_write(fd, path, header, sizeof(header));
    int64_t bytes = 0;
    const bool fits = n_rows >= 0 && dt_mul_i64(n_rows, (int64_t)k->bytes * (width == 0 ? 1 : width), &bytes) &&
                      dt_add_i64(bytes, HEADER_BYTES, &bytes);
    int reason = !fits         ? EFBIG
                 : st == DT_OK ? posix_fallocate(fd, 0, bytes) /* a full disk must fail now, not by SIGBUS later */
                               : 0;
    close(fd);
    if (st == DT_OK && reason != 0) {
        st = DT_FAIL(DT_EIO, "cannot reserve %lld bytes for %s: %s", (long long)bytes, path, strerror(reason));
    }
    return st == DT_OK ? map_rw(path, dtype, width, out_p) : st;
}

dt_status dt_npy_sync(const dt_npy *a, const char *path)
{
    if (msync((void *)(uintptr_t)a->map, a->map_bytes, MS_SYNC) != 0) {
        return DT_FAIL(DT_EIO, "cannot write %s back: %s", path, strerror(errno));
    }
    return DT_OK;
}

void dt_npy_release_pages(const dt_npy *a)
{
    if (a->map != NULL) {
        (void)madvise((void *)(uintptr_t)a->map, a->map_bytes, MADV_DONTNEED); /* advice: nothing depends on it */
    }
}

void dt_npy_advise_random(const dt_npy *a)
{
    if (a->map != NULL) {
        (void)madvise((void *)(uintptr_t)a->map, a->map_bytes, MADV_RANDOM); /* advice: nothing depends on it */
    }
}

void dt_npy_unmap(dt_npy *a)
{
    dt_fs_unmap(a->map, a->map_bytes);
    *a = (dt_npy){0};
}
