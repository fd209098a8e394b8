/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/metrics/record.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "telemetry/metrics/events.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct scalar { /* of the record being collected; names stay for the next ones */
    char *name;
    double sum;
    uint64_t n; /* 0: not given in this record */
    bool is_marked;
} scalar;

struct dt_metrics {
    FILE *file;
    char *path;
    scalar *list;
    uint32_t n, cap, next; /* next: the name expected now, because every record has the same order */
    bool is_short_of_memory;
    dt_str line;
    dt_str waiting; /* records that a full disk refused, in their order */
    dt_str last;    /* after a rewind, until the next flush: the record of the step that was rewound to, if any */
    uint64_t last_step;
    uint64_t bytes; /* of whole records in the file */
    uint64_t n_waiting, n_lost;
    bool has_reported; /* that others removed or cut the file */
    dt_events *events; /* NULL: none */
};

enum { MAX_WAITING = 4 << 20, MAX_LINE = 4 << 20 }; /* bytes; a record has a few thousand */

static dt_status fail_io(const dt_metrics *m, const char *verb)
{
    return DT_FAIL(DT_EIO, "cannot %s %s: %s", verb, m->path, strerror(errno));
}

dt_status dt_metrics_open(const char *path, dt_metrics **out_p)
{
    dt_metrics *m = dt_alloc(sizeof(*m));
    if (m == NULL || (m->path = dt_strdup(path)) == NULL) {
        dt_free(m);
        return DT_FAIL(DT_ENOMEM, "out of memory for the metrics of %s", path);
    }
    struct stat s;
    dt_status st = dt_fs_open_stream(path, O_RDWR | O_CREAT | O_APPEND, "a+", &m->file);
    if (st == DT_OK && fstat(fileno(m->file), &s) != 0) {
        st = fail_io(m, "open");
    }
    if (st < 0) {
        dt_metrics_close(m);
        return st;
    }
    m->bytes = (uint64_t)s.st_size;
    *out_p = m;
    return DT_OK;
}

/* Another program removed, replaced or cut the file: records continue in a new one, or after the last whole one. */
static void check_file_replaced(dt_metrics *m)
{
    FILE *again = NULL;
    const dt_fs_fate fate = dt_fs_check_appended(fileno(m->file), m->path, m->bytes);
    if (fate == DT_FS_KEPT) {
        return;
    }
    if (fate == DT_FS_GONE) {
        if (dt_fs_open_stream(m->path, O_RDWR | O_CREAT | O_APPEND, "a+", &again) < 0) {
            dt_error_clear(); /* its folder is gone, too: the next save reports it */
            return;
        }
        fclose(m->file);
        m->file = again;
    }
    m->bytes = dt_fs_whole_lines_bytes(fileno(m->file));
    if (!m->has_reported) {
        dt_log(DT_LOG_WARN,
               "%s was %s by another program; records from now on are written to %s, those before are lost", m->path,
               fate == DT_FS_GONE ? "removed or replaced" : "cut", fate == DT_FS_GONE ? "a new file" : "its end");
    }
    m->has_reported = true;
}

/* What waits goes first; records are never torn, and none of them ends a run. */
static void write_pending(dt_metrics *m)
{
    check_file_replaced(m);
    if (!dt_fs_append(fileno(m->file), &m->bytes, dt_str_text(&m->waiting), m->waiting.bytes)) {
        return;
    }
    if (m->n_waiting > 1 || m->n_lost > 0) {
        dt_log(DT_LOG_WARN, "%s is written again, %llu records late, %llu lost", m->path,
               (unsigned long long)m->n_waiting, (unsigned long long)m->n_lost);
    }
    dt_str_clear(&m->waiting);
    m->n_waiting = m->n_lost = 0;
}

static void add_record(dt_metrics *m)
{
    if (m->waiting.bytes + m->line.bytes > MAX_WAITING) {
        m->n_lost++;
    } else {
        dt_str_add_n(&m->waiting, dt_str_text(&m->line), m->line.bytes);
        m->n_waiting++;
    }
    write_pending(m);
    if (m->n_waiting == 1) { /* once for each time that the disk is full */
        const char *reason = strerror(errno), *remedy = dt_fs_write_advice(reason);
        dt_log(DT_LOG_WARN, "cannot write %s: %s; training continues, its records are kept in memory%s%s", m->path,
               reason, remedy != NULL ? ": " : "", remedy != NULL ? remedy : "");
    }
}

void dt_metrics_close(dt_metrics *m)
{
    if (m == NULL) {
        return;
    }
    if (m->file != NULL && m->n_waiting > 0) {
        write_pending(m);
    }
    if (m->file != NULL) {
        fclose(m->file);
    }
    if (m->n_waiting > 0) {
        dt_log(DT_LOG_WARN, "%llu records could not be written to %s", (unsigned long long)(m->n_waiting + m->n_lost),
               m->path);
    }
    dt_str_fini(&m->waiting);
    dt_str_fini(&m->last);
    for (uint32_t i = 0; i < m->n; i++) {
        dt_free(m->list[i].name);
    }
    dt_events_close(m->events);
    dt_free(m->list);
    dt_str_fini(&m->line);
    dt_free(m->path);
    dt_free(m);
}

