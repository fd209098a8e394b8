/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as text: whole texts of configuration and tables, and numbers within JSON (RFC 8259, section 6). Values are
 * rounded exactly once, whatever the locale of the process. Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_NUMBER_H
#define DTRAIN_CORE_BASE_NUMBER_H

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>

bool dt_parse_i64(const char *text, int64_t *out_p); /* whole text, decimal or 0x; false on overflow or junk */
/* The same, and what people write for it: 1e3, 2.5e4, 5.0; false unless it is a whole number below 2^53. */
bool dt_parse_whole(const char *text, int64_t *out_p);
bool dt_parse_f64(const char *text, double *out_p); /* whole text, C locale; "inf"/"nan" rejected */
/* Are two values of the configuration the same text, or the same number? */
bool dt_is_same_value(const char *a, const char *b);
locale_t dt_c_locale(void); /* for printing; (locale_t)0 where it cannot be made */

typedef struct dt_number {
    const char *end;    /* after the number, or where it breaks */
    const char *wanted; /* what is missing there, NULL when nothing */
    uint64_t mantissa;  /* of all digits, when there are at most 19 */
    int64_t n_digits, exp10;
    bool is_negative, is_plain_int;
} dt_number;

/* number = [ "-" ] int [ "." digits ] [ "e" [ "-" / "+" ] digits ], int = "0" / digit1-9 digits; all else ends it. */
dt_number dt_number_scan(const char *p);
/* The nearest double; text is the number alone, for what machine words cannot round. false beyond the range. */
bool dt_number_f64(const dt_number *n, const char *text, double *out_p);
/* false, and 0, when it has a fraction or an exponent or does not fit. */
bool dt_number_i64(const dt_number *n, int64_t *out_p);

#endif
