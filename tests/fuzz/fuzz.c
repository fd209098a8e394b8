/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 64, MAX_TEXTS = 64 };

static struct {
    const char *name;
    const void *bytes;
    size_t n;
} files[MAX_FILES];
static size_t n_files, n_texts, n_accepted;
static char *texts[MAX_TEXTS];
static uint64_t live_before;
static int is_real;

void fuzz_broken(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: this must hold and does not: %s\nlast error: %s\n", file, line, what, dt_error_text());
    abort();
}

void fuzz_begin(void)
{
    dt_error_clear();
    live_before = dt_alloc_live_bytes();
}

void fuzz_end(void)
{
    fuzz_no_files();
    for (; n_texts > 0; n_texts--) {
        free(texts[n_texts - 1]);
    }
    fuzz_hold(dt_alloc_live_bytes() == live_before);
}

void fuzz_accepted(void)
{
    n_accepted++;
}

size_t fuzz_n_accepted(void)
{
    return n_accepted;
}

void fuzz_touch(const void *p, size_t bytes)
{
    static volatile uint8_t sink;
    uint8_t x = 0;
    for (size_t i = 0; i < bytes; i++) {
        x ^= ((const uint8_t *)p)[i];
    }
    sink = x;
    (void)sink;
}

void fuzz_touch_text(const char *text)
{
    fuzz_touch(text, strlen(text) + 1);
}

int fuzz_is_chosen(const uint8_t *bytes, size_t n)
{
#ifdef DT_FUZZ_ALONE
    uint32_t x = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < n; i++) {
        x = (x ^ bytes[i]) * 16777619u;
    }
    return (x ^ x >> 16) % 8 == 0;
#else
    return 1;
#endif
}

/* As fuzz_text; *bytes_p: of the text, which may hold NULs. */
static char *take_text(const uint8_t *bytes, size_t n, size_t *at, size_t *bytes_p)
{
    static const char line[] = "\n----\n";
    const size_t line_bytes = sizeof(line) - 1;
    *bytes_p = 0;
    if (*at > n || n_texts == MAX_TEXTS) {
        return NULL;
    }
    const uint8_t *from = bytes + *at;
    const size_t left = n - *at;
    const size_t skip = line_bytes - 1; /* an empty text, and the line at once */
    const uint8_t *end = left >= skip && memcmp(from, line + 1, skip) == 0 ? from : NULL;
    if (end == NULL && (end = memmem(from, left, line, line_bytes)) != NULL) {
        end++; /* the text's own last byte */
    }
    const size_t text_bytes = end != NULL ? (size_t)(end - from) : left;
    char *text = malloc(text_bytes + 1);
    fuzz_hold(text != NULL);
    memcpy(text, from, text_bytes);
    text[text_bytes] = '\0';
    texts[n_texts++] = text;
    *at = end != NULL ? *at + text_bytes + skip : n + 1;
    *bytes_p = text_bytes;
    return text;
}

char *fuzz_text(const uint8_t *bytes, size_t n, size_t *at)
{
    size_t text_bytes = 0;
    return take_text(bytes, n, at, &text_bytes);
}

