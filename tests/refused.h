/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of what plugins hand over: the call returns DT_EPLUGIN, and its message has all these parts.
 */
#ifndef DTRAIN_TESTS_REFUSED_H
#define DTRAIN_TESTS_REFUSED_H

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define REFUSED(expr, ...)                                                                                             \
    do {                                                                                                               \
        static const char *const text_[] = {__VA_ARGS__};                                                              \
        assert_int_equal(expr, DT_EPLUGIN);                                                                            \
        for (size_t i_ = 0; i_ < sizeof(text_) / sizeof(text_[0]); i_++) {                                             \
            if (strstr(dt_error_text(), text_[i_]) == NULL) {                                                          \
                fail_msg("\"%s\" is not in \"%s\"", text_[i_], dt_error_text());                                       \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

#endif
