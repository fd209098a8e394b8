/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole store. The first byte says which one of store.h is changed, the second one which windows are read of it, and
 * then there are steps, each of them a byte that says what is done, one that says to which file, and what it needs:
 *   0  bytes of a file, as it lies: where (two bytes, modulo its length), a byte: how many up to 8, and these
 *   1  one value of an array: which (two bytes), and a byte: a small number, or one of those that are special
 *   2  two values of an array change places: which (two bytes each)
 *   3  a number in store.json: which of them (one byte for the file's), and a byte: what it becomes
 *   4  a count: which (the file's byte), and a byte: how many more or fewer. Arrays of that count become as long, their
 *      headers and store.json say so, and what adds up to it does again: else every such change would end at the first
 *      look at lengths
 *   5  a file is what is left of the input
 * What is accepted is walked by all that reads stores: every index that a reader trusts lies where it should, packed
 * arrays give what the view shows, and windows are made of it.
 */
#include <config.h>

#include "fuzz/fuzz.h"
#include "fuzz/store.h"

#include "base/err.h"
#include "base/log.h"

DT_FUZZ(store)
{
    store_files f;
    dt_store *s = NULL;
    if (n < 2) {
        return 0;
    }
    dt_log_level_set(DT_LOG_ERROR);
    store_copy(store_base(bytes[0] % STORE_BASES), &f);
    store_edit(&f, bytes + 2, n - 2);
    fuzz_begin();
    for (uint32_t i = 0; i < f.n; i++) {
        fuzz_file(f.file[i].name, f.file[i].bytes, f.file[i].n);
    }
    if (dt_store_open(STORE_PATH, &s) == DT_OK) {
        const double rate = dt_store_view_of(s)->frame_rate_hz;
        const int is_long = fuzz_is_chosen(bytes, n);
        store_walk(s);
        if (is_long) {
            store_describe(s);
        }
        dt_store_close(s);
        if (is_long) {
            store_windows(rate, bytes[1]);
        }
        fuzz_accepted();
    } else {
        fuzz_hold(*dt_error_text() != '\0');
        fuzz_hold(n > 2); /* what nothing was changed in is right */
    }
    fuzz_end();
    store_free(&f);
    return 0;
}
