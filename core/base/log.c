/* SPDX-License-Identifier: Apache-2.0
 *
 * Log lines. See log.h. One line is formatted on the stack, so logging works when memory is gone.
 */
#include <config.h>

#include "base/log.h"

#include "base/print.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 4096 };

static const char *const level_names[] = {
    [DT_LOG_ERROR] = "error", [DT_LOG_WARN] = "warn", [DT_LOG_INFO] = "info", [DT_LOG_DEBUG] = "debug"};

static _Thread_local char prefix[64];
static _Thread_local bool is_muted;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int level;
    dt_log_sink *sink;
    void *sink_user;
    void (*wipe)(void *user);
    void (*redraw)(void *user);
    void *screen_user;
} state = {.level = DT_LOG_INFO};

void dt_log(int level, const char *fmt, ...)
{
    if (is_muted) {
        return;
    }
    if (level < DT_LOG_ERROR) {
        level = DT_LOG_ERROR;
    } else if (level > DT_LOG_DEBUG) {
        level = DT_LOG_DEBUG;
    }
    char line[LINE_BYTES];
    int used = snprintf(line, sizeof(line), "%-5s %s%s", level_names[level], prefix, prefix[0] != '\0' ? ": " : "");
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line + used, sizeof(line) - (size_t)used, fmt, ap);
    va_end(ap);
    size_t bytes = strlen(line);
    while (bytes > 0 && line[bytes - 1] == '\n') { /* a plugin that ends its lines itself */
        line[--bytes] = '\0';
    }
    dt_mask_message(line); /* a name from a hostile file must not drive the reader's terminal, nor make up a line */

    pthread_mutex_lock(&lock);
    if (level <= state.level) {
        if (state.wipe != NULL) {
            state.wipe(state.screen_user);
        }
        fprintf(stderr, "%s\n", line);
        fflush(stderr);
        if (state.redraw != NULL) {
            state.redraw(state.screen_user);
        }
    }
    if (state.sink != NULL && (level <= DT_LOG_INFO || level <= state.level)) {
        state.sink(state.sink_user, level, line);
    }
    pthread_mutex_unlock(&lock);
}

void dt_log_lines(int level, const char *text)
{
    for (size_t bytes = 0; *text != '\0'; text += bytes + (text[bytes] == '\n')) {
        bytes = strcspn(text, "\n");
        dt_log(level, "%.*s", (int)bytes, text);
    }
}

void dt_log_level_set(int level)
{
    pthread_mutex_lock(&lock);
    state.level = level;
    pthread_mutex_unlock(&lock);
}

int dt_log_level_parse(const char *name)
{
    for (int i = DT_LOG_ERROR; i <= DT_LOG_DEBUG; i++) {
        if (strcmp(name, level_names[i]) == 0) {
            return i;
        }
    }
    return -1;
}

void dt_log_mute(bool is_mute)
{
    is_muted = is_mute;
}

void dt_log_prefix_set(const char *rank_and_phase)
{
    snprintf(prefix, sizeof(prefix), "%s", rank_and_phase);
}

void dt_log_sink_set(dt_log_sink *sink, void *user)
{
    pthread_mutex_lock(&lock);
    state.sink = sink;
    state.sink_user = user;
    pthread_mutex_unlock(&lock);
}

void dt_log_screen_set(void (*wipe)(void *user), void (*redraw)(void *user), void *user)
{
    pthread_mutex_lock(&lock);
    state.wipe = wipe;
    state.redraw = redraw;
    state.screen_user = user;
    pthread_mutex_unlock(&lock);
}

void dt_log_screen_redraw(void)
{
    pthread_mutex_lock(&lock);
    if (state.redraw != NULL) {
        state.redraw(state.screen_user);
    }
    pthread_mutex_unlock(&lock);
}
