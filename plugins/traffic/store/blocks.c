/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/store/blocks.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef DT_HAVE_ZSTD
#    include <zstd.h>
#endif

enum { BLOCKS_VERSION = 1, HEAD_BYTES = 64, COLUMN_BYTES = 16, STEPS = 253, HALF_MOST = 65504 };
static const char magic[8] = {'d', 't', 'b', 'l', 'o', 'c', 'k', 's'};
static const size_t kept_bytes[DT_KEPT_KINDS] = {4, 2, 1, 4};

/* The first bytes of a file, as they lie there. */
typedef struct head {
    char magic[8];
    uint32_t version, kind, codec, width;
    uint64_t rows;
    uint32_t block_rows, reserved;
    uint64_t index_at;
    unsigned char zeros[16];
} head;
_Static_assert(sizeof(head) == HEAD_BYTES, "no holes");

bool dt_blocks_has_zstd(void)
{
#ifdef DT_HAVE_ZSTD
    return true;
#else
    return false;
#endif
}

static dt_status fail_no_zstd(const char *path)
{
    return DT_FAIL(DT_EUNSUPPORTED,
                   "%s: this dtrain was built without zstd: install libzstd (Debian: apt-get install libzstd-dev) and "
                   "configure again, or write the store with store.compress=none on a machine with zstd",
                   path);
}

