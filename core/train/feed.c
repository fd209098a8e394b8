/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "train/feed.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef enum slot_state { SLOT_FREE, SLOT_READING, SLOT_READY } slot_state;

typedef struct place { /* a sample and the key of its use */
    uint64_t index, key;
} place;

struct dt_feed_reader {
    const dt_feed_desc *d;
    dt_feed_desc own;
    dt_feed_shard shard;
    dt_micro_batch *micro_batch; /* [samples] at most one micro-batch per sample */
    uint64_t *index, *key;
    place *place;     /* [samples] where micro-batches keep to one part of the source; NULL: they do not */
    uint32_t samples; /* most in a shard */
    size_t arena_bytes;
    void *arena;
};

typedef struct slot {
    slot_state state;
    uint64_t number;
    dt_feed_reader reader;
    dt_error error;
} slot;

struct dt_feed {
    dt_feed_desc d;
    slot *slot;
    pthread_t *thread; /* [n_threads] */
    uint32_t n_threads, n_named, n_idle;
    pthread_mutex_t lock;
    pthread_cond_t ready, freed, idle;
    uint64_t next; /* shard to read */
    bool quit, is_paused;
};

/* ---- one shard ----------------------------------------------------------------------------------------------------
 * */

static void reader_fini(dt_feed_reader *r)
{
    dt_free(r->micro_batch);
    dt_free(r->index);
    dt_free(r->key);
    dt_free(r->place);
    dt_arena_unmap(r->arena, r->arena_bytes);
}

size_t dt_feed_arena_bytes(const dt_samples *s, uint64_t shard_samples)
{
    return dt_samples_bytes_max(s, shard_samples) + 4096;
}

static dt_status reader_init(dt_feed_reader *r, const dt_feed_desc *d)
{
    r->d = d;
    r->samples = (uint32_t)((d->sampler->batch + d->shards - 1) / d->shards);
    r->arena_bytes = dt_feed_arena_bytes(d->source, r->samples);
    r->micro_batch = dt_alloc_n(r->samples, sizeof(*r->micro_batch));
    r->index = dt_alloc_n(r->samples, sizeof(*r->index));
    r->key = dt_alloc_n(r->samples, sizeof(*r->key));
    r->place = d->source->part != NULL ? dt_alloc_n(r->samples, sizeof(*r->place)) : NULL;
    if (r->micro_batch == NULL || r->index == NULL || r->key == NULL || (d->source->part != NULL && r->place == NULL)) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a shard of a batch");
    }
    return dt_arena_map(r->arena_bytes, &r->arena);
}

static int compare_places(const void *a, const void *b)
{
    const place *p = a, *q = b;
    return (p->index > q->index) - (p->index < q->index);
}

/* In the order of the stream, where those of one part are adjacent. A window has no sample twice. */
static void sort_places(dt_feed_reader *r, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        r->place[i] = (place){r->index[i], r->key[i]};
    }
    qsort(r->place, n, sizeof(*r->place), compare_places);
    for (uint32_t i = 0; i < n; i++) {
        r->index[i] = r->place[i].index;
        r->key[i] = r->place[i].key;
    }
}

/* Which samples the shard has, and their keys. */
static uint32_t list_samples(dt_feed_reader *r, uint64_t step, uint32_t shard, const uint64_t *sample)
{
    const dt_feed_desc *d = r->d;
    const uint64_t per_epoch = dt_sampler_steps(d->sampler), batch = dt_sampler_batch(d->sampler, step);
    const uint64_t base = step % per_epoch * d->sampler->batch;
    const uint64_t begin = dt_shard_begin(batch, d->shards, shard);
    const uint32_t n = (uint32_t)(dt_shard_begin(batch, d->shards, shard + 1) - begin);
    dt_sampler_epoch order;
    dt_sampler_begin_epoch(&order, d->sampler, d->seed, d->phase, step / per_epoch);
    if (sample != NULL) {
        memcpy(r->index, sample + begin, n * sizeof(*r->index));
    } else {
        dt_sampler_list_samples(&order, base + begin, n, r->index);
    }
    for (uint32_t i = 0; i < n; i++) {
        r->key[i] = d->augment ? dt_sampler_key(&order, base + begin + i) : 0;
    }
    if (r->place != NULL) {
        sort_places(r, n);
    }
    return n;
}

