/* SPDX-License-Identifier: Apache-2.0
 *
 * Event files of a run for TensorBoard: tensorboard/<n>-<phase>/ below the run directory, so that every phase has its
 * own axis of steps. The scalars of metrics.jsonl; the configuration and the tables of evaluations as texts; what the
 * phase was configured with as hyper-parameters; every few epochs the spread of parameters and gradients as histograms,
 * one for each tensor or, in models of many tensors, for each layer, and each model's largest matrix as a picture;
 * predicted trajectories next to the recorded ones, and moments of an episode, where an evaluation provides them
 * (svc/metrics.h). What goes wrong costs no result and is a warning. Threads: [main] of rank 0.
 */
#ifndef DTRAIN_CORE_TELEMETRY_TENSORBOARD_EVENT_FILES_H
#define DTRAIN_CORE_TELEMETRY_TENSORBOARD_EVENT_FILES_H

#include "config/config.h"
#include "plugin/service/stage.h"
#include "telemetry/metrics/record.h"

typedef struct dt_event_files_desc {
    const char *run_dir;
    const dt_config *config;
    const dt_stage *stage;
    uint64_t first_step; /* of the phase, made next */
} dt_event_files_desc;

/* When a phase begins; m's records go there too from now on. */
void dt_event_files_begin(const dt_event_files_desc *d, dt_metrics *m);
/* Of what the models are now, and of the last step's gradients where the CPU has them. */
void dt_event_files_write_models(const dt_stage *s, dt_metrics *m, uint64_t step);
/* Of the evaluation that was just made; table: its text. */
void dt_event_files_write_evaluation(const dt_stage *s, dt_metrics *m, uint64_t step, const char *table);
/* The phase is over, or will not be: after its last retry. Nothing where the phase before this one's first step is over
 * already, or nothing is written. Not called where a run was interrupted. */
void dt_event_files_end(dt_metrics *m, bool is_success);

#endif
