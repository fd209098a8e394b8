/* SPDX-License-Identifier: Apache-2.0
 *
 * A large array of a store in blocks of rows: in fewer bits, packed by zstd, or both. A slice of it is read without the
 * rest. What is kept is the array's values themselves (f32, i32), or of every column small numbers q (f16, i8) with
 * value = scale * (zero + q), where zero is whole: a 0 stays exactly 0.
 *
 * NAME.blocks, little endian: "dtblocks", u32 version 1, u32 kind, u32 codec, u32 width, u64 rows, u32 block_rows,
 * u32 0, u64 index_at, 16 bytes of 0; of each column f64 scale, i64 zero; the blocks; at index_at for each block u64
 * its end in the file. A block of zstd is one frame with a checksum; what it packs are the block's bytes by their place
 * in a row, all first ones, then all second ones (as HDF5's shuffle does, over whole rows), which halves what floats
 * take.
 *
 * A reader trusts nothing: sizes, order, and that each block unpacks to exactly its rows. Threads: one writer, one
 * thread; a mapped array may be read by any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_BLOCKS_H
#define DTRAIN_PLUGINS_TRAFFIC_BLOCKS_H

#include "dtrain/plugin.h"

#include <stdbool.h>

enum { DT_BLOCKS_WIDTH_MAX = 16, DT_BLOCKS_BYTES_MAX = 1 << 17 }; /* columns; of a block's rows as they are kept */

typedef enum dt_block_kind { DT_KEPT_F32, DT_KEPT_F16, DT_KEPT_I8, DT_KEPT_I32, DT_KEPT_KINDS } dt_block_kind;
typedef enum dt_block_codec { DT_CODEC_NONE, DT_CODEC_ZSTD, DT_CODECS } dt_block_codec;

bool dt_blocks_has_zstd(void); /* built in */

typedef struct dt_block_column {
    double scale;
    int64_t zero;
} dt_block_column;

/* How values in [min, max] are kept in so few bits. */
dt_block_column dt_block_column_of(uint32_t kind, double min, double max);
/* The most that a kept value in [min, max] can be off, by the way it is kept; f32 and i32: 0. */
double dt_block_column_bound(uint32_t kind, const dt_block_column *c, double min, double max);

/* ---- writing ----------------------------------------------------------------------------------------------------- */

typedef struct dt_blocks_writer dt_blocks_writer;

typedef struct dt_blocks_desc {
    uint32_t kind, codec, width;                 /* width: values of a row, at least 1 */
    int level;                                   /* of zstd */
    dt_block_column column[DT_BLOCKS_WIDTH_MAX]; /* f16, i8 */
} dt_blocks_desc;

/* The file must not exist yet. DT_EINVAL, DT_EUNSUPPORTED (zstd is not built in), DT_EIO, DT_ENOMEM. */
dt_status dt_blocks_create(const char *path, const dt_blocks_desc *d, dt_blocks_writer **out_p) DT_NODISCARD;
/* rows [n, width] f32, or i32 of DT_KEPT_I32; finite, of the range that their columns were made for. */
dt_status dt_blocks_append(dt_blocks_writer *w, const void *rows, int64_t n) DT_NODISCARD;
double dt_blocks_error(const dt_blocks_writer *w, uint32_t column); /* the most that a value so far is off */
dt_status dt_blocks_close(dt_blocks_writer *w) DT_NODISCARD;        /* index, header, fsync; frees in any case */
void dt_blocks_abandon(dt_blocks_writer *w);                        /* the file stays; NULL is fine */

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct dt_blocks {
    const unsigned char *map;
    size_t map_bytes, data_at, index_at;
    uint32_t kind, codec, width;
    int64_t rows, block_rows, n_blocks;
    size_t row_bytes; /* as it is kept */
    dt_block_column column[DT_BLOCKS_WIDTH_MAX];
} dt_blocks;

/* DT_ENOTFOUND, DT_EDATA (path and reason), DT_EUNSUPPORTED (zstd is not built in), DT_EIO. */
dt_status dt_blocks_map(const char *path, dt_blocks *out_p) DT_NODISCARD;
/* The same of a file in memory; there is nothing to unmap. */
dt_status dt_blocks_open_bytes(const void *bytes, size_t n_bytes, const char *name, dt_blocks *out_p) DT_NODISCARD;
void dt_blocks_unmap(dt_blocks *b);               /* zeroed is fine */
void dt_blocks_release_pages(const dt_blocks *b); /* pages touched so far go back to the page cache */
void dt_blocks_advise_random(const dt_blocks *b); /* as dt_npy_advise_random */
int64_t dt_blocks_rows_of(const dt_blocks *b, int64_t block);
/* A block's rows as they are kept, row by row. out, room [DT_BLOCKS_BYTES_MAX]; codec none: *out_p points into the map.
 * name: of the array, for messages. DT_EDATA. */
dt_status dt_blocks_unpack(const dt_blocks *b, const char *name, int64_t block, void *out, void *room,
                           const void **out_p) DT_NODISCARD;
/* The values of n rows as they are kept: out [n, width] f32, or i32. */
void dt_blocks_values(const dt_blocks *b, const void *kept, int64_t n, void *out);

#endif
