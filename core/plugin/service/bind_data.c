/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.bind/1": creates the data that the configuration names, and data of the phase itself.
 */
#include <config.h>

#include "plugin/service/stage.h"
#include "plugin/service/stream.h"

#include "base/err.h"
#include "base/plugin_call.h"
#include "base/log.h"
#include "base/name.h"
#include "dtrain/ext/dataset.h"
#include "dtrain/helpers.h"
#include "dtrain/svc/bind.h"
#include "engine/tensor/dtype.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which part of a store an evaluation without training uses; logged once. */
static dt_status choose_evaluated_part(const dt_stage *s, const dt_data *d, const char *store, bool is_first,
                                       const char **out)
{
    const dt_trained_on *t = s->d.trained_on;
    const uint32_t folds = s->opts.evaluation.folds;
    const dt_dataset_ext *of = d->comp->desc.extension != NULL ? d->comp->desc.extension(DT_EXT_DATASET) : NULL;
    uint64_t value = 0;
    char digest[17] = "?";
    bool is_other = false;
    if (folds == DT_FOLDS_AUTO && t->is_trained && t->is_known && DT_HAS(of, digest)) {
        DT_TRY_PLUGIN(of->digest(&s->host, store, &value), "digest");
        snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)value);
        is_other = strstr(t->stores, digest) == NULL;
    }
    *out = folds == DT_FOLDS_ALL || is_other ? "all" : "held";
    if (is_first && folds == DT_FOLDS_AUTO && t->is_trained && !t->is_known) {
        dt_log(DT_LOG_WARN,
               "the checkpoint does not record its training data: evaluated on the part of %s that training holds out; "
               "evaluation.folds = \"all\" takes all of it",
               store);
    } else if (is_first) {
        dt_log(DT_LOG_INFO, "evaluated on %s of %s%s", strcmp(*out, "all") == 0 ? "all" : "the part held out", store,
               is_other ? ", which was not trained on" : "");
    }
    return DT_OK;
}

/* The option of the phase that selects such a part, by its name: "calibration" by calibration_folds. */
static dt_status reject_split(const dt_stage *s, const char *split)
{
    const dt_loaded *phase = s->d.phase;
    const dt_option *o = phase->desc.options;
    while (o != NULL && o->name != NULL && strncmp(o->name, split, strlen(split)) != 0) {
        o++;
    }
    const bool is_found = o != NULL && o->name != NULL;
    return DT_FAIL(DT_ECONFIG, "%s uses the part %s of its training data, which data.stream does not keep%s%s%s%s%s",
                   phase->desc.id, split, is_found ? "; set " : "", is_found ? phase->desc.id : "", is_found ? "." : "",
                   is_found ? o->name : "", is_found ? " = 0" : "");
}

/* Is it what the phase trains on, and does that come as a stream? A phase binds the rest of its data with another split
 * than "train". */
static dt_status find_streamed(const dt_stage *s, const dt_data *d, const dt_data_opts *o, const dt_setting *over,
                               uint32_t n, bool *is_streamed_p)
{
    const char *split = "train";
    *is_streamed_p = false;
    if (o->stream[0] == '\0' || s->d.trained_on != NULL) {
        return DT_OK;
    }
    if (o->store[0] == '\0') {
        return DT_FAIL(DT_ECONFIG, "data.stream needs data.store for evaluations and for the memory plan");
    }
    if (dt_option_find_flag(d->comp->desc.options, DT_OPT_STORE) == NULL) {
        return DT_FAIL(DT_ECONFIG, "data.stream needs a data source that reads stores, and %s does not",
                       d->comp->desc.id);
    }
    const dt_option *parts = dt_option_find_flag(d->comp->desc.options, DT_OPT_SPLIT);
    for (uint32_t i = 0; parts != NULL && i < n; i++) {
        split = strcmp(over[i].key, parts->name) == 0 ? over[i].value : split;
    }
    *is_streamed_p = strcmp(split, "train") == 0;
    return strcmp(split, "calibration") == 0 ? reject_split(s, split) : DT_OK;
}

