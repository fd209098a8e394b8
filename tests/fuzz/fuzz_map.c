/* SPDX-License-Identifier: Apache-2.0
 *
 * A map of roads of any format, plain or packed: read as an import reads it.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "traffic/map/map_reader.h"

DT_FUZZ(map)
{
    static const dt_map_origin none = {.is_given = false},
                               grid = {.is_given = true, .is_utm = true, .at = {3e5, 5.6e6}};
    fuzz_begin();
    bytes = fuzz_expand(bytes, n, &n);
    if (dt_map_check(bytes, n, "input", &none) != DT_OK) {
        fuzz_hold(*dt_error_text() != '\0');
    } else {
        fuzz_accepted();
        (void)!dt_map_check(bytes, n, "input", &grid);
    }
    fuzz_end();
    return 0;
}
