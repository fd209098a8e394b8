/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "run/rundir.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/beneath.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/signals.h"
#include "base/text.h"
#include "state/checkpoint/checkpoint.h"
#include "telemetry/report/flat.h"
#include "run/run_meta.h"
#include "run/rundir_check.h"
#include "run/rundir_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct dt_rundir {
    char *path;
    dt_logfile *train_log, *error_log;
    int lock; /* of run.lock, -1: none */
    dt_run_meta meta;
    dt_rundir_files files;
    bool is_new;    /* the folder was made by this process */
    bool is_again;  /* it has a run that ended before its first checkpoint */
    size_t n_there; /* bytes of its path that were a folder before: parents after that are new, too */
    bool has_begun; /* dt_rundir_begin */
    char **earlier; /* [n_earlier] entries of a folder that is not new, and bytes of its logs */
    size_t n_earlier;
    int64_t log_bytes[2];
};

static void write_log_line(void *user, int level, const char *line)
{
    const dt_rundir *r = user;
    dt_logfile_write_line(r->train_log, line);
    if (level <= DT_LOG_WARN) {
        dt_logfile_write_line(r->error_log, line);
    }
}

/* "<base>/<name>-20261121T003000Z-3f2a" */
static dt_status path_of_fresh_run(const dt_rundir_desc *d, dt_str *out)
{
    char utc[32];
    char compact[32];
    uint16_t random = 0;
    size_t n = 0;
    dt_clock_utc(utc, sizeof(utc));
    for (const char *p = utc; *p != '\0' && n + 1 < sizeof(compact); p++) {
        if (*p != '-' && *p != ':') {
            compact[n++] = *p;
        }
    }
    compact[n] = '\0';
    if (dt_fault("rundir.random")) {
        random = 0;
    } else if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        random = (uint16_t)(getpid() + (int)(dt_clock_s() * 1e6));
    }
    dt_str_addf(out, "%s/%s-%s-%04x", d->base, d->name, compact, random);
    return dt_str_status(out);
}

/* A folder that was not there before: of runs that begin in the same second only one gets a name. */
static dt_status make_fresh_folder(const dt_rundir_desc *d, dt_str *out)
{
    enum { TRIES = 100 };
    DT_TRY(dt_fs_mkdirs(d->base));
    for (int i = 0; i < TRIES; i++) {
        dt_str_clear(out);
        DT_TRY(path_of_fresh_run(d, out));
        if (mkdir(dt_str_text(out), 0777) == 0) { /* below no guard yet */
            return DT_OK;
        }
        if (errno != EEXIST) {
            return DT_FAIL(DT_EIO, "cannot make %s: %s", dt_str_text(out), strerror(errno));
        }
    }
    return DT_FAIL(DT_EIO, "%d names of run directories like %s exist", TRIES, dt_str_text(out));
}

static dt_status open_log(const dt_rundir *r, const char *name, const dt_logfile_opts *o, dt_logfile **out)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/%s", r->path, name);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_logfile_open(dt_str_text(&path), o, out);
    }
    dt_str_fini(&path);
    return st;
}

/* What a run recorded that begins again; its logs stay, to document what happened, and metrics.jsonl, which is open, is
 * rewound. */
static dt_status remove_records(const char *path)
{
    static const char *const names[] = {"progress.json", "tensorboard", "evaluation", "report.html", "trace.json"};
    dt_status st = DT_OK;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && st == DT_OK; i++) {
        dt_str p = {0};
        dt_str_addf(&p, "%s/%s", path, names[i]);
        st = dt_str_status(&p);
        if (st == DT_OK) {
            st = dt_fs_remove_tree(dt_str_text(&p));
        }
        dt_str_fini(&p);
    }
    return st;
}

static const char LOCK_NAME[] = "run.lock";

static bool has_lock_file(const char *run)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/%s", run, LOCK_NAME);
    const bool has = dt_str_status(&path) == DT_OK && dt_fs_is_file(dt_str_text(&path));
    dt_str_fini(&path);
    return has;
}

/* Two processes that train into one folder would spoil it; and while it is held, the run is known to be alive. */
static dt_status lock_run_folder(dt_rundir *r)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/%s", r->path, LOCK_NAME);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_lock_acquire(dt_str_text(&path), &r->lock);
    }
    st = dt_rundir_lock_context(r->path, st);
    if (st == DT_EUNSUPPORTED) {
        dt_log(DT_LOG_WARN, "%s; `dtrain runs` cannot determine whether this run is alive", dt_error_text());
        st = DT_OK;
    }
    dt_str_fini(&path);
    return st;
}

