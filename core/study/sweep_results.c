/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/sweep_results.h"

#include "base/err.h"
#include "base/mem.h"
#include "study/sweep_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "LIST/12/rest": 12, and where the rest begins. Numbers above INT32_MAX, which no list has, are that. */
static bool split_path(const char *path, const char *list, uint32_t *i_p, const char **rest_p)
{
    const size_t n = strlen(list);
    char *end = NULL;
    if (strncmp(path, list, n) != 0 || path[n] != '/' || path[n + 1] < '0' || path[n + 1] > '9') {
        return false;
    }
    const unsigned long i = strtoul(path + n + 1, &end, 10);
    *i_p = i < INT32_MAX ? (uint32_t)i : INT32_MAX; /* + 1 fits */
    *rest_p = *end == '/' ? end + 1 : end;
    return true;
}

/* ---- where values come from -------------------------------------------------------------------------------------- */

static void read_space_item(const dt_flat_item *item, uint32_t k, const char *rest, dt_space *space)
{
    dt_parameter *p = &space->parameter[k];
    if (strcmp(rest, "key") == 0) {
        p->key = item->text;
        space->n = k + 1 > space->n ? k + 1 : space->n;
    } else if (strcmp(rest, "scale") == 0) {
        p->is_log = strcmp(item->text, "log") == 0;
    } else if (strcmp(rest, "min") == 0) {
        p->min = item->number;
    } else if (strcmp(rest, "max") == 0) {
        p->max = item->number;
    } else if (strncmp(rest, "values/", 7) == 0 && p->n_values < DT_SPACE_MAX_VALUES) {
        p->value[p->n_values++] = item->text;
    }
}

/* A table without it, of an earlier version: the parameters of the first trial. */
static void read_keys(dt_sweep_results *r)
{
    static const char first[] = "trials/0/parameters/";
    for (uint32_t i = 0; i < r->file.n && r->space.n < DT_SPACE_MAX_PARAMETERS; i++) {
        if (strncmp(r->file.item[i].path, first, sizeof(first) - 1) == 0) {
            r->space.parameter[r->space.n++] =
                (dt_parameter){.key = r->file.item[i].path + sizeof(first) - 1, .min = NAN, .max = NAN};
        }
    }
}

static void read_space(dt_sweep_results *r)
{
    const char *rest = NULL;
    uint32_t k = 0;
    for (uint32_t i = 0; i < r->file.n; i++) {
        const dt_flat_item *item = &r->file.item[i];
        if (split_path(item->path, "space", &k, &rest) && k < DT_SPACE_MAX_PARAMETERS) {
            read_space_item(item, k, rest, &r->space);
        } else if (split_path(item->path, "seeds", &k, &rest)) {
            if (k < DT_SWEEP_RESULTS_SEEDS && item->number >= 0 && item->number < 9e15) {
                r->seed[k] = (int64_t)item->number;
            }
            r->n_seeds = k + 1;
        }
    }
    if (r->space.n == 0) {
        read_keys(r);
    }
}

static bool has_every_key(const dt_sweep_results *r)
{
    for (uint32_t k = 0; k < r->space.n; k++) {
        if (r->space.parameter[k].key == NULL) {
            return false;
        }
    }
    return r->space.n > 0;
}

/* ---- trials ------------------------------------------------------------------------------------------------------ */

static void set_parameter(dt_sweep_results *r, dt_trial_result *t, const char *key, const char *text)
{
    for (uint32_t k = 0; k < r->space.n; k++) {
        if (strcmp(r->space.parameter[k].key, key) == 0) {
            t->text[k] = text;
            return;
        }
    }
}

static void read_trial_item(dt_sweep_results *r, uint32_t i, const char *rest, dt_trial_result *t)
{
    const dt_flat_item *item = &r->file.item[i];
    if (strcmp(rest, "trial") == 0) {
        t->trial = item->number >= 1 && item->number <= DT_SWEEP_MAX_TRIALS ? (uint32_t)item->number : 0;
    } else if (strcmp(rest, "state") == 0) {
        t->state = item->text;
    } else if (strcmp(rest, "steps") == 0) {
        t->steps = item->number;
    } else if (strcmp(rest, "value") == 0) {
        t->value = isfinite(item->number) ? item->number : (double)NAN;
    } else if (strcmp(rest, "folder") == 0) {
        t->folder = item->text;
    } else if (strncmp(rest, "seed_values/", 12) == 0) {
        t->first_seed = t->n_seeds == 0 ? i : t->first_seed;
        t->n_seeds++;
    } else if (strncmp(rest, "parameters/", 11) == 0) {
        set_parameter(r, t, rest + 11, item->text);
    }
}

