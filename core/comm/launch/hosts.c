/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "comm/launch/hosts.h"

#include "base/err.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint32_t usable_slots(const dt_launch_host *h, double now, bool is_next)
{
    if (!h->is_listed || h->is_away) {
        return 0;
    }
    const uint32_t lost = now < h->return_s || (is_next && h->is_fresh) ? h->n_lost : 0;
    return lost < h->line.slots ? h->line.slots - lost : 0;
}

/* Those that have work, but not fewer than allowed. */
static uint32_t max_processes(const dt_launch_hosts *h)
{
    const uint32_t least = h->processes.min > h->machines.min ? h->processes.min : h->machines.min;
    const uint32_t most = h->most > least ? h->most : least;
    return h->most > 0 && most < h->processes.max ? most : h->processes.max;
}

/* use: [n] processes of each host. is_next: of the attempt after this one, which does without what was just lost. */
static uint32_t choose_hosts(const dt_launch_hosts *h, double now, bool is_next, uint32_t *use)
{
    uint32_t n = 0, n_hosts = 0;
    const uint32_t most = max_processes(h), most_hosts = h->machines.max > 0 ? h->machines.max : DT_HOSTS_MOST;
    for (uint32_t i = 0; i < h->n; i++) {
        const uint32_t others = n_hosts + 1 < h->machines.min ? h->machines.min - n_hosts - 1 : 0; /* one each */
        const uint32_t slots = usable_slots(&h->host[i], now, is_next),
                       left = most > n + others ? most - n - others : 0;
        use[i] = n_hosts < most_hosts ? (slots < left ? slots : left) : 0;
        n += use[i];
        n_hosts += use[i] > 0;
    }
    return n >= h->processes.min && n_hosts >= h->machines.min ? n : 0;
}

uint32_t dt_hosts_choose(dt_launch_hosts *h, double now)
{
    uint32_t use[DT_HOSTS_MOST];
    uint32_t n = choose_hosts(h, now, true, use);
    n = n > 0 ? n : choose_hosts(h, now, false, use);
    for (uint32_t i = 0; i < h->n && n > 0; i++) {
        h->host[i].n_used = use[i];
        h->host[i].is_fresh = false;
    }
    return n;
}

uint32_t dt_hosts_find_change(const dt_launch_hosts *h, double now)
{
    uint32_t use[DT_HOSTS_MOST];
    const uint32_t n = choose_hosts(h, now, false, use);
    bool changes = false;
    for (uint32_t i = 0; i < h->n; i++) {
        changes = changes || use[i] != h->host[i].n_used;
    }
    return changes ? n : 0;
}

/* ---- the hostfile ------------------------------------------------------------------------------------------------ */

static uint32_t count_slots(const dt_host_line *line, uint32_t n)
{
    uint64_t slots = 0;
    for (uint32_t i = 0; i < n; i++) {
        slots += line[i].slots;
    }
    return slots < DT_HOSTS_MOST ? (uint32_t)slots : DT_HOSTS_MOST;
}

static dt_status check_minimum(const dt_launch_hosts *h, const dt_host_line *line, uint32_t n)
{
    const uint32_t slots = count_slots(line, n);
    if (n < h->machines.min) {
        return DT_FAIL(DT_ECONFIG, "--nnodes %u:%u, but --hostfile %s names %u host%s: add hosts, or lower the minimum",
                       h->machines.min, h->machines.max, h->hostfile, n, n == 1 ? "" : "s");
    }
    if (slots < h->processes.min) {
        return DT_FAIL(DT_ECONFIG,
                       "--nproc %u:%u, but the hosts of --hostfile %s have %u slot%s (slots=N of a line; 1 where it is "
                       "missing): add slots, or lower the minimum",
                       h->processes.min, h->processes.max, h->hostfile, slots, slots == 1 ? "" : "s");
    }
    return DT_OK;
}

static dt_launch_host *find_host(dt_launch_hosts *h, const char *name)
{
    for (uint32_t i = 0; i < h->n; i++) {
        const char *mine = h->host[i].line.name;
        const size_t bytes = strcspn(mine, "."); /* mpirun may name it without its domain */
        if (strcmp(mine, name) == 0 || (strlen(name) == bytes && strncmp(mine, name, bytes) == 0)) {
            return &h->host[i];
        }
    }
    return NULL;
}

