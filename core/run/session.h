/* SPDX-License-Identifier: Apache-2.0
 *
 * A session: configuration and plugins put together from the command line, checked, before anything is allocated. Verbs
 * that need a configuration begin here. Threads: [main].
 */
#ifndef DTRAIN_CORE_RUN_SESSION_H
#define DTRAIN_CORE_RUN_SESSION_H

#include "state/checkpoint/checkpoint.h"
#include "config/schema.h"
#include "engine/device/device.h"
#include "run/args.h"
#include "plugin/service/stage.h"
#include "plugin/loader/loader.h"

enum { DT_SESSION_MAX_PHASES = DT_CKPT_MAX_PHASES };

typedef struct dt_session_device {
    const dt_device_ops *ops; /* NULL: the CPU computes */
    dt_device *handle;
    char chosen_by[96]; /* engine.device that it was chosen by */
    char text[192];     /* "cpu", or "cuda:0 NVIDIA H200, 139.8 GiB, sm_90, GPU-..." */
} dt_session_device;

typedef struct dt_batch_choice { /* batch_auto.h; zeros: data.batch was a number */
    int64_t batch;
    uint64_t planned, budget, sample_bytes; /* of memory, or of the device; 0: not known */
    bool is_on_device;
    char limit[48], budget_by[64]; /* why no more; what the budget is a part of */
} dt_batch_choice;

typedef struct dt_session {
    dt_config *config;
    dt_loader *loader;
    dt_host host;                                  /* for plugins' init and checks: errors, log, memory, no services */
    const dt_loaded *phase[DT_SESSION_MAX_PHASES]; /* in the order of the configuration */
    int64_t n_phases, first, last;                 /* those to run: [first, last) */
    dt_sections *opts;                             /* [n_phases], read when the session is opened */
    uint64_t seed;
    uint32_t threads, ranks; /* workers of the process, its virtual ranks */
    bool is_job;             /* processes that train together, though it may be one of them for a while (--nproc 1:4) */
    uint32_t n_processes, n_local; /* that train together, and those of them on this machine */
    double comm_timeout_s;
    char *demo_store;         /* the embedded recording; "" when it is not installed */
    dt_session_device device; /* of the phase that was entered last */
    dt_batch_choice batch[DT_SESSION_MAX_PHASES];
} dt_session;

/* resumed_config: config.cfg of the run being resumed, below every other file; NULL = none. processes: those that train
 * together; NULL: this one is alone. */
dt_status dt_session_open(const dt_args *a, const char *resumed_config, const dt_comm *processes, dt_session *out)
    DT_NODISCARD;
void dt_session_close(dt_session *s);
/* Workers and device of one phase: a device that it does not need is released, another one is opened. When a session
 * opens it has entered the first phase. Errors: those of the device. */
dt_status dt_session_enter_phase(dt_session *s, int64_t phase) DT_NODISCARD;
/* A stage of one of its phases, on its workers and device; the caller may set more. lock: held while one is created. */
dt_stage_desc dt_session_describe_stage(const dt_session *s, int64_t phase, dt_comm *comm, pthread_mutex_t *lock);
/* Loader, and configuration as the command line gives it, neither completed by plugins nor checked: for show. */
dt_status dt_session_open_config(const dt_args *a, dt_session *out) DT_NODISCARD;
/* Loader and embedded recording without configuration, for list and doctor; to be closed even when it fails. */
dt_status dt_session_open_loader(dt_session *s) DT_NODISCARD;
/* Creates s->config, which knows the keys of other programs that plugins of the loader list. */
dt_status dt_session_empty_config(dt_session *s) DT_NODISCARD;
/* Does the user name a result in checkpoint.best_by of a phase, other than the phase's own default? */
bool dt_session_has_best_by(const dt_session *s, int64_t phase);
/* Before a run's configuration is evaluated, exported or drawn: counts that only it sets, as evaluation.episodes, are
 * at most what a user that only evaluates the run waits for. A warning lists which are less now, and how to have them.
 * */
dt_status dt_session_limit_counts(const dt_session *s) DT_NODISCARD;

#endif
