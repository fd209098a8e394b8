/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of exactly n bytes whose end is the begin of a page without access: a read or write one byte past the end is a
 * SIGSEGV without any sanitizer. Threads: any.
 */
#ifndef DTRAIN_TESTS_GUARDED_H
#define DTRAIN_TESTS_GUARDED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static inline size_t guarded_pages(size_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (n + page - 1) / page * page;
}

/* Zeros; aligned as n is. NULL: no memory. Freed with guarded_give. */
static inline void *guarded_take(size_t n)
{
    const size_t inside = guarded_pages(n), page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *p = mmap(NULL, inside + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        return NULL;
    }
    if (mprotect(p + inside, page, PROT_NONE) != 0) {
        munmap(p, inside + page);
        return NULL;
    }
    return p + inside - n;
}

static inline void guarded_give(void *block, size_t n)
{
    const size_t inside = guarded_pages(n), page = (size_t)sysconf(_SC_PAGESIZE);
    munmap((uint8_t *)block + n - inside, inside + page);
}

#endif
