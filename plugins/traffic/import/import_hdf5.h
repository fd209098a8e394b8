/* SPDX-License-Identifier: Apache-2.0
 *
 * An HDF5 file as export_hdf5.h describes it, into a store: what was recorded is taken (scene_frame, scene_site,
 * frame_row, frame_time, pose, motion, row_track, track_id, stop_distance, controlled, scene and site, and the roads);
 * the rest is computed again. Threads: one at a time.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_IMPORT_HDF5_H
#define DTRAIN_PLUGINS_TRAFFIC_IMPORT_HDF5_H

#include "traffic/import/import.h"

/* Does the file begin as one of HDF5 does? false also where it cannot be read. */
bool dt_hdf5_is_file(const char *file);
/* DT_EDATA, DT_ECONFIG (options that ask for what the file does not have), DT_EUNSUPPORTED (no module), and as
 * dt_data_import. */
dt_status dt_hdf5_import(const char *file, const char *out, const dt_import_options *opt, dt_str *notes) DT_NODISCARD;

#endif
