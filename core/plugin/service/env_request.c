/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker is sent; see env_worker.h. A request is texts, each ended by 0: plugin file ("" when it is linked in),
 * id, seed, phase; then key and value of each option.
 */
#include <config.h>

#include "plugin/service/env_worker.h"

#include "base/err.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

static void append_text(dt_str *out, const char *s)
{
    dt_str_add_n(out, s, strlen(s) + 1);
}

dt_status dt_env_write_request(const dt_config *config, uint64_t seed, int64_t phase, const dt_loaded *comp,
                               const dt_setting *overrides, uint32_t n, dt_str *out)
{
    const dt_component *c = &comp->desc;
    char number[32], key[160];
    append_text(out, comp->plugin->path[0] == '/' ? comp->plugin->path : "");
    append_text(out, c->id);
    snprintf(number, sizeof(number), "%llu", (unsigned long long)seed);
    append_text(out, number);
    snprintf(number, sizeof(number), "%lld", (long long)(phase > 0 ? phase : 0)); /* of its random numbers */
    append_text(out, number);
    for (const dt_option *o = c->options; o != NULL && o->name != NULL; o++) {
        const char *value = NULL;
        dt_origin origin;
        snprintf(key, sizeof(key), "%s.%s", c->id, o->name);
        if (dt_config_get(config, phase, key, &value, &origin) != DT_OK) {
            value = NULL;
        }
        for (uint32_t i = 0; i < n; i++) {
            value = strcmp(overrides[i].key, o->name) == 0 ? overrides[i].value : value;
        }
        if (value != NULL) {
            append_text(out, key);
            append_text(out, value);
        }
    }
    dt_error_clear();
    return dt_str_status(out);
}