/* The power of two of rows that a block has. */
static int64_t rows_of_block(size_t row_bytes)
{
    int64_t n = 1;
    while (2 * (size_t)n * row_bytes <= DT_BLOCKS_BYTES_MAX) {
        n *= 2;
    }
    return n;
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

dt_block_column dt_block_column_of(uint32_t kind, double min, double max)
{
    dt_block_column c = {.scale = 1, .zero = 0};
    const double middle = min + 0.5 * (max - min), most = fmax(fabs(min), fabs(max)), half = 0.5 * (max - min);
    if (kind == DT_KEPT_I8) { /* 253 steps: what rounding the middle to a whole one moves still fits 8 bits */
        c.scale = max > min ? (max - min) / STEPS : fabs(max);
        c.zero = c.scale > 0 ? llrint(middle / c.scale) : 0;
    } else if (kind == DT_KEPT_F16 && half + 1 < 0.5 * most) {
        c.zero = llrint(middle); /* far from 0, such as positions on a map: bits are spent on what differs */
    }
    if (kind == DT_KEPT_F16) { /* a power of two: no bit is lost by it */
        while (fmax(fabs(min / c.scale - (double)c.zero), fabs(max / c.scale - (double)c.zero)) > HALF_MOST) {
            c.scale *= 2;
            c.zero = (int64_t)rint((double)c.zero / 2);
        }
    }
    return c;
}

double dt_block_column_bound(uint32_t kind, const dt_block_column *c, double min, double max)
{
    const double most = fmax(fabs(min), fabs(max)), last_bit = most * FLT_EPSILON; /* of the f32 that comes out */
    if (kind == DT_KEPT_I8) {
        return 0.5 * c->scale + last_bit;
    }
    if (kind == DT_KEPT_F16) {
        const double kept = fmax(fabs(min / c->scale - (double)c->zero), fabs(max / c->scale - (double)c->zero));
        return c->scale * (kept * 0x1p-11 + 0x1p-25) + last_bit;
    }
    return 0;
}

/* To the nearest, ties to even; never infinite. */
static uint16_t float_to_half(float x)
{
    uint32_t word;
    memcpy(&word, &x, sizeof(word));
    const uint32_t sign = word >> 16 & 0x8000u;
    word &= 0x7fffffffu;
    if (word < 0x38800000u) { /* below 2^-14: multiples of 2^-24 */
        return (uint16_t)(sign | (uint32_t)lrintf(fabsf(x) * 0x1p24f));
    }
    word = (word + 0xfffu + (word >> 13 & 1u) - 0x38000000u) >> 13;
    return (uint16_t)(sign | (word < 0x7bffu ? word : 0x7bffu));
}

static float half_to_float(uint16_t half)
{
    const uint32_t size = half & 0x7fffu, sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t word = size >= 0x7c00u ? 0x7f800000u | (size & 0x3ffu) << 13 : (size << 13) + 0x38000000u;
    float x;
    if (size < 0x400u) {
        x = (float)size * 0x1p-24f;
        memcpy(&word, &x, sizeof(word));
    }
    word |= sign;
    memcpy(&x, &word, sizeof(x));
    return x;
}

static float unpack_value(const dt_block_column *c, double kept)
{
    return (float)(c->scale * ((double)c->zero + kept));
}

static float f16_value(const dt_block_column *c, const unsigned char *kept)
{
    uint16_t half;
    memcpy(&half, kept, sizeof(half));
    return unpack_value(c, (double)half_to_float(half));
}

static float i8_value(const dt_block_column *c, const unsigned char *kept)
{
    return unpack_value(c, (double)(int8_t)*kept);
}

void dt_blocks_values(const dt_blocks *b, const void *kept, int64_t n, void *out)
{
    const unsigned char *from = kept;
    float *to = out;
    if (b->kind == DT_KEPT_F32 || b->kind == DT_KEPT_I32) {
        memcpy(out, kept, (size_t)n * b->row_bytes);
        return;
    }
    for (int64_t i = 0; i < n; i++, to += b->width, from += b->row_bytes) {
        for (uint32_t d = 0; d < b->width; d++) {
            to[d] = b->kind == DT_KEPT_F16 ? f16_value(&b->column[d], from + 2 * d) : i8_value(&b->column[d], from + d);
        }
    }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

struct dt_blocks_writer {
    int fd;
    char *path;
    dt_blocks_desc desc;
    size_t row_bytes;
    int64_t block_rows, fill, rows; /* fill: rows of the block that is being filled */
    uint64_t at;                    /* bytes written so far */
    uint64_t *end;                  /* [n_blocks] */
    int64_t n_blocks, cap;
    double error[DT_BLOCKS_WIDTH_MAX];
    unsigned char block[DT_BLOCKS_BYTES_MAX], turned[DT_BLOCKS_BYTES_MAX];
    size_t packed_bytes;
    unsigned char *packed; /* [packed_bytes], zstd */
};

/* Bytes by their place in a row, and back. */
static void transpose_bytes(const unsigned char *in, int64_t rows, size_t row_bytes, unsigned char *out)
{
    for (size_t b = 0; b < row_bytes; b++) {
        for (int64_t i = 0; i < rows; i++) {
            out[b * (size_t)rows + (size_t)i] = in[(size_t)i * row_bytes + b];
        }
    }
}

static void transpose_bytes_back(const unsigned char *in, int64_t rows, size_t row_bytes, unsigned char *out)
{
    for (size_t b = 0; b < row_bytes; b++) {
        for (int64_t i = 0; i < rows; i++) {
            out[(size_t)i * row_bytes + b] = in[b * (size_t)rows + (size_t)i];
        }
    }
}

static dt_status write_bytes(dt_blocks_writer *w, const void *p, size_t bytes)
{
    DT_TRY(dt_fs_write(w->fd, w->path, p, bytes));
    w->at += bytes;
    return DT_OK;
}

static void make_head(const dt_blocks_writer *w, uint64_t index_at, head *out)
{
    *out = (head){.version = BLOCKS_VERSION,
                  .kind = w->desc.kind,
                  .codec = w->desc.codec,
                  .width = w->desc.width,
                  .rows = (uint64_t)w->rows,
                  .block_rows = (uint32_t)w->block_rows,
                  .index_at = index_at};
    memcpy(out->magic, magic, sizeof(magic));
}

static dt_status write_columns(dt_blocks_writer *w)
{
    head h;
    make_head(w, 0, &h);
    DT_TRY(write_bytes(w, &h, sizeof(h)));
    for (uint32_t d = 0; d < w->desc.width; d++) {
        DT_TRY(write_bytes(w, &w->desc.column[d].scale, sizeof(double)));
        DT_TRY(write_bytes(w, &w->desc.column[d].zero, sizeof(int64_t)));
    }
    return DT_OK;
}

dt_status dt_blocks_create(const char *path, const dt_blocks_desc *d, dt_blocks_writer **out_p)
{
    if (d->kind >= DT_KEPT_KINDS || d->codec >= DT_CODECS || d->width < 1 || d->width > DT_BLOCKS_WIDTH_MAX) {
        return DT_FAIL(DT_EINVAL,
                       "%s: kind %" PRIu32 ", codec %" PRIu32 ", rows of %" PRIu32 " are not blocks of this format",
                       path, d->kind, d->codec, d->width);
    }
    if (d->codec == DT_CODEC_ZSTD && !dt_blocks_has_zstd()) {
        return fail_no_zstd(path);
    }
    dt_blocks_writer *w = dt_alloc(sizeof(*w));
    if (w == NULL || (w->path = dt_strdup(path)) == NULL) {
        dt_free(w);
        return DT_FAIL(DT_ENOMEM, "no memory to write %s", path);
    }
    w->fd = -1;
    w->desc = *d;
    for (uint32_t k = 0; k < d->width && (d->kind == DT_KEPT_F32 || d->kind == DT_KEPT_I32); k++) {
        w->desc.column[k] = (dt_block_column){.scale = 1};
    }
    w->row_bytes = kept_bytes[d->kind] * d->width;
    w->block_rows = rows_of_block(w->row_bytes);
    dt_status st = DT_OK;
#ifdef DT_HAVE_ZSTD
    if (d->codec == DT_CODEC_ZSTD) {
        w->packed_bytes = ZSTD_compressBound(DT_BLOCKS_BYTES_MAX);
        w->packed = dt_alloc(w->packed_bytes);
        if (w->packed == NULL) {
            st = DT_FAIL(DT_ENOMEM, "no memory to write %s", path);
        }
    }
#endif
    if (st == DT_OK) {
        st = dt_fs_create(path, &w->fd);
    }
    if (st == DT_OK) {
        st = write_columns(w);
    }
    if (st != DT_OK) {
        dt_blocks_abandon(w);
        return st;
    }
    *out_p = w;
    return DT_OK;
}

#ifdef DT_HAVE_ZSTD
static dt_status pack_bytes(dt_blocks_writer *w, const void *p, size_t bytes, size_t *bytes_p)
{
    ZSTD_CCtx *z = ZSTD_createCCtx();
    if (z == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to pack %s", w->path);
    }
    size_t n = ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, w->desc.level);
    if (!ZSTD_isError(n)) {
        n = ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
    }
    if (!ZSTD_isError(n)) {
        n = ZSTD_compress2(z, w->packed, w->packed_bytes, p, bytes);
    }
    ZSTD_freeCCtx(z);
    if (ZSTD_isError(n)) {
        return DT_FAIL(DT_ENOMEM, "cannot pack %s: %s", w->path, ZSTD_getErrorName(n));
    }
    *bytes_p = n;
    return DT_OK;
}
#else
static dt_status pack_bytes(dt_blocks_writer *w, const void *p, size_t bytes, size_t *bytes_p)
{
    return fail_no_zstd(w->path);
}
#endif

static dt_status end_block(dt_blocks_writer *w)
{
    const void *p = w->block;
    size_t bytes = (size_t)w->fill * w->row_bytes;
    if (w->fill == 0) {
        return DT_OK;
    }
    if (w->n_blocks == w->cap) {
        const int64_t cap = w->cap == 0 ? 64 : 2 * w->cap;
        uint64_t *grown = dt_realloc(w->end, (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " blocks of %s", cap, w->path);
        }
        w->end = grown;
        w->cap = cap;
    }
    if (w->desc.codec == DT_CODEC_ZSTD) {
        transpose_bytes(w->block, w->fill, w->row_bytes, w->turned);
        DT_TRY(pack_bytes(w, w->turned, bytes, &bytes));
        p = w->packed;
    }
    DT_TRY(write_bytes(w, p, bytes));
    w->end[w->n_blocks++] = w->at;
    w->fill = 0;
    return DT_OK;
}

/* One row of floats in fewer bits; notes by how much they are off. */
static void keep_row(dt_blocks_writer *w, const float *row, unsigned char *out)
{
    for (uint32_t d = 0; d < w->desc.width; d++) {
        const dt_block_column *c = &w->desc.column[d];
        const double q = c->scale > 0 ? (double)row[d] / c->scale - (double)c->zero : 0;
        float back;
        if (w->desc.kind == DT_KEPT_F16) {
            const uint16_t half = float_to_half((float)q);
            memcpy(out + 2 * d, &half, sizeof(half));
            back = f16_value(c, out + 2 * d);
        } else {
            out[d] = (unsigned char)(int8_t)fmax(-127, fmin(127, rint(q)));
            back = i8_value(c, out + d);
        }
        w->error[d] = fmax(w->error[d], fabs((double)back - (double)row[d]));
    }
}

dt_status dt_blocks_append(dt_blocks_writer *w, const void *rows, int64_t n)
{
    const bool is_same = w->desc.kind == DT_KEPT_F32 || w->desc.kind == DT_KEPT_I32;
    const unsigned char *from = rows;
    const size_t from_bytes = 4 * (size_t)w->desc.width;
    for (int64_t i = 0; i < n; i++, from += from_bytes) {
        unsigned char *to = w->block + (size_t)w->fill * w->row_bytes;
        if (is_same) {
            memcpy(to, from, w->row_bytes);
        } else {
            keep_row(w, (const float *)(const void *)from, to);
        }
        w->rows++;
        if (++w->fill == w->block_rows) {
            DT_TRY(end_block(w));
        }
    }
    return DT_OK;
}

double dt_blocks_error(const dt_blocks_writer *w, uint32_t column)
{
    return w->error[column];
}

dt_status dt_blocks_close(dt_blocks_writer *w)
{
    head h;
    dt_status st = end_block(w);
    make_head(w, w->at, &h);
    if (st == DT_OK && w->n_blocks > 0) {
        st = write_bytes(w, w->end, (size_t)w->n_blocks * sizeof(*w->end));
    }
    if (st == DT_OK && pwrite(w->fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h)) {
        st = DT_FAIL(DT_EIO, "cannot write %s: %s", w->path, strerror(errno));
    }
    if (st == DT_OK) {
        st = dt_fs_sync_close(w->fd, w->path);
        w->fd = -1;
    }
    dt_blocks_abandon(w);
    return st;
}

void dt_blocks_abandon(dt_blocks_writer *w)
{
    if (w == NULL) {
        return;
    }
    if (w->fd >= 0) {
        close(w->fd);
    }
    dt_free(w->packed);
    dt_free(w->end);
    dt_free(w->path);
    dt_free(w);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static uint64_t block_end(const dt_blocks *b, int64_t block)
{
    uint64_t end;
    if (block < 0) {
        return b->data_at;
    }
    memcpy(&end, b->map + b->index_at + (size_t)block * sizeof(end), sizeof(end));
    return end;
}

int64_t dt_blocks_rows_of(const dt_blocks *b, int64_t block)
{
    return block + 1 < b->n_blocks ? b->block_rows : b->rows - block * b->block_rows;
}

static dt_status check_head(const char *name, const head *h, size_t n_bytes)
{
    if (n_bytes < HEAD_BYTES || memcmp(h->magic, magic, sizeof(magic)) != 0) {
        return DT_FAIL(DT_EDATA, "%s is not an array in blocks", name);
    }
    if (h->version != BLOCKS_VERSION) {
        return DT_FAIL(DT_EDATA, "%s: blocks of version %" PRIu32 ", this program reads version %d", name, h->version,
                       BLOCKS_VERSION);
    }
    if (h->kind >= DT_KEPT_KINDS || h->codec >= DT_CODECS || h->width < 1 || h->width > DT_BLOCKS_WIDTH_MAX ||
        h->rows > UINT64_C(1) << 53) {
        return DT_FAIL(DT_EDATA,
                       "%s: kind %" PRIu32 ", codec %" PRIu32 ", rows of %" PRIu32 " values, %" PRIu64
                       " rows: the header is damaged",
                       name, h->kind, h->codec, h->width, h->rows);
    }
    if (h->block_rows != (uint32_t)rows_of_block(kept_bytes[h->kind] * h->width)) {
        return DT_FAIL(DT_EDATA, "%s: blocks of %" PRIu32 " rows, expected %" PRId64, name, h->block_rows,
                       rows_of_block(kept_bytes[h->kind] * h->width));
    }
    return h->codec == DT_CODEC_ZSTD && !dt_blocks_has_zstd() ? fail_no_zstd(name) : DT_OK;
}

static dt_status read_columns(const char *name, dt_blocks *b)
{
    for (uint32_t d = 0; d < b->width; d++) {
        dt_block_column *c = &b->column[d];
        memcpy(&c->scale, b->map + HEAD_BYTES + d * COLUMN_BYTES, sizeof(c->scale));
        memcpy(&c->zero, b->map + HEAD_BYTES + d * COLUMN_BYTES + sizeof(c->scale), sizeof(c->zero));
        const double most = fabs((double)c->zero) + (b->kind == DT_KEPT_F16 ? HALF_MOST : 128);
        if (!(c->scale >= 0 && c->scale * most <= (double)FLT_MAX)) {
            return DT_FAIL(DT_EDATA, "%s: column %" PRIu32 " has scale %g and zero %" PRId64 ": both are invalid", name,
                           d, c->scale, c->zero);
        }
    }
    return DT_OK;
}

static dt_status check_block_index(const char *name, const dt_blocks *b)
{
    for (int64_t i = 0; i < b->n_blocks; i++) {
        const uint64_t begin = block_end(b, i - 1), end = block_end(b, i);
        const uint64_t raw = (uint64_t)dt_blocks_rows_of(b, i) * b->row_bytes;
        if (end <= begin || end > b->index_at || (b->codec == DT_CODEC_NONE && end - begin != raw)) {
            return DT_FAIL(DT_EDATA, "%s: block %" PRId64 " runs from byte %" PRIu64 " to %" PRIu64, name, i, begin,
                           end);
        }
    }
    return block_end(b, b->n_blocks - 1) == b->index_at
               ? DT_OK
               : DT_FAIL(DT_EDATA, "%s: the blocks end at byte %" PRIu64 ", the index begins at %zu", name,
                         block_end(b, b->n_blocks - 1), b->index_at);
}

dt_status dt_blocks_open_bytes(const void *bytes, size_t n_bytes, const char *name, dt_blocks *out_p)
{
    head h = {.version = 0};
    memcpy(&h, bytes, n_bytes < sizeof(h) ? n_bytes : sizeof(h));
    DT_TRY(check_head(name, &h, n_bytes));
    dt_blocks b = {.map = bytes,
                   .map_bytes = n_bytes,
                   .data_at = HEAD_BYTES + h.width * COLUMN_BYTES,
                   .kind = h.kind,
                   .codec = h.codec,
                   .width = h.width,
                   .rows = (int64_t)h.rows,
                   .block_rows = h.block_rows,
                   .row_bytes = kept_bytes[h.kind] * h.width};
    b.n_blocks = b.rows / b.block_rows + (b.rows % b.block_rows > 0);
    if (b.data_at > n_bytes || h.index_at < b.data_at || h.index_at > n_bytes ||
        (uint64_t)b.n_blocks != (n_bytes - h.index_at) / sizeof(uint64_t) ||
        (n_bytes - h.index_at) % sizeof(uint64_t) != 0) {
        return DT_FAIL(DT_EDATA, "%s: %" PRId64 " blocks and an index at byte %" PRIu64 " do not make %zu bytes", name,
                       b.n_blocks, h.index_at, n_bytes);
    }
    b.index_at = (size_t)h.index_at;
    DT_TRY(read_columns(name, &b));
    DT_TRY(check_block_index(name, &b));
    *out_p = b;
    return DT_OK;
}

dt_status dt_blocks_map(const char *path, dt_blocks *out_p)
{
    const void *map = NULL;
    size_t bytes = 0;
    DT_TRY(dt_fs_map(path, &map, &bytes));
    const dt_status st = dt_blocks_open_bytes(map, bytes, path, out_p);
    if (st != DT_OK) {
        dt_fs_unmap(map, bytes);
    }
    return st;
}

void dt_blocks_unmap(dt_blocks *b)
{
    if (b->map != NULL) {
        dt_fs_unmap(b->map, b->map_bytes);
    }
    *b = (dt_blocks){.map = NULL};
}

void dt_blocks_release_pages(const dt_blocks *b)
{
    if (b->map != NULL) {
        (void)madvise((void *)(uintptr_t)b->map, b->map_bytes, MADV_DONTNEED); /* advice: nothing depends on it */
    }
}

void dt_blocks_advise_random(const dt_blocks *b)
{
    if (b->map != NULL) {
        (void)madvise((void *)(uintptr_t)b->map, b->map_bytes, MADV_RANDOM); /* advice: nothing depends on it */
    }
}

#ifdef DT_HAVE_ZSTD
static dt_status unpack_block(const char *name, int64_t block, const void *p, size_t bytes, void *out, size_t raw)
{
    const size_t n = ZSTD_decompress(out, raw, p, bytes);
    if (ZSTD_isError(n) || n != raw) {
        return DT_FAIL(DT_EDATA, "%s: block %" PRId64 " is damaged: %s", name, block,
                       ZSTD_isError(n) ? ZSTD_getErrorName(n) : "it holds too few rows");
    }
    return DT_OK;
}
#else
static dt_status unpack_block(const char *name, int64_t block, const void *p, size_t bytes, void *out, size_t raw)
{
    return fail_no_zstd(name);
}
#endif

dt_status dt_blocks_unpack(const dt_blocks *b, const char *name, int64_t block, void *out, void *room,
                           const void **out_p)
{
    const uint64_t begin = block_end(b, block - 1), end = block_end(b, block);
    const int64_t rows = dt_blocks_rows_of(b, block);
    *out_p = b->map + begin;
    if (b->codec == DT_CODEC_NONE) {
        return DT_OK;
    }
    DT_TRY(unpack_block(name, block, b->map + begin, (size_t)(end - begin), room, (size_t)rows * b->row_bytes));
    transpose_bytes_back(room, rows, b->row_bytes, out);
    *out_p = out;
    return DT_OK;
}
