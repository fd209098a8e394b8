/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes. See shape.h.
 */
#include <config.h>

#include "engine/tensor/shape.h"
#include "engine/tensor/dtype.h"
#include "base/err.h"
#include "dtrain/checked.h"

#include <string.h>

enum { MAX_TOKEN = 32 };
static const int64_t MAX_ELEMENTS = (int64_t)1 << 40;

dt_extent dt_extent_number(int64_t n)
{
    return (dt_extent){.size = n, .symbol = -1};
}

bool dt_extent_equal(dt_extent a, dt_extent b)
{
    return a.symbol == b.symbol && a.size == b.size;
}

int64_t dt_extent_live(dt_extent e, const int64_t *size)
{
    return e.symbol < 0 ? e.size : size[e.symbol] + e.size;
}

bool dt_shape_equal(const dt_shape *a, const dt_shape *b)
{
    if (a->rank != b->rank || a->dtype != b->dtype) {
        return false;
    }
    for (uint32_t i = 0; i < a->rank; i++) {
        if (!dt_extent_equal(a->dim[i], b->dim[i])) {
            return false;
        }
    }
    return true;
}

bool dt_shape_count(const dt_shape *s, const int64_t *size, int64_t *out_p)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < s->rank; i++) {
        if (!dt_mul_i64(count, dt_extent_live(s->dim[i], size), &count) || count > INT64_MAX / 2) {
            return false;
        }
    }
    *out_p = count;
    return true;
}

bool dt_shape_fits(const dt_shape *s)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < s->rank; i++) {
        const int64_t n = s->dim[i].symbol < 0 ? s->dim[i].size : 1;
        if (n < 0 || !dt_mul_i64(count, n > 0 ? n : 1, &count) || count > MAX_ELEMENTS) {
            return false;
        }
    }
    return true;
}

static dt_status parse_token(const char *token, const char *const *symbol, uint32_t n_symbols, dt_extent *out_p)
{
    int64_t number = 0;
    if (dt_parse_i64(token, &number)) {
        if (number < 1) {
            return DT_FAIL(DT_EINVAL, "dimension %s must be at least 1", token);
        }
        *out_p = dt_extent_number(number);
        return DT_OK;
    }
    size_t n = strlen(token);
    int64_t plus = 0;
    if (n > 2 && strcmp(token + n - 2, "+1") == 0) {
        plus = 1;
        n -= 2;
    }
    for (uint32_t i = 0; i < n_symbols; i++) {
        if (strlen(symbol[i]) == n && memcmp(symbol[i], token, n) == 0) {
            *out_p = (dt_extent){.size = plus, .symbol = (int32_t)i};
            return DT_OK;
        }
    }
    return DT_FAIL(DT_EINVAL, "dimension \"%s\" is neither a number nor one of the ragged symbols of the data", token);
}

dt_status dt_shape_parse(const char *dims, uint32_t dtype, const char *const *symbol, uint32_t n_symbols,
                         dt_shape *out_p)
{
    if (dt_dtype_bytes(dtype) == 0) {
        return DT_FAIL(DT_EINVAL, "dtype %u of \"%s\" is not one of DT_F32 ... DT_BF16", dtype, dims);
    }
    dt_shape s = {.dtype = dtype};
    const char *at = dims + strspn(dims, " ");
    while (*at != '\0') {
        char token[MAX_TOKEN];
        size_t n = strcspn(at, " ");
        if (n >= sizeof(token) || s.rank == DT_MAX_DIMS) {
            return DT_FAIL(DT_EINVAL, "dims \"%s\": at most %d tokens of at most %d characters", dims, DT_MAX_DIMS,
                           MAX_TOKEN - 1);
        }
        memcpy(token, at, n);
        token[n] = '\0';
        dt_status st = parse_token(token, symbol, n_symbols, &s.dim[s.rank++]);
        if (st != DT_OK) {
            return DT_CONTEXT(st, "dims \"%s\"", dims);
        }
        at += n;
        at += strspn(at, " ");
    }
    if (s.rank == 0) {
        return DT_FAIL(DT_EINVAL, "dims \"%s\" name no dimension; a single value is \"1\"", dims);
    }
    if (!dt_shape_fits(&s)) {
        return DT_FAIL(DT_EINVAL, "dims \"%s\" have more than %lld elements", dims, (long long)MAX_ELEMENTS);
    }
    *out_p = s;
    return DT_OK;
}

void dt_extent_text(dt_extent e, const char *const *symbol, dt_str *out)
{
    if (e.symbol < 0) {
        dt_str_addf(out, "%lld", (long long)e.size);
    } else {
        dt_str_addf(out, "%s%s", symbol[e.symbol], e.size != 0 ? "+1" : "");
    }
}

void dt_shape_text(const dt_shape *s, const char *const *symbol, dt_str *out)
{
    for (uint32_t i = 0; i < s->rank; i++) {
        dt_extent_text(s->dim[i], symbol, out);
        dt_str_add(out, " ");
    }
    dt_str_add(out, dt_dtype_name(s->dtype));
}
