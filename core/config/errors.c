/* SPDX-License-Identifier: Apache-2.0
 *
 * The errors of a configuration, kept until all are known. See config.h.
 */
#include <config.h>

#include "config/tree.h"
#include "base/err.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ERRORS = 20 };

/* A common section is read again for every phase, and gives the same errors again. */
static bool is_recorded_error(const dt_str *errors, const char *text)
{
    const size_t bytes = strlen(text);
    for (const char *line = dt_str_text(errors); *line != '\0'; line += strcspn(line, "\n")) {
        line += *line == '\n';
        if (strcspn(line, "\n") == bytes && memcmp(line, text, bytes) == 0) {
            return true;
        }
    }
    return false;
}

bool dt_config_has_max_errors(const dt_config *c)
{
    return c->n_errors >= MAX_ERRORS;
}

dt_status dt_config_collect_error(dt_config *c, dt_status st)
{
    if (st != DT_ECONFIG) {
        return st;
    }
    if (c->n_errors >= MAX_ERRORS || !is_recorded_error(&c->errors, dt_error_text())) {
        if (c->n_errors < MAX_ERRORS) {
            dt_str_addf(&c->errors, "\n%s", dt_error_text());
        }
        c->n_errors++;
    }
    dt_error_clear();
    return DT_OK;
}

dt_status dt_config_check_errors(dt_config *c)
{
    const uint32_t n = c->n_errors;
    dt_status st = dt_str_status(&c->errors);
    if (n == 1 && st == DT_OK) {
        st = DT_FAIL_LINES(DT_ECONFIG, "%s", dt_str_text(&c->errors) + 1);
    } else if (n > 1 && st == DT_OK) {
        char rest[32] = "";
        if (n > MAX_ERRORS) {
            snprintf(rest, sizeof(rest), "\nand %u more", n - MAX_ERRORS);
        }
        st = DT_FAIL_LINES(DT_ECONFIG, "%u errors in the configuration%s%s", n, dt_str_text(&c->errors), rest);
    }
    dt_str_fini(&c->errors);
    c->n_errors = 0;
    return st;
}
