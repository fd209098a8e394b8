/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/import/import_jobs.h"
#include "traffic/import/import_part.h"
#include "traffic/text/source.h"
#include "base/beneath.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/signals.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { FOLDER_BYTES = 32, JOBS_MAX = 1024, LEAST_SORT_BYTES = 1 << 20, LOOK_NS = 100000000 };
static const size_t sort_bytes = (size_t)64 << 20;

typedef struct jobs jobs;

typedef struct part {
    jobs *all;
    const dt_import_group *group;
    uint32_t number;
    char key[DT_PART_KEY_BYTES];
    dt_str folder;
    bool is_finished, is_before;         /* the second: it lay there finished */
    _Atomic uint64_t read, stored, rows; /* bytes, rows of so many */
} part;

struct jobs {
    const char *const *src;
    const char *out;
    const dt_import_options *opt;
    const dt_import_plan *plan;
    dt_str folder;
    int lock;          /* -1: none */
    dt_staging *aside; /* the store's, until it is begun */
    part *part;
    uint32_t n_jobs, n_before;
    uint32_t threads;      /* of each job */
    pthread_mutex_t mutex; /* of what follows, and of is_finished */
    pthread_cond_t changed;
    uint32_t next;
    _Atomic uint32_t failed; /* the first part that failed; plan->n: none. Those after it are not made */
    dt_error error;          /* its own */
};

/* ---- plan -------------------------------------------------------------------------------------------------------- */

dt_status dt_import_plan_make(const char *const *src, uint32_t n_src, const dt_import_options *opt,
                              dt_import_plan *out_p)
{
    dt_import_plan p = {.group = dt_alloc_n(n_src, sizeof(*p.group))};
    if (p.group == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRIu32 " files", n_src);
    }
    bool is_full = true;
    for (uint32_t i = 0; i < n_src; i++) {
        uint64_t bytes = 0;
        const dt_status st = dt_source_size(src[i], &bytes);
        if (st != DT_OK) {
            dt_import_plan_fini(&p);
            return st;
        }
        if (is_full) {
            p.group[p.n++] = (dt_import_group){.first = i};
        }
        dt_import_group *g = &p.group[p.n - 1];
        g->n++;
        g->bytes += bytes;
        p.bytes += bytes;
        is_full = g->bytes >= opt->part_bytes;
    }
    *out_p = p;
    return DT_OK;
}

void dt_import_plan_fini(dt_import_plan *p)
{
    dt_free(p->group);
    *p = (dt_import_plan){.n = 0};
}

/* ---- one part ---------------------------------------------------------------------------------------------------- */

static bool part_stops(void *user)
{
    const part *p = user;
    const dt_import_options *opt = p->all->opt;
    return p->number > atomic_load(&p->all->failed) || (opt->stops != NULL && opt->stops(opt->stops_user));
}

static void note_progress(void *user, const dt_import_progress *now)
{
    part *p = user;
    atomic_store(now->is_storing ? &p->stored : &p->read, now->done);
    if (now->is_storing) {
        atomic_store(&p->rows, now->total);
    }
}

static dt_status fill_part(part *p, const dt_import_options *opt, dt_rows *rows, dt_rows_report *report, dt_str *notes)
{
    const char *folder = dt_str_text(&p->folder);
    dt_rows_read_as_part(rows);
    dt_rows_expect_bytes(rows, p->group->bytes);
    DT_TRY(dt_import_read(p->all->src + p->group->first, p->group->n, opt, notes, rows));
    if (dt_rows_count(rows) > 0) {
        DT_TRY(dt_rows_finish(rows, report));
        DT_TRY(dt_rows_commit(rows));
    } else {
        DT_TRY(dt_fs_mkdirs(folder));
    }
    DT_TRY(dt_str_status(notes));
    return dt_part_seal(folder, p->key, rows, report, notes);
}

