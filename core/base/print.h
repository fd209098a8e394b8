/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of foreign text to a terminal: names of runs, tensors, sites, plugins, configuration keys, files. Characters
 * that could control a terminal or reorder text become '?': control characters other than line end and tab, DEL, C1
 * controls, marks of text direction, and bytes that are not UTF-8. Verbs print through here, log.h masks every line by
 * the same rule, json.h escapes the same characters. tests/raw_print.sh reports verbs that print otherwise. Threads:
 * any.
 */
#ifndef DTRAIN_CORE_BASE_PRINT_H
#define DTRAIN_CORE_BASE_PRINT_H

#include "base/text.h" /* brings: masks */
#include "dtrain/status.h"

#include <stdbool.h>
#include <stddef.h>

/* To standard output. What cannot be written is found by the flush at the end of the program. */
void dt_print(const char *fmt, ...) DT_PRINTF(1, 2);
void dt_print_text(const char *text);
void dt_print_line(const char *text); /* and a line end, like puts */

#endif
