/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/html.h"

#include "base/text.h"
#include "dtrain/checked.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define MINUS       "\xe2\x88\x92" /* U+2212 */
#define DASH        "\xe2\x80\x93" /* U+2013 */

void dt_html_escape(dt_str *out, const char *text)
{
    while (*text != '\0') {
        size_t skip;
        const size_t n = dt_print_safe(text, &skip); /* 0: a control, or turns the text around it */
        const unsigned char c = (unsigned char)*text;
        const bool is_noncharacter =
            n == 3 && c == 0xef && (unsigned char)text[1] == 0xbf && (unsigned char)text[2] >= 0xbe;
        if (n == 0 || is_noncharacter) {
            dt_str_add(out, REPLACEMENT);
        } else if (c == '&') {
            dt_str_add(out, "&amp;");
        } else if (c == '<') {
            dt_str_add(out, "&lt;");
        } else if (c == '>') {
            dt_str_add(out, "&gt;");
        } else if (c == '"') {
            dt_str_add(out, "&quot;");
        } else if (c == '\'') {
            dt_str_add(out, "&#39;");
        } else {
            dt_str_add_n(out, text, n);
        }
        text += skip;
    }
}

/* "1.200e-05" to "1.2e-5" */
static void shorten_exponent(char *text)
{
    char *e = strchr(text, 'e');
    if (e == NULL) {
        return;
    }
    int exponent = 0;
    char tail[16];
    if (sscanf(e + 1, "%d", &exponent) == 1) {
        snprintf(tail, sizeof(tail), "e%s%d", exponent < 0 ? MINUS : "", exponent < 0 ? -exponent : exponent);
        strcpy(e, tail);
    }
}

const char *dt_number_text(double v, char out[DT_NUMBER_BYTES])
{
    char digits[32];
    if (!isfinite(v)) {
        snprintf(out, DT_NUMBER_BYTES, "%s", isnan(v) ? DASH : v > 0 ? "\xe2\x88\x9e" : MINUS "\xe2\x88\x9e");
        return out;
    }
    const double size = fabs(v);
    if (size >= 1000 && size < 1e7) {
        snprintf(digits, sizeof(digits), "%.0f", size);
    } else {
        snprintf(digits, sizeof(digits), "%.4g", size);
    }
    shorten_exponent(digits);
    snprintf(out, DT_NUMBER_BYTES, "%s%s", v < 0 && strcmp(digits, "0") != 0 ? MINUS : "", digits);
    return out;
}

void dt_html_append_number(dt_str *out, double v)
{
    char text[DT_NUMBER_BYTES];
    dt_str_add(out, dt_number_text(v, text));
}

const char *dt_short_text(double v, char out[DT_NUMBER_BYTES])
{
    static const struct {
        double from, unit;
        const char *suffix;
    } units[] = {{1e12, 1e12, "T"}, {1e9, 1e9, "G"}, {1e6, 1e6, "M"}, {1e4, 1e3, "k"}};
    const double size = fabs(v);
    char digits[32];
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (size >= units[i].from && size < 1e15) {
            snprintf(out, DT_NUMBER_BYTES, "%s%.3g%s", v < 0 ? MINUS : "", size / units[i].unit, units[i].suffix);
            return out;
        }
    }
    if (!isfinite(v) || size >= 1e4) {
        return dt_number_text(v, out);
    }
    snprintf(digits, sizeof(digits), size >= 1000 ? "%.0f" : "%.3g", size);
    shorten_exponent(digits);
    snprintf(out, DT_NUMBER_BYTES, "%s%s", v < 0 && strcmp(digits, "0") != 0 ? MINUS : "", digits);
    return out;
}

int dt_decimals_for(const double *value, uint32_t n)
{
    double most = 0;
    bool is_whole = true;
    for (uint32_t i = 0; i < n; i++) {
        if (isfinite(value[i])) {
            most = fmax(most, fabs(value[i]));
            is_whole = is_whole && value[i] == floor(value[i]);
        }
    }
    if (most >= 1e7 || (most > 0 && most < 1e-3)) {
        return -1;
    }
    return is_whole ? 0 : (int)fmax(0, 3 - floor(log10(most)));
}

const char *dt_aligned_text(double v, int decimals, char out[DT_NUMBER_BYTES])
{
    if (!isfinite(v) || decimals < 0) {
        return dt_number_text(v, out);
    }
    char digits[32];
    snprintf(digits, sizeof(digits), "%.*f", decimals, fabs(v));
    const bool is_zero = strspn(digits, "0.") == strlen(digits);
    snprintf(out, DT_NUMBER_BYTES, "%s%s", v < 0 && !is_zero ? MINUS : "", digits);
    return out;
}

const char *dt_time_text(const char *utc, char out[DT_NUMBER_BYTES])
{
    snprintf(out, DT_NUMBER_BYTES, "%.16s", utc);
    if (strlen(out) == 16 && out[10] == 'T') {
        out[10] = ' ';
    }
    return out;
}

const char *dt_duration_text(double seconds, char out[DT_NUMBER_BYTES])
{
    const long s = (long)dt_i64_within(seconds + 0.5, 0, LONG_MAX);
    if (!isfinite(seconds) || seconds < 0) {
        snprintf(out, DT_NUMBER_BYTES, DASH);
    } else if (seconds < 60) {
        snprintf(out, DT_NUMBER_BYTES, seconds < 10 ? "%.2f s" : "%.1f s", seconds);
    } else if (s < 3600) {
        snprintf(out, DT_NUMBER_BYTES, "%ld min %02ld s", s / 60, s % 60);
    } else {
        snprintf(out, DT_NUMBER_BYTES, "%ld h %02ld min", s / 3600, s / 60 % 60);
    }
    return out;
}

const char *dt_bytes_text(double bytes, char out[DT_NUMBER_BYTES])
{
    if (!isfinite(bytes)) {
        snprintf(out, DT_NUMBER_BYTES, DASH);
    } else if (bytes < 1e6) {
        snprintf(out, DT_NUMBER_BYTES, "%.0f kB", bytes / 1e3);
    } else if (bytes < 1e9) {
        snprintf(out, DT_NUMBER_BYTES, bytes < 1e7 ? "%.1f MB" : "%.0f MB", bytes / 1e6);
    } else {
        snprintf(out, DT_NUMBER_BYTES, "%.2f GB", bytes / 1e9);
    }
    return out;
}
