/* SPDX-License-Identifier: Apache-2.0
 *
 * Clocks and memory gauges. See clock.h.
 */
#include <config.h>

#include "base/clock.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The kernel's monotonic clock may go back where a process is restored on another machine. Then it continues from its
 * last time, so that no duration is negative: what is added to it since is in shift_ns. Atomics alone, as signal
 * handlers ask. */
double dt_clock_s(void)
{
    enum { COARSE_NS = 10000000 }; /* last_ns is written this often, and not at every call */
    static _Atomic int64_t last_ns = INT64_MIN, shift_ns;
    for (;;) {
        int64_t last = atomic_load(&last_ns), shift = atomic_load(&shift_ns);
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t); /* after last_ns was read: it is never before it by itself */
        const int64_t raw = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec, now = raw + shift;
        if (last != INT64_MIN && now < last - COARSE_NS) {
            (void)atomic_compare_exchange_strong(&shift_ns, &shift, shift + (last - now)); /* or another thread did */
            continue;
        }
        if (last == INT64_MIN || now >= last + COARSE_NS) {
            (void)atomic_compare_exchange_strong(&last_ns, &last, now);
        }
        return (double)now * 1e-9;
    }
}

void dt_clock_utc(char *out, size_t bytes)
{
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    if (strftime(out, bytes, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0 && bytes > 0) {
        out[0] = '\0';
    }
}

/* "Name:  123 kB" of a status file below /proc in bytes, 0 when there is none. Allocates nothing. */
static uint64_t read_proc_status_bytes(const char *path, const char *name)
{
    char text[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0) {
        return 0;
    }
    text[n] = '\0';
    const char *line = strstr(text, name);
    return line != NULL ? strtoull(line + strlen(name), NULL, 10) * 1024 : 0;
}

uint64_t dt_rss_bytes(void)
{
    return read_proc_status_bytes("/proc/self/status", "\nVmRSS:");
}

uint64_t dt_private_bytes_of(int pid, uint64_t *shared_p)
{
    char path[48], text[128] = "";
    unsigned long long resident = 0, shared = 0;
    snprintf(path, sizeof(path), "/proc/%d/statm", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    const bool is_known = n > 0 && sscanf(text, "%*u %llu %llu", &resident, &shared) == 2 && resident >= shared;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    *shared_p = is_known ? shared * page : 0;
    return is_known ? (resident - shared) * page : 0;
}

uint64_t dt_rss_peak_bytes(void)
{
    return read_proc_status_bytes("/proc/self/status",
                                  "\nVmHWM:"); /* not getrusage: that keeps the peak of what ran before exec */
}

bool dt_rss_peak_reset(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    const bool is_reset = write(fd, "5", 1) == 1; /* proc(5): the peak becomes what is resident now */
    close(fd);
    return is_reset;
}
