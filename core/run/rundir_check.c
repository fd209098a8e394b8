/* SPDX-License-Identifier: Apache-2.0
 *
 * May a run begin or continue in a folder? What dt_rundir_open refuses, found without writing; see rundir_check.h.
 */
#include <config.h>

#include "run/rundir_check.h"

#include "base/beneath.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/lock.h"
#include "state/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SMALL_FILES = 128 * 1024 }; /* bytes: config.cfg, config.origin.json, meta.json, logs of a run that begins */

/* Does it hold what a run leaves, or foreign files of the same names? */
static bool has_results(const char *path)
{
    dt_str p = {0};
    struct stat s;
    dt_str_addf(&p, "%s/metrics.jsonl", path);
    bool is_used = dt_beneath_stat(dt_str_text(&p), &s) == 0 && s.st_size > 0;
    dt_str_clear(&p);
    dt_str_addf(&p, "%s/checkpoints", path);
    is_used = is_used || dt_fs_is_dir(dt_str_text(&p));
    dt_str_fini(&p);
    return is_used;
}

bool dt_rundir_is_run(const char *path)
{
    static const char *const names[] = {"meta.json", "config.cfg", "config.origin.json"};
    bool is_run = true;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && is_run; i++) {
        dt_str p = {0};
        dt_str_addf(&p, "%s/%s", path, names[i]);
        is_run = dt_str_status(&p) == DT_OK && dt_fs_is_file(dt_str_text(&p));
        dt_str_fini(&p);
    }
    return is_run;
}

static dt_status classify_folder(const char *path, dt_folder_state *out_p)
{
    uint32_t steps = 0, damaged = 0;
    DT_TRY(dt_ckpt_count(path, &steps, &damaged));
    if (steps + damaged == 0 && dt_rundir_is_run(path)) {
        *out_p = DT_FOLDER_BEGUN;
    } else {
        *out_p = has_results(path) ? DT_FOLDER_TAKEN : DT_FOLDER_FREE;
    }
    return DT_OK;
}

dt_status dt_rundir_check_mixing(const char *path, bool is_resumed, dt_folder_state *state_p)
{
    *state_p = DT_FOLDER_FREE;
    if (is_resumed) {
        return DT_OK;
    }
    DT_TRY(classify_folder(path, state_p));
    if (*state_p == DT_FOLDER_TAKEN) {
        return DT_FAIL(DT_ECONFIG,
                       "%s already contains a run; continue it with --resume (--resume auto: if there is one), or name "
                       "another folder",
                       path);
    }
    return DT_OK;
}

/* What --run-dir names is a folder, or nothing yet. */
static dt_status check_kind(const char *path)
{
    if (dt_fs_is_dir(path)) {
        return DT_OK;
    }
    static const char *const what[] = {[DT_FS_FILE] = "a file",
                                       [DT_FS_FOLDER] = "not a folder",
                                       [DT_FS_LINK] = "a link that does not point to a folder",
                                       [DT_FS_OTHER] = "not a folder"};
    const dt_fs_kind kind = dt_fs_kind_of(path);
    return kind == DT_FS_NOTHING
               ? DT_OK
               : DT_FAIL(DT_ECONFIG, "--run-dir %s is %s; name a folder, or remove it", path, what[kind]);
}

dt_status dt_rundir_lock_context(const char *path, dt_status st)
{
    return st == DT_AGAIN
               ? DT_CONTEXT(DT_ECONFIG, "%s is in use by a training; wait until it ends or name another folder", path)
               : st;
}

static dt_status check_lock(const char *path)
{
    dt_str file = {0};
    dt_str_addf(&file, "%s/run.lock", path);
    dt_status st = dt_str_status(&file);
    if (st == DT_OK) {
        st = dt_rundir_lock_context(path, dt_lock_check(dt_str_text(&file)));
    }
    dt_str_fini(&file);
    return st;
}

/* Those that are there, as they will be opened. */
static dt_status check_files(const char *path)
{
    static const char *const names[] = {"run.lock", "train.log", "error.log", "metrics.jsonl"};
    dt_status st = DT_OK;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && st == DT_OK; i++) {
        int fd = -1;
        dt_str file = {0};
        dt_str_addf(&file, "%s/%s", path, names[i]);
        st = dt_str_status(&file);
        if (st == DT_OK) {
            st = dt_fs_open(dt_str_text(&file), O_RDWR | O_APPEND, &fd);
        }
        if (st == DT_OK) {
            close(fd);
        } else if (st == DT_ENOTFOUND) {
            dt_error_clear();
            st = DT_OK;
        }
        dt_str_fini(&file);
    }
    return st;
}

dt_status dt_rundir_check(const dt_rundir_desc *d)
{
    dt_folder_state state = DT_FOLDER_FREE;
    if (d->dir == NULL) {
        return DT_OK;
    }
    DT_TRY(check_kind(d->dir));
    DT_TRY(dt_rundir_check_mixing(d->dir, d->resume, &state));
    return check_lock(d->dir);
}

dt_status dt_rundir_check_open(const dt_rundir_desc *d)
{
    DT_TRY(dt_rundir_check(d));
    if (d->dir != NULL && dt_fs_is_dir(d->dir)) {
        DT_TRY(dt_beneath_guard(d->dir));
        const dt_status st = check_files(d->dir);
        dt_beneath_unguard(d->dir);
        DT_TRY(st);
    }
    return dt_fs_check_free(d->dir != NULL ? d->dir : d->base, SMALL_FILES);
}
