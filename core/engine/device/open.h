/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening a device module and choosing a device. The module of "cuda" is backend_cuda.so: searched in the folders of
 * DTRAIN_PLUGIN_PATH, below the program in a build tree, and with the installed plugins. Modules are never unloaded.
 * Threads: [main].
 */
#ifndef DTRAIN_CORE_ENGINE_DEVICE_OPEN_H
#define DTRAIN_CORE_ENGINE_DEVICE_OPEN_H

#include "base/str.h"
#include "engine/device/device.h"

/* What --device said: auto, cpu, cuda, cuda:1, cuda:GPU-8932f937 (beginning of a UUID). */
typedef struct dt_device_selector {
    enum { DT_DEVICE_AUTO = 0, DT_DEVICE_CPU, DT_DEVICE_CUDA } kind;
    int32_t index; /* -1: by local rank */
    char uuid[48]; /* "": by index */
} dt_device_selector;

/* Errors: DT_ECONFIG. */
dt_status dt_device_selector_parse(const char *text, dt_device_selector *out_p) DT_NODISCARD;

/* Errors: DT_EUNSUPPORTED when the module is not installed, cannot be loaded (a library it needs is missing) or belongs
 * to another build; with a remedy. */
dt_status dt_device_module_open(const char *name, const dt_device_ops **out_p) DT_NODISCARD;
bool dt_device_module_exists(const char *name); /* it may be refused all the same */

/* Which of the visible devices this process takes: the one named; else local_rank modulo their number. Errors:
 * DT_EUNSUPPORTED (none there, no such index or UUID: lists what there is). */
dt_status dt_device_select(const dt_device_ops *ops, const dt_device_selector *w, uint32_t local_rank,
                           uint32_t *index_p) DT_NODISCARD;

/* Is there a driver's device file (also below WSL)? Cheap, so that machines without a GPU load nothing. */
bool dt_device_driver_exists(void);
/* Rank of this process among those on its machine, as launchers report it; 0 without one. */
uint32_t dt_device_local_rank(void);

/* "NVIDIA H200, 139.8 GiB, sm_90, GPU-8932f937-..." appended to out. */
void dt_device_info_text(const dt_device_info *i, dt_str *out);

#endif
