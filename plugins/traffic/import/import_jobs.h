/* SPDX-License-Identifier: Apache-2.0
 *
 * An import in parts, several of them at once. Files are gathered, in their order, to parts of at least so many bytes;
 * how depends on the files and on that number alone. Each part (import_part.h) is made by one thread, as a store of its
 * files, in the folder OUT.parts; in the order of the files they are joined to the store (dt_store_append), which is
 * the same, byte for byte, for any number of threads, and the same that one part of all files would be.
 *
 * What ends an import (a signal, a full disk, a wrong value, kill -9) leaves finished parts in that folder. The next
 * import to the same place continues with those whose key and digest fit, and removes the others; a finished one
 * removes them all. While a process writes parts it holds OUT.parts/lock, and OUT itself (staging.h).
 *
 * Memory: of each job as of an import alone, with its share of the sort buffer. Of two files that are wrong the first
 * one in their order is reported, however many jobs there are. Threads: one import, one thread, which starts the
 * others.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_IMPORT_JOBS_H
#define DTRAIN_PLUGINS_TRAFFIC_IMPORT_JOBS_H

#include "traffic/import/import.h"

typedef struct dt_import_group { /* of files */
    uint32_t first, n;
    uint64_t bytes;
} dt_import_group;

typedef struct dt_import_plan {
    dt_import_group *group; /* [n] */
    uint32_t n;
    uint64_t bytes; /* of all files */
} dt_import_plan;

/* opt: its part_bytes. DT_ENOTFOUND, DT_EIO, DT_ENOMEM. */
dt_status dt_import_plan_make(const char *const *src, uint32_t n_src, const dt_import_options *opt,
                              dt_import_plan *out_p) DT_NODISCARD;
void dt_import_plan_fini(dt_import_plan *p);

/* As dt_data_import, of files. */
dt_status dt_import_jobs(const dt_import_plan *plan, const char *const *src, const char *out,
                         const dt_import_options *opt, dt_str *notes) DT_NODISCARD;

#endif
