/* SPDX-License-Identifier: Apache-2.0
 *
 * A file read from begin to end, whatever packs it. See source.h.
 */
#include <config.h>

#include "traffic/text/source.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { PIECE_BYTES = 1 << 16 };
static const uint64_t xz_memory_limit = UINT64_C(1) << 30; /* what xz -9e needs to unpack is 65 MiB */

typedef enum packing { PLAIN, GZIP, XZ } packing;

struct dt_source {
    int fd;
    packing packing;
    bool is_at_end;      /* of the file */
    bool is_member_open; /* gzip: in the middle of a member */
    bool is_done;        /* xz: the decoder has said so */
    char *path;
    z_stream z;
    lzma_stream x;
    uint64_t n_read, n_unpacked; /* bytes of the file, of what it holds */
    const unsigned char *mem;    /* NULL: fd */
    size_t mem_left;
    const unsigned char *next;
    size_t left;
    unsigned char piece[PIECE_BYTES];
};

/* The next piece of the file itself; as read(2). */
static ssize_t read_piece(dt_source *s)
{
    if (s->mem == NULL) {
        return read(s->fd, s->piece, sizeof(s->piece));
    }
    const size_t n = s->mem_left < sizeof(s->piece) ? s->mem_left : sizeof(s->piece);
    memcpy(s->piece, s->mem, n);
    s->mem += n;
    s->mem_left -= n;
    return (ssize_t)n;
}

static dt_status refill_input(dt_source *s)
{
    while (s->left == 0 && !s->is_at_end) {
        ssize_t n = read_piece(s);
        if (n < 0 && errno != EINTR) {
            return DT_FAIL(DT_EIO, "cannot read %s: %s", s->path, strerror(errno));
        }
        s->is_at_end = n == 0;
        s->next = s->piece;
        s->left = n > 0 ? (size_t)n : 0;
        s->n_read += s->left;
    }
    return DT_OK;
}

/* What other programs pack, and how it is unpacked. */
static dt_status check_foreign(const dt_source *s)
{
    static const struct {
        size_t at, bytes;
        const char *magic, *what, *how;
    } foreign[] = {{0, 4, "\x28\xb5\x2f\xfd", "packed by zstd", "zstd -d"},
                   {0, 3, "BZh", "packed by bzip2", "bunzip2"},
                   {0, 5, "\x5d\0\0\x80\0", "packed by lzma", "unlzma"},
                   {0, 4, "PK\x03\x04", "a zip archive (or a spreadsheet)", "unzip, or export it as CSV"},
                   {0, 6, "7z\xbc\xaf\x27\x1c", "a 7z archive", "7z x"},
                   {257, 5, "ustar", "a tar archive", "tar -xf"},
                   {0, 4, "PAR1", "parquet", "to_csv of pandas"}};
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        if (s->left >= foreign[i].at + foreign[i].bytes &&
            memcmp(s->next + foreign[i].at, foreign[i].magic, foreign[i].bytes) == 0) {
            return DT_FAIL(DT_EDATA,
                           "%s is %s; plain files and those packed by gzip or xz are read: unpack it, as by %s",
                           s->path, foreign[i].what, foreign[i].how);
        }
    }
    return DT_OK;
}

static dt_status start_packing(dt_source *s)
{
    static const unsigned char gz[2] = {0x1f, 0x8b}, xz[6] = {0xfd, '7', 'z', 'X', 'Z', 0};
    DT_TRY(refill_input(s));
    if (s->left == 0) {
        return DT_FAIL(DT_EDATA, "%s is empty", s->path);
    }
    if (s->left >= sizeof(gz) && memcmp(s->next, gz, sizeof(gz)) == 0) {
        if (inflateInit2(&s->z, 15 + 16) != Z_OK) {
            return DT_FAIL(DT_ENOMEM, "no memory to unpack %s", s->path);
        }
        s->packing = GZIP;
        s->is_member_open = true;
    } else if (s->left >= sizeof(xz) && memcmp(s->next, xz, sizeof(xz)) == 0) {
        if (lzma_stream_decoder(&s->x, xz_memory_limit, LZMA_CONCATENATED) != LZMA_OK) {
            return DT_FAIL(DT_ENOMEM, "no memory to unpack %s", s->path);
        }
        s->packing = XZ;
    }
    return s->packing == PLAIN ? check_foreign(s) : DT_OK;
}

static dt_source *create_source(const char *name)
{
    dt_source *s = dt_alloc(sizeof(*s));
    if (s == NULL || (s->path = dt_strdup(name)) == NULL) {
        dt_free(s);
        return NULL;
    }
    s->x = (lzma_stream)LZMA_STREAM_INIT;
    s->fd = -1;
    return s;
}

/* Of a source that has been given its bytes; the source is destroyed where that fails. */
static dt_status begin_source(dt_source *s, dt_source **out_p)
{
    const dt_status st = start_packing(s);
    if (st != DT_OK) {
        dt_source_close(s);
        return st;
    }
    *out_p = s;
    return DT_OK;
}

