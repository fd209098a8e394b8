/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run has chosen for data.batch = "auto", and where a choice is written; see batch_auto.h.
 */
#include <config.h>

#include "run/batch_auto.h"

#include "base/err.h"

#include <stdio.h>

dt_status dt_batch_set(dt_session *s, int64_t phase, int64_t batch, const char *by)
{
    char path[48], text[24];
    snprintf(path, sizeof(path), "phases.%lld.data.batch", (long long)phase);
    snprintf(text, sizeof(text), "%lld", (long long)batch);
    DT_TRY(dt_config_set_option(s->config, path, text, by));
    return dt_config_sections(s->config, phase, &s->opts[phase]);
}

static dt_status restore_phase(dt_session *s, int64_t phase, const dt_config *run)
{
    int64_t batch = 0;
    const char *text = NULL;
    dt_origin origin;
    if (s->opts[phase].data.batch != DT_BATCH_AUTO || phase >= dt_config_n_phases(run) ||
        dt_config_get(run, phase, "data.batch", &text, &origin) != DT_OK || !dt_parse_whole(text, &batch)) {
        dt_error_clear();
        return DT_OK;
    }
    return dt_batch_set(s, phase, batch, "auto, as the run began");
}

dt_status dt_batch_restore(dt_session *s, const char *recorded)
{
    dt_config *run = NULL;
    bool is_any = false;
    for (int64_t i = 0; i < s->n_phases; i++) {
        is_any = is_any || s->opts[i].data.batch == DT_BATCH_AUTO;
    }
    if (!is_any || recorded == NULL) {
        return DT_OK;
    }
    DT_TRY(dt_config_create(&run));
    dt_status st = dt_config_read_file(run, DT_FROM_RUN, recorded);
    for (int64_t i = 0; i < s->n_phases && st == DT_OK; i++) {
        st = restore_phase(s, i, run);
    }
    dt_config_destroy(run);
    return st;
}
