/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.metrics/1": scalars, and the results of an evaluation; see results.h.
 */
#include <config.h>

#include "plugin/service/stage.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/name.h"
#include "base/str.h"
#include "dtrain/svc/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Calls return no status: the callback that makes them fails. */
static bool is_key(dt_stage *s, const char *call, const char *name, bool has_values)
{
    enum { MOST = 255 };
    const char *id = s->d.phase->desc.id;
    dt_status st = dt_text_check(DT_EPLUGIN, MOST, name, "%s: the name of %s of dtrain.metrics/1", id, call);
    if (st == DT_OK && strpbrk(name, "\t\n\r") != NULL) { /* printable elsewhere, but records are lines */
        st = DT_FAIL(DT_EPLUGIN, "%s: the name of %s of dtrain.metrics/1 has a tab or a line break: \"%s\"; remove it",
                     id, call, name);
    }
    if (st == DT_OK && (*name == '\0' || !has_values)) {
        st = DT_FAIL(DT_EPLUGIN,
                     "%s: %s of dtrain.metrics/1 is called with %s; pass a name such as \"charts/x\", and numbers", id,
                     call, *name == '\0' ? "an empty name" : "values that are NULL");
    }
    if (st != DT_OK) {
        dt_stage_keep_misuse(s);
    }
    return st == DT_OK;
}

static void metrics_scalar(const dt_host *h, const char *name, double value)
{
    if (!is_key(dt_stage_of(h), "scalar", name, true)) {
        return;
    }
    dt_metrics_add_scalar(dt_stage_of(h)->d.metrics, name, value);
}

static void metrics_report(const dt_host *h, const char *key, const double *value, uint32_t n)
{
    dt_stage *s = dt_stage_of(h);
    const uint32_t count = n > 0 ? n : 1;
    if (!is_key(s, "report", key, value != NULL)) {
        return;
    }
    if (s->results.n == DT_STAGE_MAX_RESULTS) {
        dt_log(DT_LOG_WARN, "%s has more than %d results; %s is left out", s->d.phase->desc.id, DT_STAGE_MAX_RESULTS,
               key);
        return;
    }
    dt_result *r = &s->results.at[s->results.n];
    r->key = dt_strdup(key);
    r->value = dt_alloc_n(count, sizeof(double));
    if (r->key == NULL || r->value == NULL) {
        dt_free(r->key);
        dt_free(r->value);
        return;
    }
    memcpy(r->value, value, count * sizeof(double));
    r->n = count;
    r->is_list = n > 0;
    s->results.n++;
}

static bool grow_pictures(dt_results *r)
{
    if (r->n_pictures < r->cap_pictures) {
        return true;
    }
    const uint32_t cap = r->cap_pictures > 0 ? 2 * r->cap_pictures : 64;
    dt_result *grown = dt_realloc(r->picture, cap * sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    r->picture = grown;
    r->cap_pictures = cap;
    return true;
}

/* What there is no room for is left out: pictures are never worth a run. */
static void metrics_picture(const dt_host *h, const char *key, const float *value, uint32_t rows, uint32_t columns)
{
    dt_stage *s = dt_stage_of(h);
    const uint64_t n = (uint64_t)columns * (rows > 0 ? rows : 1);
    if (!is_key(s, "picture", key, value != NULL || n == 0)) {
        return;
    }
    if (s->results.n_pictures == DT_STAGE_MAX_PICTURES || n > DT_STAGE_MAX_PICTURE_VALUES) {
        dt_log(DT_LOG_WARN, "%s leaves more for pictures than %d tables of %d numbers; %s is left out",
               s->d.phase->desc.id, DT_STAGE_MAX_PICTURES, DT_STAGE_MAX_PICTURE_VALUES, key);
        return;
    }
    if (dt_comm_rank(s->d.comm) != 0 || n == 0 || !grow_pictures(&s->results)) {
        return;
    }
    dt_result r = {.key = dt_strdup(key), .value = dt_alloc_n(n, sizeof(double)), .n = (uint32_t)n};
    if (r.key == NULL || r.value == NULL) {
        dt_free(r.key);
        dt_free(r.value);
        return;
    }
    for (uint64_t i = 0; i < n; i++) { /* digits that a picture can show, and no more in the file */
        char text[32];
        r.value[i] = value[i];
        if (r.value[i] == floor(r.value[i])) {
            continue;
        }
        snprintf(text, sizeof(text), "%.6g", (double)value[i]);
        r.value[i] = dt_parse_f64(text, &r.value[i]) ? r.value[i] : (double)NAN;
        r.value[i] = fabs(r.value[i]) < 1e-6 ? 0 : r.value[i];
    }
    r.is_list = true;
    r.columns = rows > 0 ? columns : 0;
    s->results.picture[s->results.n_pictures++] = r;
}

const dt_metrics_api dt_metrics_service = {.struct_size = sizeof(dt_metrics_api),
                                           .scalar = metrics_scalar,
                                           .report = metrics_report,
                                           .picture = metrics_picture};

/* ---- reading results ------------------------------------------------------------------------------------------- */

uint32_t dt_stage_get_results(const dt_stage *s, const dt_result **out_p)
{
    *out_p = s->results.at;
    return s->results.n;
}

const double *dt_stage_find_result(const dt_stage *s, const char *key)
{
    if (strncmp(key, "eval/", 5) == 0) {
        key += 5;
    }
    for (uint32_t i = 0; i < s->results.n; i++) {
        const dt_result *r = &s->results.at[i];
        const size_t n = strlen(r->key);
        int64_t at = 1;
        if (strncmp(r->key, key, n) != 0 || r->n == 0) {
            continue;
        }
        if (key[n] == '\0') {
            return r->value;
        }
        if (r->is_list && key[n] == '/' && dt_parse_i64(key + n + 1, &at) && at >= 1 && at <= r->n) {
            return &r->value[at - 1];
        }
    }
    return NULL;
}

bool dt_result_is_detail(const dt_result *r)
{
    const char *slash = strrchr(r->key, '/');
    return r->is_list && slash != NULL && strcmp(slash, "/values") == 0;
}

void dt_stage_list_result_names(const dt_stage *s, dt_str *out)
{
    for (uint32_t i = 0; i < s->results.n; i++) {
        const dt_result *r = &s->results.at[i];
        if (dt_result_is_detail(r)) {
            continue;
        }
        dt_str_addf(out, "%s%s", i > 0 ? ", " : "", r->key);
        if (r->is_list && r->n > 1) {
            dt_str_addf(out, "/1..%u", r->n);
        }
    }
}

void dt_stage_results_clear(dt_stage *s)
{
    dt_results *r = &s->results;
    for (uint32_t i = 0; i < r->n; i++) {
        dt_free(r->at[i].key);
        dt_free(r->at[i].value);
    }
    for (uint32_t i = 0; i < r->n_pictures; i++) {
        dt_free(r->picture[i].key);
        dt_free(r->picture[i].value);
    }
    dt_free(r->picture);
    r->picture = NULL;
    r->n = r->n_pictures = r->cap_pictures = 0;
}
