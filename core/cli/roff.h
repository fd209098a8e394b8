/* SPDX-License-Identifier: Apache-2.0
 *
 * Text for manual pages, to standard output: no escape, no request at the beginning of a line, and hyphens that can be
 * copied. For the programs that write them while dtrain is built. Static, because cli_doc.c is linked with nothing.
 */
#ifndef DTRAIN_CORE_CLI_ROFF_H
#define DTRAIN_CORE_CLI_ROFF_H

#include <stdbool.h>
#include <stdio.h>

static inline void dt_roff(const char *text)
{
    for (bool begins = true; *text != '\0'; begins = *text++ == '\n') {
        if (begins && (*text == '.' || *text == '\'')) {
            fputs("\\&", stdout);
        }
        if (*text == '\\') {
            fputs("\\e", stdout);
        } else if (*text == '-') {
            fputs("\\-", stdout);
        } else {
            putchar(*text);
        }
    }
}

#endif
