/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types. See dtype.h.
 */
#include <config.h>

#include "engine/tensor/dtype.h"

#include <string.h>

static const struct {
    uint32_t id;
    const char *name;
    size_t bytes;
} rows[] = {
#define DT_DTYPE(ID, name, bytes) {DT_##ID, #name, bytes},
#include "engine/tensor/dtypes.def"
#undef DT_DTYPE
};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

size_t dt_dtype_bytes(uint32_t dtype)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        if (rows[i].id == dtype) {
            return rows[i].bytes;
        }
    }
    return 0;
}

const char *dt_dtype_name(uint32_t dtype)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        if (rows[i].id == dtype) {
            return rows[i].name;
        }
    }
    return "?";
}

uint32_t dt_dtype_find(const char *name, size_t n)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strlen(rows[i].name) == n && memcmp(rows[i].name, name, n) == 0) {
            return rows[i].id;
        }
    }
    return 0;
}
