/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicator: one face over null (one rank), sim (R virtual ranks, one thread each, in this process), and later mpi
 * and nccl. Only data moves here; arithmetic on gradients is the tree's (tree.h), so that results never depend on a
 * library's order of summation. Every call is collective: all ranks, same order, same byte counts. A rank that fails or
 * leaves wakes the others with DT_EPEER naming it; a call that does not match the others' is DT_ECOMM naming both;
 * nobody waits longer than timeout_s. What has failed once stays failed.
 * Threads: one thread per rank uses its communicator.
 */
#ifndef DTRAIN_CORE_COLLECTIVE_COMM_H
#define DTRAIN_CORE_COLLECTIVE_COMM_H

#include "dtrain/status.h"

typedef struct dt_comm dt_comm;

dt_status dt_comm_null(dt_comm **out_p) DT_NODISCARD;
/* ranks communicators that meet each other; out[ranks]. Destroy each. */
dt_status dt_comm_sim(uint32_t ranks, double timeout_s, dt_comm **out) DT_NODISCARD;
void dt_comm_destroy(dt_comm *c);

uint32_t dt_comm_rank(const dt_comm *c);
uint32_t dt_comm_size(const dt_comm *c);
/* all: [size * bytes], rank order. */
dt_status dt_comm_all_gather(dt_comm *c, const void *mine, size_t bytes, void *all) DT_NODISCARD;
/* Swap bytes with one other rank (both call it with each other's number). */
dt_status dt_comm_exchange(dt_comm *c, uint32_t peer, const void *mine, void *theirs, size_t bytes) DT_NODISCARD;
dt_status dt_comm_broadcast(dt_comm *c, uint32_t root, void *data, size_t bytes) DT_NODISCARD;
dt_status dt_comm_barrier(dt_comm *c) DT_NODISCARD;
/* The worst status of all ranks (the least), on all ranks; a rank that brought a better one gets a record naming the
 * rank that failed. DT_ECOMM or DT_EPEER when agreement itself fails. */
dt_status dt_comm_agree(dt_comm *c, dt_status mine);
/* This rank will make no more calls; others that wait for it get DT_EPEER with why. */
void dt_comm_abandon(dt_comm *c, const char *why);

#endif
