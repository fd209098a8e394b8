/* SPDX-License-Identifier: Apache-2.0
 *
 * What spans cost: one that is off, which every step pays a few hundred times, and one that is recorded.
 * Prints "value NAME VALUE UNIT target T", the median of 9 rounds.
 */
#include <config.h>

#include "base/clock.h"
#include "base/trace.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 9 };

static volatile int64_t sink;

static __attribute__((noinline)) void with_span(int64_t i)
{
    DT_TRACE_N("bench", "span", "i", i);
    sink = i;
}

static __attribute__((noinline)) void without(int64_t i)
{
    sink = i;
}

static double nanoseconds(void (*what)(int64_t), int64_t n)
{
    const double from = dt_clock_s();
    for (int64_t i = 0; i < n; i++) {
        what(i);
    }
    return (dt_clock_s() - from) / (double)n * 1e9;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(int64_t n)
{
    double cost[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        const double bare = nanoseconds(without, n);
        cost[r] = nanoseconds(with_span, n) - bare;
    }
    qsort(cost, ROUNDS, sizeof(cost[0]), ascending);
    return cost[ROUNDS / 2];
}

int main(void)
{
    printf("value trace_off %.2f ns target 2\n", median(20000000));
    dt_trace_start();
    printf("value trace_on %.1f ns target 200\n", median(50000));
    dt_trace_fini();
    return 0;
}