static int64_t slice_rows_of(const dt_engine_opts *e)
{
    return e->slice_rows > 0 ? e->slice_rows : 512;
}

dt_status dt_bind_data(const dt_host *h, const dt_setting *overrides, uint32_t n, dt_data **out)
{
    dt_stage *s = dt_stage_of(h);
    const dt_data_opts *opts = &s->opts.data;
    if (s->n_data == DT_STAGE_MAX_DATA || n > 13) {
        return DT_FAIL(DT_EPLUGIN, "%s binds more than %d data sets", s->d.phase->desc.id, DT_STAGE_MAX_DATA);
    }
    DT_TRY(dt_settings_check(s->d.phase->desc.id, overrides, n));
    if (opts->source[0] == '\0') {
        return DT_FAIL(DT_ECONFIG, "%s reads data, but data.source is empty; set it to the id of a data component",
                       s->d.phase->desc.id);
    }
    dt_data *d = &s->data[s->n_data];
    memset(d, 0, sizeof(*d));
    DT_TRY(dt_loader_find(s->d.loader, DT_KIND_DATA, opts->source, &d->comp));
    s->n_data++;
    /* the component gets data.store by its option with DT_OPT_STORE */
    dt_setting over[16];
    uint32_t n_over = 0;
    const char *store = opts->store[0] != '\0' ? opts->store : s->d.demo_store, *part = NULL;
    const dt_option *of_store = dt_option_find_flag(d->comp->desc.options, DT_OPT_STORE);
    const dt_option *held = dt_option_find_flag(d->comp->desc.options, DT_OPT_FOLDS);
    if (of_store != NULL) {
        over[n_over++] = (dt_setting){of_store->name, store};
    }
    if (s->d.trained_on != NULL && of_store != NULL && held != NULL) {
        dt_status st = choose_evaluated_part(s, d, store, s->n_data == 1, &part);
        DT_TRY(st == DT_ENOTFOUND ? DT_EDATA : st);
        over[n_over++] = (dt_setting){held->name, part};
    }
    bool is_streamed = false;
    DT_TRY(dt_reject_stream_options(s, opts));
    DT_TRY(find_streamed(s, d, opts, overrides, n, &is_streamed));
    if (opts->stream[0] != '\0' && s->d.trained_on == NULL && held != NULL) {
        over[n_over++] =
            (dt_setting){held->name, "all"}; /* nothing of the store is trained on, and all of a stream is */
    }
    for (uint32_t i = 0; i < n; i++) {
        over[n_over++] = overrides[i];
    }
    DT_TRY(dt_reject_overridden_options(s, d->comp, over, n_over));
    DT_TRY(dt_component_configure(s, d->comp, over, n_over, &d->config, &d->self));
    d->created = true;
    dt_status st = DT_OK;
    DT_CALL_PLUGIN(st, d->comp->desc.id, "create", d->comp->ops.data.create(d->self, h, d->config));
    if (st >= 0) {
        st = dt_samples_open(&d->source, &d->comp->ops.data, d->self, slice_rows_of(&s->opts.engine));
    }
    if (st < 0) {
        return DT_CONTEXT(st == DT_ENOTFOUND ? DT_EDATA : st, "opening %s", d->comp->desc.id);
    }
    if (is_streamed && s->stream != NULL) {
        return DT_FAIL(DT_EUNSUPPORTED, "%s trains on two sets of data, and data.stream is one", s->d.phase->desc.id);
    }
    DT_TRY(is_streamed ? dt_stream_create(s, d, over, n_over, opts, &s->stream) : DT_OK);
    *out = d;
    return DT_OK;
}

