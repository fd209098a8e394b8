/* SPDX-License-Identifier: Apache-2.0
 *
 * See process_scene.h. An answer is a head, then rows as the extension has them; both sides are this program.
 */
#include <config.h>

#include "rl/env/process_scene.h"

#include "base/err.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

enum { ASK_ROADS = 1, ASK_LOOK };

typedef struct head {
    double time_s, delay_s;
    uint32_t n, n_signals; /* points, or vehicles; the second kind of rows */
} head;

/* ---- the worker -------------------------------------------------------------------------------------------------- */

static void write_bytes(dt_str *out, const void *rows, size_t bytes)
{
    if (bytes > 0) {
        dt_str_add_n(out, rows, bytes);
    }
}

static void write_roads(const dt_scene_api *api, const void *self, dt_str *out)
{
    dt_scene_roads r = {.struct_size = sizeof(r)};
    api->roads(self, &r);
    r.cap = r.n;
    r.point = dt_alloc_n(r.cap + 1, sizeof(*r.point));
    if (r.point != NULL) {
        api->roads(self, &r);
        const head h = {.n = r.n < r.cap ? r.n : r.cap};
        write_bytes(out, &h, sizeof(h));
        write_bytes(out, r.point, h.n * sizeof(*r.point));
    }
    dt_free(r.point);
}

static void write_scene(const dt_scene_api *api, const void *self, dt_str *out)
{
    dt_scene s = {.struct_size = sizeof(s), .delay_s = NAN};
    api->capture(self, &s);
    s.cap_vehicles = s.n_vehicles;
    s.cap_signals = s.n_signals;
    s.vehicle = dt_alloc_n(s.cap_vehicles + 1, sizeof(*s.vehicle));
    s.signal = dt_alloc_n(s.cap_signals + 1, sizeof(*s.signal));
    if (s.vehicle != NULL && s.signal != NULL) {
        api->capture(self, &s);
        const head h = {.time_s = s.time_s,
                        .delay_s = s.delay_s,
                        .n = s.n_vehicles < s.cap_vehicles ? s.n_vehicles : s.cap_vehicles,
                        .n_signals = s.n_signals < s.cap_signals ? s.n_signals : s.cap_signals};
        write_bytes(out, &h, sizeof(h));
        write_bytes(out, s.vehicle, h.n * sizeof(*s.vehicle));
        write_bytes(out, s.signal, h.n_signals * sizeof(*s.signal));
    }
    dt_free(s.vehicle);
    dt_free(s.signal);
}

void dt_process_scene_write(const dt_scene_api *api, const void *self, uint32_t what, dt_str *out)
{
    if (what == ASK_ROADS) {
        write_roads(api, self, out);
    } else if (what == ASK_LOOK) {
        write_scene(api, self, out);
    }
}

/* ---- the host ---------------------------------------------------------------------------------------------------- */

/* NULL: there is nothing to see. */
static char *query_worker(const void *self, uint32_t what, size_t row, size_t signal_row, head *h)
{
    char *answer = NULL;
    uint64_t bytes = 0;
    if (dt_process_query((dt_process_instance *)(uintptr_t)self, what, &answer, &bytes) < 0) {
        dt_error_clear();
        return NULL;
    }
    if (bytes >= sizeof(*h)) {
        memcpy(h, answer, sizeof(*h));
    }
    if (bytes < sizeof(*h) || bytes != sizeof(*h) + h->n * row + h->n_signals * signal_row) {
        dt_free(answer);
        return NULL;
    }
    return answer;
}

static void read_bytes(void *to, uint32_t cap, const char *from, uint32_t n, size_t row)
{
    const size_t rows = n < cap ? n : cap;
    if (rows > 0) {
        memcpy(to, from, rows * row);
    }
}

static void read_roads(const void *self, dt_scene_roads *out)
{
    head h = {.n = 0};
    char *answer = query_worker(self, ASK_ROADS, sizeof(*out->point), 0, &h);
    out->n = 0;
    if (answer != NULL) {
        out->n = h.n;
        read_bytes(out->point, out->cap, answer + sizeof(h), h.n, sizeof(*out->point));
    }
    dt_free(answer);
}

static void read_scene(const void *self, dt_scene *out)
{
    head h = {.n = 0};
    char *answer = query_worker(self, ASK_LOOK, sizeof(*out->vehicle), sizeof(*out->signal), &h);
    out->n_vehicles = out->n_signals = 0;
    if (answer != NULL) {
        const char *at = answer + sizeof(h);
        out->time_s = h.time_s;
        out->delay_s = h.delay_s;
        out->n_vehicles = h.n;
        out->n_signals = h.n_signals;
        read_bytes(out->vehicle, out->cap_vehicles, at, h.n, sizeof(*out->vehicle));
        read_bytes(out->signal, out->cap_signals, at + h.n * sizeof(*out->vehicle), h.n_signals, sizeof(*out->signal));
    }
    dt_free(answer);
}

const dt_scene_api dt_process_scene = {.struct_size = sizeof(dt_scene_api), .roads = read_roads, .capture = read_scene};
