/* SPDX-License-Identifier: Apache-2.0
 *
 * The roads of a store: five bytes that say how many scenes, maps, lanes, points and links there are, then the arrays
 * one after the other. What was accepted may be followed from any scene to any successor without a look at a bound.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "traffic/map/roads.h"
#include "traffic/store/store_roads.h"

#include <stdlib.h>
#include <string.h>

typedef struct input {
    const uint8_t *bytes;
    size_t n;
} input;

/* A block of its own of so many bytes, of the input, then of zeros. */
static void *take(input *in, size_t bytes)
{
    uint8_t *p = calloc(bytes > 0 ? bytes : 1, 1);
    const size_t n = bytes < in->n ? bytes : in->n;
    fuzz_hold(p != NULL);
    if (n > 0) {
        memcpy(p, in->bytes, n);
        in->bytes += n;
        in->n -= n;
    }
    return p;
}

static void forget(const dt_store *store) {}

static void follow(const dt_store_view *v)
{
    for (int64_t s = 0; s < v->n_scenes; s++) {
        fuzz_hold(v->scene_map[s] >= -1 && v->scene_map[s] < v->n_maps);
    }
    for (int64_t m = 0; m < v->n_maps; m++) {
        dt_roads copy;
        fuzz_hold(dt_roads_of_view(v, m, &copy) == DT_OK);
        fuzz_hold(copy.n_lanes == v->map_lane[m + 1] - v->map_lane[m] && copy.n_lanes > 0);
        fuzz_hold(copy.n_points == v->lane_point[v->map_lane[m + 1]] - v->lane_point[v->map_lane[m]]);
        for (int64_t i = 0; i < copy.n_links; i++) {
            fuzz_hold(copy.next[i] >= 0 && copy.next[i] < copy.n_lanes);
        }
        dt_roads_fini(&copy);
    }
    (void)dt_roads_digest(v, 0);
}

DT_FUZZ(roads)
{
    if (n < 5) {
        return 0;
    }
    input in = {bytes + 5, n - 5};
    const size_t scenes = bytes[0] % 4 + 1u, maps = bytes[1] % 4 + 1u, lanes = bytes[2] % 16, points = bytes[3] % 64,
                 links = bytes[4] % 32;
    char *name[5] = {"a", "b", "c", "d", "e"};
    void *block[12] = {take(&in, scenes * 4),  take(&in, (maps + 1) * 8), take(&in, (lanes + 1) * 8),
                       take(&in, points * 16), take(&in, points * 4),     take(&in, lanes * 4),
                       take(&in, lanes * 4),   take(&in, lanes * 8),      take(&in, (lanes + 1) * 8),
                       take(&in, links * 4),   take(&in, lanes * 4),      take(&in, lanes * 4)};
    const dt_store_view v = {.n_scenes = (int64_t)scenes,
                             .n_maps = (int64_t)maps,
                             .n_lanes = (int64_t)lanes,
                             .n_lane_points = (int64_t)points,
                             .n_lane_links = (int64_t)links,
                             .map = (const char *const *)name,
                             .scene_map = block[0],
                             .map_lane = block[1],
                             .lane_point = block[2],
                             .lane_xy = block[3],
                             .lane_width = block[4],
                             .lane_kind = block[5],
                             .lane_limit = block[6],
                             .lane_id = block[7],
                             .lane_next_ptr = block[8],
                             .lane_next = block[9],
                             .lane_left = block[10],
                             .lane_right = block[11]};
    fuzz_begin();
    if (dt_roads_check(&v, "input", forget, NULL) == DT_OK) {
        follow(&v);
        fuzz_accepted();
    } else {
        fuzz_hold(*dt_error_text() != '\0');
    }
    fuzz_end();
    for (size_t i = 0; i < sizeof(block) / sizeof(block[0]); i++) {
        free(block[i]);
    }
    return 0;
}
