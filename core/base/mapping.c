/* SPDX-License-Identifier: Apache-2.0
 *
 * See mapping.h. The handler walks a list whose nodes are never freed, only used again, and takes no lock.
 */
#include <config.h>

#include "base/mapping.h"

#include "base/beneath.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct mapping mapping;
struct mapping {
    mapping *next;
    _Atomic(uintptr_t) begin; /* 0: free */
    atomic_size_t bytes;
    struct stat file; /* as it was opened, or as it was found with the same content */
    /* under the lock */
    uint64_t content;     /* hash, where hashed > 0 */
    size_t hashed;        /* all bytes, or 0: not hashed */
    struct timespec seen; /* another time of modification with the same content, */
    double seen_s;        /* found then */
    char path[PATH_MAX];
};

#define HASHED_MOST ((size_t)256 << 20) /* of all files together */
#define STABLE_S    0.1                 /* longer than a tick of the times of files */
enum { READ_BYTES = 16384 };
static size_t hashed_bytes; /* under the lock */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of threads that add and remove */
static _Atomic(mapping *) mappings;
static uintptr_t page_bytes; /* set with the guard */

enum { NOTHING, BEING_WRITTEN, LOST };
static atomic_int state;
static atomic_bool was_changed;  /* lost_path was overwritten, and not cut */
static char lost_path[PATH_MAX]; /* written once, by the first handler, before state is LOST */

/* Async-signal-safe. The first changed file is the one reported. */
static void record_loss(const char *path, bool is_changed)
{
    int none = NOTHING;
    if (atomic_compare_exchange_strong(&state, &none, BEING_WRITTEN)) {
        for (size_t i = 0; i < sizeof(lost_path) - 1 && path[i] != '\0'; i++) {
            lost_path[i] = path[i];
        }
        atomic_store(&was_changed, is_changed);
        atomic_store(&state, LOST);
    }
}

/* Async-signal-safe. Another file in its place is no change, nor is one that was removed. */
static bool is_changed(const mapping *m)
{
    struct stat now;
    return stat(m->path, &now) == 0 && now.st_dev == m->file.st_dev && now.st_ino == m->file.st_ino &&
           (now.st_size != m->file.st_size || now.st_mtim.tv_sec != m->file.st_mtim.tv_sec ||
            now.st_mtim.tv_nsec != m->file.st_mtim.tv_nsec);
}

/* Read through the descriptor, so that the mapping stays out of memory. False: it could not be read, or has another
 * size. */
