/* SPDX-License-Identifier: Apache-2.0
 *
 * Rejects options that the user set and that have no effect in this configuration (DT_ECONFIG). See stage.h.
 */
#include <config.h>

#include "plugin/service/stage.h"

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Set by the user, not by a default or by the saved configuration of a run; a file may repeat defaults. */
static bool is_set_by_user(const dt_option *o, const char *value, const dt_origin *origin)
{
    return origin->layer > DT_FROM_FILE || (origin->layer == DT_FROM_FILE && !dt_is_same_value(value, o->dfl));
}

static dt_status reject_option(const char *path, const char *value, const dt_origin *origin, const char *why)
{
    dt_str from = {0};
    dt_origin_text(origin, &from);
    const dt_status st =
        DT_FAIL(DT_ECONFIG, "%s = \"%s\" from %s has no effect: %s", path, value, dt_str_text(&from), why);
    dt_str_fini(&from);
    return st;
}

/* Rejects an option of c that the user set to something other than its default. */
static dt_status reject_if_set(const dt_stage *s, const dt_loaded *c, const dt_option *o, const char *why)
{
    const char *value = NULL;
    dt_origin origin;
    char path[160];
    snprintf(path, sizeof(path), "%s.%s", c->desc.id, o->name);
    if (dt_config_get(s->d.config, s->d.index, path, &value, &origin) != DT_OK) {
        dt_error_clear(); /* a required option without a value is reported when the section is read */
        return DT_OK;
    }
    return is_set_by_user(o, value, &origin) && !dt_is_same_value(value, o->dfl)
               ? reject_option(path, value, &origin, why)
               : DT_OK;
}

/* ---- options that another one disables ------------------------------------------------------------------------- */

dt_status dt_reject_disabled_options(const dt_stage *s, const dt_loaded *c, const void *config)
{
    for (const dt_option *o = c->desc.options; o != NULL && o->name != NULL; o++) {
        const dt_option *needed = o->needs != NULL ? dt_option_find(c->desc.options, o->needs) : NULL;
        if (needed != NULL && ((const uint8_t *)config)[needed->offset] == 0) {
            char why[160];
            snprintf(why, sizeof(why), "it requires %s = true; set that, or leave this out", needed->name);
            DT_TRY(reject_if_set(s, c, o, why));
        }
    }
    return DT_OK;
}

/* ---- options that the host or the phase sets ------------------------------------------------------------------- */

static void explain_override(const dt_stage *s, const dt_option *o, const char *value, char *out, size_t bytes)
{
    const char *phase = s->d.phase->desc.id;
    if ((o->flags & DT_OPT_STORE) != 0) {
        snprintf(out, bytes, "data.store sets the store");
    } else if ((o->flags & DT_OPT_FOLDS) != 0) {
        snprintf(out, bytes, "evaluation.folds sets what is evaluated");
    } else if (dt_option_find(s->d.phase->desc.options, o->name) != NULL) {
        snprintf(out, bytes, "%s sets it to \"%s\"; use %s.%s", phase, value, phase, o->name);
    } else {
        snprintf(out, bytes, "%s sets it to \"%s\"", phase, value);
    }
}

dt_status dt_reject_overridden_options(const dt_stage *s, const dt_loaded *c, const dt_setting *over, uint32_t n_over)
{
    for (uint32_t i = 0; i < n_over; i++) {
        const dt_option *o = dt_option_find(c->desc.options, over[i].key);
        const char *value = NULL;
        dt_origin origin;
        char path[160], why[256];
        snprintf(path, sizeof(path), "%s.%s", c->desc.id, over[i].key);
        if (o == NULL || dt_config_get(s->d.config, s->d.index, path, &value, &origin) != DT_OK) {
            dt_error_clear(); /* reported when the section is read */
            continue;
        }
        if (is_set_by_user(o, value, &origin) && !dt_is_same_value(value, over[i].value)) {
            explain_override(s, o, over[i].value, why, sizeof(why));
            return reject_option(path, value, &origin, why);
        }
    }
    return DT_OK;
}

/* ---- section data ---------------------------------------------------------------------------------------------- */

dt_status dt_reject_stream_options(const dt_stage *s, const dt_data_opts *d)
{
    static const char *const of_streams[] = {"window", "stream_timeout", "stream_room"};
    dt_option_view v;
    dt_status st = DT_OK;
    for (uint32_t i = 0; d->stream[0] == '\0' && st == DT_OK; i++) {
        st = dt_config_option_at(s->d.config, s->d.index, "data", i, &v);
        for (size_t k = 0; st == DT_OK && k < sizeof(of_streams) / sizeof(of_streams[0]); k++) {
            if (strcmp(v.option->name, of_streams[k]) == 0 && is_set_by_user(v.option, v.value, &v.origin) &&
                !dt_is_same_value(v.value, v.option->dfl)) {
                char path[160];
                snprintf(path, sizeof(path), "data.%s", v.option->name);
                return reject_option(path, v.value, &v.origin, "it applies to streams, and data.stream is not set");
            }
        }
    }
    if (st == DT_ENOTFOUND) { /* after the last option */
        dt_error_clear();
        st = DT_OK;
    }
    return st;
}

static void warn_ignored_live_options(const dt_stage *s, const dt_data_opts *d)
{
    static const char *const samplings[] = {DT_SAMPLINGS(DT_CHOICE_WORD)};
    if (d->stream[0] != '\0' && dt_comm_rank(s->d.comm) == 0) {
        dt_log(DT_LOG_WARN, "data.stream has no effect in %s, which learns from its own rollouts", s->d.phase->desc.id);
    }
    if (d->sampling != DT_SAMPLING_SHUFFLED || !d->drop_last) {
        dt_log(DT_LOG_WARN,
               "data.sampling = \"%s\" and data.drop_last = %s have no effect in %s: its samples are drawn in shuffled "
               "rounds of whole batches",
               samplings[d->sampling], d->drop_last ? "true" : "false", s->d.phase->desc.id);
    }
}

dt_status dt_reject_sampling_options(const dt_stage *s, const dt_data *data, const dt_data_opts *d)
{
    if (data->source.is_live) {
        warn_ignored_live_options(s, d);
    }
    const dt_option *weights =
        data->comp != NULL ? dt_option_find_flag(data->comp->desc.options, DT_OPT_WEIGHTS) : NULL;
    return weights == NULL || d->sampling == DT_SAMPLING_WEIGHTED
               ? DT_OK
               : reject_if_set(s, data->comp, weights,
                               "samples are drawn by weight only if data.sampling = \"weighted\"; set that, or leave "
                               "this out");
}
