/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicator: one face over null (one rank), sim (R virtual ranks, one thread each, in this process) and mpi (one
 * process a rank), later nccl. Data moves here, in the same order on all ranks; sums whose result must not depend on a
 * library's order of summation are the tree's (tree.h). Every call is collective: all ranks, same order, same
 * sizes. A rank that fails or leaves wakes others with DT_EPEER naming it; a call that does not match the others' is
 * DT_ECOMM naming both; no rank waits longer than the time limit. What has failed once stays failed.
 *
 * A start_ call begins a collective and returns; wait or test ends it. Up to DT_COMM_IN_FLIGHT may be under way, begun
 * in the same order on all ranks and ended in any, by each rank its own. Buffers, lists of pieces and lists of counts
 * stay where they are and belong to the communicator until then: what goes out may be read, what comes in may not be
 * looked at. The time limit is that of the start, and counts from the first wait or test: before that no rank waits.
 * When the communicator fails, what is under way on this rank ends with that failure, which each request reports when
 * it is next waited for or tested; one that was done by then may report it instead. A library may still write into
 * buffers of requests that ended so: with mpi they have to last until the process ends.
 *
 * Buffers are host memory. What travels between devices does so by NCCL (nccl/nccl.h), next to a communicator that
 * brought its ranks together and watches over them.
 * Threads: one thread per rank uses its communicator, but for abort.
 */
#ifndef DTRAIN_CORE_COMM_COMM_H
#define DTRAIN_CORE_COMM_COMM_H

#include "dtrain/status.h"
#include <stdbool.h>

typedef struct dt_comm dt_comm;

dt_status dt_comm_create_null(dt_comm **out_p) DT_NODISCARD;
/* Rank 0 of so many without the others, to plan what it would take: a call that needs them fails with DT_ECOMM. inside:
 * ranks in this process; local: on this machine. */
dt_status dt_comm_create_planned(uint32_t ranks, uint32_t inside, uint32_t local, dt_comm **out_p) DT_NODISCARD;
/* ranks communicators that meet each other; out[ranks]. Destroy each. */
dt_status dt_comm_create_simulated(uint32_t ranks, double timeout_s, dt_comm **out) DT_NODISCARD;
void dt_comm_destroy(dt_comm *c);

uint32_t dt_comm_rank(const dt_comm *c);
uint32_t dt_comm_size(const dt_comm *c);
uint32_t dt_comm_local_size(const dt_comm *c);   /* ranks on this machine, this one among them */
uint32_t dt_comm_process_size(const dt_comm *c); /* ranks in this process */
enum { DT_COMM_TIMEOUT_S = 120 };                /* where nothing else is said */
void dt_comm_timeout_set(dt_comm *c, double timeout_s);

/* all: [size * bytes], rank order. mine may be its own place in all. */
dt_status dt_comm_all_gather(dt_comm *c, const void *mine, size_t bytes, void *all) DT_NODISCARD;
/* A piece for every rank and one from every rank: out[r] goes to rank r, what comes from rank r lands in in[r], whose
 * size is that of out[mine] there. Pieces of no bytes are not sent; the one for this rank itself is copied. No piece
 * that comes in may overlap one that goes out, except that of this rank itself with equal addresses. */
typedef struct dt_comm_out {
    const void *data;
    size_t bytes;
} dt_comm_out;
typedef struct dt_comm_in {
    void *data;
    size_t bytes;
} dt_comm_in;
dt_status dt_comm_all_to_all(dt_comm *c, const dt_comm_out *out, const dt_comm_in *in) DT_NODISCARD;
dt_status dt_comm_broadcast(dt_comm *c, uint32_t root, void *data, size_t bytes) DT_NODISCARD;
dt_status dt_comm_barrier(dt_comm *c) DT_NODISCARD;

/* ---- the same, begun and ended apart ---- */

enum { DT_COMM_IN_FLIGHT = 64 };
typedef struct dt_comm_request { /* 0: nothing is under way, and wait and test return that it is done */
    uint64_t id;
} dt_comm_request;

/* Errors: as the calls above; DT_EINVAL too many are under way. Nothing is under way then. */
dt_status dt_comm_start_all_gather(dt_comm *c, const void *mine, size_t bytes, void *all, dt_comm_request *out_p)
    DT_NODISCARD;
dt_status dt_comm_start_all_to_all(dt_comm *c, const dt_comm_out *out, const dt_comm_in *in, dt_comm_request *out_p)
    DT_NODISCARD;
dt_status dt_comm_start_broadcast(dt_comm *c, uint32_t root, void *data, size_t bytes, dt_comm_request *out_p)
    DT_NODISCARD;
dt_status dt_comm_start_barrier(dt_comm *c, dt_comm_request *out_p) DT_NODISCARD;
/* The sum of all [n[0] + n[1] + ...], cut: rank r gets its n[r] floats in mine. n is [size], the same on all ranks; at
 * most DT_COMM_MOST_SUMMED floats in all. mine does not overlap all. The order of the sum is the library's (sim and
 * null: rank order), so that bits may depend on the number of ranks, and on the library. */
enum { DT_COMM_MOST_SUMMED = 0x7fffffff };
dt_status dt_comm_start_reduce_scatter(dt_comm *c, const float *all, const uint32_t *n, float *mine,
                                       dt_comm_request *out_p) DT_NODISCARD;
/* Until it is done, or failed: the request is nothing afterwards. DT_EINVAL: not a request of this communicator. */
dt_status dt_comm_wait(dt_comm *c, dt_comm_request *r) DT_NODISCARD;
/* Looks, and lets others make progress; where *done_p or on failure the request is nothing afterwards. */
dt_status dt_comm_test(dt_comm *c, dt_comm_request *r, bool *done_p) DT_NODISCARD;
/* Ends all that is under way, here and on the other ranks, with DT_EPEER and why. From any thread. */
void dt_comm_abort(dt_comm *c, const char *why);

/* While this rank waits for others by another library: has a rank left or died, has the wait since since_s
 * (dt_clock_s) taken longer than the time limit? The reason is kept and reported as when c waits itself. what: "moved
 * data between GPUs". Errors: DT_EPEER, DT_ECOMM, each once and for all. */
dt_status dt_comm_check_peers(dt_comm *c, const char *what, double since_s) DT_NODISCARD;

/* The worst status of all ranks (the least), on all ranks; a rank that brought a better one gets a record naming the
 * rank that failed. DT_ECOMM or DT_EPEER when agreement itself fails. */
dt_status dt_comm_agree(dt_comm *c, dt_status mine);
/* As agree, at the end of a part of the run within which ranks may agree as well (a plugin's callback, the creation of
 * a trainer). A rank that fails within the part comes here before the others have: what it brings ends the agreement
 * that they are in, and it waits here until they have come too; where they are in another call, it ends that, and the
 * communicator, with the same reason. Joins are not nested. DT_ECOMM: nothing failed, and other
 * ranks still agree within the part. */
dt_status dt_comm_join(dt_comm *c, dt_status mine);
/* Bytes that this rank has sent to others so far, as collectives ask for it (a broadcast to R ranks: R - 1 times). */
uint64_t dt_comm_sent_bytes(const dt_comm *c);
/* Seconds that this rank has spent in calls and waits for others so far. */
double dt_comm_waited_s(const dt_comm *c);
/* This rank will make no more calls; others that wait for it get DT_EPEER with why. Not sent where the last call was an
 * agreement that something failed: all know. */
void dt_comm_abandon(dt_comm *c, const char *why);

#endif