const uint8_t *fuzz_expand(const uint8_t *bytes, size_t n, size_t *n_p)
{
    enum { MOST = 1 << 20, DIGITS = 7 };
    static const char begin[] = "repeat ";
    size_t at = sizeof(begin) - 1, times = 0, digits = 0;
    *n_p = n;
    if (n <= at || memcmp(bytes, begin, at) != 0) {
        return bytes;
    }
    for (; at < n && bytes[at] >= '0' && bytes[at] <= '9' && digits < DIGITS; at++, digits++) {
        times = 10 * times + (size_t)(bytes[at] - '0');
    }
    at += at < n; /* the end of the line */
    size_t n_head = 0, n_body = 0, n_tail = 0;
    const char *head = take_text(bytes, n, &at, &n_head), *body = take_text(bytes, n, &at, &n_body),
               *tail = take_text(bytes, n, &at, &n_tail);
    if (head == NULL || body == NULL || n_texts == MAX_TEXTS) {
        return bytes;
    }
    tail = tail != NULL ? tail : "";
    const size_t room = MOST > n_head + n_tail ? MOST - n_head - n_tail : 0;
    times = n_body > 0 && times > room / n_body ? room / n_body : times;
    char *all = malloc(n_head + n_body * times + n_tail + 1);
    fuzz_hold(all != NULL);
    memcpy(all, head, n_head);
    for (size_t i = 0; i < times; i++) {
        memcpy(all + n_head + i * n_body, body, n_body);
    }
    memcpy(all + n_head + n_body * times, tail, n_tail + 1);
    texts[n_texts++] = all;
    *n_p = n_head + n_body * times + n_tail;
    return (const uint8_t *)all;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

void fuzz_file(const char *name, const void *bytes, size_t n)
{
    fuzz_hold(n_files < MAX_FILES);
    files[n_files].name = name;
    files[n_files].bytes = bytes;
    files[n_files++].n = n;
}

void fuzz_no_files(void)
{
    n_files = 0;
}

void fuzz_real_files(int are)
{
    is_real = are;
}

/* A copy of a file in a block of exactly its size and `more` bytes, which are zero. */
static dt_status copy_of(const char *path, size_t most, size_t more, void **out_p, size_t *bytes_p)
{
    for (size_t i = 0; i < n_files; i++) {
        if (strcmp(files[i].name, path) != 0) {
            continue;
        }
        if (files[i].n > most) {
            return DT_FAIL(DT_EDATA, "%s has more bytes than the limit of %zu", path, most);
        }
        char *copy = dt_alloc(files[i].n + more);
        fuzz_hold(copy != NULL);
        memcpy(copy, files[i].bytes, files[i].n);
        *out_p = copy;
        *bytes_p = files[i].n;
        return DT_OK;
    }
    return DT_FAIL(DT_ENOTFOUND, "no file %s", path);
}

dt_status __wrap_dt_fs_read_all(const char *path, size_t max_bytes, char **out_p, size_t *bytes_p);
dt_status __real_dt_fs_read_all(const char *path, size_t max_bytes, char **out_p, size_t *bytes_p);
dt_status __wrap_dt_fs_read_all(const char *path, size_t max_bytes, char **out_p, size_t *bytes_p)
{
    if (is_real) {
        return __real_dt_fs_read_all(path, max_bytes, out_p, bytes_p);
    }
    void *copy = NULL;
    DT_TRY(copy_of(path, max_bytes, 1, &copy, bytes_p));
    *out_p = copy;
    return DT_OK;
}

dt_status __wrap_dt_fs_read_any(const char *path, size_t max_bytes, char **out_p, size_t *bytes_p);
dt_status __wrap_dt_fs_read_any(const char *path, size_t max_bytes, char **out_p, size_t *bytes_p)
{
    return __wrap_dt_fs_read_all(path, max_bytes, out_p, bytes_p);
}

dt_status __wrap_dt_fs_map(const char *path, const void **out_p, size_t *bytes_p);
dt_status __real_dt_fs_map(const char *path, const void **out_p, size_t *bytes_p);
dt_status __wrap_dt_fs_map(const char *path, const void **out_p, size_t *bytes_p)
{
    if (is_real) {
        return __real_dt_fs_map(path, out_p, bytes_p);
    }
    void *copy = NULL;
    size_t n = 0;
    DT_TRY(copy_of(path, SIZE_MAX, 0, &copy, &n));
    if (n == 0) {
        dt_free(copy);
        return DT_FAIL(DT_EDATA, "%s is empty or not a regular file", path);
    }
    *out_p = copy;
    *bytes_p = n;
    return DT_OK;
}

void __wrap_dt_fs_unmap(const void *p, size_t bytes);
void __real_dt_fs_unmap(const void *p, size_t bytes);
void __wrap_dt_fs_unmap(const void *p, size_t bytes)
{
    if (is_real) {
        __real_dt_fs_unmap(p, bytes);
        return;
    }
    dt_free((void *)(uintptr_t)p);
}

bool __wrap_dt_fs_is_file(const char *path);
bool __real_dt_fs_is_file(const char *path);
bool __wrap_dt_fs_is_file(const char *path)
{
    for (size_t i = 0; i < n_files && !is_real; i++) {
        if (strcmp(files[i].name, path) == 0) {
            return true;
        }
    }
    return is_real && __real_dt_fs_is_file(path);
}

/* What readers advise of mapped files would let go of pages of the heap here. */
int __wrap_madvise(void *p, size_t bytes, int advice);
int __real_madvise(void *p, size_t bytes, int advice);
int __wrap_madvise(void *p, size_t bytes, int advice)
{
    return is_real ? __real_madvise(p, bytes, advice) : 0;
}
