/* SPDX-License-Identifier: Apache-2.0
 *
 * Saving and pruning checkpoints. See checkpoint.h.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static const uint64_t max_step = 999999999999u; /* twelve digits of the folder's name */

/* The work of one save. */
typedef struct saver {
    const dt_ckpt_save_desc *d;
    dt_manifest *m;
    dt_str folder, temp, target; /* checkpoints/, step-N.tmp.X/, step-N/ */
    /* the file that is being written: chunk by chunk, each checked and flushed to the kernel when it is full */
    uint8_t *chunk; /* [DT_MANIFEST_CHUNK] */
    size_t fill;
    int fd;
    dt_manifest_file *file;
    dt_sha256 sha;
    dt_str path;
} saver;

/* ---- hashes ---- */

static int compare_tensors(const void *a, const void *b)
{
    return strcmp((*(const dt_ckpt_tensor *const *)a)->name, (*(const dt_ckpt_tensor *const *)b)->name);
}

static int compare_blobs(const void *a, const void *b)
{
    return strcmp((*(const dt_ckpt_blob *const *)a)->name, (*(const dt_ckpt_blob *const *)b)->name);
}

static bool tensor_bytes(const dt_ckpt_tensor *t, size_t *out_p)
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

static dt_status hash_tensors(const dt_ckpt_tensor *t, uint32_t n, uint64_t *hash)
{
    const dt_ckpt_tensor **order = dt_alloc_n(n + (size_t)1, sizeof(*order));
    if (order == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the order of %u tensors", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        order[i] = &t[i];
    }
    qsort(order, n, sizeof(*order), compare_tensors);
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = 0;
        if (tensor_bytes(order[i], &bytes)) {
            *hash = dt_hash64(order[i]->data, bytes, *hash);
        }
    }
    dt_free(order);
    return DT_OK;
}

static void print_hash(uint64_t hash, char out[17])
{
    snprintf(out, 17, "%016llx", (unsigned long long)hash);
}

dt_status dt_ckpt_hash(const dt_ckpt_tensor *t, uint32_t n, char out[17])
{
    uint64_t hash = 0;
    DT_TRY(hash_tensors(t, n, &hash));
    print_hash(hash, out);
    return DT_OK;
}

static dt_status compute_hashes(const dt_ckpt_save_desc *d, dt_ckpt_info *info)
{
    uint64_t hash = 0;
    DT_TRY(hash_tensors(d->model, d->n_model, &hash));
    print_hash(hash, info->weights_hash);
    DT_TRY(hash_tensors(d->optim, d->n_optim, &hash));
    hash = dt_hash64(d->state_json, strlen(d->state_json), hash);
    const dt_ckpt_blob *order[DT_CKPT_MAX_PLUGINS];
    for (uint32_t i = 0; i < d->n_blobs; i++) {
        order[i] = &d->blobs[i];
    }
    if (d->n_blobs > 0) {
        qsort(order, d->n_blobs, sizeof(order[0]), compare_blobs);
    }
    for (uint32_t i = 0; i < d->n_blobs; i++) {
        hash = dt_hash64(order[i]->data, order[i]->bytes, hash);
    }
    print_hash(hash, info->state_hash);
    return DT_OK;
}

/* ---- one file ---- */

static dt_status flush_chunk(saver *s)
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

static dt_status add_bytes(void *user, const void *p, size_t bytes)
{
    saver *s = user;
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

static dt_status begin_file(saver *s, const char *name)
{
    dt_str_clear(&s->path);
    dt_str_addf(&s->path, "%s/%s", s->temp.text, name);
    DT_TRY(dt_str_status(&s->path));
    DT_TRY(dt_fs_create(s->path.text, &s->fd));
    s->file = &s->m->file[s->m->n_files++];
    *s->file = (dt_manifest_file){.bytes = 0};
    snprintf(s->file->name, sizeof(s->file->name), "%s", name);
    dt_sha256_init(&s->sha);
    s->fill = 0;
    return DT_OK;
}

/* Flush and close what begin_file opened; st is how writing it went. */
static dt_status end_file(saver *s, dt_status st)
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
    s->m->info.bytes += s->file->bytes;
    return dt_fs_sync_close(s->fd, s->path.text);
}

static dt_status put_tensors(saver *s, const dt_ckpt_tensor *t, uint32_t n)
{
    dt_st_tensor *list = dt_alloc_n(n + (size_t)1, sizeof(*list));
    if (list == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a list of %u tensors", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        list[i] = (dt_st_tensor){.name = t[i].name, .dtype = DT_ST_F32, .n_dims = t[i].n_dims, .data = t[i].data};
        for (uint32_t k = 0; k < t[i].n_dims && k < DT_ST_MAX_DIMS; k++) {
            list[i].dim[k] = t[i].dim[k];
        }
    }
    static const char *const metadata[][2] = {{"format", "pt"}, {"writer", "dtrain"}};
    dt_status st = dt_safetensors_write_to(list, n, metadata, 2, add_bytes, s);
    dt_free(list);
    return st;
}

