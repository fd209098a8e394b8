/* SPDX-License-Identifier: Apache-2.0
 *
 * One file of a checkpoint as it is written: chunk by chunk, with the checksums that its manifest gives for it. Used by
 * the saver only; see checkpoint.h. Threads: each has its own.
 */
#ifndef DTRAIN_CORE_STATE_CHECKPOINT_SEALED_H
#define DTRAIN_CORE_STATE_CHECKPOINT_SEALED_H

#include "base/hash.h"
#include "state/checkpoint/manifest.h"

typedef struct dt_sealed {
    uint8_t *chunk; /* [DT_MANIFEST_CHUNK] */
    size_t fill;
    int fd;
    dt_manifest_file *file;
    dt_sha256 sha;
    dt_str path;
} dt_sealed;

dt_status dt_sealed_init(dt_sealed *s) DT_NODISCARD; /* DT_ENOMEM */
void dt_sealed_fini(dt_sealed *s);

/* Whole files, flushed; what is in them is recorded in *out, which is overwritten. Errors: DT_EIO, DT_EINVAL (there is
 * such a file), DT_ENOMEM. */
dt_status dt_sealed_write_bytes(dt_sealed *s, const char *folder, const char *name, const void *p, size_t bytes,
                                dt_manifest_file *out) DT_NODISCARD;
dt_status dt_sealed_write_tensors(dt_sealed *s, const char *folder, const char *name, const dt_ckpt_tensor *const *t,
                                  uint32_t n, dt_manifest_file *out) DT_NODISCARD;
dt_status dt_sealed_write_blob(dt_sealed *s, const char *folder, const char *name, const dt_ckpt_blob *b,
                               dt_manifest_file *out) DT_NODISCARD;
/* Error too: DT_EINVAL (more or fewer bytes than it said). */
dt_status dt_sealed_write_part(dt_sealed *s, const char *folder, const char *name, const dt_ckpt_part *p,
                               dt_manifest_file *out) DT_NODISCARD;

/* Bytes of a tensor's values; false when they cannot be counted. */
bool dt_ckpt_tensor_bytes(const dt_ckpt_tensor *t, size_t *out_p);

#endif
