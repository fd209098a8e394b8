/* SPDX-License-Identifier: Apache-2.0
 *
 * See scaler.h.
 */
#include <config.h>

#include "amp/scaler.h"

#include "base/err.h"

#include <math.h>

static bool is_power_of_two(double x)
{
    int exponent = 0;
    return isfinite(x) && x > 0 && frexp(x, &exponent) == 0.5;
}

static dt_status check_power(const char *name, double x)
{
    return is_power_of_two(x) ? DT_OK
                              : DT_FAIL(DT_ECONFIG,
                                        "%s is %g; loss scaling takes powers of two only (0.5, 2, 8192, ...), because "
                                        "dividing by any other number loses bits",
                                        name, x);
}

dt_status dt_scaler_check(const dt_scaler_config *c)
{
    if (c->kind == DT_SCALING_NONE) {
        return DT_OK;
    }
    DT_TRY(check_power(c->kind == DT_SCALING_STATIC ? "amp.static_scale" : "amp.initial_scale", c->initial));
    if (c->kind == DT_SCALING_STATIC) {
        return DT_OK;
    }
    DT_TRY(check_power("amp.min_scale", c->min));
    DT_TRY(check_power("amp.max_scale", c->max));
    DT_TRY(check_power("amp.growth_factor", c->growth));
    DT_TRY(check_power("amp.backoff_factor", c->backoff));
    if (c->initial < c->min || c->initial > c->max) {
        return DT_FAIL(DT_ECONFIG, "amp.initial_scale %g lies outside amp.min_scale %g .. amp.max_scale %g", c->initial,
                       c->min, c->max);
    }
    if (c->growth <= 1 || c->backoff >= 1) {
        return DT_FAIL(DT_ECONFIG, "amp.growth_factor %g has to be above 1 and amp.backoff_factor %g below", c->growth,
                       c->backoff);
    }
    return DT_OK;
}

void dt_scaler_init(dt_scaler *s, const dt_scaler_config *c)
{
    *s = (dt_scaler){.scale = c->kind == DT_SCALING_NONE ? 1 : c->initial, .tolerance = c->hysteresis};
}

static void overflow(dt_scaler *s, const dt_scaler_config *c)
{
    s->good = 0;
    s->tolerance = s->tolerance > 0 ? s->tolerance - 1 : 0;
    if (s->tolerance == 0) {
        s->scale = fmax(s->scale * c->backoff, c->min);
    }
}

static void good_step(dt_scaler *s, const dt_scaler_config *c)
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
    s->overflows += is_finite ? 0 : 1;
    if (c->kind == DT_SCALING_DYNAMIC) {
        is_finite ? good_step(s, c) : overflow(s, c);
    }
}

bool dt_scaler_gives_up(const dt_scaler *s, const dt_scaler_config *c)
{
    return s->skips > 0 && (c->kind == DT_SCALING_NONE || s->skips >= c->max_skips);
}