static dt_status make_part(part *p)
{
    const jobs *j = p->all;
    const size_t bytes = (j->opt->memory_bytes > 0 ? j->opt->memory_bytes : sort_bytes) / j->n_jobs;
    dt_import_options opt = *j->opt;
    dt_rows *rows = NULL;
    dt_rows_report report = {0};
    dt_str notes = {0};
    opt.memory_bytes = bytes > LEAST_SORT_BYTES ? bytes : LEAST_SORT_BYTES;
    opt.jobs = j->threads;
    opt.progress = note_progress;
    opt.stops = part_stops;
    opt.progress_user = opt.stops_user = p;
    dt_status st = dt_fs_remove_tree(dt_str_text(&p->folder));
    if (st == DT_OK) {
        st = dt_rows_create(dt_str_text(&p->folder), &opt, &notes, &rows);
    }
    if (st == DT_OK) {
        st = fill_part(p, &opt, rows, &report, &notes);
    }
    dt_rows_destroy(rows);
    dt_str_fini(&report.warnings);
    dt_str_fini(&notes);
    return st;
}

/* Part by part, the first one that is not taken. */
static void *make_parts(void *user)
{
    jobs *j = user;
    pthread_mutex_lock(&j->mutex);
    while (j->next < j->plan->n && j->next < atomic_load(&j->failed)) {
        part *p = &j->part[j->next++];
        if (p->is_finished) {
            continue;
        }
        pthread_mutex_unlock(&j->mutex);
        const dt_status st = make_part(p);
        pthread_mutex_lock(&j->mutex);
        p->is_finished = st == DT_OK;
        if (st != DT_OK && p->number < atomic_load(&j->failed)) {
            dt_error_save(&j->error, st);
            atomic_store(&j->failed, p->number);
        }
        pthread_cond_broadcast(&j->changed);
    }
    pthread_mutex_unlock(&j->mutex);
    return NULL;
}

/* ---- progress ---------------------------------------------------------------------------------------------- */

/* Bytes count half when they are read, and whole when their rows are stored. */
static void report_progress(const jobs *j)
{
    dt_import_progress now = {.is_parts = true, .n_parts = j->plan->n, .total = j->plan->bytes};
    for (uint32_t i = 0; i < j->plan->n && j->opt->progress != NULL; i++) {
        const part *p = &j->part[i];
        const double rows = (double)atomic_load(&p->rows), stored = (double)atomic_load(&p->stored);
        const double bytes = (double)p->group->bytes;
        const double done = 0.5 * (double)atomic_load(&p->read) + (rows > 0 ? 0.5 * bytes * stored / rows : 0);
        now.done += p->is_finished ? p->group->bytes : (uint64_t)done;
        if (p->is_before) {
            now.before += p->group->bytes;
        }
        now.n_done += p->is_finished;
    }
    if (j->opt->progress != NULL) {
        j->opt->progress(j->opt->progress_user, &now);
    }
}

/* Until a part is finished, or none like it will be. */
static dt_status wait_for(jobs *j, const part *p)
{
    pthread_mutex_lock(&j->mutex);
    while (!p->is_finished && p->number < atomic_load(&j->failed)) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&j->changed, &j->mutex, &until);
        report_progress(j);
    }
    const bool is_finished = p->is_finished;
    pthread_mutex_unlock(&j->mutex);
    return is_finished ? DT_OK : DT_EINTERRUPTED; /* the reason is that of the part that failed */
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

typedef struct join {
    jobs *all;
    dt_store_writer *writer;
    double rate_hz;
    dt_names scenes;
    const char **path; /* [paths_cap] of the file of each scene */
    int32_t paths_cap;
    dt_rows_report report;
    dt_str *notes;
} join;

static dt_status begin_store(join *c, const dt_part_record *first)
{
    const dt_import_options *opt = c->all->opt;
    const char *slash = strrchr(c->all->src[0], '/');
    const dt_store_meta meta = {.role = DT_STORE_JOINED,
                                .frame_rate_hz = first->rate_hz,
                                .radius_m = opt->radius_m,
                                .smooth_s = opt->smooth_s,
                                .k_max = opt->k_max,
                                .packing = opt->packing,
                                .source = slash == NULL ? c->all->src[0] : slash + 1,
                                .options = first->layout};
    dt_staging *aside = c->all->aside;
    c->rate_hz = first->rate_hz;
    c->all->aside = NULL; /* the writer's from here on */
    return dt_store_create_in(aside, &meta, &c->writer);
}

