/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/records.h"

#include "base/err.h"
#include "base/beneath.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PHASE_BYTES = 256, MAX_LINE = 4 << 20 }; /* bytes of a record */

struct dt_records_reader {
    dt_records r;
    char *path;
    FILE *file; /* NULL for a moment while it is replaced, and always of a text */
    ino_t inode;
    bool is_text;
    dt_fs_line line;
    uint64_t n_lines;
    off_t end;       /* of the last whole line */
    double raw_wall; /* of the last record, as written */
    double offset_s; /* of the processes before */
    uint32_t next;   /* the series expected now: every record has the same order */
};

static dt_status fail_no_memory(const dt_records_reader *r)
{
    return DT_FAIL(DT_ENOMEM, "out of memory for the %u records of %s", r->r.n, r->path);
}

static void clear_records(dt_records *r)
{
    for (uint32_t i = 0; i < r->n_phases; i++) {
        dt_free(r->phase[i].id);
    }
    for (uint32_t i = 0; i < r->n_series; i++) {
        dt_free(r->series[i].name);
        dt_free(r->series[i].at);
        dt_free(r->series[i].value);
    }
    dt_free(r->phase);
    dt_free(r->series);
    dt_free(r->slot);
    dt_free(r->step);
    dt_free(r->wall_s);
    *r = (dt_records){0};
}

static dt_status open_file(dt_records_reader *r)
{
    struct stat s;
    DT_TRY(dt_fs_open_stream(r->path, O_RDONLY, "r", &r->file));
    r->inode = fstat(fileno(r->file), &s) == 0 ? s.st_ino : 0;
    return DT_OK;
}

static dt_status create_reader(const char *name, dt_records_reader **out_p)
{
    dt_records_reader *r = dt_alloc(sizeof(*r));
    if (r == NULL || (r->path = dt_strdup(name)) == NULL) {
        dt_free(r);
        return DT_FAIL(DT_ENOMEM, "out of memory for the records of %s", name);
    }
    *out_p = r;
    return DT_OK;
}

dt_status dt_records_open(const char *path, dt_records_reader **out_p)
{
    dt_records_reader *r = NULL;
    DT_TRY(create_reader(path, &r));
    const dt_status st = open_file(r);
    if (st < 0) {
        dt_records_close(r);
        return st;
    }
    *out_p = r;
    return DT_OK;
}

void dt_records_close(dt_records_reader *r)
{
    if (r == NULL) {
        return;
    }
    if (r->file != NULL) {
        fclose(r->file);
    }
    clear_records(&r->r);
    dt_free(r->line.text);
    dt_free(r->path);
    dt_free(r);
}

const dt_records *dt_records_get(const dt_records_reader *r)
{
    return &r->r;
}

/* ---- one record -------------------------------------------------------------------------------------------------- */

/* Room for one more of n elements. */
static bool grow_list(void **list, uint32_t n, uint32_t *cap, size_t bytes)
{
    if (n < *cap) {
        return true;
    }
    const uint32_t wanted = *cap > 0 ? 2 * *cap : 32;
    void *grown = dt_realloc(*list, wanted * bytes);
    if (grown == NULL) {
        return false;
    }
    *list = grown;
    *cap = wanted;
    return true;
}

/* FNV-1a, spread. */
static uint32_t hash_place(uint32_t phase, const char *name)
{
    uint32_t h = 2166136261u ^ phase * 2654435761u;
    for (const char *p = name; *p != '\0'; p++) {
        h = (h ^ (uint8_t)*p) * 16777619u;
    }
    return h ^ h >> 15;
}

/* Where a name is, or the free slot where it belongs. */
static uint32_t *find_slot(dt_records *d, uint32_t phase, const char *name)
{
    for (uint32_t i = hash_place(phase, name);; i++) {
        uint32_t *s = &d->slot[i & (d->n_slots - 1)];
        d->n_looks++;
        if (*s == 0 || (d->series[*s - 1].phase == phase && strcmp(d->series[*s - 1].name, name) == 0)) {
            return s;
        }
    }
}

