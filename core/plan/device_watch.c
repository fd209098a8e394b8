/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plan/device_watch.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "engine/device/memory.h"

#include <math.h>

void dt_device_watch_begin(dt_device_watch *w, const dt_device_info *info, uint64_t planned, double every_s)
{
    *w = (dt_device_watch){.has_device = info != NULL, .every_s = every_s, .planned = planned};
    if (info != NULL && every_s > 0 && dt_nvml_open(NULL, info, &w->nvml) < 0) {
        dt_log(DT_LOG_WARN, "memory in use, utilisation and temperature of the GPU are not recorded: %s",
               dt_error_text());
        dt_error_clear();
        w->nvml = NULL;
    }
}

void dt_device_watch_update(dt_device_watch *w, double now_s, dt_metrics *m)
{
    if (!w->has_device) {
        return;
    }
    dt_metrics_add_scalar(m, "gpu/mem_allocated", (double)dt_device_allocated_bytes());
    dt_metrics_add_scalar(m, "gpu/mem_planned", (double)w->planned);
    if (w->nvml == NULL || now_s < w->next_s) {
        return;
    }
    enum { SHARE = 200 }; /* of the time at most a two-hundredth, whatever a look takes */
    dt_nvml_sample s;
    const double before = dt_clock_s();
    dt_nvml_read_sample(w->nvml, &s);
    w->next_s = now_s + fmax(w->every_s, SHARE * (dt_clock_s() - before));
    const struct {
        const char *name;
        double value;
    } gauge[] = {{"gpu/mem_reserved", s.reserved},
                 {"gpu/mem_used", s.used},
                 {"gpu/utilisation", s.utilisation},
                 {"gpu/temperature", s.temperature}};
    for (size_t i = 0; i < sizeof(gauge) / sizeof(gauge[0]); i++) {
        if (!isnan(gauge[i].value)) {
            dt_metrics_add_scalar(m, gauge[i].name, gauge[i].value);
        }
    }
}

void dt_device_watch_end(dt_device_watch *w)
{
    dt_nvml_close(w->nvml);
    *w = (dt_device_watch){0};
}
