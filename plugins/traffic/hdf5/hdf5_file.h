/* SPDX-License-Identifier: Apache-2.0
 *
 * An HDF5 file of arrays and texts, as the module of libhdf5 (plugins/traffic/hdf5) serves it. The module sees
 * this header and none of the host's code. Arrays lie in the root group: one or two dimensions, in chunks of rows,
 * shuffled and packed by gzip. What is read may be any file: types, dimensions, filters and where bytes lie are
 * checked. Threads: one file, one thread, one at a time.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_HDF5_FILE_H
#define DTRAIN_PLUGINS_TRAFFIC_HDF5_FILE_H

#include "dtrain/plugin.h"

#define DT_HDF5_ENTRY "dt_hdf5_module"
enum { DT_HDF5_VERSION = 1, DT_HDF5_TEXT_BYTES = 520 };

typedef struct dt_hdf5 dt_hdf5; /* an open file */

typedef struct dt_hdf5_host {
    uint32_t struct_size, reserved;
    dt_status (*fail)(dt_status st, const char *file, int line, const char *fmt, ...) DT_PRINTF(4, 5);
} dt_hdf5_host;

/* dtype: DT_F32, DT_F64, DT_I32, DT_I64, DT_U8; width 0: one dimension. DT_EIO, DT_EDATA, DT_ENOMEM. */
typedef struct dt_hdf5_ops {
    uint32_t version, struct_size;
    dt_status (*create)(const char *path, dt_hdf5 **out_p);
    /* chunk_rows: rows of a chunk, at least 1; gzip 0 to 9, 0: plain. */
    dt_status (*make)(dt_hdf5 *f, const char *name, uint32_t dtype, int64_t width, int64_t rows, int64_t chunk_rows,
                      int gzip);
    dt_status (*write)(dt_hdf5 *f, const char *name, uint32_t dtype, int64_t width, int64_t from, int64_t n,
                       const void *data);
    dt_status (*put_texts)(dt_hdf5 *f, const char *name, const char *const *text, int64_t n);
    dt_status (*put_number)(dt_hdf5 *f, const char *name, double x);
    dt_status (*open)(const char *path, dt_hdf5 **out_p);
    int (*has)(dt_hdf5 *f, const char *name); /* is there anything of this name? */
    dt_status (*find)(dt_hdf5 *f, const char *name, uint32_t dtype, int64_t width, int64_t *rows_p);
    dt_status (*read)(dt_hdf5 *f, const char *name, uint32_t dtype, int64_t width, int64_t from, int64_t n, void *out);
    dt_status (*find_texts)(dt_hdf5 *f, const char *name, int64_t *n_p);
    dt_status (*read_text)(dt_hdf5 *f, const char *name, int64_t i, char out[DT_HDF5_TEXT_BYTES]);
    dt_status (*number)(dt_hdf5 *f, const char *name, double *out_p);
    dt_status (*close)(dt_hdf5 *f); /* of one that is written: all of it is in the file; frees in any case */
} dt_hdf5_ops;

typedef const dt_hdf5_ops *dt_hdf5_module_fn(const dt_hdf5_host *host);

/* Of the host: finds and opens the module. DT_EUNSUPPORTED: there is none, or not of this build. */
dt_status dt_hdf5_open_module(const dt_hdf5_ops **out_p) DT_NODISCARD;

#endif