/* No scene is in two files. */
static dt_status add_scenes(join *c, const part *p, const dt_part_record *r)
{
    const char *const *src = c->all->src + p->group->first;
    for (int32_t i = 0; i < r->scenes.n; i++) {
        int32_t number = 0;
        bool is_new = false;
        const char *path = src[r->file[i] < (int32_t)p->group->n ? r->file[i] : 0];
        if (c->scenes.n == c->paths_cap) {
            const int32_t cap = c->paths_cap == 0 ? 64 : 2 * c->paths_cap; /* of dt_names: at most DT_NAMES_MOST */
            const char **grown = dt_realloc(c->path, (size_t)cap * sizeof(*grown));
            if (grown == NULL) {
                return DT_FAIL(DT_ENOMEM, "no memory for %" PRId32 " scenes", cap);
            }
            c->path = grown;
            c->paths_cap = cap;
        }
        DT_TRY(dt_names_add(&c->scenes, r->scenes.name[i], &number, &is_new));
        if (!is_new) {
            return DT_FAIL(DT_EDATA,
                           "%s: scene %s is in %s too: a scene must be in one file; import them apart, or as one table",
                           path, r->scenes.name[i], c->path[number]);
        }
        c->path[number] = path;
    }
    return DT_OK;
}

static dt_status add_part(join *c, const part *p)
{
    const char *const *src = c->all->src, *folder = dt_str_text(&p->folder);
    dt_part_record r = {.rows = 0};
    dt_status st = dt_part_read(folder, &r, c->notes);
    if (st == DT_OK && p->number == 0) {
        st = begin_store(c, &r);
    }
    if (st == DT_OK && r.rate_hz != c->rate_hz) {
        st = DT_FAIL(DT_EDATA, "%s is of %g Hz and %s of %g Hz: a store has one frame rate, import them apart", src[0],
                     c->rate_hz, src[p->group->first], r.rate_hz);
    }
    if (st == DT_OK) {
        st = add_scenes(c, p, &r);
    }
    if (st == DT_OK && r.rows > 0) {
        st = dt_store_append(c->writer, folder);
    }
    dt_rows_report_add(&c->report, &r.report);
    dt_part_record_fini(&r);
    return st;
}

static dt_status join_parts(jobs *j, dt_str *notes)
{
    join c = {.all = j, .notes = notes};
    dt_status st = DT_OK;
    for (uint32_t i = 0; i < j->plan->n && st == DT_OK; i++) {
        st = wait_for(j, &j->part[i]);
        if (st == DT_OK && j->opt->stops != NULL && j->opt->stops(j->opt->stops_user)) {
            st = DT_FAIL(DT_EINTERRUPTED, "the import was asked to stop");
        }
        if (st == DT_OK) {
            st = add_part(&c, &j->part[i]);
        }
    }
    if (st == DT_OK) {
        report_progress(j);
        dt_rows_report_print(&c.report, notes);
        st = dt_str_status(notes); /* before the store is there */
    }
    if (st == DT_OK) {
        st = dt_store_commit(c.writer);
    }
    dt_store_destroy(c.writer);
    dt_names_fini(&c.scenes);
    dt_free(c.path);
    dt_str_fini(&c.report.warnings);
    return st;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* The parts are made while the finished ones are joined; none is in work afterwards. */
static dt_status run_jobs(jobs *j, dt_str *notes)
{
    pthread_t *thread = dt_alloc_n(j->n_jobs, sizeof(*thread));
    uint32_t n = 0;
    if (thread == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRIu32 " jobs", j->n_jobs);
    }
    while (n < j->n_jobs && pthread_create(&thread[n], NULL, make_parts, j) == 0) {
        n++;
    }
    dt_status st = n > 0 ? join_parts(j, notes) : DT_FAIL(DT_EIO, "cannot start a thread to import");
    if (st != DT_OK) {
        dt_error own;
        dt_error_save(&own, st);
        pthread_mutex_lock(&j->mutex);
        if (atomic_load(&j->failed) == j->plan->n) {
            j->error = own;
            atomic_store(&j->failed, 0);
        }
        pthread_mutex_unlock(&j->mutex);
    }
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(thread[i], NULL);
    }
    dt_free(thread);
    return st == DT_OK ? DT_OK : dt_error_restore(&j->error);
}

