/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "run/resume.h"

#include "base/beneath.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "state/checkpoint/checkpoint.h"
#include "run/run_meta.h"
#include "run/rundir.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The folder above it; false at the root. */
static bool cut_last_folder(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path) {
        return false;
    }
    *slash = '\0';
    return true;
}

/* Its name is resolved once and then shortened: "checkpoints/.." is no name beneath a run. */
dt_status dt_resume_find_run(const char *resume, char **out)
{
    enum { LEVELS = 3 }; /* a run, its checkpoints, one of them */
    char full[PATH_MAX];
    bool is_there = realpath(resume, full) != NULL;
    for (int i = 0; i < LEVELS && is_there; i++) {
        dt_str meta = {0};
        dt_str_addf(&meta, "%s/meta.json", full);
        const bool is_run = dt_fs_is_file(dt_str_text(&meta));
        dt_str_fini(&meta);
        if (is_run) {
            *out = dt_strdup(full);
            return *out != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory");
        }
        is_there = cut_last_folder(full);
    }
    DT_TRY(dt_fs_check_access(resume));
    return DT_FAIL(DT_ECONFIG, "--resume %s: no run is there (a run directory holds meta.json)", resume);
}

/* `--resume auto`: the run in --run-dir, or the newest one of --name; NULL where it still has to begin. */
static dt_status find_newest_run(const dt_args *a, char **what_p)
{
    if (a->run_dir == NULL && a->name == NULL) {
        return DT_FAIL(DT_ECONFIG, "--resume auto needs --run-dir DIR or --name NAME, to identify the run");
    }
    if (a->run_dir == NULL) {
        return dt_rundir_find_newest(dt_rundir_base_folder(), a->name, what_p);
    }
    if (dt_rundir_is_run(a->run_dir)) {
        *what_p = dt_strdup(a->run_dir);
        return *what_p != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory");
    }
    return DT_OK;
}

static dt_status find_named_run(const dt_args *a, char **what_p)
{
    if (a->resume != NULL && strcmp(a->resume, "auto") == 0) {
        return find_newest_run(a, what_p);
    }
    const char *named = a->resume != NULL ? a->resume : a->run_dir;
    if (named == NULL) {
        return dt_rundir_find_latest_checkpoint(dt_rundir_base_folder(), what_p);
    }
    *what_p = dt_strdup(named);
    return *what_p != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory");
}

/* Where there is no checkpoint, what the run began with takes its place. */
static dt_status find_checkpoint(char *what, dt_resume *r)
{
    uint32_t steps = 0, damaged = 0;
    DT_TRY(dt_ckpt_count(r->run, &steps, &damaged));
    if (steps > 0) {
        r->from = dt_strdup(what);
        return r->from != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory");
    }
    if (damaged > 0) {
        return DT_FAIL(DT_EDATA,
                       "--resume: the checkpoints of %s were damaged, they are in checkpoints/quarantine; start again "
                       "in another folder",
                       r->run);
    }
    return dt_run_meta_read_beginning(r->run, &r->phase, &r->init_from);
}

static dt_status find_resume_point(char *what, dt_resume *out)
{
    DT_TRY(dt_resume_find_run(what, &out->run));
    DT_TRY(dt_beneath_guard(out->run)); /* before anything in it is read */
    return find_checkpoint(what, out);
}

dt_status dt_resume_read(const dt_args *a, dt_resume *out)
{
    char *what = NULL;
    *out = (dt_resume){.run = NULL};
    if (!a->has_resume) {
        return DT_OK;
    }
    dt_status st = find_named_run(a, &what);
    if (st == DT_OK && what != NULL) {
        st = find_resume_point(what, out);
    }
    dt_free(what);
    if (st < 0) {
        dt_resume_fini(out);
    }
    return st;
}

void dt_resume_fini(dt_resume *r)
{
    dt_free(r->run);
    dt_free(r->from);
    dt_free(r->phase);
    dt_free(r->init_from);
    *r = (dt_resume){.run = NULL};
}
