/* SPDX-License-Identifier: Apache-2.0
 *
 * The one way to a terminal for what may hold words of others: names of runs, tensors, sites, plugins, configuration
 * keys, files. Whatever could drive a terminal or reorder what stands there becomes '?': control characters but line
 * end and tab, DEL, C1 controls, marks of text direction, and bytes that are no UTF-8. Verbs print through here, log.h
 * masks every line of logs and errors by the same rule, json.h escapes the same characters. tests/raw_print.sh finds
 * verbs that print otherwise. Threads: any.
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
