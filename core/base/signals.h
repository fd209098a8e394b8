/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals of a run (INTERFACES, exit codes): the first SIGINT or SIGTERM asks to finish the step, save and leave with
 * 75; the second leaves at once with 128+n; SIGUSR1 asks for a checkpoint now. Threads: install [main]; the rest [any].
 */
#ifndef DTRAIN_CORE_BASE_SIGNALS_H
#define DTRAIN_CORE_BASE_SIGNALS_H

#include <stdbool.h>

void dt_signals_install(void);
/* While it is true on this thread's word, the first signal leaves at once, too, with 128+n. */
void dt_signals_nothing_to_save(bool is_so);
int dt_signals_stop(void);  /* number of the signal that asked to stop, 0 = none */
bool dt_signals_save(void); /* true once per SIGUSR1 */

#endif
