/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.log of a run of several processes: what the launcher logged, what it received from all ranks, and what mpirun
 * printed that was kept from the terminal. Lines wait until it is known where the run is. Threads: [main].
 */
#ifndef DTRAIN_CORE_COMM_LAUNCH_NOTES_H
#define DTRAIN_CORE_COMM_LAUNCH_NOTES_H

#include "base/logfile.h"
#include "base/str.h"

typedef struct dt_launch_notes {
    dt_str waiting, line; /* whole lines; one that has not ended */
    dt_logfile *file;     /* NULL: not yet */
    bool has_failed;
} dt_launch_notes;

/* From now on lines of the log come here, too. */
void dt_launch_notes_begin(dt_launch_notes *n);
void dt_launch_notes_end(dt_launch_notes *n);
void dt_launch_notes_open(dt_launch_notes *n, const char *run);     /* once; a folder that takes none is a warning */
void dt_launch_notes_add(void *n, const char *bytes, size_t count); /* dt_listen's */

#endif
