/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of a component as text, so that a test can hold documented defaults and bounds. Threads: one.
 */
#ifndef DTRAIN_TESTS_MOCK_OPTIONS_H
#define DTRAIN_TESTS_MOCK_OPTIONS_H

#include "dtrain/plugin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* want: "name=default" of each option, with " [min,max]" where it has bounds, one a line */
static inline void assert_options(const dt_component *c, const char *want)
{
    char text[8192];
    size_t n = 0;
    text[0] = '\0';
    for (const dt_option *o = c->options; o->name != NULL; o++) {
        const char *format = o->min != 0 || o->max != 0 ? "%s=%s [%g,%g]\n" : "%s=%s\n";
        const int more = snprintf(text + n, sizeof(text) - n, format, o->name, o->dfl, o->min, o->max);
        assert_true(more > 0 && (size_t)more < sizeof(text) - n);
        n += (size_t)more;
    }
    if (strcmp(text, want) != 0) {
        fail_msg("the options are\n%s", text);
    }
}

#endif
