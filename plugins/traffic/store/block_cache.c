/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/store/block_cache.h"
#include "base/err.h"
#include "base/mem.h"

#include <pthread.h>

enum { WAYS = 8, SETS_MAX = 1 << 16 };

typedef struct slot {
    unsigned char *kept; /* [DT_BLOCKS_BYTES_MAX], NULL: empty */
    int64_t block;
    uint32_t array;
    uint64_t asked_at; /* of the set's clock; 0: holds nothing */
} slot;

typedef struct set {
    pthread_mutex_t lock;
    slot way[WAYS];
    unsigned char *room; /* [DT_BLOCKS_BYTES_MAX] a block before its bytes are turned back */
    uint64_t clock, unpacked, held;
} set;

struct dt_block_cache {
    int64_t n_sets;
    set set[];
};

dt_status dt_block_cache_create(uint64_t bytes, dt_block_cache **out_p)
{
    int64_t n = (int64_t)(bytes / ((uint64_t)WAYS * DT_BLOCKS_BYTES_MAX));
    n = n < 1 ? 1 : n > SETS_MAX ? SETS_MAX : n;
    dt_block_cache *c = dt_alloc(sizeof(*c) + (size_t)n * sizeof(c->set[0]));
    if (c == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for a cache of %lld blocks", (long long)n * WAYS);
    }
    for (; c->n_sets < n; c->n_sets++) {
        pthread_mutex_init(&c->set[c->n_sets].lock, NULL);
    }
    *out_p = c;
    return DT_OK;
}

void dt_block_cache_destroy(dt_block_cache *c)
{
    if (c == NULL) {
        return;
    }
    for (int64_t i = 0; i < c->n_sets; i++) {
        for (int k = 0; k < WAYS; k++) {
            dt_free(c->set[i].way[k].kept);
        }
        dt_free(c->set[i].room);
        pthread_mutex_destroy(&c->set[i].lock);
    }
    dt_free(c);
}

/* Neighbours of an array go to neighbouring sets, arrays begin apart. */
static set *find_set(dt_block_cache *c, uint32_t array, int64_t block)
{
    return &c->set[(uint64_t)(block + array * INT64_C(0x9e3779b1)) % (uint64_t)c->n_sets];
}

/* The slot that holds the block, or else the one to put it in. */
static slot *find_slot(set *s, uint32_t array, int64_t block)
{
    slot *oldest = &s->way[0];
    for (int k = 0; k < WAYS; k++) {
        slot *w = &s->way[k];
        if (w->asked_at > 0 && w->array == array && w->block == block) {
            return w;
        }
        if (w->asked_at < oldest->asked_at) {
            oldest = w;
        }
    }
    return oldest;
}

static dt_status fill_slot(set *s, slot *w, const dt_blocks *b, uint32_t array, const char *name, int64_t block)
{
    const void *kept = NULL;
    w->asked_at = 0;
    if (s->room == NULL) {
        s->room = dt_alloc(DT_BLOCKS_BYTES_MAX);
    }
    if (w->kept == NULL && (w->kept = dt_alloc(DT_BLOCKS_BYTES_MAX)) != NULL) {
        s->held++;
    }
    if (s->room == NULL || w->kept == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory to unpack a block of %s", name);
    }
    DT_TRY(dt_blocks_unpack(b, name, block, w->kept, s->room, &kept));
    w->array = array;
    w->block = block;
    s->unpacked++;
    return DT_OK;
}

static dt_status read_block(dt_block_cache *c, const dt_blocks *b, uint32_t array, const char *name, int64_t block,
                            int64_t first, int64_t n, void *out)
{
    set *s = find_set(c, array, block);
    pthread_mutex_lock(&s->lock);
    slot *w = find_slot(s, array, block);
    dt_status st = DT_OK;
    if (w->asked_at == 0 || w->array != array || w->block != block) {
        st = fill_slot(s, w, b, array, name, block);
    }
    if (st == DT_OK) {
        w->asked_at = ++s->clock;
        dt_blocks_values(b, w->kept + (size_t)first * b->row_bytes, n, out);
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

dt_status dt_block_cache_read(dt_block_cache *c, const dt_blocks *b, uint32_t array, const char *name, int64_t from,
                              int64_t n, void *out)
{
    unsigned char *to = out;
    if (b->codec == DT_CODEC_NONE) { /* rows follow each other in the file */
        dt_blocks_values(b, b->map + b->data_at + (size_t)from * b->row_bytes, n, out);
        return DT_OK;
    }
    while (n > 0) {
        const int64_t block = from / b->block_rows, first = from % b->block_rows;
        const int64_t left = dt_blocks_rows_of(b, block) - first, part = n < left ? n : left;
        DT_TRY(read_block(c, b, array, name, block, first, part, to));
        to += (size_t)part * b->width * 4;
        from += part;
        n -= part;
    }
    return DT_OK;
}

dt_block_cache_use dt_block_cache_use_of(const dt_block_cache *c)
{
    dt_block_cache_use u = {0};
    for (int64_t i = 0; i < c->n_sets; i++) {
        set *s = (set *)(uintptr_t)&c->set[i];
        pthread_mutex_lock(&s->lock);
        u.asked += s->clock;
        u.unpacked += s->unpacked;
        u.bytes += s->held * DT_BLOCKS_BYTES_MAX;
        pthread_mutex_unlock(&s->lock);
    }
    return u;
}
