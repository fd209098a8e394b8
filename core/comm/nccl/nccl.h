/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL between the GPUs of ranks: what a communicator of processes carries for small things, NCCL carries for gradients
 * and parameters, from device to device. libnccl.so.2 is opened when a run wants it; no header of it is needed. Calls
 * queue work into a stream of the device and return; nothing here waits for a device. Communicators do not block
 * (ncclConfig_t.blocking = 0), so that a peer that is gone can be noticed and the library be given up at any moment.
 *
 * NCCL moves data, and where sums are fast it adds in an order of its own; sums with the same bits on any number of
 * ranks are their caller's (engine/device/device.h: add). Its environment variables are left to whoever sets them.
 * Threads: the one that uses the communicator of processes.
 */
#ifndef DTRAIN_CORE_COMM_NCCL_NCCL_H
#define DTRAIN_CORE_COMM_NCCL_NCCL_H

#include "comm/comm.h"

typedef struct dt_nccl dt_nccl;

/* Is there a libnccl.so.2 with all that is wanted of it? Errors: DT_EUNSUPPORTED, with what the system says and what to
 * do. version_p: 22107 is 2.21.7. */
dt_status dt_nccl_query_version(uint32_t *version_p) DT_NODISCARD;

/* [collective] The ranks of c meet in NCCL, each on the device that is current in this thread. c outlives it, and is
 * what notices that others leave or do not come. Errors: DT_EUNSUPPORTED (a rank has no library), DT_ECOMM (NCCL's
 * words), those of c. All ranks get the same. */
dt_status dt_nccl_create(dt_comm *c, dt_nccl **out_p) DT_NODISCARD;
void dt_nccl_destroy(dt_nccl *n); /* NULL is fine; what failed, or is under way, is aborted */
uint32_t dt_nccl_version(const dt_nccl *n);
/* A buffer that is sent from and received into for long: NCCL may move it without copies. Nothing where the version
 * cannot; ends with n. */
dt_status dt_nccl_register(dt_nccl *n, void *device, size_t bytes) DT_NODISCARD;

/* stream: the device's own handle (dt_device_stream). Lists are read before the call returns. */

/* As dt_comm_all_to_all, but for pieces of this rank itself, which are left alone. There are k lists, one behind
 * the other, of one entry a rank, which travel together. Pieces are floats. */
dt_status dt_nccl_all_to_all(dt_nccl *n, const dt_comm_out *out, const dt_comm_in *in, uint32_t k, void *stream)
    DT_NODISCARD;
/* at [size + 1]: rank r has the elements [at[r], at[r + 1]) of vector. Sum: its part of the sum of all ranks' lands in
 * them, in place, and the rest is undefined. Share: its part goes to all. */
dt_status dt_nccl_reduce_scatter(dt_nccl *n, float *vector, const int64_t *at, void *stream) DT_NODISCARD;
dt_status dt_nccl_all_gather(dt_nccl *n, float *vector, const int64_t *at, void *stream) DT_NODISCARD;

/* While this rank waits for what was begun: is all well? n is aborted when it is not, so that the stream's work ends.
 * since_s: when the wait began. Errors: DT_ECOMM (NCCL's words; nobody came in time), DT_EPEER. */
dt_status dt_nccl_poll(dt_nccl *n, double since_s) DT_NODISCARD;

#endif
