/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plugin/service/stream.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fp_mode.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "train/join.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MAX_SETTINGS = 24, MAX_PARTS = DT_STAGE_MAX_DATASETS - 24, LINE_BYTES = 96, LOG_EVERY_S = 60 };
static const double poll_s = 0.1;

typedef struct part {
    uint64_t number, base, count; /* base: of its first sample */
    uint64_t mark;                /* of what it holds */
    void *self, *config;
    bool created;
} part;

struct dt_stream {
    dt_stage *s;
    const dt_loaded *comp;
    dt_samples like; /* of data.store */
    dt_data_ops ops;
    char *folder;
    const char *store;             /* data.store, the configuration's */
    dt_setting over[MAX_SETTINGS]; /* [n_over], then the store */
    uint32_t n_over;
    uint64_t window;
    double timeout_s, room;
    part part[MAX_PARTS]; /* [n] in their order, without a gap */
    uint32_t n;
    uint64_t next_number, next_sample; /* after the last one */
    uint64_t from, to;                 /* samples of the window that can be read */
};

/* What a rank found, the most urgent last. */
typedef enum finding { READY, ENDED, WAITS, LATE, STOPS, FAILED } finding;

typedef struct word { /* of a rank to the others */
    uint64_t mark;    /* of all parts of the window */
    uint32_t finding, reserved;
} word;

/* ---- names ------------------------------------------------------------------------------------------------------- */

static void path_of_store(const dt_stream *m, uint64_t number, const char *suffix, dt_str *out)
{
    dt_str_clear(out);
    dt_str_addf(out, "%s/%06" PRIu64 "%s", m->folder, number, suffix);
}

static bool path_exists(const char *path)
{
    return dt_fs_kind_of(path) != DT_FS_NOTHING; /* whatever it is: opening it reports what is wrong */
}

/* ---- a store ----------------------------------------------------------------------------------------------------- */

static void close_part(dt_stream *m, part *p)
{
    if (p->created && m->comp->ops.data.destroy != NULL) {
        DT_FP_GUARD(m->comp->desc.id, "destroy", m->comp->ops.data.destroy(p->self));
    }
    dt_free(p->self);
    dt_free(p->config);
    *p = (part){.created = false};
}

/* Its recordings were trained on: an evaluation of the weights has to know. The mark is of these and of all that
 * describes them, statistics of every feature with it. */
static dt_status mark_stores_of_part(dt_stream *m, const char *path, part *p)
{
    const dt_dataset *opened = NULL;
    char digest[24];
    for (uint32_t i = 0; i < m->s->n_datasets; i++) {
        opened = strcmp(m->s->dataset[i].path, path) == 0 ? &m->s->dataset[i] : opened;
    }
    if (opened == NULL) {
        return DT_FAIL(DT_EUNSUPPORTED,
                       "%s does not report what it opens (svc/datasets.h), so the host cannot know whether %s is the "
                       "one that a run was trained on; data.stream needs that",
                       m->comp->desc.id, path);
    }
    p->mark = opened->mark;
    snprintf(digest, sizeof(digest), "%016" PRIx64 "\n", opened->digest);
    if (strstr(dt_str_text(&m->s->seen_before), digest) == NULL) {
        dt_str_add(&m->s->seen_before, digest);
    }
    return dt_str_status(&m->s->seen_before);
}

static bool is_same_port(const dt_port *a, const dt_port *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->dims, b->dims) == 0 && a->dtype == b->dtype &&
           a->flags == b->flags;
}

static dt_status check_same_ports(const dt_stream *m, const char *path, const part *p)
{
    uint32_t n = 0, n_symbols = 0;
    const dt_port *field = m->ops.fields(p->self, &n);
    const char *const *symbol = m->ops.symbols(p->self, &n_symbols);
    bool is_same = n == m->like.n_fields && n_symbols == m->like.n_symbols;
    for (uint32_t i = 0; i < n && is_same; i++) {
        is_same = is_same_port(&field[i], &m->like.field[i]);
    }
    for (uint32_t i = 0; i < n_symbols && is_same; i++) {
        is_same = strcmp(symbol[i], m->like.symbol[i]) == 0;
    }
    return is_same ? DT_OK
                   : DT_FAIL(DT_EDATA,
                             "%s gives other fields than data.store = %s; all stores of a stream must have the same "
                             "fields",
                             path, m->store);
}

