/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients and parameters from device to device, by a transport (comm/transport.h: NCCL) instead of the way through
 * the hosts (ranks.c), and with its bits. Of each bucket a rank sends the others their slices of its nodes, gets its
 * slice of all nodes, and adds them on its device in the order of the fixed tree (comm/tree_sum.h); where sums are fast
 * it adds its own nodes up and the library sums those of all ranks. Everything is queued into a stream of its own, a
 * bucket after the sums of its own shards, while backward continues with others; the host polls it meanwhile.
 * Threads: [main][collective].
 */
#ifndef DTRAIN_CORE_TRAIN_DEVICE_WIRES_H
#define DTRAIN_CORE_TRAIN_DEVICE_WIRES_H

#include "train/device/internal.h"

typedef struct dt_device_link dt_device_link;

/* Where the configuration requests NCCL (dt_trainer_config.nccl) and all ranks have it; NULL: by the hosts. Errors:
 * DT_EUNSUPPORTED (a rank has none and it has to be), DT_ECONFIG (other versions), those of NCCL. */
dt_status dt_device_link_create(dt_trainer *t, dt_device_link **out_p) DT_NODISCARD;
void dt_device_link_destroy(dt_trainer *t, dt_device_link *w); /* NULL is fine */
/* A bucket's nodes are complete when the device has done what it was asked for by now. May be captured. */
dt_status dt_device_link_mark_ready(const dt_trainer *t, const dt_device_link *w, uint32_t bucket) DT_NODISCARD;
/* The sums of the buckets of these groups (bits), each after it is ready; what follows where the device computes
 * waits for them. The slices of this rank lie in the first slot of gradients then. */
dt_status dt_device_link_sum_buckets(dt_trainer *t, dt_device_link *w, uint32_t groups) DT_NODISCARD;
/* The parameters of this rank's slices of them to all, likewise. */
dt_status dt_device_link_share_params(dt_trainer *t, dt_device_link *w, uint32_t groups) DT_NODISCARD;
/* Until the device has done all that was queued: instead of waiting for its stream, which may never complete. */
dt_status dt_device_link_wait(dt_trainer *t, dt_device_link *w) DT_NODISCARD;

#endif
