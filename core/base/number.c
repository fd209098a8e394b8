/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as text. See number.h.
 */
#include <config.h>

#include "base/number.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

dt_number dt_number_scan(const char *p)
{
    dt_number n = {.is_plain_int = true};
    n.is_negative = *p == '-';
    p += n.is_negative;
    const char *digits = p;
    while (is_digit(*p)) {
        n.mantissa = n.mantissa * 10 + (uint64_t)(*p++ - '0');
    }
    n.n_digits = p - digits;
    if (n.n_digits == 0 || (*digits == '0' && n.n_digits > 1)) {
        n.wanted = n.n_digits == 0 ? "a digit" : "a number that does not start with 0";
        n.end = n.n_digits == 0 ? p : digits;
        return n;
    }
    if (*p == '.') {
        const char *fraction = ++p;
        while (is_digit(*p)) {
            n.mantissa = n.mantissa * 10 + (uint64_t)(*p++ - '0');
        }
        n.exp10 = fraction - p;
        n.n_digits -= n.exp10;
        n.is_plain_int = false;
        n.wanted = n.exp10 == 0 ? "a digit after the decimal point" : NULL;
    }
    if (n.wanted == NULL && (*p == 'e' || *p == 'E')) {
        p++;
        bool is_small = *p == '-';
        p += *p == '-' || *p == '+';
        n.wanted = is_digit(*p) ? NULL : "a digit in the exponent";
        int64_t e = 0;
        for (; is_digit(*p); p++) {
            e = e < 1000000 ? e * 10 + (*p - '0') : e;
        }
        n.exp10 += is_small ? -e : e;
        n.is_plain_int = false;
    }
    n.end = p;
    return n;
}

/* mantissa * 10^exp10, rounded once; false when that needs more than machine words.
 * Clinger 1990: both factors are exact in the format of the multiplication, so the result has a single rounding. */
static bool scale_exactly(uint64_t mantissa, int exp10, double *out_p)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (FLT_EVAL_METHOD == 0 && mantissa <= (uint64_t)1 << 53 && exp10 >= -22 && exp10 <= 22) {
        double m = (double)mantissa;
        *out_p = exp10 < 0 ? m / powers[-exp10] : m * powers[exp10];
        return true;
    }
#if defined(__x86_64__) && LDBL_MANT_DIG == 64
    /* 17 digits, as other programs print doubles: the same in 64 bits, then a second rounding to 53. Rounding twice
     * goes wrong only where the first one ends exactly halfway between two doubles: leave those to strtod. */
    static const long double long_powers[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
                                              1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
                                              1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
    if (exp10 >= -27 && exp10 <= 27) {
        long double v =
            exp10 < 0 ? (long double)mantissa / long_powers[-exp10] : (long double)mantissa * long_powers[exp10];
        uint64_t bits = 0;
        memcpy(&bits, &v, sizeof(bits)); /* the significand comes first in memory */
        if ((bits & 0x7FF) != 0x400) {
            *out_p = (double)v;
            return true;
        }
    }
#endif
    return false;
}

static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t dt_c_locale(void)
{
    pthread_once(&c_locale_once, make_c_locale);
    return c_locale;
}

/* By strtod, but spaces, hexadecimal, infinities and not-a-numbers are rejected. */
static bool parse_any_f64(const char *text, double *out_p)
{
    if (*text == '\0' || strspn(text, "0123456789+-.eE") != strlen(text)) {
        return false;
    }
    char *end = NULL;
    const locale_t c = dt_c_locale();
    const double v = c != (locale_t)0 ? strtod_l(text, &end, c) : strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(v)) {
        return false;
    }
    *out_p = v;
    return true;
}

bool dt_number_f64(const dt_number *n, const char *text, double *out_p)
{
    double v = 0;
    if (n->n_digits > 19 || n->exp10 < -400 || n->exp10 > 400 || !scale_exactly(n->mantissa, (int)n->exp10, &v)) {
        return parse_any_f64(text, out_p);
    }
    *out_p = n->is_negative ? -v : v;
    return true;
}

bool dt_number_i64(const dt_number *n, int64_t *out_p)
{
    const bool fits = n->is_plain_int && n->n_digits <= 19 && n->mantissa <= (uint64_t)INT64_MAX + n->is_negative;
    *out_p = !fits ? 0 : (int64_t)(n->is_negative ? 0 - n->mantissa : n->mantissa);
    return fits;
}

bool dt_parse_i64(const char *text, int64_t *out_p)
{
    bool is_negative = *text == '-';
    text += *text == '-' || *text == '+';
    uint64_t base = 10;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        text += 2;
    }
    if (*text == '\0') {
        return false;
    }
    uint64_t limit = (uint64_t)INT64_MAX + is_negative, value = 0;
    for (; *text != '\0'; text++) {
        uint64_t digit = 16;
        if (*text >= '0' && *text <= '9') {
            digit = (uint64_t)(*text - '0');
        } else if (*text >= 'a' && *text <= 'f') {
            digit = (uint64_t)(*text - 'a') + 10;
        } else if (*text >= 'A' && *text <= 'F') {
            digit = (uint64_t)(*text - 'A') + 10;
        }
        if (digit >= base || value > (limit - digit) / base) {
            return false;
        }
        value = value * base + digit;
    }
    *out_p = is_negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool dt_parse_f64(const char *text, double *out_p)
{
    const dt_number n = dt_number_scan(text);
    return n.wanted == NULL && *n.end == '\0' ? dt_number_f64(&n, text, out_p) : parse_any_f64(text, out_p);
}

bool dt_is_same_value(const char *a, const char *b)
{
    double x = 0, y = 0;
    return strcmp(a, b) == 0 || (dt_parse_f64(a, &x) && dt_parse_f64(b, &y) && x == y);
}

bool dt_parse_whole(const char *text, int64_t *out_p)
{
    static const double exact = 0x1p53; /* above it a double is one of several integers */
    double v = 0;
    if (dt_parse_i64(text, out_p)) {
        return true;
    }
    if (!dt_parse_f64(text, &v) || v != floor(v) || fabs(v) >= exact) {
        return false;
    }
    *out_p = (int64_t)v;
    return true;
}
