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

static const char FILE_NAME[] = "study.json", LOCK_NAME[] = "study.lock";

static dt_status write_journal(const char *folder, const char *kind, const dt_words *identity)
{
    dt_str path = {0}, text = {0};
    dt_json_out o = {.s = &text};
    dt_str_addf(&path, "%s/%s", folder, FILE_NAME);
    dt_json_obj(&o, NULL);
    dt_json_str(&o, "study", kind);
    dt_json_str(&o, "dtrain", PACKAGE_VERSION);
    dt_json_arr(&o, "identity");
    for (uint32_t i = 0; i < identity->n; i++) {
        dt_json_str(&o, NULL, identity->word[i]);
    }
    dt_json_end(&o, ']');
    dt_json_end(&o, '}');
    dt_str_add(&text, "\n");
    const dt_status st = dt_fs_write_text(&path, &text);
    dt_str_fini(&path);
    dt_str_fini(&text);
    return st;
}

static dt_status check_same(const char *folder, const char *kind, const dt_words *identity, const dt_flat *f)
{
    if (strcmp(dt_flat_text(f, "study"), kind) != 0) {
        return DT_FAIL(DT_ECONFIG, "%s holds the trainings of dtrain %s, not of dtrain %s; use another --run-dir",
                       folder, dt_flat_text(f, "study"), kind);
    }
    for (uint32_t i = 0;; i++) {
        char path[32];
        snprintf(path, sizeof(path), "identity/%u", i);
        const dt_flat_item *item = dt_flat_find(f, path);
        const char *now = i < identity->n ? identity->word[i] : NULL;
        if (item == NULL && now == NULL) {
            return DT_OK;
        }
        if (item == NULL || now == NULL || strcmp(item->text, now) != 0) {
            return DT_FAIL(DT_ECONFIG,
                           "%s was started with other arguments: \"%s\" there, \"%s\" now; results of both would be "
                           "mixed, use another --run-dir",
                           folder, item != NULL ? item->text : "nothing", now != NULL ? now : "nothing");
        }
    }
}

/* A folder that something else is in is not taken: neither a run nor files of the user. */
static dt_status check_free(const char *folder)
{
    char **name = NULL;
    size_t n = 0, n_other = 0;
    bool has_journal = false;
    DT_TRY(dt_fs_list(folder, &name, &n));
    for (size_t i = 0; i < n; i++) {
        n_other += strcmp(name[i], LOCK_NAME) != 0;
        has_journal = has_journal || strcmp(name[i], FILE_NAME) == 0;
    }
    dt_fs_list_free(name, n);
    return n_other == 0 || has_journal
               ? DT_OK
               : DT_FAIL(DT_ECONFIG, "%s is not empty and has no %s; use a new folder as --run-dir", folder, FILE_NAME);
}

static dt_status check_or_write(const char *folder, const char *kind, const dt_words *identity)
{
    dt_str path = {0};
    dt_flat f = {0};
    dt_str_addf(&path, "%s/%s", folder, FILE_NAME);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK && !dt_fs_is_file(dt_str_text(&path))) {
        st = write_journal(folder, kind, identity);
    } else if (st == DT_OK) {
        st = dt_flat_read(dt_str_text(&path), &f);
        if (st == DT_OK) {
            st = check_same(folder, kind, identity, &f);
        }
    }
    dt_flat_fini(&f);
    dt_str_fini(&path);
    return st;
}

dt_status dt_journal_claim(const char *folder, const char *kind, const dt_words *identity, int *lock_p)
{
    dt_str path = {0};
    int lock = -1;
    DT_TRY(dt_words_status(identity));
    DT_TRY(dt_fs_mkdirs(folder));
    DT_TRY(dt_beneath_guard(folder)); /* for good: a study that continues may have another author */
    DT_TRY(check_free(folder));
    dt_str_addf(&path, "%s/%s", folder, LOCK_NAME);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_lock_acquire(dt_str_text(&path), &lock);
    }
    dt_str_fini(&path);
    if (st == DT_AGAIN) {
        return DT_FAIL(DT_EIO, "%s is in use by another dtrain %s: wait until it ends, or use another --run-dir",
                       folder, kind);
    }
    DT_TRY(st);
    st = check_or_write(folder, kind, identity);
    if (st < 0) {
        dt_lock_release(lock);
        return st;
    }
    *lock_p = lock;
    return DT_OK;
}

dt_status dt_journal_check_run(const char *run)
{
    const dt_fs_kind kind = dt_fs_kind_of(run);
    return kind == DT_FS_NOTHING || kind == DT_FS_FOLDER
               ? DT_OK
               : DT_FAIL(DT_EDATA, "%s is not a folder of this study, where its training would be; remove it", run);
}
