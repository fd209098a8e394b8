/* SPDX-License-Identifier: Apache-2.0
 *
 * What the host and a worker process exchange: calls in a ring and records in memory that both share, and messages over
 * a socket for what has no fixed size. Calls are numbered from 1 and answered in order; a batch of them needs no system
 * call while both sides are awake. A side that waits spins briefly and then sleeps on a futex; the other side wakes it
 * only then. The worker runs third-party code, so the host believes nothing of it: whatever it reads there is copied
 * first and checked then, it counts calls itself, and it waits for nothing without an end. Threads: one at a time.
 */
#ifndef DTRAIN_CORE_RL_ENV_PROCESS_WIRE_H
#define DTRAIN_CORE_RL_ENV_PROCESS_WIRE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DT_WIRE_SOCKET = 3, DT_WIRE_MEMORY = 4 }; /* files of a worker */
enum { DT_WIRE_ERROR_BYTES = 4096, DT_WIRE_LINE = 64 };
enum { DT_CALL_RESET = 1, DT_CALL_STEP, DT_CALL_END, DT_CALL_QUERY, DT_CALL_CREATE };

typedef struct dt_wire_call {
    uint32_t call, place;   /* of the instance in the worker */
    uint64_t seed, episode; /* of a reset; seed of a query: what is asked */
} dt_wire_call;

typedef struct dt_wire_control {                /* numbers of calls; each side writes cache lines of its own */
    alignas(DT_WIRE_LINE) atomic_uint asked;    /* by the host: the last call */
    atomic_uint host_sleeps, host_target;       /* the host sleeps until answered reaches its target */
    alignas(DT_WIRE_LINE) atomic_uint answered; /* by the worker: the last call answered, some calls late */
    atomic_uint worker_sleeps;
    alignas(DT_WIRE_LINE) atomic_uint begun; /* by the worker: the call under way */
} dt_wire_control;

/* Where everything is in the shared memory: control page, ring of calls, statuses, error texts, records. */
typedef struct dt_wire_map {
    uint32_t places, mask; /* of call numbers in the ring */
    size_t ring, status, error, record, record_bytes, bytes;
} dt_wire_map;
/* false: more bytes than can be counted. */
bool dt_wire_map_init(dt_wire_map *m, uint32_t places, size_t record_bytes);

static inline dt_wire_call *dt_wire_ring(const dt_wire_map *m, char *map, uint32_t number)
{
    return (dt_wire_call *)(void *)(map + m->ring) + (number & m->mask);
}
static inline volatile int32_t *dt_wire_status(const dt_wire_map *m, char *map, uint32_t place)
{
    return (volatile int32_t *)(void *)(map + m->status) + place;
}
static inline char *dt_wire_error(const dt_wire_map *m, char *map, uint32_t place)
{
    return map + m->error + (size_t)place * DT_WIRE_ERROR_BYTES;
}
static inline char *dt_wire_record(const dt_wire_map *m, char *map, uint32_t place)
{
    return map + m->record + place * m->record_bytes;
}

/* How long a waiting side spins: longer after a success, next to nothing where the other side has no core. */
typedef struct dt_wire_spin {
    uint32_t most;
} dt_wire_spin;
/* Until *word is no longer old; false: it still is. */
bool dt_wire_spin_while(dt_wire_spin *s, atomic_uint *word, unsigned old);
/* Until *word is no longer old, slice_s is over, or the other side wakes us. */
void dt_wire_sleep(atomic_uint *word, unsigned old, double slice_s);
void dt_wire_wake(atomic_uint *word);

typedef enum dt_wire_result {
    DT_WIRE_OK = 0,
    DT_WIRE_GONE,     /* the other side closed the socket */
    DT_WIRE_NONSENSE, /* a message larger than any */
    DT_WIRE_LATE,
    DT_WIRE_STOPPED,
    DT_WIRE_NO_MEMORY
} dt_wire_result;

typedef struct dt_wire_patience { /* of a caller that does not wait for ever */
    double deadline;              /* dt_clock_s */
    void *user;
    bool (*goes_on)(void *user); /* asked a few times a second; false: DT_WIRE_STOPPED */
} dt_wire_patience;

/* patience NULL: for ever, or until the other side is gone. */
dt_wire_result dt_wire_send(int fd, const void *p, size_t bytes, const dt_wire_patience *patience);
dt_wire_result dt_wire_receive(int fd, void *p, size_t bytes, const dt_wire_patience *patience);
dt_wire_result dt_wire_send_message(int fd, const void *p, uint64_t bytes, const dt_wire_patience *patience);
/* *p_p: bytes of the caller's followed by a zero, to dt_free. One of more than 16 MB is nonsense. */
dt_wire_result dt_wire_receive_message(int fd, char **p_p, uint64_t *bytes_p, const dt_wire_patience *patience);

#endif
