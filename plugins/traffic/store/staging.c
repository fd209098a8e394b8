/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/store/staging.h"
#include "base/beneath.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>
#include <sys/stat.h>

#define LOCK_NAME "dtrain.lock"
#define OUT_NAME  "out"

/* A process that ends may take the folder away between any two steps of one that begins. */
enum { TRIES = 100 };

struct dt_staging {
    dt_str out, folder, lock_path, path; /* OUT, OUT.partial, and the two in it */
    int lock;                            /* -1: not held */
    bool is_guarded;
};

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* OUT without slashes at its end. */
static dt_status add_plain(const char *out, dt_staging_kind kind, dt_str *plain)
{
    size_t n = strlen(out);
    if (kind == DT_STAGING_FILE && n > 0 && out[n - 1] == '/') {
        return DT_FAIL(DT_EINVAL, "%s is the name of a folder, and a file is written: leave out the slash", out);
    }
    while (n > 0 && out[n - 1] == '/') {
        n--;
    }
    const char *slash = memrchr(out, '/', n);
    const char *name = slash != NULL ? slash + 1 : out;
    const size_t bytes = n - (size_t)(name - out);
    if (bytes == 0 || (bytes == 1 && name[0] == '.') || (bytes == 2 && memcmp(name, "..", 2) == 0)) {
        return DT_FAIL(DT_EINVAL, "\"%s\" cannot name a new file or folder: choose another one", out);
    }
    dt_str_add_n(plain, out, n);
    return dt_str_status(plain);
}

static dt_status make_names(const char *out, dt_staging_kind kind, dt_staging *a)
{
    DT_TRY(add_plain(out, kind, &a->out));
    dt_str_addf(&a->folder, "%s.partial", dt_str_text(&a->out));
    dt_str_addf(&a->lock_path, "%s.partial/" LOCK_NAME, dt_str_text(&a->out));
    dt_str_addf(&a->path, "%s.partial/" OUT_NAME, dt_str_text(&a->out));
    DT_TRY(dt_str_status(&a->folder));
    DT_TRY(dt_str_status(&a->lock_path));
    return dt_str_status(&a->path);
}

static void free_names(dt_staging *a)
{
    dt_str_fini(&a->out);
    dt_str_fini(&a->folder);
    dt_str_fini(&a->lock_path);
    dt_str_fini(&a->path);
}

/* ---- what is in the way ------------------------------------------------------------------------------------------ */

static dt_status check_free(const char *out)
{
    struct stat info;
    switch (dt_fs_kind_of(out)) {
    case DT_FS_NOTHING:
        return DT_OK;
    case DT_FS_LINK:
        return dt_beneath_stat(out, &info) == 0
                   ? DT_FAIL(DT_EINVAL, "%s exists already, as a link: remove it or choose another name", out)
                   : DT_FAIL(DT_EINVAL, "%s is a dangling link: remove it or choose another name", out);
    default:
        return DT_FAIL(DT_EINVAL, "%s exists already: remove it or choose another name", out);
    }
}

static dt_status fail_foreign(const char *folder, const char *why)
{
    return DT_FAIL(DT_EINVAL, "%s exists and was not written by dtrain (%s): remove it or choose another name", folder,
                   why);
}

/* A folder with the lock, and nothing besides but "out"; or an empty one, which a process left that died at once.
 * DT_ENOTFOUND: it has gone meanwhile. */
static dt_status check_names(const char *folder)
{
    char **names = NULL;
    size_t n = 0;
    bool has_lock = false;
    const char *foreign = NULL;
    DT_TRY(dt_fs_list(folder, &names, &n));
    for (size_t i = 0; i < n; i++) {
        const bool is_lock = strcmp(names[i], LOCK_NAME) == 0;
        has_lock |= is_lock;
        foreign = is_lock || strcmp(names[i], OUT_NAME) == 0 ? foreign : names[i];
    }
    dt_status st = DT_OK;
    if (foreign != NULL) {
        dt_str why = {0};
        dt_str_addf(&why, "it contains \"%s\"", foreign);
        st = fail_foreign(folder, dt_str_text(&why));
        dt_str_fini(&why);
    } else if (n > 0 && !has_lock) {
        st = fail_foreign(folder, "it contains no " LOCK_NAME);
    }
    dt_fs_list_free(names, n);
    return st;
}

static dt_status check_ours(const dt_staging *a)
{
    const char *folder = dt_str_text(&a->folder);
    const dt_fs_kind lock = dt_fs_kind_of(dt_str_text(&a->lock_path));
    switch (dt_fs_kind_of(folder)) {
    case DT_FS_NOTHING:
        return DT_OK;
    case DT_FS_FOLDER:
        return lock == DT_FS_NOTHING || lock == DT_FS_FILE ? check_names(folder)
                                                           : fail_foreign(folder, LOCK_NAME " is not a regular file");
    case DT_FS_LINK:
        return fail_foreign(folder, "it is a link");
    default:
        return fail_foreign(folder, "it is not a folder");
    }
}

static dt_status check_all(const dt_staging *a)
{
    DT_TRY(check_free(dt_str_text(&a->out)));
    const dt_status st = check_ours(a);
    return st == DT_ENOTFOUND ? DT_OK : st;
}

static dt_status fail_in_use(const dt_staging *a)
{
    return DT_CONTEXT(DT_EINVAL, "%s is being written by another process, wait until it ends or choose another name",
                      dt_str_text(&a->out));
}