typedef struct place { /* while records are read: in which of the phases of one name */
    const char *phase;
    bool is_inside;
    int64_t step;
    uint32_t n; /* of them so far */
} place;

/* Step and phase of a record (a line of ours); false where it is none, as one that was cut by a crash. */
static bool read_record(const char *line, size_t bytes, const char *phase, int64_t *step_p, bool *is_same_p)
{
    dt_json *j = NULL;
    dt_json_token t;
    char key[32] = "";
    *step_p = -1;
    *is_same_p = false;
    if (dt_json_open_mem(line, bytes, "record", &j) < 0) {
        return false;
    }
    dt_status st = DT_OK;
    while ((st = dt_json_next(j, &t)) == DT_OK && t.kind != DT_JSON_END) {
        if (t.kind == DT_JSON_KEY) {
            snprintf(key, sizeof(key), "%s", t.text);
        } else if (t.kind == DT_JSON_NUMBER && strcmp(key, "step") == 0) {
            *step_p = t.integer;
        } else if (t.kind == DT_JSON_STRING && strcmp(key, "phase") == 0) {
            *is_same_p = strcmp(t.text, phase) == 0;
        }
    }
    dt_json_close(j);
    return st == DT_OK;
}

/* Steps of a phase grow: where they do not, the next one of its name began. */
static bool is_kept_record(const char *line, size_t bytes, place *at, uint32_t nth, uint64_t step)
{
    int64_t found = -1;
    bool is_same = false;
    if (!read_record(line, bytes, at->phase, &found, &is_same)) {
        return false;
    }
    if (is_same && (!at->is_inside || found <= at->step)) {
        at->n++;
    }
    at->is_inside = is_same;
    at->step = found;
    return !is_same || at->n <= nth || (at->n == nth + 1 && found <= (int64_t)step);
}

void dt_metrics_discard_pending(dt_metrics *m)
{
    for (uint32_t i = 0; m != NULL && i < m->n; i++) {
        m->list[i].n = 0;
    }
}

dt_status dt_metrics_rewind(dt_metrics *m, const char *phase, uint32_t nth, uint64_t step)
{
    dt_fs_line line = {0};
    dt_status st = DT_OK;
    long keep = 0;
    place at = {.phase = phase};
    const int fd = dup(fileno(m->file)); /* records are written past the stream, whose buffer would hold older ones */
    FILE *all = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (all == NULL) {
        st = fail_io(m, "read");
        if (fd >= 0) {
            close(fd);
        }
        return st;
    }
    rewind(all);
    dt_str_clear(&m->last);
    while ((st = dt_fs_read_line(all, MAX_LINE, &line)) == DT_OK && line.is_whole &&
           is_kept_record(line.text, line.kept, &at, nth, step)) {
        keep += (long)line.kept;
        dt_str_clear(&m->last);
        if (at.is_inside && at.n == nth + 1 && at.step == (int64_t)step) {
            dt_str_add_n(&m->last, line.text, line.kept);
        }
    }
    dt_free(line.text);
    fclose(all);
    DT_TRY(st);
    dt_error_clear();
    dt_metrics_discard_pending(m);
    for (uint32_t i = 0; i < m->n; i++) {
        m->list[i].is_marked = false;
    }
    dt_str_clear(&m->waiting);
    m->n_waiting = m->n_lost = 0;
    if (ftruncate(fileno(m->file), keep) != 0) {
        return fail_io(m, "truncate");
    }
    m->bytes = (uint64_t)keep;
    m->last_step = step;
    return dt_str_status(&m->last);
}

/* NULL when out of memory. */
static scalar *find_metric(dt_metrics *m, const char *name)
{
    for (uint32_t i = 0; i < m->n; i++) {
        const uint32_t at = (m->next + i) % m->n;
        if (strcmp(m->list[at].name, name) == 0) {
            m->next = at + 1;
            return &m->list[at];
        }
    }
    if (m->n == m->cap) {
        const uint32_t cap = m->cap > 0 ? 2 * m->cap : 32;
        scalar *grown = dt_realloc(m->list, cap * sizeof(*grown));
        if (grown == NULL) {
            return NULL;
        }
        m->list = grown;
        m->cap = cap;
    }
    char *copy = dt_strdup(name);
    if (copy == NULL) {
        return NULL;
    }
    m->list[m->n] = (scalar){.name = copy};
    m->next = m->n + 1;
    return &m->list[m->n++];
}

void dt_metrics_add_scalar(dt_metrics *m, const char *name, double value)
{
    if (m == NULL) {
        return;
    }
    scalar *s = find_metric(m, name);
    if (s == NULL) {
        m->is_short_of_memory = true; /* said when the record is flushed */
        return;
    }
    s->sum = s->n > 0 ? s->sum + value : value;
    s->n++;
}

