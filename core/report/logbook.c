/* SPDX-License-Identifier: Apache-2.0
 *
 * See logbook.h.
 */
#include <config.h>

#include "report/logbook.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static const dt_records no_records;

/* The folder's own name, also of "." and "runs/x/". */
static char *name_of(const char *path)
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
        return DT_FAIL(DT_ENOTFOUND, "%s: no such run directory; `dtrain runs` lists those there are", path);
    }
    out->path = dt_strdup(path);
    out->name = name_of(path);
    dt_status st = out->path != NULL && out->name != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %s", path);
    if (st == DT_OK) {
        st = read_flat(out, "meta.json", true, &out->meta);
    }
    if (st == DT_ENOTFOUND) {
        st = DT_FAIL(DT_ENOTFOUND, "%s is no run directory: it has no meta.json", path);
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
        st = st == DT_OK && s->reader == NULL ? DT_DONE : st;
    } else {
        st = dt_records_poll(s->reader);
    }
    if (st < 0) {
        return st;
    }
    dt_run_state_get(s->path, &s->meta, &s->config, &s->progress, s->records, &s->state);
    return s->state.condition != before ? DT_OK : st;
}

void dt_logbook_close(dt_logbook *s)
{
    dt_records_close(s->reader);
    dt_flat_fini(&s->meta);
    dt_flat_fini(&s->config);
    dt_flat_fini(&s->progress);
    dt_free(s->path);
    dt_free(s->name);
    *s = (dt_logbook){.records = &no_records};
}
