/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "state/checkpoint/sealed.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool dt_ckpt_tensor_bytes(const dt_ckpt_tensor *t, size_t *out_p)
{
    size_t n = sizeof(float);
    for (uint32_t i = 0; i < t->n_dims; i++) {
        if (t->dim[i] < 0 || !dt_mul_size(n, (size_t)t->dim[i], &n)) {
            return false;
        }
    }
    *out_p = n;
    return true;
}

dt_status dt_sealed_init(dt_sealed *s)
{
    *s = (dt_sealed){.fd = -1, .chunk = dt_alloc(DT_MANIFEST_CHUNK)};
    return s->chunk != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for writing a checkpoint");
}

void dt_sealed_fini(dt_sealed *s)
{
    dt_free(s->chunk);
    dt_str_fini(&s->path);
    *s = (dt_sealed){.fd = -1};
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static dt_status flush_chunk(dt_sealed *s)
{
    if (s->fill == 0) {
        return DT_OK;
    }
    dt_sha256_add(&s->sha, s->chunk, s->fill);
    DT_TRY(dt_manifest_file_add_crc(s->file, dt_crc32c(0, s->chunk, s->fill)));
    DT_TRY(dt_fs_write(s->fd, s->path.text, s->chunk, s->fill));
    s->fill = 0;
    return DT_OK;
}

static dt_status write_and_hash_bytes(void *user, const void *p, size_t bytes)
{
    dt_sealed *s = user;
    const uint8_t *at = p;
    s->file->bytes += bytes;
    while (bytes > 0) {
        size_t n = DT_MANIFEST_CHUNK - s->fill;
        n = n < bytes ? n : bytes;
        memcpy(s->chunk + s->fill, at, n);
        s->fill += n;
        at += n;
        bytes -= n;
        if (s->fill == DT_MANIFEST_CHUNK) {
            DT_TRY(flush_chunk(s));
        }
    }
    return DT_OK;
}

static dt_status begin_file(dt_sealed *s, const char *folder, const char *name, dt_manifest_file *out)
{
    dt_str_clear(&s->path);
    dt_str_addf(&s->path, "%s/%s", folder, name);
    DT_TRY(dt_str_status(&s->path));
    DT_TRY(dt_fs_create(s->path.text, &s->fd));
    s->file = out;
    *out = (dt_manifest_file){.bytes = 0};
    snprintf(out->name, sizeof(out->name), "%s", name);
    dt_sha256_init(&s->sha);
    s->fill = 0;
    return DT_OK;
}

/* Flush and close what begin opened; st is how writing it went. */
static dt_status end_file(dt_sealed *s, dt_status st)
{
    if (st == DT_OK) {
        st = flush_chunk(s);
    }
    if (st != DT_OK) {
        close(s->fd);
        return st;
    }
    uint8_t digest[32];
    dt_sha256_end(&s->sha, digest);
    dt_hex(digest, sizeof(digest), s->file->sha256);
    return dt_fs_sync_close(s->fd, s->path.text);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

dt_status dt_sealed_write_bytes(dt_sealed *s, const char *folder, const char *name, const void *p, size_t bytes,
                                dt_manifest_file *out)
{
    DT_TRY(begin_file(s, folder, name, out));
    return end_file(s, write_and_hash_bytes(s, p, bytes));
}

static dt_status write_tensors(dt_sealed *s, const dt_ckpt_tensor *const *t, uint32_t n)
{
    dt_st_tensor *list = dt_alloc_n(n + (size_t)1, sizeof(*list));
    if (list == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a list of %u tensors", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        list[i] = (dt_st_tensor){.name = t[i]->name, .dtype = DT_ST_F32, .n_dims = t[i]->n_dims, .data = t[i]->data};
        for (uint32_t k = 0; k < t[i]->n_dims && k < DT_ST_MAX_DIMS; k++) {
            list[i].dim[k] = t[i]->dim[k];
        }
    }
    static const char *const metadata[][2] = {{"format", "pt"}, {"writer", "dtrain"}};
    dt_status st = dt_safetensors_write_to(list, n, metadata, 2, write_and_hash_bytes, s);
    dt_free(list);
    return st;
}

dt_status dt_sealed_write_tensors(dt_sealed *s, const char *folder, const char *name, const dt_ckpt_tensor *const *t,
                                  uint32_t n, dt_manifest_file *out)
{
    DT_TRY(begin_file(s, folder, name, out));
    return end_file(s, write_tensors(s, t, n));
}

/* "dtblob1\n", u32 version, u32 zero, u64 bytes, all little endian, then the bytes */
static dt_status write_head(dt_sealed *s, uint32_t version, uint64_t bytes)
{
    uint8_t head[24] = "dtblob1\n";
    for (int i = 0; i < 4; i++) {
        head[8 + i] = (uint8_t)(version >> 8 * i);
    }
    for (int i = 0; i < 8; i++) {
        head[16 + i] = (uint8_t)(bytes >> 8 * i);
    }
    return write_and_hash_bytes(s, head, sizeof(head));
}

static dt_status write_blob(dt_sealed *s, const dt_ckpt_blob *b)
{
    DT_TRY(write_head(s, b->version, b->bytes));
    return write_and_hash_bytes(s, b->data, b->bytes);
}

static dt_status write_part(dt_sealed *s, const dt_ckpt_part *p)
{
    DT_TRY(write_head(s, p->version, p->bytes));
    const uint64_t head = s->file->bytes;
    DT_TRY(p->write(p->user, write_and_hash_bytes, s));
    return s->file->bytes - head == p->bytes
               ? DT_OK
               : DT_FAIL(DT_EINVAL, "%s has %llu bytes, expected %llu", s->path.text,
                         (unsigned long long)(s->file->bytes - head), (unsigned long long)p->bytes);
}

dt_status dt_sealed_write_part(dt_sealed *s, const char *folder, const char *name, const dt_ckpt_part *p,
                               dt_manifest_file *out)
{
    DT_TRY(begin_file(s, folder, name, out));
    return end_file(s, write_part(s, p));
}

dt_status dt_sealed_write_blob(dt_sealed *s, const char *folder, const char *name, const dt_ckpt_blob *b,
                               dt_manifest_file *out)
{
    DT_TRY(begin_file(s, folder, name, out));
    return end_file(s, write_blob(s, b));
}
