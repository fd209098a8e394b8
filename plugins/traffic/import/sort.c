/* SPDX-License-Identifier: Apache-2.0
 *
 * External merge sort of table rows. See sort.h; Knuth, TAOCP 3, 5.2.5 (a buffer by the digits of its keys) and 5.4.1
 * (runs by a heap of their heads).
 */
#include <config.h>

#include "traffic/import/sort.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SPLIT_ROWS = 1 << 13, WRITTEN_ROWS = 256 }; /* worth a second thread; written at once */

/* Half of the buffer, or all of it, once it is sorted. */
typedef struct stretch {
    dt_table_row *row;
    size_t n, at;    /* not taken yet: from at on */
    uint64_t *order; /* [n] numbers of rows, below what mask leaves away; NULL: rows lie in order */
    uint64_t mask;
} stretch;

typedef struct run {
    int64_t at, end;     /* rows in the file not read yet */
    dt_table_row *piece; /* a slice of the buffer */
    size_t next, held;
} run;

struct dt_sort {
    dt_table_row *row;
    size_t n, cap;
    uint32_t jobs;
    stretch part[2]; /* of the buffer */
    char *near_path;
    int fd;
    int64_t spilled, n_runs, runs_cap;
    run *run;
    int64_t *heap; /* runs by their head, smallest first */
    int64_t n_heap;
    size_t piece_rows;
    bool is_reading;
};

static int compare_rows(const void *pa, const void *pb)
{
    const dt_table_row *a = pa, *b = pb;
    if (a->scene != b->scene) {
        return a->scene < b->scene ? -1 : 1;
    }
    if (a->frame != b->frame) {
        return a->frame < b->frame ? -1 : 1;
    }
    if (a->id != b->id) {
        return a->id < b->id ? -1 : 1;
    }
    return a->line < b->line ? -1 : a->line > b->line;
}

dt_status dt_sort_create(const char *near_path, size_t memory_bytes, uint32_t jobs, dt_sort **out_p)
{
    dt_sort *s = dt_alloc(sizeof(*s));
    if (s == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to sort");
    }
    s->fd = -1;
    s->jobs = jobs;
    s->cap = memory_bytes / sizeof(*s->row);
    s->cap = s->cap < 1 ? 1 : s->cap;
    s->row = dt_alloc_n(s->cap, sizeof(*s->row));
    s->near_path = dt_strdup(near_path);
    if (s->row == NULL || s->near_path == NULL) {
        dt_sort_destroy(s);
        return DT_FAIL(DT_ENOMEM, "no memory for a sort buffer of %zu bytes", memory_bytes);
    }
    *out_p = s;
    return DT_OK;
}

/* ---- the buffer -------------------------------------------------------------------------------------------------- */

/* One column of a key: how far its values reach from the least on. */
typedef struct column {
    int64_t least, most;
    int bits;
} column;

enum { SCENE, FRAME, ID, LINE, COLUMNS, DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, AHEAD = 8 };

static void extend_column(column *c, int64_t x)
{
    c->least = x < c->least ? x : c->least;
    c->most = x > c->most ? x : c->most;
}

static int bit_width(uint64_t most)
{
    return most == 0 ? 0 : 64 - __builtin_clzll(most);
}

/* What keys are made of, from the highest digits to the lowest. Lines mostly ascend, and then need none: rows of equal
 * keys stay as they are. *in_order_p: all rows are. Returns the bits of a key and of a row's number. */
static int find_key_columns(const stretch *s, column c[COLUMNS], bool *in_order_p)
{
    bool in_order = true, lines_rise = true;
    for (int d = 0; d < COLUMNS; d++) {
        c[d] = (column){.least = INT64_MAX, .most = INT64_MIN};
    }
    for (size_t i = 0; i < s->n; i++) {
        const dt_table_row *r = &s->row[i];
        extend_column(&c[SCENE], r->scene);
        extend_column(&c[FRAME], r->frame);
        extend_column(&c[ID], r->id);
        extend_column(&c[LINE], r->line);
        in_order = in_order && (i == 0 || compare_rows(r - 1, r) <= 0);
        lines_rise = lines_rise && (i == 0 || r[-1].line <= r->line);
    }
    int bits = bit_width(s->n - 1);
    for (int d = 0; d < COLUMNS; d++) {
        c[d].bits = d == LINE && lines_rise ? 0 : bit_width((uint64_t)c[d].most - (uint64_t)c[d].least);
        bits += c[d].bits;
    }
    *in_order_p = in_order;
    return bits;
}

/* Digit by digit from the lowest up; numbers of rows, below the keys, ascend already. */
static uint64_t *sort_keys(uint64_t *key, uint64_t *spare, size_t n, int from_bit, int end_bit)
{
    for (int shift = from_bit; shift < end_bit; shift += DIGIT_BITS) {
        size_t begin[DIGITS] = {0}, at = 0;
        for (size_t i = 0; i < n; i++) {
            begin[key[i] >> shift & (DIGITS - 1)]++;
        }
        for (int d = 0; d < DIGITS; d++) {
            const size_t held = begin[d];
            begin[d] = at;
            at += held;
        }
        for (size_t i = 0; i < n; i++) {
            spare[begin[key[i] >> shift & (DIGITS - 1)]++] = key[i];
        }
        uint64_t *sorted = spare;
        spare = key;
        key = sorted;
    }
    return key;
}

