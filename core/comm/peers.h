/* SPDX-License-Identifier: Apache-2.0
 *
 * The other processes of a job: their identity, what they send besides collectives, and what those of this machine are
 * doing; so that a rank that times out can name the missing ones. Not for callers of communicators: processes.c keeps
 * one. Threads: the communicator's.
 */
#ifndef DTRAIN_CORE_COMM_PEERS_H
#define DTRAIN_CORE_COMM_PEERS_H

#include "comm/board.h"
#include "comm/comm.h"
#include "comm/transport.h"

typedef struct dt_peers dt_peers;

/* board: the launcher's, or NULL; it is owned from here on, at an error too. DT_ENOMEM. */
dt_status dt_peers_create(const dt_transport_ops *t, const dt_transport_info *info, dt_board *board, dt_peers **out_p)
    DT_NODISCARD;
void dt_peers_destroy(dt_peers *p); /* NULL is fine */
/* All ranks exchange where they run; the first rank of a machine without a launcher makes its board. [collective] */
dt_status dt_peers_exchange_hosts(dt_peers *p, dt_comm *c) DT_NODISCARD;
dt_board *dt_peers_board(const dt_peers *p);  /* NULL where the system has no shared memory */
uint32_t dt_peers_n_hosts(const dt_peers *p); /* machines */

/* This rank leaves, and sends the reason, once. */
void dt_peers_announce_exit(dt_peers *p, const char *why);
/* What came meanwhile; ranks that wait answer those that query which are there. DT_EPEER: a rank has left. */
dt_status dt_peers_poll(dt_peers *p) DT_NODISCARD;
/* DT_EPEER: a process of this machine ended without leaving. */
dt_status dt_peers_check_local(const dt_peers *p) DT_NODISCARD;
/* This rank timed out in the collective of this number: finds out, within a second, which ranks are missing, notifies
 * all, and leaves. mine: "rank 0 called barrier". Returns DT_ECOMM; DT_EPEER where a rank has left meanwhile. */
dt_status dt_peers_diagnose_timeout(dt_peers *p, uint64_t number, const char *mine, double waited_s);

#endif
