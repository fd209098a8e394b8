/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals of a run (docs/reference/exit-codes.md): the first SIGINT or SIGTERM requests to finish the step, save and
 * exit with 75, as does SIGUSR2, which mpirun forwards to its processes; the second exits at once with 128+n; SIGUSR1
 * requests a checkpoint now. Threads: install [main]; the rest [any].
 */
#ifndef DTRAIN_CORE_BASE_SIGNALS_H
#define DTRAIN_CORE_BASE_SIGNALS_H

#include <stdbool.h>

void dt_signals_install(void);
/* While true, the first signal exits at once as well, with 128+n. */
void dt_signals_set_nothing_to_save(bool is_so);
/* The state of the resumed run is on disk: an immediate exit then has the code of a saved state. */
void dt_signals_mark_saved(void);
/* For a launcher that forwards signals to its processes: none ends this one, SIGHUP stops like SIGTERM, stop_count
 * counts the requests to stop, and stop is the last one. */
void dt_signals_forward(void);
int dt_signals_stop_count(void);
int dt_signals_stop(void);               /* number of the signal that asked to stop, 0 = none */
bool dt_signals_take_save_request(void); /* true once per SIGUSR1 */
/* When this process last continued after a stop (SIGCONT), in dt_clock_s; 0: never. */
double dt_signals_continued_s(void);

#endif
