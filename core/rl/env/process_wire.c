/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/env/process_wire.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SLICE_MS = 50, MOST_BYTES = 1 << 24 };
enum { LEAST_SPINS = 16, MOST_SPINS = 1024 }; /* tens of microseconds at most; each wait doubles or halves the next */
enum { CONTROL_BYTES = 4096 };

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

static bool add_array(size_t n, size_t bytes, size_t *at, size_t *begin_p)
{
    size_t all = 0;
    *begin_p = (*at + DT_WIRE_LINE - 1) / DT_WIRE_LINE * DT_WIRE_LINE;
    return dt_mul_size(n, bytes, &all) && !__builtin_add_overflow(*begin_p, all, at);
}

bool dt_wire_map_init(dt_wire_map *m, uint32_t places, size_t record_bytes)
{
    size_t at = CONTROL_BYTES;
    uint32_t calls = 4; /* one of each instance, and one more */
    while (calls < places + 1 && calls < UINT32_MAX / 2) {
        calls *= 2;
    }
    *m = (dt_wire_map){.places = places, .mask = calls - 1, .record_bytes = record_bytes};
    return add_array(calls, sizeof(dt_wire_call), &at, &m->ring) &&
           add_array(places, sizeof(int32_t), &at, &m->status) &&
           add_array(places, DT_WIRE_ERROR_BYTES, &at, &m->error) && add_array(places, record_bytes, &at, &m->record) &&
           add_array(0, 0, &at, &m->bytes);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static inline void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

bool dt_wire_spin_while(dt_wire_spin *s, atomic_uint *word, unsigned old)
{
    const uint32_t most = s->most > LEAST_SPINS ? s->most : LEAST_SPINS;
    for (uint32_t i = 0; i < most; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != old) {
            s->most = most < MOST_SPINS ? 2 * most : most;
            return true;
        }
        pause_cpu();
    }
    s->most = most / 2;
    return false;
}

void dt_wire_sleep(atomic_uint *word, unsigned old, double slice_s)
{
    const struct timespec t = {.tv_sec = (time_t)slice_s, .tv_nsec = (long)(1e9 * (slice_s - (double)(time_t)slice_s))};
    (void)syscall(SYS_futex, word, FUTEX_WAIT, old, &t, NULL, 0);
}

void dt_wire_wake(atomic_uint *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Until fd can be read or written, or waiting is over. */
static dt_wire_result wait_for_events(int fd, short events, const dt_wire_patience *patience)
{
    struct pollfd p = {.fd = fd, .events = events};
    for (;;) {
        const int n = poll(&p, 1, patience != NULL ? SLICE_MS : -1);
        if (n > 0) {
            return DT_WIRE_OK; /* or gone, which the next call reports */
        }
        if (n < 0 && errno != EINTR) {
            return DT_WIRE_GONE;
        }
        if (patience != NULL && !patience->goes_on(patience->user)) {
            return DT_WIRE_STOPPED;
        }
        if (patience != NULL && dt_clock_s() > patience->deadline) {
            return DT_WIRE_LATE;
        }
    }
}

/* A piece that could not be moved now, or was: the whole transfer continues with DT_WIRE_OK. A side that sends a byte
 * now and then is late all the same. */
static dt_wire_result continue_transfer(int fd, ssize_t n, short events, const dt_wire_patience *patience)
{
    if (n > 0) {
        return patience != NULL && dt_clock_s() > patience->deadline ? DT_WIRE_LATE : DT_WIRE_OK;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return wait_for_events(fd, events, patience);
    }
    return DT_WIRE_GONE;
}

dt_wire_result dt_wire_send(int fd, const void *p, size_t bytes, const dt_wire_patience *patience)
{
    for (const char *at = p; bytes > 0;) {
        const ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        const dt_wire_result r = continue_transfer(fd, n, POLLOUT, patience);
        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        }
        if (r != DT_WIRE_OK && bytes > 0) {
            return r;
        }
    }
    return DT_WIRE_OK;
}

dt_wire_result dt_wire_receive(int fd, void *p, size_t bytes, const dt_wire_patience *patience)
{
    for (char *at = p; bytes > 0;) {
        const ssize_t n = recv(fd, at, bytes, MSG_DONTWAIT);
        const dt_wire_result r = continue_transfer(fd, n, POLLIN, patience);
        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        }
        if (r != DT_WIRE_OK && bytes > 0) {
            return r;
        }
    }
    return DT_WIRE_OK;
}

dt_wire_result dt_wire_send_message(int fd, const void *p, uint64_t bytes, const dt_wire_patience *patience)
{
    const dt_wire_result r = dt_wire_send(fd, &bytes, sizeof(bytes), patience);
    return r == DT_WIRE_OK ? dt_wire_send(fd, p, bytes, patience) : r;
}

dt_wire_result dt_wire_receive_message(int fd, char **p_p, uint64_t *bytes_p, const dt_wire_patience *patience)
{
    uint64_t bytes = 0;
    *p_p = NULL;
    *bytes_p = 0;
    dt_wire_result r = dt_wire_receive(fd, &bytes, sizeof(bytes), patience);
    if (r != DT_WIRE_OK || bytes > MOST_BYTES) {
        return r != DT_WIRE_OK ? r : DT_WIRE_NONSENSE;
    }
    char *p = dt_alloc(bytes + 1);
    r = p != NULL ? dt_wire_receive(fd, p, bytes, patience) : DT_WIRE_NO_MEMORY;
    if (r != DT_WIRE_OK) {
        dt_free(p);
        return r;
    }
    p[bytes] = '\0';
    *p_p = p;
    *bytes_p = bytes;
    return DT_WIRE_OK;
}
