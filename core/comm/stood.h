/* SPDX-License-Identifier: Apache-2.0
 *
 * Did this process itself stand still, held by a signal (SIGSTOP), while others waited for it? It knows when it went on
 * (SIGCONT, base/signals.h), and when it had looked last before. Not about other ranks: those are board.h's.
 * Threads: an object belongs to one.
 */
#ifndef DTRAIN_CORE_COMM_STOOD_H
#define DTRAIN_CORE_COMM_STOOD_H

#include <stdbool.h>

typedef struct dt_stood {
    double seen_s;         /* dt_clock_s of the last look, 0: none */
    double for_s, until_s; /* at most so long, and when it went on; 0: it did not stand still */
} dt_stood;

enum { DT_STOOD_TEXT_BYTES = 112 };

/* Looks, as often as one likes. Seconds (at most) for which it stood still since the look before; 0: it did not, or for
 * less than a second. */
double dt_stood_look(dt_stood *s, double now);
/* Nothing came of it: the collective ended. */
void dt_stood_forget(dt_stood *s);
/* "; this rank itself was held by a signal (SIGSTOP) for up to 12 s, until 0.1 s ago"; "" where it was not. */
void dt_stood_text(const dt_stood *s, double now, char out[DT_STOOD_TEXT_BYTES]);

#endif