/* ---- folder ------------------------------------------------------------------------------------------------------ */

/* "0123...ef", what is being written to it ("0123...ef.partial"), and the lock. */
static bool is_ours(const char *name)
{
    return strcmp(name, "lock") == 0 || strspn(name, "0123456789abcdef") == FOLDER_BYTES;
}

static bool is_wanted(const jobs *j, const char *name)
{
    for (uint32_t i = 0; i < j->plan->n; i++) {
        if (strncmp(name, j->part[i].key, FOLDER_BYTES) == 0 && name[FOLDER_BYTES] == '\0') {
            return true;
        }
    }
    return strcmp(name, "lock") == 0;
}

static dt_status examine_folder(const jobs *j)
{
    const char *folder = dt_str_text(&j->folder);
    const dt_fs_kind kind = dt_fs_kind_of(folder);
    char **names = NULL;
    size_t n = 0;
    if (kind != DT_FS_NOTHING && kind != DT_FS_FOLDER) {
        return DT_FAIL(DT_EINVAL,
                       "%s is %s, but the parts of an import are written there: choose another --out, or remove it",
                       folder, kind == DT_FS_LINK ? "a link" : "not a folder");
    }
    DT_TRY(kind == DT_FS_FOLDER ? dt_fs_list(folder, &names, &n) : DT_OK);
    dt_status st = DT_OK;
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        if (!is_ours(names[i])) {
            st = DT_FAIL(DT_EINVAL, "%s contains \"%s\", which no import wrote: choose another --out, or remove it",
                         folder, names[i]);
        }
    }
    if (n > 0) {
        dt_fs_list_free(names, n);
    }
    return st;
}

/* What is left of other imports goes. */
static dt_status remove_stale_parts(const jobs *j)
{
    char **names = NULL;
    size_t n = 0;
    DT_TRY(dt_fs_list(dt_str_text(&j->folder), &names, &n));
    dt_status st = DT_OK;
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        dt_str path = {0};
        dt_str_addf(&path, "%s/%s", dt_str_text(&j->folder), names[i]);
        st = dt_str_status(&path);
        if (st == DT_OK && !is_wanted(j, names[i])) {
            st = dt_fs_remove_tree(dt_str_text(&path));
        }
        dt_str_fini(&path);
    }
    dt_fs_list_free(names, n);
    return st;
}

static dt_status lock_parts(jobs *j)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/lock", dt_str_text(&j->folder));
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_fs_mkdirs(dt_str_text(&j->folder));
    }
    if (st == DT_OK) {
        st = dt_lock_acquire(dt_str_text(&path), &j->lock);
    }
    if (st == DT_AGAIN) {
        st = DT_CONTEXT(DT_EINVAL, "an import to %s is in progress", j->out);
    }
    dt_str_fini(&path);
    return st;
}

/* The folder of the parts and the place of the store, both before any work. */
static dt_status claim_folder(jobs *j)
{
    dt_str_addf(&j->folder, "%s.parts", j->out);
    DT_TRY(dt_str_status(&j->folder));
    DT_TRY(dt_store_check_out(j->out));
    DT_TRY(examine_folder(j));
    DT_TRY(lock_parts(j));
    return dt_staging_open(j->out, DT_STAGING_FOLDER, &j->aside);
}

