/* SPDX-License-Identifier: Apache-2.0
 *
 * Was this process itself stopped by a signal (SIGSTOP), while others waited for it? It knows when it
 * continued (SIGCONT, base/signals.h), and when it had looked last before. Not about other ranks: those are board.h's.
 * Threads: an object belongs to one.
 */
#ifndef DTRAIN_CORE_COMM_STOOD_H
#define DTRAIN_CORE_COMM_STOOD_H

#include <stdbool.h>

typedef struct dt_suspension {
    double seen_s;         /* dt_clock_s of the last look, 0: none */
    double for_s, until_s; /* at most so long, and when it continued; 0: it was not stopped */
} dt_suspension;

enum { DT_SUSPENSION_TEXT_BYTES = 112 };

/* Looks, as often as one likes. Seconds (at most) for which it stood still since the look before; 0: it did not, or for
 * less than a second. */
double dt_suspension_check(dt_suspension *s, double now);
/* Nothing came of it: the collective ended. */
void dt_suspension_reset(dt_suspension *s);
/* "; this rank itself was held by a signal (SIGSTOP) for up to 12 s, until 0.1 s ago"; "" where it was not. */
void dt_suspension_text(const dt_suspension *s, double now, char out[DT_SUSPENSION_TEXT_BYTES]);

#endif
