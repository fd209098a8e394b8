/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.datasets/1": registers the data sets that a data source (or a service that it reads files through)
 * has open. The host records them in checkpoints, warns when a run resumes with other data, and counts them in the
 * memory plan; streams require them. Threads: [main].
 */
#ifndef DTRAIN_SVC_DATASETS_H
#define DTRAIN_SVC_DATASETS_H

#include "dtrain/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SVC_DATASETS "dtrain.datasets/1"

typedef struct dt_dataset {
    uint32_t struct_size, reserved;
    const char *path; /* as opened; valid until closed, like self */
    uint64_t digest;  /* of the recorded content: independent of file locations and of options of derived features */
    uint64_t mark;    /* of the content and of all metadata, such as statistics */
    uint64_t bytes;   /* mapped or allocated while it is open */
    void *self;
    void (*prepare_random_reads)(void *self); /* optional: training begins to read at random positions */
    void (*release_pages)(void *self);        /* optional: pages read so far may be released to the page cache */
} dt_dataset;

typedef struct dt_datasets_api {
    uint32_t struct_size, reserved;
    dt_status (*opened)(const dt_host *h, const dt_dataset *d); /* copied; DT_EPLUGIN: too many are open */
    void (*closed)(const dt_host *h, const void *self);
} dt_datasets_api;

#ifdef __cplusplus
}
#endif
#endif
