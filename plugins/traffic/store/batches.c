/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/store/batches.h"
#include "base/mem.h"

#include <inttypes.h>
#include <pthread.h>

enum {
    JOBS_MAX = 16, /* the caller's thread feeds no more */
    FULL = 1024,   /* vehicles of a batch, work for some tenths of a millisecond; and frames at most */
    KEPT = 4 * FULL,
    MOST = 1 << 16 /* vehicles in closed batches, but that one batch may have any number */
};

struct dt_batches {
    double radius_m;
    uint32_t k_max;
    dt_batch *batch; /* [n_batches] a ring: closed ones from oldest on, the open one after them */
    uint32_t n_batches;
    uint64_t oldest, next, open; /* numbers of batches: not returned, not begun, open; modulo n_batches */
    uint64_t vehicles;           /* in closed batches */
    dt_features_work work;       /* of the caller's thread */
    pthread_mutex_t mutex;       /* of next, open, is_made, is_over */
    pthread_cond_t closed, made;
    pthread_t thread[JOBS_MAX];
    uint32_t n_threads;
    bool is_over;
};

static dt_batch *batch_slot(const dt_batches *a, uint64_t number)
{
    return &a->batch[number % a->n_batches];
}

static void batch_fini(dt_batch *b)
{
    dt_free(b->vehicle);
    dt_free(b->recorded);
    dt_free(b->frame);
    dt_free(b->node);
    dt_free(b->edge);
    dt_free(b->ittc);
    dt_free(b->rowptr);
    dt_free(b->col);
    *b = (dt_batch){.n = 0};
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static dt_status make_frame(const dt_batches *a, dt_batch *b, uint32_t i, dt_features_work *work)
{
    dt_batch_frame *f = &b->frame[i];
    const size_t at = f->first, edge = at * a->k_max;
    float *node_of = b->node + at * DT_NODE_FEATURES, *edge_of = b->edge + edge * DT_EDGE_FEATURES;
    DT_TRY(dt_features_frame(work, b->vehicle + at, f->n, a->radius_m, a->k_max, node_of, b->rowptr + at + i,
                             b->col + edge, edge_of, b->ittc + at));
    dt_feature_stats_of(&f->stats, f->n, node_of, b->rowptr + at + i, edge_of);
    return DT_OK;
}

/* The next batch that is not begun. The mutex is held, and is so again at the end. */
static void make_next(dt_batches *a, dt_features_work *work)
{
    const uint64_t number = a->next++;
    dt_batch *b = batch_slot(a, number);
    pthread_mutex_unlock(&a->mutex);
    dt_status st = DT_OK;
    for (uint32_t i = 0; i < b->n_frames && st == DT_OK; i++) {
        st = make_frame(a, b, i, work);
    }
    b->st = st;
    if (st != DT_OK) {
        dt_error_save(&b->error, st);
    }
    pthread_mutex_lock(&a->mutex);
    b->is_made = true;
    pthread_cond_signal(&a->made);
}

static void *make_batches(void *user)
{
    dt_batches *a = user;
    dt_features_work work = {.grid = {.cap = 0}};
    pthread_mutex_lock(&a->mutex);
    while (!a->is_over) {
        if (a->next < a->open) {
            make_next(a, &work);
        } else {
            pthread_cond_wait(&a->closed, &a->mutex);
        }
    }
    pthread_mutex_unlock(&a->mutex);
    dt_features_work_fini(&work);
    return NULL;
}

/* ---- the caller's side ------------------------------------------------------------------------------------------- */

dt_status dt_batches_create(double radius_m, uint32_t k_max, uint32_t jobs, dt_batches **out_p)
{
    const uint32_t wanted = jobs < 1 ? 1 : jobs > JOBS_MAX ? JOBS_MAX : jobs;
    dt_batches *a = dt_alloc(sizeof(*a));
    if (a == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to make features");
    }
    a->radius_m = radius_m;
    a->k_max = k_max;
    a->n_batches = wanted == 1 ? 2 : 2 * wanted + 2;
    a->batch = dt_alloc_n(a->n_batches, sizeof(*a->batch));
    if (a->batch == NULL) {
        dt_free(a);
        return DT_FAIL(DT_ENOMEM, "no memory to make features");
    }
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->closed, NULL);
    pthread_cond_init(&a->made, NULL);
    /* a thread that cannot be had is done without: the caller's makes everything, if need be */
    while (a->n_threads + 1 < wanted && pthread_create(&a->thread[a->n_threads], NULL, make_batches, a) == 0) {
        a->n_threads++;
    }
    *out_p = a;
    return DT_OK;
}

