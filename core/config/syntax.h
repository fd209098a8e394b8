/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wrong with a configuration, before libconfig reads it: libconfig would report "syntax error" and the line
 * where it noticed, and forget to free a string where its grammar (manual 1.5, chapter 3) has none; this walks the same
 * grammar and reports what was expected, what was found instead, and what is likely missing. What it lets pass has no
 * string in such a place. It is stricter in little: words end at a blank, a sign or a comment, so that 1b=2 is no
 * number followed by a setting, and nesting has a limit. Threads: any.
 */
#ifndef DTRAIN_CORE_CONFIG_SYNTAX_H
#define DTRAIN_CORE_CONFIG_SYNTAX_H

#include "base/str.h"

/* Adds the reason to why and the line (from 1). False, and nothing added: nothing was found wrong.
 * True with why->failed: out of memory. */
bool dt_syntax_find_error(const char *text, int *line_p, dt_str *why);

#endif
