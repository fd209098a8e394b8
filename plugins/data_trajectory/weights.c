/* SPDX-License-Identifier: Apache-2.0 */
#include "weights.h"
#include "region.h"
#include "dtrain/helpers.h"

#include <stdbool.h>

/* Risk states 1 and 2 of the store: danger comes, or is there. */
static bool is_risky(const dt_store_view *v, int64_t frame)
{
    for (int64_t r = v->frame_row[frame]; r < v->frame_row[frame + 1]; r++) {
        if (region_has(v, r) && (v->risk[r] == 1 || v->risk[r] == 2)) {
            return true;
        }
    }
    return false;
}

static int64_t sample_group(const dt_store_view *v, uint32_t by, const weights_sample *s)
{
    switch (by) {
    case WEIGHTS_SITE:
        return v->scene_site[s->scene];
    case WEIGHTS_SCENE:
        return s->scene;
    case WEIGHTS_RISK:
        return is_risky(v, s->anchor);
    default:
        return 0;
    }
}

dt_status weights_of(const dt_host *h, const dt_store_view *v, uint32_t by, const weights_sample *s, uint64_t n,
                     double *out)
{
    const uint64_t kinds = by == WEIGHTS_SITE ? v->n_sites : by == WEIGHTS_SCENE ? (uint64_t)v->n_scenes : 2;
    uint64_t *of_kind = h->alloc(h, kinds * sizeof(*of_kind));
    if (of_kind == NULL) {
        return DT_FAIL_H(h, DT_ENOMEM, "no memory for %llu kinds of samples", (unsigned long long)kinds);
    }
    for (uint64_t k = 0; k < kinds; k++) {
        of_kind[k] = 0;
    }
    for (uint64_t i = 0; i < n; i++) {
        of_kind[sample_group(v, by, &s[i])]++;
    }
    for (uint64_t i = 0; i < n; i++) {
        out[i] = 1.0 / (double)of_kind[sample_group(v, by, &s[i])];
    }
    h->release(h, of_kind);
    return DT_OK;
}
