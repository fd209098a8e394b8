/* SPDX-License-Identifier: Apache-2.0
 *
 * Floating-car output of SUMO, plain or packed: read as an import reads it.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "traffic/import/import.h"

DT_FUZZ(fcd)
{
    static const dt_import_options plain = {0}, rated = {.frame_rate_hz = 10};
    fuzz_begin();
    bytes = fuzz_expand(bytes, n, &n);
    if (dt_fcd_check(bytes, n, "input", &plain) != DT_OK) {
        fuzz_hold(*dt_error_text() != '\0');
        (void)!dt_fcd_check(bytes, n, "input", &rated);
    } else {
        fuzz_accepted();
    }
    fuzz_end();
    return 0;
}
