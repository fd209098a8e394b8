/* SPDX-License-Identifier: Apache-2.0
 *
 * See limits.h. Sources: proc(5), cgroups(7), getrlimit(2).
 */
#include <config.h>

#include "plan/machine/limits.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TEXT_BYTES = 8192, PATH_BYTES = 1024 };

/* ---- what the system reports ----------------------------------------------------------------------------------------
 * */

static bool read_text(const char *path, char text[TEXT_BYTES])
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, TEXT_BYTES - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* The number after a word at the begin of a line; false where there is none. */
static bool find_number(const char *text, const char *word, uint64_t *out)
{
    const size_t n = strlen(word);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, n) == 0 && strchr(" :\t", line[n]) != NULL) {
            const char *at = line + n + strspn(line + n, " :\t");
            *out = strtoull(at, NULL, 10);
            return *at >= '0' && *at <= '9';
        }
    }
    return false;
}

static bool read_number(const char *dir, const char *file, uint64_t *out)
{
    char path[PATH_BYTES], text[TEXT_BYTES];
    snprintf(path, sizeof(path), "%s/%s", dir, file);
    if (!read_text(path, text) || text[0] < '0' || text[0] > '9') {
        return false; /* "max" */
    }
    *out = strtoull(text, NULL, 10);
    return true;
}

/* ---- control groups ---------------------------------------------------------------------------------------------- */

typedef struct group_files { /* of the two kinds; a limit and what is used of it */
    const char *most, *now, *inactive;
} group_files;
static const group_files kinds[] = {{"memory.max", "memory.current", "inactive_file"},
                                    {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}};

/* A folder of a control group and its values; what is unknown is left alone. */
typedef void group_look(const char *dir, bool is_v2, void *user);

/* A group and those above it. */
static void visit_parent_groups(const char *base, const char *own, bool is_v2, group_look *look, void *user)
{
    char dir[PATH_BYTES];
    snprintf(dir, sizeof(dir), "%s%s", base, own);
    for (;;) {
        look(dir, is_v2, user);
        char *slash = strrchr(dir, '/');
        if (slash == NULL || (size_t)(slash - dir) < strlen(base)) {
            return;
        }
        *slash = '\0';
    }
}

/* The path of the line of /proc/self/cgroup that names what: "0::" or ":memory:". */
static void find_group_path(const char *groups, const char *what, char path[PATH_BYTES])
{
    const char *at = strstr(groups, what);
    path[0] = '\0';
    if (at != NULL) {
        at += strlen(what);
        snprintf(path, PATH_BYTES, "%.*s", (int)strcspn(at, "\n"), at);
    }
}

/* controller: of the older kind, "memory". */
static void visit_all_groups(const char *root, const char *controller, group_look *look, void *user)
{
    char path[PATH_BYTES], own[PATH_BYTES], text[TEXT_BYTES], line[32];
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    if (!read_text(path, text)) {
        return;
    }
    find_group_path(text, "0::", own);
    snprintf(path, sizeof(path), "%s/sys/fs/cgroup", root);
    visit_parent_groups(path, own, true, look, user);
    snprintf(line, sizeof(line), ":%s:", controller);
    find_group_path(text, line, own);
    snprintf(path, sizeof(path), "%s/sys/fs/cgroup/%s", root, controller);
    visit_parent_groups(path, own, false, look, user);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

typedef struct memory_look { /* which has the lowest limit, and which leaves least */
    uint64_t used, limit;
    uint64_t left, left_of;
    bool is_group;
} memory_look;

/* What could be dropped at any time - file pages that were not used lately - is not in use. */
static void read_group_memory(const char *dir, bool is_v2, void *user)
{
    const group_files *f = &kinds[is_v2 ? 0 : 1];
    memory_look *m = user;
    char path[PATH_BYTES + 16], text[TEXT_BYTES];
    uint64_t limit = 0, used = 0, idle = 0;
    if (!read_number(dir, f->most, &limit) || !read_number(dir, f->now, &used) || limit == 0) {
        return;
    }
    snprintf(path, sizeof(path), "%s/memory.stat", dir);
    if (read_text(path, text) && find_number(text, f->inactive, &idle) && idle < used) {
        used -= idle;
    }
    if (limit < m->limit) {
        m->used = used;
        m->limit = limit;
    }
    const uint64_t left = limit > used ? limit - used : 0;
    if (left < m->left) {
        m->left = left;
        m->left_of = limit;
        m->is_group = true;
    }
}

static bool read_machine_memory(const char *root, memory_look *m, uint64_t *swap_p)
{
    char path[PATH_BYTES], text[TEXT_BYTES];
    uint64_t total = 0, available = 0;
    *swap_p = 0;
    snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    const bool is_known = read_text(path, text) && find_number(text, "MemTotal", &total) &&
                          find_number(text, "MemAvailable", &available) && total > 0;
    *m = (memory_look){.limit = UINT64_MAX, .left = UINT64_MAX};
    if (is_known) {
        (void)find_number(text, "SwapFree", swap_p);
        *swap_p *= 1024;
        *m = (memory_look){.used = (total > available ? total - available : 0) * 1024,
                           .limit = total * 1024,
                           .left = available * 1024,
                           .left_of = total * 1024};
    }
    visit_all_groups(root, "memory", read_group_memory, m);
    return is_known || m->is_group;
}

bool dt_limits_memory_use(const char *root, uint64_t *used_p, uint64_t *limit_p)
{
    memory_look m;
    uint64_t swap = 0;
    if (!read_machine_memory(root, &m, &swap)) {
        return false;
    }
    *used_p = m.used;
    *limit_p = m.limit;
    return true;
}

/* ---- address space ----------------------------------------------------------------------------------------------- */

static void lower_address_limit(dt_limits *r, uint64_t left, const char *by)
{
    if (left < r->address) {
        r->address = left;
        r->address_by = by;
    }
}

static uint64_t remaining_of_limit(uint64_t limit, uint64_t used)
{
    return limit > used ? limit - used : 0;
}

static void read_address_space(const char *root, dt_limits *r)
{
    char path[PATH_BYTES], text[TEXT_BYTES];
    uint64_t used = 0, limit = 0, mode = 0;
    struct rlimit l;
    r->address = UINT64_MAX;
    r->address_by = "";
    const bool is_known = read_text("/proc/self/status", text);
    if (getrlimit(RLIMIT_AS, &l) == 0 && l.rlim_cur != RLIM_INFINITY) {
        used = 0;
        (void)(is_known && find_number(text, "VmSize", &used));
        lower_address_limit(r, remaining_of_limit(l.rlim_cur, used * 1024), "ulimit -v");
    }
    if (getrlimit(RLIMIT_DATA, &l) == 0 && l.rlim_cur != RLIM_INFINITY) {
        used = 0;
        (void)(is_known && find_number(text, "VmData", &used));
        lower_address_limit(r, remaining_of_limit(l.rlim_cur, used * 1024), "ulimit -d");
    }
    snprintf(path, sizeof(path), "%s/proc/sys/vm", root);
    const bool is_strict = read_number(path, "overcommit_memory", &mode) && mode == 2;
    snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    if (is_strict && read_text(path, text) && find_number(text, "CommitLimit", &limit) &&
        find_number(text, "Committed_AS", &used)) {
        lower_address_limit(r, remaining_of_limit(limit, used) * 1024, "vm.overcommit_memory = 2");
    }
}

/* ---- files, processes, cores ------------------------------------------------------------------------------------- */

static uint64_t count_open_files(void)
{
    uint64_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d != NULL && readdir(d) != NULL) {
        n++;
    }
    if (d != NULL) {
        closedir(d);
    }
    return n;
}