dt_status dt_hosts_init(const char *hostfile, dt_launch_range processes, dt_launch_range machines, dt_launch_hosts *out)
{
    dt_host_line *line = NULL;
    uint32_t n = 1;
    dt_launch_hosts h = {.processes = processes, .machines = machines, .hostfile = hostfile};
    DT_TRY(hostfile != NULL ? dt_hostfile_read(hostfile, &line, &n) : DT_OK);
    dt_status st = hostfile != NULL ? check_minimum(&h, line, n) : DT_OK;
    if (st == DT_OK) {
        h.host = dt_alloc_n(DT_HOSTS_MOST, sizeof(*h.host));
        st = h.host != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %u hosts", n);
    }
    for (uint32_t i = 0; i < n && st == DT_OK; i++) {
        h.host[i] = (dt_launch_host){.is_listed = true, .wait = {.saved = -1}};
        h.host[i].line = line != NULL ? line[i] : (dt_host_line){.slots = processes.max};
    }
    h.n = n;
    dt_free(line);
    DT_TRY(st);
    *out = h;
    return DT_OK;
}

void dt_hosts_fini(dt_launch_hosts *h)
{
    dt_free(h->host);
    h->host = NULL;
}

dt_status dt_hosts_read_again(dt_launch_hosts *h, double now)
{
    dt_host_line *line = NULL;
    uint32_t n = 0;
    if (h->hostfile == NULL) {
        return DT_OK;
    }
    DT_TRY(dt_hostfile_read(h->hostfile, &line, &n));
    for (uint32_t i = 0; i < h->n; i++) {
        h->host[i].is_listed = false;
    }
    for (uint32_t i = 0; i < n; i++) {
        dt_launch_host *known = find_host(h, line[i].name);
        if (known == NULL && h->n < DT_HOSTS_MOST) {
            known = &h->host[h->n++];
            *known = (dt_launch_host){.is_away = true, .return_s = now, .wait = {.saved = -1}};
        }
        if (known != NULL) {
            known->line = line[i];
            known->is_listed = true;
        }
    }
    dt_free(line);
    return DT_OK;
}

static bool write_line(const dt_host_line *line, uint32_t slots, int fd)
{
    return dprintf(fd, "%s slots=%u%s\n", line->name, slots, line->words) > 0;
}

static bool empty_file(int fd)
{
    return ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0;
}

dt_status dt_hosts_write(const dt_launch_hosts *h, int fd)
{
    bool is_written = empty_file(fd);
    for (uint32_t i = 0; i < h->n && is_written; i++) {
        const dt_launch_host *x = &h->host[i];
        is_written = x->n_used == 0 || write_line(&x->line, x->n_used, fd);
    }
    return is_written ? DT_OK : DT_FAIL(DT_EIO, "cannot write the hosts of an attempt for mpirun");
}

dt_status dt_hosts_write_one(const dt_launch_hosts *h, uint32_t i, int fd)
{
    return empty_file(fd) && write_line(&h->host[i].line, 1, fd)
               ? DT_OK
               : DT_FAIL(DT_EIO, "cannot write the host %s for mpirun", h->host[i].line.name);
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

void dt_hosts_lose_rank(dt_launch_hosts *h, uint32_t rank, double now, int64_t saved)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        dt_launch_host *x = &h->host[i];
        if (rank >= first && rank - first < x->n_used) {
            x->n_lost = now < x->return_s ? x->n_lost + 1 : 1;
            x->return_s = now + dt_launch_wait_next(&x->wait, saved);
            x->is_fresh = true;
        }
        first += x->n_used;
    }
}

void dt_hosts_lose_host(dt_launch_hosts *h, const char *name, double now, int64_t saved)
{
    dt_launch_host *x = find_host(h, name);
    if (x != NULL) {
        x->is_away = true;
        x->n_lost = 0;
        x->return_s = now + dt_launch_wait_next(&x->wait, saved);
    }
}

void dt_hosts_suspect_all(dt_launch_hosts *h, double now)
{
    for (uint32_t i = 0; i < h->n; i++) {
        dt_launch_host *x = &h->host[i];
        x->is_away = x->is_away || x->n_used > 0;
        x->return_s = x->n_used > 0 ? now : x->return_s;
    }
}

uint32_t dt_hosts_find_probe(const dt_launch_hosts *h, double now)
{
    for (uint32_t i = 0; i < h->n; i++) {
        if (h->host[i].is_listed && h->host[i].is_away && now >= h->host[i].return_s) {
            return i;
        }
    }
    return UINT32_MAX;
}

void dt_hosts_set_probed(dt_launch_hosts *h, uint32_t i, bool is_there, double now)
{
    dt_launch_host *x = &h->host[i];
    x->is_away = !is_there;
    x->n_lost = 0;
    x->return_s = is_there ? now : now + dt_launch_wait_next(&x->wait, x->wait.saved);
}