static const scalar *find_pending(const dt_metrics *m, const char *name)
{
    for (uint32_t i = 0; m != NULL && i < m->n; i++) {
        if (m->list[i].n > 0 && strcmp(m->list[i].name, name) == 0) {
            return &m->list[i];
        }
    }
    return NULL;
}

double dt_metrics_pending_mean(const dt_metrics *m, const char *name)
{
    const scalar *s = find_pending(m, name);
    return s != NULL ? s->sum / (double)s->n : (double)NAN;
}

void dt_metrics_mark_pending(dt_metrics *m)
{
    for (uint32_t i = 0; m != NULL && i < m->n; i++) {
        m->list[i].is_marked = m->list[i].is_marked || (m->list[i].n > 0 && !isnan(m->list[i].sum));
    }
}

const char *dt_metrics_marked(const dt_metrics *m, uint32_t i)
{
    for (uint32_t at = 0; m != NULL && at < m->n; at++) {
        if (m->list[at].is_marked && i-- == 0) {
            return m->list[at].name;
        }
    }
    return NULL;
}

void dt_metrics_events_set(dt_metrics *m, dt_events *events)
{
    dt_events_close(m->events);
    m->events = events;
}

dt_events *dt_metrics_events(const dt_metrics *m)
{
    return m->events;
}

/* Constant numbers that describe others: a curve of them is useless. */
static bool is_label_metric(const char *name)
{
    return strncmp(name, "eval/seeds/", 11) == 0 || strncmp(name, "eval/horizon_s/", 15) == 0;
}

/* The same numbers, for TensorBoard. Where they cannot be written, training continues without. */
static void add_events(dt_metrics *m, uint64_t step)
{
    if (m->events == NULL) {
        return;
    }
    dt_events_begin(m->events, step);
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->list[i].n > 0 && !is_label_metric(m->list[i].name)) {
            dt_events_add_scalar(m->events, m->list[i].name, m->list[i].sum / (double)m->list[i].n);
        }
    }
    if (dt_events_end(m->events) < 0) {
        dt_log(DT_LOG_WARN, "no more records for TensorBoard: %s", dt_error_text());
        dt_error_clear();
        dt_metrics_events_set(m, NULL);
    }
}

/* Numbers of m->last that were not given again, and its time. */
static dt_status collect_last(dt_metrics *m, double *wall_s_p)
{
    dt_json *j = NULL;
    dt_json_token t;
    dt_str key = {0};
    dt_status st = dt_json_open_mem(dt_str_text(&m->last), m->last.bytes, m->path, &j);
    while (st == DT_OK && (st = dt_json_next(j, &t)) == DT_OK && t.kind != DT_JSON_END) {
        const double value = t.kind == DT_JSON_NUMBER ? t.number : (double)NAN;
        if (t.kind == DT_JSON_KEY) {
            dt_str_clear(&key);
            dt_str_add(&key, t.text);
            st = dt_str_status(&key);
        } else if (strcmp(dt_str_text(&key), "wall_s") == 0) {
            *wall_s_p = value;
        } else if ((t.kind == DT_JSON_NUMBER || t.kind == DT_JSON_NULL) && strcmp(dt_str_text(&key), "step") != 0) {
            scalar *s = find_metric(m, dt_str_text(&key));
            st = s != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the metrics of a step");
            if (s != NULL && s->n == 0) {
                *s = (scalar){.name = s->name, .sum = value, .n = 1, .is_marked = s->is_marked};
            }
        }
    }
    dt_json_close(j);
    dt_str_fini(&key);
    return st;
}

dt_status dt_metrics_flush(dt_metrics *m, const char *phase, uint64_t step, double wall_s)
{
    if (m == NULL) {
        return DT_OK;
    }
    add_events(m, step);
    if (m->last.bytes > 0 && m->last_step == step) {
        DT_TRY(collect_last(m, &wall_s));
        m->bytes -= m->last.bytes; /* what the file holds after them is removed before a record is added */
    }
    dt_str_clear(&m->last);
    dt_str_clear(&m->line);
    dt_json_out o = {.s = &m->line};
    dt_json_obj(&o, NULL);
    dt_json_i64(&o, "step", (int64_t)step);
    dt_json_str(&o, "phase", phase);
    dt_json_f64(&o, "wall_s", wall_s);
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->list[i].n > 0) {
            dt_json_f64(&o, m->list[i].name, m->list[i].sum / (double)m->list[i].n);
            m->list[i].n = 0;
        }
    }
    dt_str_add(&m->line, "}\n");
    m->next = 0;
    DT_TRY(m->is_short_of_memory ? DT_FAIL(DT_ENOMEM, "out of memory for the metrics of a step") : DT_OK);
    DT_TRY(dt_str_status(&m->line));
    add_record(m);
    return dt_str_status(&m->waiting);
}
