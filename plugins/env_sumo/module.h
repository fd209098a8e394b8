/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens env_sumo_shim.so, which alone is linked with SUMO. Looked for in the folder sumo next to the calling code, in
 * a build folder, then where dtrain's modules are installed. It stays open: SUMO's tables live as long as the process.
 * Threads: [worker].
 */
#ifndef DTRAIN_ENV_SUMO_MODULE_H
#define DTRAIN_ENV_SUMO_MODULE_H

#include "dtrain/plugin.h"
#include "sumo.h"

/* path: another file to open, "" for the usual one. DT_EUNSUPPORTED: it is not there (built without SUMO), SUMO's
 * library is missing, or it was built with another dtrain; the text names the package to install. */
dt_status module_open(const dt_host *h, const char *path, const sumo_api **out);

#endif
