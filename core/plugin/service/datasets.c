/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.datasets/1": the data sets that sources have open.
 */
#include <config.h>

#include "plugin/service/stage.h"

#include "base/err.h"
#include "base/name.h"
#include "dtrain/svc/datasets.h"

static dt_status record_dataset_opened(const dt_host *h, const dt_dataset *d)
{
    dt_stage *s = dt_stage_of(h);
    enum { MOST_PATH = 4095 };
    DT_TRY(dt_text_check(DT_EPLUGIN, MOST_PATH, d->path, "the path of an open data set"));
    if (s->n_datasets == DT_STAGE_MAX_DATASETS) {
        return DT_FAIL(DT_EPLUGIN, "more than %d data sets are open", DT_STAGE_MAX_DATASETS);
    }
    s->dataset[s->n_datasets++] = *d;
    return DT_OK;
}

static void record_dataset_closed(const dt_host *h, const void *self)
{
    dt_stage *s = dt_stage_of(h);
    for (uint32_t i = 0; i < s->n_datasets; i++) {
        if (s->dataset[i].self == self) {
            s->dataset[i] = s->dataset[--s->n_datasets];
            return;
        }
    }
}

const dt_datasets_api dt_datasets_service = {
    .struct_size = sizeof(dt_datasets_api), .opened = record_dataset_opened, .closed = record_dataset_closed};
