/* SPDX-License-Identifier: Apache-2.0
 *
 * A run directory made up for a test, below the folder the test runs in.
 */
#ifndef DTRAIN_TESTS_REPORT_FOLDER_H
#define DTRAIN_TESTS_REPORT_FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

static char folder[64];

static inline int folder_begin(void **state)
{
    snprintf(folder, sizeof(folder), "test_report.%ld.tmp", (long)getpid());
    return dt_fs_remove_tree(folder) == DT_OK ? mkdir(folder, 0777) : -1;
}

static inline int folder_end(void **state)
{
    return dt_fs_remove_tree(folder) == DT_OK ? 0 : -1;
}

static inline const char *in_folder(const char *file)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    return path;
}

static inline void put(const char *file, const char *mode, const char *text)
{
    FILE *f = fopen(in_folder(file), mode);
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

#endif
