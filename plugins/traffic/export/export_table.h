/* SPDX-License-Identifier: Apache-2.0
 *
 * From a store to one table, csv with the roles of import.h as column names: scene site frame time id x y heading speed
 * accel length width stop_distance controlled frame_rate_hz. What a table can hold is in it; imported again with the
 * store's radius and neighbours it gives the same rows and features (within a frame in the order of vehicles). Numbers
 * read back equal; an empty cell is a missing width.
 * Streams: memory is one buffer. Threads: one call, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_EXPORT_TABLE_H
#define DTRAIN_PLUGINS_TRAFFIC_EXPORT_TABLE_H

#include "base/str.h"

/* Written to a temporary file (staging.h), flushed, renamed. notes: a line for people. Errors: DT_EINVAL, DT_ENOTFOUND,
 * DT_EDATA (the store), DT_EIO, DT_ENOMEM. */
dt_status dt_data_export(const char *store, const char *file, dt_str *notes) DT_NODISCARD;

#endif
