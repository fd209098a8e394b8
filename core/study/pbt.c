/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/pbt.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { STREAM = 3 }; /* of random numbers: space.c has 1 and 2 */

dt_status dt_pbt_init(dt_pbt *p, const dt_pbt_desc *d)
{
    *p = (dt_pbt){.d = *d};
    p->member = dt_alloc_n((size_t)d->n * d->n_generations, sizeof(*p->member));
    return p->member != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %u generations", d->n_generations);
}

void dt_pbt_fini(dt_pbt *p)
{
    for (size_t i = 0; p->member != NULL && i < (size_t)p->d.n * p->d.n_generations; i++) {
        dt_free(p->member[i].text);
    }
    dt_free(p->member);
    *p = (dt_pbt){0};
}

const char *dt_pbt_value(const dt_pbt *p, uint32_t job, uint32_t k)
{
    const char *text = p->member[job].text;
    for (; k > 0; k--) {
        text += strlen(text) + 1;
    }
    return text;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static dt_status set_values(dt_pbt *p, uint32_t job, const dt_str value[DT_SPACE_MAX_PARAMETERS])
{
    dt_str all = {0};
    for (uint32_t k = 0; k < p->d.space->n; k++) {
        dt_str_add_n(&all, dt_str_text(&value[k]), strlen(dt_str_text(&value[k])) + 1);
    }
    const dt_status st = dt_str_status(&all);
    char *text = st == DT_OK ? dt_alloc(all.bytes) : NULL;
    if (text != NULL) {
        memcpy(text, all.text, all.bytes);
        p->member[job].text = text;
    }
    dt_str_fini(&all);
    return text != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the values of a trial");
}

/* First values are those of a random search. */
static dt_status draw_values(dt_pbt *p, uint32_t member)
{
    dt_str value[DT_SPACE_MAX_PARAMETERS] = {0};
    for (uint32_t k = 0; k < p->d.space->n; k++) {
        dt_space_append_value(p->d.space, DT_SEARCH_RANDOM, p->d.seed, member, k, &value[k]);
    }
    const dt_status st = set_values(p, member, value);
    for (uint32_t k = 0; k < p->d.space->n; k++) {
        dt_str_fini(&value[k]);
    }
    return st;
}

/* is_same: of a member that continues, its own values. */
static dt_status derive_values(dt_pbt *p, uint32_t job, uint32_t source, bool is_same)
{
    dt_str value[DT_SPACE_MAX_PARAMETERS] = {0};
    const dt_rng_key key = {
        .seed = p->d.seed, .op = STREAM, .step = job / p->d.n, .sample = job % p->d.n}; /* generation, member */
    for (uint32_t k = 0; k < p->d.space->n; k++) {
        const dt_parameter *of = &p->d.space->parameter[k];
        const char *text = dt_pbt_value(p, source, k);
        const double u = dt_rng_uniform(&key, 2 * (uint64_t)k + 2);
        if (is_same) {
            dt_str_add(&value[k], text);
        } else if (dt_rng_uniform(&key, 2 * (uint64_t)k + 1) < p->d.resample) {
            dt_parameter_append_value(of, u, &value[k]);
        } else {
            dt_parameter_append_perturbed(of, text, u < 0.5, &value[k]);
        }
    }
    const dt_status st = set_values(p, job, value);
    for (uint32_t k = 0; k < p->d.space->n; k++) {
        dt_str_fini(&value[k]);
    }
    return st;
}

/* ---- generations ------------------------------------------------------------------------------------------------- */

/* 0 is the best of a generation; of equal ones the smaller number, failed ones last. */
static uint32_t rank_of(const dt_pbt_member *m, uint32_t n, uint32_t i)
{
    uint32_t rank = 0;
    for (uint32_t k = 0; k < n; k++) {
        const bool is_equal = m[k].value == m[i].value || (isnan(m[k].value) && isnan(m[i].value));
        const bool is_better = m[k].value > m[i].value || (!isnan(m[k].value) && isnan(m[i].value));
        rank += is_better || (is_equal && k < i);
    }
    return rank;
}

/* The worst are replaced, and all that failed. DT_DONE: all failed. */
static dt_status select_generation(dt_pbt *p, uint32_t generation)
{
    const uint32_t n = p->d.n, first = generation * n;
    const dt_pbt_member *before = &p->member[first - n];
    const uint32_t part = (uint32_t)(p->d.truncation * n), share = part > 0 ? part : 1;
    uint32_t n_whole = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_whole += !isnan(before[i].value);
    }
    if (n_whole == 0) {
        return DT_DONE;
    }
    const uint32_t n_best = share < n_whole ? share : n_whole;
    const uint32_t n_kept = n - share < n_whole ? n - share : n_whole;
    for (uint32_t i = 0; i < n; i++) {
        const dt_rng_key key = {.seed = p->d.seed, .op = STREAM, .step = generation, .sample = i};
        const uint32_t wanted = (uint32_t)(dt_rng_uniform(&key, 0) * n_best);
        uint32_t from = i;
        for (uint32_t k = 0; k < n && rank_of(before, n, i) >= n_kept; k++) {
            if (rank_of(before, n, k) == wanted) {
                from = k;
            }
        }
        p->member[first + i].from = from;
        DT_TRY(derive_values(p, first + i, first - n + from, from == i));
    }
    return DT_OK;
}

dt_status dt_pbt_next(dt_pbt *p, uint32_t *job_p)
{
    const uint32_t n = p->d.n, job = p->n_begun, generation = job / n;
    if (generation == p->d.n_generations) {
        return DT_DONE;
    }
    for (uint32_t i = 0; i < n && generation > 0 && job % n == 0; i++) {
        if (!p->member[job - n + i].is_known) {
            return DT_AGAIN;
        }
    }
    if (generation == 0) {
        p->member[job].from = job;
        DT_TRY(draw_values(p, job));
    } else if (job % n == 0) {
        DT_TRY(select_generation(p, generation));
    }
    p->n_begun++;
    *job_p = job;
    return DT_OK;
}

void dt_pbt_set_result(dt_pbt *p, uint32_t job, double value)
{
    p->member[job].value = value;
    p->member[job].is_known = true;
}