dt_status dt_feed_read(dt_feed_reader *r, uint64_t step, uint32_t shard, const uint64_t *sample,
                       const dt_feed_shard **out_p)
{
    const dt_samples *source = r->d->source;
    const uint32_t n = list_samples(r, step, shard, sample);
    size_t at = 0;
    uint32_t n_micro_batches = 0;
    for (uint32_t i = 0; i < n;) {
        dt_micro_batch *sl = &r->micro_batch[n_micro_batches];
        uint32_t take = 0;
        size_t used = 0;
        DT_TRY(dt_samples_cut_micro_batch(source, r->index + i, n - i, &take, sl->size));
        DT_TRY(dt_samples_read(source, r->index + i, r->key + i, take, sl->size, (char *)r->arena + at,
                               r->arena_bytes - at, sl->field, &used));
        sl->index = r->index + i;
        at += used;
        i += take;
        n_micro_batches++;
    }
    r->shard.micro_batch = r->micro_batch;
    r->shard.n_micro_batches = n_micro_batches;
    *out_p = &r->shard;
    return DT_OK;
}

dt_status dt_feed_reader_create(const dt_feed_desc *d, dt_feed_reader **out_p)
{
    dt_feed_reader *r = dt_alloc(sizeof(*r));
    if (r == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a shard of a batch");
    }
    r->own = *d;
    const dt_status st = reader_init(r, &r->own);
    if (st < 0) {
        dt_feed_reader_destroy(r);
        return st;
    }
    *out_p = r;
    return DT_OK;
}

void dt_feed_reader_destroy(dt_feed_reader *r)
{
    if (r != NULL) {
        reader_fini(r);
        dt_free(r);
    }
}

/* ---- the threads ------------------------------------------------------------------------------------------------- */

static dt_status read_shard_number(dt_feed *f, uint64_t number, slot *s)
{
    const uint32_t per_step = f->d.shard_end - f->d.shard_begin;
    const uint64_t step = f->d.first_step + number / per_step;
    const uint32_t shard = f->d.shard_begin + (uint32_t)(number % per_step);
    const dt_feed_shard *unused = NULL;
    DT_TRACE_N("data", "read shard", "step", step + 1);
    return dt_feed_read(&s->reader, step, shard, NULL, &unused);
}

static bool can_read_ahead(const dt_feed *f)
{
    const uint64_t total = (f->d.last_step - f->d.first_step) * (f->d.shard_end - f->d.shard_begin);
    return !f->is_paused && f->next < total && f->slot[f->next % f->d.slots].state == SLOT_FREE;
}

