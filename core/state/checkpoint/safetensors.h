/* SPDX-License-Identifier: Apache-2.0
 *
 * The safetensors file format (huggingface/safetensors, README, "Format"): u64 length N, little endian; N bytes of JSON
 * header; the tensors' bytes. A strict reader over a read-only map, and a deterministic writer.
 *
 * The reader checks the whole header before any tensor is visible: length at most 100,000,000 and inside the file; an
 * object, padded with spaces at most; every entry exactly dtype, shape, data_offsets; no duplicate names; known dtypes;
 * sizes by overflow-checked products; tensors without holes or overlaps from the first to the last byte of the file.
 * __metadata__ maps text to text. Limits of ours: 1,000,000 tensors, 8 dimensions, names of 4096 bytes.
 * The format has no checksum: checkpoint.h adds one for files of a checkpoint, and write_sealed puts one into the
 * metadata of a file on its own. Threads: [main] to open, [any] to read.
 */
#ifndef DTRAIN_CORE_STATE_CHECKPOINT_SAFETENSORS_H
#define DTRAIN_CORE_STATE_CHECKPOINT_SAFETENSORS_H

#include "base/str.h"

enum { DT_ST_MAX_DIMS = 8 };

/* name, bits of one element */
/* clang-format off */
#define DT_ST_DTYPES(X) \
    X(BOOL, 8) X(F4, 4) X(F6_E2M3, 6) X(F6_E3M2, 6) X(U8, 8) X(I8, 8) X(F8_E5M2, 8) X(F8_E4M3, 8) X(F8_E8M0, 8) \
    X(F8_E4M3FNUZ, 8) X(F8_E5M2FNUZ, 8) X(I16, 16) X(U16, 16) X(F16, 16) X(BF16, 16) X(I32, 32) X(U32, 32) \
    X(F32, 32) X(C64, 64) X(F64, 64) X(I64, 64) X(U64, 64)
/* clang-format on */

typedef enum dt_st_dtype {
#define DT_ST_ENUM(name, bits) DT_ST_##name,
    DT_ST_DTYPES(DT_ST_ENUM)
#undef DT_ST_ENUM
        DT_ST_N_DTYPES
} dt_st_dtype;

const char *dt_st_dtype_name(dt_st_dtype d); /* "F32" */

typedef struct dt_st_tensor {
    const char *name;
    dt_st_dtype dtype;
    uint32_t n_dims; /* 0 is a scalar */
    int64_t dim[DT_ST_MAX_DIMS];
    const void *data; /* C order, little endian; from a reader: into the map, aligned by chance only */
    size_t bytes;     /* set by the reader; the writer computes its own */
} dt_st_tensor;

typedef struct dt_safetensors dt_safetensors;

/* Errors: DT_ENOTFOUND, DT_EIO, DT_ENOMEM, DT_EDATA naming the file, the tensor and what is wrong. */
dt_status dt_safetensors_open(const char *path, dt_safetensors **out_p) DT_NODISCARD;
/* The same over memory that outlives the reader; name is for messages. */
dt_status dt_safetensors_open_mem(const void *p, size_t bytes, const char *name, dt_safetensors **out_p) DT_NODISCARD;
/* Several as if they were one, called name: they belong to it, and are closed where this fails. DT_EDATA: two of them
 * have a tensor of one name. DT_ENOMEM. */
dt_status dt_safetensors_join(dt_safetensors *const *part, uint32_t n, const char *name, dt_safetensors **out_p)
    DT_NODISCARD;
void dt_safetensors_close(dt_safetensors *s);

const char *dt_safetensors_name(const dt_safetensors *s); /* of the file, for messages */
uint32_t dt_safetensors_count(const dt_safetensors *s);
const dt_st_tensor *dt_safetensors_at(const dt_safetensors *s, uint32_t i);         /* by name, ascending bytes */
const dt_st_tensor *dt_safetensors_find(const dt_safetensors *s, const char *name); /* NULL when there is none */
const char *dt_safetensors_metadata(const dt_safetensors *s, const char *key);      /* NULL when there is none */

/* Tensors that the host needs, or writes: float, named, shaped, in place. */
typedef struct dt_ckpt_tensor {
    const char *name;
    const int64_t *dim;
    uint32_t n_dims;
    float *data;
} dt_ckpt_tensor;

enum {
    DT_LOAD_EXACT = 0,   /* the names on both sides are the same */
    DT_LOAD_EXTRA_OK = 1 /* the file may hold more than is wanted */
};
/* Copy tensors by name into place. All or nothing: names, shapes and dtype F32 are checked before the first byte moves.
 * Error: DT_ESHAPE listing what is missing, unexpected or of another
 * shape, with both shapes. */
dt_status dt_safetensors_load(const dt_safetensors *s, const dt_ckpt_tensor *want, uint32_t n, uint32_t flags)
    DT_NODISCARD;

/* ---- writer ---- */

typedef dt_status dt_st_sink(void *user, const void *p, size_t bytes);

/* The file as a sequence of pieces for sink. Order: descending alignment, then name, as the reference writer has it;
 * header padded with spaces to 8 bytes. metadata: n_pairs pairs of key and text. Errors: DT_EINVAL (duplicate name,
 * negative or too many dims, a size beyond the machine), DT_ENOMEM, the sink's. */
dt_status dt_safetensors_write_to(const dt_st_tensor *t, uint32_t n, const char *const (*metadata)[2], uint32_t n_pairs,
                                  dt_st_sink *sink, void *user) DT_NODISCARD;
/* To a file: written to a temporary file, flushed, renamed. */
dt_status dt_safetensors_write(const char *path, const dt_st_tensor *t, uint32_t n, const char *const (*metadata)[2],
                               uint32_t n_pairs) DT_NODISCARD;

/* The same, sealed: metadata "sha256" is the SHA-256 of the whole file, with zeros in place of its own 64 digits. */
#define DT_ST_SEAL "sha256"
dt_status dt_safetensors_write_sealed(const char *path, const dt_st_tensor *t, uint32_t n,
                                      const char *const (*metadata)[2], uint32_t n_pairs) DT_NODISCARD;
dt_status dt_safetensors_write_sealed_to(const dt_st_tensor *t, uint32_t n, const char *const (*metadata)[2],
                                         uint32_t n_pairs, dt_st_sink *sink, void *user) DT_NODISCARD;
/* Every byte of a file that was opened, by its seal. has_seal_p: false, and nothing is checked, where it has none.
 * Errors: DT_EDATA: it is damaged, or its seal is none. */
dt_status dt_safetensors_check_seal(const dt_safetensors *s, bool *has_seal_p) DT_NODISCARD;

#endif