static dt_status write_tensors(saver *s, const char *name, const dt_ckpt_tensor *t, uint32_t n)
{
    DT_TRY(begin_file(s, name));
    return end_file(s, put_tensors(s, t, n));
}

static dt_status write_bytes(saver *s, const char *name, const void *p, size_t bytes)
{
    DT_TRY(begin_file(s, name));
    return end_file(s, add_bytes(s, p, bytes));
}

/* "dtblob1\n", u32 version, u32 zero, u64 bytes, all little endian, then the bytes */
static dt_status put_blob(saver *s, const dt_ckpt_blob *b)
{
    uint8_t head[24] = "dtblob1\n";
    for (int i = 0; i < 4; i++) {
        head[8 + i] = (uint8_t)(b->version >> 8 * i);
    }
    for (int i = 0; i < 8; i++) {
        head[16 + i] = (uint8_t)((uint64_t)b->bytes >> 8 * i);
    }
    DT_TRY(add_bytes(s, head, sizeof(head)));
    return add_bytes(s, b->data, b->bytes);
}

/* ---- the whole ---- */

static dt_status check_desc(const dt_ckpt_save_desc *d)
{
    if (d->info.step > max_step) {
        return DT_FAIL(DT_EINVAL, "step %llu is above the limit of %llu", (unsigned long long)d->info.step,
                       (unsigned long long)max_step);
    }
    if (d->n_blobs > DT_CKPT_MAX_PLUGINS || d->info.n_plugins > DT_CKPT_MAX_PLUGINS) {
        return DT_FAIL(DT_EINVAL, "%u plugin states of %u plugins, the limit is %d", d->n_blobs, d->info.n_plugins,
                       DT_CKPT_MAX_PLUGINS);
    }
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    for (uint32_t i = 0; i < d->n_blobs; i++) {
        const char *name = d->blobs[i].name;
        if (name[0] == '\0' || strlen(name) >= DT_CKPT_NAME_BYTES || strspn(name, allowed) != strlen(name)) {
            return DT_FAIL(DT_EINVAL, "a plugin's state cannot be called \"%s\" (want letters, digits, _ . -)", name);
        }
    }
    for (uint32_t pass = 0; pass < 2; pass++) {
        const dt_ckpt_tensor *t = pass == 0 ? d->model : d->optim;
        for (uint32_t i = 0; i < (pass == 0 ? d->n_model : d->n_optim); i++) {
            size_t bytes = 0;
            if (t[i].n_dims > DT_ST_MAX_DIMS || !tensor_bytes(&t[i], &bytes)) {
                return DT_FAIL(DT_EINVAL, "tensor %s has a shape that cannot be stored", t[i].name);
            }
        }
    }
    return DT_OK;
}

/* A disk that is too full is told before anything is written. */
static dt_status check_space(const dt_ckpt_save_desc *d, const char *folder)
{
    struct statvfs fs;
    uint64_t need = (uint64_t)4 << 20, one = 0;
    for (uint32_t i = 0; i < d->n_model + d->n_optim; i++) {
        size_t bytes = 0;
        (void)tensor_bytes(i < d->n_model ? &d->model[i] : &d->optim[i - d->n_model], &bytes);
        need += bytes;
    }
    for (uint32_t i = 0; i < d->n_blobs; i++) {
        need += d->blobs[i].bytes;
    }
    if (statvfs(folder, &fs) != 0 || fs.f_frsize == 0) {
        return DT_OK; /* it may well do: every write is checked anyway */
    }
    one = (uint64_t)fs.f_frsize;
    if (fs.f_bavail < need / one) {
        return DT_FAIL(DT_EIO, "%s has %llu MiB free, a checkpoint needs %llu: free space or choose another --run-dir",
                       folder, (unsigned long long)(fs.f_bavail * one >> 20), (unsigned long long)(need >> 20));
    }
    return DT_OK;
}

