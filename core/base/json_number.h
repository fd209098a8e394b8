/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of JSON (RFC 8259, section 6): their grammar, and their value rounded exactly once. Inside of the reader
 * (json_read.c). Threads: any (no state).
 */
#ifndef DTRAIN_CORE_BASE_JSON_NUMBER_H
#define DTRAIN_CORE_BASE_JSON_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dt_json_number {
    const char *end;    /* behind the number, or where it breaks */
    const char *wanted; /* what is missing there, NULL when nothing */
    uint64_t mantissa;  /* of all digits, when there are at most 19 */
    int64_t n_digits, exp10;
    bool is_negative, is_plain_int;
} dt_json_number;

/* number = [ "-" ] int [ "." digits ] [ "e" [ "-" / "+" ] digits ], int = "0" / digit1-9 digits; all else ends it. */
dt_json_number dt_json_number_scan(const char *p);
/* The nearest double; text is the number alone, for what machine words cannot round. false beyond the range. */
bool dt_json_number_f64(const dt_json_number *n, const char *text, double *out_p);
/* false, and 0, when it has a fraction or an exponent or does not fit. */
bool dt_json_number_i64(const dt_json_number *n, int64_t *out_p);

#endif
