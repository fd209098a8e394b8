/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy's array file, version 1.0 (numpy/lib/format.py: NEP 1), little endian, C order, one or two dimensions.
 *
 * The writer appends rows and patches the count into a header of 128 bytes when it closes, so the data begins at a
 * multiple of 64 and numpy.load(..., mmap_mode="r") and mmap both see aligned rows. The reader maps a file and checks
 * everything: magic, version, dictionary, dtype, order, shape, and that the file is exactly as long as declared.
 * Numbers are dtypes of include/dtrain/plugin.h: DT_F32 DT_F64 DT_I32 DT_I64 DT_U8. Threads: one object, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_NPY_H
#define DTRAIN_PLUGINS_TRAFFIC_NPY_H

#include "dtrain/plugin.h"

typedef struct dt_npy_writer dt_npy_writer;

/* width 0: one dimension [rows]; else [rows, width]. The file must not exist yet (DT_EINVAL). DT_EIO, DT_ENOMEM. */
dt_status dt_npy_create(const char *path, uint32_t dtype, int64_t width, dt_npy_writer **out_p) DT_NODISCARD;
dt_status dt_npy_append(dt_npy_writer *w, const void *rows, int64_t n_rows) DT_NODISCARD;
void dt_npy_unflushed(dt_npy_writer *w);     /* close does not wait for the disk: what is damaged then is made again */
int64_t dt_npy_rows(const dt_npy_writer *w); /* appended so far */
dt_status dt_npy_truncate(dt_npy_writer *w, int64_t rows) DT_NODISCARD; /* as if no more than these had come; DT_EIO */
dt_status dt_npy_close(dt_npy_writer *w) DT_NODISCARD; /* writes what is left and the shape, fsync; frees in any case */
void dt_npy_abandon(dt_npy_writer *w);                 /* closes without finishing; the file stays; NULL is fine */

/* A mapped array. data is NULL when it has no rows. */
typedef struct dt_npy {
    const void *data;
    int64_t rows, width; /* width 0: one dimension */
    uint32_t dtype;
    const void *map;
    size_t map_bytes;
    int is_writable;
} dt_npy;

/* Map read-only. Refuses another dtype or width. DT_ENOTFOUND, DT_EDATA (path and reason), DT_EIO. */
dt_status dt_npy_map(const char *path, uint32_t dtype, int64_t width, dt_npy *out_p) DT_NODISCARD;
/* The same of an array of one of two dtypes, as in *out_p. */
dt_status dt_npy_map_either(const char *path, const uint32_t dtype[2], int64_t width, dt_npy *out_p) DT_NODISCARD;
/* The same of a file in memory at an address that is a multiple of 8; *out_p points into it, and there is
 * nothing to unmap. name: what messages call it. */
dt_status dt_npy_open_bytes(const void *bytes, size_t n_bytes, const char *name, uint32_t dtype, int64_t width,
                            dt_npy *out_p) DT_NODISCARD;
/* Map an existing file for changing it in place; dt_npy_unmap writes back. */
dt_status dt_npy_map_rw(const char *path, uint32_t dtype, int64_t width, dt_npy *out_p) DT_NODISCARD;
/* Create a file of n_rows zero rows and map it for filling: memory that the page cache holds, not the heap. */
dt_status dt_npy_create_mapped(const char *path, uint32_t dtype, int64_t width, int64_t n_rows, dt_npy *out_p)
    DT_NODISCARD;
/* Write a changed array back to the disk and wait for it. */
dt_status dt_npy_sync(const dt_npy *a, const char *path) DT_NODISCARD;
/* Give the pages touched so far back to the page cache: a pass over a large array then does not fill this process's
 * resident memory. Changes made to a writable array stay. */
void dt_npy_release_pages(const dt_npy *a);
/* What is read from here on comes in no order: the system reads what is asked for, and nothing around it. */
void dt_npy_advise_random(const dt_npy *a);
void dt_npy_unmap(dt_npy *a);

#endif