void dt_rundir_wait_unlocked(const char *path, bool is_job)
{
    enum { ALONE_S = 2, RANKS_S = 30 };
    dt_str file = {0};
    struct stat info;
    const double begin = dt_clock_s();
    bool is_shown = false;
    dt_str_addf(&file, "%s/%s", path, LOCK_NAME);
    if (dt_str_status(&file) != DT_OK || !dt_fs_is_dir(path) || dt_beneath_guard(path) != DT_OK ||
        dt_beneath_stat(dt_str_text(&file), &info) != 0) {
        dt_error_clear();
        dt_str_fini(&file);
        return;
    }
    const double wait_s = dt_run_meta_number(path, "ranks", is_job ? 2 : 1) > 1 ? RANKS_S : ALONE_S;
    while (dt_lock_is_held(dt_str_text(&file)) && dt_clock_s() - begin < wait_s && dt_signals_stop() == 0) {
        const struct timespec nap = {.tv_nsec = 100000000};
        if (!is_shown) {
            dt_log(DT_LOG_INFO, "waiting up to %g s for the training in %s to end", wait_s, path);
            is_shown = true;
        }
        nanosleep(&nap, NULL);
    }
    dt_str_fini(&file);
}

void dt_rundir_mark_irreproducible(dt_rundir *r, uint64_t step)
{
    r->meta.mark = r->meta.mark < 0 ? (int64_t)step : r->meta.mark;
}

void dt_rundir_rewind(dt_rundir *r, uint64_t step)
{
    r->meta.mark = r->meta.mark >= (int64_t)step ? -1 : r->meta.mark;
}

static bool is_one_of(const char *name, const char *const *pattern)
{
    bool is = false;
    for (size_t i = 0; pattern[i] != NULL; i++) {
        is = is || dt_glob_match(pattern[i], name);
    }
    return is;
}

/* pattern: ends with NULL */
static dt_status remove_matches(const char *folder, const char *const *pattern)
{
    char **name = NULL;
    size_t n = 0;
    dt_str file = {0};
    DT_TRY(dt_fs_list(folder, &name, &n));
    for (size_t i = 0; i < n; i++) {
        dt_str_clear(&file);
        dt_str_addf(&file, "%s/%s", folder, name[i]);
        if (is_one_of(name[i], pattern) && dt_str_status(&file) == DT_OK) {
            dt_fs_try_remove(dt_str_text(&file));
        }
    }
    dt_str_fini(&file);
    dt_fs_list_free(name, n);
    return DT_OK;
}

/* In each phase's folder of stored rollouts (rollouts.keep). */
static dt_status remove_temporary_rollouts(const char *rollouts)
{
    static const char *const of_rounds[] = {"round-*.safetensors.tmp.*", NULL};
    char **name = NULL;
    size_t n = 0;
    dt_str folder = {0};
    if (!dt_fs_is_dir(rollouts)) {
        return DT_OK;
    }
    DT_TRY(dt_fs_list(rollouts, &name, &n));
    dt_status st = DT_OK;
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        dt_str_clear(&folder);
        dt_str_addf(&folder, "%s/%s", rollouts, name[i]);
        st = dt_str_status(&folder);
        if (st == DT_OK && dt_fs_is_dir(dt_str_text(&folder))) {
            st = remove_matches(dt_str_text(&folder), of_rounds);
        }
    }
    dt_str_fini(&folder);
    dt_fs_list_free(name, n);
    return st;
}

dt_status dt_rundir_remove_temporary(const char *run_dir)
{
    static const char *const of_run[] = {"config.cfg.tmp.*",
                                         "config.origin.json.tmp.*",
                                         "meta.json.tmp.*",
                                         "progress.json.tmp.*",
                                         "report.html.tmp.*",
                                         "trace.json.tmp.*",
                                         NULL};
    dt_str rollouts = {0};
    DT_TRY(remove_matches(run_dir, of_run));
    dt_str_addf(&rollouts, "%s/rollouts", run_dir);
    dt_status st = dt_str_status(&rollouts);
    if (st == DT_OK) {
        st = remove_temporary_rollouts(dt_str_text(&rollouts));
    }
    dt_str_fini(&rollouts);
    return st;
}

