/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "run/rundir_files.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

static dt_status write_one(const char *dir, const char *name, const dt_str *text, bool only_missing, bool *is_written_p)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/%s", dir, name);
    dt_status st = dt_str_status(&path);
    *is_written_p = st == DT_OK && !(only_missing && dt_fs_kind_of(dt_str_text(&path)) != DT_FS_NOTHING);
    if (*is_written_p) {
        st = dt_fs_write_text(&path, text);
    }
    dt_str_fini(&path);
    return st;
}

/* Of this name, or a free one. */
static void keep(dt_rundir_files *f, const char *name, const dt_str *text)
{
    size_t i = 0;
    while (i < DT_RUNDIR_FILES && f->file[i].name[0] != '\0' && strcmp(f->file[i].name, name) != 0) {
        i++;
    }
    if (i < DT_RUNDIR_FILES) {
        snprintf(f->file[i].name, sizeof(f->file[i].name), "%s", name);
        dt_str_clear(&f->file[i].text);
        dt_str_add_n(&f->file[i].text, dt_str_text(text), text->bytes);
    }
}

dt_status dt_rundir_files_write(dt_rundir_files *f, const char *dir, const char *name, const dt_str *text)
{
    bool is_written = false;
    keep(f, name, text);
    return write_one(dir, name, text, false, &is_written);
}

void dt_rundir_files_restore(const dt_rundir_files *f, const char *dir)
{
    if (!dt_fs_is_dir(dir)) {
        return;
    }
    for (size_t i = 0; i < DT_RUNDIR_FILES && f->file[i].name[0] != '\0'; i++) {
        bool is_written = false;
        if (dt_str_status(&f->file[i].text) != DT_OK) {
            continue;
        }
        const dt_status st = write_one(dir, f->file[i].name, &f->file[i].text, true, &is_written);
        if (st < 0) {
            dt_log(DT_LOG_WARN, "%s/%s was removed during the run and cannot be written again: %s", dir,
                   f->file[i].name, dt_error_text());
            dt_error_clear();
        } else if (is_written) {
            dt_log(DT_LOG_WARN, "%s/%s was removed by another program during the run; it is written again", dir,
                   f->file[i].name);
        }
    }
}

void dt_rundir_files_fini(dt_rundir_files *f)
{
    for (size_t i = 0; i < DT_RUNDIR_FILES; i++) {
        dt_str_fini(&f->file[i].text);
    }
}
