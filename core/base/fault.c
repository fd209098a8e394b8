/* SPDX-License-Identifier: Apache-2.0
 *
 * Fault points. See fault.h. No allocation here: mem.c calls this for every block.
 */
#include <config.h>

#include "base/fault.h"
#include "base/text.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_RULES = 16, NAME_BYTES = 48, FILE_BYTES = 512 };

typedef struct rule {
    char name[NAME_BYTES]; /* a point or a pattern */
    uint64_t at, last;     /* 1-based visits that fail, the first and the last of them */
    char mode;             /* 0 those, '!' kill there, '@' meet there */
    char file[FILE_BYTES];
    uint64_t n_visits;
} rule;

enum { UNREAD = 0, QUIET = 1, ARMED = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int state = UNREAD;
static rule rules[MAX_RULES];
static int n_rules;
static uint64_t n_fired;

static const char *parse_number(const char *p, const char *end, uint64_t *out_p)
{
    for (*out_p = 0; p < end && *p >= '0' && *p <= '9' && *out_p < UINT64_MAX / 16; p++) {
        *out_p = *out_p * 10 + (uint64_t)(*p - '0');
    }
    return p;
}

/* One "name:N", "name:N-M", "name:N+", "name:N!" or "name:N@FILE" of text[0..bytes). */
static bool parse_rule(const char *text, size_t bytes, rule *out_p)
{
    const char *colon = memchr(text, ':', bytes);
    if (colon == NULL || colon == text || colon - text >= NAME_BYTES) {
        return false;
    }
    rule r = {.at = 0};
    memcpy(r.name, text, (size_t)(colon - text));
    const char *end = text + bytes, *p = parse_number(colon + 1, end, &r.at);
    r.last = r.at;
    if (p < end && *p == '-') {
        p = parse_number(p + 1, end, &r.last);
    } else if (p < end && *p == '+') {
        r.last = UINT64_MAX;
        p++;
    } else if (p < end && *p == '!') {
        r.mode = *p++;
    } else if (p < end && *p == '@' && end - p > 1 && end - p < FILE_BYTES) {
        r.mode = *p++;
        memcpy(r.file, p, (size_t)(end - p));
        p = end;
    }
    if (p != end || r.at == 0 || r.last < r.at) {
        return false;
    }
    *out_p = r;
    return true;
}

/* Under the lock. Returns the text that could not be read, or NULL. */
static const char *load_rules(const char *spec)
{
    const char *bad = NULL;
    n_rules = 0;
    n_fired = 0;
    for (const char *p = spec; p != NULL && *p != '\0';) {
        size_t bytes = strcspn(p, ",");
        if (n_rules < MAX_RULES && parse_rule(p, bytes, &rules[n_rules])) {
            n_rules++;
        } else if (bad == NULL) {
            bad = p;
        }
        p += bytes;
        if (*p == ',') {
            p++;
        }
    }
    atomic_store(&state, n_rules > 0 ? ARMED : QUIET);
    return bad;
}

/* Not by the log, which has fault points itself. */
static void report_malformed(const char *bad)
{
    char text[FILE_BYTES];
    snprintf(text, sizeof(text), "%s", bad);
    dt_mask_text(text, true);
    dprintf(STDERR_FILENO,
            "warn  DTRAIN_FAULT: cannot read \"%s\" (expected name:N, name:N-M, name:N+, name:N! or name:N@FILE, at "
            "most %d)\n",
            text, MAX_RULES);
}

/* Where a test waits for us, and we for it. */
static void wait_for_test_file(const char *file)
{
    const int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
    }
    while (fd >= 0 && access(file, F_OK) == 0) {
        usleep(1000);
    }
}

static bool count_fault_visit(const char *point)
{
    bool is_fault = false, is_kill = false;
    char file[FILE_BYTES] = "";
    const char *bad = NULL;
    pthread_mutex_lock(&lock);
    if (atomic_load(&state) == UNREAD) {
        bad = load_rules(getenv("DTRAIN_FAULT"));
    }
    for (int i = 0; i < n_rules; i++) {
        rule *r = &rules[i];
        if (!dt_glob_match(r->name, point)) {
            continue;
        }
        r->n_visits++;
        if (r->mode == '@' && r->n_visits == r->at) {
            memcpy(file, r->file, sizeof(file));
        } else if (r->n_visits >= r->at && r->n_visits <= r->last) {
            is_fault = true;
            is_kill |= r->mode == '!';
        }
    }
    n_fired += is_fault;
    pthread_mutex_unlock(&lock);
    if (bad != NULL) {
        report_malformed(bad);
    }
    if (file[0] != '\0') {
        wait_for_test_file(file);
    }
    if (is_kill) {
        kill(getpid(), SIGKILL);
    }
    return is_fault;
}

bool dt_fault(const char *point)
{
    if (__builtin_expect(atomic_load_explicit(&state, memory_order_relaxed) == QUIET, 1)) {
        return false;
    }
    return count_fault_visit(point);
}

bool dt_fault_reset(const char *spec)
{
    pthread_mutex_lock(&lock);
    const char *bad = load_rules(spec);
    pthread_mutex_unlock(&lock);
    if (bad != NULL) {
        report_malformed(bad);
    }
    return bad == NULL;
}

uint64_t dt_fault_count(void)
{
    pthread_mutex_lock(&lock);
    uint64_t n = n_fired;
    pthread_mutex_unlock(&lock);
    return n;
}
