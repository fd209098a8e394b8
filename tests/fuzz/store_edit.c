/* SPDX-License-Identifier: Apache-2.0
 *
 * See store.h.
 */
#include <config.h>

#include "fuzz/fuzz.h"
#include "fuzz/store.h"

#include "traffic/store/npy.h"

#include <ctype.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_BYTES = 128, MOST_STEPS = 32 }; /* of the .npy files that we write */

typedef struct input {
    const uint8_t *bytes;
    size_t n;
} input;

static uint8_t take(input *in)
{
    if (in->n == 0) {
        return 0;
    }
    in->n--;
    return *in->bytes++;
}

static size_t take_two(input *in)
{
    const size_t low = take(in);
    return low | (size_t)take(in) << 8;
}

static store_file *find(store_files *f, const char *name)
{
    char path[STORE_NAME_BYTES];
    snprintf(path, sizeof(path), "%s/%.36s", STORE_PATH, name);
    for (uint32_t i = 0; i < f->n; i++) {
        if (strcmp(f->file[i].name, path) == 0) {
            return &f->file[i];
        }
    }
    return NULL;
}

static void replace(store_file *f, const void *bytes, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);
    fuzz_hold(copy != NULL);
    memcpy(copy, bytes, n);
    free(f->bytes);
    f->bytes = copy;
    f->n = n;
}

/* ---- values of arrays -------------------------------------------------------------------------------------------- */

/* Where the values of a file begin, and bytes of one: of a .npy by its header, of one in blocks four, after 8. */
static size_t value_bytes(const store_file *f, size_t *begin_p)
{
    const bool is_npy = f->n > HEADER_BYTES && memcmp(f->bytes, "\x93NUMPY", 6) == 0;
    const char *descr = is_npy ? memmem(f->bytes, HEADER_BYTES, "'descr': '", 10) : NULL;
    *begin_p = is_npy ? HEADER_BYTES : 8;
    return descr == NULL ? 4 : (size_t)(descr[12] - '0') % 9;
}

static bool is_float(const store_file *f)
{
    const char *descr = f->n > HEADER_BYTES ? memmem(f->bytes, HEADER_BYTES, "'descr': '", 10) : NULL;
    return descr != NULL && descr[11] == 'f';
}

static void set_value(store_file *f, size_t at, uint8_t code)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, FLT_MAX, 1e30, -1e7, 1e-40, 150.5};
    static const int64_t far[] = {INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, -1, INT64_C(1) << 53, 1000, 1 << 16};
    size_t begin = 0;
    const size_t size = value_bytes(f, &begin);
    if (f->n <= begin || size == 0 || (f->n - begin) / size == 0) {
        return;
    }
    uint8_t *to = f->bytes + begin + at % ((f->n - begin) / size) * size;
    const int small = (int)code - 64;
    if (is_float(f) && size >= sizeof(float) && size % sizeof(float) == 0) { /* headers may be damaged before */
        const double d = code < 8 ? odd[code] : 0.25 * small;
        const float single = (float)(d > FLT_MAX ? INFINITY : d);
        memcpy(to, size == 8 ? (const void *)&d : (const void *)&single, size);
    } else { /* little-endian, as the files are */
        const int64_t whole = code >= 248 ? far[code - 248] : small;
        memcpy(to, &whole, size);
    }
}

static void swap_values(store_file *f, size_t a, size_t b)
{
    size_t begin = 0;
    const size_t size = value_bytes(f, &begin);
    uint8_t held[8];
    if (f->n <= begin || size == 0 || (f->n - begin) / size == 0) {
        return;
    }
    uint8_t *p = f->bytes + begin + a % ((f->n - begin) / size) * size;
    uint8_t *q = f->bytes + begin + b % ((f->n - begin) / size) * size;
    memcpy(held, p, size);
    memmove(p, q, size);
    memcpy(q, held, size);
}

static void set_bytes(store_file *f, input *in)
{
    const size_t at = take_two(in), n = take(in) % 8 + 1u;
    for (size_t i = 0; i < n; i++) {
        const uint8_t x = take(in);
        if (f->n > 0) {
            f->bytes[(at + i) % f->n] = x;
        }
    }
}

/* ---- the description --------------------------------------------------------------------------------------------- */

/* Another text in place of [from, end) of store.json. */
static void put_text(store_file *f, size_t from, size_t end, const char *text)
{
    const size_t bytes = strlen(text), n = from + bytes + (f->n - end);
    uint8_t *out = malloc(n);
    fuzz_hold(out != NULL);
    memcpy(out, f->bytes, from);
    memcpy(out + from, text, bytes);
    memcpy(out + from + bytes, f->bytes + end, f->n - end);
    free(f->bytes);
    f->bytes = out;
    f->n = n;
}

static bool is_of_number(uint8_t c)
{
    return isdigit(c) || c == '-' || c == '+' || c == '.' || c == 'e';
}

static void set_number(store_file *f, size_t which, uint8_t code)
{
    static const char *const odd[] = {
        "1e308", "-1e308", "9007199254740993", "-9223372036854775808", "0.5", "18446744073709551615", "null", "1e400"};
    size_t begin[256], n = 0;
    for (size_t i = 1; i < f->n && n < 256; i++) {
        if (is_of_number(f->bytes[i]) && strchr(":[,", f->bytes[i - 1]) != NULL) {
            begin[n++] = i;
        }
    }
    if (n == 0) {
        return;
    }
    char text[32];
    size_t end = begin[which % n];
    while (end < f->n && is_of_number(f->bytes[end])) {
        end++;
    }
    snprintf(text, sizeof(text), "%d", (int)code - 64);
    put_text(f, begin[which % n], end, code >= 248 ? odd[code - 248] : text);
}

