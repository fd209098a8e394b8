/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the module that is linked with libhdf5. See hdf5_file.h.
 */
#include <config.h>

#include "traffic/hdf5/hdf5_file.h"
#include "base/err.h"
#include "base/module.h"

dt_status dt_hdf5_open_module(const dt_hdf5_ops **out_p)
{
    static const dt_hdf5_host host = {.struct_size = sizeof(host), .fail = dt_fail};
    const dt_module_desc d = {
        .file = "data_hdf5.so",
        .build = "plugins/traffic/hdf5",
        .entry = DT_HDF5_ENTRY,
        .what = "HDF5",
        .if_none = "build it with libhdf5 installed (Debian: apt-get install libhdf5-dev, then "
                   "configure again), or use a table (csv)",
        .if_wrong = "install the libhdf5 that it was built with, or build dtrain with the one installed here"};
    dt_hdf5_module_fn *entry = NULL;
    DT_TRY(dt_module_open(&d, (void **)(void *)&entry));
    const dt_hdf5_ops *ops = entry(&host);
    if (ops == NULL || ops->version != DT_HDF5_VERSION || ops->struct_size != sizeof(*ops)) {
        return DT_FAIL(DT_EUNSUPPORTED, "%s belongs to another build of dtrain, or libhdf5 does not start", d.file);
    }
    *out_p = ops;
    return DT_OK;
}
