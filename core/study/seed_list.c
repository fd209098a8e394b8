/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/seed_list.h"

#include "base/err.h"
#include "base/number.h"

#include <string.h>

enum { NUMBER_BYTES = 24 };

static bool parse_number(const char *text, size_t bytes, int64_t *out_p)
{
    char word[NUMBER_BYTES];
    if (bytes == 0 || bytes >= sizeof(word)) {
        return false;
    }
    memcpy(word, text, bytes);
    word[bytes] = '\0';
    return dt_parse_i64(word, out_p) && *out_p >= 0;
}

/* "7" or "1..10", of so many bytes. */
static bool parse_range(const char *text, size_t bytes, int64_t *first_p, int64_t *last_p)
{
    size_t dots = 0;
    while (dots + 1 < bytes && (text[dots] != '.' || text[dots + 1] != '.')) {
        dots++;
    }
    if (dots + 1 >= bytes) {
        return parse_number(text, bytes, first_p) && parse_number(text, bytes, last_p);
    }
    return parse_number(text, dots, first_p) && parse_number(text + dots + 2, bytes - dots - 2, last_p);
}

static bool has_seed(const uint64_t *seed, uint32_t n, uint64_t wanted)
{
    for (uint32_t i = 0; i < n; i++) {
        if (seed[i] == wanted) {
            return true;
        }
    }
    return false;
}

dt_status dt_seed_list_parse(const char *text, uint64_t *seed, uint32_t *n_p)
{
    uint32_t n = 0;
    for (const char *p = text;; p++) {
        const size_t bytes = strcspn(p, ",");
        int64_t first = 0, last = 0;
        if (!parse_range(p, bytes, &first, &last)) {
            return DT_FAIL(DT_ECONFIG,
                           "seeds %s: \"%.*s\" is neither a seed nor a range; expected for example 1..10 or 1,2,5..7",
                           text, (int)bytes, p);
        }
        if (last < first) {
            return DT_FAIL(DT_ECONFIG, "seeds %s: the range %.*s is empty; write the smaller seed first", text,
                           (int)bytes, p);
        }
        if (last - first >= DT_SEEDS_MAX - (int64_t)n) {
            return DT_FAIL(DT_ECONFIG, "seeds %s: more than %d seeds", text, DT_SEEDS_MAX);
        }
        for (int64_t k = first; k <= last; k++) {
            if (has_seed(seed, n, (uint64_t)k)) {
                return DT_FAIL(DT_ECONFIG, "seeds %s: seed %lld is named twice", text, (long long)k);
            }
            seed[n++] = (uint64_t)k;
        }
        p += bytes;
        if (*p == '\0') {
            break;
        }
    }
    *n_p = n;
    return DT_OK;
}
