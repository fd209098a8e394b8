/* SPDX-License-Identifier: Apache-2.0
 *
 * The floating-point environment of the calling thread: rounding, flush-to-zero, exceptions that trap. Foreign code may
 * change it, and what is computed after that has other bits, so a call of foreign code is put between
 * dt_fp_mode_get and dt_fp_mode_restore (DT_FP_GUARD). Both together take a few nanoseconds: they read two registers.
 * Threads: [any].
 */
#ifndef DTRAIN_CORE_BASE_FP_MODE_H
#define DTRAIN_CORE_BASE_FP_MODE_H

#include "base/call_watch.h"

#include <fenv.h>
#include <stdint.h>

typedef uint64_t dt_fp_mode;

#if defined(__x86_64__)
enum { DT_FP_FLAGS = 0x3f }; /* exceptions that were raised: no mode */

static inline dt_fp_mode dt_fp_mode_get(void)
{
    uint32_t vector = 0;
    uint16_t x87 = 0;
    __asm__ volatile("stmxcsr %0" : "=m"(vector));
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    return (dt_fp_mode)(vector & ~(uint32_t)DT_FP_FLAGS) << 16 | x87;
}

static inline void dt_fp_mode_set(dt_fp_mode mode)
{
    const uint32_t vector = (uint32_t)(mode >> 16);
    const uint16_t x87 = (uint16_t)mode;
    __asm__ volatile("ldmxcsr %0" : : "m"(vector));
    __asm__ volatile("fldcw %0" : : "m"(x87));
}
#elif defined(__aarch64__)
static inline dt_fp_mode dt_fp_mode_get(void)
{
    uint64_t mode = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}

static inline void dt_fp_mode_set(dt_fp_mode mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}
#else
static inline dt_fp_mode dt_fp_mode_get(void)
{
    return (dt_fp_mode)fegetround();
}

static inline void dt_fp_mode_set(dt_fp_mode mode)
{
    (void)fesetround((int)mode);
}
#endif

/* Sets `before` again and warns, once for each culprit (an id, or a path) and call. */
void dt_fp_mode_changed(dt_fp_mode before, const char *culprit, const char *call);

static inline void dt_fp_mode_restore(dt_fp_mode before, const char *culprit, const char *call)
{
    if (__builtin_expect(dt_fp_mode_get() != before, 0)) {
        dt_fp_mode_changed(before, culprit, call);
    }
}

/* What differs, "rounding is upward, denormal numbers are flushed to zero". out: [bytes] */
void dt_fp_mode_describe(dt_fp_mode before, dt_fp_mode after, char *out, unsigned long bytes);
/* How often a mode was restored in this process, and what was different the last time: dt_fp_mode_describe, and the
 * call. */
uint64_t dt_fp_mode_n_changed(void);
void dt_fp_mode_last(char *out, unsigned long bytes);

/* A statement that calls foreign code, which is noted for the thread that looks for calls that hang:
 * DT_FP_GUARD(id, "step", st = ops->step(self, &io)); */
#define DT_FP_GUARD(culprit, call, ...)                                                                                \
    do {                                                                                                               \
        const dt_call_mark call_before_ = dt_call_begin(culprit, call);                                                \
        const dt_fp_mode fp_before_ = dt_fp_mode_get();                                                                \
        __VA_ARGS__;                                                                                                   \
        dt_fp_mode_restore(fp_before_, culprit, call);                                                                 \
        dt_call_end(call_before_);                                                                                     \
    } while (0)

#endif