/* The number behind "key": in the object of counts; NULL: it is not there. */
static char *find_count(store_file *f, const char *key, int64_t *value_p)
{
    char quoted[40];
    snprintf(quoted, sizeof(quoted), "\"%s\":", key);
    char *from = memmem(f->bytes, f->n, "\"counts\":", 9);
    from = from != NULL ? memmem(from, f->n - (size_t)((uint8_t *)from - f->bytes), quoted, strlen(quoted)) : NULL;
    if (from == NULL) {
        return NULL;
    }
    from += strlen(quoted);
    const char *end = (const char *)f->bytes + f->n;
    int64_t value = 0;
    for (const char *p = from; p < end && isdigit((unsigned char)*p); p++) {
        value = value < 1 << 20 ? 10 * value + (*p - '0') : value;
    }
    *value_p = value;
    return from;
}

static void put_count(store_file *f, const char *key, int64_t value)
{
    int64_t old = 0;
    char text[24];
    const char *at = find_count(f, key, &old);
    size_t from = (size_t)((const uint8_t *)at - f->bytes), end = from;
    while (end < f->n && isdigit(f->bytes[end])) {
        end++;
    }
    snprintf(text, sizeof(text), "%" PRId64, value);
    put_text(f, from, end, text);
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

static const char *const counts[] = {"scenes", "frames", "rows",        "tracks",    "edges",
                                     "maps",   "lanes",  "lane_points", "lane_links"};
enum { N_COUNTS = sizeof(counts) / sizeof(counts[0]) };

static const struct {
    const char *name, *count;
    int64_t width, plus;
} arrays[] = {
#define DT_ARRAY(name, dtype, width, count, plus) {#name, #count, width, plus},
#include "traffic/store/arrays.def"
#undef DT_ARRAY
};

/* Offsets whose last one is a count. */
static const struct {
    const char *name, *count;
} ends[] = {{"scene_frame", "frames"},      {"frame_row", "rows"}, {"track_ptr", "rows"},
            {"edge_ptr", "edges"},          {"map_lane", "lanes"}, {"lane_point", "lane_points"},
            {"lane_next_ptr", "lane_links"}};

/* An array of so many rows: cut, or its last row again, and a header that says so. */
static void set_rows(store_file *f, int64_t width, int64_t rows)
{
    size_t begin = 0;
    const size_t row_bytes = value_bytes(f, &begin) * (size_t)(width > 0 ? width : 1), n = (size_t)rows * row_bytes;
    if (f->n <= HEADER_BYTES || row_bytes == 0 || memcmp(f->bytes, "\x93NUMPY", 6) != 0) {
        return;
    }
    uint8_t *out = calloc(HEADER_BYTES + n, 1);
    fuzz_hold(out != NULL);
    const size_t kept = n < f->n - HEADER_BYTES ? n : f->n - HEADER_BYTES;
    memcpy(out, f->bytes, HEADER_BYTES + kept);
    for (size_t at = kept; at + row_bytes <= n && at >= row_bytes; at += row_bytes) {
        memcpy(out + HEADER_BYTES + at, out + HEADER_BYTES + at - row_bytes, row_bytes);
    }
    char *shape = memmem(out, HEADER_BYTES, "'shape': (", 10);
    if (shape != NULL) {
        char text[HEADER_BYTES];
        const int m = width > 0 ? snprintf(text, sizeof(text), "%" PRId64 ", %" PRId64 "), }", rows, width)
                                : snprintf(text, sizeof(text), "%" PRId64 ",), }", rows);
        char *to = shape + 10, *end = (char *)out + HEADER_BYTES - 1;
        if (m < end - to) {
            memset(to, ' ', (size_t)(end - to));
            memcpy(to, text, (size_t)m);
        }
    }
    free(f->bytes);
    f->bytes = out;
    f->n = HEADER_BYTES + n;
}

static void set_last(store_file *f, int64_t value)
{
    if (f->n >= HEADER_BYTES + sizeof(value)) {
        memcpy(f->bytes + f->n - sizeof(value), &value, sizeof(value));
    }
}

static void change_count(store_files *f, const char *count, int64_t more)
{
    store_file *json = find(f, "store.json");
    int64_t value = 0;
    char name[64];
    if (json == NULL || find_count(json, count, &value) == NULL || value + more < 0 || value + more > 1000) {
        return;
    }
    value += more;
    put_count(json, count, value);
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        snprintf(name, sizeof(name), "%s.npy", arrays[i].name);
        store_file *a = strcmp(arrays[i].count, count) == 0 ? find(f, name) : NULL;
        if (a != NULL) {
            set_rows(a, arrays[i].width, value + arrays[i].plus);
        }
    }
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        snprintf(name, sizeof(name), "%s.npy", ends[i].name);
        store_file *a = strcmp(ends[i].count, count) == 0 ? find(f, name) : NULL;
        if (a != NULL) {
            set_last(a, value);
        }
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

void store_edit(store_files *f, const uint8_t *bytes, size_t n)
{
    input in = {bytes, n};
    for (int step = 0; step < MOST_STEPS && in.n > 0; step++) {
        const uint8_t what = take(&in) % 6, which = take(&in);
        store_file *to = &f->file[which % f->n], *json = find(f, "store.json");
        size_t at = 0;
        switch (what) {
        case 0:
            set_bytes(to, &in);
            break;
        case 1:
            at = take_two(&in);
            set_value(to, at, take(&in));
            break;
        case 2:
            at = take_two(&in);
            swap_values(to, at, take_two(&in));
            break;
        case 3:
            set_number(json, which, take(&in));
            break;
        case 4:
            change_count(f, counts[which % N_COUNTS], (int8_t)take(&in));
            break;
        default:
            replace(to, in.bytes, in.n);
            return;
        }
    }
}
