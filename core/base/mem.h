/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory: the only allocation functions of the host. Counted (a test proves that a steady step
 * allocates nothing) and able to fail on demand (DTRAIN_FAULT=alloc:N fails the N-th call, see fault.h).
 * Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_MEM_H
#define DTRAIN_CORE_BASE_MEM_H

#include "dtrain/checked.h" /* brings: sizes whose sums and products are checked, dt_mul_size */
#include "dtrain/status.h"

/* Zeroed, 64-byte aligned; NULL when out of memory; 0 bytes give 1. */
void *dt_alloc(size_t bytes);
void *dt_alloc_n(size_t n, size_t size); /* overflow-checked n * size, zeroed */
void *dt_realloc(void *p, size_t bytes); /* grown part is NOT zeroed; NULL leaves p alive */
void dt_free(void *p);                   /* NULL is fine */
char *dt_strdup(const char *s);          /* NULL in gives NULL out */
size_t dt_alloc_bytes(const void *p);    /* as requested; p is a block of dt_alloc */
uint64_t dt_alloc_calls(void);           /* calls so far, all threads */
uint64_t dt_alloc_live_bytes(void);      /* bytes requested and not yet freed */

/* Another source of blocks, which takes over for the rest of this process (fence.h). alloc gives zeroed bytes at a
 * multiple of 64 with head_bytes in front of them, or NULL, and then the block comes from where all come from. [main],
 * before there are other threads. */
typedef struct dt_alloc_source {
    void *(*alloc)(size_t head_bytes, size_t bytes);
    void (*release)(void *user);
} dt_alloc_source;
void dt_alloc_from(const dt_alloc_source *s);

/* Large arenas: anonymous mmap, zeroed, touched lazily. bytes is rounded up to pages. Whole huge pages are asked for
 * from the first byte on, what is left after them stays in small ones: so what a touch makes resident is known. */
dt_status dt_arena_map(size_t bytes, void **out_p) DT_NODISCARD;
void dt_arena_unmap(void *p, size_t bytes);
size_t dt_arena_bytes(size_t bytes); /* what mapping so many takes: whole pages */
/* Of an arena of so many: the piece that becomes resident at a first touch of byte at. It begins at a multiple of
 * itself. */
size_t dt_arena_granule(size_t bytes, size_t at);
size_t dt_arena_touched(size_t bytes, size_t used); /* what is resident once its first so many are touched */
uint64_t dt_arena_live_bytes(void);                 /* mapped now, all threads */
uint64_t dt_arena_peak_bytes(void);                 /* most at once since the last reset */
void dt_arena_peak_reset(void);

#endif
