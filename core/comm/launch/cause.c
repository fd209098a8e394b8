/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "comm/launch/cause.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/exit.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LAST_LINES = 50, LAST_BYTES = 32768, MAX_LOGGED = 8 };

dt_status dt_cause_init(uint32_t n, dt_cause *out)
{
    *out = (dt_cause){.n = n, .was = dt_alloc_n(n, sizeof(*out->was))};
    return out->was != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %u ranks", n);
}

void dt_cause_fini(dt_cause *c)
{
    dt_free(c->was);
    c->was = NULL;
}

void dt_cause_clear(dt_cause *c)
{
    c->is_known = c->is_open = false;
    c->node[0] = '\0';
}

static void describe_call(const dt_board_rank *r, double now, char *out, size_t bytes)
{
    char call[80];
    if (!r->has_called) {
        snprintf(out, bytes, "it has called no collective yet");
        return;
    }
    dt_board_describe_call(&r->last, call, sizeof(call));
    const bool is_over = r->last.end_s > 0;
    snprintf(out, bytes, "%s collective %llu (%s), %s %.1f s before", is_over ? "its last was" : "it was in",
             (unsigned long long)r->last.number, call, is_over ? "which ended" : "begun",
             now - (is_over ? r->last.end_s : r->last.begin_s));
}

/* The rank that is not in the collective that all others are in: the least that a rank has come to, if others came
 * further. */
static bool find_absent_rank(const dt_cause *c, uint32_t *rank_p)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t r = 0; r < c->n; r++) {
        const dt_board_rank *w = &c->was[r];
        const uint64_t number = w->has_called ? w->last.number : 0;
        if (w->state == DT_BOARD_NEVER) {
            continue;
        }
        if (w->state == DT_BOARD_HERE && (number < least || w->is_stopped)) {
            least = w->is_stopped ? 0 : number;
            *rank_p = r;
        }
        most = number > most ? number : most;
    }
    return least < most;
}

static void log_lost_rank(const dt_cause *c)
{
    char text[192];
    const dt_board_rank *w = &c->was[c->rank];
    if (w->state == DT_BOARD_GONE) {
        describe_call(w, c->seen_s, text, sizeof(text));
        dt_log(DT_LOG_ERROR, "rank %u (process %d) is gone; %s", c->rank, w->process, text);
    } else if (w->state == DT_BOARD_NEVER) {
        dt_log(DT_LOG_ERROR, "rank %u is gone; it had not joined the others yet", c->rank);
    }
}

void dt_cause_update(dt_cause *c, const dt_board *b)
{
    bool waited_in_vain = false;
    uint32_t n_gone = 0, n_never = 0;
    if (c->is_known || c->is_open) {
        return;
    }
    for (uint32_t r = 0; r < c->n; r++) {
        dt_board_read_rank(b, r, &c->was[r]);
        n_gone += c->was[r].state == DT_BOARD_GONE;
    }
    for (uint32_t r = c->n; r-- > 0;) {
        dt_board_rank *w = &c->was[r];
        if (n_gone > 0 && w->state == DT_BOARD_HERE) { /* it was looked at before that one */
            dt_board_read_rank(b, r, w);
            n_gone += w->state == DT_BOARD_GONE;
        }
        waited_in_vain = waited_in_vain || (w->state == DT_BOARD_LEFT && w->code == DT_EXIT_PEER);
        n_never += w->state == DT_BOARD_NEVER;
        c->rank = w->state == DT_BOARD_GONE ? r : c->rank;
    }
    if (n_gone > 0) {
        c->seen_s = dt_clock_s();
        c->is_known = n_gone == 1 && n_never == 0;
        c->is_open = !c->is_known;
        if (c->is_known) {
            log_lost_rank(c);
        }
    } else if (waited_in_vain && find_absent_rank(c, &c->rank)) {
        c->is_known = true;
        c->seen_s = dt_clock_s();
    }
}

