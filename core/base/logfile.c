/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "base/logfile.h"

#include "base/beneath.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct dt_logfile {
    FILE *file; /* NULL: it could not be opened again */
    dt_logfile_opts o;
    uint64_t bytes, n_lost;
    bool is_crash_log, was_lost;
    char *path;        /* and after it in the same block: */
    char *from, *to;   /* names of older files, made without allocating */
    size_t name_bytes; /* of from and to */
};

enum { NUMBER_BYTES = 16 }; /* ".4294967295" and its end */

dt_status dt_logfile_open(const char *path, const dt_logfile_opts *o, dt_logfile **out_p)
{
    const size_t bytes = strlen(path) + 1;
    dt_logfile *f = dt_alloc(sizeof(*f));
    char *names = dt_alloc(3 * (bytes + NUMBER_BYTES));
    if (f == NULL || names == NULL) {
        dt_free(f);
        dt_free(names);
        return DT_FAIL(DT_ENOMEM, "out of memory for the log %s", path);
    }
    struct stat s;
    f->o = *o;
    f->name_bytes = bytes + NUMBER_BYTES;
    f->path = names;
    f->from = names + f->name_bytes;
    f->to = f->from + f->name_bytes;
    memcpy(f->path, path, bytes);
    const dt_status st = dt_fs_open_stream(path, O_WRONLY | O_CREAT | O_APPEND, "a", &f->file);
    if (st < 0) {
        dt_logfile_close(f);
        return st;
    }
    f->bytes = fstat(fileno(f->file), &s) == 0 ? (uint64_t)s.st_size : 0;
    *out_p = f;
    return DT_OK;
}

void dt_logfile_close(dt_logfile *f)
{
    if (f == NULL) {
        return;
    }
    if (f->is_crash_log) {
        dt_crash_set_log(-1);
    }
    if (f->file != NULL) {
        fclose(f->file);
    }
    dt_free(f->path);
    dt_free(f);
}

/* "FILE.i"; FILE itself for 0. */
static const char *numbered_name(const dt_logfile *f, uint32_t i, char *out)
{
    snprintf(out, f->name_bytes, i > 0 ? "%s.%u" : "%s", f->path, i);
    return out;
}

static void set_crash_log(const dt_logfile *f)
{
    if (f->is_crash_log) {
        dt_crash_set_log(f->file != NULL ? fileno(f->file) : -1);
    }
}

void dt_logfile_log_crashes(dt_logfile *f)
{
    f->is_crash_log = true;
    set_crash_log(f);
}

static void rotate_log_file(dt_logfile *f)
{
    if (f->is_crash_log) {
        dt_crash_set_log(-1);
    }
    if (f->file != NULL) {
        fclose(f->file);
    }
    for (uint32_t i = f->o.keep; i > 0; i--) { /* the oldest is written over */
        dt_fs_try_move(numbered_name(f, i - 1, f->from), numbered_name(f, i, f->to));
    }
    struct stat s;
    const int fd = dt_beneath_open(f->path, O_WRONLY | O_CREAT | O_APPEND | (f->o.keep > 0 ? 0 : O_TRUNC), 0666);
    f->file = fd >= 0 ? fdopen(fd, "a") : NULL;
    set_crash_log(f);
    f->bytes = f->file != NULL && fstat(fileno(f->file), &s) == 0 ? (uint64_t)s.st_size : 0;
    if (f->bytes > 0) { /* it could not be renamed: not at every line again */
        f->o.max_bytes = 0;
    }
}

/* Lines that a full disk refuses are counted, and reported once there is room again. */
static void write_bytes(dt_logfile *f, const char *now, const char *line, size_t bytes)
{
    char short_line[512], lost[128] = "";
    char *text = bytes < sizeof(short_line) ? short_line : malloc(bytes + 1); /* dt_alloc may log */
    if (f->file == NULL || text == NULL) {
        f->n_lost++;
        return;
    }
    if (f->n_lost > 0) {
        snprintf(lost, sizeof(lost), "%s warn  %llu lines could not be written here\n", now,
                 (unsigned long long)f->n_lost);
    }
    snprintf(text, bytes + 1, "%s %s\n", now, line);
    const bool is_noted = lost[0] == '\0' || dt_fs_append(fileno(f->file), &f->bytes, lost, strlen(lost));
    f->n_lost = is_noted ? 0 : f->n_lost;
    if (!(is_noted && dt_fs_append(fileno(f->file), &f->bytes, text, bytes))) {
        f->n_lost++;
    }
    if (text != short_line) {
        free(text);
    }
}

/* Another program removed, replaced or cut it: lines continue in a new file, or at the end. */
static void check_file(dt_logfile *f, const char *now)
{
    struct stat s;
    const dt_fs_fate fate = f->file != NULL ? dt_fs_check_appended(fileno(f->file), f->path, f->bytes) : DT_FS_KEPT;
    if (fate == DT_FS_KEPT) {
        return;
    }
    if (fate == DT_FS_GONE) {
        const int fd = dt_beneath_open(f->path, O_WRONLY | O_CREAT | O_APPEND, 0666);
        FILE *again = fd >= 0 ? fdopen(fd, "a") : NULL;
        if (again == NULL) {
            (void)(fd >= 0 && close(fd));
            return;
        }
        if (f->is_crash_log) {
            dt_crash_set_log(-1);
        }
        fclose(f->file);
        f->file = again;
        set_crash_log(f);
    }
    f->bytes = fstat(fileno(f->file), &s) == 0 ? (uint64_t)s.st_size : 0;
    if (!f->was_lost) {
        static const char line[] = "warn  another program removed, replaced or cut this file; lines before are lost";
        f->was_lost = true;
        write_bytes(f, now, line, strlen(now) + 1 + strlen(line) + 1);
    }
}

bool dt_logfile_is_recreated(const dt_logfile *f)
{
    return f != NULL && f->was_lost;
}

void dt_logfile_write_line(dt_logfile *f, const char *line)
{
    char now[32];
    if (f == NULL) {
        return;
    }
    dt_clock_utc(now, sizeof(now));
    check_file(f, now);
    const size_t bytes = strlen(now) + 1 + strlen(line) + 1;
    if (f->o.max_bytes > 0 && f->bytes > 0 && f->bytes + bytes > f->o.max_bytes) {
        rotate_log_file(f);
    }
    write_bytes(f, now, line, bytes);
}
