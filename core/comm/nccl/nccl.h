/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL as a transport between the GPUs of ranks (comm/transport.h): a communicator of processes carries what is small,
 * NCCL gradients and parameters. libnccl.so.2 is opened when a run needs it; no header of it is needed. Communicators
 * do not block (ncclConfig_t.blocking = 0), so that a peer that has gone is noticed and the library can be aborted at
 * any moment. NCCL moves data, and where sums are fast it adds in an order of its own; sums that are bit-identical on
 * any number of ranks are their caller's (engine/device/device.h: add). Its environment variables are left alone.
 */
#ifndef DTRAIN_CORE_COMM_NCCL_NCCL_H
#define DTRAIN_CORE_COMM_NCCL_NCCL_H

#include "comm/transport.h"

extern const dt_device_transport_ops dt_nccl_transport;

#endif