/* Rows are in their order: the path of one begins with its number. */
static dt_status read_trials(dt_sweep_results *r, const char *path)
{
    const char *rest = NULL;
    uint32_t n = 0, row = 0;
    for (uint32_t i = 0; i < r->file.n; i++) {
        n = split_path(r->file.item[i].path, "trials", &row, &rest) && row + 1 > n ? row + 1 : n;
    }
    if (n == 0 || n > DT_SWEEP_MAX_TRIALS || !has_every_key(r)) {
        return DT_FAIL(DT_EDATA, "%s: %u trials of %u parameters: expected the table of dtrain sweep", path, n,
                       r->space.n);
    }
    r->trial = dt_alloc_n(n, sizeof(*r->trial));
    if (r->trial == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u trials", n);
    }
    r->n_trials = n;
    for (uint32_t i = 0; i < n; i++) {
        r->trial[i] = (dt_trial_result){.state = "", .folder = "", .steps = NAN, .value = NAN};
        for (uint32_t k = 0; k < r->space.n; k++) {
            r->trial[i].text[k] = "";
        }
    }
    for (uint32_t i = 0; i < r->file.n; i++) {
        if (split_path(r->file.item[i].path, "trials", &row, &rest)) {
            read_trial_item(r, i, rest, &r->trial[row]);
        }
    }
    while (r->n_ranked < n && isfinite(r->trial[r->n_ranked].value)) {
        r->n_ranked++;
    }
    return DT_OK;
}

static dt_status read_table(const char *path, dt_sweep_results *out)
{
    DT_TRY(dt_flat_read(path, &out->file));
    out->metric = dt_flat_text(&out->file, "metric");
    out->search = dt_flat_text(&out->file, "search");
    out->is_min = strcmp(dt_flat_text(&out->file, "goal"), "min") == 0;
    read_space(out);
    return read_trials(out, path);
}

dt_status dt_sweep_results_read(const char *folder, dt_sweep_results *out)
{
    dt_str path = {0};
    *out = (dt_sweep_results){.metric = ""};
    dt_str_addf(&path, "%s/summary.json", folder);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = read_table(dt_str_text(&path), out);
    }
    if (st == DT_ENOTFOUND) {
        st = DT_FAIL(DT_ECONFIG, "the sweep in %s has no table yet: dtrain sweep writes it when trials end", folder);
    }
    if (st < 0) {
        dt_sweep_results_fini(out);
    }
    dt_str_fini(&path);
    return st;
}

void dt_sweep_results_fini(dt_sweep_results *r)
{
    dt_free(r->trial);
    dt_flat_fini(&r->file);
    *r = (dt_sweep_results){.metric = ""};
}

dt_iqm dt_sweep_results_interval(const dt_sweep_results *r, uint32_t row)
{
    enum { RESAMPLES = 4000 }; /* as of dtrain seeds */
    const dt_trial_result *t = &r->trial[row];
    dt_iqm none = {t->value, NAN, NAN};
    double *v = t->n_seeds > 1 && isfinite(t->value) ? dt_alloc_n(t->n_seeds, sizeof(*v)) : NULL;
    bool is_whole = v != NULL && t->first_seed + t->n_seeds <= r->file.n;
    for (uint32_t k = 0; k < t->n_seeds && is_whole; k++) {
        v[k] = r->file.item[t->first_seed + k].number;
        is_whole = isfinite(v[k]);
    }
    if (is_whole) {
        const dt_iqm of_seeds = dt_iqm_interval(v, t->n_seeds, RESAMPLES);
        none.low = of_seeds.low;
        none.high = of_seeds.high;
    }
    dt_free(v);
    return none;
}
