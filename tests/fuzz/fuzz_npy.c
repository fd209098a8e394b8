/* SPDX-License-Identifier: Apache-2.0
 *
 * An array of a store: an npy file, behind it one byte that says which type and width are asked for. What was accepted
 * lies inside the file, aligned, every value of it.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "traffic/store/npy.h"
#include "engine/tensor/dtype.h"

#include <stdlib.h>
#include <string.h>

DT_FUZZ(npy)
{
    static const uint32_t dtypes[] = {DT_F32, DT_F64, DT_I32, DT_I64, DT_U8};
    static const int64_t widths[] = {0, 1, 3, 9};
    dt_npy a = {0};
    if (n == 0) {
        return 0;
    }
    const uint8_t kind = bytes[--n];
    const uint32_t dtype = dtypes[kind % 5];
    fuzz_begin();
    bytes = fuzz_expand(bytes, n, &n);
    uint8_t *file = malloc(n > 0 ? n : 1);
    fuzz_hold(file != NULL);
    memcpy(file, bytes, n);
    if (dt_npy_open_bytes(file, n, "input", dtype, widths[kind / 5 % 4], &a) == DT_OK) {
        const size_t size = dt_dtype_bytes(dtype);
        const uint8_t *data = a.data;
        fuzz_hold(a.rows >= 0 && a.width == widths[kind / 5 % 4] && a.dtype == dtype);
        fuzz_hold(a.rows == 0 || (data >= file && data <= file + n && (uintptr_t)data % size == 0));
        fuzz_touch(data, (size_t)a.rows * (size_t)(a.width == 0 ? 1 : a.width) * size);
        fuzz_accepted();
    } else {
        fuzz_hold(*dt_error_text() != '\0');
    }
    fuzz_end();
    free(file);
    return 0;
}