/* What the phase makes itself; of its table only what it has is read. */
dt_status dt_bind_own_data(const dt_host *h, const dt_data_ops *ops, void *self, dt_data **out)
{
    dt_stage *s = dt_stage_of(h);
    if (s->n_data == DT_STAGE_MAX_DATA) {
        return DT_FAIL(DT_EPLUGIN, "%s binds more than %d data sets", s->d.phase->desc.id, DT_STAGE_MAX_DATA);
    }
    dt_data *d = &s->data[s->n_data];
    if (ops == NULL || out == NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s makes data without %s", s->d.phase->desc.id,
                       ops == NULL ? "functions" : "a place for its handle");
    }
    memset(d, 0, sizeof(*d));
    memcpy(&d->own, ops, ops->struct_size < sizeof(d->own) ? ops->struct_size : sizeof(d->own));
    if (d->own.fields == NULL || d->own.symbols == NULL || d->own.count == NULL || d->own.sizes == NULL ||
        d->own.read == NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s: data of its own requires fields, symbols, count, sizes and read",
                       s->d.phase->desc.id);
    }
    const dt_status st = dt_samples_open(&d->source, &d->own, self, slice_rows_of(&s->opts.engine));
    if (st < 0) {
        return DT_CONTEXT(st, "data that %s makes", s->d.phase->desc.id);
    }
    s->n_data++;
    *out = d;
    return DT_OK;
}

const dt_port *dt_bind_data_field(const dt_data *d, const char *name)
{
    return name != NULL ? dt_port_find(d->source.field, d->source.n_fields, name) : NULL;
}

uint64_t dt_bind_data_count(const dt_data *d)
{
    return d->source.count;
}

dt_status dt_bind_check_stat(const char *who, const char *field, uint32_t column, const dt_field_stat *s)
{
    const bool is_finite =
        isfinite(s->n) && isfinite(s->min) && isfinite(s->max) && isfinite(s->mean) && isfinite(s->std);
    const double room = 1e-6 * (fabs(s->min) + fabs(s->max)); /* the mean of many alike may round past them */
    if (is_finite && s->n >= 0 && s->std >= 0 && s->min <= s->max && s->mean >= s->min - room &&
        s->mean <= s->max + room) {
        return DT_OK;
    }
    return DT_FAIL(DT_EPLUGIN,
                   "%s reports for column %u of %s: %g values, least %g, greatest %g, mean %g, deviation %g; these are "
                   "inconsistent",
                   who, column, field, s->n, s->min, s->max, s->mean, s->std);
}

dt_status dt_bind_data_statistics(const dt_data *d, const char *field, dt_field_stat *out, uint32_t n)
{
    const dt_data_ops *ops = d->comp != NULL ? &d->comp->ops.data : &d->own;
    void *self = d->comp != NULL ? d->self : d->source.self;
    const char *who = d->comp != NULL ? d->comp->desc.id : "the phase's data";
    DT_TRY(dt_name_given(field, "data_statistics"));
    const dt_port *port = dt_bind_data_field(d, field);
    if (port == NULL) {
        return DT_BREACH(DT_ENOTFOUND, "%s has no field %s", who, field);
    }
    const char *last = strrchr(port->dims, ' ');
    const long columns = last != NULL ? strtol(last, NULL, 10) : 0;
    if (port->dtype != DT_F32 || columns != (long)n || n == 0) {
        return DT_BREACH(DT_ESHAPE, "field %s of %s is \"%s\" of %s, not %u columns of f32", field, who, port->dims,
                         dt_dtype_name(port->dtype), n);
    }
    if (ops->statistics == NULL) {
        return DT_BREACH(DT_EUNSUPPORTED, "%s keeps no statistics of its fields", who);
    }
    memset(out, 0, n * sizeof(*out));
    dt_status st = DT_OK;
    DT_CALL_PLUGIN(st, who, "statistics", ops->statistics(self, field, out, n));
    if (st < 0) {
        (void)DT_CONTEXT(st, "statistics of field %s of %s", field, who);
        return st == DT_EUNSUPPORTED ? dt_error_mark_breach(st) : st; /* of a field without them */
    }
    for (uint32_t i = 0; i < n; i++) {
        DT_TRY(dt_bind_check_stat(who, field, i, &out[i]));
    }
    return DT_OK;
}