static void *feed_main(void *arg)
{
    dt_feed *f = arg;
    pthread_mutex_lock(&f->lock);
    const uint32_t number_of_thread = f->n_named++;
    pthread_mutex_unlock(&f->lock);
    dt_trace_thread("reader", number_of_thread);
    pthread_mutex_lock(&f->lock);
    for (;;) {
        while (!f->quit && !can_read_ahead(f)) {
            f->n_idle++;
            pthread_cond_signal(&f->idle);
            pthread_cond_wait(&f->freed, &f->lock);
            f->n_idle--;
        }
        if (f->quit) {
            break;
        }
        const uint64_t number = f->next++;
        slot *s = &f->slot[number % f->d.slots];
        s->state = SLOT_READING;
        pthread_mutex_unlock(&f->lock);
        dt_error_clear();
        dt_error_save(&s->error, read_shard_number(f, number, s));
        pthread_mutex_lock(&f->lock);
        s->number = number;
        s->state = SLOT_READY;
        pthread_cond_broadcast(&f->ready);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

void dt_feed_pause(dt_feed *f)
{
    pthread_mutex_lock(&f->lock);
    f->is_paused = true;
    pthread_cond_broadcast(&f->freed);
    while (f->n_idle < f->n_threads) {
        pthread_cond_wait(&f->idle, &f->lock);
    }
    for (uint32_t i = 0; i < f->d.slots; i++) {
        f->slot[i].state = SLOT_FREE;
    }
    pthread_mutex_unlock(&f->lock);
}

void dt_feed_resume(dt_feed *f, uint64_t first_step, uint64_t last_step)
{
    pthread_mutex_lock(&f->lock);
    f->d.first_step = first_step;
    f->d.last_step = last_step;
    f->next = 0;
    f->is_paused = false;
    pthread_cond_broadcast(&f->freed);
    pthread_mutex_unlock(&f->lock);
}

dt_status dt_feed_start(const dt_feed_desc *d, dt_feed **out_p)
{
    dt_feed *f = dt_alloc(sizeof(*f));
    if (f == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the data feed");
    }
    f->d = *d;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->ready, NULL);
    pthread_cond_init(&f->freed, NULL);
    pthread_cond_init(&f->idle, NULL);
    dt_status st = DT_OK;
    f->slot = dt_alloc_n(d->slots, sizeof(*f->slot));
    f->thread = dt_alloc_n(d->threads, sizeof(*f->thread));
    if (f->slot == NULL || f->thread == NULL) {
        st = DT_FAIL(DT_ENOMEM, "out of memory for the data feed");
    }
    for (uint32_t i = 0; i < d->slots && st == DT_OK; i++) {
        st = reader_init(&f->slot[i].reader, &f->d);
    }
    for (uint32_t i = 0; i < d->threads && st == DT_OK; i++) {
        if (pthread_create(&f->thread[i], NULL, feed_main, f) != 0) {
            st = DT_FAIL(DT_EUNSUPPORTED,
                         "the system refused to start thread %u of %u that read data; lower "
                         "data.workers",
                         i + 1, d->threads);
        }
        f->n_threads += st == DT_OK;
    }
    if (st != DT_OK) {
        dt_feed_stop(f);
        return st;
    }
    *out_p = f;
    return DT_OK;
}

void dt_feed_stop(dt_feed *f)
{
    if (f == NULL) {
        return;
    }
    pthread_mutex_lock(&f->lock);
    f->quit = true;
    pthread_cond_broadcast(&f->freed);
    pthread_mutex_unlock(&f->lock);
    for (uint32_t i = 0; i < f->n_threads; i++) {
        pthread_join(f->thread[i], NULL);
    }
    if (f->slot != NULL) {
        for (uint32_t i = 0; i < f->d.slots; i++) {
            reader_fini(&f->slot[i].reader);
        }
    }
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->ready);
    pthread_cond_destroy(&f->freed);
    pthread_cond_destroy(&f->idle);
    dt_free(f->slot);
    dt_free(f->thread);
    dt_free(f);
}

dt_status dt_feed_wait(dt_feed *f, uint64_t n, const dt_feed_shard **out_p, double *waited_s)
{
    slot *s = &f->slot[n % f->d.slots];
    const double begin = dt_clock_s();
    pthread_mutex_lock(&f->lock);
    while (s->state != SLOT_READY || s->number != n) {
        pthread_cond_wait(&f->ready, &f->lock);
    }
    pthread_mutex_unlock(&f->lock);
    *waited_s += dt_clock_s() - begin;
    if (s->error.status < 0) {
        return dt_error_restore(&s->error);
    }
    *out_p = &s->reader.shard;
    return DT_OK;
}

void dt_feed_release(dt_feed *f, uint64_t n)
{
    pthread_mutex_lock(&f->lock);
    f->slot[n % f->d.slots].state = SLOT_FREE;
    pthread_cond_broadcast(&f->freed);
    pthread_mutex_unlock(&f->lock);
}
