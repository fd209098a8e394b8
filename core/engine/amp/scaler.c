/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "engine/amp/scaler.h"

#include <math.h>
#include <stdio.h>

void dt_scaler_init(dt_scaler *s, const dt_scaler_config *c)
{
    *s = (dt_scaler){.scale = c->kind == DT_SCALING_NONE ? 1 : c->initial, .tolerance = c->hysteresis};
}

static void reduce_scale(dt_scaler *s, const dt_scaler_config *c)
{
    s->good = 0;
    s->tolerance = s->tolerance > 0 ? s->tolerance - 1 : 0;
    if (s->tolerance == 0) {
        s->scale = fmax(s->scale * c->backoff, c->min);
    }
}

static void count_good_step(dt_scaler *s, const dt_scaler_config *c)
{
    s->good++;
    if (c->refill) {
        s->tolerance = c->hysteresis;
    }
    if (s->good >= c->interval) {
        s->scale = fmin(s->scale * c->growth, c->max);
        s->good = 0;
        s->tolerance = c->hysteresis;
    }
}

void dt_scaler_update(dt_scaler *s, const dt_scaler_config *c, bool is_finite)
{
    s->skips = is_finite ? 0 : s->skips + 1;
    if (!is_finite) {
        s->overflows++;
    }
    if (c->kind == DT_SCALING_DYNAMIC) {
        is_finite ? count_good_step(s, c) : reduce_scale(s, c);
    }
}

bool dt_scaler_has_failed(const dt_scaler *s, const dt_scaler_config *c)
{
    return s->skips > 0 && (c->kind == DT_SCALING_NONE || s->skips >= c->max_skips);
}

/* ---- the monitor of mixed precision ------------------------------------------------------------------------------ */

enum { OUT_SCALE = 1, OUT_RATE = 2, OUT_NORM = 4 };

static const double scale_low = 1024, scale_high = 16777216, rate_high = 0.01, norm_low = 0.1, norm_high = 10;

static void append_warning(char *text, size_t bytes, size_t *at, const char *fmt, double value, double low, double high)
{
    if (*at < bytes) {
        const int n = snprintf(text + *at, bytes - *at, "%s", *at > 0 ? "; " : "");
        if (n > 0) {
            *at += (size_t)n;
        }
    }
    if (*at < bytes) {
        const int n = snprintf(text + *at, bytes - *at, fmt, value, low, high);
        if (n > 0) {
            *at += (size_t)n;
        }
    }
}

bool dt_amp_monitor_step(dt_amp_monitor *m, const dt_scaler_config *c, double scale, bool is_finite, double norm,
                         char *text, size_t bytes)
{
    m->steps++;
    if (is_finite) {
        m->norm_sum += norm;
    } else {
        m->skipped++;
    }
    const double rate = (double)m->skipped / m->steps;
    if (!m->has_window) {
        m->overflow_rate = rate;
    }
    if (m->steps < DT_AMP_WINDOW) {
        return false;
    }
    const uint32_t good = m->steps - m->skipped;
    const double mean = good > 0 ? m->norm_sum / good : 0;
    uint32_t out = 0;
    out |= c->kind == DT_SCALING_DYNAMIC && (scale < scale_low || scale > scale_high) ? OUT_SCALE : 0;
    out |= c->kind != DT_SCALING_NONE && rate >= rate_high ? OUT_RATE : 0;
    out |= good > 0 && (mean < norm_low || mean > norm_high) ? OUT_NORM : 0;
    const uint32_t is_new = out & ~m->out;
    size_t at = 0;
    if (is_new & OUT_SCALE) {
        append_warning(text, bytes, &at, "the loss scale is %g, normal is %g to %g", scale, scale_low, scale_high);
    }
    if (is_new & OUT_RATE) {
        append_warning(text, bytes, &at,
                       "%g %% of the last %g steps overflowed and were skipped, normal is below %g %%", 100 * rate,
                       DT_AMP_WINDOW, 100 * rate_high);
    }
    if (is_new & OUT_NORM) {
        append_warning(text, bytes, &at, "the mean gradient norm is %g, normal is %g to %g", mean, norm_low, norm_high);
    }
    *m = (dt_amp_monitor){.overflow_rate = rate, .out = out, .has_window = true};
    return at > 0;
}
