/* SPDX-License-Identifier: Apache-2.0
 *
 * See event_files.h.
 */
#include <config.h>

#include "host/event_files.h"

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "metrics/events.h"

void dt_event_files_begin(const dt_event_files_desc *d, dt_metrics *m)
{
    dt_events *e = NULL;
    dt_str dir = {0};
    dt_str config = {0};
    dt_str_addf(&dir, "%s/tensorboard/%lld-%s", d->run_dir, (long long)d->index + 1, d->phase);
    dt_status st = dt_str_status(&dir);
    if (st == DT_OK) {
        st = dt_events_open(dt_str_text(&dir), d->first_step, &e);
    }
    if (st == DT_OK) {
        st = dt_config_write(d->config, &config);
    }
    if (st == DT_OK) {
        st = dt_events_text(e, d->first_step, "configuration", dt_str_text(&config));
    }
    if (st < 0) {
        dt_log(DT_LOG_WARN, "no files for TensorBoard: %s", dt_error_text());
        dt_error_clear();
        dt_events_close(e);
        e = NULL;
    }
    dt_metrics_events_set(m, e);
    dt_str_fini(&config);
    dt_str_fini(&dir);
}