static dt_status write_all(saver *s)
{
    const dt_ckpt_save_desc *d = s->d;
    DT_TRY(write_tensors(s, "model.safetensors", d->model, d->n_model));
    DT_TRY(write_tensors(s, "optim.safetensors", d->optim, d->n_optim));
    DT_TRY(write_bytes(s, "state.json", d->state_json, strlen(d->state_json)));
    for (uint32_t i = 0; i < d->n_blobs; i++) {
        char name[DT_CKPT_NAME_BYTES + 16];
        snprintf(name, sizeof(name), "plugin-%s.bin", d->blobs[i].name);
        DT_TRY(begin_file(s, name));
        DT_TRY(end_file(s, put_blob(s, &d->blobs[i])));
    }
    if (d->config != NULL) {
        DT_TRY(write_bytes(s, "config.cfg", d->config, strlen(d->config)));
    }
    return DT_OK;
}

/* A file outside the manifest. */
static dt_status write_plain(saver *s, const char *name, const void *p, size_t bytes)
{
    int fd = -1;
    dt_str_clear(&s->path);
    dt_str_addf(&s->path, "%s/%s", s->temp.text, name);
    DT_TRY(dt_str_status(&s->path));
    DT_TRY(dt_fs_create(s->path.text, &fd));
    dt_status st = dt_fs_write(fd, s->path.text, p, bytes);
    if (st != DT_OK) {
        close(fd);
        return st;
    }
    return dt_fs_sync_close(fd, s->path.text);
}

static dt_status write_manifest(saver *s)
{
    dt_str text = {0};
    dt_manifest_print(s->m, &text);
    dt_status st = dt_str_status(&text);
    if (st == DT_OK) {
        st = write_plain(s, "MANIFEST.json", text.text, text.bytes);
    }
    if (st == DT_OK) {
        uint8_t commit[32];
        dt_sha256 sha;
        dt_sha256_init(&sha);
        dt_sha256_add(&sha, text.text, text.bytes);
        dt_sha256_end(&sha, commit);
        st = write_plain(s, "COMMIT", commit, sizeof(commit));
    }
    dt_str_fini(&text);
    return st;
}

/* Rename into place; a folder of the same step comes out under the temporary name. */
static dt_status publish(saver *s)
{
    DT_TRY(dt_fs_sync_dir(s->temp.text));
    if (dt_fs_is_dir(s->target.text)) {
        DT_TRY(dt_fs_swap(s->temp.text, s->target.text));
        DT_TRY(dt_fs_sync_dir(s->folder.text));
        if (dt_fs_remove_tree(s->temp.text) != DT_OK) {
            dt_log(DT_LOG_WARN, "the replaced checkpoint stays until the next pruning: %s", dt_error_text());
        }
        return DT_OK;
    }
    DT_TRY(dt_fs_rename(s->temp.text, s->target.text));
    return dt_fs_sync_dir(s->folder.text);
}

/* For people and their scripts; a checkpoint without it is as good. */
static void write_hint(saver *s)
{
    const char *name = strrchr(s->target.text, '/') + 1;
    dt_str_clear(&s->path);
    dt_str_addf(&s->path, "%s/LATEST", s->folder.text);
    dt_str line = {0};
    dt_str_addf(&line, "%s\n", name);
    if (dt_fs_write_text(&s->path, &line) != DT_OK) {
        dt_log(DT_LOG_WARN, "the checkpoint is committed, but not the hint LATEST: %s", dt_error_text());
    }
    dt_str_fini(&line);
}

static dt_status save(saver *s)
{
    dt_ckpt_info *info = &s->m->info;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *info = s->d->info;
    info->bytes = 0;
    info->metric = info->metric_name[0] != '\0' ? info->metric : (double)NAN;
    dt_clock_utc(info->wall_time, sizeof(info->wall_time));
    dt_str_addf(&s->folder, "%s/checkpoints", s->d->run_dir);
    dt_str_addf(&s->target, "%s/step-%012llu", dt_str_text(&s->folder), (unsigned long long)info->step);
    dt_str_addf(&s->temp, "%s.tmp.%ld-%09ld", dt_str_text(&s->target), (long)getpid(), now.tv_nsec);
    DT_TRY(dt_str_status(&s->folder));
    DT_TRY(dt_str_status(&s->target));
    DT_TRY(dt_str_status(&s->temp));
    if (s->target.bytes >= sizeof(info->path)) {
        return DT_FAIL(DT_EINVAL, "the run directory's path of %zu bytes is too long", s->folder.bytes);
    }
    memcpy(info->path, s->target.text, s->target.bytes + 1);
    s->chunk = dt_alloc(DT_MANIFEST_CHUNK);
    if (s->chunk == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for writing a checkpoint");
    }
    DT_TRY(compute_hashes(s->d, info));
    DT_TRY(dt_fs_mkdirs(s->folder.text));
    DT_TRY(check_space(s->d, s->folder.text));
    DT_TRY(dt_fs_mkdirs(s->temp.text));
    dt_status st = write_all(s);
    if (st == DT_OK) {
        st = write_manifest(s);
    }
    if (st == DT_OK) {
        st = publish(s);
    }
    if (st != DT_OK) {
        dt_error why;
        dt_error_take(&why, st);
        (void)!dt_fs_remove_tree(s->temp.text); /* what stays goes with the next pruning */
        return dt_error_put(&why);
    }
    info->valid = true;
    return DT_OK;
}