static dt_status check_sizes(const dt_stream *m, const char *path, const part *p)
{
    for (uint64_t i = 0; i < p->count; i++) {
        int64_t size[DT_SAMPLES_MAX_SYMBOLS] = {0};
        DT_TRY(m->ops.sizes(p->self, &i, 1, size));
        for (uint32_t k = 0; k < m->like.n_symbols; k++) {
            if (size[k] < 0 || size[k] > m->like.sample_max[k]) {
                return DT_FAIL(DT_EDATA,
                               "%s: sample %" PRIu64 " has %lld of %s, and memory is planned for %lld, which is "
                               "data.stream_room = %g times as much as any sample of data.store has; raise it and "
                               "resume, or leave that store out",
                               path, i, (long long)size[k], m->like.symbol[k], (long long)m->like.sample_max[k],
                               m->room);
            }
        }
    }
    return DT_OK;
}

static dt_status make_part(dt_stream *m, const char *path, part *p)
{
    m->over[m->n_over].value = path;
    pthread_mutex_lock(m->s->d.config_lock);
    const dt_status st = dt_component_configure(m->s, m->comp, m->over, m->n_over + 1, &p->config, &p->self);
    pthread_mutex_unlock(m->s->d.config_lock);
    m->over[m->n_over].value = "";
    DT_TRY(st);
    p->created = true;
    DT_TRY(m->ops.create(p->self, &m->s->host, p->config));
    DT_TRY(m->ops.count(p->self, &p->count));
    if (p->count > DT_SAMPLES_MOST) {
        return DT_FAIL(DT_EPLUGIN, "it counts %" PRIu64 " samples, expected at most 2^40", p->count);
    }
    DT_TRY(check_same_ports(m, path, p));
    DT_TRY(check_sizes(m, path, p));
    return mark_stores_of_part(m, path, p);
}

/* What is wrong with a store is a matter of data, whichever option it does not go with. */
static dt_status open_part(dt_stream *m, const char *path, uint64_t number, part *p)
{
    *p = (part){.number = number};
    const dt_status st = make_part(m, path, p);
    if (st < 0) {
        close_part(m, p);
        const bool is_of_data = st == DT_ENOTFOUND || st == DT_ECONFIG || st == DT_EINVAL;
        return DT_CONTEXT(is_of_data ? DT_EDATA : st, "store %s of the stream", path);
    }
    return DT_OK;
}

/* ---- arrival ----------------------------------------------------------------------------------------------------- */

static void append_part(dt_stream *m, const part *p)
{
    part *to = &m->part[m->n++];
    *to = *p;
    to->base = m->next_sample;
    m->next_sample += p->count;
    m->next_number = p->number + 1;
}

static dt_status open_next_part(dt_stream *m, const char *path)
{
    part p;
    if (m->n == MAX_PARTS) {
        return DT_FAIL(DT_ECONFIG,
                       "a window of %" PRIu64 " samples would span more than %d stores of %s; import more into each, "
                       "or lower data.window",
                       m->window, MAX_PARTS, m->folder);
    }
    DT_TRY(open_part(m, path, m->next_number, &p));
    append_part(m, &p);
    if (dt_comm_rank(m->s->d.comm) == 0) {
        dt_log(DT_LOG_INFO, "stream: %s, %" PRIu64 " samples", path, p.count);
    }
    return DT_OK;
}

/* Opens what has arrived, up to sample `to`. */
static dt_status open_arrived_parts(dt_stream *m, uint64_t to, finding *found_p)
{
    dt_str path = {0}, end = {0};
    dt_status st = DT_OK;
    *found_p = READY;
    while (st == DT_OK && m->next_sample < to && *found_p == READY) {
        path_of_store(m, m->next_number, "", &path);
        path_of_store(m, m->next_number, ".end", &end);
        st = path.failed || end.failed ? DT_FAIL(DT_ENOMEM, "no memory for the name of a store") : DT_OK;
        if (st != DT_OK) {
            break;
        }
        const bool has_ended = path_exists(dt_str_text(&end)), has_come = path_exists(dt_str_text(&path));
        if (has_ended && has_come) {
            st = DT_FAIL(DT_EDATA, "%s marks the end of the stream, but there is %s; remove one of them",
                         dt_str_text(&end), dt_str_text(&path));
        } else if (has_come) {
            st = open_next_part(m, dt_str_text(&path));
        } else {
            *found_p = has_ended ? ENDED : WAITS;
        }
    }
    dt_str_fini(&path);
    dt_str_fini(&end);
    return st;
}

