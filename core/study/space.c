/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/space.h"

#include "base/rng.h"
#include "study/sobol.h"

#include <math.h>
#include <string.h>

const char *const dt_search_names[] = {"grid", "random", "sobol", "asha", "pbt", NULL};

/* Fewest digits that are unique among the trials of a sweep, and the same in every locale: the value becomes a
 * word of a command. */
static void append_number(double v, dt_str *out)
{
    dt_str_addf(out, "%.6g", v);
}

/* at: 0 is min, 1 is max. */
static double range_value(const dt_parameter *p, double at)
{
    const double v = p->is_log ? exp(log(p->min) + at * (log(p->max) - log(p->min))) : p->min + at * (p->max - p->min);
    return fmin(fmax(v, p->min), p->max);
}

/* Integer k stands for k - 1/2 to k + 1/2, so that the ends are as probable as the others. */
static double integer_value(const dt_parameter *p, double at)
{
    dt_parameter wide = *p;
    wide.min -= 0.5;
    wide.max += 0.5;
    return fmin(fmax(round(range_value(&wide, at)), p->min), p->max);
}

void dt_parameter_append_value(const dt_parameter *p, double u, dt_str *out)
{
    if (p->n_values > 0) {
        const uint32_t i = (uint32_t)(u * p->n_values);
        dt_str_add(out, p->value[i < p->n_values ? i : p->n_values - 1]);
    } else if (p->is_integer) {
        dt_str_addf(out, "%.0f", integer_value(p, u));
    } else {
        append_number(range_value(p, u), out);
    }
}

static void append_neighbour(const dt_parameter *p, const char *text, bool is_less, dt_str *out)
{
    uint32_t i = 0;
    while (i + 1 < p->n_values && strcmp(p->value[i], text) != 0) {
        i++;
    }
    if (is_less && i > 0) {
        i--;
    } else if (!is_less && i + 1 < p->n_values) {
        i++;
    }
    dt_str_add(out, p->value[i]);
}

void dt_parameter_append_perturbed(const dt_parameter *p, const char *text, bool is_less, dt_str *out)
{
    static const double FACTOR[] = {1.2, 0.8}; /* Jaderberg et al. 2017, section 4 */
    double v = 0;
    if (p->n_values > 0) {
        append_neighbour(p, text, is_less, out);
        return;
    }
    (void)dt_parse_f64(text, &v); /* it was printed from a number */
    const bool has_zero = p->min <= 0 && p->max >= 0;
    double to = has_zero ? v + (is_less ? -0.2 : 0.2) * (p->max - p->min) : v * FACTOR[is_less];
    if (p->is_integer) {
        to = round(to) != v ? round(to) : v + (is_less ? -1 : 1);
        dt_str_addf(out, "%.0f", fmin(fmax(to, p->min), p->max));
    } else {
        append_number(fmin(fmax(to, p->min), p->max), out);
    }
}

static uint32_t count_points(const dt_parameter *p)
{
    return p->n_values > 0 ? p->n_values : p->points;
}

static void append_grid_value(const dt_parameter *p, uint32_t i, dt_str *out)
{
    const double at = p->points > 1 ? (double)i / (p->points - 1) : 0.5;
    if (p->n_values > 0) {
        dt_str_add(out, p->value[i]);
    } else if (p->is_integer) {
        dt_str_addf(out, "%.0f", round(range_value(p, at)));
    } else {
        append_number(range_value(p, at), out);
    }
}

uint64_t dt_space_count_grid(const dt_space *s)
{
    uint64_t n = 1;
    for (uint32_t k = 0; k < s->n; k++) {
        const uint64_t points = count_points(&s->parameter[k]);
        n = points > 0 && n > UINT64_MAX / points ? UINT64_MAX : n * points;
    }
    return n;
}

static uint32_t grid_index(const dt_space *s, uint32_t trial, uint32_t k)
{
    uint32_t rest = trial;
    for (uint32_t i = s->n - 1; i > k; i--) {
        rest /= count_points(&s->parameter[i]);
    }
    return rest % count_points(&s->parameter[k]);
}

void dt_space_append_value(const dt_space *s, dt_search search, uint64_t seed, uint32_t trial, uint32_t k, dt_str *out)
{
    enum { DRAWS = 1, SHIFTS = 2 }; /* streams of random numbers */
    const dt_parameter *p = &s->parameter[k];
    if (search == DT_SEARCH_GRID) {
        append_grid_value(p, grid_index(s, trial, k), out);
    } else if (search == DT_SEARCH_SOBOL) {
        const dt_rng_key key = {.seed = seed, .op = SHIFTS, .sample = k};
        uint32_t shift[4];
        dt_philox(&key, 0, shift);
        dt_parameter_append_value(p, dt_sobol_point(trial, k, shift[0]), out);
    } else {
        const dt_rng_key key = {.seed = seed, .op = DRAWS, .step = trial, .sample = k};
        dt_parameter_append_value(p, dt_rng_uniform(&key, 0), out);
    }
}
