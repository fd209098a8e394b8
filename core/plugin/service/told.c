/* SPDX-License-Identifier: Apache-2.0
 *
 * Options that somebody set and that would say nothing: of a data component those that the phase sets itself or that a
 * switch leaves nothing to say, and how samples are weighed where they are not drawn by weight; of a phase what others
 * of its options leave out. See stage.h.
 */
#include <config.h>

#include "plugin/service/stage.h"

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

static const dt_option *option_of(const dt_loaded *c, const char *name)
{
    for (const dt_option *o = c->desc.options; o != NULL && o->name != NULL; o++) {
        if (strcmp(o->name, name) == 0) {
            return o;
        }
    }
    return NULL;
}

static bool is_equal(const char *a, const char *b)
{
    double x = 0, y = 0;
    return strcmp(a, b) == 0 || (dt_parse_f64(a, &x) && dt_parse_f64(b, &y) && x == y);
}

/* Did somebody say this, and mean it? A file may spell defaults out; what lies in a run was not said anew. */
static bool is_told(const dt_option *o, const char *value, const dt_origin *origin)
{
    return origin->layer > DT_FROM_FILE || (origin->layer == DT_FROM_FILE && !is_equal(value, o->dfl));
}

static dt_status refuse(const char *path, const char *value, const dt_origin *origin, const char *why)
{
    dt_str from = {0};
    dt_origin_text(origin, &from);
    const dt_status st =
        DT_FAIL(DT_ECONFIG, "%s = \"%s\" from %s has no effect: %s", path, value, dt_str_text(&from), why);
    dt_str_fini(&from);
    return st;
}

/* Who else says it, and where it can be said. */
static void explain(const dt_stage *s, const dt_setting *over, char *out, size_t bytes)
{
    const char *phase = s->d.phase->desc.id;
    if (strcmp(over->key, "store") == 0) {
        snprintf(out, bytes, "data.store sets the store");
    } else if (strcmp(over->key, "judged") == 0) {
        snprintf(out, bytes, "evaluation.folds sets what is evaluated");
    } else if (option_of(s->d.phase, over->key) != NULL) {
        snprintf(out, bytes, "%s sets it to \"%s\"; use %s.%s", phase, over->value, phase, over->key);
    } else {
        snprintf(out, bytes, "%s sets it to \"%s\"", phase, over->value);
    }
}

/* Options that say something where a switch is on. */
static const struct {
    const char *is_on, *why, *option[8];
} switched[] = {{"pairs",
                 "it requires pairs = true; set that, or leave this out",
                 {"action_s", "brake_mps2", "hazard_ttc_s", "hazard_mps2", "hazard_collisions", "hazard_steps"}}};
enum { SWITCHES = sizeof(switched) / sizeof(switched[0]) };

/* The value that holds: what the phase sets, or what is configured. */
static bool is_true(const dt_stage *s, const dt_loaded *c, const dt_setting *over, uint32_t n_over, const char *name)
{
    const char *value = NULL;
    dt_origin origin;
    char path[160];
    snprintf(path, sizeof(path), "%s.%s", c->desc.id, name);
    if (dt_config_get(s->d.config, s->d.index, path, &value, &origin) != DT_OK) {
        dt_error_clear();
    }
    for (uint32_t i = 0; i < n_over; i++) {
        value = strcmp(over[i].key, name) == 0 ? over[i].value : value;
    }
    return value != NULL && strcmp(value, "true") == 0;
}

dt_status dt_told_check_idle(const dt_stage *s, const dt_loaded *c, const char *option, const char *why)
{
    const dt_option *o = option_of(c, option);
    const char *value = NULL;
    dt_origin origin;
    char path[160];
    snprintf(path, sizeof(path), "%s.%s", c->desc.id, option);
    if (o == NULL || dt_config_get(s->d.config, s->d.index, path, &value, &origin) != DT_OK) {
        dt_error_clear();
        return DT_OK;
    }
    return is_told(o, value, &origin) && !is_equal(value, o->dfl) ? refuse(path, value, &origin, why) : DT_OK;
}

