/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "base/fp_mode.h"

#include "base/hash.h"
#include "base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MOST_WARNED = 64 };

static atomic_uint_fast64_t n_changed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t warned[MOST_WARNED]; /* of culprit and call */
static uint32_t n_warned;
static char last[192];

void dt_fp_mode_describe(dt_fp_mode before, dt_fp_mode after, char *out, unsigned long bytes)
{
    char rounding[64] = "", flush[64] = "";
#if defined(__x86_64__)
    static const char *const towards[] = {"to nearest", "downward", "upward", "toward zero"};
    const uint32_t vector = (uint32_t)(after >> 16), was = (uint32_t)(before >> 16);
    const uint32_t to = vector >> 13 & 3, x87_to = (uint32_t)after >> 10 & 3;
    const bool is_rounding = ((vector ^ was) >> 13 & 3) != 0 || ((after ^ before) >> 10 & 3) != 0;
    const bool is_flush = ((vector ^ was) & 0x8040) != 0; /* flush to zero, denormals are zero */
    snprintf(rounding, sizeof(rounding), "%s%s", is_rounding ? "rounding is " : "",
             is_rounding ? towards[to != 0 ? to : x87_to] : "");
    snprintf(flush, sizeof(flush), "%s",
             !is_flush                ? ""
             : (vector & 0x8040) != 0 ? "denormal numbers are flushed to zero"
                                      : "flushing of denormal numbers is off");
#else
    (void)before, (void)after;
#endif
    if (rounding[0] == '\0' && flush[0] == '\0') {
        snprintf(out, bytes, "precision or trapped exceptions differ");
    } else {
        snprintf(out, bytes, "%s%s%s", rounding, rounding[0] != '\0' && flush[0] != '\0' ? ", " : "", flush);
    }
}

/* The first time for these? */
static bool record_change(const char *culprit, const char *call, const char *text)
{
    const uint64_t key = dt_hash64(culprit, strlen(culprit), dt_hash64(call, strlen(call), 0));
    pthread_mutex_lock(&lock);
    bool is = n_warned < MOST_WARNED;
    for (uint32_t i = 0; i < n_warned; i++) {
        is = is && warned[i] != key;
    }
    if (is) {
        warned[n_warned++] = key;
    }
    snprintf(last, sizeof(last), "%s, in %s", text, call);
    atomic_fetch_add(&n_changed, 1);
    pthread_mutex_unlock(&lock);
    return is;
}

void dt_fp_mode_changed(dt_fp_mode before, const char *culprit, const char *call)
{
    char text[128];
    const dt_fp_mode after = dt_fp_mode_get();
    dt_fp_mode_set(before);
    dt_fp_mode_describe(before, after, text, sizeof(text));
    if (record_change(culprit, call, text)) {
        dt_log(DT_LOG_WARN,
               "%s changed the floating-point environment (%s) in %s, which would give other results; it was restored. "
               "Remove fesetround and the like, and link without -Ofast and -ffast-math, which set it when a file is "
               "opened",
               culprit, text, call);
    }
}

void dt_fp_mode_last(char *out, unsigned long bytes)
{
    pthread_mutex_lock(&lock);
    snprintf(out, bytes, "%s", last);
    pthread_mutex_unlock(&lock);
}

uint64_t dt_fp_mode_n_changed(void)
{
    return atomic_load(&n_changed);
}
