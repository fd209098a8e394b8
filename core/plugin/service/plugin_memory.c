/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plugin/service/plugin_memory.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LARGE_BYTES = 256 * 1024, PAGES = 4096 }; /* smaller ones are touched when they are zeroed */

typedef struct large {
    struct large *next;
    uintptr_t at;
    uint64_t bytes;
} large;

static _Atomic uint64_t held;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static large *blocks; /* under lock */

void *dt_plugin_alloc(uint64_t bytes)
{
    large *entry = bytes >= LARGE_BYTES ? dt_alloc(sizeof(*entry)) : NULL;
    void *p = bytes < LARGE_BYTES || entry != NULL ? dt_alloc(bytes) : NULL;
    if (p == NULL) {
        dt_free(entry);
        return NULL;
    }
    atomic_fetch_add(&held, dt_alloc_bytes(p));
    if (entry != NULL) {
        pthread_mutex_lock(&lock);
        *entry = (large){.next = blocks, .at = (uintptr_t)p, .bytes = bytes};
        blocks = entry;
        pthread_mutex_unlock(&lock);
    }
    return p;
}

static void remove_from_list(const void *p)
{
    pthread_mutex_lock(&lock);
    large **from = &blocks;
    while (*from != NULL && (*from)->at != (uintptr_t)p) {
        from = &(*from)->next;
    }
    large *gone = *from;
    if (gone != NULL) {
        *from = gone->next;
    }
    pthread_mutex_unlock(&lock);
    dt_free(gone);
}

void dt_plugin_release(void *p)
{
    if (p == NULL) {
        return;
    }
    atomic_fetch_sub(&held, dt_alloc_bytes(p));
    if (dt_alloc_bytes(p) >= LARGE_BYTES) {
        remove_from_list(p);
    }
    dt_free(p);
}

uint64_t dt_plugin_memory_bytes(void)
{
    return atomic_load(&held);
}

/* What is not resident of the pages from begin on, both multiples of a page. */
static uint64_t count_untouched_bytes(uintptr_t begin, uintptr_t end, uintptr_t page)
{
    unsigned char is_resident[PAGES];
    uint64_t bytes = 0;
    while (begin < end) {
        const size_t n = (end - begin) / page < PAGES ? (end - begin) / page : PAGES;
        if (mincore((void *)begin, n * page, is_resident) != 0) {
            return bytes; /* nothing known: nothing said */
        }
        for (size_t i = 0; i < n; i++) {
            if ((is_resident[i] & 1) == 0) {
                bytes += page;
            }
        }
        begin += n * page;
    }
    return bytes;
}

uint64_t dt_plugin_memory_untouched_bytes(void)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uint64_t bytes = 0;
    pthread_mutex_lock(&lock);
    for (const large *b = blocks; b != NULL; b = b->next) {
        const uintptr_t begin = (b->at + page - 1) / page * page, end = (b->at + b->bytes) / page * page;
        if (begin < end) {
            bytes += count_untouched_bytes(begin, end, page);
        }
    }
    pthread_mutex_unlock(&lock);
    return bytes;
}
