/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/unit.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct rule {
    const char *text, *unit;
} rule;

static const rule whole[] = {{"charts/SPS", "samples/s"},
                             {"charts/env_steps_per_s", "steps/s"},
                             {"charts/learn_samples_per_s", "samples/s"},
                             {"charts/episodic_length", "steps"},
                             {"eval/length", "steps"},
                             {"env_steps", "steps"},
                             {"ranks/sent", "bytes"},
                             {"gpu/utilisation", "%"},
                             {"gpu/temperature", "\xc2\xb0"
                                                 "C"}};
/* The longer endings first. */
static const rule ends[] = {{"_per_s", "1/s"}, {"_mps2", "m/s\xc2\xb2"}, {"_mps", "m/s"}, {"_ms", "ms"}, {"_s", "s"},
                            {"_m", "m"},       {"_kmh", "km/h"}};

/* Bytes of the name without the suffix of the statistic: "/mean", "/std", "/5". */
static size_t bytes_of_base_name(const char *name)
{
    size_t n = strlen(name);
    const char *slash = strrchr(name, '/');
    if (slash == NULL) {
        return n;
    }
    const size_t digits = strspn(slash + 1, "0123456789");
    const bool is_number = digits > 0 && slash[1 + digits] == '\0';
    return is_number || strcmp(slash, "/mean") == 0 || strcmp(slash, "/std") == 0 ? (size_t)(slash - name) : n;
}

const char *dt_unit_of(const char *name)
{
    const size_t n = bytes_of_base_name(name);
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        if (n == strlen(whole[i].text) && strncmp(name, whole[i].text, n) == 0) {
            return whole[i].unit;
        }
    }
    if (strncmp(name, "time/", 5) == 0) {
        return "s";
    }
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const size_t m = strlen(ends[i].text);
        if (n > m && strncmp(name + n - m, ends[i].text, m) == 0) {
            return ends[i].unit;
        }
    }
    return "";
}
