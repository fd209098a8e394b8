/* SPDX-License-Identifier: Apache-2.0
 *
 * Results and pictures of the last evaluation of a stage; metrics.c. Threads: [main].
 */
#ifndef DTRAIN_CORE_PLUGIN_SERVICE_RESULTS_H
#define DTRAIN_CORE_PLUGIN_SERVICE_RESULTS_H

#include "base/str.h"

enum { DT_STAGE_MAX_RESULTS = 256, DT_STAGE_MAX_PICTURES = 8192, DT_STAGE_MAX_PICTURE_VALUES = 65536 };

struct dt_stage;

typedef struct dt_result { /* one part of an evaluation's result */
    char *key;
    double *value;
    uint32_t n, columns; /* columns > 0: a table of n / columns rows */
    bool is_list;
} dt_result;

typedef struct dt_results { /* of the last evaluation, until the next one begins */
    dt_result at[DT_STAGE_MAX_RESULTS];
    uint32_t n;
    dt_result *picture; /* [n_pictures] what it left for pictures */
    uint32_t n_pictures, cap_pictures;
} dt_results;

/* What the last evaluation reported. */
uint32_t dt_stage_get_results(const struct dt_stage *s, const dt_result **out_p);
/* The number of a key; of a list "key/2" is the second, and the key alone the first. With eval/ in front, as records
 * name it, the same. NULL when it was not reported. */
const double *dt_stage_find_result(const struct dt_stage *s, const char *key);
/* What was reported, for people: "rmse_m/1..5, nll". */
void dt_stage_list_result_names(const struct dt_stage *s, dt_str *out);
/* "return/values": what a mean is of, seed by seed. JSON has it; tables and records have mean and deviation. */
bool dt_result_is_detail(const dt_result *r);
void dt_stage_results_clear(struct dt_stage *s);

#endif
