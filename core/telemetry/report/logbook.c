/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/logbook.h"

#include "base/err.h"
#include "base/beneath.h"
#include "base/fs.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static const dt_records no_records;

/* The folder's own name, also of "." and "runs/x/". */
static char *name_of_folder(const char *path)
{
    char *full = realpath(path, NULL);
    const char *text = full != NULL ? full : path;
    const char *slash = strrchr(text, '/');
    char *name = dt_strdup(slash != NULL && slash[1] != '\0' ? slash + 1 : text);
    free(full);
    return name;
}

static dt_status read_flat(const dt_logbook *s, const char *file, bool must, dt_flat *out)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/%s", s->path, file);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_flat_read(dt_str_text(&path), out);
    }
    dt_str_fini(&path);
    if (st == DT_ENOTFOUND && !must) {
        dt_error_clear();
        st = DT_OK;
    }
    return st;
}

static dt_status open_records(dt_logbook *s)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/metrics.jsonl", s->path);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_records_open(dt_str_text(&path), &s->reader);
    }
    dt_str_fini(&path);
    if (st == DT_ENOTFOUND) {
        dt_error_clear();
        return DT_OK;
    }
    if (st == DT_OK) {
        s->records = dt_records_get(s->reader);
        st = dt_records_poll(s->reader);
    }
    return st < 0 ? st : DT_OK;
}

dt_status dt_logbook_open(const char *path, dt_logbook *out)
{
    *out = (dt_logbook){.records = &no_records};
    if (!dt_fs_is_dir(path)) {
        DT_TRY(dt_fs_check_access(path));
        return DT_FAIL(DT_ENOTFOUND, "%s: no such run directory; `dtrain runs` lists those there are", path);
    }
    out->path = dt_strdup(path);
    out->name = name_of_folder(path);
    dt_status st = out->path != NULL && out->name != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %s", path);
    if (st == DT_OK) {
        st = dt_beneath_guard(out->path);
        out->is_guarded = st == DT_OK;
    }
    if (st == DT_OK) {
        st = read_flat(out, "meta.json", true, &out->meta);
    }
    if (st == DT_ENOTFOUND) {
        st = DT_FAIL(DT_ENOTFOUND, "%s is not a run directory: it has no meta.json", path);
    }
    if (st == DT_OK) {
        st = read_flat(out, "config.origin.json", false, &out->config);
    }
    if (st == DT_OK) {
        st = read_flat(out, "progress.json", false, &out->progress);
    }
    if (st == DT_OK) {
        st = open_records(out);
    }
    if (st < 0) {
        dt_logbook_close(out);
        return st;
    }
    dt_run_state_get(out->path, &out->meta, &out->config, &out->progress, out->records, &out->state);
    return DT_OK;
}

dt_status dt_logbook_poll(dt_logbook *s)
{
    const dt_run_condition before = s->state.condition;
    dt_flat_fini(&s->meta);
    dt_flat_fini(&s->progress);
    DT_TRY(read_flat(s, "meta.json", true, &s->meta));
    DT_TRY(read_flat(s, "progress.json", false, &s->progress));
    dt_status st = DT_OK;
    if (s->reader == NULL) {
        st = open_records(s);
        if (st == DT_OK && s->reader == NULL) {
            st = DT_DONE;
        }
    } else {
        st = dt_records_poll(s->reader);
    }
    if (st < 0) {
        return st;
    }
    dt_run_state_get(s->path, &s->meta, &s->config, &s->progress, s->records, &s->state);
    return s->state.condition != before ? DT_OK : st;
}

/* The number in front of "-<id><end>", which is the whole rest of the name; -1: it is of something else. */
static long number_in_name(const char *name, const char *id, const char *end)
{
    char *rest = NULL;
    const long n = strtol(name, &rest, 10);
    const size_t bytes = strlen(id);
    const bool is_it =
        rest != name && *rest == '-' && strncmp(rest + 1, id, bytes) == 0 && strcmp(rest + 1 + bytes, end) == 0;
    return is_it ? n : -1;
}

/* Phases with the same id are distinguished by their order: in the records, and by the numbers of the files. */
static dt_status find_evaluation_file(const dt_logbook *s, const char *folder, uint32_t phase, const char *end,
                                      dt_str *path)
{
    const char *id = s->records->phase[phase].id;
    uint32_t before = 0;
    char **file = NULL;
    size_t n = 0;
    for (uint32_t i = 0; i < phase; i++) {
        before += strcmp(s->records->phase[i].id, id) == 0;
    }
    DT_TRY(dt_fs_list(folder, &file, &n));
    for (long least = 0;; before--) {
        const char *found = NULL;
        long lowest = -1;
        for (size_t i = 0; i < n; i++) {
            const long number = number_in_name(file[i], id, end);
            if (number >= least && (lowest < 0 || number < lowest)) {
                lowest = number;
                found = file[i];
            }
        }
        if (found == NULL || before == 0) {
            if (found != NULL) {
                dt_str_addf(path, "%s/%s", folder, found);
            }
            break;
        }
        least = lowest + 1;
    }
    dt_fs_list_free(file, n);
    return dt_str_status(path);
}

dt_status dt_logbook_read_evaluation(const dt_logbook *s, uint32_t phase, const char *end, dt_flat *out)
{
    dt_str folder = {0}, path = {0};
    *out = (dt_flat){0};
    dt_str_addf(&folder, "%s/evaluation", s->path);
    dt_status st = dt_str_status(&folder);
    if (st == DT_OK && dt_fs_is_dir(dt_str_text(&folder))) {
        st = find_evaluation_file(s, dt_str_text(&folder), phase, end, &path);
    }
    if (st == DT_OK && path.bytes > 0) {
        st = dt_flat_read(dt_str_text(&path), out);
    }
    dt_str_fini(&folder);
    dt_str_fini(&path);
    return st;
}

void dt_logbook_close(dt_logbook *s)
{
    dt_records_close(s->reader);
    dt_flat_fini(&s->meta);
    dt_flat_fini(&s->config);
    dt_flat_fini(&s->progress);
    if (s->is_guarded) {
        dt_beneath_unguard(s->path);
    }
    dt_free(s->path);
    dt_free(s->name);
    *s = (dt_logbook){.records = &no_records};
}