/* At most half of the slots are in use. */
static bool grow_slots(dt_records *d)
{
    if (d->n_slots > 2 * d->n_series) {
        return true;
    }
    const uint32_t n = d->n_slots > 0 ? 2 * d->n_slots : 64;
    uint32_t *fresh = dt_alloc_n(n, sizeof(*fresh));
    if (fresh == NULL) {
        return false;
    }
    dt_free(d->slot);
    d->slot = fresh;
    d->n_slots = n;
    for (uint32_t i = 0; i < d->n_series; i++) {
        *find_slot(d, d->series[i].phase, d->series[i].name) = i + 1;
    }
    return true;
}

static dt_series *find_or_add_series(dt_records_reader *r, uint32_t phase, const char *name)
{
    dt_records *d = &r->r;
    const uint32_t next = r->next < d->n_series ? r->next : d->n_series;
    if (next < d->n_series && d->series[next].phase == phase && strcmp(d->series[next].name, name) == 0) {
        r->next = next + 1;
        return &d->series[next];
    }
    if (!grow_slots(d)) {
        return NULL;
    }
    uint32_t *slot = find_slot(d, phase, name);
    if (*slot != 0) {
        r->next = *slot;
        return &d->series[*slot - 1];
    }
    char *copy = dt_strdup(name);
    if (copy == NULL || !grow_list((void **)&d->series, d->n_series, &d->cap_series, sizeof(*d->series))) {
        dt_free(copy);
        return NULL;
    }
    d->series[d->n_series] = (dt_series){.name = copy, .phase = phase};
    *slot = d->n_series + 1;
    r->next = d->n_series + 1;
    return &d->series[d->n_series++];
}

static bool add_value(dt_records_reader *r, const char *name, double value)
{
    dt_series *s = find_or_add_series(r, r->r.n_phases - 1, name);
    if (s == NULL) {
        return false;
    }
    if (s->n == s->cap) {
        const uint32_t cap = s->cap > 0 ? 2 * s->cap : 32;
        uint32_t *at = dt_realloc(s->at, cap * sizeof(*at));
        s->at = at != NULL ? at : s->at;
        double *v = at != NULL ? dt_realloc(s->value, cap * sizeof(*v)) : NULL;
        if (v == NULL) {
            return false;
        }
        s->value = v;
        s->cap = cap;
    }
    s->at[s->n] = r->r.n - 1;
    s->value[s->n++] = value;
    return true;
}

/* A new record; a phase begins where the id changes, or where steps do not rise. */
static bool add_record(dt_records_reader *r, const char *phase, uint64_t step, double wall_s)
{
    dt_records *d = &r->r;
    const dt_phase_records *last = d->n_phases > 0 ? &d->phase[d->n_phases - 1] : NULL;
    if (last == NULL || strcmp(last->id, phase) != 0 || step <= d->step[d->n - 1]) {
        char *id = dt_strdup(phase);
        if (id == NULL || !grow_list((void **)&d->phase, d->n_phases, &d->cap_phases, sizeof(*d->phase))) {
            dt_free(id);
            return false;
        }
        d->phase[d->n_phases++] = (dt_phase_records){.id = id, .first = d->n, .first_series = d->n_series};
    }
    if (d->n == d->cap) {
        const uint32_t cap = d->cap > 0 ? 2 * d->cap : 256;
        uint64_t *steps = dt_realloc(d->step, cap * sizeof(*steps));
        d->step = steps != NULL ? steps : d->step;
        double *wall = steps != NULL ? dt_realloc(d->wall_s, cap * sizeof(*wall)) : NULL;
        if (wall == NULL) {
            return false;
        }
        d->wall_s = wall;
        d->cap = cap;
    }
    if (wall_s < r->raw_wall) {
        r->offset_s += r->raw_wall;
    }
    r->raw_wall = wall_s;
    d->step[d->n] = step;
    d->wall_s[d->n++] = r->offset_s + wall_s;
    d->phase[d->n_phases - 1].n++;
    return true;
}