/* By keys of one word each, rows stay where they are; false: no memory. */
static bool sort_by_keys(stretch *s, const column c[COLUMNS], int bits)
{
    const int row_bits = bit_width(s->n - 1);
    uint64_t *key = dt_alloc_n(s->n, sizeof(*key)), *spare = dt_alloc_n(s->n, sizeof(*spare));
    if (key == NULL || spare == NULL) {
        dt_free(key);
        dt_free(spare);
        return false;
    }
    for (size_t i = 0; i < s->n; i++) {
        const dt_table_row *r = &s->row[i];
        const int64_t value[COLUMNS] = {r->scene, r->frame, r->id, r->line};
        uint64_t k = 0;
        for (int d = 0; d < COLUMNS; d++) {
            k = c[d].bits > 0 ? k << c[d].bits | ((uint64_t)value[d] - (uint64_t)c[d].least) : k;
        }
        key[i] = k << row_bits | i;
    }
    s->order = sort_keys(key, spare, s->n, row_bits, bits);
    s->mask = (UINT64_C(1) << row_bits) - 1;
    dt_free(s->order == key ? spare : key);
    return true;
}

static void *sort_stretch(void *user)
{
    stretch *s = user;
    column c[COLUMNS];
    bool in_order = true;
    const int bits = s->n > 1 ? find_key_columns(s, c, &in_order) : 0;
    if (!in_order && (bits > 63 || !sort_by_keys(s, c, bits))) { /* 63: no shift is one by a whole word */
        qsort(s->row, s->n, sizeof(*s->row), compare_rows);
    }
    return NULL;
}

static void reset_order(dt_sort *s)
{
    for (int h = 0; h < 2; h++) {
        dt_free(s->part[h].order);
        s->part[h].order = NULL;
    }
}

static void sort_buffer(dt_sort *s)
{
    const size_t middle = s->jobs > 1 && s->n >= SPLIT_ROWS ? s->n / 2 : s->n;
    reset_order(s);
    s->part[0] = (stretch){.row = s->row, .n = middle};
    s->part[1] = (stretch){.row = s->row + middle, .n = s->n - middle};
    pthread_t thread;
    const bool is_shared = s->part[1].n > 0 && pthread_create(&thread, NULL, sort_stretch, &s->part[1]) == 0;
    sort_stretch(&s->part[0]);
    if (is_shared) {
        pthread_join(thread, NULL);
    } else {
        sort_stretch(&s->part[1]);
    }
}

static const dt_table_row *row_at(const stretch *s, size_t i)
{
    return &s->row[s->order != NULL ? s->order[i] & s->mask : i];
}