static dt_status name_parts(jobs *j)
{
    for (uint32_t i = 0; i < j->plan->n; i++) {
        part *p = &j->part[i];
        p->all = j;
        p->number = i;
        p->group = &j->plan->group[i];
        DT_TRY(dt_part_key(j->src + p->group->first, p->group->n, j->opt, p->key));
        dt_str_addf(&p->folder, "%s/%.*s", dt_str_text(&j->folder), FOLDER_BYTES, p->key);
        DT_TRY(dt_str_status(&p->folder));
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(j->part[k].key, p->key) == 0) {
                return DT_FAIL(DT_EDATA, "%s appears twice: a scene must be in one file", j->src[p->group->first]);
            }
        }
    }
    return DT_OK;
}

static void find_finished(jobs *j)
{
    for (uint32_t i = 0; i < j->plan->n; i++) {
        part *p = &j->part[i];
        p->is_finished = p->is_before = dt_part_is_finished(dt_str_text(&p->folder), p->key);
        j->n_before += p->is_before;
    }
    if (j->n_before > 0) {
        dt_log(DT_LOG_INFO, "resuming with %" PRIu32 " of %" PRIu32 " finished parts in %s", j->n_before, j->plan->n,
               dt_str_text(&j->folder));
    }
}

static uint32_t count_finished(const jobs *j)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->plan->n; i++) {
        n += j->part[i].is_finished;
    }
    return n;
}

/* The parts go when there is a store, or when there is none of them. The reason of a failure stays. */
static dt_status finish_parts(const jobs *j, dt_status st)
{
    const uint32_t n = count_finished(j);
    if (st != DT_OK && n > 0) {
        return DT_CONTEXT(st, "%" PRIu32 " of %" PRIu32 " parts are finished in %s; the same command resumes with them",
                          n, j->plan->n, dt_str_text(&j->folder));
    }
    dt_error kept;
    dt_error_save(&kept, st);
    if (dt_fs_remove_tree(dt_str_text(&j->folder)) != DT_OK) {
        dt_log(DT_LOG_WARN, "%s stays: %s", dt_str_text(&j->folder), dt_error_text());
    }
    return dt_error_restore(&kept);
}

static dt_status import_parts(jobs *j, dt_str *notes)
{
    DT_TRY(claim_folder(j));
    DT_TRY(dt_beneath_guard(dt_str_text(&j->folder)));
    dt_status st = name_parts(j);
    if (st == DT_OK) {
        st = remove_stale_parts(j);
    }
    if (st == DT_OK) {
        find_finished(j);
        st = run_jobs(j, notes);
    }
    st = finish_parts(j, st);
    dt_beneath_unguard(dt_str_text(&j->folder));
    return st;
}

dt_status dt_import_jobs(const dt_import_plan *plan, const char *const *src, const char *out,
                         const dt_import_options *opt, dt_str *notes)
{
    const uint32_t wanted = opt->jobs < 1 ? 1 : opt->jobs > JOBS_MAX ? JOBS_MAX : opt->jobs;
    jobs j = {.src = src, .out = out, .opt = opt, .plan = plan, .lock = -1};
    j.n_jobs = wanted < plan->n ? wanted : plan->n;
    j.threads = wanted / j.n_jobs;
    atomic_init(&j.failed, plan->n);
    j.part = dt_alloc_n(plan->n, sizeof(*j.part));
    if (j.part == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRIu32 " parts", plan->n);
    }
    pthread_mutex_init(&j.mutex, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&j.changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    dt_signals_set_nothing_to_save(false); /* finished parts are */
    const dt_status st = import_parts(&j, notes);
    dt_signals_set_nothing_to_save(true);
    for (uint32_t i = 0; i < plan->n; i++) {
        dt_str_fini(&j.part[i].folder);
    }
    dt_staging_close(j.aside);
    dt_lock_release(j.lock);
    pthread_cond_destroy(&j.changed);
    pthread_mutex_destroy(&j.mutex);
    dt_str_fini(&j.folder);
    dt_free(j.part);
    return st;
}