/* {"step":n,"phase":"...","wall_s":x, then names and numbers}: the three in front of the others, as record.c writes. */
static dt_status read_line(dt_records_reader *r, dt_json *j)
{
    dt_json_token t;
    char *key = NULL;
    char phase[MAX_PHASE_BYTES] = "";
    int64_t step = -1;
    bool is_record = false; /* its head is complete */
    dt_status st = DT_OK;
    while (st == DT_OK && (st = dt_json_next(j, &t)) == DT_OK && t.kind != DT_JSON_END) {
        if (t.kind == DT_JSON_KEY) {
            dt_free(key);
            key = dt_strdup(t.text);
            st = key != NULL ? DT_OK : fail_no_memory(r);
        } else if (t.kind == DT_JSON_OBJECT || t.kind == DT_JSON_OBJECT_END) {
            st = dt_json_depth(j) <= 1 ? DT_OK : dt_json_fail(j, "a record has no objects inside");
        } else if (key == NULL) {
            st = dt_json_fail(j, "expected a record");
        } else if (is_record) {
            const bool is_number = t.kind == DT_JSON_NUMBER;
            if (r->r.n_series >= DT_RECORDS_MAX_SERIES) {
                st = dt_json_fail(j, "more than %d names of numbers", DT_RECORDS_MAX_SERIES);
                break;
            }
            if ((is_number || t.kind == DT_JSON_NULL) && !add_value(r, key, is_number ? t.number : (double)NAN)) {
                st = fail_no_memory(r);
            }
        } else if (strcmp(key, "step") == 0 && t.kind == DT_JSON_NUMBER && t.is_integer && t.integer >= 0) {
            step = t.integer;
        } else if (strcmp(key, "phase") == 0 && t.kind == DT_JSON_STRING) {
            snprintf(phase, sizeof(phase), "%s", t.text);
        } else if (strcmp(key, "wall_s") == 0 && t.kind == DT_JSON_NUMBER && step >= 0) {
            is_record = true;
            st = add_record(r, phase, (uint64_t)step, t.number) ? DT_OK : fail_no_memory(r);
        }
    }
    dt_free(key);
    return st == DT_OK && !is_record ? dt_json_fail(j, "expected step, phase and wall_s") : st;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static dt_status skip_value(dt_records_reader *r) /* a line that no record is as long as */
{
    r->n_lines++;
    r->r.first_bad = r->r.n_bad++ == 0 ? r->n_lines : r->r.first_bad;
    return DT_OK;
}

static dt_status parse_line(dt_records_reader *r, const char *line, size_t bytes)
{
    dt_json *j = NULL;
    r->n_lines++;
    DT_TRY(dt_json_open_mem(line, bytes, r->path, &j));
    const dt_status st = read_line(r, j);
    dt_json_close(j);
    if (st == DT_EDATA) { /* one damaged line does not take the others with it */
        r->r.first_bad = r->r.n_bad++ == 0 ? r->n_lines : r->r.first_bad;
        dt_error_clear();
        return DT_OK;
    }
    return st;
}

static dt_status restart_file(dt_records_reader *r)
{
    clear_records(&r->r);
    fclose(r->file);
    r->file = NULL;
    r->end = 0;
    r->n_lines = 0;
    r->raw_wall = r->offset_s = 0;
    return open_file(r);
}

/* Where the last whole line ended no line ends any more: the file was cut and continued, as a resume does it. */
static bool was_file_rewritten(const dt_records_reader *r)
{
    char c = '\n';
    return r->end > 0 && (pread(fileno(r->file), &c, 1, r->end - 1) != 1 || c != '\n');
}

dt_status dt_records_poll(dt_records_reader *r)
{
    struct stat s;
    bool is_new = false;
    if (r->is_text) {
        return DT_DONE;
    }
    if (r->file == NULL || dt_beneath_stat(r->path, &s) != 0 || s.st_ino != r->inode || s.st_size < r->end ||
        was_file_rewritten(r)) {
        is_new = true;
        if (r->file == NULL) {
            DT_TRY(open_file(r));
        } else {
            DT_TRY(restart_file(r));
        }
    }
    clearerr(r->file);
    if (fseeko(r->file, r->end, SEEK_SET) != 0) {
        return DT_FAIL(DT_EIO, "cannot read %s: %s", r->path, strerror(errno));
    }
    r->r.is_cut = false;
    for (;;) {
        DT_TRY(dt_fs_read_line(r->file, MAX_LINE, &r->line));
        if (!r->line.has_end) {
            r->r.is_cut = r->line.bytes > 0;
            break;
        }
        r->end += (off_t)r->line.bytes;
        is_new = true;
        DT_TRY(r->line.is_whole ? parse_line(r, r->line.text, r->line.kept) : skip_value(r));
    }
    if (ferror(r->file)) {
        return DT_FAIL(DT_EIO, "cannot read %s: %s", r->path, strerror(errno));
    }
    return is_new ? DT_OK : DT_DONE;
}

dt_status dt_records_read_mem(const char *text, size_t bytes, const char *name, dt_records_reader **out_p)
{
    dt_records_reader *r = NULL;
    DT_TRY(create_reader(name, &r));
    r->is_text = true;
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        if (end == NULL) {
            r->r.is_cut = true;
            break;
        }
        const size_t n = (size_t)(end + 1 - (text + at));
        const dt_status st = parse_line(r, text + at, n);
        if (st < 0) {
            dt_records_close(r);
            return st;
        }
        at += n;
    }
    *out_p = r;
    return DT_OK;
}

