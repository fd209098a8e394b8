/* SPDX-License-Identifier: Apache-2.0
 *
 * See fence.h. A block is [inaccessible page][pattern, head, user bytes, pattern][inaccessible page].
 */
#include <config.h>

#include "base/fence.h"
#include "base/mem.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 64, MAX_BLOCKS = 20000, PATTERN = 0xA5 };

typedef struct fenced {
    uint8_t *map, *user; /* map: from the first inaccessible page */
    size_t map_bytes, head_bytes, bytes;
    atomic_bool is_freed;
} fenced;

static fenced block[MAX_BLOCKS];
static _Atomic uint32_t n_blocks;
static void (*on_broken)(const char *what);
static size_t page;

static void *fence_alloc(size_t head_bytes, size_t bytes)
{
    if (bytes > SIZE_MAX / 4) {
        return NULL;
    }
    const uint32_t i = atomic_fetch_add(&n_blocks, 1);
    if (i >= MAX_BLOCKS) {
        atomic_store(&n_blocks, MAX_BLOCKS);
        return NULL;
    }
    const size_t user_bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    const size_t inner = (head_bytes + user_bytes + page - 1) / page * page;
    uint8_t *map = mmap(NULL, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return NULL;
    }
    if (mprotect(map + page, inner, PROT_READ | PROT_WRITE) != 0) {
        munmap(map, inner + 2 * page);
        return NULL;
    }
    uint8_t *user = map + page + inner - user_bytes;
    memset(map + page, PATTERN, (size_t)(user - map) - page - head_bytes);
    memset(user + bytes, PATTERN, user_bytes - bytes);
    block[i].map = map;
    block[i].map_bytes = inner + 2 * page;
    block[i].head_bytes = head_bytes;
    block[i].bytes = bytes;
    atomic_store(&block[i].is_freed, false);
    block[i].user = user; /* last: now it counts */
    return user;
}

static uint32_t count_used_blocks(void)
{
    const uint32_t n = atomic_load(&n_blocks);
    return n < MAX_BLOCKS ? n : MAX_BLOCKS;
}

static void report_violation(const fenced *b, const char *what)
{
    char text[120];
    snprintf(text, sizeof(text), "%s a block of %zu bytes", what, b->bytes);
    on_broken(text);
}

static bool has_fill_pattern(const uint8_t *from, const uint8_t *to)
{
    while (from < to && *from == PATTERN) {
        from++;
    }
    return from >= to;
}

static void check_block(const fenced *b)
{
    if (!has_fill_pattern(b->map + page, b->user - b->head_bytes)) {
        report_violation(b, "it wrote before the start of");
    }
    if (!has_fill_pattern(b->user + b->bytes, b->map + b->map_bytes - page)) {
        report_violation(b, "it wrote past the end of");
    }
}

void dt_fence_check(void)
{
    for (uint32_t i = 0; i < count_used_blocks(); i++) {
        if (block[i].user != NULL && !atomic_load(&block[i].is_freed)) {
            check_block(&block[i]);
        }
    }
}

static fenced *find_block(const void *at)
{
    for (uint32_t i = 0; i < count_used_blocks(); i++) {
        const fenced *b = &block[i];
        if (b->user != NULL && (const uint8_t *)at >= b->map && (const uint8_t *)at < b->map + b->map_bytes) {
            return &block[i];
        }
    }
    return NULL;
}

static void fence_release(void *user)
{
    fenced *b = find_block(user);
    if (b == NULL) {
        return;
    }
    check_block(b);
    atomic_store(&b->is_freed, true);
    /* a new mapping in its place: its memory goes back, its addresses do not */
    (void)!mmap(b->map, b->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static void handle_fault_signal(int number, siginfo_t *info, void *context)
{
    const fenced *b = find_block(info->si_addr);
    if (b != NULL) {
        report_violation(b, atomic_load(&b->is_freed)                  ? "it used, after freeing it,"
                            : (const uint8_t *)info->si_addr < b->user ? "it accessed memory before the start of"
                                                                       : "it accessed memory past the end of");
    }
    signal(SIGSEGV, SIG_DFL); /* not ours: it happens again, and ends the process */
}

static const dt_alloc_source source = {fence_alloc, fence_release};

void dt_fence_install(void (*broken)(const char *what))
{
    struct sigaction action = {.sa_sigaction = handle_fault_signal, .sa_flags = SA_SIGINFO | SA_NODEFER};
    page = (size_t)sysconf(_SC_PAGESIZE);
    on_broken = broken;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
    dt_alloc_from(&source);
}
