/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/env/process_log.h"

#include "base/log.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    MOST_LINES = 64, /* of a worker: an environment that logs without end does not fill the log */
    SEEN_LINES = 1024
};

/* Is a line not among the last ones of all workers? FNV-1a. */
static bool is_new_line(const char *line)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t seen[SEEN_LINES];
    static uint32_t n;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *c = line; *c != '\0'; c++) {
        hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
    }
    pthread_mutex_lock(&lock);
    bool is = true;
    for (uint32_t i = 0; i < n && i < SEEN_LINES; i++) {
        is = is && seen[i] != hash;
    }
    if (is) {
        seen[n % SEEN_LINES] = hash;
        n = n + 1 < 2 * SEEN_LINES ? n + 1 : SEEN_LINES;
    }
    pthread_mutex_unlock(&lock);
    return is;
}

static void log_line(dt_process_log *p, const char *line)
{
    static const struct {
        const char *begin; /* as dt_log writes it */
        int level;
    } kinds[] = {{"warn  ", DT_LOG_WARN}, {"info  ", DT_LOG_INFO}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const size_t n = strlen(kinds[i].begin);
        if (strncmp(line, kinds[i].begin, n) == 0 && p->n_logged < MOST_LINES && is_new_line(line)) {
            p->n_logged++;
            dt_log(kinds[i].level, "%s", line + n);
        }
    }
}

void dt_process_log_add(dt_process_log *p, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n') {
            p->line[p->bytes] = '\0';
            log_line(p, p->line);
            p->bytes = 0;
        } else if (p->bytes + 1 < sizeof(p->line)) {
            p->line[p->bytes++] = text[i] != '\0' ? text[i] : ' ';
        }
    }
}
