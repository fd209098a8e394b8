/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.rollout/1", columns that the phase makes of a round itself: annotate, and returns of values that it
 * has found. Rows come in the order of an evaluation over the data: samples in order, their agents by place. Every rank
 * has all of them, as an evaluation shows them to all.
 */
#include <config.h>

#include "rl/rollout/rollout.h"

#include "base/err.h"
#include "base/name.h"

#include <math.h>
#include <string.h>

static dt_status check_rows(const dt_rollout *r, uint64_t n_rows)
{
    if (!r->all->is_filled) {
        return DT_FAIL(DT_EPLUGIN, "rows of a round are passed before the first collect");
    }
    const uint64_t n = dt_round_count_rows(r->all);
    return n == n_rows ? DT_OK
                       : DT_FAIL(DT_EINVAL, "%llu rows are given, and the round has %llu", (unsigned long long)n_rows,
                                 (unsigned long long)n);
}

static dt_status find_annotation(const dt_rollout *r, const char *name, uint32_t *k_p)
{
    for (uint32_t k = 0; k < r->d.n_annotations; k++) {
        if (strcmp(r->ports.annotation[k].name, name) == 0) {
            *k_p = k;
            return DT_OK;
        }
    }
    return DT_BREACH(DT_ENOTFOUND, "the rollout was created without an annotation %s", name);
}

static dt_status check_finite(const char *name, const float *rows, uint64_t n_rows, size_t columns)
{
    for (uint64_t i = 0; i < n_rows * columns; i++) {
        if (!isfinite(rows[i])) {
            return DT_FAIL(DT_EDIVERGED, "annotation %s, row %llu, column %llu is %g", name,
                           (unsigned long long)(i / columns), (unsigned long long)(i % columns), (double)rows[i]);
        }
    }
    return DT_OK;
}

dt_status dt_rollout_annotate(dt_rollout *r, const char *name, const float *rows, uint64_t n_rows)
{
    dt_buffer *b = r->all;
    uint32_t k = 0;
    DT_TRY(dt_name_given(name, "annotate"));
    DT_TRY(find_annotation(r, name, &k));
    DT_TRY(check_rows(r, n_rows));
    const size_t columns = b->annotation_columns[k], A = b->l->spec.n_agents;
    DT_TRY(check_finite(name, rows, n_rows, columns));
    dt_stage_discard_prefetched(r->stage); /* no reader while we write */
    dt_exchange_invalidate(&r->exchange);
    const size_t first = dt_buffer_slot(b, 0, 0) * A, end = first + (size_t)b->d.steps * b->d.instances * A;
    for (size_t at = first; at < end; at++) {
        if ((b->row[at] & DT_ROW_ACTS) != 0) {
            memcpy(b->annotation[k] + at * columns, rows, columns * sizeof(*rows));
            rows += columns;
        }
    }
    return DT_OK;
}

void dt_rollout_clear_annotations(dt_rollout *r)
{
    for (uint32_t k = 0; k < r->d.n_annotations; k++) {
        memset(r->all->annotation[k], 0, r->all->n_places * r->all->annotation_columns[k] * sizeof(float));
    }
}

dt_status dt_rollout_compute_returns(dt_rollout *r, const float *value, const float *next_value, double gamma,
                                     double lambda, float *out, uint64_t n_rows)
{
    dt_stage_restore_fp_mode(r->stage);
    if (!(gamma >= 0 && gamma <= 1) || !(lambda >= 0 && lambda <= 1)) {
        return DT_FAIL(DT_EINVAL, "returns with gamma = %g and lambda = %g; expected 0 to 1", gamma, lambda);
    }
    DT_TRY(check_rows(r, n_rows));
    dt_returns_estimate_from_values(&r->returns, r->all, value, next_value, gamma, lambda, out, n_rows);
    return DT_OK;
}
