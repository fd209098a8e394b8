/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "base/print.h"

#include "base/str.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void dt_print_text(const char *text)
{
    while (*text != '\0') {
        size_t plain = 0, skip = 0, n = 0;
        while (text[plain] != '\0' && (n = dt_print_safe(text + plain, &skip)) > 0) {
            plain += n;
        }
        fwrite(text, 1, plain, stdout);
        text += plain;
        if (*text != '\0') {
            putchar('?');
            text += skip;
        }
    }
}

void dt_print_line(const char *text)
{
    dt_print_text(text);
    putchar('\n');
}

void dt_print(const char *fmt, ...)
{
    dt_str text = {0};
    va_list ap;
    va_start(ap, fmt);
    dt_str_addv(&text, fmt, ap);
    va_end(ap);
    if (dt_str_status(&text) == DT_OK) {
        dt_print_text(dt_str_text(&text));
    }
    dt_str_fini(&text);
}