dt_status dt_staging_check(const char *out, dt_staging_kind kind)
{
    dt_staging a = {.lock = -1};
    dt_status st = make_names(out, kind, &a);
    if (st == DT_OK) {
        st = check_all(&a);
    }
    if (st == DT_OK) {
        st = dt_lock_check(dt_str_text(&a.lock_path));
    }
    if (st == DT_AGAIN) {
        st = fail_in_use(&a);
    }
    free_names(&a);
    return st;
}

/* ---- taking ------------------------------------------------------------------------------------------------------ */

/* Is the file that is locked the one in the folder? The process that held it before may have taken it away meanwhile.
 * */
static bool is_in_place(const dt_staging *a)
{
    struct stat held, there;
    return fstat(a->lock, &held) == 0 && dt_beneath_stat(dt_str_text(&a->lock_path), &there) == 0 &&
           held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

static void release_lock(dt_staging *a)
{
    dt_lock_release(a->lock);
    a->lock = -1;
    if (a->is_guarded) {
        dt_beneath_unguard(dt_str_text(&a->folder));
        a->is_guarded = false;
    }
}

/* DT_AGAIN, DT_ENOTFOUND: the folder was taken away meanwhile; there may be another one of its name. */
static dt_status lock_folder(dt_staging *a)
{
    const char *folder = dt_str_text(&a->folder);
    DT_TRY(dt_beneath_guard(folder));
    a->is_guarded = true;
    const dt_status st = dt_lock_acquire(dt_str_text(&a->lock_path), &a->lock);
    if (st != DT_OK) {
        return st == DT_AGAIN ? fail_in_use(a) : st;
    }
    return is_in_place(a) ? DT_OK : DT_AGAIN;
}

static dt_status try_lock(dt_staging *a, dt_staging_kind kind)
{
    const char *folder = dt_str_text(&a->folder);
    DT_TRY(kind == DT_STAGING_FOLDER ? dt_fs_mkdirs(folder) : dt_fs_mkdir(folder));
    dt_status st = check_ours(a); /* another process may have been faster */
    if (st == DT_OK) {
        st = lock_folder(a);
    }
    if (st != DT_OK) {
        release_lock(a);
        dt_fs_try_remove_folder(folder); /* an empty one: it may be the one made above */
    }
    return st == DT_ENOTFOUND ? DT_AGAIN : st;
}

static dt_status claim_folder(dt_staging *a, dt_staging_kind kind)
{
    dt_status st = DT_AGAIN;
    for (int i = 0; i < TRIES && st == DT_AGAIN; i++) {
        DT_TRY(check_all(a));
        st = try_lock(a, kind);
    }
    return st != DT_AGAIN ? st
                          : DT_FAIL(DT_EIO, "cannot lock %s, which is repeatedly removed", dt_str_text(&a->folder));
}

/* What was left there by a process that died goes. */
static dt_status clear_leftovers(const dt_staging *a, dt_staging_kind kind)
{
    const char *path = dt_str_text(&a->path);
    DT_TRY(check_free(dt_str_text(&a->out))); /* the process that held the lock may have come to an end */
    if (dt_fs_kind_of(path) != DT_FS_NOTHING) {
        dt_log(DT_LOG_INFO, "%s was left by a process that did not finish: starting over", dt_str_text(&a->folder));
        DT_TRY(dt_fs_remove_tree(path));
    }
    return kind == DT_STAGING_FOLDER ? dt_fs_mkdir(path) : DT_OK;
}

dt_status dt_staging_open(const char *out, dt_staging_kind kind, dt_staging **out_p)
{
    dt_staging *a = dt_alloc(sizeof(*a));
    if (a == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to write %s", out);
    }
    a->lock = -1;
    dt_status st = make_names(out, kind, a);
    if (st == DT_OK) {
        st = claim_folder(a, kind);
    }
    if (st == DT_OK) {
        st = clear_leftovers(a, kind);
    }
    if (st != DT_OK) {
        dt_staging_close(a);
        return st;
    }
    *out_p = a;
    return DT_OK;
}

const char *dt_staging_path(const dt_staging *a)
{
    return dt_str_text(&a->path);
}

const char *dt_staging_out(const dt_staging *a)
{
    return dt_str_text(&a->out);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

dt_status dt_staging_commit(dt_staging *a)
{
    if (!is_in_place(a)) {
        return DT_FAIL(DT_EINVAL, "%s was removed while %s was written", dt_str_text(&a->folder), dt_str_text(&a->out));
    }
    DT_TRY(check_free(dt_str_text(&a->out)));
    return dt_fs_rename(dt_str_text(&a->path), dt_str_text(&a->out));
}

/* The lock goes last, still held, so that no process takes a folder that is half removed; and the folder only if it is
 * empty: the next one may lie there. */
static void remove_folder(const dt_staging *a)
{
    dt_error kept;
    dt_error_save(&kept, DT_OK); /* the reason for giving up, not what cleaning up may report */
    if (dt_fs_remove_tree(dt_str_text(&a->path)) == DT_OK) {
        dt_fs_try_remove(dt_str_text(&a->lock_path));
        dt_fs_try_remove_folder(dt_str_text(&a->folder));
    }
    (void)!dt_error_restore(&kept);
}

void dt_staging_close(dt_staging *a)
{
    if (a == NULL) {
        return;
    }
    if (a->lock >= 0 && is_in_place(a)) {
        remove_folder(a);
    }
    release_lock(a);
    free_names(a);
    dt_free(a);
}
