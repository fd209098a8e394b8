/* SPDX-License-Identifier: Apache-2.0
 *
 * Event files of a run for TensorBoard: tensorboard/<n>-<phase>/ below the run directory, so that every phase has its
 * own axis of steps; the scalars of metrics.jsonl, and the configuration as a text. Threads: [main] of rank 0.
 */
#ifndef DTRAIN_CORE_HOST_EVENT_FILES_H
#define DTRAIN_CORE_HOST_EVENT_FILES_H

#include "config/config.h"
#include "metrics/record.h"

typedef struct dt_event_files_desc {
    const char *run_dir;
    const dt_config *config;
    const char *phase;
    int64_t index;       /* of the phase in the configuration */
    uint64_t first_step; /* of the phase, made next */
} dt_event_files_desc;

/* When a phase begins; m's records go there too from now on. What goes wrong costs no result and is a warning. */
void dt_event_files_begin(const dt_event_files_desc *d, dt_metrics *m);

#endif
