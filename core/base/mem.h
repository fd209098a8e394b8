/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory: the only allocation functions of the host. Counted (a test proves that a steady step
 * allocates nothing) and able to fail on demand (DTRAIN_FAULT=alloc:N fails the N-th call, see fault.h).
 * Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_MEM_H
#define DTRAIN_CORE_BASE_MEM_H

#include "dtrain/status.h"
#include <stdbool.h>

/* Zeroed, 64-byte aligned; NULL when out of memory; 0 bytes give 1. */
void *dt_alloc(size_t bytes);
void *dt_alloc_n(size_t n, size_t size);             /* overflow-checked n * size, zeroed */
void *dt_realloc(void *p, size_t bytes);             /* grown part is NOT zeroed; NULL leaves p alive */
void dt_free(void *p);                               /* NULL is fine */
char *dt_strdup(const char *s);                      /* NULL in gives NULL out */
bool dt_mul_size(size_t a, size_t b, size_t *out_p); /* false on overflow */
uint64_t dt_alloc_count(void);                       /* calls so far, all threads */
uint64_t dt_alloc_live_bytes(void);                  /* bytes requested and not yet freed */

/* Large arenas: anonymous mmap, zeroed, touched lazily. bytes is rounded up to pages. Whole huge pages are asked for
 * from the first byte on, what is left behind them stays in small ones: so what a touch makes resident is known. */
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
