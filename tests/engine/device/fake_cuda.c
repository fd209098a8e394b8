/* SPDX-License-Identifier: Apache-2.0
 *
 * The device of host memory (host_device.h) as a module under CUDA's name, so that whole runs take the device path on a
 * machine without a GPU: put its folder on DTRAIN_PLUGIN_PATH and say --device cuda.
 */
#include <config.h>

#include "engine/device/host_device.h"

const dt_device_ops *dt_device_module(const dt_device_host *host);

DT_EXPORT const dt_device_ops *dt_device_module(const dt_device_host *host)
{
    return host_device_ops();
}
