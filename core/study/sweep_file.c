/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/sweep_file.h"

#include "base/err.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const own_keys[] = {"arguments", "metric",     "goal",     "search",    "trials", "seed",
                                       "seeds",     "steps",      "eta",      "min_steps", "window", "parameters",
                                       "interval",  "truncation", "resample", NULL};
static const char *const parameter_keys[] = {"key", "values", "min", "max", "log", "integer", "points", NULL};

static dt_status fail_at(const dt_document_item *i, const char *why)
{
    return DT_FAIL(DT_ECONFIG, "%s:%d: %s = %s: %s", i->file, i->line, i->path, i->text, why);
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static bool is_one_of(const char *word, const char *const *list)
{
    for (uint32_t i = 0; list[i] != NULL; i++) {
        if (strcmp(list[i], word) == 0) {
            return true;
        }
    }
    return false;
}

static dt_status check_key(const dt_document_item *i)
{
    unsigned index = 0;
    int bytes = 0;
    const bool is_of_parameter = sscanf(i->path, "parameters/%u/%n", &index, &bytes) == 1 && bytes > 0;
    const char *const *list = is_of_parameter ? parameter_keys : own_keys;
    char word[64];
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(i->path + bytes, "/"), i->path + bytes);
    if (is_one_of(word, list)) {
        return DT_OK;
    }
    const char *near = dt_suggest_word(word, list);
    return DT_FAIL(DT_ECONFIG, "%s:%d: a sweep has no key \"%s\"%s%s%s%s", i->file, i->line, word,
                   is_of_parameter ? " in parameters" : "", near != NULL ? "; did you mean \"" : "",
                   near != NULL ? near : "", near != NULL ? "\"?" : "");
}

static dt_status read_whole(const dt_document *d, const char *path, int64_t least, int64_t most, int64_t *out)
{
    const dt_document_item *i = dt_document_find(d, path);
    char why[96];
    if (i == NULL) {
        return DT_OK;
    }
    if (!dt_parse_whole(i->text, out) || *out < least || *out > most) {
        snprintf(why, sizeof(why), "expected a whole number in [%lld, %lld]", (long long)least, (long long)most);
        return fail_at(i, why);
    }
    return DT_OK;
}

