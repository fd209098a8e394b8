/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of plugins/traffic share: a folder of their own, files in it, and the check of an expected failure.
 */
#ifndef DTRAIN_TESTS_DATA_FIXTURE_H
#define DTRAIN_TESTS_DATA_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

static char top[128];
static char path_text[4][1024];

/* A path in the test's folder; four may be in use at a time. */
__attribute__((unused)) static const char *at(const char *name)
{
    static int turn;
    char *out = path_text[turn++ % 4];
    snprintf(out, sizeof(path_text[0]), "%s/%s", top, name);
    return out;
}

__attribute__((unused)) static int begin(void **state)
{
    dt_fault_reset(NULL);
    dt_error_clear();
    snprintf(top, sizeof(top), "test_data.%ld.tmp", (long)getpid());
    return dt_fs_remove_tree(top) == DT_OK && dt_fs_mkdirs(top) == DT_OK ? 0 : -1;
}

__attribute__((unused)) static int end(void **state)
{
    dt_fault_reset(NULL);
    return dt_fs_remove_tree(top);
}

__attribute__((unused)) static void put_bytes(const char *name, const void *p, size_t bytes)
{
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

__attribute__((unused)) static void put(const char *name, const char *text)
{
    put_bytes(name, text, strlen(text));
}

/* Share of inconsistent rows that a report names for a quantity of units.h, in percent; NAN: it names none. */
__attribute__((unused)) static double share_off(const dt_str *notes, const char *quantity)
{
    char begin[64];
    const char *line = strstr(dt_str_text(notes), "inconsistent with the motion: ");
    snprintf(begin, sizeof(begin), " %s ", quantity);
    const char *p = line != NULL ? strstr(line, begin) : NULL;
    return p != NULL ? strtod(p + strlen(begin), NULL) : NAN;
}

/* The first of these words in a file becomes others. */
__attribute__((unused)) static void replace_in(const char *name, const char *from, const char *to)
{
    char *text = NULL;
    size_t bytes = 0;
    dt_str out = {0};
    const dt_status st = dt_fs_read_all(at(name), 1 << 20, &text, &bytes);
    const char *p = st == DT_OK ? strstr(text, from) : NULL;
    if (p == NULL) {
        print_error("%s has no %s: %s\n", name, from, st == DT_OK ? text : dt_error_text());
        fail();
    }
    dt_str_add_n(&out, text, (size_t)(p - text));
    dt_str_add(&out, to);
    dt_str_add(&out, p + strlen(from));
    put(name, dt_str_text(&out));
    dt_str_fini(&out);
    dt_free(text);
}

/* The call failed with this status, and says so in these words. */
#define assert_fails(call, code, words)                                                                                \
    do {                                                                                                               \
        dt_error_clear();                                                                                              \
        dt_status assert_st_ = (call);                                                                                 \
        if (assert_st_ != (code) || strstr(dt_error_text(), (words)) == NULL) {                                        \
            print_error("%s:%d: %s gave %s \"%s\", expected %s \"...%s...\"\n", __FILE__, __LINE__, #call,             \
                        dt_status_name(assert_st_), dt_error_text(), dt_status_name(code), (words));                   \
            fail();                                                                                                    \
        }                                                                                                              \
    } while (0)

#define assert_ok(call)                                                                                                \
    do {                                                                                                               \
        dt_error_clear();                                                                                              \
        dt_status assert_st_ = (call);                                                                                 \
        if (assert_st_ != DT_OK) {                                                                                     \
            print_error("%s:%d: %s gave %s \"%s\"\n", __FILE__, __LINE__, #call, dt_status_name(assert_st_),           \
                        dt_error_text());                                                                              \
            fail();                                                                                                    \
        }                                                                                                              \
    } while (0)

#endif
