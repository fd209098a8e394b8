/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "run/profile_steps.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/trace.h"

#include <stdio.h>
#include <string.h>

dt_status dt_profile_steps_parse(const char *text, dt_profile_steps *out)
{
    char half[2][32] = {"", ""};
    int64_t step[2] = {0, 0};
    *out = (dt_profile_steps){0};
    if (text == NULL) {
        return DT_OK;
    }
    const char *colon = strchr(text, ':');
    const size_t bytes = colon != NULL ? (size_t)(colon - text) : strlen(text);
    if (bytes < sizeof(half[0])) {
        memcpy(half[0], text, bytes);
    }
    snprintf(half[1], sizeof(half[1]), "%s", colon != NULL ? colon + 1 : half[0]);
    if (!dt_parse_whole(half[0], &step[0]) || !dt_parse_whole(half[1], &step[1]) || step[0] < 1 || step[1] < step[0]) {
        return DT_FAIL(DT_ECONFIG,
                       "--profile-steps %s: expected FIRST:LAST, steps of a phase counted from 1, such as 3:5", text);
    }
    out->first = (uint64_t)step[0];
    out->last = (uint64_t)step[1];
    return DT_OK;
}

static void measure_clock(void)
{
    dt_trace_counter("resident memory MB", (double)dt_rss_bytes() / 1e6);
    dt_trace_counter("heap MB", (double)dt_alloc_live_bytes() / 1e6);
}

void dt_profile_steps_before(dt_profile_steps *p, uint64_t step)
{
    if (p->first == 0 || p->is_on || p->is_over || step + (p->made > 0 ? p->made : 1) < p->first) {
        return;
    }
    p->is_on = true;
    dt_trace_start();
    measure_clock();
}

void dt_profile_steps_after(dt_profile_steps *p, uint64_t step, uint64_t made)
{
    p->made = made;
    if (p->is_on) {
        measure_clock();
        if (step >= p->last) {
            dt_profile_steps_end(p, true);
        }
    }
}

/* ---- what several processes recorded ----------------------------------------------------------------------------- */

static uint32_t count_ranks(const dt_profile_steps *p)
{
    return p->ranks != NULL ? dt_comm_size(p->ranks) : 1;
}

static bool is_first_rank(const dt_profile_steps *p)
{
    return p->ranks == NULL || dt_comm_rank(p->ranks) == 0;
}

static char *path_of_part(const dt_profile_steps *p, uint32_t rank)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/trace-rank-%u.part", p->run_dir, rank);
    char *copy = dt_str_status(&path) == DT_OK ? dt_strdup(dt_str_text(&path)) : NULL;
    dt_str_fini(&path);
    return copy;
}

static dt_status write_part(const dt_profile_steps *p, uint64_t *n_p, uint64_t *dropped_p)
{
    const uint32_t rank = dt_comm_rank(p->ranks);
    char *path = path_of_part(p, rank);
    if (path != NULL) {
        dt_fs_try_remove(path); /* of an earlier run */
    }
    const dt_status st =
        path != NULL ? dt_trace_write_part(path, rank, n_p, dropped_p) : DT_FAIL(DT_ENOMEM, "out of memory for a path");
    dt_free(path);
    return st;
}

/* Rank 0's, with the parts of the others; a missing part is left out with a warning. */
static dt_status write_merged(const dt_profile_steps *p, const char *path, bool takes_parts, uint64_t *n_p,
                              uint64_t *dropped_p)
{
    const uint32_t n = takes_parts ? count_ranks(p) : 1;
    char **part = dt_alloc_n(n, sizeof(*part));
    uint32_t n_parts = 0;
    if (part == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u paths", n);
    }
    for (uint32_t r = 1; r < n; r++) {
        part[n_parts] = path_of_part(p, r);
        if (part[n_parts] != NULL && dt_fs_is_file(part[n_parts])) {
            n_parts++;
        } else {
            dt_log(DT_LOG_WARN, "the trace lacks rank %u, which could not write its part", r);
            dt_free(part[n_parts]);
        }
    }
    const dt_status st = dt_trace_write(path, part, n_parts, n_p, dropped_p);
    for (uint32_t i = 0; i < n_parts; i++) {
        dt_fs_try_remove(part[i]);
        dt_free(part[i]);
    }
    dt_free(part);
    return st;
}

static void log_written(const char *path, dt_status st, uint64_t n, uint64_t dropped)
{
    if (st < 0) {
        dt_log(DT_LOG_WARN, "no trace: %s", dt_error_text());
        dt_error_clear();
    } else if (path[0] != '\0') {
        dt_log(DT_LOG_INFO, "trace of %llu spans: %s (opens in ui.perfetto.dev and chrome://tracing)",
               (unsigned long long)n, path);
    }
    if (dropped > 0) {
        dt_log(DT_LOG_WARN, "the trace lacks %llu spans: more than a thread has room for; record fewer steps",
               (unsigned long long)dropped);
    }
}

void dt_profile_steps_end(dt_profile_steps *p, bool is_agreed)
{
    dt_str path = {0};
    uint64_t n = 0, dropped = 0;
    if (p->first > 0 && !p->is_on && !p->is_over && is_first_rank(p)) {
        dt_log(DT_LOG_WARN, "no trace: the run ended before step %llu of a phase", (unsigned long long)p->first);
    }
    if (!p->is_on) {
        return;
    }
    p->is_on = false;
    p->is_over = true;
    dt_trace_stop();
    if (!is_first_rank(p)) {
        log_written("", is_agreed ? write_part(p, &n, &dropped) : DT_OK, n, dropped);
    }
    if (is_agreed && count_ranks(p) > 1 && dt_comm_barrier(p->ranks) < 0) { /* now all parts are there */
        dt_log(DT_LOG_WARN, "the trace has only rank 0: %s", dt_error_text());
        dt_error_clear();
        is_agreed = false;
    }
    if (!is_first_rank(p)) {
        return;
    }
    dt_str_addf(&path, "%s/trace.json", p->run_dir);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = write_merged(p, dt_str_text(&path), is_agreed, &n, &dropped);
    }
    log_written(dt_str_text(&path), st, n, dropped);
    dt_str_fini(&path);
}
