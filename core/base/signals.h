/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals of a run (docs/reference/exit-codes.md): the first SIGINT or SIGTERM asks to finish the step, save and leave
 * with 75, and so does SIGUSR2, which mpirun hands to its processes; the second leaves at once with 128+n; SIGUSR1 asks
 * for a checkpoint now. Threads: install [main]; the rest [any].
 */
#ifndef DTRAIN_CORE_BASE_SIGNALS_H
#define DTRAIN_CORE_BASE_SIGNALS_H

#include <stdbool.h>

void dt_signals_install(void);
/* While it is true on this thread's word, the first signal leaves at once, too, with 128+n. */
void dt_signals_nothing_to_save(bool is_so);
/* A run that goes on has its state on the disk: then that is left with the code of a state that is saved. */
void dt_signals_state_stands(void);
/* From now on they are for other processes: none ends this one, SIGHUP stops as SIGTERM does, stops counts those that
 * ask to stop, and stop tells the last one. */
void dt_signals_hand_on(void);
int dt_signals_stops(void);
int dt_signals_stop(void);  /* number of the signal that asked to stop, 0 = none */
bool dt_signals_save(void); /* true once per SIGUSR1 */
/* When this process last went on after it was held, or was told to (SIGCONT), in dt_clock_s; 0: never. */
double dt_signals_continued_s(void);

#endif
