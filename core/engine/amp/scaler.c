/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "engine/amp/scaler.h"

#include <math.h>

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
    if (!is_finite) {
        s->overflows++;
    }
    if (c->kind == DT_SCALING_DYNAMIC) {
        is_finite ? good_step(s, c) : overflow(s, c);
    }
}

bool dt_scaler_has_failed(const dt_scaler *s, const dt_scaler_config *c)
{
    return s->skips > 0 && (c->kind == DT_SCALING_NONE || s->skips >= c->max_skips);
}
