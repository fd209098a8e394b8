/* SPDX-License-Identifier: Apache-2.0
 *
 * A collective of virtual ranks, once all have come: do their calls match, and the moving of their bytes. For the
 * communicators whose ranks are in one process. Threads: any, one at a time for a meeting.
 */
#ifndef DTRAIN_CORE_COMM_MEETING_H
#define DTRAIN_CORE_COMM_MEETING_H

#include "comm/comm_impl.h"

typedef struct dt_rendezvous {
    uint64_t sequence;               /* for messages */
    uint32_t size;                   /* ranks */
    const dt_comm_call *const *call; /* [size] */
} dt_rendezvous;

enum { DT_RENDEZVOUS_TEXT = 640 };
/* Where calls differ: the failure that a rank brings to an agreement in place of the call of the others; DT_ECOMM, why
 * naming two ranks, where none does. */
dt_status dt_rendezvous_check(const dt_rendezvous *m, char why[DT_RENDEZVOUS_TEXT]);
/* Every rank's buffers get what they are to get; sums are taken in rank order. */
void dt_rendezvous_execute(const dt_rendezvous *m);

#endif
