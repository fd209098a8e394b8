/* SPDX-License-Identifier: Apache-2.0
 *
 * A store as one HDF5 file, for other programs. The file has the arrays of store.h by their names, with
 * features as they are kept; "stop_distance" and "controlled" [rows]; "scene", "site" (texts); the attributes format
 * (1) and frame_rate_hz; "node_error" [9] and "edge_error" [4] f64, by how much features are off at most, zeros where
 * they are exact; roads as in hdf5_roads.h. import_hdf5.h reads it.
 * libhdf5 is opened as a module (hdf5_file.h). Threads: one at a time.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_EXPORT_HDF5_H
#define DTRAIN_PLUGINS_TRAFFIC_EXPORT_HDF5_H

#include "base/str.h"
#include "dtrain/status.h"

typedef struct dt_hdf5_options {
    int gzip;           /* 0 to 9; 0: not packed */
    int64_t chunk_rows; /* of a chunk; 0: as many as DT_HDF5_SAMPLE_S seconds have, of vehicles and of edges */
} dt_hdf5_options;
#define DT_HDF5_SAMPLE_S 3.0 /* what a model sees of the past */

/* Written to a staging file (staging.h), flushed, renamed; file must not exist. notes: what it cost. DT_EINVAL,
 * DT_EUNSUPPORTED (no module), DT_ENOTFOUND, DT_EDATA, DT_EIO. */
dt_status dt_hdf5_export(const char *store, const char *file, const dt_hdf5_options *opt, dt_str *notes) DT_NODISCARD;

#endif