dt_status dt_source_open(const char *path, dt_source **out_p)
{
    dt_source *s = create_source(path);
    if (s == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to read %s", path);
    }
    const dt_status st = dt_fs_open(path, O_RDONLY, &s->fd); /* a plain file, or it reports it */
    if (st != DT_OK) {
        dt_source_close(s);
        return st;
    }
    return begin_source(s, out_p);
}

dt_status dt_source_open_mem(const void *bytes, size_t n_bytes, const char *name, dt_source **out_p)
{
    dt_source *s = create_source(name);
    if (s == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to read %s", name);
    }
    s->mem = bytes;
    s->mem_left = n_bytes;
    return begin_source(s, out_p);
}

static int64_t fail_short(const dt_source *s, const char *what)
{
    (void)DT_FAIL(DT_EDATA, "%s: the %s stream is truncated: copy the file again", s->path, what);
    return -1;
}

static int64_t read_gzip(dt_source *s, char *buf, size_t bytes)
{
    s->z.next_out = (unsigned char *)buf;
    s->z.avail_out = (unsigned)bytes;
    while (s->z.avail_out == bytes) {
        if (refill_input(s) != DT_OK) {
            return -1;
        }
        if (s->left == 0) {
            return s->is_member_open ? fail_short(s, "gzip") : 0;
        }
        if (!s->is_member_open && *s->next == 0) { /* padding, as of tapes */
            s->next++;
            s->left--;
            continue;
        }
        if (!s->is_member_open) {
            (void)inflateReset(&s->z);
            s->is_member_open = true;
        }
        s->z.next_in = (unsigned char *)(uintptr_t)s->next;
        s->z.avail_in = (unsigned)s->left;
        int got = inflate(&s->z, Z_NO_FLUSH);
        s->next = s->z.next_in;
        s->left = s->z.avail_in;
        if (got == Z_STREAM_END) {
            s->is_member_open = false;
        } else if (got != Z_OK && got != Z_BUF_ERROR) {
            (void)DT_FAIL(DT_EDATA, "%s: the gzip stream is damaged: %s", s->path, s->z.msg == NULL ? "?" : s->z.msg);
            return -1;
        }
    }
    return (int64_t)(bytes - s->z.avail_out);
}

static int64_t read_xz(dt_source *s, char *buf, size_t bytes)
{
    s->x.next_out = (uint8_t *)buf;
    s->x.avail_out = bytes;
    while (s->x.avail_out == bytes && !s->is_done) {
        if (refill_input(s) != DT_OK) {
            return -1;
        }
        s->x.next_in = s->next;
        s->x.avail_in = s->left;
        lzma_ret got = lzma_code(&s->x, s->is_at_end ? LZMA_FINISH : LZMA_RUN);
        s->next = s->x.next_in;
        s->left = s->x.avail_in;
        if (got == LZMA_STREAM_END) {
            s->is_done = true;
        } else if (got == LZMA_BUF_ERROR) {
            return fail_short(s, "xz");
        } else if (got != LZMA_OK) {
            (void)DT_FAIL(got == LZMA_MEM_ERROR ? DT_ENOMEM : DT_EDATA, "%s: the xz stream is damaged (lzma code %d)",
                          s->path, (int)got);
            return -1;
        }
    }
    return (int64_t)(bytes - s->x.avail_out);
}

int64_t dt_source_read(void *source, char *buf, size_t bytes)
{
    dt_source *s = source;
    bytes = bytes > PIECE_BYTES ? PIECE_BYTES : bytes;
    if (s->packing != PLAIN) {
        const int64_t n = s->packing == GZIP ? read_gzip(s, buf, bytes) : read_xz(s, buf, bytes);
        if (n > 0) {
            s->n_unpacked += (uint64_t)n;
        }
        if (!dt_is_bomb(s->n_read, s->n_unpacked)) {
            return n;
        }
        (void)DT_FAIL(DT_EDATA, "%s: %llu bytes unpack to more than %llu, over %d times as many: not a recording",
                      s->path, (unsigned long long)s->n_read, (unsigned long long)s->n_unpacked, DT_UNPACK_MOST_RATIO);
        return -1;
    }
    if (refill_input(s) != DT_OK) {
        return -1;
    }
    size_t n = s->left < bytes ? s->left : bytes;
    memcpy(buf, s->next, n);
    s->next += n;
    s->left -= n;
    return (int64_t)n;
}

uint64_t dt_source_bytes_read(const dt_source *s)
{
    return s->n_read;
}

dt_status dt_source_size(const char *path, uint64_t *bytes_p)
{
    struct stat info;
    int fd = -1;
    DT_TRY(dt_fs_open(path, O_RDONLY, &fd));
    const int got = fstat(fd, &info);
    const int code = errno;
    close(fd);
    if (got != 0) {
        return DT_FAIL(DT_EIO, "cannot read %s: %s", path, strerror(code));
    }
    *bytes_p = info.st_size > 0 ? (uint64_t)info.st_size : 0;
    return DT_OK;
}

void dt_source_close(dt_source *s)
{
    if (s == NULL) {
        return;
    }
    if (s->packing == GZIP) {
        (void)inflateEnd(&s->z);
    }
    lzma_end(&s->x);
    if (s->fd >= 0) {
        close(s->fd);
    }
    dt_free(s->path);
    dt_free(s);
}
