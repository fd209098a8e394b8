/* SPDX-License-Identifier: Apache-2.0
 *
 * What a communicator implements. comm.c holds what is the same for all: checks of arguments, requests, and agreement.
 * Not for callers: they include comm.h.
 */
#ifndef DTRAIN_CORE_COMM_COMM_IMPL_H
#define DTRAIN_CORE_COMM_COMM_IMPL_H

#include "comm/comm.h"

typedef enum dt_comm_op {
    DT_COMM_ALL_GATHER,
    DT_COMM_ALL_TO_ALL,
    DT_COMM_BROADCAST,
    DT_COMM_BARRIER,
    DT_COMM_REDUCE_SCATTER
} dt_comm_op;

/* What a rank calls. Ranks' calls match where op, bytes and root do, and the pieces' sizes. */
typedef struct dt_comm_call {
    dt_comm_op op;
    uint32_t root;          /* broadcast */
    size_t bytes;           /* all_gather: of a rank; broadcast, sums: of all; else 0 */
    const void *from;       /* all_gather, sums */
    void *to;               /* all_gather, broadcast, sums */
    const dt_comm_out *out; /* all_to_all: [size] */
    const dt_comm_in *in;
    const uint32_t *n; /* reduce_scatter: [size] */
    dt_status status;  /* an agreement's: the failure that the rank brings, else DT_OK */
    const char *why;   /* of that failure */
} dt_comm_call;

typedef struct dt_comm_slot { /* a request */
    uint64_t sequence;        /* which collective of this communicator, from 1; 0: the slot is free */
    double timeout_s;
    double since; /* of the first poll; negative: not polled */
    dt_comm_call call;
} dt_comm_slot;

typedef struct dt_comm_ops {
    const char *name;
    /* c->slot[slot] is filled in. On failure nothing is under way. */
    dt_status (*start)(dt_comm *c, uint32_t slot);
    /* Is it done? Where waits, it returns when it is. */
    dt_status (*poll)(dt_comm *c, uint32_t slot, bool waits, bool *done_p);
    void (*abort)(dt_comm *c, const char *why); /* any thread */
    void (*abandon)(dt_comm *c, const char *why);
    /* NULL: no rank can leave unnoticed */
    dt_status (*watch)(dt_comm *c, const char *what, double since_s);
    void (*destroy)(dt_comm *c);
} dt_comm_ops;

struct dt_comm {
    const dt_comm_ops *ops;
    uint32_t rank, size;
    uint32_t n_local, n_inside; /* ranks on this machine, in this process */
    double timeout_s;
    uint64_t sequence; /* collectives that began */
    uint64_t sent;
    double waited_s;
    bool has_agreed; /* the last call was an agreement that something failed: no rank waits for another */
    void *agreement; /* room of dt_comm_agree: one message a rank, so that agreeing allocates nothing */
    dt_comm_slot slot[DT_COMM_IN_FLIGHT];
};

/* Set the common part, all ranks being in this process, and allocate what agreement needs. DT_ENOMEM. */
dt_status dt_comm_init(dt_comm *c, const dt_comm_ops *ops, uint32_t rank, uint32_t size) DT_NODISCARD;
void dt_comm_fini(dt_comm *c);

enum { DT_COMM_CALL_BYTES = 96 };
const char *dt_comm_op_name(dt_comm_op op);
/* "rank 2 called broadcast of 8 bytes from rank 1" */
void dt_comm_describe_call(uint32_t rank, const dt_comm_call *call, char out[DT_COMM_CALL_BYTES]);

#endif