/* The next row of the sorted buffer; NULL: none. */
static const dt_table_row *next_of_buffer(dt_sort *s)
{
    stretch *low = &s->part[0], *high = &s->part[1], *next = low;
    if (low->at == low->n && high->at == high->n) {
        return NULL;
    }
    if (low->at == low->n || (high->at < high->n && compare_rows(row_at(high, high->at), row_at(low, low->at)) < 0)) {
        next = high;
    }
    if (next->order != NULL && next->at + AHEAD < next->n) { /* rows of a frame lie far from each other */
        const char *soon = (const char *)row_at(next, next->at + AHEAD);
        __builtin_prefetch(soon);
        __builtin_prefetch(soon + sizeof(dt_table_row) - 1);
    }
    return row_at(next, next->at++);
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* A file without a name: nothing remains whatever happens. */
static dt_status open_spill(dt_sort *s)
{
    dt_str name = {0};
    dt_str_addf(&name, "%s.sort-XXXXXX", s->near_path);
    if (dt_str_status(&name) != DT_OK) {
        return DT_ENOMEM;
    }
    s->fd = mkstemp(name.text);
    dt_status st = DT_OK;
    if (s->fd < 0) {
        st = DT_FAIL(DT_EIO, "cannot make the temporary file %s: %s", name.text, strerror(errno));
    } else {
        unlink(name.text);
    }
    dt_str_fini(&name);
    return st;
}

static dt_status write_buffer(dt_sort *s)
{
    dt_table_row piece[WRITTEN_ROWS];
    for (size_t done = 0; done < s->n;) {
        size_t n = 0;
        for (; n < WRITTEN_ROWS && done + n < s->n; n++) {
            piece[n] = *next_of_buffer(s);
        }
        DT_TRY(dt_fs_write(s->fd, "the temporary file of the sort", piece, n * sizeof(*piece)));
        done += n;
    }
    return DT_OK;
}

static dt_status spill_buffer(dt_sort *s)
{
    if (s->fd < 0) {
        DT_TRY(open_spill(s));
    }
    if (s->n_runs == s->runs_cap) {
        int64_t cap = s->runs_cap == 0 ? 16 : 2 * s->runs_cap;
        run *grown = dt_realloc(s->run, (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %lld sorted runs", (long long)cap);
        }
        s->run = grown;
        s->runs_cap = cap;
    }
    sort_buffer(s);
    DT_TRY(write_buffer(s));
    s->run[s->n_runs++] = (run){.at = s->spilled, .end = s->spilled + (int64_t)s->n};
    s->spilled += (int64_t)s->n;
    s->n = 0;
    return DT_OK;
}

dt_status dt_sort_add(dt_sort *s, const dt_table_row *row)
{
    if (s->n == s->cap) {
        DT_TRY(spill_buffer(s));
    }
    s->row[s->n++] = *row;
    return DT_OK;
}

static dt_status refill_run(dt_sort *s, run *r)
{
    size_t rows = (size_t)(r->end - r->at) < s->piece_rows ? (size_t)(r->end - r->at) : s->piece_rows;
    char *to = (char *)r->piece;
    size_t want = rows * sizeof(*s->row), got = 0;
    while (got < want) {
        ssize_t n = pread(s->fd, to + got, want - got, (off_t)((size_t)r->at * sizeof(*s->row) + got));
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return DT_FAIL(DT_EIO, "cannot read the temporary file of the sort: %s",
                           n < 0 ? strerror(errno) : "it is truncated");
        }
        if (n > 0) {
            got += (size_t)n;
        }
    }
    r->at += (int64_t)rows;
    r->next = 0;
    r->held = rows;
    return DT_OK;
}

static const dt_table_row *run_head(const dt_sort *s, int64_t h)
{
    const run *r = &s->run[s->heap[h]];
    return &r->piece[r->next];
}

static void sift_down(dt_sort *s, int64_t h)
{
    for (;;) {
        int64_t least = h;
        for (int64_t c = 2 * h + 1; c <= 2 * h + 2 && c < s->n_heap; c++) {
            if (compare_rows(run_head(s, c), run_head(s, least)) < 0) {
                least = c;
            }
        }
        if (least == h) {
            return;
        }
        int64_t t = s->heap[h];
        s->heap[h] = s->heap[least];
        s->heap[least] = t;
        h = least;
    }
}

static dt_status start_merge(dt_sort *s)
{
    DT_TRY(spill_buffer(s)); /* the buffer becomes the pieces of the runs */
    reset_order(s);
    if ((size_t)s->n_runs > s->cap) {
        size_t cap = (size_t)s->n_runs;
        dt_table_row *grown = dt_realloc(s->row, cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory to merge %lld runs", (long long)s->n_runs);
        }
        s->row = grown;
        s->cap = cap;
    }
    s->heap = dt_alloc_n((size_t)s->n_runs, sizeof(*s->heap));
    if (s->heap == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to merge %lld runs", (long long)s->n_runs);
    }
    s->piece_rows = s->cap / (size_t)s->n_runs;
    for (int64_t i = 0; i < s->n_runs; i++) {
        s->run[i].piece = s->row + (size_t)i * s->piece_rows;
        DT_TRY(refill_run(s, &s->run[i]));
        s->heap[s->n_heap++] = i;
    }
    for (int64_t h = s->n_heap / 2; h >= 0; h--) {
        sift_down(s, h);
    }
    return DT_OK;
}

/* Take the row handed out before off its run. */
static dt_status advance_merge(dt_sort *s)
{
    run *r = &s->run[s->heap[0]];
    if (++r->next == r->held) {
        if (r->at == r->end) {
            s->heap[0] = s->heap[--s->n_heap];
        } else {
            DT_TRY(refill_run(s, r));
        }
    }
    sift_down(s, 0);
    return DT_OK;
}

dt_status dt_sort_next(dt_sort *s, const dt_table_row **out_p)
{
    if (s->n_runs == 0) {
        if (!s->is_reading) {
            sort_buffer(s);
            s->is_reading = true;
        }
        *out_p = next_of_buffer(s);
        return *out_p != NULL ? DT_OK : DT_DONE;
    }
    if (!s->is_reading) {
        DT_TRY(start_merge(s));
        s->is_reading = true;
    } else if (s->n_heap > 0) {
        DT_TRY(advance_merge(s));
    }
    if (s->n_heap == 0) {
        return DT_DONE;
    }
    *out_p = run_head(s, 0);
    return DT_OK;
}

int64_t dt_sort_runs(const dt_sort *s)
{
    return s->n_runs;
}

void dt_sort_destroy(dt_sort *s)
{
    if (s == NULL) {
        return;
    }
    if (s->fd >= 0) {
        close(s->fd);
    }
    reset_order(s);
    dt_free(s->row);
    dt_free(s->run);
    dt_free(s->heap);
    dt_free(s->near_path);
    dt_free(s);
}
