/* SPDX-License-Identifier: Apache-2.0
 *
 * MANIFEST.json of a checkpoint as a struct, and back. Used by the saver and the loader only; see checkpoint.h.
 */
#ifndef DTRAIN_CORE_STATE_CHECKPOINT_MANIFEST_H
#define DTRAIN_CORE_STATE_CHECKPOINT_MANIFEST_H

#include "state/checkpoint/checkpoint.h"

enum {
    DT_MANIFEST_VERSION = 1,
    DT_MANIFEST_CHUNK = 1024 * 1024,          /* bytes of a file under one CRC */
    DT_MANIFEST_MAX_BYTES = 16 * 1024 * 1024, /* a chunk takes 11 bytes of it: enough for files of a terabyte */
    DT_MANIFEST_MAX_FILES = DT_CKPT_MAX_PLUGINS + 2 * DT_CKPT_MAX_SHARDS + 8
};

typedef struct dt_manifest_file {
    char name[128]; /* plain name inside the folder */
    uint64_t bytes;
    char sha256[65];
    uint32_t *crc; /* [n_crc], one per chunk */
    uint32_t n_crc, cap_crc;
} dt_manifest_file;

typedef struct dt_manifest {
    dt_ckpt_info info; /* path, bytes, valid, why are not in the text */
    dt_manifest_file file[DT_MANIFEST_MAX_FILES];
    uint32_t n_files;
} dt_manifest;

void dt_manifest_fini(dt_manifest *m);
/* DT_ENOMEM. */
dt_status dt_manifest_file_add_crc(dt_manifest_file *f, uint32_t crc) DT_NODISCARD;
void dt_manifest_print(const dt_manifest *m, dt_str *out);
/* Into a zeroed m. Errors: DT_EDATA with name, line and column; DT_ENOMEM. */
dt_status dt_manifest_parse(const char *text, size_t bytes, const char *name, dt_manifest *m) DT_NODISCARD;
const dt_manifest_file *dt_manifest_find(const dt_manifest *m, const char *name);

#endif