const dt_series *dt_records_find(const dt_records *r, uint32_t phase, const char *name)
{
    for (uint32_t i = hash_place(phase, name); r->n_slots > 0; i++) {
        const uint32_t s = r->slot[i & (r->n_slots - 1)];
        if (s == 0) {
            return NULL;
        }
        if (r->series[s - 1].phase == phase && strcmp(r->series[s - 1].name, name) == 0) {
            return &r->series[s - 1];
        }
    }
    return NULL;
}

const dt_series *dt_records_find_metric(const dt_records *r, const char *metric)
{
    char name[176];
    snprintf(name, sizeof(name), "eval/%s", metric);
    for (uint32_t p = r->n_phases; p-- > 0;) {
        const dt_series *s = dt_records_find(r, p, metric);
        s = s != NULL ? s : dt_records_find(r, p, name);
        if (s != NULL && s->n > 0) {
            return s;
        }
    }
    return NULL;
}

double dt_series_last(const dt_series *s)
{
    for (uint32_t i = s != NULL ? s->n : 0; i > 0; i--) {
        if (isfinite(s->value[i - 1])) {
            return s->value[i - 1];
        }
    }
    return NAN;
}

uint32_t dt_records_series_end(const dt_records *r, uint32_t phase)
{
    return phase + 1 < r->n_phases ? r->phase[phase + 1].first_series : r->n_series;
}

uint32_t dt_records_last_evaluation(const dt_records *r, uint32_t phase)
{
    uint32_t last = UINT32_MAX;
    for (uint32_t i = r->phase[phase].first_series, end = dt_records_series_end(r, phase); i < end; i++) {
        const dt_series *s = &r->series[i];
        if (s->n > 0 && strncmp(s->name, "eval/", 5) == 0 && (last == UINT32_MAX || s->at[s->n - 1] > last)) {
            last = s->at[s->n - 1];
        }
    }
    return last;
}

bool dt_series_has_record(const dt_series *s, uint32_t record)
{
    return s->n > 0 && s->at[s->n - 1] == record;
}
