/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.datasets/1": what a data source (or a service that it opens files through) tells the host of the
 * recordings that it has open. The host records in checkpoints what was trained on, warns when a run goes on with other
 * recordings, counts them in the memory plan, and streams need it. Threads: [main], of one phase in a row.
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
    const char *path; /* as it was opened; lives until closed, as self does */
    uint64_t digest;  /* of what was recorded: equal wherever the files lie and whatever options derived features */
    uint64_t mark;    /* the same of all that it says of itself as well, such as statistics */
    uint64_t bytes;   /* mapped or held while it is open */
    void *self;
    void (*scatter)(void *self); /* training is about to read here and there; NULL: nothing to prepare */
    void (*forget)(void *self);  /* pages read so far may go back to the page cache; NULL */
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
