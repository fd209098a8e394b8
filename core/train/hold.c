/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's arenas fetched up to date with the device's; see trainer.h.
 */
#include <config.h>

#include "train/device/device.h"
#include "train/trainer_internal.h"

dt_status dt_trainer_synchronize(dt_trainer *t)
{
    return t->device != NULL ? dt_train_device_download(t) : DT_OK;
}
