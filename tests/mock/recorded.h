/* SPDX-License-Identifier: Apache-2.0
 *
 * What a component logged through the scalar service of a fake host, by name. Each test that includes this has its own
 * record; n_recorded = 0 clears it. Threads: one.
 */
#ifndef DTRAIN_TESTS_MOCK_RECORDED_H
#define DTRAIN_TESTS_MOCK_RECORDED_H

#include "dtrain/helpers.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_RECORDED = 64 };

static struct {
    char name[64];
    double value;
} recorded[MOST_RECORDED];
static int n_recorded;

static inline void record_scalar(const dt_host *h, const char *name, double value)
{
    assert_true(n_recorded < MOST_RECORDED);
    snprintf(recorded[n_recorded].name, sizeof(recorded[0].name), "%s", name);
    recorded[n_recorded++].value = value;
}

static inline bool is_recorded(const char *name)
{
    for (int i = 0; i < n_recorded; i++) {
        if (strcmp(recorded[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The latest value of that name; NAN where there is none, which no comparison takes for a value. */
static inline double recorded_value(const char *name)
{
    for (int i = n_recorded - 1; i >= 0; i--) {
        if (strcmp(recorded[i].name, name) == 0) {
            return recorded[i].value;
        }
    }
    return (double)NAN;
}

#endif
