/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/journal.h"

#include "base/beneath.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/lock.h"
#include "telemetry/report/flat.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char FILE_NAME[] = "study.json", LOCK_NAME[] = "study.lock";
static const char PART_NAME[] = "study.json.tmp."; /* dt_fs_write_atomic: until it is complete */

static dt_status write_journal(const char *folder, const dt_journal *j)
{
    dt_str path = {0}, text = {0};
    dt_json_out o = {.s = &text};
    dt_str_addf(&path, "%s/%s", folder, FILE_NAME);
    dt_json_obj(&o, NULL);
    dt_json_str(&o, "study", j->kind);
    dt_json_str(&o, "dtrain", PACKAGE_VERSION);
    dt_json_arr(&o, "identity");
    for (uint32_t i = 0; i < j->identity->n; i++) {
        dt_json_str(&o, NULL, j->identity->word[i]);
    }
    dt_json_end(&o, ']');
    dt_json_end(&o, '}');
    dt_str_add(&text, "\n");
    const dt_status st = dt_fs_write_text(&path, &text);
    dt_str_fini(&path);
    dt_str_fini(&text);
    return st;
}

/* "trials" of "trials = 6". */
#define EQUALS " = " /* between key and value of a word */

static size_t key_bytes(const char *word)
{
    const char *end = strstr(word, EQUALS);
    return end != NULL ? (size_t)(end - word) : strlen(word);
}

static bool has_same_key(const char *a, const char *b)
{
    const size_t n = key_bytes(a);
    return n == key_bytes(b) && strncmp(a, b, n) == 0;
}

/* The word now for one of then, number i; NULL: none. */
static const char *find_now(const dt_journal *j, const char *then, uint32_t i)
{
    if (!j->is_keyed) {
        return i < j->identity->n ? j->identity->word[i] : NULL;
    }
    for (uint32_t k = 0; k < j->identity->n; k++) {
        if (has_same_key(then, j->identity->word[k])) {
            return j->identity->word[k];
        }
    }
    return NULL;
}

static const char *find_then(const dt_journal *j, const dt_flat *f, uint32_t k)
{
    char path[32];
    for (uint32_t i = j->is_keyed ? 0 : k;; i++) {
        snprintf(path, sizeof(path), "identity/%u", i);
        const dt_flat_item *item = dt_flat_find(f, path);
        if (item == NULL || !j->is_keyed || has_same_key(item->text, j->identity->word[k])) {
            return item != NULL ? item->text : NULL;
        }
    }
}

/* Is it the key that may grow, and did it? */
static bool has_grown(const dt_journal *j, const char *then, const char *now)
{
    int64_t before = 0, after = 0;
    const size_t n = j->growing != NULL ? strlen(j->growing) : 0;
    const char *was = strstr(then, EQUALS), *is = strstr(now, EQUALS);
    return n > 0 && n == key_bytes(then) && strncmp(then, j->growing, n) == 0 && was != NULL && is != NULL &&
           dt_parse_whole(was + strlen(EQUALS), &before) && dt_parse_whole(is + strlen(EQUALS), &after) &&
           after > before;
}

static dt_status fail_other(const char *folder, const dt_journal *j, const char *then, const char *now)
{
    const char *any = then != NULL ? then : now;
    if (!j->is_keyed) {
        return DT_FAIL(DT_ECONFIG,
                       "%s was started with other arguments: \"%s\" there, \"%s\" now; results of both would be mixed, "
                       "use another --run-dir",
                       folder, then != NULL ? then : "nothing", now != NULL ? now : "nothing");
    }
    return DT_FAIL(
        DT_ECONFIG,
        "the file of the %s in %s has changed, or is another one: %.*s: \"%s\" there, \"%s\" now; %s%s, restore it "
        "or use another --run-dir",
        j->kind, folder, (int)key_bytes(any), any, then != NULL ? then : "nothing", now != NULL ? now : "nothing",
        j->growing != NULL ? "only a larger number of " : "nothing may change", j->growing != NULL ? j->growing : "");
}

static dt_status check_same(const char *folder, const dt_journal *j, const dt_flat *f, bool *has_grown_p)
{
    char path[32];
    if (strcmp(dt_flat_text(f, "study"), j->kind) != 0) {
        return DT_FAIL(DT_ECONFIG, "%s holds the trainings of dtrain %s, not of dtrain %s; use another --run-dir",
                       folder, dt_flat_text(f, "study"), j->kind);
    }
    for (uint32_t i = 0;; i++) {
        snprintf(path, sizeof(path), "identity/%u", i);
        const dt_flat_item *then = dt_flat_find(f, path);
        const char *now = then != NULL ? find_now(j, then->text, i) : NULL;
        if (then == NULL) {
            break;
        }
        const bool is_more = now != NULL && has_grown(j, then->text, now);
        *has_grown_p = *has_grown_p || is_more;
        if (now == NULL || (strcmp(then->text, now) != 0 && !is_more)) {
            return fail_other(folder, j, then->text, now);
        }
    }
    for (uint32_t k = 0; k < j->identity->n; k++) {
        if (find_then(j, f, k) == NULL) {
            return fail_other(folder, j, NULL, j->identity->word[k]);
        }
    }
    return DT_OK;
}

