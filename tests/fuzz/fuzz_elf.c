/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that calls itself a plugin, before the dynamic loader sees it: no byte outside is read, whatever its tables
 * say.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "plugin/loader/elf.h"

DT_FUZZ(elf)
{
    fuzz_begin();
    if (dt_elf_check(bytes, n) == DT_OK) {
        fuzz_accepted();
    } else {
        fuzz_hold(*dt_error_text() != '\0');
    }
    fuzz_end();
    return 0;
}
