/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of core/config: a folder for files, and one line per refusal.
 */
#ifndef DTRAIN_TESTS_CONFIG_FIXTURE_H
#define DTRAIN_TESTS_CONFIG_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "config/options.h"
#include "config/schema.h"

static char top[64];
static char path_text[512];
static uint64_t bytes_before;

static inline const char *at(const char *name)
{
    snprintf(path_text, sizeof(path_text), "%s/%s", top, name);
    return path_text;
}

static inline int begin(void **state)
{
    snprintf(top, sizeof(top), "test_config.%ld.tmp", (long)getpid());
    dt_error_clear();
    bytes_before = dt_alloc_live_bytes();
    return dt_fs_mkdirs(top);
}

static inline int end(void **state)
{
    return dt_fs_remove_tree(top) != DT_OK || dt_alloc_live_bytes() != bytes_before; /* nothing is left behind */
}

static inline void put(const char *name, const char *text)
{
    assert_int_equal(dt_fs_write_atomic(at(name), text, strlen(text)), DT_OK);
}

static inline dt_config *fresh(void)
{
    dt_config *c = NULL;
    assert_int_equal(dt_config_create(&c), DT_OK);
    return c;
}

/* a configuration of one file, read and not yet checked */
static inline dt_config *from(const char *text)
{
    dt_config *c = fresh();
    put("run.cfg", text);
    dt_status st = dt_config_read_file(c, DT_FROM_FILE, at("run.cfg"));
    if (st != DT_OK) {
        print_error("%s\n", dt_error_text());
    }
    assert_int_equal(st, DT_OK);
    return c;
}

#define assert_says(piece)                                                                                             \
    do {                                                                                                               \
        if (strstr(dt_error_text(), (piece)) == NULL) {                                                                \
            print_error("said: %s\n", dt_error_text());                                                                \
            fail();                                                                                                    \
        }                                                                                                              \
    } while (0)

#define assert_refused(expr, code, piece)                                                                              \
    do {                                                                                                               \
        dt_error_clear();                                                                                              \
        assert_int_equal((expr), (code));                                                                              \
        assert_says(piece);                                                                                            \
    } while (0)

/* the check of one file is refused with these words */
static inline void refuses(const char *text, const char *piece)
{
    dt_config *c = from(text);
    assert_refused(dt_config_check(c, NULL), DT_ECONFIG, piece);
    dt_config_destroy(c);
}

/* the file cannot even be read */
static inline void unreadable(const char *text, dt_status code, const char *piece)
{
    dt_config *c = fresh();
    put("run.cfg", text);
    assert_refused(dt_config_read_file(c, DT_FROM_FILE, at("run.cfg")), code, piece);
    dt_config_destroy(c);
}

static inline void origin_is(dt_config *c, int64_t phase, const char *path, const char *value, const char *origin)
{
    const char *text = NULL;
    dt_origin from_where;
    dt_str words = {0};
    assert_int_equal(dt_config_get(c, phase, path, &text, &from_where), DT_OK);
    assert_string_equal(text, value);
    dt_origin_text(&from_where, &words);
    if (strstr(dt_str_text(&words), origin) == NULL) {
        print_error("%s comes from \"%s\", expected \"%s\"\n", path, dt_str_text(&words), origin);
        fail();
    }
    dt_str_fini(&words);
}

#endif
