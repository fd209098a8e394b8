/* SPDX-License-Identifier: Apache-2.0
 *
 * What a communicator implements. comm.c holds what is the same for all: checks of arguments, and agreement.
 * Not for callers: they include comm.h.
 */
#ifndef DTRAIN_CORE_COLLECTIVE_COMM_IMPL_H
#define DTRAIN_CORE_COLLECTIVE_COMM_IMPL_H

#include "collective/comm.h"

typedef struct dt_comm_ops {
    const char *name;
    dt_status (*all_gather)(dt_comm *c, const void *mine, size_t bytes, void *all);
    dt_status (*exchange)(dt_comm *c, uint32_t peer, const void *mine, void *theirs, size_t bytes);
    dt_status (*broadcast)(dt_comm *c, uint32_t root, void *data, size_t bytes);
    dt_status (*barrier)(dt_comm *c);
    void (*abandon)(dt_comm *c, const char *why);
    void (*destroy)(dt_comm *c);
} dt_comm_ops;

struct dt_comm {
    const dt_comm_ops *ops;
    uint32_t rank, size;
    void *agreeing; /* room of dt_comm_agree: one message a rank, so that agreeing allocates nothing */
};

/* Set the common part and allocate what agreement needs. DT_ENOMEM. */
dt_status dt_comm_init(dt_comm *c, const dt_comm_ops *ops, uint32_t rank, uint32_t size) DT_NODISCARD;
void dt_comm_fini(dt_comm *c);

#endif
