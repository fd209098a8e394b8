/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/env/described.h"

#include <string.h>

void dt_describe_columns(const dt_column *c, uint32_t n, const char *port, dt_json_out *out)
{
    dt_json_arr(out, "columns");
    for (uint32_t i = 0; i < n; i++) {
        if (port != NULL && strcmp(c[i].port, port) != 0) {
            continue;
        }
        dt_json_obj(out, NULL);
        dt_json_str(out, "port", c[i].port);
        dt_json_i64(out, "first", c[i].first);
        dt_json_i64(out, "n", c[i].n);
        dt_json_i64(out, "stride", c[i].stride);
        dt_json_str(out, "name", c[i].name);
        dt_json_str(out, "unit", c[i].unit);
        dt_json_f64(out, "low", c[i].low); /* null when open */
        dt_json_f64(out, "high", c[i].high);
        dt_json_str(out, "meaning", c[i].meaning);
        dt_json_end(out, '}');
    }
    dt_json_end(out, ']');
}

uint32_t dt_count_choices(const dt_env_spec *s)
{
    uint32_t n = 0;
    for (uint32_t h = 0; h < s->n_heads; h++) {
        n += (uint32_t)s->choices[h];
    }
    return n;
}

void dt_describe_places(const dt_env_spec *s, dt_json_out *out)
{
    const uint32_t n_choices = s->choices_shown != NULL ? dt_count_choices(s) : 0;
    if (s->places == NULL) {
        return;
    }
    dt_json_arr(out, "places");
    for (uint32_t k = 0; k < s->n_agents; k++) {
        dt_json_obj(out, NULL);
        dt_json_str(out, "name", s->places[k]);
        dt_json_arr(out, "choices");
        for (uint32_t c = 0; c < n_choices; c++) {
            dt_json_str(out, NULL, s->choices_shown[(size_t)k * n_choices + c]);
        }
        dt_json_end(out, ']');
        dt_json_end(out, '}');
    }
    dt_json_end(out, ']');
}