/* Bytes of the longest part of a path that is a folder. */
static size_t count_existing(const char *path)
{
    dt_str part = {0};
    size_t found = 0;
    for (size_t i = 1; path[i - 1] != '\0'; i++) {
        if (path[i] == '/' || path[i] == '\0') {
            dt_str_clear(&part);
            dt_str_add_n(&part, path, i);
            found = dt_str_status(&part) == DT_OK && dt_fs_is_dir(dt_str_text(&part)) ? i : found;
        }
    }
    dt_str_fini(&part);
    return found;
}

static void remove_new_parents(const dt_rundir *r)
{
    dt_str part = {0};
    for (size_t n = strlen(r->path); n-- > r->n_there + 1;) {
        if (r->path[n] == '/') {
            dt_str_clear(&part);
            dt_str_add_n(&part, r->path, n);
            dt_fs_try_remove_folder(dt_str_text(&part));
        }
    }
    dt_str_fini(&part);
}

static const char *const log_names[] = {"train.log", "error.log"};

/* What a folder has before a run writes to it, for dt_rundir_undo: found under the lock, so that nothing of another
 * process is taken for this one's. had_lock: the file of the lock is older. */
static dt_status note_earlier(dt_rundir *r, bool had_lock)
{
    DT_TRY(dt_fs_list(r->path, &r->earlier, &r->n_earlier));
    for (size_t i = 0; i < r->n_earlier && !had_lock; i++) {
        if (strcmp(r->earlier[i], LOCK_NAME) == 0) {
            dt_free(r->earlier[i]);
            r->earlier[i] = r->earlier[--r->n_earlier];
            break;
        }
    }
    r->is_new = r->is_new && r->n_earlier == 0;
    for (size_t i = 0; i < 2; i++) {
        struct stat info;
        dt_str path = {0};
        dt_str_addf(&path, "%s/%s", r->path, log_names[i]);
        const dt_status st = dt_str_status(&path);
        r->log_bytes[i] = st == DT_OK && dt_beneath_stat(dt_str_text(&path), &info) == 0 ? (int64_t)info.st_size : -1;
        dt_str_fini(&path);
        DT_TRY(st);
    }
    return DT_OK;
}

dt_status dt_rundir_open(const dt_rundir_desc *d, dt_rundir **out_p)
{
    dt_rundir *r = dt_alloc(sizeof(*r));
    dt_str path = {0};
    dt_folder_state state = DT_FOLDER_FREE;
    if (r != NULL) {
        r->lock = -1;
    }
    dt_status st = r != NULL ? dt_rundir_check(d) : DT_FAIL(DT_ENOMEM, "out of memory for the run directory");
    const size_t n_there = count_existing(d->dir != NULL ? d->dir : d->base);
    if (st == DT_OK && d->dir != NULL) {
        dt_str_add(&path, d->dir);
        st = dt_str_status(&path);
    } else if (st == DT_OK) {
        st = make_fresh_folder(d, &path);
    }
    if (st == DT_OK) {
        r->path = dt_strdup(dt_str_text(&path));
        r->n_there = n_there;
        r->meta.argc = d->argc;
        r->meta.argv = d->argv;
        r->meta.phase = d->phase;
        r->meta.init_from = d->init_from;
        dt_clock_utc(r->meta.start, sizeof(r->meta.start));
        r->is_new = d->dir == NULL || (r->path != NULL && !dt_fs_is_dir(r->path));
        st = r->path != NULL ? dt_fs_mkdirs(r->path) : DT_FAIL(DT_ENOMEM, "out of memory for the run directory");
    }
    if (st == DT_OK) {
        st = dt_beneath_guard(r->path); /* for good: a resumed run may have another author */
    }
    const bool had_lock = st == DT_OK && has_lock_file(r->path);
    if (st == DT_OK) {
        st = lock_run_folder(r);
    }
    if (st == DT_OK) {
        st = note_earlier(r, had_lock);
    }
    if (st == DT_OK) { /* another process may have trained there since the check */
        st = dt_rundir_check_mixing(r->path, d->resume, &state);
    }
    if (st == DT_OK) {
        r->is_again = state == DT_FOLDER_BEGUN; /* no process trains there any more */
    }
    if (st == DT_OK && r->lock >= 0) {
        st = dt_rundir_remove_temporary(r->path);
    }
    if (st == DT_OK) {
        r->meta.mark = d->resume ? dt_run_meta_number(r->path, DT_RUN_META_MARK, -1) : -1;
        st = open_log(r, log_names[0], &d->log, &r->train_log);
    }
    if (st == DT_OK) {
        st = open_log(r, log_names[1], &d->log, &r->error_log);
    }
    dt_str_fini(&path);
    if (st < 0) {
        dt_error reason;
        dt_error_save(&reason, st);
        if (r != NULL && r->lock >= 0) { /* else another process may have it */
            dt_rundir_undo(r);
        }
        dt_rundir_close(r);
        return dt_error_restore(&reason);
    }
    dt_log_sink_set(write_log_line, r);
    dt_logfile_log_crashes(r->train_log);
    if (r->is_again) {
        dt_log(DT_LOG_WARN, "the run in %s ended before its first checkpoint: it starts again", r->path);
    }
    *out_p = r;
    return DT_OK;
}

