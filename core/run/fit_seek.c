/* SPDX-License-Identifier: Apache-2.0
 *
 * What would fit: the phase planned again with other values; see fit.h.
 */
#include <config.h>

#include "run/fit.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 192, REFINEMENTS = 5 };
static const double most_s = 15; /* for all that is tried: a second or two, but on a machine that is busy */

typedef struct seeker {
    dt_stage_desc d;
    pthread_mutex_t lock;
    uint64_t max_steps;
    double end_s;
    uint64_t planned; /* bytes of the last plan that could be made; 0: none */
    bool is_without;  /* the phase was made, and has no environments */
} seeker;

static dt_status try_stage(seeker *k, dt_stage *s)
{
    dt_forecast f;
    bool is_beyond = false;
    DT_TRY(dt_stage_start(s));
    if (s->trainer == NULL) {
        return DT_OK;
    }
    DT_TRY(dt_forecast_make(s, k->max_steps, &f));
    k->is_without = s->rollout == NULL;
    const dt_status st = dt_fit_stage(s, k->max_steps, &f, false, &is_beyond);
    k->planned = f.resident + f.processes;
    if (st == DT_OK) { /* with a little room: two plans are never the same to the byte */
        dt_fit fit;
        f.resident += f.resident / 32;
        DT_TRY(dt_fit_look(s, &f, &fit));
        return dt_fit_check(&fit, &f, false);
    }
    return st;
}

/* Does the phase fit as it is configured now? false also where it cannot be made. */
static bool fits(seeker *k)
{
    dt_stage *s = NULL;
    dt_log_mute(true);
    dt_status st = dt_stage_create(&k->d, &s);
    if (st == DT_OK) {
        st = try_stage(k, s);
    }
    dt_stage_destroy(s);
    dt_log_mute(false);
    dt_error_clear();
    return st >= 0;
}

/* A value for this phase alone, above all others. */
static bool set(const seeker *k, const char *key, const char *value)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "phases.%lld.%s", (long long)k->d.index, key);
    return dt_config_set_option(k->d.config, path, value, "the plan") == DT_OK;
}

static bool fits_with(seeker *k, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    if (strcmp(key, "engine.threads") == 0) {
        k->d.threads = (uint32_t)value;
    }
    return set(k, key, text) && fits(k);
}

/* Two digits are enough for who writes it down. */
static int64_t rounded(int64_t value)
{
    int64_t unit = 1;
    while (value / unit >= 100) {
        unit *= 10;
    }
    return value / unit * unit;
}

/* The largest value below `asked` that fits, 0: none. Halves until one does, then looks between. */
static int64_t seek_value(seeker *k, const char *key, int64_t asked)
{
    int64_t most = asked, best = 0;
    while (best == 0 && most > 1 && dt_clock_s() < k->end_s) {
        const int64_t half = rounded(most / 2);
        if (fits_with(k, key, half)) {
            best = half;
        } else {
            most = half;
        }
    }
    for (int i = 0; i < REFINEMENTS && best > 0 && dt_clock_s() < k->end_s; i++) {
        const int64_t middle = rounded(best + (most - best) / 2);
        if (middle <= best || middle >= most) {
            break;
        }
        if (fits_with(k, key, middle)) {
            best = middle;
        } else {
            most = middle;
        }
    }
    return best;
}

/* What a key stands at; 0: it is not there, or no whole number above 0. */
static int64_t value_of(const seeker *k, const char *key, char text[32])
{
    const char *now = NULL;
    dt_origin origin;
    int64_t value = 0;
    const bool is_there = dt_config_get(k->d.config, k->d.index, key, &now, &origin) == DT_OK;
    dt_error_clear();
    snprintf(text, 32, "%s", is_there ? now : "");
    return is_there && dt_parse_i64(now, &value) && value > 0 ? value : 0;
}

static void seek_key(seeker *k, const char *key, dt_str *out)
{
    char before[32];
    const uint32_t threads = k->d.threads;
    const bool is_threads = strcmp(key, "engine.threads") == 0;
    int64_t asked = value_of(k, key, before);
    asked = is_threads ? threads : asked;
    if (asked <= 1) {
        return;
    }
    const int64_t best = seek_value(k, key, asked);
    if (best > 0) {
        dt_str_addf(out, "%s%s = %lld", out->bytes > 0 ? ", or " : "", key, (long long)best);
    }
    (void)set(k, key, before);
    k->d.threads = threads;
    dt_error_clear();
}

/* The target that the plan as it is would keep to, where the machine has as much. */
static void seek_target(seeker *k, dt_str *out)
{
    char before[32];
    const char *now = NULL;
    dt_origin origin;
    double target = 0;
    const bool is_there = dt_config_get(k->d.config, k->d.index, "memory.target_gb", &now, &origin) == DT_OK;
    snprintf(before, sizeof(before), "%s", is_there ? now : "");
    if (is_there && dt_parse_f64(before, &target) && target > 0 && set(k, "memory.target_gb", "0") && fits(k)) {
        /* with room to spare for what is not in the plan, and in whole hundredths */
        dt_str_addf(out, "%smemory.target_gb = %.2f", out->bytes > 0 ? ", or " : "",
                    ceil((double)k->planned * 1.12e-7) / 100);
    }
    if (target > 0) {
        (void)set(k, "memory.target_gb", before);
    }
    dt_error_clear();
}

static void seek(seeker *k, dt_str *out)
{
    char batch[PATH_BYTES];
    snprintf(batch, sizeof(batch), "%s.train_batch", k->d.phase->desc.id);
    const char *const keys[] = {batch, "data.batch", "env.instances", "engine.threads"};
    seek_target(k, out);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (!k->is_without || strcmp(keys[i], "env.instances") != 0) {
            seek_key(k, keys[i], out);
        }
    }
}

dt_status dt_fit_seek(const dt_stage_desc *d, uint64_t max_steps, dt_status st)
{
    dt_limits r;
    (void)dt_limits_get("", &r);
    const bool is_short = st == DT_ENOMEM && (d->device_ops != NULL || r.address != UINT64_MAX);
    if (st != DT_ECONFIG && !is_short) {
        return st;
    }
    dt_error reason;
    seeker k = {.d = *d, .max_steps = max_steps, .end_s = dt_clock_s() + most_s};
    dt_str found = {0};
    dt_error_take(&reason, st);
    dt_error_clear();
    pthread_mutex_init(&k.lock, NULL);
    k.d.config_lock = &k.lock;
    k.d.metrics = NULL;
    if (dt_comm_size(d->comm) == 1) { /* others would wait for us in what ranks do together */
        seek(&k, &found);
    }
    pthread_mutex_destroy(&k.lock);
    char limit[96] = "";
    if (is_short && d->device_ops == NULL) {
        snprintf(limit, sizeof(limit), " (%s leaves %.4g GB to map)", r.address_by, (double)r.address / 1e9);
    }
    st = DT_FAIL(DT_ECONFIG, "%s%s; %s%s", reason.text, limit,
                 found.bytes > 0 ? "would fit: " : "smaller models or --profile memory may fit", dt_str_text(&found));
    dt_str_fini(&found);
    return st;
}
