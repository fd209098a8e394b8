/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules of the host: shared objects that need an optional library (CUDA, MPI), opened when a run uses them. They are
 * searched in DTRAIN_PLUGIN_PATH, in the build tree, and in the folder modules of the installed plugins. Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_MODULE_H
#define DTRAIN_CORE_BASE_MODULE_H

#include "dtrain/status.h"

#include <stdbool.h>

typedef struct dt_module_desc {
    const char *file;     /* "backend_cuda.so" */
    const char *build;    /* folder of the build tree: "core/engine/backend/cuda" */
    const char *entry;    /* symbol */
    const char *what;     /* "CUDA", as in "this dtrain has no module for CUDA" */
    const char *if_none;  /* what to do where there is no such file */
    const char *if_wrong; /* what to do where it cannot be loaded, as its libraries are not found */
} dt_module_desc;

/* The address of the entry; the module stays open. Errors: DT_EUNSUPPORTED with the searched places or the error of the
 * system, and advice. */
dt_status dt_module_open(const dt_module_desc *d, void **entry_p) DT_NODISCARD;
bool dt_module_exists(const dt_module_desc *d); /* a file of that name, whether it can be opened or not */

#endif