dt_status dt_ckpt_save(const dt_ckpt_save_desc *d, dt_ckpt_info *info_p)
{
    DT_TRY(check_desc(d));
    saver s = {.d = d, .fd = -1, .m = dt_alloc(sizeof(*s.m))};
    if (s.m == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a manifest");
    }
    dt_status st = save(&s);
    if (st == DT_OK) {
        write_hint(&s);
        if (info_p != NULL) {
            *info_p = s.m->info;
        }
    } else {
        st = DT_CONTEXT(st, "saving step %llu", (unsigned long long)d->info.step);
    }
    dt_manifest_fini(s.m);
    dt_free(s.m);
    dt_free(s.chunk);
    dt_str_fini(&s.folder);
    dt_str_fini(&s.temp);
    dt_str_fini(&s.target);
    dt_str_fini(&s.path);
    return st;
}

/* ---- pruning ---- */

/* True when fewer than keep->best valid checkpoints of its phase are better by the same metric; of equals the newer
 * is. */
static bool is_among_best(const dt_ckpt_info *list, uint32_t n, uint32_t i, const dt_ckpt_keep *keep)
{
    if (!list[i].valid || isnan(list[i].metric)) {
        return false;
    }
    uint32_t n_better = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (!list[k].valid || isnan(list[k].metric) || k == i || list[k].phase_index != list[i].phase_index ||
            strcmp(list[k].metric_name, list[i].metric_name) != 0) {
            continue;
        }
        const bool is_min = (keep->min >> (list[i].phase_index % 32) & 1) != 0;
        double gain = is_min ? list[i].metric - list[k].metric : list[k].metric - list[i].metric;
        n_better += gain > 0 || (gain == 0 && k > i);
    }
    return n_better < keep->best;
}

/* First out of sight in one step, so that no half-deleted folder has a checkpoint's name, then away. */
static dt_status delete_checkpoint(const char *folder, const char *path)
{
    dt_str trash = {0};
    dt_str_addf(&trash, "%s/trash.%s.%ld", folder, strrchr(path, '/') + 1, (long)getpid());
    dt_status st = dt_str_status(&trash);
    if (st == DT_OK) {
        st = dt_fs_rename(path, trash.text);
    }
    if (st == DT_OK) {
        st = dt_fs_sync_dir(folder);
    }
    if (st == DT_OK) {
        st = dt_fs_remove_tree(trash.text);
    }
    dt_str_fini(&trash);
    return st;
}

static dt_status delete_leftovers(const char *folder)
{
    char **names = NULL;
    size_t n = 0;
    DT_TRY(dt_fs_list(folder, &names, &n));
    dt_status st = DT_OK;
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        if (dt_glob_match("step-*.tmp.*", names[i]) || dt_glob_match("trash.*", names[i]) ||
            dt_glob_match("LATEST.tmp.*", names[i])) {
            dt_str path = {0};
            dt_str_addf(&path, "%s/%s", folder, names[i]);
            st = dt_str_status(&path);
            if (st == DT_OK) {
                st = dt_fs_remove_tree(path.text);
            }
            dt_str_fini(&path);
        }
    }
    dt_fs_list_free(names, n);
    return st;
}

dt_status dt_ckpt_prune(const char *run_dir, const dt_ckpt_keep *keep)
{
    if (keep->last == 0) {
        return DT_FAIL(DT_EINVAL, "keep_last 0 would delete every checkpoint, want at least 1");
    }
    dt_str folder = {0};
    dt_ckpt_info *list = NULL;
    uint32_t n = 0, n_newer = 0;
    dt_str_addf(&folder, "%s/checkpoints", run_dir);
    dt_status st = dt_str_status(&folder);
    if (st == DT_OK) {
        st = dt_ckpt_list(folder.text, &list, &n);
    }
    for (uint32_t i = n; i-- > 0 && st == DT_OK;) { /* newest first */
        bool is_kept = !list[i].valid || list[i].phase_end || n_newer < keep->last || is_among_best(list, n, i, keep);
        n_newer += list[i].valid;
        if (!is_kept) {
            st = delete_checkpoint(folder.text, list[i].path);
        }
    }
    if (st == DT_OK) {
        st = delete_leftovers(folder.text);
    }
    dt_free(list);
    dt_str_fini(&folder);
    return st;
}
