/* SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"

enum { MOTION = 6, MOTION_SPEED = 4, MOTION_ACCEL = 5, AXES = 2 };

dt_status batch_open(const prediction *p, const dt_train_api *train, const dt_rows *r, scene_batch *z)
{
    const struct {
        const char *name;
        const void **to;
    } part[] = {{"motion", (const void **)&z->motion},
                {"target", (const void **)&z->target},
                {"future", (const void **)&z->future},
                {"spread", (const void **)&z->spread},
                {"risk", (const void **)&z->risk},
                {"seq_row", (const void **)&z->seq_row},
                {"risk_state", (const void **)&z->risk_state},
                {"complete", (const void **)&z->complete}};
    *z = (scene_batch){.K = 1};
    int64_t dim[DT_MAX_DIMS] = {0};
    uint32_t rank = 0;
    for (uint32_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
        if (part[i].to == (const void **)&z->risk && p->perception == NULL) {
            continue;
        }
        *part[i].to = train->rows(r, part[i].name, dim, &rank);
        if (*part[i].to == NULL) {
            return DT_FAIL_H(p->h, DT_EPLUGIN, "evaluation has no values named %s", part[i].name);
        }
    }
    z->S = dim[0]; /* of complete, the last one */
    z->site = train->rows(r, "site", dim, &rank);
    z->sample_of_seq = train->rows(r, "sample_of_seq", dim, &rank);
    if (p->K > 0) {
        z->probability = train->rows(r, "probability", dim, &rank);
        z->spreads = train->rows(r, "spreads", dim, &rank);
        z->futures = train->rows(r, "futures", dim, &rank);
        z->K = dim[1];
        if (z->futures == NULL || z->spreads == NULL || z->probability == NULL) {
            return DT_FAIL_H(p->h, DT_EPLUGIN, "evaluation has no values named futures, spreads or probability");
        }
    }
    return DT_OK;
}

void batch_window(const prediction *p, const scene_batch *z, int64_t v, metrics_window *w)
{
    const int64_t at = v * p->F * AXES;
    const float *now = z->motion + ((p->T - 1) * z->S + v) * MOTION;
    *w = (metrics_window){.target = z->target + at,
                          .future = z->future + at,
                          .spread = z->spread + at,
                          .futures = z->futures != NULL ? z->futures + z->K * at : NULL,
                          .spreads = z->futures != NULL ? z->spreads + z->K * at : NULL,
                          .probability = z->futures != NULL ? z->probability + z->K * v : NULL,
                          .K = z->K,
                          .speed = now[MOTION_SPEED],
                          .acceleration = now[MOTION_ACCEL]};
}
