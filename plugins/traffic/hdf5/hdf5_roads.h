/* SPDX-License-Identifier: Apache-2.0
 *
 * The roads of a store in an HDF5 file: the arrays of roads by their names in the store, and "map", the names of the
 * maps. A file without "map" has no roads. Threads: one at a time.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_HDF5_ROADS_H
#define DTRAIN_PLUGINS_TRAFFIC_HDF5_ROADS_H

#include "traffic/hdf5/hdf5_file.h"
#include "traffic/store/store.h"
#include "traffic/store/store_arrays.h"

dt_status dt_hdf5_roads_write(const dt_hdf5_ops *ops, dt_hdf5 *f, const dt_store_view *v, int64_t chunk_rows, int gzip)
    DT_NODISCARD; /* DT_EIO */

typedef struct dt_hdf5_roads {
    int64_t n_maps;       /* 0: the file has none */
    int32_t *scene_map;   /* [scenes] of the file; -1: none */
    int32_t *number;      /* [n_maps] in the store that is written */
    void *data[N_ARRAYS]; /* those of roads */
} dt_hdf5_roads;

/* Every map of a file of so many scenes, checked, into a store. path: in messages. DT_EDATA, DT_EIO, DT_ENOMEM. */
dt_status dt_hdf5_roads_read(const dt_hdf5_ops *ops, dt_hdf5 *f, const char *path, int64_t n_scenes,
                             dt_store_writer *to, dt_hdf5_roads *out_p) DT_NODISCARD;
void dt_hdf5_roads_fini(dt_hdf5_roads *r); /* zeros are fine */

#endif
