/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/copy_run.h"

#include "base/err.h"
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static dt_status copy_bytes(int in, const char *from, int out, const char *to)
{
    char buffer[65536];
    while (true) {
        const ssize_t n = read(in, buffer, sizeof(buffer));
        if (n < 0 && errno != EINTR) {
            return DT_FAIL(DT_EIO, "cannot read %s: %s", from, strerror(errno));
        }
        if (n == 0) {
            return DT_OK;
        }
        if (n > 0) {
            DT_TRY(dt_fs_write(out, to, buffer, (size_t)n));
        }
    }
}

static dt_status copy_file(const char *from, const char *to)
{
    int in = -1, out = -1;
    DT_TRY(dt_fs_open(from, O_RDONLY | O_CLOEXEC, &in));
    dt_status st = dt_fs_create(to, &out);
    if (st == DT_OK) {
        st = copy_bytes(in, from, out, to);
        const dt_status closed = dt_fs_sync_close(out, to);
        if (st == DT_OK) {
            st = closed;
        }
    }
    close(in);
    return st;
}

static bool is_lock(const char *name)
{
    const size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, ".lock") == 0;
}

static dt_status copy_tree(const char *from, const char *to);

static dt_status copy_entry(const char *from, const char *to, const char *name)
{
    dt_str source = {0}, target = {0};
    dt_str_addf(&source, "%s/%s", from, name);
    dt_str_addf(&target, "%s/%s", to, name);
    dt_status st = dt_str_status(&source);
    if (st == DT_OK) {
        st = dt_str_status(&target);
    }
    if (st == DT_OK) {
        const dt_fs_kind kind = dt_fs_kind_of(dt_str_text(&source));
        if (kind == DT_FS_FOLDER) {
            st = copy_tree(dt_str_text(&source), dt_str_text(&target));
        } else if (kind == DT_FS_FILE && !is_lock(name)) {
            st = copy_file(dt_str_text(&source), dt_str_text(&target));
        }
    }
    dt_str_fini(&source);
    dt_str_fini(&target);
    return st;
}

static dt_status copy_tree(const char *from, const char *to)
{
    char **name = NULL;
    size_t n = 0;
    DT_TRY(dt_fs_mkdir(to));
    DT_TRY(dt_fs_list(from, &name, &n));
    dt_status st = DT_OK;
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        st = copy_entry(from, to, name[i]);
    }
    dt_fs_list_free(name, n);
    return st == DT_OK ? dt_fs_sync_dir(to) : st;
}

dt_status dt_copy_run(const char *from, const char *to)
{
    dt_str partial = {0};
    if (dt_fs_is_dir(to)) {
        return DT_OK;
    }
    dt_str_addf(&partial, "%s.partial", to);
    dt_status st = dt_str_status(&partial);
    if (st == DT_OK) {
        st = dt_fs_remove_tree(dt_str_text(&partial)); /* of a copy that was killed */
    }
    if (st == DT_OK) {
        st = copy_tree(from, dt_str_text(&partial));
    }
    if (st == DT_OK) {
        st = dt_fs_rename(dt_str_text(&partial), to);
    }
    dt_str_fini(&partial);
    return st;
}