/* What is wholly before a sample is not read again. */
static void drop_parts_before(dt_stream *m, uint64_t sample)
{
    uint32_t n = 0;
    while (n < m->n && m->part[n].base + m->part[n].count <= sample) {
        close_part(m, &m->part[n++]);
    }
    memmove(m->part, m->part + n, (m->n - n) * sizeof(*m->part));
    m->n -= n;
}

static uint64_t hash_part_marks(const dt_stream *m)
{
    uint64_t mark = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        mark = dt_hash64(&m->part[i].mark, sizeof(m->part[i].mark), mark);
    }
    return mark;
}

/* What all ranks make of what each has found. */
static dt_status agree_on_findings(dt_stream *m, const word *mine, finding *found_p)
{
    const uint32_t ranks = dt_comm_size(m->s->d.comm);
    word *all = dt_alloc_n(ranks, sizeof(*all));
    if (all == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for the messages of %u ranks", ranks);
    }
    dt_status st = dt_comm_all_gather(m->s->d.comm, mine, sizeof(*mine), all);
    bool differ = false;
    *found_p = READY;
    for (uint32_t i = 0; i < ranks && st == DT_OK; i++) {
        *found_p = all[i].finding > (uint32_t)*found_p ? (finding)all[i].finding : *found_p;
        differ = differ || all[i].finding != all[0].finding || all[i].mark != all[0].mark;
    }
    if (st == DT_OK && *found_p <= ENDED && differ) {
        st = DT_FAIL(DT_EDATA, "ranks do not see the same stores in %s: is it the same folder on every machine?",
                     m->folder);
    }
    dt_free(all);
    return st;
}

/* Rank 0 logs that it waits, at once and then every minute, and knows when it is late. */
static finding sleep_briefly(const dt_stream *m, uint64_t to, double begin_s, double *logged_s)
{
    const struct timespec while_ = {0, (long)(poll_s * 1e9)};
    const double now = dt_clock_s();
    if (dt_comm_rank(m->s->d.comm) == 0 && m->timeout_s > 0 && now - begin_s >= m->timeout_s) {
        return LATE;
    }
    if (dt_comm_rank(m->s->d.comm) == 0 && now - *logged_s >= LOG_EVERY_S) {
        *logged_s = now;
        dt_log(DT_LOG_INFO,
               "stream: waiting for %s/%06" PRIu64 " since %.0f s, %" PRIu64 " of %" PRIu64
               " samples of the next window are there",
               m->folder, m->next_number, now - begin_s, m->next_sample - (to - m->window), m->window);
    }
    nanosleep(&while_, NULL);
    return WAITS;
}

static dt_status fail_past_end(const dt_stream *m, uint64_t from)
{
    if (from == 0) {
        return DT_FAIL(DT_EDATA,
                       "%s ended after %" PRIu64 " stores with %" PRIu64 " samples, and a window has data.window "
                       "= %" PRIu64 ": nothing was trained; add stores before %06" PRIu64 ".end, or lower data.window",
                       m->folder, m->next_number, m->next_sample, m->window, m->next_number);
    }
    if (dt_comm_rank(m->s->d.comm) == 0) {
        dt_log(DT_LOG_INFO,
               "stream: ended after %" PRIu64 " stores with %" PRIu64 " samples; the last %" PRIu64
               " are less than a window, and left out",
               m->next_number, m->next_sample, m->next_sample - from);
    }
    return DT_DONE;
}

static dt_status report_late_stream(const dt_stream *m)
{
    return DT_FAIL(DT_EDATA,
                   "%s/%06" PRIu64
                   " did not arrive within data.stream_timeout = %g s; resume when there is more, or end "
                   "the stream with %s/%06" PRIu64 ".end",
                   m->folder, m->next_number, m->timeout_s, m->folder, m->next_number);
}

/* [collective] Until samples up to `to` are there on all ranks, or there is a reason to continue without. */
static dt_status wait_for_samples(dt_stream *m, uint64_t to, finding *found_p)
{
    const dt_stage_desc *d = &m->s->d;
    const double begin_s = dt_clock_s();
    double logged_s = -LOG_EVERY_S;
    for (finding late = WAITS;;) {
        word mine = {.finding = FAILED};
        finding here = FAILED;
        const dt_status st = open_arrived_parts(m, to, &here);
        here = here == WAITS ? late : here;
        here = d->stops != NULL && d->stops(d->stops_user) ? STOPS : here;
        mine.finding = st < 0 ? FAILED : here;
        mine.mark = hash_part_marks(m);
        dt_error why;
        dt_error_save(&why, st);
        DT_TRY(agree_on_findings(m, &mine, found_p));
        if (*found_p == FAILED) {
            return dt_comm_agree(d->comm, dt_error_restore(&why));
        }
        if (*found_p != WAITS) {
            return DT_OK;
        }
        late = sleep_briefly(m, to, begin_s, &logged_s);
    }
}

