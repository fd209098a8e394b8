/* SPDX-License-Identifier: Apache-2.0
 *
 * See trace.h. A thread that records for the first time gets a buffer of its own, which stays until fini; it alone
 * appends, and publishes by a counter. The flag, the list of buffers and the clock's beginning are the only state.
 */
#include <config.h>

#include "base/trace.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SPANS = 1 << 20, THREAD_NAME = 32 }; /* of a thread; touched as used */

typedef struct record { /* a span; a counter: category NULL, end_ns the bits of its value */
    const char *category, *name, *key;
    int64_t value;
    uint64_t begin_ns, end_ns;
} record;

typedef struct buffer buffer;
struct buffer {
    buffer *next;
    record *span; /* [SPANS] */
    atomic_uint n;
    atomic_uint dropped;
    int thread;
    char name[THREAD_NAME];
};

atomic_bool dt_trace_flag;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* buffers */
static buffer *buffers;
static atomic_uint generation; /* of the buffers: those that threads remember from before fini are gone */
static uint64_t start_ns;

static _Thread_local struct {
    buffer *b;
    unsigned generation;
    char name[THREAD_NAME];
} own;

uint64_t dt_trace_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void dt_trace_thread(const char *role, uint32_t number)
{
    snprintf(own.name, sizeof(own.name), "%s %u", role, number);
}

/* NULL: out of memory, nothing is recorded. */
static buffer *buffer_of_thread(void)
{
    if (own.b != NULL && own.generation == atomic_load(&generation)) {
        return own.b;
    }
    void *room = NULL;
    buffer *b = dt_alloc(sizeof(*b));
    if (b == NULL || dt_arena_map(SPANS * sizeof(record), &room) < 0) {
        dt_error_clear();
        dt_free(b);
        return NULL;
    }
    b->span = room;
    pthread_mutex_lock(&lock);
    b->thread = buffers != NULL ? buffers->thread + 1 : 1;
    b->next = buffers;
    buffers = b;
    own.b = b;
    own.generation = atomic_load(&generation);
    pthread_mutex_unlock(&lock);
    snprintf(b->name, sizeof(b->name), "%s", own.name[0] != '\0' ? own.name : "main");
    return b;
}

static void append_record(const record *r)
{
    buffer *b = buffer_of_thread();
    if (b == NULL) {
        return;
    }
    const unsigned n = atomic_load_explicit(&b->n, memory_order_relaxed);
    if (n == SPANS) {
        atomic_fetch_add(&b->dropped, 1);
        return;
    }
    b->span[n] = *r;
    atomic_store_explicit(&b->n, n + 1, memory_order_release);
}

void dt_trace_record(const dt_trace_scope *s)
{
    if (dt_trace_is_on()) { /* what outlives the trace has no end in it */
        append_record(&(record){s->category, s->name, s->key, s->value, s->begin_ns, dt_trace_now()});
    }
}

void dt_trace_counter(const char *name, double value)
{
    if (dt_trace_is_on()) {
        record r = {.name = name, .begin_ns = dt_trace_now()};
        memcpy(&r.end_ns, &value, sizeof(value));
        append_record(&r);
    }
}

void dt_trace_start(void)
{
    pthread_mutex_lock(&lock);
    for (buffer *b = buffers; b != NULL; b = b->next) {
        atomic_store(&b->n, 0);
        atomic_store(&b->dropped, 0);
    }
    start_ns = dt_trace_now();
    pthread_mutex_unlock(&lock);
    atomic_store(&dt_trace_flag, true);
}

void dt_trace_stop(void)
{
    atomic_store(&dt_trace_flag, false);
}

