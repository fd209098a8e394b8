/* SPDX-License-Identifier: Apache-2.0
 *
 * Characters, patterns and printable text, in place: no allocation, no errors. Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_TEXT_H
#define DTRAIN_CORE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the well-formed UTF-8 sequence that text begins with (Unicode 15, table 3-7), 0 when it is none. */
size_t dt_utf8_bytes(const char *text);
/* Bytes of the UTF-8 byte order mark at the start of a file, which every reader of text skips: 3, or 0 without one. */
size_t dt_utf8_mark(const void *text, size_t bytes);
bool dt_glob_match(const char *pattern, const char *text); /* '*' and '?'; '*' crosses dots */

/* In place; is_line: of one line, or a cell of a table, where a line end is foreign too. */
void dt_mask_text(char *text, bool is_line);
/* In place, a message of one line: line ends are those of foreign names, which would begin a line of their own where it
 * is shown; tabs stay. */
void dt_mask_message(char *text);
/* The bytes of the character that text begins with, which may be shown as it is; 0: it may not, *skip_p bytes long. */
size_t dt_print_safe(const char *text, size_t *skip_p);

#endif
