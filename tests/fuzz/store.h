/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole stores for fuzz_store.c: some that are right, what an input changes in one, and what readers do with it.
 */
#ifndef DTRAIN_TESTS_FUZZ_STORE_H
#define DTRAIN_TESTS_FUZZ_STORE_H

#include "traffic/store/store.h"

#include <stddef.h>
#include <stdint.h>

#define STORE_PATH "fuzz.store"

enum { STORE_FILES_MOST = 40, STORE_NAME_BYTES = 48 };

typedef struct store_file {
    char name[STORE_NAME_BYTES]; /* as it is opened: STORE_PATH/pose.npy */
    uint8_t *bytes;              /* [n] malloc'd */
    size_t n;
} store_file;

typedef struct store_files { /* in the order of their names */
    store_file file[STORE_FILES_MOST];
    uint32_t n;
} store_files;

/* ---- store_base.c ------------------------------------------------------------------------------------------------ */

/* Plain with roads and smoothed accelerations; features in f16; in i8; f32 packed by zstd, and i8 (where zstd is built
 * in, else as the two before); regions cut of a plain one. */
enum { STORE_PLAIN, STORE_F16, STORE_I8, STORE_ZSTD, STORE_I8_ZSTD, STORE_REGIONS, STORE_BASES };

/* A store that is right, which an import wrote; made once, and it stays. */
const store_files *store_base(uint32_t which);
void store_copy(const store_files *from, store_files *to);
void store_free(store_files *f);

/* ---- store_edit.c ------------------------------------------------------------------------------------------------ */

/* What the bytes say is changed, see fuzz_store.c. */
void store_edit(store_files *f, const uint8_t *bytes, size_t n);

/* ---- store_walk.c ------------------------------------------------------------------------------------------------ */

/* All that may be asked of an open store, and what must hold of it. */
void store_walk(const dt_store *s);
/* What is reported of it: positions on lanes, the survey, the inspection as text and as JSON. */
void store_describe(const dt_store *s);

/* ---- store_windows.c --------------------------------------------------------------------------------------------- */

/* The store that is there, read as phase 1 does: windows of data_trajectory, of options that the byte says. */
void store_windows(double frame_rate_hz, uint8_t options);

#endif