void dt_trace_fini(void)
{
    dt_trace_stop();
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&generation, 1);
    while (buffers != NULL) {
        buffer *b = buffers;
        buffers = b->next;
        dt_arena_unmap(b->span, SPANS * sizeof(record));
        dt_free(b);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Microseconds with nanoseconds after the decimal point: exact, so that what nested in time nests in the file. */
static void write_time(FILE *f, const char *key, uint64_t ns)
{
    fprintf(f, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void write_record(FILE *f, uint32_t process, const buffer *b, const record *r)
{
    const uint64_t at = r->begin_ns > start_ns ? r->begin_ns - start_ns : 0;
    fprintf(f, ",\n{\"pid\":%u,\"tid\":%d,\"name\":\"%s\"", process, b->thread, r->name);
    write_time(f, "ts", at);
    if (r->category == NULL) {
        double value = 0;
        memcpy(&value, &r->end_ns, sizeof(value));
        fprintf(f, ",\"ph\":\"C\",\"args\":{\"%s\":%.17g}}", r->name, value);
        return;
    }
    fprintf(f, ",\"ph\":\"X\",\"cat\":\"%s\"", r->category);
    write_time(f, "dur", r->end_ns - r->begin_ns);
    if (r->key != NULL) {
        fprintf(f, ",\"args\":{\"%s\":%" PRId64 "}", r->key, r->value);
    }
    fputc('}', f);
}

static void write_thread(FILE *f, uint32_t process, const buffer *b)
{
    dt_str text = {0};
    dt_json_out o = {.s = &text};
    dt_json_str(&o, NULL, b->name);
    fprintf(f, ",\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":%s}}", process,
            b->thread, dt_str_text(&text));
    fprintf(f, ",\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%d,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%d}}",
            process, b->thread, b->thread);
    dt_str_fini(&text);
}

typedef struct counts {
    uint64_t spans, dropped;
} counts;

static counts write_all_threads(FILE *f, uint32_t process)
{
    counts c = {0};
    pthread_mutex_lock(&lock);
    for (const buffer *b = buffers; b != NULL; b = b->next) {
        const unsigned n_spans = atomic_load_explicit(&b->n, memory_order_acquire);
        if (n_spans > 0) {
            write_thread(f, process, b);
        }
        for (unsigned i = 0; i < n_spans; i++) {
            write_record(f, process, b, &b->span[i]);
        }
        c.spans += n_spans;
        c.dropped += atomic_load(&b->dropped);
    }
    pthread_mutex_unlock(&lock);
    return c;
}

static dt_status write_rank_part(FILE *f, const char *path)
{
    FILE *part = NULL;
    char bytes[16384];
    size_t n = 0;
    DT_TRY(dt_fs_open_stream(path, O_RDONLY, "r", &part));
    while ((n = fread(bytes, 1, sizeof(bytes), part)) > 0) {
        fwrite(bytes, 1, n, f);
    }
    const bool is_read = ferror(part) == 0;
    fclose(part);
    return is_read ? DT_OK : DT_FAIL(DT_EIO, "cannot read %s", path);
}

static dt_status finish_trace_file(FILE *f, const char *path)
{
    const bool is_written = ferror(f) == 0;
    return fclose(f) == 0 && is_written ? DT_OK : DT_FAIL(DT_EIO, "cannot write %s: %s", path, strerror(errno));
}

dt_status dt_trace_write(const char *path, char *const *part, uint32_t n_parts, uint64_t *n_p, uint64_t *dropped_p)
{
    FILE *f = NULL;
    DT_TRY(dt_fs_open_stream(path, O_WRONLY | O_CREAT | O_TRUNC, "w", &f));
    fprintf(f,
            "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"program\":\"dtrain %s\",\"process\":\"%ld\"},"
            "\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"dtrain%s\"}}",
            PACKAGE_VERSION, (long)getpid(), n_parts > 0 ? " rank 0" : "");
    const counts c = write_all_threads(f, 1);
    dt_status st = DT_OK;
    for (uint32_t i = 0; i < n_parts && st == DT_OK; i++) {
        st = write_rank_part(f, part[i]);
    }
    fputs("\n]}\n", f);
    const dt_status ended = finish_trace_file(f, path);
    DT_TRY(st);
    DT_TRY(ended);
    *n_p = c.spans;
    *dropped_p = c.dropped;
    return DT_OK;
}

dt_status dt_trace_write_part(const char *path, uint32_t rank, uint64_t *n_p, uint64_t *dropped_p)
{
    FILE *f = NULL;
    DT_TRY(dt_fs_open_stream(path, O_WRONLY | O_CREAT | O_TRUNC, "w", &f));
    fprintf(f, ",\n{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":\"dtrain rank %u\"}}",
            rank + 1, rank);
    const counts c = write_all_threads(f, rank + 1);
    const dt_status st = finish_trace_file(f, path);
    if (st < 0) {
        dt_fs_try_remove(path); /* half of it would spoil the whole trace */
        return st;
    }
    *n_p = c.spans;
    *dropped_p = c.dropped;
    return DT_OK;
}