dt_status dt_rundir_join(const char *path, uint32_t rank, const dt_logfile_opts *log, dt_rundir **out_p)
{
    dt_rundir *r = dt_alloc(sizeof(*r));
    char name[32];
    dt_status st = r != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the run directory");
    snprintf(name, sizeof(name), "rank-%u.log", rank);
    if (st == DT_OK) {
        r->lock = -1;
        r->meta.mark = -1;
        r->path = dt_strdup(path);
        st = r->path != NULL ? dt_beneath_guard(r->path) : DT_FAIL(DT_ENOMEM, "out of memory for the run directory");
    }
    if (st == DT_OK) {
        st = open_log(r, name, log, &r->train_log);
    }
    if (st < 0) {
        dt_rundir_close(r);
        return st;
    }
    dt_log_sink_set(write_log_line, r);
    dt_logfile_log_crashes(r->train_log);
    *out_p = r;
    return DT_OK;
}

const char *dt_rundir_path(const dt_rundir *r)
{
    return r->path;
}

static const char *find_earlier_origin(void *user, const char *path)
{
    char item[320];
    snprintf(item, sizeof(item), "%s/origin", path);
    const dt_flat_item *found = dt_flat_find(user, item);
    return found != NULL && found->kind == DT_JSON_STRING ? found->text : NULL;
}

/* A resume keeps what was recorded before; a file that is missing or damaged is written from scratch. */
static dt_status write_origins(const dt_rundir *r, const dt_config *c, dt_str *out)
{
    dt_flat earlier = {0};
    dt_str path = {0};
    dt_str_addf(&path, "%s/config.origin.json", r->path);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK && dt_flat_read(dt_str_text(&path), &earlier) < 0) {
        dt_error_clear();
    }
    if (st == DT_OK) {
        st = dt_config_write_origin(c, find_earlier_origin, &earlier, out);
    }
    dt_flat_fini(&earlier);
    dt_str_fini(&path);
    return st;
}

static dt_status write_config(dt_rundir *r, const dt_config *c)
{
    dt_str text = {0};
    dt_status st = dt_config_write(c, &text);
    if (st == DT_OK) {
        st = dt_rundir_files_write(&r->files, r->path, "config.cfg", &text);
    }
    dt_str_clear(&text);
    if (st == DT_OK) {
        st = write_origins(r, c, &text);
    }
    if (st == DT_OK) {
        dt_str_add(&text, "\n");
        st = dt_rundir_files_write(&r->files, r->path, "config.origin.json", &text);
    }
    dt_str_fini(&text);
    return st;
}

dt_status dt_rundir_write_meta(dt_rundir *r, const dt_session *session, int exit_code)
{
    dt_str text = {0};
    dt_run_meta_text(&r->meta, session, exit_code, &text);
    const dt_status st = dt_rundir_files_write(&r->files, r->path, "meta.json", &text);
    dt_str_fini(&text);
    return st;
}

void dt_rundir_update_meta(dt_rundir *r, const dt_session *session, int exit_code)
{
    if (dt_rundir_write_meta(r, session, exit_code) < 0) {
        dt_log(DT_LOG_WARN, "meta.json is not up to date: %s", dt_error_text());
        dt_error_clear();
    }
}

bool dt_rundir_is_again(const dt_rundir *r)
{
    return r->is_again;
}