/* dt_samples.turn */
static dt_status advance_window(void *self, uint64_t window)
{
    dt_stream *m = self;
    const uint64_t from = window * m->window;
    finding found = READY;
    DT_TRACE_N("data", "await stream", "window", window);
    m->from = m->to = from;
    drop_parts_before(m, from);
    DT_TRY(wait_for_samples(m, from + m->window, &found));
    switch (found) {
    case READY:
        m->to = from + m->window;
        return DT_OK;
    case ENDED:
        return fail_past_end(m, from);
    case LATE:
        return report_late_stream(m);
    default:
        return DT_FAIL(DT_EINTERRUPTED, "asked to stop before %s/%06" PRIu64 " arrived", m->folder, m->next_number);
    }
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static dt_status find_part(const dt_stream *m, uint64_t index, const part **out_p)
{
    uint32_t low = 0, high = m->n;
    if (index < m->from || index >= m->to) {
        return DT_FAIL(DT_EPLUGIN,
                       "sample %" PRIu64 " of the stream is not in the window that is trained on, %" PRIu64
                       " to %" PRIu64,
                       index, m->from, m->to);
    }
    while (high - low > 1) { /* the last one that begins at or before it */
        const uint32_t middle = low + (high - low) / 2;
        low = m->part[middle].base <= index ? middle : low;
        high = m->part[middle].base <= index ? high : middle;
    }
    *out_p = &m->part[low];
    return DT_OK;
}

static uint64_t number_of_part(const void *self, uint64_t index)
{
    const part *p = NULL;
    return find_part(self, index, &p) == DT_OK ? p->number : UINT64_MAX; /* reading will report it */
}

static dt_status read_sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    const dt_stream *m = self;
    memset(size, 0, m->like.n_symbols * sizeof(*size));
    for (uint32_t i = 0; i < n; i++) {
        const part *p = NULL;
        int64_t one[DT_SAMPLES_MAX_SYMBOLS] = {0};
        DT_TRY(find_part(m, index[i], &p));
        const uint64_t at = index[i] - p->base;
        DT_TRY(m->ops.sizes(p->self, &at, 1, one));
        for (uint32_t k = 0; k < m->like.n_symbols; k++) {
            size[k] += one[k];
        }
    }
    return DT_OK;
}

/* The first n_p samples of index, all of one store, and their places there. */
static dt_status find_run_in_part(const dt_stream *m, const uint64_t *index, uint32_t n, const part **part_p,
                                  uint32_t *n_p, uint64_t *at)
{
    const part *p = NULL;
    uint32_t same = 0;
    DT_TRY(find_part(m, index[0], &p));
    while (same < n && index[same] >= p->base && index[same] - p->base < p->count && index[same] >= m->from &&
           index[same] < m->to) {
        at[same] = index[same] - p->base;
        same++;
    }
    *part_p = p;
    *n_p = same;
    return DT_OK;
}

/* Store after store, until all n samples are read. at: [n] room for places in one. */
static dt_status join_runs(const dt_stream *m, dt_join *j, const uint64_t *index, const uint64_t *key, uint32_t n,
                           uint64_t *at, void *const *out)
{
    uint32_t same = 0;
    for (uint32_t i = 0; i < n; i += same) {
        const part *p = NULL;
        DT_TRY(find_run_in_part(m, index + i, n - i, &p, &same, at));
        DT_TRY(dt_join_append_read(j, &m->ops, p->self, at, key != NULL ? key + i : NULL, same, out));
    }
    return DT_OK;
}

static dt_status read_runs(const dt_stream *m, const uint64_t *index, const uint64_t *key, uint32_t n, uint64_t *at,
                           void *const *out)
{
    const part *p = NULL;
    uint32_t same = 0;
    int64_t total[DT_SAMPLES_MAX_SYMBOLS + 1] = {0};
    dt_join j;
    DT_TRY(find_run_in_part(m, index, n, &p, &same, at));
    if (same == n) {
        return m->ops.read(p->self, at, key, n, out);
    }
    DT_TRY(read_sizes(m, index, n, total));
    total[m->like.n_symbols] = n;
    dt_join_init(&j, &m->like, total);
    const dt_status st = join_runs(m, &j, index, key, n, at, out);
    dt_join_fini(&j);
    return st;
}

