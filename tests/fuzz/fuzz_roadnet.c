/* SPDX-License-Identifier: Apache-2.0
 *
 * A road network of CityFlow or the City Brain Challenge, and after a line "----" its demand: read, and written for
 * SUMO.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "traffic/roadnet/roadnet.h"

#include <math.h>
#include <string.h>

static dt_status write_all(roadnet *r, rn_demand *d, rn_text roads, rn_text flows, dt_str *out)
{
    DT_TRY(roadnet_read(r, d, roads, flows));
    DT_TRY(roadnet_finish(r));
    DT_TRY(roadnet_write_net(r, out));
    return d->path == NULL ? DT_OK : roadnet_write_routes(r, d, out);
}

DT_FUZZ(roadnet)
{
    fuzz_begin();
    bytes = fuzz_expand(bytes, n, &n);
    size_t at = 0;
    const char *roads = fuzz_text(bytes, n, &at), *flows = roads == NULL ? NULL : fuzz_text(bytes, n, &at);
    roadnet r = {.path = "roads"};
    rn_demand d = {.path = flows == NULL ? NULL : "flows"};
    dt_str out = {0};
    roads = roads == NULL ? "" : roads;
    const dt_status st =
        write_all(&r, &d, (rn_text){roads, strlen(roads)}, (rn_text){flows, flows == NULL ? 0 : strlen(flows)}, &out);
    if (st != DT_OK) {
        fuzz_hold(*dt_error_text() != '\0');
    } else {
        fuzz_accepted();
        fuzz_touch_text(dt_str_text(&out));
        for (int32_t k = 0; k < r.roads.n; k++) {
            fuzz_hold(isfinite(RN_ROAD(&r, k)->length) && RN_ROAD(&r, k)->length > 0);
        }
        for (int32_t k = 0; k < r.links.n; k++) {
            fuzz_hold(isfinite(RN_LINK(&r, k)->length) && RN_LINK(&r, k)->length > 0);
        }
    }
    dt_str_fini(&out);
    roadnet_fini(&r);
    rn_demand_fini(&d);
    fuzz_end();
    return 0;
}
