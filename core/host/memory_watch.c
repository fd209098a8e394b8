/* SPDX-License-Identifier: Apache-2.0
 *
 * See memory_watch.h.
 */
#include <config.h>

#include "host/memory_watch.h"

#include "base/clock.h"
#include "base/log.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 8192, PATH_BYTES = 1024 };

/* ---- what the system says ---------------------------------------------------------------------------------------- */

static bool slurp(const char *path, char text[TEXT_BYTES])
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, TEXT_BYTES - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* The number behind a word at the begin of a line; false where there is none. */
static bool number_of(const char *text, const char *word, uint64_t *out)
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

static bool number_in(const char *dir, const char *file, uint64_t *out)
{
    char path[PATH_BYTES], text[TEXT_BYTES];
    snprintf(path, sizeof(path), "%s/%s", dir, file);
    if (!slurp(path, text) || text[0] < '0' || text[0] > '9') {
        return false; /* "max" */
    }
    *out = strtoull(text, NULL, 10);
    return true;
}

/* Takes over a control group's limit and use where it leaves less than what is known. What could be dropped at any time
 * - file pages nobody used lately - is not in use. */
static void look_at_group(const char *dir, const char *most, const char *now, const char *inactive, uint64_t *used_p,
                          uint64_t *limit_p)
{
    char path[PATH_BYTES + 16], text[TEXT_BYTES];
    uint64_t limit = 0, used = 0, idle = 0;
    if (!number_in(dir, most, &limit) || !number_in(dir, now, &used) || limit == 0 || limit >= *limit_p) {
        return;
    }
    snprintf(path, sizeof(path), "%s/memory.stat", dir);
    if (slurp(path, text) && number_of(text, inactive, &idle) && idle < used) {
        used -= idle;
    }
    *used_p = used;
    *limit_p = limit;
}

/* A group and those above it. */
static void look_at_groups(const char *base, const char *own, bool is_v2, uint64_t *used_p, uint64_t *limit_p)
{
    char dir[PATH_BYTES];
    snprintf(dir, sizeof(dir), "%s%s", base, own);
    for (;;) {
        if (is_v2) {
            look_at_group(dir, "memory.max", "memory.current", "inactive_file", used_p, limit_p);
        } else {
            look_at_group(dir, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", used_p,
                          limit_p);
        }
        char *slash = strrchr(dir, '/');
        if (slash == NULL || (size_t)(slash - dir) < strlen(base)) {
            return;
        }
        *slash = '\0';
    }
}

/* The path behind the line of /proc/self/cgroup that names what: "0::" or ":memory:". */
static void group_path(const char *groups, const char *what, char path[PATH_BYTES])
{
    const char *at = strstr(groups, what);
    path[0] = '\0';
    if (at != NULL) {
        at += strlen(what);
        snprintf(path, PATH_BYTES, "%.*s", (int)strcspn(at, "\n"), at);
    }
}

bool dt_memory_use(const char *root, uint64_t *used_p, uint64_t *limit_p)
{
    char path[PATH_BYTES], own[PATH_BYTES], text[TEXT_BYTES];
    uint64_t total = 0, available = 0;
    snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    if (!slurp(path, text) || !number_of(text, "MemTotal", &total) || !number_of(text, "MemAvailable", &available)) {
        return false;
    }
    *limit_p = total * 1024;
    *used_p = (total > available ? total - available : 0) * 1024;
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    if (slurp(path, text)) {
        group_path(text, "0::", own);
        snprintf(path, sizeof(path), "%s/sys/fs/cgroup", root);
        look_at_groups(path, own, true, used_p, limit_p);
        group_path(text, ":memory:", own);
        snprintf(path, sizeof(path), "%s/sys/fs/cgroup/memory", root);
        look_at_groups(path, own, false, used_p, limit_p);
    }
    return *limit_p > 0;
}

/* ---- the watch --------------------------------------------------------------------------------------------------- */

void dt_memory_watch_init(dt_memory_watch *w, const dt_memory_opts *o, bool speaks)
{
    *w = (dt_memory_watch){.o = *o, .root = "", .speaks = speaks};
}

static void say(const dt_memory_watch *w, const char *what)
{
    if (w->speaks) {
        dt_log(DT_LOG_WARN, "%.2f of %.2f GB of memory%s are in use (%.0f %%): %s", (double)w->used / 1e9,
               (double)w->limit / 1e9, w->o.target_gb > 0 ? " (memory.target_gb)" : "",
               100.0 * (double)w->used / (double)w->limit, what);
    }
}

/* One piece a look: what it brought is seen at the next one. */
static void shed(dt_memory_watch *w, dt_trainer *trainer)
{
    char text[128];
    if (!w->is_trimmed) {
        w->is_trimmed = true;
#ifdef __GLIBC__
        (void)malloc_trim(0);
#endif
        say(w, "gave freed blocks back to the system");
    } else if (trainer != NULL && dt_trainer_shrink(trainer)) {
        const uint32_t n = dt_trainer_micro(trainer);
        snprintf(text, sizeof(text),
                 "from now on %u shard%s of a batch at a time, nothing ahead; the result is the same", n,
                 n == 1 ? "" : "s");
        say(w, text);
    } else if (!w->is_exhausted) {
        w->is_exhausted = true;
        say(w, "nothing is left to give back; end other programs, or take --profile memory, fewer environments or "
               "smaller models");
    }
}

void dt_memory_watch_look(dt_memory_watch *w, double now_s, dt_trainer *trainer)
{
    if (now_s < w->next_s) {
        return;
    }
    w->next_s = now_s + w->o.watch_s;
    if (w->o.target_gb > 0) {
        w->used = dt_rss_bytes();
        w->limit = (uint64_t)(w->o.target_gb * 1e9);
    } else if (!dt_memory_use(w->root, &w->used, &w->limit)) {
        w->limit = 0;
        return;
    }
    const double share = (double)w->used / (double)w->limit;
    if (w->o.shed_fraction > 0 && share > w->o.shed_fraction) {
        shed(w, trainer);
        w->has_warned = true;
    } else if (w->o.warn_fraction > 0 && share > w->o.warn_fraction && !w->has_warned) {
        w->has_warned = true;
        say(w, "memory is given back above memory.shed_fraction");
    } else if (share < w->o.warn_fraction) {
        w->has_warned = w->is_trimmed = w->is_exhausted = false;
    }
}
