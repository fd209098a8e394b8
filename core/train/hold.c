/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's arenas brought up to date with the device's; see trainer.h.
 */
#include <config.h>

#include "train/device/device.h"
#include "train/trainer_internal.h"

dt_status dt_trainer_hold(dt_trainer *t)
{
    return t->device != NULL ? dt_train_device_pull(t) : DT_OK;
}
