/* SPDX-License-Identifier: Apache-2.0
 *
 * An array of a store in blocks. Of what was accepted every block unpacks to its rows, or is refused in words; values
 * are made of what lies in the file or in the room for a block.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "traffic/store/blocks.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKS_MOST = 8 };

static void look(const dt_blocks *b, unsigned char *out, unsigned char *room, float *values)
{
    for (int64_t i = 0; i < b->n_blocks && i < BLOCKS_MOST; i++) {
        const int64_t n = dt_blocks_rows_of(b, i);
        const void *kept = NULL;
        fuzz_hold(n >= 1 && n <= b->block_rows && (size_t)n * b->row_bytes <= DT_BLOCKS_BYTES_MAX);
        if (dt_blocks_unpack(b, "input", i, out, room, &kept) == DT_OK) {
            dt_blocks_values(b, kept, n, values);
            fuzz_touch(values, (size_t)n * b->width * sizeof(*values));
        } else {
            fuzz_hold(*dt_error_text() != '\0');
        }
    }
}

DT_FUZZ(blocks)
{
    dt_blocks b = {.map = NULL};
    uint8_t *file = malloc(n > 0 ? n : 1);
    unsigned char *out = malloc(DT_BLOCKS_BYTES_MAX), *room = malloc(DT_BLOCKS_BYTES_MAX);
    float *values = malloc(4 * DT_BLOCKS_BYTES_MAX);
    fuzz_hold(file != NULL && out != NULL && room != NULL && values != NULL);
    memcpy(file, bytes, n);
    fuzz_begin();
    if (dt_blocks_open_bytes(file, n, "input", &b) == DT_OK) {
        look(&b, out, room, values);
        fuzz_accepted();
    } else {
        fuzz_hold(*dt_error_text() != '\0');
    }
    fuzz_end();
    free(file);
    free(out);
    free(room);
    free(values);
    return 0;
}