/* To what one store with all of these samples would give; where they cannot be put together a slice keeps to one. */
static dt_status read_samples(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    if (n == 0) {
        return DT_OK;
    }
    uint64_t *at = dt_alloc_n(n, sizeof(*at));
    if (at == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %u places in a store", n);
    }
    const dt_status st = read_runs(self, index, key, n, at, out);
    dt_free(at);
    return st;
}

static const dt_data_ops stream_ops = {.struct_size = sizeof(dt_data_ops), .sizes = read_sizes, .read = read_samples};

/* ---- life -------------------------------------------------------------------------------------------------------- */

/* They are the caller's, for as long as create runs; the store comes last, and outdoes the one that they name. */
static dt_status copy_settings(dt_stream *m, const dt_setting *over, uint32_t n)
{
    if (n + 1 > MAX_SETTINGS) {
        return DT_FAIL(DT_EPLUGIN, "%s is bound with %u settings, at most %d are possible with data.stream",
                       m->comp->desc.id, n, MAX_SETTINGS - 1);
    }
    for (uint32_t i = 0; i < n; i++) {
        char *key = dt_strdup(over[i].key), *value = dt_strdup(over[i].value);
        m->over[m->n_over++] = (dt_setting){key, value};
        if (key == NULL || value == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for the settings of a stream");
        }
    }
    m->over[m->n_over] = (dt_setting){dt_option_find_flag(m->comp->desc.options, DT_OPT_STORE)->name, ""};
    return DT_OK;
}

/* Sizes are those of data.store, with room for larger samples. */
static void plan_sizes(dt_stream *m, dt_samples *s)
{
    for (uint32_t k = 0; k < s->n_symbols; k++) {
        s->sample_max[k] = (int64_t)((double)s->sample_max[k] * m->room + 0.5);
        s->slice_cap[k] = s->slice_cap[k] > s->sample_max[k] ? s->slice_cap[k] : s->sample_max[k];
    }
}

dt_status dt_stream_create(dt_stage *s, dt_data *d, const dt_setting *over, uint32_t n_over, const dt_data_opts *o,
                           dt_stream **out_p)
{
    dt_stream *m = dt_alloc(sizeof(*m));
    if (m == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for a stream");
    }
    *m = (dt_stream){.s = s,
                     .comp = d->comp,
                     .ops = d->comp->ops.data,
                     .folder = dt_strdup(o->stream),
                     .store = o->store,
                     .window = (uint64_t)o->window,
                     .timeout_s = o->stream_timeout,
                     .room = o->stream_room};
    for (size_t n = m->folder != NULL ? strlen(m->folder) : 0; n > 1 && m->folder[n - 1] == '/'; n--) {
        m->folder[n - 1] = '\0';
    }
    dt_status st = m->folder == NULL ? DT_FAIL(DT_ENOMEM, "no memory for a stream") : copy_settings(m, over, n_over);
    if (st >= 0 && !dt_fs_is_dir(m->folder)) {
        st = DT_FAIL(DT_EDATA, "data.stream = %s is not a folder; make it before a run waits for stores in it",
                     m->folder);
    }
    if (st < 0) {
        dt_stream_destroy(m);
        return st;
    }
    plan_sizes(m, &d->source);
    m->like = d->source;
    d->source.ops = &stream_ops;
    d->source.self = m;
    d->source.count = m->window;
    d->source.turn = advance_window;
    d->source.room = m->room;
    d->source.apart = dt_join_find_obstacle(&m->like);
    d->source.part = d->source.apart != NULL ? number_of_part : NULL;
    *out_p = m;
    return DT_OK;
}

