/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and texts that plugins hand over, each by one rule (docs/howto/plugins.md): what they may be made of, how
 * long they are, and the message of one that is not so. Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_NAME_H
#define DTRAIN_CORE_BASE_NAME_H

#include "dtrain/status.h"
#include <stdbool.h>
#include <stdint.h>

typedef enum dt_name_kind {
    DT_NAME_WORD,  /* [a-z][a-z0-9_]*: ports, fields, options, ids, roles, groups, trainers, ops */
    DT_NAME_PARAM, /* [a-z0-9_][a-z0-9_.]*: parameters */
    DT_NAME_KEY,   /* letters, digits and _ . - + / @ :, beginning with a letter: what a graph and metrics name */
    DT_NAME_SYMBOL /* a capital letter, then no blank, quote or '+': ragged symbols */
} dt_name_kind;
enum { DT_NAME_MOST_WORD = 63, DT_NAME_MOST_PORT = 40, DT_NAME_MOST_PARAM = 127, DT_NAME_MOST_KEY = 63 };
enum { DT_NAME_MOST_SYMBOL = 15 };

/* Is it a name of this kind, of whatever length? */
bool dt_name_is(dt_name_kind kind, const char *name);
/* code, with what is wrong: NULL, empty, longer than `most` bytes, or a character that is not of the kind. what: whose
 * name it is and which, "my_phase: loss 2". */
dt_status dt_name_check(dt_status code, dt_name_kind kind, uint32_t most, const char *name, const char *what, ...)
    DT_PRINTF(5, 6);
/* The same of a text of whatever printable characters, such as dims and summaries; it may be empty. */
dt_status dt_text_check(dt_status code, uint32_t most, const char *text, const char *what, ...) DT_PRINTF(4, 5);
/* DT_EINVAL where a call that looks a name up was given none. call: "input" */
dt_status dt_name_given(const char *name, const char *call) DT_NODISCARD;

#endif
