/* SPDX-License-Identifier: Apache-2.0
 *
 * A file read from begin to end, plain, gzip (RFC 1952) or xz, distinguished by its first bytes and not by its name.
 * Concatenated members are read as one. A stream that ends early is refused, never taken for the end of the data, and
 * so is a small one that unpacks to a huge one (dt_is_bomb).
 * Threads: one object, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_SOURCE_H
#define DTRAIN_PLUGINS_TRAFFIC_SOURCE_H

#include "dtrain/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dt_source dt_source;

dt_status dt_source_open(const char *path, dt_source **out_p) DT_NODISCARD; /* DT_ENOTFOUND, DT_EIO, DT_EDATA: empty */
/* The same of a file in memory, and stays there until close; name: what messages call it. */
dt_status dt_source_open_mem(const void *bytes, size_t n_bytes, const char *name, dt_source **out_p) DT_NODISCARD;
int64_t dt_source_read(void *source, char *buf,
                       size_t bytes); /* as dt_json_read: 0 at the end, -1 after DT_FAIL (dt_error_status) */
uint64_t dt_source_bytes_read(const dt_source *s); /* bytes of the file read so far, as it is packed */
dt_status dt_source_size(const char *path, uint64_t *bytes_p) DT_NODISCARD; /* of the whole; DT_ENOTFOUND, DT_EIO */
void dt_source_close(dt_source *s);

#endif