void dt_stream_destroy(dt_stream *m)
{
    if (m == NULL) {
        return;
    }
    for (uint32_t i = 0; i < m->n; i++) {
        close_part(m, &m->part[i]);
    }
    for (uint32_t i = 0; i < m->n_over; i++) {
        dt_free((char *)m->over[i].key);
        dt_free((char *)m->over[i].value);
    }
    dt_free(m->folder);
    dt_free(m);
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

/* "window steps number sample": an epoch, and what comes next; then "number base count mark" of each store known. */
void dt_stream_write(const dt_stream *m, uint64_t steps_per_epoch, dt_json_out *o)
{
    char line[LINE_BYTES];
    snprintf(line, sizeof(line), "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, m->window, steps_per_epoch,
             m->next_number, m->next_sample);
    dt_json_str(o, NULL, line);
    for (uint32_t i = 0; i < m->n; i++) {
        const part *p = &m->part[i];
        snprintf(line, sizeof(line), "%" PRIu64 " %" PRIu64 " %" PRIu64 " %016" PRIx64, p->number, p->base, p->count,
                 p->mark);
        dt_json_str(o, NULL, line);
    }
}

static dt_status reopen_store(dt_stream *m, const char *path, const part *was)
{
    part p;
    if (!path_exists(path)) {
        return DT_FAIL(
            DT_EDATA,
            "%s is gone, and the run has trained on it; what a window needs must stay until the next one starts", path);
    }
    DT_TRY(open_part(m, path, was->number, &p));
    if (p.count != was->count || p.mark != was->mark) {
        close_part(m, &p);
        return DT_FAIL(DT_EDATA, "%s is another store than the one that the run has trained on", path);
    }
    append_part(m, &p);
    return DT_OK;
}

/* A store that was there, again. */
static dt_status reopen_part(dt_stream *m, const part *was)
{
    dt_str path = {0};
    path_of_store(m, was->number, "", &path);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = reopen_store(m, dt_str_text(&path), was);
    }
    dt_str_fini(&path);
    return st;
}

/* Do the numbers of a checkpoint go together? */
static bool is_next_part(const dt_stream *m, const part *p)
{
    return m->n < MAX_PARTS && p->number == m->next_number && p->base == m->next_sample && p->count <= DT_SAMPLES_MOST;
}

static dt_status fail_inconsistent_numbers(void)
{
    return DT_FAIL(DT_EDATA, "what the checkpoint records of the stores of data.stream is inconsistent");
}

/* Only those that samples from here on need; before them there may be nothing any more. */
static dt_status reopen_parts(dt_stream *m, const char *lines, uint64_t from)
{
    bool is_first = true;
    for (; *lines != '\0'; lines += strcspn(lines, "\n") + 1) {
        part p = {.created = false};
        if (sscanf(lines, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNx64, &p.number, &p.base, &p.count, &p.mark) != 4) {
            return fail_inconsistent_numbers();
        }
        if (is_first) {
            m->next_number = p.number;
            m->next_sample = p.base;
        }
        if (!is_next_part(m, &p)) {
            return fail_inconsistent_numbers();
        }
        is_first = false;
        if (p.base + p.count > from) {
            DT_TRY(reopen_part(m, &p));
        } else {
            m->next_number = p.number + 1;
            m->next_sample = p.base + p.count;
        }
    }
    return DT_OK;
}

dt_status dt_stream_load(dt_stream *m, const char *lines, uint64_t step, uint64_t steps_per_epoch)
{
    uint64_t window = 0, steps = 0, number = 0, sample = 0;
    const uint64_t from = step / steps_per_epoch * m->window;
    if (*lines == '\0' && step == 0) {
        return DT_OK;
    }
    if (*lines == '\0') {
        return DT_FAIL(DT_ECONFIG, "the checkpoint was not trained on a stream: data.stream can be set at the start of "
                                   "a phase, not within it");
    }
    if (sscanf(lines, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &window, &steps, &number, &sample) != 4) {
        return fail_inconsistent_numbers();
    }
    if (window != m->window) {
        return DT_FAIL(DT_ECONFIG, "data.window is %" PRIu64 ", and the run began with %" PRIu64 "; continue with that",
                       m->window, window);
    }
    if (steps != steps_per_epoch) {
        return DT_FAIL(DT_ECONFIG,
                       "an epoch of the stream has %" PRIu64 " steps, and it had %" PRIu64
                       " when the run began; continue with the same data.batch and training.accumulation",
                       steps_per_epoch, steps);
    }
    lines += strcspn(lines, "\n") + 1;
    m->next_number = number;
    m->next_sample = sample;
    const bool is_bare = *lines == '\0';
    DT_TRY(reopen_parts(m, lines, from));
    const uint64_t first = m->n > 0 ? m->part[0].base : m->next_sample;
    if (m->next_number != number || m->next_sample != sample || from < first || (from > sample && !is_bare)) {
        return fail_inconsistent_numbers();
    }
    return DT_OK;
}
