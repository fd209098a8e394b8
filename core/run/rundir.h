/* SPDX-License-Identifier: Apache-2.0
 *
 * A run directory (docs/howto/running.md): runs/<name>-<UTC time>-<4 hex>/ or the folder of --run-dir; with config.cfg,
 * config.origin.json, meta.json, progress.json, train.log, error.log (and older ones, .1, .2 ...), metrics.jsonl,
 * tensorboard/, checkpoints/, trace.json where steps are profiled, run.lock, which the process that trains holds, and
 * where several processes train rank-1.log and so on, launch.log and launch.lock, which their launcher holds. Threads:
 * [main] of rank 0, except join.
 */
#ifndef DTRAIN_CORE_RUN_RUNDIR_H
#define DTRAIN_CORE_RUN_RUNDIR_H

#include "base/logfile.h"
#include "run/session.h"

typedef struct dt_rundir dt_rundir;

/* Waits until no process trains in that folder, before its checkpoints are searched: 2 s for a process
 * that was killed and holds its lock until the kernel has taken it apart, 30 s of several, which notice only then that
 * their launcher was killed. is_job: what a folder is taken for that does not record how many trained in it. A folder
 * that is missing or unlocked is not waited for; dt_rundir_open rejects one that is still locked afterwards. */
void dt_rundir_wait_unlocked(const char *path, bool is_job);

typedef struct dt_rundir_desc {
    const char *dir;               /* --run-dir; NULL: make one below base */
    const char *base;              /* "runs" or DTRAIN_RUN_DIR */
    const char *name;              /* --name or the plugin's id */
    bool resume;                   /* the folder must exist, and is continued */
    const char *phase, *init_from; /* of a run that begins: --phase and --init-from, for when it begins again; NULL */
    dt_logfile_opts log;
    int argc;
    char *const *argv;
} dt_rundir_desc;

typedef struct dt_rundir_phase { /* the phase that is being trained */
    const char *id;
    int64_t index, n_phases; /* of those that this run trains */
    uint64_t base_step;      /* steps of the phases before */
    uint64_t steps;          /* planned, 0: open */
    uint64_t steps_per_epoch;
    uint64_t iterations;         /* that end it, 0: none do */
    double time_s;               /* the same */
    int64_t parameters, trained; /* of its models; of these without the frozen ones */
} dt_rundir_phase;

/* Makes or continues the folder and sends log lines to its files. A fresh run takes the place of one that ended before
 * its first checkpoint, and logs it: what that one recorded goes. Errors: DT_EIO; DT_ECONFIG when it would mix with
 * another one in the same folder, or another process trains there. */
dt_status dt_rundir_open(const dt_rundir_desc *d, dt_rundir **out_p) DT_NODISCARD;
/* Would open succeed? Nothing is written, but a nameless file for a moment, to know that files can be. Errors: as open.
 */
dt_status dt_rundir_check_open(const dt_rundir_desc *d) DT_NODISCARD;
/* The same folder on another rank of several processes: it writes its log alone, as rank-<n>.log. Errors: DT_EIO. */
dt_status dt_rundir_join(const char *path, uint32_t rank, const dt_logfile_opts *log, dt_rundir **out_p) DT_NODISCARD;
const char *dt_rundir_path(const dt_rundir *r);
/* Of a run that begins: config.cfg, config.origin.json and meta.json without an end. */
dt_status dt_rundir_write_start(dt_rundir *r, const dt_session *session) DT_NODISCARD;
/* meta.json: version, plugins with hashes, host, device, threads, seed, argv, start; not_reproducible_from_step where
 * the run is marked; end and exit code once known (>= 0). */
dt_status dt_rundir_write_meta(dt_rundir *r, const dt_session *session, int exit_code) DT_NODISCARD;
/* The same with a warning in place of an error: a full disk ends no run. */
void dt_rundir_update_meta(dt_rundir *r, const dt_session *session, int exit_code);
/* From this step of the run on it cannot be repeated bit by bit, as after a lost worker: meta.json records it from the
 * next time it is written. The first mark counts; that of a resumed run stays. */
void dt_rundir_mark_irreproducible(dt_rundir *r, uint64_t step);
/* The run continues from a checkpoint of this step: later marks are removed. */
void dt_rundir_rewind(dt_rundir *r, uint64_t step);
/* progress.json, when a phase begins: with the last record of metrics.jsonl it shows how far the run is. */
dt_status dt_rundir_write_progress(dt_rundir *r, const dt_rundir_phase *p) DT_NODISCARD;
/* Before a save and at the end: what another program removed during the run is written again, with a warning, and
 * the lock is taken again. Errors: DT_ECONFIG: another process trains there now. */
dt_status dt_rundir_restore(dt_rundir *r) DT_NODISCARD;
/* Files NAME.tmp.PID that a killed process left in a run, for the process that has the folder to itself; those of
 * checkpoints go when these are pruned. Errors: DT_EIO, DT_ENOMEM: a folder cannot be listed. */
dt_status dt_rundir_remove_temporary(const char *run_dir) DT_NODISCARD;
/* Has it a run that ended before its first checkpoint? It is left as it is until this one begins. */
bool dt_rundir_is_again(const dt_rundir *r);
/* The first phase is ready to step: from now on the folder is this run's. writes: what dt_rundir_write_start does,
 * after what an earlier run recorded there was removed. */
dt_status dt_rundir_begin(dt_rundir *r, const dt_session *session, bool writes) DT_NODISCARD;
/* Of a run that was rejected, before it is closed: a folder that this process made goes again, another one becomes as
 * it was. False: a phase has begun in it, and it stays. */
bool dt_rundir_undo(dt_rundir *r);
void dt_rundir_close(dt_rundir *r);

/* Where runs are made: DTRAIN_RUN_DIR, or "runs". */
const char *dt_rundir_base_folder(void);
/* Did a run begin in this folder? Then it holds its configuration and meta.json. */
bool dt_rundir_is_run(const char *path);
/* The newest run called `name` below base, whatever it holds; NULL when there is none. Freed with dt_free. */
dt_status dt_rundir_find_newest(const char *base, const char *name, char **out_p) DT_NODISCARD;
/* The newest run below base that holds a checkpoint; caller frees with dt_free. DT_ECONFIG when there is none. */
dt_status dt_rundir_find_latest_checkpoint(const char *base, char **out_p) DT_NODISCARD;

#endif
