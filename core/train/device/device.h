/* SPDX-License-Identifier: Apache-2.0
 *
 * The trainer's steps on a device. The host reads shards and packs them, at capacity, into one of two page-locked
 * buffers; a copy stream brings it over while the device still computes the step before; then everything from seeds to
 * update is one launch of a graph that was captured the second time its shape class came up (engine/device/device.h
 * says why live sizes do not matter to it). Results are read one step late.
 *
 * Shape classes: capacities of a shard, 2^(1/4) apart, chosen by the largest shard of the whole global batch, so that
 * the choice is the same on every rank. Shards that do not fit into the device's memory at once run one group after the
 * other on the same activations. Gradients of shards are summed as backward ends with each parameter, in the fixed
 * tree: what is kept is one arena for all shards at once, and one for each height of the tree where a group is a shard.
 * The sums are the same.
 *
 * Several ranks have a device each. Sums of a rank's shards come to its host, and from there take the way of a CPU's
 * (reduce.c), in the same tree; each rank updates its slices on its device, and all get the parameters of all
 * (ranks.c). The same bits on any number of ranks.
 *
 * State: arenas live on the device. dt_train_device_download brings them to the host's arenas; the next step takes them
 * back in case they were changed. Threads: [main], packing on the workers.
 */
#ifndef DTRAIN_CORE_TRAIN_DEVICE_DEVICE_H
#define DTRAIN_CORE_TRAIN_DEVICE_DEVICE_H

#include "engine/device/device.h"
#include "train/trainer.h"

typedef struct dt_train_device dt_train_device;

/* Waits for what was launched, reads what steps found, and copies parameters and moments to the host's arenas. Errors:
 * also those of a step whose result was not read so far. */
dt_status dt_train_device_download(dt_trainer *t) DT_NODISCARD;
/* What the gradients of shards and their sums move through the device's memory in a step. */
uint64_t dt_train_device_sum_bytes(const dt_trainer *t);

#endif