static dt_status read_choice(const dt_document *d, const char *path, const char *const *choice, uint32_t *out)
{
    const dt_document_item *i = dt_document_find(d, path);
    dt_str why = {0};
    if (i == NULL) {
        return DT_OK;
    }
    dt_str_add(&why, "expected one of");
    for (uint32_t k = 0; choice[k] != NULL; k++) {
        dt_str_addf(&why, "%s %s", k > 0 ? "," : "", choice[k]);
        if (strcmp(choice[k], i->text) == 0) {
            *out = k;
            dt_str_fini(&why);
            return DT_OK;
        }
    }
    const dt_status st = fail_at(i, dt_str_text(&why));
    dt_str_fini(&why);
    return st;
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static const dt_document_item *find_of(const dt_document *d, uint32_t k, const char *key)
{
    char path[64];
    snprintf(path, sizeof(path), "parameters/%u%s%s", k, key[0] != '\0' ? "/" : "", key);
    return dt_document_find(d, path);
}

static dt_status read_number(const dt_document_item *i, double *out)
{
    return dt_parse_f64(i->text, out) ? DT_OK : fail_at(i, "expected a number");
}

static dt_status read_flag(const dt_document_item *i, bool *out)
{
    if (i != NULL && i->kind != DT_DOCUMENT_BOOL) {
        return fail_at(i, "expected true or false");
    }
    *out = i != NULL && strcmp(i->text, "true") == 0;
    return DT_OK;
}

static dt_status read_values(const dt_document *d, uint32_t k, const dt_document_item *list, dt_parameter *p)
{
    char key[32];
    if (list->kind != DT_DOCUMENT_LIST) {
        return fail_at(list, "expected a list, such as [ 1, 2 ] or [ \"a\", \"b\" ]");
    }
    for (;; p->n_values++) {
        snprintf(key, sizeof(key), "values/%u", p->n_values);
        const dt_document_item *i = find_of(d, k, key);
        if (i == NULL) {
            break;
        }
        if (p->n_values == DT_SPACE_MAX_VALUES) {
            return DT_FAIL(DT_ECONFIG, "%s:%d: more than %d values", i->file, i->line, DT_SPACE_MAX_VALUES);
        }
        for (uint32_t j = 0; j < p->n_values; j++) {
            if (strcmp(p->value[j], i->text) == 0) {
                return fail_at(i, "is in the list twice");
            }
        }
        p->value[p->n_values] = i->text;
    }
    return p->n_values > 0 ? DT_OK : fail_at(list, "the list is empty");
}

static dt_status read_range(const dt_document *d, uint32_t k, const dt_document_item *group, dt_parameter *p)
{
    const dt_document_item *min = find_of(d, k, "min"), *max = find_of(d, k, "max");
    if (min == NULL || max == NULL) {
        return DT_FAIL(DT_ECONFIG, "%s:%d: %s has neither values nor min and max", group->file, group->line, p->key);
    }
    DT_TRY(read_number(min, &p->min));
    DT_TRY(read_number(max, &p->max));
    DT_TRY(read_flag(find_of(d, k, "log"), &p->is_log));
    DT_TRY(read_flag(find_of(d, k, "integer"), &p->is_integer));
    if (!(p->min < p->max)) {
        return DT_FAIL(DT_ECONFIG, "%s:%d: the range of %s is empty: min %s is not less than max %s", min->file,
                       min->line, p->key, min->text, max->text);
    }
    if (p->is_log && p->min <= 0) {
        return fail_at(min, "a logarithmic range begins above 0");
    }
    if (p->is_integer && (p->min != floor(p->min) || p->max != floor(p->max))) {
        return fail_at(p->min != floor(p->min) ? min : max, "expected an integer, because of integer = true");
    }
    return DT_OK;
}

static dt_status read_parameter(const dt_document *d, uint32_t k, const dt_document_item *group, dt_parameter *p)
{
    const dt_document_item *key = find_of(d, k, "key"), *values = find_of(d, k, "values");
    char path[64];
    int64_t points = 0;
    if (key == NULL || key->kind != DT_DOCUMENT_TEXT || strchr(key->text, '=') != NULL || key->text[0] == '\0') {
        return DT_FAIL(DT_ECONFIG, "%s:%d: parameter %u needs a key, such as key = \"training.learning_rate\"",
                       group->file, group->line, k + 1);
    }
    p->key = key->text;
    if (values != NULL && (find_of(d, k, "min") != NULL || find_of(d, k, "max") != NULL)) {
        return fail_at(key, "has both values and a range");
    }
    DT_TRY(values != NULL ? read_values(d, k, values, p) : read_range(d, k, group, p));
    snprintf(path, sizeof(path), "parameters/%u/points", k);
    DT_TRY(read_whole(d, path, 1, 1000, &points));
    p->points = (uint32_t)points;
    return DT_OK;
}

static dt_status read_space(const dt_document *d, dt_sweep *s)
{
    const dt_document_item *group = NULL;
    while ((group = find_of(d, s->space.n, "")) != NULL) {
        if (s->space.n == DT_SPACE_MAX_PARAMETERS) {
            return DT_FAIL(DT_ECONFIG, "%s:%d: more than %d parameters", group->file, group->line,
                           DT_SPACE_MAX_PARAMETERS);
        }
        dt_parameter *p = &s->space.parameter[s->space.n];
        DT_TRY(read_parameter(d, s->space.n, group, p));
        for (uint32_t i = 0; i < s->space.n; i++) {
            if (strcmp(s->space.parameter[i].key, p->key) == 0) {
                return DT_FAIL(DT_ECONFIG, "%s:%d: %s is a parameter already", group->file, group->line, p->key);
            }
        }
        if (s->search == DT_SEARCH_GRID && p->n_values == 0 && p->points == 0) {
            return DT_FAIL(DT_ECONFIG, "%s:%d: in a grid the range of %s needs points = N, or values", group->file,
                           group->line, p->key);
        }
        s->space.n++;
    }
    return s->space.n > 0
               ? DT_OK
               : DT_FAIL(DT_ECONFIG, "a sweep needs parameters = ( { key = \"...\"; min = ...; max = ...; } )");
}

/* ---- how much ---------------------------------------------------------------------------------------------------- */

static dt_status count_trials(const dt_document *d, dt_sweep *s)
{
    const dt_document_item *item = dt_document_find(d, "trials");
    const uint64_t grid = s->search == DT_SEARCH_GRID ? dt_space_count_grid(&s->space) : 0;
    int64_t n = 0;
    DT_TRY(read_whole(d, "trials", 1, DT_SWEEP_MAX_TRIALS, &n));
    if (s->search != DT_SEARCH_GRID && item == NULL) {
        return DT_FAIL(DT_ECONFIG, "a sweep needs trials = N, the number of combinations to try");
    }
    if (s->search == DT_SEARCH_GRID && (grid > DT_SWEEP_MAX_TRIALS || (item != NULL && grid > (uint64_t)n))) {
        return DT_FAIL(DT_ECONFIG,
                       "the grid has %llu combinations, more than %s %lld; use fewer values or points, or "
                       "search = \"random\"",
                       (unsigned long long)grid, item != NULL ? "trials =" : "the limit of",
                       item != NULL ? (long long)n : (long long)DT_SWEEP_MAX_TRIALS);
    }
    s->trials = s->search == DT_SEARCH_GRID ? (uint32_t)grid : (uint32_t)n;
    return DT_OK;
}

/* Keys that only one search reads are mistakes with another. */
static dt_status check_owner(const dt_document *d, const dt_sweep *s)
{
    static const struct {
        const char *key, *name;
        dt_search search;
    } own[] = {{"min_steps", "asha", DT_SEARCH_ASHA}, {"eta", "asha", DT_SEARCH_ASHA},
               {"window", "asha", DT_SEARCH_ASHA},    {"interval", "pbt", DT_SEARCH_PBT},
               {"truncation", "pbt", DT_SEARCH_PBT},  {"resample", "pbt", DT_SEARCH_PBT}};
    for (size_t k = 0; k < sizeof(own) / sizeof(own[0]); k++) {
        const dt_document_item *i = dt_document_find(d, own[k].key);
        char why[64];
        if (i != NULL && s->search != own[k].search) {
            snprintf(why, sizeof(why), "only search = \"%s\" reads it", own[k].name);
            return fail_at(i, why);
        }
    }
    return DT_OK;
}

/* min_steps, eta times as many, ... up to steps. */
static dt_status plan_rungs(const dt_document *d, dt_sweep *s, int64_t steps)
{
    enum { MOST = 12 };
    int64_t least = 0, eta = 3, window = 16;
    DT_TRY(read_whole(d, "min_steps", 1, (int64_t)1 << 53, &least));
    DT_TRY(read_whole(d, "eta", 2, 16, &eta));
    DT_TRY(read_whole(d, "window", 1, 256, &window));
    s->eta = (uint32_t)eta;
    s->window = (uint32_t)window;
    if (steps == 0 || least == 0 || least > steps) {
        return DT_FAIL(DT_ECONFIG,
                       "search = \"asha\" needs steps = N, those of a whole trial, and min_steps = N, those "
                       "before the first decision; min_steps %lld, steps %lld",
                       (long long)least, (long long)steps);
    }
    for (double at = (double)least; at < (double)steps && s->n_rungs + 1 < MOST; at *= (double)eta) {
        s->rung_steps[s->n_rungs++] = (uint64_t)at;
    }
    s->rung_steps[s->n_rungs++] = (uint64_t)steps;
    return DT_OK;
}

static dt_status read_share(const dt_document *d, const char *path, double least, double most, double *out)
{
    const dt_document_item *i = dt_document_find(d, path);
    char why[64];
    if (i == NULL) {
        return DT_OK;
    }
    if (!dt_parse_f64(i->text, out) || !(*out >= least && *out <= most)) {
        snprintf(why, sizeof(why), "expected a number in [%g, %g]", least, most);
        return fail_at(i, why);
    }
    return DT_OK;
}

/* interval, twice as many, ... up to steps. */
static dt_status plan_generations(const dt_document *d, dt_sweep *s, int64_t steps)
{
    int64_t interval = 0;
    s->truncation = s->resample = 0.25;
    DT_TRY(read_whole(d, "interval", 1, (int64_t)1 << 53, &interval));
    DT_TRY(read_share(d, "truncation", 0.01, 0.5, &s->truncation));
    DT_TRY(read_share(d, "resample", 0, 1, &s->resample));
    if (steps == 0 || interval == 0 || interval > steps || s->trials < 2) {
        return DT_FAIL(DT_ECONFIG,
                       "search = \"pbt\" needs steps = N, those of a whole trial, interval = N, those between "
                       "decisions, and at least 2 trials; interval %lld, steps %lld, trials %u",
                       (long long)interval, (long long)steps, s->trials);
    }
    if ((steps + interval - 1) / interval > DT_SWEEP_MAX_RUNGS) {
        return DT_FAIL(DT_ECONFIG, "interval = %lld: steps = %lld are more than %d of them", (long long)interval,
                       (long long)steps, DT_SWEEP_MAX_RUNGS);
    }
    for (int64_t at = interval; at < steps; at += interval) {
        s->rung_steps[s->n_rungs++] = (uint64_t)at;
    }
    s->rung_steps[s->n_rungs++] = (uint64_t)steps;
    return DT_OK;
}

static dt_status plan_steps(const dt_document *d, dt_sweep *s)
{
    int64_t steps = 0;
    DT_TRY(read_whole(d, "steps", 1, (int64_t)1 << 53, &steps));
    DT_TRY(check_owner(d, s));
    s->window = s->trials;
    s->eta = 3;
    if (s->search == DT_SEARCH_ASHA) {
        return plan_rungs(d, s, steps);
    }
    if (s->search == DT_SEARCH_PBT) {
        return plan_generations(d, s, steps);
    }
    s->rung_steps[s->n_rungs++] = (uint64_t)steps;
    return DT_OK;
}

static dt_status read_arguments(const dt_document *d, dt_sweep *s)
{
    char path[32];
    const dt_document_item *i = NULL;
    for (uint32_t k = 0; snprintf(path, sizeof(path), "arguments/%u", k), (i = dt_document_find(d, path)) != NULL;
         k++) {
        dt_words_add(&s->arguments, i->text);
    }
    return s->arguments.n > 0 || s->arguments.failed
               ? dt_words_status(&s->arguments)
               : DT_FAIL(DT_ECONFIG, "a sweep needs arguments = [ ... ], those of dtrain run, such as "
                                     "[ \"--config\", \"pole.cfg\" ]");
}

static dt_status read_all(dt_sweep *s)
{
    static const char *const goals[] = {"max", "min", NULL};
    const dt_document *d = &s->document;
    uint32_t search = DT_SEARCH_RANDOM, goal = 2;
    int64_t seed = 1;
    for (uint32_t i = 0; i < d->n; i++) {
        DT_TRY(check_key(&d->item[i]));
        dt_words_addf(&s->identity, "%s = %s", d->item[i].path, d->item[i].text);
    }
    DT_TRY(read_arguments(d, s));
    DT_TRY(read_choice(d, "search", dt_search_names, &search));
    DT_TRY(read_choice(d, "goal", goals, &goal));
    s->search = (dt_search)search;
    s->is_min = goal == 1;
    const dt_document_item *metric = dt_document_find(d, "metric"), *seeds = dt_document_find(d, "seeds");
    if (metric == NULL || metric->text[0] == '\0' || goal == 2) {
        return DT_FAIL(DT_ECONFIG, "a sweep needs metric and goal, such as metric = \"return/mean\"; goal = \"max\";");
    }
    s->metric = metric->text;
    DT_TRY(read_whole(d, "seed", 0, (int64_t)1 << 53, &seed));
    s->seed = (uint64_t)seed;
    DT_TRY(dt_seed_list_parse(seeds != NULL ? seeds->text : "1", s->seeds, &s->n_seeds));
    DT_TRY(read_space(d, s));
    DT_TRY(count_trials(d, s));
    DT_TRY(plan_steps(d, s));
    return dt_words_status(&s->identity);
}

dt_status dt_sweep_read(const char *path, dt_sweep *out)
{
    *out = (dt_sweep){0};
    DT_TRY(dt_document_read(path, &out->document));
    dt_status st = read_all(out);
    if (st < 0) {
        const bool has_place = strncmp(dt_error_text(), path, strlen(path)) == 0;
        st = has_place ? st : DT_CONTEXT(st, "%s", path);
        dt_sweep_fini(out);
    }
    return st;
}

void dt_sweep_fini(dt_sweep *s)
{
    dt_words_fini(&s->arguments);
    dt_words_fini(&s->identity);
    dt_document_fini(&s->document);
}