static dt_status check_switched(const dt_stage *s, const dt_loaded *c, const dt_setting *over, uint32_t n_over)
{
    for (size_t i = 0; i < SWITCHES; i++) {
        const bool is_idle = option_of(c, switched[i].is_on) != NULL && !is_true(s, c, over, n_over, switched[i].is_on);
        for (size_t k = 0; is_idle && switched[i].option[k] != NULL; k++) {
            DT_TRY(dt_told_check_idle(s, c, switched[i].option[k], switched[i].why));
        }
    }
    return DT_OK;
}

dt_status dt_told_check(const dt_stage *s, const dt_loaded *c, const dt_setting *over, uint32_t n_over)
{
    DT_TRY(check_switched(s, c, over, n_over));
    for (uint32_t i = 0; i < n_over; i++) {
        const dt_option *o = option_of(c, over[i].key);
        const char *value = NULL;
        dt_origin origin;
        char path[160], why[256];
        snprintf(path, sizeof(path), "%s.%s", c->desc.id, over[i].key);
        if (o == NULL || dt_config_get(s->d.config, s->d.index, path, &value, &origin) != DT_OK) {
            dt_error_clear(); /* binding will say so */
            continue;
        }
        if (is_told(o, value, &origin) && !is_equal(value, over[i].value)) {
            explain(s, &over[i], why, sizeof(why));
            return refuse(path, value, &origin, why);
        }
    }
    return DT_OK;
}

dt_status dt_told_check_stream(const dt_stage *s, const dt_data_opts *d)
{
    static const char *const of_streams[] = {"window", "stream_timeout", "stream_room"};
    dt_option_view v;
    dt_status st = DT_OK;
    for (uint32_t i = 0; d->stream[0] == '\0' && st == DT_OK; i++) {
        st = dt_config_option_at(s->d.config, s->d.index, "data", i, &v);
        for (size_t k = 0; st == DT_OK && k < sizeof(of_streams) / sizeof(of_streams[0]); k++) {
            if (strcmp(v.option->name, of_streams[k]) == 0 && is_told(v.option, v.value, &v.origin) &&
                !is_equal(v.value, v.option->dfl)) {
                char path[160];
                snprintf(path, sizeof(path), "data.%s", v.option->name);
                return refuse(path, v.value, &v.origin, "it applies to streams, and data.stream is not set");
            }
        }
    }
    if (st == DT_ENOTFOUND) { /* that were all of them */
        dt_error_clear();
        st = DT_OK;
    }
    return st;
}

dt_status dt_told_check_drawing(const dt_stage *s, const dt_data *data, const dt_data_opts *d)
{
    static const char *const samplings[] = {DT_SAMPLINGS(DT_CHOICE_WORD)};
    if (data->source.is_live && d->stream[0] != '\0' && dt_comm_rank(s->d.comm) == 0) {
        dt_log(DT_LOG_WARN, "data.stream has no effect in %s, which learns from its own rollouts", s->d.phase->desc.id);
    }
    if (data->source.is_live && (d->sampling != DT_SAMPLING_SHUFFLED || !d->drop_last)) {
        dt_log(DT_LOG_WARN,
               "data.sampling = \"%s\" and data.drop_last = %s have no effect in %s: its samples are drawn in shuffled "
               "rounds of whole batches",
               samplings[d->sampling], d->drop_last ? "true" : "false", s->d.phase->desc.id);
    }
    const dt_option *balance = data->comp != NULL ? option_of(data->comp, "balance") : NULL;
    const char *value = NULL;
    dt_origin origin;
    char path[160];
    if (balance == NULL || d->sampling == DT_SAMPLING_WEIGHTED) {
        return DT_OK;
    }
    snprintf(path, sizeof(path), "%s.balance", data->comp->desc.id);
    DT_TRY(dt_config_get(s->d.config, s->d.index, path, &value, &origin));
    return !is_told(balance, value, &origin) || is_equal(value, balance->dfl)
               ? DT_OK
               : refuse(path, value, &origin,
                        "samples are drawn by weight only if data.sampling = \"weighted\"; set that, or leave balance "
                        "out");
}
