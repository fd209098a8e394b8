/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory. See mem.h. In front of every block is a small header with what free needs:
 *   raw ... [block_head][user bytes]     user is 64-byte aligned, the head ends where the user's bytes begin
 */
#include <config.h>

#include "base/mem.h"
#include "base/err.h"
#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ALIGN = 64,
    HUGE_BYTES = 2 * 1024 * 1024,
    LAZY_BYTES = 256 * 1024 /* from here on zeroing is left to the kernel, which does it page by page on first touch */
};

typedef struct block_head {
    void *raw;    /* NULL: a block of source */
    size_t bytes; /* as requested */
} block_head;

static const dt_alloc_source *source; /* set while foreign code is on trial */
static _Atomic uint64_t n_calls;
static _Atomic uint64_t live_bytes;
static _Atomic uint64_t arena_bytes, arena_peak;

static block_head *header_of_block(void *user)
{
    return (block_head *)user - 1;
}

/* A block with its header, uncounted in n_calls; zeroed when asked. */
static void *allocate_block(size_t bytes, bool is_zeroed)
{
    if (bytes == 0) {
        bytes = 1;
    }
    if (bytes > SIZE_MAX / 2) {
        return NULL;
    }
    char *raw = NULL, *user = source != NULL ? source->alloc(sizeof(block_head), bytes) : NULL;
    if (user != NULL) {
        /* it is zeroed and aligned */
    } else if (is_zeroed && bytes >= LAZY_BYTES) {
        raw = calloc(1, bytes + sizeof(block_head) + ALIGN);
        if (raw == NULL) {
            return NULL;
        }
        uintptr_t end_of_head = (uintptr_t)raw + sizeof(block_head);
        user = raw + sizeof(block_head) + (size_t)(-end_of_head & (ALIGN - 1));
    } else {
        void *p = NULL;
        if (posix_memalign(&p, ALIGN, ALIGN + bytes) != 0) {
            return NULL;
        }
        raw = p;
        user = raw + ALIGN;
        if (is_zeroed) {
            memset(user, 0, bytes);
        }
    }
    *header_of_block(user) = (block_head){.raw = raw, .bytes = bytes};
    atomic_fetch_add_explicit(&live_bytes, bytes, memory_order_relaxed);
    return user;
}

/* Every public allocation passes here: counted, and refused when a test demands it. */
static bool count_and_allow_allocation(void)
{
    atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed);
    return !dt_fault("alloc");
}

void *dt_alloc(size_t bytes)
{
    return count_and_allow_allocation() ? allocate_block(bytes, true) : NULL;
}

void *dt_alloc_n(size_t n, size_t size)
{
    size_t bytes = 0;
    return dt_mul_size(n, size, &bytes) ? dt_alloc(bytes) : NULL;
}

void *dt_realloc(void *p, size_t bytes)
{
    if (p == NULL) {
        return dt_alloc(bytes);
    }
    if (!count_and_allow_allocation()) {
        return NULL;
    }
    void *grown = allocate_block(bytes, false);
    if (grown == NULL) {
        return NULL;
    }
    size_t kept = header_of_block(p)->bytes < bytes ? header_of_block(p)->bytes : bytes;
    memcpy(grown, p, kept);
    dt_free(p);
    return grown;
}

void dt_free(void *p)
{
    if (p == NULL) {
        return;
    }
    atomic_fetch_sub_explicit(&live_bytes, header_of_block(p)->bytes, memory_order_relaxed);
    if (header_of_block(p)->raw == NULL) {
        source->release(p);
    } else {
        free(header_of_block(p)->raw);
    }
}

char *dt_strdup(const char *s)
{
    if (s == NULL) {
        return NULL;
    }
    size_t bytes = strlen(s) + 1;
    char *copy = dt_alloc(bytes);
    if (copy != NULL) {
        memcpy(copy, s, bytes);
    }
    return copy;
}

void dt_alloc_from(const dt_alloc_source *s)
{
    source = s;
}

size_t dt_alloc_bytes(const void *p)
{
    return ((const block_head *)p - 1)->bytes;
}

uint64_t dt_alloc_calls(void)
{
    return atomic_load_explicit(&n_calls, memory_order_relaxed);
}

uint64_t dt_alloc_live_bytes(void)
{
    return atomic_load_explicit(&live_bytes, memory_order_relaxed);
}

