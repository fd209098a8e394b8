/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenarios of CommonRoad, plain or packed: read as an import reads them.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "traffic/import/import.h"

DT_FUZZ(commonroad)
{
    static const dt_import_options plain = {0}, sited = {.site = "here"};
    fuzz_begin();
    bytes = fuzz_expand(bytes, n, &n);
    if (dt_commonroad_check(bytes, n, "input", &plain) != DT_OK) {
        fuzz_hold(*dt_error_text() != '\0');
        (void)!dt_commonroad_check(bytes, n, "input", &sited);
    } else {
        fuzz_accepted();
    }
    fuzz_end();
    return 0;
}
