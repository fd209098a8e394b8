/* SPDX-License-Identifier: Apache-2.0
 *
 * Search space of a sweep: parameters, and how points of the unit cube become their values. Threads: any (no state).
 */
#ifndef DTRAIN_CORE_STUDY_SPACE_H
#define DTRAIN_CORE_STUDY_SPACE_H

#include "base/str.h"

#include <stdbool.h>

enum { DT_SPACE_MAX_PARAMETERS = 21, DT_SPACE_MAX_VALUES = 64 }; /* as many as sobol.h has dimensions */

typedef struct dt_parameter {
    const char *key; /* such as training.learning_rate */
    const char *value[DT_SPACE_MAX_VALUES];
    uint32_t n_values; /* 0: a range */
    double min, max;
    bool is_log, is_integer;
    uint32_t points; /* of a range in a grid */
} dt_parameter;

typedef struct dt_space {
    dt_parameter parameter[DT_SPACE_MAX_PARAMETERS];
    uint32_t n;
} dt_space;

typedef enum dt_search { DT_SEARCH_GRID, DT_SEARCH_RANDOM, DT_SEARCH_SOBOL, DT_SEARCH_ASHA, DT_SEARCH_PBT } dt_search;
extern const char *const dt_search_names[]; /* by number; NULL ends it */

/* The value at u in [0, 1): of a range in equal steps of its (logarithmic) scale, integers with equal probability. */
void dt_parameter_append_value(const dt_parameter *p, double u, dt_str *out);
/* A value near `text`, which is one: 0.8 or 1.2 times it (is_less or not; where a range contains 0, a fifth of it
 * away), at least the next integer, a neighbour in a list; never outside. */
void dt_parameter_append_perturbed(const dt_parameter *p, const char *text, bool is_less, dt_str *out);
/* Points of the grid of all parameters; UINT64_MAX where they are too many to count. */
uint64_t dt_space_count_grid(const dt_space *s);
/* Value of parameter k in trial `trial`. The last parameter of a grid changes fastest. DT_SEARCH_ASHA draws as
 * DT_SEARCH_RANDOM, DT_SEARCH_PBT the first values. */
void dt_space_append_value(const dt_space *s, dt_search search, uint64_t seed, uint32_t trial, uint32_t k, dt_str *out);

#endif
