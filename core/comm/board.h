/* SPDX-License-Identifier: Apache-2.0
 *
 * What the processes of a job on one machine share with each other and for their launcher: which ranks are there, the
 * last 4096 collectives of each, how each left, and where the run is. Shared memory without a name (memfd), found as an
 * open file of the process that made it: it lives as long as a process has it mapped, and nothing remains, however all
 * end. A rank writes its own slot alone; all ranks read. Threads: a slot has one writer.
 */
#ifndef DTRAIN_CORE_COMM_BOARD_H
#define DTRAIN_CORE_COMM_BOARD_H

#include "dtrain/status.h"
#include <stdbool.h>

typedef struct dt_board dt_board;

#define DT_BOARD_ENV "DTRAIN_LAUNCH_BOARD" /* the launcher's, for the processes that it starts */
enum { DT_BOARD_CALLS = 4096, DT_BOARD_PATH_BYTES = 64, DT_BOARD_OP_BYTES = 16 };

typedef struct dt_board_call {
    uint64_t number, bytes; /* of the collective, from 1 on; bytes 0: it has none */
    double begin_s, end_s;  /* dt_clock_s; end_s 0: it has not ended */
    char op[DT_BOARD_OP_BYTES];
    uint32_t root; /* UINT32_MAX: none */
} dt_board_call;

typedef enum dt_board_state { DT_BOARD_NEVER, DT_BOARD_HERE, DT_BOARD_GONE, DT_BOARD_LEFT } dt_board_state;

typedef struct dt_board_rank {
    dt_board_state state; /* gone: its process ended without leaving */
    int process, code;    /* code: that it left with */
    bool is_stopped;      /* its process is held by a signal (SIGSTOP) */
    bool has_called;
    dt_board_call last; /* where it has called any */
} dt_board_rank;

/* For n ranks. Errors: DT_EUNSUPPORTED (the system gives no shared memory), DT_ENOMEM. */
dt_status dt_board_create(uint32_t n, dt_board **out_p) DT_NODISCARD;
/* One that another process of this machine made, by its path. Errors: DT_ENOTFOUND (it is none of this machine, or is
 * over), DT_ENOMEM. */
dt_status dt_board_open(const char *path, dt_board **out_p) DT_NODISCARD;
void dt_board_close(dt_board *b);             /* NULL is fine */
const char *dt_board_path(const dt_board *b); /* fewer than DT_BOARD_PATH_BYTES, NUL included */
void dt_board_clear(dt_board *b);             /* of all ranks, the run and a resize: another life of the job begins */

/* ---- a rank of its own slot; b may be NULL, a rank beyond those of the board is ignored ---- */
void dt_board_mark_joined(dt_board *b, uint32_t rank);
void dt_board_call_begin(dt_board *b, uint32_t rank,
                         const dt_board_call *call); /* number (one more each), bytes, op, root */
void dt_board_call_end(dt_board *b, uint32_t rank, uint64_t number);
void dt_board_mark_left(dt_board *b, uint32_t rank, int code);
void dt_board_run_dir_set(dt_board *b, const char *run_dir); /* rank 0 */

/* ---- another number of processes: the launcher requests it, rank 0 stops all at a checkpoint ---- */
void dt_board_resize_set(dt_board *b, bool is_requested);
bool dt_board_resize_is_requested(const dt_board *b); /* b may be NULL, here and below */
void dt_board_mark_resized(dt_board *b);              /* rank 0: all ranks stop for it, and their state is saved */
bool dt_board_was_resized(const dt_board *b);

/* ---- of the whole job, whatever lives it has ---- */
double dt_board_age_s(const dt_board *b); /* since it was made; NULL: 0 */
void dt_board_mark_advanced(dt_board *b); /* a step, or an evaluation that was pending, is complete */
bool dt_board_has_advanced(const dt_board *b);
void dt_board_mark_saved(dt_board *b); /* rank 0: a checkpoint is saved */
bool dt_board_has_saved(const dt_board *b);
/* A rank: how many ranks have work now; the launcher starts no more of MIN:MAX. 0: any number. */
void dt_board_limit_ranks(dt_board *b, uint32_t most);
uint32_t dt_board_max_ranks(const dt_board *b);

/* ---- for all ranks ---- */
void dt_board_read_rank(const dt_board *b, uint32_t rank, dt_board_rank *out);
/* The newest calls of a rank, oldest first; how many there are, at most `most`. */
uint32_t dt_board_list_calls(const dt_board *b, uint32_t rank, uint32_t most, dt_board_call *out);
const char *dt_board_run_dir(const dt_board *b); /* "" while it is not known */
/* Ends (SIGKILL) what is left of the ranks' processes; how many there were. */
uint32_t dt_board_kill_processes(const dt_board *b);
/* "all_gather of 512 bytes", "broadcast of 8 bytes from rank 0" */
void dt_board_describe_call(const dt_board_call *call, char *out, size_t bytes);

#endif