static void read_group_processes(const char *dir, bool is_v2, void *user)
{
    dt_limits *r = user;
    uint64_t most = 0, now = 0;
    (void)is_v2; /* the files are the same */
    if (read_number(dir, "pids.max", &most) && read_number(dir, "pids.current", &now)) {
        const uint64_t left = remaining_of_limit(most, now);
        r->processes = left < r->processes ? left : r->processes;
    }
}

static void read_group_cpu_time(const char *dir, bool is_v2, void *user)
{
    double *cores = user;
    char path[PATH_BYTES + 16], text[TEXT_BYTES];
    uint64_t quota = 0, period = 0;
    if (is_v2) {
        long long a = 0, b = 0;
        snprintf(path, sizeof(path), "%s/cpu.max", dir);
        if (read_text(path, text) && sscanf(text, "%lld %lld", &a, &b) == 2 && a > 0 && b > 0) {
            quota = (uint64_t)a;
            period = (uint64_t)b;
        }
    } else if (!read_number(dir, "cpu.cfs_quota_us", &quota) || !read_number(dir, "cpu.cfs_period_us", &period)) {
        return;
    }
    if (quota > 0 && period > 0) {
        *cores = fmin(*cores, (double)quota / (double)period);
    }
}

double dt_limits_group_cores(const char *root)
{
    double cores = INFINITY;
    visit_all_groups(root, "cpu", read_group_cpu_time, &cores);
    return cores;
}

uint32_t dt_limits_count_cores(const char *root)
{
    cpu_set_t set;
    const bool is_known = sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0;
    const double own = is_known ? CPU_COUNT(&set) : 1;
    return (uint32_t)fmin(own, ceil(dt_limits_group_cores(root)));
}

bool dt_limits_read(const char *root, dt_limits *out)
{
    struct rlimit l;
    memory_look m = {0};
    uint64_t swap = 0;
    *out = (dt_limits){.by = "the machine", .files = UINT64_MAX, .processes = UINT64_MAX};
    const bool is_known = read_machine_memory(root, &m, &swap);
    out->memory = m.left;
    out->total = m.left_of;
    out->swap = m.is_group ? 0 : swap;
    out->by = m.is_group ? "the control group" : "the machine";
    read_address_space(root, out);
    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur != RLIM_INFINITY) {
        out->files = remaining_of_limit(l.rlim_cur, count_open_files());
    }
    if (geteuid() != 0 && getrlimit(RLIMIT_NPROC, &l) == 0 && l.rlim_cur != RLIM_INFINITY) {
        out->processes = l.rlim_cur; /* of the user: how many there are already is not worth a look at all of /proc */
    }
    visit_all_groups(root, "pids", read_group_processes, out);
    out->cores = dt_limits_count_cores(root);
    return is_known;
}