dt_status dt_rundir_begin(dt_rundir *r, const dt_session *session, bool writes)
{
    r->has_begun = true;
    DT_TRY(writes && r->is_again ? remove_records(r->path) : DT_OK);
    r->is_again = false;
    return writes ? dt_rundir_write_start(r, session) : DT_OK;
}

dt_status dt_rundir_write_start(dt_rundir *r, const dt_session *session)
{
    DT_TRY(write_config(r, session->config));
    return dt_rundir_write_meta(r, session, -1);
}

dt_status dt_rundir_write_progress(dt_rundir *r, const dt_rundir_phase *p)
{
    dt_str text = {0};
    dt_json_out o = {.s = &text};
    dt_json_obj(&o, NULL);
    dt_json_str(&o, "phase", p->id);
    dt_json_i64(&o, "phase_index", p->index);
    dt_json_i64(&o, "phases", p->n_phases);
    dt_json_i64(&o, "base_step", (int64_t)p->base_step);
    dt_json_i64(&o, "steps", (int64_t)p->steps);
    dt_json_i64(&o, "steps_per_epoch", (int64_t)p->steps_per_epoch);
    dt_json_i64(&o, "stop_iterations", (int64_t)p->iterations);
    dt_json_f64(&o, "stop_time_s", p->time_s);
    dt_json_i64(&o, "parameters", p->parameters);
    dt_json_i64(&o, "parameters_trained", p->trained);
    dt_json_end(&o, '}');
    dt_str_add(&text, "\n");
    dt_status st = dt_rundir_files_write(&r->files, r->path, "progress.json", &text);
    dt_str_fini(&text);
    return st;
}

/* Of another process that trains there since the file of the lock was removed, nothing is overwritten. */
static dt_status restore_lock(dt_rundir *r)
{
    dt_str path = {0};
    struct stat held, now;
    int fd = -1;
    if (r->lock < 0 || fstat(r->lock, &held) != 0) {
        return DT_OK;
    }
    dt_str_addf(&path, "%s/%s", r->path, LOCK_NAME);
    dt_status st = dt_str_status(&path);
    const bool is_there = st == DT_OK && dt_beneath_stat(dt_str_text(&path), &now) == 0;
    if (st == DT_OK && !(is_there && now.st_dev == held.st_dev && now.st_ino == held.st_ino)) {
        st = dt_lock_acquire(dt_str_text(&path), &fd);
        if (st == DT_OK) {
            dt_lock_release(r->lock);
            r->lock = fd;
            dt_log(DT_LOG_WARN, "%s was removed or replaced by another program during the run; it is locked again",
                   dt_str_text(&path));
        } else if (st == DT_AGAIN) {
            st = DT_CONTEXT(DT_ECONFIG, "another training uses %s since its lock was removed", r->path);
        } else {
            dt_error_clear(); /* what is saved next meets the same */
            st = DT_OK;
        }
    }
    dt_str_fini(&path);
    return st;
}

dt_status dt_rundir_restore(dt_rundir *r)
{
    if (!dt_fs_is_dir(r->path)) {
        return DT_OK;
    }
    DT_TRY(restore_lock(r));
    dt_rundir_files_restore(&r->files, r->path);
    return DT_OK;
}

/* Not when it happens: a log line cannot log. The log itself reports it at once. */
static void warn_lost_log(const dt_rundir *r, const dt_logfile *log, const char *name)
{
    if (dt_logfile_is_recreated(log)) {
        dt_log(DT_LOG_WARN,
               "%s/%s was removed, replaced or cut by another program during the run; lines before are lost", r->path,
               name);
    }
}

static void close_logs(dt_rundir *r)
{
    warn_lost_log(r, r->train_log, "train.log");
    warn_lost_log(r, r->error_log, "error.log");
    dt_log_sink_set(NULL, NULL);
    dt_logfile_close(r->train_log);
    dt_logfile_close(r->error_log);
    r->train_log = r->error_log = NULL;
}

static bool was_there(const dt_rundir *r, const char *name)
{
    bool was = false;
    for (size_t i = 0; i < r->n_earlier && !was; i++) {
        was = strcmp(r->earlier[i], name) == 0;
    }
    return was;
}

static dt_status remove_entry(const dt_rundir *r, const char *name)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/%s", r->path, name);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_fs_remove_tree(dt_str_text(&path));
    }
    dt_str_fini(&path);
    return st;
}