/* A folder that something else is in is not taken: neither a run nor files of the user. */
static dt_status check_free(const char *folder)
{
    char **name = NULL;
    size_t n = 0, n_other = 0;
    bool has_journal = false;
    DT_TRY(dt_fs_list(folder, &name, &n));
    for (size_t i = 0; i < n; i++) {
        /* another task that begins now may be writing the file, or have been killed then */
        const bool is_own = strcmp(name[i], LOCK_NAME) == 0 || strncmp(name[i], PART_NAME, sizeof(PART_NAME) - 1) == 0;
        n_other += !is_own;
        has_journal = has_journal || strcmp(name[i], FILE_NAME) == 0;
    }
    dt_fs_list_free(name, n);
    return n_other == 0 || has_journal
               ? DT_OK
               : DT_FAIL(DT_ECONFIG, "%s is not empty and has no %s; use a new folder as --run-dir", folder, FILE_NAME);
}

/* may_write: no other process is in the folder. */
static dt_status check_or_write(const char *folder, const dt_journal *j, bool may_write)
{
    bool has_more = false;
    dt_str path = {0};
    dt_flat f = {0};
    dt_str_addf(&path, "%s/%s", folder, FILE_NAME);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK && !dt_fs_is_file(dt_str_text(&path))) {
        st = write_journal(folder, j);
    } else if (st == DT_OK) {
        st = dt_flat_read(dt_str_text(&path), &f);
        if (st == DT_OK) {
            st = check_same(folder, j, &f, &has_more);
        }
        if (st == DT_OK && has_more) {
            st = may_write
                     ? write_journal(folder, j)
                     : DT_FAIL(DT_EIO, "%s is in use by tasks with fewer %s: wait until they end", folder, j->growing);
        }
    }
    dt_flat_fini(&f);
    dt_str_fini(&path);
    return st;
}

/* Alone, or shared: then the first process checks it alone, and the others wait for that. A child of a process that was
 * killed has its lock until it has replaced its program: a moment is waited for that, too. */
static dt_status lock_folder(const char *path, const dt_journal *j, int *lock_p, bool *is_alone_p)
{
    enum { TRIES = 200, TRIES_ALONE = 40 };
    const struct timespec nap = {.tv_nsec = 50000000};
    for (int i = 0;; i++) {
        *is_alone_p = true;
        dt_status st = dt_lock_acquire(path, lock_p);
        if (st == DT_AGAIN && j->is_shared) {
            *is_alone_p = false;
            dt_error_clear();
            st = dt_lock_acquire_shared(path, lock_p);
        }
        if (st != DT_AGAIN || i == (j->is_shared ? TRIES : TRIES_ALONE)) {
            return st;
        }
        dt_error_clear();
        nanosleep(&nap, NULL);
    }
}

dt_status dt_journal_claim(const char *folder, const dt_journal *j, int *lock_p)
{
    dt_str path = {0};
    int lock = -1;
    bool is_alone = true;
    DT_TRY(dt_words_status(j->identity));
    DT_TRY(dt_fs_mkdirs(folder));
    DT_TRY(dt_beneath_guard(folder)); /* for good: a study that continues may have another author */
    DT_TRY(check_free(folder));
    dt_str_addf(&path, "%s/%s", folder, LOCK_NAME);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = lock_folder(dt_str_text(&path), j, &lock, &is_alone);
    }
    dt_str_fini(&path);
    if (st == DT_AGAIN) {
        return DT_FAIL(DT_EIO, "%s is in use by another dtrain %s: wait until it ends, or use another --run-dir",
                       folder, j->kind);
    }
    DT_TRY(st);
    st = check_or_write(folder, j, is_alone);
    if (st == DT_OK && is_alone && j->is_shared) {
        st = dt_lock_share(lock);
    }
    if (st < 0) {
        dt_lock_release(lock);
        return st;
    }
    *lock_p = lock;
    return DT_OK;
}

bool dt_journal_is_of(const char *folder, const char *kind)
{
    dt_str path = {0};
    dt_flat f = {0};
    dt_str_addf(&path, "%s/%s", folder, FILE_NAME);
    const bool is = dt_str_status(&path) == DT_OK && dt_fs_is_file(dt_str_text(&path)) &&
                    dt_flat_read(dt_str_text(&path), &f) == DT_OK && strcmp(dt_flat_text(&f, "study"), kind) == 0;
    dt_error_clear();
    dt_flat_fini(&f);
    dt_str_fini(&path);
    return is;
}

dt_status dt_journal_check_run(const char *run)
{
    const dt_fs_kind kind = dt_fs_kind_of(run);
    return kind == DT_FS_NOTHING || kind == DT_FS_FOLDER
               ? DT_OK
               : DT_FAIL(DT_EDATA, "%s is not a folder of this study, where its training would be; remove it", run);
}
