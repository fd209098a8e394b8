/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a job was lost: which rank was the first to be gone or to stay away, what its log said last, and where every
 * other rank was at that moment. Threads: [main].
 */
#ifndef DTRAIN_CORE_COMM_LAUNCH_CAUSE_H
#define DTRAIN_CORE_COMM_LAUNCH_CAUSE_H

#include "comm/board.h"

typedef struct dt_cause {
    uint32_t n;
    bool is_known;
    bool is_open;       /* a rank is gone, but another one may have been gone before it: mpirun's word decides */
    uint32_t rank;      /* the first that was gone or stayed away */
    char node[64];      /* instead of a rank: a machine that is gone; "": none */
    double seen_s;      /* when that was noticed, dt_clock_s */
    dt_board_rank *was; /* [n] at that moment */
} dt_cause;

dt_status dt_cause_init(uint32_t n, dt_cause *out) DT_NODISCARD;
void dt_cause_fini(dt_cause *c);
void dt_cause_clear(dt_cause *c);
/* Looks for the first trouble, and logs at once which rank is gone, where that is certain; then nothing more is looked
 * for. mpirun ends the others of a rank that was lost: of several that are gone the board does not show which was
 * first, and one that was lost before it joined the board is not seen at all. */
void dt_cause_update(dt_cause *c, const dt_board *b);
/* The job has ended: of several ranks that may have been the first, it is the one that mpirun named (-1: none),
 * or else one that never joined the others, if that is one alone and the board is of all ranks. */
void dt_cause_decide(dt_cause *c, int heard, bool has_all);
/* mpirun has lost the connection to a machine: logs it, unless a rank was known to be gone before. */
void dt_cause_set_lost_machine(dt_cause *c, const dt_board *b, const char *node);
/* Of the first rank: what its log said last, and where the others were. run: "" where it is not known. */
void dt_cause_log(const dt_cause *c, const char *run);

#endif