static dt_status reserve_batch(const dt_batches *a, dt_batch *b, uint32_t n)
{
    uint32_t cap = 64;
    if (n <= b->cap) {
        return DT_OK;
    }
    while (cap < n) {
        cap *= 2;
    }
    const size_t edges = (size_t)cap * a->k_max;
    dt_vehicle *vehicle = dt_realloc(b->vehicle, cap * sizeof(*vehicle));
    b->vehicle = vehicle != NULL ? vehicle : b->vehicle;
    dt_recorded *recorded = dt_realloc(b->recorded, cap * sizeof(*recorded));
    b->recorded = recorded != NULL ? recorded : b->recorded;
    /* nothing of what is made is there yet */
    dt_free(b->node);
    dt_free(b->edge);
    dt_free(b->ittc);
    dt_free(b->rowptr);
    dt_free(b->col);
    b->cap = 0;
    b->node = dt_alloc_n(cap, DT_NODE_FEATURES * sizeof(*b->node));
    b->edge = dt_alloc_n(edges, DT_EDGE_FEATURES * sizeof(*b->edge));
    b->ittc = dt_alloc_n(cap, sizeof(*b->ittc));
    b->rowptr = dt_alloc_n((size_t)cap + FULL, sizeof(*b->rowptr)); /* a frame has one more than vehicles */
    b->col = dt_alloc_n(edges, sizeof(*b->col));
    if (vehicle == NULL || recorded == NULL || b->node == NULL || b->edge == NULL || b->ittc == NULL ||
        b->rowptr == NULL || b->col == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for frames of %" PRIu32 " vehicles", n);
    }
    b->cap = cap;
    return DT_OK;
}

static dt_status reserve_frame(dt_batch *b)
{
    if (b->n_frames < b->frames_cap) {
        return DT_OK;
    }
    const uint32_t cap = b->frames_cap == 0 ? 16 : 2 * b->frames_cap; /* at most FULL, see dt_batches_reserve */
    dt_batch_frame *grown = dt_realloc(b->frame, cap * sizeof(*grown));
    if (grown == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRIu32 " frames", cap);
    }
    b->frame = grown;
    b->frames_cap = cap;
    return DT_OK;
}

dt_status dt_batches_reserve(dt_batches *a, uint32_t n, dt_batch **out_p)
{
    dt_batch *b = batch_slot(a, a->open);
    *out_p = NULL;
    if (b->n_frames == FULL || (b->n_frames > 0 && (uint64_t)b->n + n > FULL)) {
        dt_batches_close(a);
        b = batch_slot(a, a->open);
    }
    const uint64_t n_closed = a->open - a->oldest;
    if (n_closed > 0 && (n_closed + 1 >= a->n_batches || a->vehicles + n > MOST)) {
        return DT_OK;
    }
    DT_TRY(reserve_batch(a, b, b->n + n + 1)); /* a frame without vehicles is one too */
    DT_TRY(reserve_frame(b));
    *out_p = b;
    return DT_OK;
}

void dt_batches_close(dt_batches *a)
{
    const dt_batch *b = batch_slot(a, a->open);
    if (b->n_frames == 0) {
        return;
    }
    a->vehicles += b->n;
    pthread_mutex_lock(&a->mutex);
    a->open++;
    pthread_cond_signal(&a->closed);
    pthread_mutex_unlock(&a->mutex);
}

dt_status dt_batches_take(dt_batches *a, bool waits, dt_batch **out_p)
{
    dt_batch *b = batch_slot(a, a->oldest);
    *out_p = NULL;
    if (a->oldest == a->open) {
        return DT_OK;
    }
    pthread_mutex_lock(&a->mutex);
    while (waits && !b->is_made) {
        if (a->next < a->open) {
            make_next(a, &a->work);
        } else {
            pthread_cond_wait(&a->made, &a->mutex);
        }
    }
    const bool is_made = b->is_made;
    pthread_mutex_unlock(&a->mutex);
    if (is_made && b->st != DT_OK) {
        return dt_error_restore(&b->error);
    }
    *out_p = is_made ? b : NULL;
    return DT_OK;
}

void dt_batches_release(dt_batches *a)
{
    dt_batch *b = batch_slot(a, a->oldest);
    a->vehicles -= b->n;
    a->oldest++;
    b->n = b->n_frames = 0;
    b->is_made = false;
    if (b->cap > KEPT) {
        batch_fini(b);
    }
}

void dt_batches_destroy(dt_batches *a)
{
    if (a == NULL) {
        return;
    }
    pthread_mutex_lock(&a->mutex);
    a->is_over = true;
    pthread_cond_broadcast(&a->closed);
    pthread_mutex_unlock(&a->mutex);
    for (uint32_t i = 0; i < a->n_threads; i++) {
        pthread_join(a->thread[i], NULL);
    }
    for (uint32_t i = 0; i < a->n_batches; i++) {
        batch_fini(&a->batch[i]);
    }
    dt_features_work_fini(&a->work);
    pthread_cond_destroy(&a->made);
    pthread_cond_destroy(&a->closed);
    pthread_mutex_destroy(&a->mutex);
    dt_free(a->batch);
    dt_free(a);
}
