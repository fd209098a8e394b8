/* SPDX-License-Identifier: Apache-2.0
 *
 * A collective of virtual ranks, once all have come: do their calls match, and the moving of their bytes. For the
 * communicators whose ranks are in one process. Threads: any, one at a time for a meeting.
 */
#ifndef DTRAIN_CORE_COMM_MEETING_H
#define DTRAIN_CORE_COMM_MEETING_H

#include "comm/comm_impl.h"

typedef struct dt_meeting {
    uint64_t sequence;               /* for messages */
    uint32_t size;                   /* ranks */
    const dt_comm_call *const *call; /* [size] */
} dt_meeting;

enum { DT_MEETING_TEXT = 256 };
/* False, and why names two of them, where calls differ. */
bool dt_meeting_matches(const dt_meeting *m, char why[DT_MEETING_TEXT]);
/* Every rank's buffers get what they are to get; sums are taken in rank order. */
void dt_meeting_move(const dt_meeting *m);

#endif
