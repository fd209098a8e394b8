/* SPDX-License-Identifier: Apache-2.0
 *
 * What every communicator has to do, rank by rank: the same bodies run on virtual ranks and on processes.
 */
#ifndef DTRAIN_TESTS_COLLECTIVE_CALLS_H
#define DTRAIN_TESTS_COLLECTIVE_CALLS_H

#include "comm/comm.h"

enum { DT_CALLS_MAX_RANKS = 8, DT_CALLS_MISMATCHES = 8 };

/* Every call 200 times, with what arrives checked. */
dt_status dt_calls_all(dt_comm *c, void *user);
/* Every call begun and ended apart: as many as may be under way, ended by each rank in an order of its own. */
dt_status dt_calls_in_flight(dt_comm *c, void *user);
/* Several are under way when rank 1 leaves (user: an int, 0), aborts (1), aborts from another thread while it waits (2)
 * or does nothing until the others' time is up (3): all that is under way has to end, on all ranks. */
dt_status dt_calls_broken(dt_comm *c, void *user);
/* On 3 ranks: rank 2 calls something else in its second collective; user: an int, which of them. */
dt_status dt_calls_mismatch(dt_comm *c, void *user);

#endif
