/* SPDX-License-Identifier: Apache-2.0
 *
 * What the host and a worker process say to each other: calls over a control page and two records in memory that both
 * share, with futexes to wake each other, and messages over a socket for what has no fixed size. The worker runs code
 * of others, so the host believes nothing of it: whatever it reads there is copied first and checked then, it counts
 * calls itself, and it waits for nothing without an end. Threads: one at a time.
 */
#ifndef DTRAIN_CORE_RL_ENV_PROCESS_WIRE_H
#define DTRAIN_CORE_RL_ENV_PROCESS_WIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DT_WIRE_SOCKET = 3, DT_WIRE_MEMORY = 4 }; /* files of a worker */
enum { DT_WIRE_CONTROL_BYTES = 8192 };           /* before the records: two, used in turns */
enum { DT_WIRE_ERROR_BYTES = 4096 };
enum { DT_CALL_RESET = 1, DT_CALL_STEP, DT_CALL_END, DT_CALL_ASK };

typedef struct dt_wire_control {
    atomic_uint asked, answered; /* number of the last call, from 1 */
    uint32_t call, record;       /* which of the two records */
    uint64_t seed, episode;      /* of a reset */
    int32_t status;
    char error[DT_WIRE_ERROR_BYTES];
} dt_wire_control;

/* Until *word is no longer old, or slice_s is over. */
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

typedef struct dt_wire_patience { /* of one who does not wait for ever */
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
