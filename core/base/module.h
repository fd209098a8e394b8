/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules of the host's own: shared objects that need a library which not every machine has (CUDA, MPI), opened when a
 * run wants them. They are looked for in DTRAIN_PLUGIN_PATH, in the build tree or beside the program, and where dtrain
 * was installed (lib/dtrain/modules). Threads: any.
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

/* The address of the entry; the module stays open. Errors: DT_EUNSUPPORTED with the places that were tried, or with
 * what the system says, and what to do. */
dt_status dt_module_open(const dt_module_desc *d, void **entry_p) DT_NODISCARD;
bool dt_module_is_there(const dt_module_desc *d); /* a file of that name, whether it can be opened or not */

#endif
