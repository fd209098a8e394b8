/* SPDX-License-Identifier: Apache-2.0
 *
 * What the unit tests of phases share. Include it after mock/mock.h: cmocka.h has a macro fail(). Threads: one.
 */
#ifndef DTRAIN_TESTS_PHASES_UNIT_H
#define DTRAIN_TESTS_PHASES_UNIT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static inline void is_near(const char *what, double is, double want)
{
    if (!(fabs(is - want) <= 1e-6 * (1 + fabs(want)))) {
        fail_msg("%s: %.12g is not %.12g", what, is, want);
    }
}

#endif