static bool hash_content(int fd, size_t bytes, uint64_t *hash_p)
{
    unsigned char part[READ_BYTES];
    size_t at = 0;
    *hash_p = 0;
    while (at < bytes) {
        const ssize_t n = pread(fd, part, bytes - at < sizeof(part) ? bytes - at : sizeof(part), (off_t)at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        *hash_p = dt_hash64(part, (size_t)n, *hash_p);
        at += (size_t)n;
    }
    return true;
}

/* Under the lock: only the time differs, and what is in the file does not. A write in the same tick after the hash
 * would not show, so that the new time counts as known when it is the same some ticks later. */
static bool is_only_touched(mapping *m)
{
    struct stat now;
    uint64_t content = 0;
    if (m->hashed == 0) {
        return false;
    }
    const int fd = dt_beneath_open(m->path, O_RDONLY, 0);
    if (fd < 0) {
        return false;
    }
    const bool is_same = fstat(fd, &now) == 0 && now.st_dev == m->file.st_dev && now.st_ino == m->file.st_ino &&
                         now.st_size == m->file.st_size && hash_content(fd, m->hashed, &content) &&
                         content == m->content;
    close(fd);
    if (!is_same) {
        return false;
    }
    if (now.st_mtim.tv_sec != m->seen.tv_sec || now.st_mtim.tv_nsec != m->seen.tv_nsec) {
        m->seen = now.st_mtim;
        m->seen_s = dt_clock_s();
    } else if (dt_clock_s() - m->seen_s > STABLE_S) {
        m->file.st_mtim = now.st_mtim;
    }
    return true;
}

/* Of a crash: a file that explains it. */
static const char *changed_file(void)
{
    for (const mapping *m = atomic_load(&mappings); m != NULL; m = m->next) {
        if (atomic_load(&m->begin) != 0 && is_changed(m)) {
            return m->path;
        }
    }
    return NULL;
}

dt_status dt_mapping_add(const void *p, size_t bytes, const char *path, const struct stat *file, int fd)
{
    pthread_mutex_lock(&lock);
    mapping *m = atomic_load(&mappings);
    while (m != NULL && atomic_load(&m->begin) != 0) {
        m = m->next;
    }
    if (m == NULL) {
        m = malloc(sizeof(*m)); /* stays for good: no leak of the caller's, so not counted by dt_alloc */
        if (m != NULL) {
            atomic_init(&m->begin, 0);
            m->next = atomic_load(&mappings);
            atomic_store(&mappings, m);
        }
    }
    if (m != NULL) {
        const size_t n = strlen(path) < sizeof(m->path) ? strlen(path) : sizeof(m->path) - 1;
        memcpy(m->path, path, n);
        m->path[n] = '\0';
        m->file = *file;
        m->seen = (struct timespec){0};
        m->hashed = bytes <= HASHED_MOST - hashed_bytes && hash_content(fd, bytes, &m->content) ? bytes : 0;
        hashed_bytes += m->hashed;
        atomic_store(&m->bytes, bytes);
        atomic_store(&m->begin, (uintptr_t)p);
    }
    pthread_mutex_unlock(&lock);
    return m != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the mapping of %s", path);
}

void dt_mapping_remove(const void *p)
{
    pthread_mutex_lock(&lock);
    for (mapping *m = atomic_load(&mappings); m != NULL; m = m->next) {
        if (atomic_load(&m->begin) == (uintptr_t)p) {
            if (is_changed(m) && !is_only_touched(m)) {
                record_loss(m->path, true);
            }
            hashed_bytes -= m->hashed;
            m->hashed = 0;
            atomic_store(&m->begin, 0);
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* Async-signal-safe: atomics, and one call of the system. */
static void on_sigbus(int number, siginfo_t *info, void *context)
{
    const int kept = errno;
    const uintptr_t at = (uintptr_t)info->si_addr;
    for (mapping *m = atomic_load(&mappings); m != NULL && info->si_code > 0; m = m->next) {
        const uintptr_t begin = atomic_load(&m->begin), bytes = atomic_load(&m->bytes);
        if (begin == 0 || at < begin || at - begin >= bytes) {
            continue;
        }
        const uintptr_t page = at & ~(page_bytes - 1), end = (begin + bytes + page_bytes - 1) & ~(page_bytes - 1);
        if (mmap((void *)page, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
            break;
        }
        record_loss(m->path, false);
        errno = kept;
        return;
    }
    dt_crash_report(number);
    signal(number, SIG_DFL); /* no mapped file: it comes again, and ends the program */
    errno = kept;
}

void dt_mapping_install_guard(void)
{
    struct sigaction a;
    memset(&a, 0, sizeof(a));
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&a.sa_mask);
    a.sa_flags = SA_SIGINFO | SA_RESTART;
    a.sa_sigaction = on_sigbus;
    sigaction(SIGBUS, &a, NULL);
    dt_crash_set_changed_file(changed_file);
}

static void check_files(double every_s)
{
    static _Atomic double last_s;
    const double now = dt_clock_s();
    if (every_s > 0 && now - atomic_load(&last_s) < every_s) {
        return;
    }
    atomic_store(&last_s, now);
    pthread_mutex_lock(&lock);
    for (mapping *m = atomic_load(&mappings); m != NULL; m = m->next) {
        if (atomic_load(&m->begin) != 0 && is_changed(m) && !is_only_touched(m)) {
            record_loss(m->path, true);
        }
    }
    pthread_mutex_unlock(&lock);
}

dt_status dt_mapping_check(double every_s)
{
    check_files(every_s);
    if (atomic_load(&state) == NOTHING) {
        return DT_OK;
    }
    while (atomic_load(&state) == BEING_WRITTEN) { /* a few letters are being copied */
    }
    return DT_FAIL(DT_EDATA,
                   "%s %s while in use: data read from it since then is invalid and discarded; restore the complete "
                   "file and resume from the last checkpoint (--resume)",
                   lost_path, atomic_load(&was_changed) ? "was changed" : "became shorter, or its disk failed,");
}
