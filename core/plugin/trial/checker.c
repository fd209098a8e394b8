/* SPDX-License-Identifier: Apache-2.0
 *
 * Verdicts on a plugin, a line each. See checker.h.
 */
#include <config.h>

#include "plugin/trial/checker.h"

#include "base/err.h"

#include <stdarg.h>
#include <string.h>

static void count_verdict(dt_checker *k, const char *line)
{
    k->n_pass += strncmp(line, "PASS ", 5) == 0;
    k->n_skip += strncmp(line, "SKIP ", 5) == 0;
    k->n_fail += strncmp(line, "FAIL ", 5) == 0;
}

/* Reported before, by a process that did not live to the end? Else it is known from now on. */
static bool is_already_reported(dt_str *reported, const char *line)
{
    const size_t bytes = strlen(line);
    for (const char *p = dt_str_text(reported); *p != '\0'; p += strcspn(p, "\n") + 1) {
        if (strcspn(p, "\n") == bytes && memcmp(p, line, bytes) == 0) {
            return true;
        }
    }
    dt_str_addf(reported, "%s\n", line);
    return false;
}

void dt_check_print_complete_lines(dt_checker *k)
{
    char *line = k->out.text, *end = NULL;
    while (line != NULL && (end = strchr(line, '\n')) != NULL) {
        *end = '\0';
        if (k->reported == NULL || !is_already_reported(k->reported, line)) {
            count_verdict(k, line);
            k->desc->report(k->desc->user, line);
        }
        line = end + 1;
    }
    if (line != NULL) {
        k->out.bytes = strlen(line);
        memmove(k->out.text, line, k->out.bytes + 1);
    }
}

static void append_verdict(dt_checker *k, const char *word, const dt_component *c, const char *fmt, va_list ap)
{
    dt_str_addf(&k->out, "%s %s %s: ", word, dt_kind_name(c->kind), c->id);
    dt_str_addv(&k->out, fmt, ap);
    dt_str_add(&k->out, "\n");
    if (k->trial == NULL) {
        dt_check_print_complete_lines(k);
        return;
    }
    dt_trial_report(k->trial, dt_str_text(&k->out), k->out.bytes); /* at once: it may be the last */
    dt_str_clear(&k->out);
}

void dt_check_pass(dt_checker *k, const dt_component *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    append_verdict(k, "PASS", c, fmt, ap);
    va_end(ap);
}

void dt_check_skip(dt_checker *k, const dt_component *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    append_verdict(k, "SKIP", c, fmt, ap);
    va_end(ap);
}

bool dt_check_fail(dt_checker *k, const dt_component *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    append_verdict(k, "FAIL", c, fmt, ap);
    va_end(ap);
    return false;
}

bool dt_check_fail_status(dt_checker *k, const dt_component *c, const char *step, dt_status st)
{
    return dt_check_fail(k, c, "%s: %s", step, *dt_error_text() != '\0' ? dt_error_text() : dt_status_name(st));
}

bool dt_check_may_call(dt_checker *k, const dt_component *c, const char *step, bool has_needs)
{
    if (!has_needs) {
        dt_check_skip(k, c, "%s: not tried, as it depends on what failed", step);
        return false;
    }
    return dt_trial_begin_step(k->trial, step);
}
