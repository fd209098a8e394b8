/* SPDX-License-Identifier: Apache-2.0
 *
 * Recordings as JSON chunks: metadata.json, then a chunk, with a line "----" between them. The chunk may be
 * one that fuzz_expand makes longer.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "traffic/import/import.h"

#include <string.h>

DT_FUZZ(chunks)
{
    size_t at = 0, n_chunk = 0;
    fuzz_begin();
    const char *metadata = fuzz_text(bytes, n, &at);
    const uint8_t *rest = at < n ? fuzz_expand(bytes + at, n - at, &n_chunk) : NULL;
    const char *chunk = rest != NULL && rest != bytes + at ? (const char *)rest : fuzz_text(bytes, n, &at);
    const dt_status st = dt_chunks_check(metadata, strlen(metadata), chunk, chunk != NULL ? strlen(chunk) : 0);
    fuzz_hold(st == DT_OK || *dt_error_text() != '\0');
    if (st == DT_OK) {
        fuzz_accepted();
    }
    fuzz_end();
    return 0;
}
