/* SPDX-License-Identifier: Apache-2.0
 *
 * See profile_steps.h.
 */
#include <config.h>

#include "run/profile_steps.h"

#include "base/clock.h"
#include "base/err.h"
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

static void gauge(void)
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
    gauge();
}

void dt_profile_steps_after(dt_profile_steps *p, uint64_t step, uint64_t made)
{
    p->made = made;
    if (p->is_on) {
        gauge();
        if (step >= p->last) {
            dt_profile_steps_end(p);
        }
    }
}

void dt_profile_steps_end(dt_profile_steps *p)
{
    dt_str path = {0};
    uint64_t n = 0, dropped = 0;
    if (p->first > 0 && !p->is_on && !p->is_over) {
        dt_log(DT_LOG_WARN, "no trace: the run ended before step %llu of a phase", (unsigned long long)p->first);
    }
    if (!p->is_on) {
        return;
    }
    p->is_on = false;
    p->is_over = true;
    dt_trace_stop();
    dt_str_addf(&path, "%s/trace.json", p->run_dir);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_trace_write(dt_str_text(&path), &n, &dropped);
    }
    if (st < 0) {
        dt_log(DT_LOG_WARN, "no trace: %s", dt_error_text());
        dt_error_clear();
    } else {
        dt_log(DT_LOG_INFO, "trace of %llu spans: %s (opens in ui.perfetto.dev and chrome://tracing)",
               (unsigned long long)n, dt_str_text(&path));
    }
    if (dropped > 0) {
        dt_log(DT_LOG_WARN, "the trace lacks %llu spans: more than a thread has room for; record fewer steps",
               (unsigned long long)dropped);
    }
    dt_str_fini(&path);
}
