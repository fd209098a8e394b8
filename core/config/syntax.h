/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wrong with a configuration that libconfig refused: libconfig says "syntax error" and the line where it
 * noticed; this walks the same grammar (libconfig manual 1.5, chapter 3) and says what was expected, what stands there
 * instead, and what is likely missing. It never decides whether a text is right. Threads: any.
 */
#ifndef DTRAIN_CORE_CONFIG_SYNTAX_H
#define DTRAIN_CORE_CONFIG_SYNTAX_H

#include "base/str.h"

/* Adds the reason to why and says the line (from 1) it is about. False, and nothing added: nothing was found wrong. */
bool dt_syntax_explain(const char *text, int *line_p, dt_str *why);

#endif