static bool round_to_pages(size_t bytes, size_t *out_p)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (bytes == 0) {
        bytes = 1;
    }
    if (bytes > SIZE_MAX - page) {
        return false;
    }
    *out_p = (bytes + page - 1) / page * page;
    return true;
}

size_t dt_arena_bytes(size_t bytes)
{
    size_t mapped = 0;
    return round_to_pages(bytes, &mapped) ? mapped : SIZE_MAX;
}

/* Huge pages are given on request, unless the system never gives any. Asked once. */
static bool has_huge_pages(void)
{
    static _Atomic int known; /* 0: not yet; 1: no; 2: yes */
    if (known == 0) {
        char text[64] = "";
        int fd = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            (void)!read(fd, text, sizeof(text) - 1);
            close(fd);
        }
        known = text[0] != '\0' && strstr(text, "[never]") == NULL ? 2 : 1;
    }
    return known == 2;
}

size_t dt_arena_granule(size_t bytes, size_t at)
{
    const bool is_huge = at / HUGE_BYTES < dt_arena_bytes(bytes) / HUGE_BYTES && has_huge_pages();
    return is_huge ? HUGE_BYTES : (size_t)sysconf(_SC_PAGESIZE);
}

size_t dt_arena_touched(size_t bytes, size_t used)
{
    if (used == 0) {
        return 0;
    }
    const size_t last = (used < bytes ? used : bytes) - 1, granule = dt_arena_granule(bytes, last);
    return (last / granule + 1) * granule;
}

static void count_arena(uint64_t mapped)
{
    const uint64_t now = atomic_fetch_add_explicit(&arena_bytes, mapped, memory_order_relaxed) + mapped;
    uint64_t peak = atomic_load_explicit(&arena_peak, memory_order_relaxed);
    while (now > peak && !atomic_compare_exchange_weak_explicit(&arena_peak, &peak, now, memory_order_relaxed,
                                                                memory_order_relaxed)) {
    }
    atomic_fetch_add_explicit(&live_bytes, mapped, memory_order_relaxed);
}

uint64_t dt_arena_live_bytes(void)
{
    return atomic_load_explicit(&arena_bytes, memory_order_relaxed);
}

uint64_t dt_arena_peak_bytes(void)
{
    return atomic_load_explicit(&arena_peak, memory_order_relaxed);
}

void dt_arena_peak_reset(void)
{
    atomic_store_explicit(&arena_peak, dt_arena_live_bytes(), memory_order_relaxed);
}

/* So many bytes, beginning where a huge page does if they hold one. */
static void *map_aligned(size_t bytes)
{
    const size_t extra = bytes >= HUGE_BYTES ? HUGE_BYTES : 0;
    if (bytes > SIZE_MAX - extra) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    char *p = mmap(NULL, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED || extra == 0) {
        return p;
    }
    const size_t before = (size_t)(-(uintptr_t)p & (HUGE_BYTES - 1));
    if (before > 0) {
        munmap(p, before);
    }
    if (before < extra) {
        munmap(p + before + bytes, extra - before);
    }
    return p + before;
}

dt_status dt_arena_map(size_t bytes, void **out_p)
{
    size_t mapped = 0;
    void *p = MAP_FAILED;
    int reason = ENOMEM;
    if (count_and_allow_allocation() && round_to_pages(bytes, &mapped)) {
        p = map_aligned(mapped);
        reason = errno;
    }
    if (p == MAP_FAILED) {
        return DT_FAIL(DT_ENOMEM, "cannot map an arena of %zu bytes: %s", bytes, strerror(reason));
    }
#ifdef MADV_HUGEPAGE
    if (mapped >= HUGE_BYTES) {
        (void)madvise(p, mapped / HUGE_BYTES * HUGE_BYTES, MADV_HUGEPAGE); /* a hint: small pages work too */
    }
#endif
    count_arena(mapped);
    *out_p = p;
    return DT_OK;
}

void dt_arena_unmap(void *p, size_t bytes)
{
    size_t mapped = 0;
    if (p == NULL || !round_to_pages(bytes, &mapped)) {
        return;
    }
    atomic_fetch_sub_explicit(&live_bytes, mapped, memory_order_relaxed);
    atomic_fetch_sub_explicit(&arena_bytes, mapped, memory_order_relaxed);
    munmap(p, mapped);
}
