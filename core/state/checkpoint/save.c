/* SPDX-License-Identifier: Apache-2.0
 *
 * Saving checkpoints. See checkpoint.h.
 */
#include <config.h>

#include "state/checkpoint/checkpoint.h"
#include "state/checkpoint/sealed.h"
#include "state/checkpoint/shards.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const uint64_t max_step = 999999999999u; /* twelve digits of the folder's name */

/* The work of one save. */
struct dt_ckpt_saver {
    const dt_ckpt_save_desc *d;
    dt_manifest *m;
    dt_shard_map map;
    dt_str folder, temp, target; /* checkpoints/, step-N.tmp.X/, step-N/ */
    dt_sealed file;
};

/* ---- hashes ---- */

static int compare_tensors(const void *a, const void *b)
{
    return strcmp((*(const dt_ckpt_tensor *const *)a)->name, (*(const dt_ckpt_tensor *const *)b)->name);
}

static int compare_blobs(const void *a, const void *b)
{
    return strcmp((*(const dt_ckpt_blob *const *)a)->name, (*(const dt_ckpt_blob *const *)b)->name);
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
        if (dt_ckpt_tensor_bytes(order[i], &bytes)) {
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

/* ---- the whole ---- */

static dt_status check_desc(const dt_ckpt_save_desc *d)
{
    if (d->info.step > max_step) {
        return DT_FAIL(DT_EINVAL, "step %llu is above the limit of %llu", (unsigned long long)d->info.step,
                       (unsigned long long)max_step);
    }
    if (d->n_shards > DT_CKPT_MAX_SHARDS) {
        return DT_FAIL(DT_EINVAL, "%u shards, the limit is %d", d->n_shards, DT_CKPT_MAX_SHARDS);
    }
    if (d->part.name != NULL && (d->part.n > DT_CKPT_MAX_SHARDS || d->part.index >= d->part.n)) {
        return DT_FAIL(DT_EINVAL, "part %u of %u of %s, the limit is %d", d->part.index, d->part.n, d->part.name,
                       DT_CKPT_MAX_SHARDS);
    }
    if (d->n_blobs > DT_CKPT_MAX_PLUGINS || d->info.n_plugins > DT_CKPT_MAX_PLUGINS) {
        return DT_FAIL(DT_EINVAL, "%u plugin states of %u plugins, the limit is %d", d->n_blobs, d->info.n_plugins,
                       DT_CKPT_MAX_PLUGINS);
    }
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    for (uint32_t i = 0; i < d->n_blobs; i++) {
        const char *name = d->blobs[i].name;
        if (name[0] == '\0' || strlen(name) >= DT_CKPT_NAME_BYTES || strspn(name, allowed) != strlen(name)) {
            return DT_FAIL(DT_EINVAL, "a plugin's state cannot be called \"%s\" (expected letters, digits, _ . -)",
                           name);
        }
    }
    for (uint32_t pass = 0; pass < 2; pass++) {
        const dt_ckpt_tensor *t = pass == 0 ? d->model : d->optim;
        for (uint32_t i = 0; i < (pass == 0 ? d->n_model : d->n_optim); i++) {
            size_t bytes = 0;
            if (t[i].n_dims > DT_ST_MAX_DIMS || !dt_ckpt_tensor_bytes(&t[i], &bytes)) {
                return DT_FAIL(DT_EINVAL, "tensor %s has a shape that cannot be stored", t[i].name);
            }
        }
    }
    return DT_OK;
}

dt_status dt_ckpt_check_space(const char *folder, uint64_t bytes)
{
    /* configuration, records and the manifest grow meanwhile, with the size of the model */
    const uint64_t most = 4000000, share = 250000 + bytes / 4, other = share < most ? share : most;
    const uint64_t need = other + bytes,
                   room = dt_fs_free_bytes(folder); /* unknown is enough: every write is checked */
    if (room < need) {
        return DT_FAIL(DT_EIO,
                       "%s has %.1f MB free, and a checkpoint needs %.1f MB: %.1f of its own, %.1f for files written "
                       "at the same time; free space or choose another --run-dir",
                       folder, (double)room / 1e6, (double)need / 1e6, (double)bytes / 1e6, (double)other / 1e6);
    }
    return DT_OK;
}

/* A full disk is reported before anything is written. */
static dt_status check_space(const dt_ckpt_save_desc *d, const char *folder)
{
    uint64_t need = 0;
    for (uint32_t i = 0; i < d->n_model + d->n_optim; i++) {
        size_t bytes = 0;
        (void)dt_ckpt_tensor_bytes(i < d->n_model ? &d->model[i] : &d->optim[i - d->n_model], &bytes);
        need += bytes;
    }
    for (uint32_t i = 0; i < d->n_blobs; i++) {
        need += d->blobs[i].bytes;
    }
    return dt_ckpt_check_space(folder, need + d->part.bytes * (d->part.n > 1 ? d->part.n : 1)); /* all have about it */
}

/* The next file of the manifest. */
static dt_manifest_file *next_manifest_file(dt_ckpt_saver *s)
{
    return &s->m->file[s->m->n_files++];
}

static dt_status write_model(dt_ckpt_saver *s)
{
    const dt_ckpt_save_desc *d = s->d;
    const dt_ckpt_tensor **all = dt_alloc_n(d->n_model + (size_t)1, sizeof(*all));
    if (all == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a list of %u tensors", d->n_model);
    }
    for (uint32_t i = 0; i < d->n_model; i++) {
        all[i] = &d->model[i];
    }
    const dt_status st =
        dt_sealed_write_tensors(&s->file, s->temp.text, "model.safetensors", all, d->n_model, next_manifest_file(s));
    dt_free(all);
    return st;
}

static dt_status write_shard(const dt_ckpt_save_desc *d, const dt_shard_map *map, uint32_t shard, const char *folder,
                             dt_sealed *file, dt_manifest_file *out)
{
    dt_shard_name name;
    const dt_ckpt_tensor **own = dt_alloc_n(d->n_optim + (size_t)1, sizeof(*own));
    if (own == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a list of %u tensors", d->n_optim);
    }
    const uint32_t n = dt_shard_list_tensors(d, map, shard, own);
    dt_shard_file_name(shard, map->n, name);
    const dt_status st = dt_sealed_write_tensors(file, folder, name, own, n, out);
    dt_free(own);
    return st;
}

static dt_status write_part(const dt_ckpt_save_desc *d, const char *folder, dt_sealed *file, dt_manifest_file *out)
{
    dt_part_name name;
    dt_part_file_name(d->part.name, d->part.index, d->part.n, name);
    return dt_sealed_write_part(file, folder, name, &d->part, out);
}

static dt_status write_index(dt_ckpt_saver *s)
{
    dt_str text = {0};
    dt_shard_index_print(s->d, &s->map, &text);
    dt_status st = dt_str_status(&text);
    if (st == DT_OK) {
        st = dt_sealed_write_bytes(&s->file, s->temp.text, DT_SHARDS_INDEX, text.text, text.bytes,
                                   next_manifest_file(s));
    }
    dt_str_fini(&text);
    return st;
}

dt_status dt_ckpt_saver_write_files(dt_ckpt_saver *s)
{
    const dt_ckpt_save_desc *d = s->d;
    const char *folder = s->temp.text;
    DT_TRY(compute_hashes(d, &s->m->info));
    DT_TRY(write_model(s));
    DT_TRY(write_shard(d, &s->map, 0, folder, &s->file, next_manifest_file(s)));
    DT_TRY(s->map.n > 1 ? write_index(s) : DT_OK);
    DT_TRY(dt_sealed_write_bytes(&s->file, folder, "state.json", d->state_json, strlen(d->state_json),
                                 next_manifest_file(s)));
    for (uint32_t i = 0; i < d->n_blobs; i++) {
        char name[DT_CKPT_NAME_BYTES + 16];
        snprintf(name, sizeof(name), "plugin-%s.bin", d->blobs[i].name);
        DT_TRY(dt_sealed_write_blob(&s->file, folder, name, &d->blobs[i], next_manifest_file(s)));
    }
    DT_TRY(d->part.name != NULL ? write_part(d, folder, &s->file, next_manifest_file(s)) : DT_OK);
    return d->config != NULL ? dt_sealed_write_bytes(&s->file, folder, "config.cfg", d->config, strlen(d->config),
                                                     next_manifest_file(s))
                             : DT_OK;
}

/* A file outside the manifest. */
static dt_status write_unlisted_file(dt_ckpt_saver *s, const char *name, const void *p, size_t bytes)
{
    dt_manifest_file untold = {.bytes = 0};
    const dt_status st = dt_sealed_write_bytes(&s->file, s->temp.text, name, p, bytes, &untold);
    dt_free(untold.crc);
    return st;
}

static dt_status write_manifest(dt_ckpt_saver *s)
{
    dt_str text = {0};
    dt_manifest_print(s->m, &text);
    dt_status st = dt_str_status(&text);
    if (st == DT_OK) {
        st = write_unlisted_file(s, "MANIFEST.json", text.text, text.bytes);
    }
    if (st == DT_OK) {
        uint8_t commit[32];
        dt_sha256 sha;
        dt_sha256_init(&sha);
        dt_sha256_add(&sha, text.text, text.bytes);
        dt_sha256_end(&sha, commit);
        st = write_unlisted_file(s, "COMMIT", commit, sizeof(commit));
    }
    dt_str_fini(&text);
    return st;
}

/* Rename into place; a folder of the same step comes out under the temporary name. */
static dt_status rename_into_place(dt_ckpt_saver *s)
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
static void write_latest_hint(const dt_ckpt_saver *s)
{
    const char *name = strrchr(s->target.text, '/') + 1;
    dt_str path = {0}, line = {0};
    dt_str_addf(&path, "%s/LATEST", s->folder.text);
    dt_str_addf(&line, "%s\n", name);
    if (dt_fs_write_text(&path, &line) != DT_OK) {
        dt_log(DT_LOG_WARN, "the checkpoint is committed, but not the hint LATEST: %s", dt_error_text());
    }
    dt_str_fini(&line);
    dt_str_fini(&path);
}

static dt_status name_folders(dt_ckpt_saver *s)
{
    dt_ckpt_info *info = &s->m->info;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
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
    return DT_OK;
}

static dt_status begin_folder(dt_ckpt_saver *s)
{
    dt_ckpt_info *info = &s->m->info;
    *info = s->d->info;
    info->bytes = 0;
    info->metric = info->metric_name[0] != '\0' ? info->metric : (double)NAN;
    dt_clock_utc(info->wall_time, sizeof(info->wall_time));
    DT_TRY(name_folders(s));
    DT_TRY(dt_sealed_init(&s->file));
    DT_TRY(dt_shard_map_make(s->d, &s->map));
    DT_TRY(dt_fs_mkdir(s->folder.text)); /* a run directory that was removed does not come back */
    DT_TRY(check_space(s->d, s->folder.text));
    return dt_fs_mkdir(s->temp.text);
}

static void destroy_saver(dt_ckpt_saver *s)
{
    dt_shard_map_fini(&s->map);
    if (s->m != NULL) {
        dt_manifest_fini(s->m);
    }
    dt_free(s->m);
    dt_sealed_fini(&s->file);
    dt_str_fini(&s->folder);
    dt_str_fini(&s->temp);
    dt_str_fini(&s->target);
    dt_free(s);
}

void dt_ckpt_saver_abandon(dt_ckpt_saver *s)
{
    dt_error why;
    if (s == NULL) {
        return;
    }
    dt_error_save(&why, DT_OK);
    if (s->temp.bytes > 0) {
        (void)!dt_fs_remove_tree(s->temp.text); /* what stays goes with the next pruning */
    }
    (void)!dt_error_restore(&why);
    destroy_saver(s);
}

static dt_status add_context(dt_status st, const dt_ckpt_save_desc *d)
{
    return st < 0 ? DT_CONTEXT(st, "saving step %llu", (unsigned long long)d->info.step) : st;
}

dt_status dt_ckpt_saver_create(const dt_ckpt_save_desc *d, dt_ckpt_saver **out_p)
{
    DT_TRY(check_desc(d));
    dt_ckpt_saver *s = dt_alloc(sizeof(*s));
    if (s == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a checkpoint");
    }
    s->d = d;
    s->m = dt_alloc(sizeof(*s->m));
    const dt_status st = s->m != NULL ? begin_folder(s) : DT_FAIL(DT_ENOMEM, "out of memory for a manifest");
    if (st != DT_OK) {
        dt_ckpt_saver_abandon(s);
        return add_context(st, d);
    }
    *out_p = s;
    return DT_OK;
}

const char *dt_ckpt_saver_folder_name(const dt_ckpt_saver *s)
{
    return strrchr(s->temp.text, '/') + 1;
}

/* The name of a folder that is being written, from another process. */
static bool is_temp_name(const char *name)
{
    return strlen(name) < DT_CKPT_NAME_BYTES && dt_glob_match("step-*.tmp.*", name) && strchr(name, '/') == NULL;
}

static dt_status save_shard(const dt_ckpt_save_desc *d, const char *folder, uint32_t shard, dt_sealed *file,
                            dt_manifest_file *out)
{
    dt_shard_map map;
    if (dt_fault("ckpt.shard")) {
        return DT_FAIL(DT_EIO, "cannot write shard %u of %s (injected)", shard, folder);
    }
    DT_TRY(dt_shard_map_make(d, &map));
    const dt_status st = write_shard(d, &map, shard, folder, file, out);
    dt_shard_map_fini(&map);
    return st;
}

static dt_status save_part(const dt_ckpt_save_desc *d, const char *folder, uint32_t part, dt_sealed *file,
                           dt_manifest_file *out)
{
    (void)part; /* as d specifies */
    if (dt_fault("ckpt.shard")) {
        return DT_FAIL(DT_EIO, "cannot write part %u of %s (injected)", d->part.index, folder);
    }
    return write_part(d, folder, file, out);
}

/* A file in the folder that another process has begun. */
static dt_status save_other_file(const dt_ckpt_save_desc *d, const char *name, uint32_t shard,
                                 dt_status (*save)(const dt_ckpt_save_desc *d, const char *folder, uint32_t shard,
                                                   dt_sealed *file, dt_manifest_file *out),
                                 dt_ckpt_shard *out)
{
    dt_str folder = {0};
    dt_sealed file;
    dt_manifest_file written = {.bytes = 0};
    DT_TRY(dt_sealed_init(&file));
    dt_str_addf(&folder, "%s/checkpoints/%s", d->run_dir, name);
    dt_status st = dt_str_status(&folder);
    if (st == DT_OK) {
        st = save(d, folder.text, shard, &file, &written);
    }
    *out = (dt_ckpt_shard){.bytes = written.bytes, .n_crc = written.n_crc, .crc = written.crc};
    memcpy(out->sha256, written.sha256, sizeof(out->sha256));
    dt_sealed_fini(&file);
    dt_str_fini(&folder);
    return add_context(st, d);
}

dt_status dt_ckpt_save_shard(const dt_ckpt_save_desc *d, const char *name, uint32_t shard, dt_ckpt_shard *out)
{
    DT_TRY(check_desc(d));
    if (!is_temp_name(name) || shard >= d->n_shards) {
        return DT_FAIL(DT_EINVAL, "no checkpoint is written to \"%.64s\" in %u shards", name, d->n_shards);
    }
    return save_other_file(d, name, shard, save_shard, out);
}

dt_status dt_ckpt_save_part(const dt_ckpt_save_desc *d, const char *name, dt_ckpt_shard *out)
{
    DT_TRY(check_desc(d));
    if (!is_temp_name(name) || d->part.name == NULL) {
        return DT_FAIL(DT_EINVAL, "no checkpoint is written to \"%.64s\" in parts", name);
    }
    return save_other_file(d, name, d->part.index, save_part, out);
}

/* What another process wrote, into the manifest. */
static void add_file_of_process(dt_ckpt_saver *s, const char *name, dt_ckpt_shard *from)
{
    dt_manifest_file *f = next_manifest_file(s);
    *f = (dt_manifest_file){.bytes = from->bytes, .crc = from->crc, .n_crc = from->n_crc, .cap_crc = from->n_crc};
    snprintf(f->name, sizeof(f->name), "%s", name);
    memcpy(f->sha256, from->sha256, sizeof(f->sha256));
    from->crc = NULL;
}

void dt_ckpt_save_add_parts(dt_ckpt_saver *s, dt_ckpt_shard *others)
{
    dt_part_name name;
    for (uint32_t i = 1; i < s->d->part.n; i++) {
        dt_part_file_name(s->d->part.name, i, s->d->part.n, name);
        add_file_of_process(s, name, &others[i - 1]);
    }
}

dt_status dt_ckpt_saver_commit(dt_ckpt_saver *s, dt_ckpt_shard *others, dt_ckpt_info *info_p)
{
    const dt_ckpt_save_desc *d = s->d;
    dt_shard_name name;
    for (uint32_t i = 1; i < s->map.n; i++) {
        dt_shard_file_name(i, s->map.n, name);
        add_file_of_process(s, name, &others[i - 1]);
    }
    for (uint32_t i = 0; i < s->m->n_files; i++) {
        s->m->info.bytes += s->m->file[i].bytes;
    }
    dt_status st = write_manifest(s);
    if (st == DT_OK) {
        st = rename_into_place(s);
    }
    if (st != DT_OK) {
        dt_ckpt_saver_abandon(s);
        return add_context(st, d);
    }
    s->m->info.valid = true;
    write_latest_hint(s);
    if (info_p != NULL) {
        *info_p = s->m->info;
    }
    destroy_saver(s);
    return DT_OK;
}

dt_status dt_ckpt_save(const dt_ckpt_save_desc *d, dt_ckpt_info *info_p)
{
    dt_ckpt_saver *s = NULL;
    const uint32_t n = d->n_shards > 1 ? d->n_shards : 1;
    dt_ckpt_shard *others = dt_alloc_n(n, sizeof(*others));
    dt_status st = others != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %u shards", n);
    if (st == DT_OK) {
        st = dt_ckpt_saver_create(d, &s);
    }
    if (st == DT_OK) {
        st = add_context(dt_ckpt_saver_write_files(s), d);
    }
    for (uint32_t i = 1; i < n && st == DT_OK; i++) {
        st = dt_ckpt_save_shard(d, dt_ckpt_saver_folder_name(s), i, &others[i - 1]);
    }
    if (st == DT_OK) {
        st = dt_ckpt_saver_commit(s, others, info_p);
    } else {
        dt_ckpt_saver_abandon(s);
    }
    for (uint32_t i = 1; i < n && others != NULL; i++) {
        dt_free(others[i - 1].crc);
    }
    dt_free(others);
    return st;
}