void dt_cause_decide(dt_cause *c, int heard, bool has_all)
{
    uint32_t n_never = 0, never = 0;
    if (!c->is_open) {
        return;
    }
    for (uint32_t r = 0; r < c->n; r++) {
        never = c->was[r].state == DT_BOARD_NEVER ? r : never;
        n_never += c->was[r].state == DT_BOARD_NEVER;
    }
    if (heard >= 0 && (uint32_t)heard < c->n) {
        c->rank = (uint32_t)heard;
    } else if (n_never == 1 && has_all) {
        c->rank = never;
    }
    c->is_open = false;
    c->is_known = true;
    log_lost_rank(c);
}

void dt_cause_set_lost_machine(dt_cause *c, const dt_board *b, const char *node)
{
    if (c->node[0] != '\0') {
        return;
    }
    dt_log(DT_LOG_ERROR, "machine %s is gone, or cannot be reached any more: mpirun has lost the connection to it",
           node);
    snprintf(c->node, sizeof(c->node), "%s", node);
    for (uint32_t r = 0; r < c->n && !c->is_known && !c->is_open; r++) {
        dt_board_read_rank(b, r, &c->was[r]);
    }
    c->seen_s = c->is_known || c->is_open ? c->seen_s : dt_clock_s();
    c->is_known = true;
    c->is_open = false;
}

static void log_last_lines(const char *name, char *text, size_t bytes)
{
    size_t at = bytes;
    for (int lines = 0; at > 0 && lines <= LAST_LINES; at--) {
        lines += text[at - 1] == '\n' && at != bytes;
        if (lines == LAST_LINES) {
            break;
        }
    }
    dt_log(DT_LOG_ERROR, bytes > 0 ? "the end of its log (%s):" : "its log (%s) is empty", name);
    for (char *line = text + at; line < text + bytes;) {
        char *end = strchr(line, '\n');
        if (end != NULL) {
            *end = '\0';
        }
        dt_log(DT_LOG_ERROR, "    | %s", line);
        line = end != NULL ? end + 1 : text + bytes;
    }
}

/* The end of the rank's log. */
static void log_rank_log_tail(uint32_t rank, const char *run)
{
    dt_str path = {0};
    int fd = -1;
    struct stat st;
    char *text = dt_alloc(LAST_BYTES + 1);
    if (rank == 0) {
        dt_str_addf(&path, "%s/train.log", run);
    } else {
        dt_str_addf(&path, "%s/rank-%u.log", run, rank);
    }
    if (text != NULL && dt_str_status(&path) == DT_OK && dt_fs_open(dt_str_text(&path), O_RDONLY, &fd) == DT_OK &&
        fstat(fd, &st) == 0) {
        const off_t from = st.st_size > LAST_BYTES ? st.st_size - LAST_BYTES : 0;
        const ssize_t n = pread(fd, text, LAST_BYTES, from);
        text[n > 0 ? n : 0] = '\0';
        log_last_lines(dt_str_text(&path), text, strlen(text));
    }
    if (fd >= 0) {
        close(fd);
    }
    dt_error_clear();
    dt_free(text);
    dt_str_fini(&path);
}

void dt_cause_log(const dt_cause *c, const char *run)
{
    char text[192];
    uint32_t n_logged = 0;
    if (!c->is_known) {
        return;
    }
    const bool is_rank = c->node[0] == '\0';
    const dt_board_rank *first = &c->was[c->rank];
    if (is_rank && first->state == DT_BOARD_HERE) {
        describe_call(first, c->seen_s, text, sizeof(text));
        dt_log(DT_LOG_ERROR, "rank %u (process %d) %s; %s", c->rank, first->process,
               first->is_stopped ? "was stopped by a signal (SIGSTOP)" : "did not come", text);
    }
    for (uint32_t r = 0; r < c->n; r++) {
        const dt_board_rank *w = &c->was[r];
        if ((is_rank && r == c->rank) || w->state == DT_BOARD_NEVER || n_logged++ >= MAX_LOGGED) {
            continue;
        }
        describe_call(w, c->seen_s, text, sizeof(text));
        dt_log(DT_LOG_ERROR, "rank %u (process %d): %s", r, w->process, text);
    }
    if (n_logged > MAX_LOGGED) {
        dt_log(DT_LOG_ERROR, "and %u more ranks", n_logged - MAX_LOGGED);
    }
    if (is_rank && run[0] != '\0') {
        log_rank_log_tail(c->rank, run);
    }
}
