/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "dtrain.dataset/1" of a data source with the option "store": identifies the data at a path without opening
 * it for training. Threads: [main].
 */
#ifndef DTRAIN_EXT_DATASET_H
#define DTRAIN_EXT_DATASET_H

#include "dtrain/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_EXT_DATASET "dtrain.dataset/1"

typedef struct dt_dataset_ext {
    uint32_t struct_size, reserved;
    /* The digest of svc/datasets.h. DT_ENOTFOUND, DT_EDATA. */
    dt_status (*digest)(const dt_host *h, const char *path, uint64_t *digest_p);
} dt_dataset_ext;

#ifdef __cplusplus
}
#endif
#endif