/* A folder that was there before becomes as it was: what is new goes, and logs lose what was added. */
static dt_status restore_folder(const dt_rundir *r)
{
    char **name = NULL;
    size_t n = 0;
    dt_str path = {0};
    DT_TRY(dt_fs_list(r->path, &name, &n));
    dt_status st = DT_OK;
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        if (!was_there(r, name[i])) {
            st = remove_entry(r, name[i]);
        }
    }
    for (size_t i = 0; i < 2 && st == DT_OK; i++) {
        int fd = -1;
        dt_str_clear(&path);
        dt_str_addf(&path, "%s/%s", r->path, log_names[i]);
        if (r->log_bytes[i] >= 0 && dt_str_status(&path) == DT_OK &&
            dt_fs_open(dt_str_text(&path), O_WRONLY, &fd) == DT_OK) {
            (void)!ftruncate(fd, (off_t)r->log_bytes[i]);
            close(fd);
        }
    }
    dt_str_fini(&path);
    dt_fs_list_free(name, n);
    return st;
}

bool dt_rundir_undo(dt_rundir *r)
{
    if (r->has_begun) {
        return false;
    }
    close_logs(r);
    const dt_status st = r->is_new ? dt_fs_remove_tree(r->path) : restore_folder(r);
    if (r->is_new) {
        remove_new_parents(r);
    }
    if (st < 0) {
        dt_log(DT_LOG_WARN, "%s is not as it was before, although nothing was trained: %s", r->path, dt_error_text());
        dt_error_clear();
    }
    return true;
}

void dt_rundir_close(dt_rundir *r)
{
    if (r == NULL) {
        return;
    }
    close_logs(r);
    dt_lock_release(r->lock);
    dt_fs_list_free(r->earlier, r->n_earlier);
    dt_rundir_files_fini(&r->files);
    dt_free(r->path);
    dt_free(r);
}

const char *dt_rundir_base_folder(void)
{
    const char *base = getenv("DTRAIN_RUN_DIR");
    return base != NULL && base[0] != '\0' ? base : "runs";
}

dt_status dt_rundir_find_newest(const char *base, const char *name, char **out_p)
{
    static const char pattern[] = "-????????T??????Z-????";
    char **names = NULL, *best = NULL;
    size_t n = 0;
    dt_status st = dt_fs_is_dir(base) ? dt_fs_list(base, &names, &n) : DT_OK;
    const size_t bytes = strlen(name);
    for (size_t i = n; i-- > 0 && st == DT_OK && best == NULL;) { /* sorted by name, so that the newest is the last */
        dt_str path = {0};
        dt_str_addf(&path, "%s/%s", base, names[i]);
        if (strncmp(names[i], name, bytes) == 0 && dt_glob_match(pattern, names[i] + bytes) &&
            dt_rundir_is_run(dt_str_text(&path))) {
            best = dt_strdup(dt_str_text(&path));
            st = best != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %s", name);
        }
        dt_str_fini(&path);
    }
    dt_fs_list_free(names, n);
    *out_p = best;
    return st;
}

dt_status dt_rundir_find_latest_checkpoint(const char *base, char **out_p)
{
    char **name = NULL;
    size_t n = 0;
    char *best = NULL;
    struct timespec best_time = {0, 0};
    if (dt_fs_is_dir(base)) {
        DT_TRY(dt_fs_list(base, &name, &n));
    }
    for (size_t i = 0; i < n; i++) {
        dt_str path = {0};
        struct stat s;
        dt_str_addf(&path, "%s/%s/checkpoints", base, name[i]);
        if (stat(dt_str_text(&path), &s) == 0 && S_ISDIR(s.st_mode) &&
            (best == NULL || s.st_mtim.tv_sec > best_time.tv_sec ||
             (s.st_mtim.tv_sec == best_time.tv_sec && s.st_mtim.tv_nsec > best_time.tv_nsec))) {
            dt_str run = {0};
            dt_str_addf(&run, "%s/%s", base, name[i]);
            dt_free(best);
            best = dt_strdup(dt_str_text(&run));
            best_time = s.st_mtim;
            dt_str_fini(&run);
        }
        dt_str_fini(&path);
    }
    dt_fs_list_free(name, n);
    if (best == NULL) {
        return DT_FAIL(DT_ECONFIG,
                       "--resume: no run with a checkpoint below %s; name one (--resume RUN) or start afresh", base);
    }
    *out_p = best;
    return DT_OK;
}
