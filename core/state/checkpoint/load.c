/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding, verifying and loading checkpoints. See checkpoint.h.
 */
#include <config.h>

#include "state/checkpoint/checkpoint.h"
#include "state/checkpoint/manifest.h"
#include "state/checkpoint/shards.h"
#include "base/err.h"
#include "base/beneath.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* A file's verified bytes. */
typedef struct mapped {
    const void *bytes;
    size_t n;
} mapped;

struct dt_ckpt {
    dt_manifest m;
    mapped map[DT_MANIFEST_MAX_FILES]; /* as m.file */
    dt_safetensors *model, *optim;
};

static const char *const required_files[] = {"model.safetensors", "state.json"};

static bool is_step_name(const char *name)
{
    return strlen(name) == 17 && memcmp(name, "step-", 5) == 0 && strspn(name + 5, "0123456789") == 12;
}

/* The last part of a path, without slashes at its end, in out. */
static void last_path_part(const char *path, char *out, size_t bytes)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') {
        end--;
    }
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    snprintf(out, bytes, "%.*s", (int)(end - begin), path + begin);
}

/* A file inside a folder; false when the path is too long. */
static bool join_path(const char *folder, const char *name, char out[DT_CKPT_PATH_BYTES])
{
    return snprintf(out, DT_CKPT_PATH_BYTES, "%s/%s", folder, name) < DT_CKPT_PATH_BYTES;
}

static dt_status fail_too_long(const char *folder)
{
    return DT_FAIL(DT_EINVAL, "a path in %.64s... is longer than the limit of %d bytes", folder,
                   DT_CKPT_PATH_BYTES - 1);
}

/* A file that the layout demands is damage when it is missing. */
static dt_status report_missing_as_damage(dt_status st)
{
    return st == DT_ENOTFOUND ? DT_CONTEXT(DT_EDATA, "incomplete") : st;
}

/* ---- the manifest of one folder ---- */

static dt_status check_commit(const char *dir, const char *text, size_t bytes)
{
    char path[DT_CKPT_PATH_BYTES], *commit = NULL;
    size_t commit_bytes = 0;
    if (!join_path(dir, "COMMIT", path)) {
        return fail_too_long(dir);
    }
    dt_status st = dt_fs_read_all(path, 32, &commit, &commit_bytes);
    if (st == DT_ENOTFOUND) {
        return DT_FAIL(DT_EDATA, "%s was never committed: it has no COMMIT", dir);
    }
    DT_TRY(st);
    uint8_t digest[32];
    dt_sha256 sha;
    dt_sha256_init(&sha);
    dt_sha256_add(&sha, text, bytes);
    dt_sha256_end(&sha, digest);
    bool is_same = commit_bytes == sizeof(digest) && memcmp(commit, digest, sizeof(digest)) == 0;
    dt_free(commit);
    return is_same ? DT_OK
                   : DT_FAIL(DT_EDATA, "%s: COMMIT is not the sha256 of MANIFEST.json: one of them is damaged", dir);
}

static dt_status check_sizes(const char *dir, const dt_manifest *m)
{
    for (size_t i = 0; i < sizeof(required_files) / sizeof(required_files[0]); i++) {
        if (dt_manifest_find(m, required_files[i]) == NULL) {
            return DT_FAIL(DT_EDATA, "%s: its manifest lacks %s", dir, required_files[i]);
        }
    }
    if (dt_manifest_count_shards(m) == 0) {
        return DT_FAIL(DT_EDATA, "%s: its manifest lacks optim.safetensors, or some of its shards", dir);
    }
    for (uint32_t i = 0; i < m->n_files; i++) {
        char path[DT_CKPT_PATH_BYTES];
        struct stat info;
        if (!join_path(dir, m->file[i].name, path)) {
            return fail_too_long(dir);
        }
        if (dt_beneath_stat(path, &info) != 0) {
            return DT_FAIL(DT_EDATA, "%s is missing", path);
        }
        if (!S_ISREG(info.st_mode)) {
            return DT_FAIL(DT_EDATA, "%s is not a regular file", path);
        }
        if ((uint64_t)info.st_size != m->file[i].bytes) {
            return DT_FAIL(DT_EDATA, "%s has %lld bytes, its manifest has %llu", path, (long long)info.st_size,
                           (unsigned long long)m->file[i].bytes);
        }
    }
    return DT_OK;
}

/* Into a zeroed m; what it records about the bytes is not checked here. */
static dt_status read_manifest(const char *dir, dt_manifest *m)
{
    char path[DT_CKPT_PATH_BYTES], name[32], want[32], *text = NULL;
    size_t bytes = 0;
    if (!join_path(dir, "MANIFEST.json", path)) {
        return fail_too_long(dir);
    }
    DT_TRY(report_missing_as_damage(dt_fs_read_all(path, DT_MANIFEST_MAX_BYTES, &text, &bytes)));
    dt_status st = check_commit(dir, text, bytes);
    if (st == DT_OK) {
        st = dt_manifest_parse(text, bytes, path, m);
    }
    dt_free(text);
    DT_TRY(st);
    snprintf(m->info.path, sizeof(m->info.path), "%s", dir);
    last_path_part(dir, name, sizeof(name));
    snprintf(want, sizeof(want), "step-%012llu", (unsigned long long)m->info.step);
    if (is_step_name(name) && strcmp(name, want) != 0) {
        st = DT_FAIL(DT_EDATA, "%s holds step %llu: the folder was renamed", dir, (unsigned long long)m->info.step);
    }
    if (st == DT_OK) {
        st = check_sizes(dir, m);
    }
    if (st != DT_OK) {
        dt_manifest_fini(m);
        return st;
    }
    m->info.valid = true;
    return DT_OK;
}

/* ---- all bytes of one folder ---- */

static dt_status verify_file(const char *dir, const dt_manifest_file *f, mapped *map)
{
    char path[DT_CKPT_PATH_BYTES], hex[65];
    if (!join_path(dir, f->name, path)) {
        return fail_too_long(dir);
    }
    if (f->bytes > 0) {
        DT_TRY(report_missing_as_damage(dt_fs_map(path, &map->bytes, &map->n)));
    }
    if (map->n != f->bytes) {
        return DT_FAIL(DT_EDATA, "%s has %zu bytes, its manifest has %llu", path, map->n, (unsigned long long)f->bytes);
    }
    dt_sha256 sha;
    dt_sha256_init(&sha);
    for (uint32_t i = 0; i < f->n_crc; i++) {
        const size_t at = (size_t)i * DT_MANIFEST_CHUNK, left = map->n - at;
        const size_t n = left < DT_MANIFEST_CHUNK ? left : DT_MANIFEST_CHUNK;
        const uint8_t *chunk = (const uint8_t *)map->bytes + at;
        if (dt_crc32c(0, chunk, n) != f->crc[i]) {
            return DT_FAIL(DT_EDATA, "%s is damaged between bytes %zu and %zu (crc32c)", path, at, at + n);
        }
        dt_sha256_add(&sha, chunk, n);
    }
    uint8_t digest[32];
    dt_sha256_end(&sha, digest);
    dt_hex(digest, sizeof(digest), hex);
    return strcmp(hex, f->sha256) == 0 ? DT_OK : DT_FAIL(DT_EDATA, "%s is damaged (sha256)", path);
}

static const mapped *find_mapped(const dt_ckpt *c, const char *name)
{
    const dt_manifest_file *f = dt_manifest_find(&c->m, name);
    return f != NULL ? &c->map[f - c->m.file] : NULL;
}

static dt_status open_tensors(const dt_ckpt *c, const char *name, dt_safetensors **out_p)
{
    char path[DT_CKPT_PATH_BYTES];
    if (!join_path(c->m.info.path, name, path)) {
        return fail_too_long(c->m.info.path);
    }
    const mapped *map = find_mapped(c, name);
    return dt_safetensors_open_mem(map->bytes, map->n, path, out_p);
}

static dt_status open_shards(dt_ckpt *c, uint32_t n)
{
    dt_safetensors **part = dt_alloc_n(n, sizeof(dt_safetensors *));
    dt_status st = part != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %u shards", n);
    for (uint32_t i = 0; i < n && st == DT_OK; i++) {
        dt_shard_name name;
        dt_shard_file_name(i, n, name);
        st = open_tensors(c, name, &part[i]);
    }
    char path[DT_CKPT_PATH_BYTES];
    if (st == DT_OK && !join_path(c->m.info.path, "optim-*.safetensors", path)) {
        st = fail_too_long(c->m.info.path);
    }
    if (st == DT_OK) {
        st = dt_safetensors_join(part, n, path, &c->optim);
    } else {
        for (uint32_t i = 0; i < n && part != NULL; i++) {
            dt_safetensors_close(part[i]);
        }
    }
    dt_free(part);
    return st;
}

static dt_status open_optim(dt_ckpt *c)
{
    const uint32_t n = dt_manifest_count_shards(&c->m);
    return n == 1 ? open_tensors(c, "optim.safetensors", &c->optim) : open_shards(c, n);
}

/* What a manifest may list: for weights alone (init-from), for acting with them (eval, export), for a resume, or for
 * nothing that dtrain does. */
typedef enum use { FOR_WEIGHTS, FOR_ACTING, FOR_RESUME, FOR_NOTHING } use;

static const struct {
    const char *name;
    use use;
} host_blobs[DT_CKPT_BLOBS] = {[DT_BLOB_PHASE] = {NULL, FOR_ACTING},
                               [DT_BLOB_ROLLOUT] = {"rollout", FOR_RESUME},
                               [DT_BLOB_NORMALISER] = {"normaliser", FOR_WEIGHTS},
                               [DT_BLOB_REPLAY] = {"replay", FOR_RESUME},
                               [DT_BLOB_OPPONENTS] = {"opponents", FOR_RESUME},
                               [DT_BLOB_RECORDS] = {"replay-records", FOR_RESUME},
                               [DT_BLOB_STEP_INPUTS] = {"step-inputs", FOR_ACTING}};

const char *dt_ckpt_blob_name(uint32_t blob)
{
    return host_blobs[blob].name;
}

/* "plugin-<blob>.bin", "plugin-<blob>-00001-of-00002.bin" */
static bool is_of_blob(const char *file, const char *blob)
{
    const size_t n = strlen("plugin-"), bytes = strlen(blob);
    if (strncmp(file, "plugin-", n) != 0 || strncmp(file + n, blob, bytes) != 0) {
        return false;
    }
    const char *rest = file + n + bytes;
    return strcmp(rest, ".bin") == 0 || dt_glob_match("-*-of-*.bin", rest);
}

static use use_of_file(const dt_manifest *m, const char *file)
{
    if (strcmp(file, "model.safetensors") == 0 || strcmp(file, "state.json") == 0 || strcmp(file, "config.cfg") == 0) {
        return FOR_WEIGHTS;
    }
    if (strncmp(file, "optim", 5) == 0) {
        return FOR_RESUME;
    }
    for (size_t i = 0; i < DT_CKPT_BLOBS; i++) {
        if (is_of_blob(file, host_blobs[i].name != NULL ? host_blobs[i].name : m->info.phase)) {
            return host_blobs[i].use;
        }
    }
    return FOR_NOTHING;
}

/* All bytes of what is read for this use; the others may be of any size, and are left alone. */
static dt_status verify_files(dt_ckpt *c, const char *dir, use wanted)
{
    uint32_t n_unknown = 0;
    for (uint32_t i = 0; i < c->m.n_files; i++) {
        const use is = use_of_file(&c->m, c->m.file[i].name);
        n_unknown += is == FOR_NOTHING;
        DT_TRY(is <= wanted ? verify_file(dir, &c->m.file[i], &c->map[i]) : DT_OK);
    }
    if (n_unknown > 0 && wanted < FOR_NOTHING) {
        dt_log(DT_LOG_WARN, "%s: %u of its %u files are not needed here: they are neither read nor checked", dir,
               n_unknown, c->m.n_files);
    }
    return DT_OK;
}

static dt_status open_step(const char *dir, use wanted, dt_ckpt **out_p)
{
    dt_ckpt *c = dt_alloc(sizeof(*c));
    if (c == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for opening checkpoint %s", dir);
    }
    dt_status st = read_manifest(dir, &c->m);
    if (st == DT_OK) {
        st = verify_files(c, dir, wanted);
    }
    if (st == DT_OK) {
        st = open_tensors(c, "model.safetensors", &c->model);
    }
    if (st == DT_OK && wanted >= FOR_RESUME) {
        st = open_optim(c);
    }
    if (st != DT_OK) {
        dt_ckpt_close(c);
        return st;
    }
    *out_p = c;
    return DT_OK;
}

void dt_ckpt_close(dt_ckpt *c)
{
    if (c == NULL) {
        return;
    }
    dt_safetensors_close(c->model);
    dt_safetensors_close(c->optim);
    for (uint32_t i = 0; i < DT_MANIFEST_MAX_FILES; i++) {
        dt_fs_unmap(c->map[i].bytes, c->map[i].n);
    }
    dt_manifest_fini(&c->m);
    dt_free(c);
}

/* ---- finding ---- */

static bool has_file(const char *dir, const char *name)
{
    char path[DT_CKPT_PATH_BYTES];
    return join_path(dir, name, path) && dt_fs_is_file(path);
}

/* What path is: a step folder, or the folder of checkpoints in out. */
static dt_status resolve_path(const char *path, bool *is_step_p, char out[DT_CKPT_PATH_BYTES])
{
    char name[32];
    struct stat info;
    if (!dt_fs_is_dir(path)) {
        DT_TRY(dt_fs_check_access(path));
        return DT_FAIL(DT_ENOTFOUND, "no run or checkpoint at %s", path);
    }
    DT_TRY(dt_beneath_guard(path)); /* for good: it may have another author */
    last_path_part(path, name, sizeof(name));
    *is_step_p = is_step_name(name) || has_file(path, "MANIFEST.json");
    if (!join_path(path, "checkpoints", out)) {
        return fail_too_long(path);
    }
    if (!*is_step_p && dt_beneath_stat(out, &info) == 0 && S_ISLNK(info.st_mode)) {
        return DT_FAIL(DT_EDATA, "%s: %s", out, dt_beneath_strerror(ELOOP));
    }
    if (*is_step_p || !dt_fs_is_dir(out)) {
        snprintf(out, DT_CKPT_PATH_BYTES, "%s", path);
    }
    return DT_OK;
}

/* Names of step folders, oldest first: names is as dt_fs_list gave it, with the others freed and taken out. */
static dt_status list_steps(const char *folder, char ***names_p, size_t *n_p)
{
    char **names = NULL;
    size_t n = 0, n_steps = 0;
    DT_TRY(dt_fs_list(folder, &names, &n));
    for (size_t i = 0; i < n; i++) {
        if (is_step_name(names[i])) {
            names[n_steps++] = names[i];
        } else {
            dt_free(names[i]);
        }
    }
    *names_p = names;
    *n_p = n_steps;
    return DT_OK;
}

/* Out of the way into a folder below, under a name of its own. */
static dt_status move_to_quarantine(const char *folder, const char *name, const char *below)
{
    char from[DT_CKPT_PATH_BYTES], to[DT_CKPT_PATH_BYTES], aside[DT_CKPT_PATH_BYTES];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (!join_path(folder, name, from) || !join_path(folder, below, aside) ||
        snprintf(to, sizeof(to), "%s/%s.%lld", aside, name, (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000) >=
            (int)sizeof(to)) {
        return fail_too_long(folder);
    }
    DT_TRY(dt_fs_mkdirs(aside));
    DT_TRY(dt_fs_rename(from, to));
    return dt_fs_sync_dir(folder);
}

/* Names in a folder, of checkpoints alone or all of them; none where there is no such folder. */
static dt_status count_names(const char *folder, bool is_steps, uint32_t *n_p)
{
    char **names = NULL;
    size_t n = 0;
    *n_p = 0;
    if (!dt_fs_is_dir(folder)) {
        return DT_OK;
    }
    DT_TRY(is_steps ? list_steps(folder, &names, &n) : dt_fs_list(folder, &names, &n));
    dt_fs_list_free(names, n);
    *n_p = (uint32_t)n;
    return DT_OK;
}

/* Nothing to open in a folder: there never was, or what was there turned out to be damaged. */
static dt_status fail_nothing_found(const char *folder)
{
    char aside[DT_CKPT_PATH_BYTES];
    uint32_t n = 0;
    if (!join_path(folder, "quarantine", aside)) {
        return fail_too_long(folder);
    }
    DT_TRY(count_names(aside, false, &n));
    return n == 0 ? DT_FAIL(DT_ENOTFOUND, "no checkpoint in %s", folder)
                  : DT_FAIL(DT_EDATA, "no checkpoint in %s: all were damaged and are now in %s", folder, aside);
}

/* The newest that opens. */
static dt_status open_newest_valid(const char *folder, use wanted, bool quarantine, dt_str *skipped, dt_ckpt **out_p)
{
    char **names = NULL, dir[DT_CKPT_PATH_BYTES], first[512] = "";
    size_t n = 0, n_skipped = 0;
    DT_TRY(list_steps(folder, &names, &n));
    dt_status st = DT_ENOTFOUND;
    for (size_t i = n; i-- > 0;) {
        st = join_path(folder, names[i], dir) ? open_step(dir, wanted, out_p) : fail_too_long(folder);
        if (st != DT_EDATA && st != DT_EIO) {
            break;
        }
        char why[512];
        snprintf(why, sizeof(why), "%s", dt_error_text());
        if (first[0] == '\0') {
            snprintf(first, sizeof(first), "%s", why);
        }
        const char *fate = "";
        if (quarantine && st == DT_EDATA) { /* a read error may pass; damage does not */
            fate = move_to_quarantine(folder, names[i], "quarantine") == DT_OK ? "; moved to quarantine"
                                                                               : "; could not be moved";
        }
        if (skipped != NULL && n_skipped++ < DT_CKPT_MAX_SKIPS_LISTED) {
            dt_str_addf(skipped, "%s skipped: %s%s\n", names[i], why, fate);
        }
    }
    if (n_skipped > DT_CKPT_MAX_SKIPS_LISTED) {
        dt_str_addf(skipped, "%zu more skipped\n", n_skipped - DT_CKPT_MAX_SKIPS_LISTED);
    }
    dt_fs_list_free(names, n);
    if (n == 0) {
        return fail_nothing_found(folder);
    }
    if (st == DT_EDATA || st == DT_EIO) {
        return DT_FAIL(DT_EDATA, "none of the %zu checkpoints in %s is valid: %s", n, folder, first);
    }
    return st;
}

static dt_status open_checkpoint(const char *path, use wanted, bool quarantine, dt_str *skipped, dt_ckpt **out_p)
{
    bool is_step = false;
    char folder[DT_CKPT_PATH_BYTES];
    DT_TRY(resolve_path(path, &is_step, folder));
    return is_step ? open_step(folder, wanted, out_p) : open_newest_valid(folder, wanted, quarantine, skipped, out_p);
}

dt_status dt_ckpt_open(const char *path, bool quarantine, dt_str *skipped, dt_ckpt **out_p)
{
    return open_checkpoint(path, FOR_RESUME, quarantine, skipped, out_p);
}

dt_status dt_ckpt_open_weights(const char *path, dt_str *skipped, dt_ckpt **out_p)
{
    return open_checkpoint(path, FOR_WEIGHTS, false, skipped, out_p);
}

dt_status dt_ckpt_open_acting(const char *dir, dt_ckpt **out_p)
{
    return open_step(dir, FOR_ACTING, out_p);
}

dt_status dt_ckpt_supersede_later(const char *run_dir, uint64_t step, uint32_t *n_p)
{
    char folder[DT_CKPT_PATH_BYTES], **names = NULL;
    size_t n = 0;
    *n_p = 0;
    if (!join_path(run_dir, "checkpoints", folder)) {
        return fail_too_long(run_dir);
    }
    if (!dt_fs_is_dir(folder)) {
        return DT_OK;
    }
    DT_TRY(list_steps(folder, &names, &n));
    dt_status st = DT_OK;
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        if (strtoull(names[i] + strlen("step-"), NULL, 10) > step) {
            st = move_to_quarantine(folder, names[i], "superseded");
            *n_p += st == DT_OK;
        }
    }
    dt_fs_list_free(names, n);
    return st;
}

/* ---- what is inside ---- */

const dt_ckpt_info *dt_ckpt_info_get(const dt_ckpt *c)
{
    return &c->m.info;
}

const dt_safetensors *dt_ckpt_model(const dt_ckpt *c)
{
    return c->model;
}

dt_status dt_ckpt_load_model(const dt_ckpt *c, const dt_ckpt_tensor *want, uint32_t n, uint32_t flags)
{
    return dt_safetensors_load(c->model, want, n, flags);
}

dt_status dt_ckpt_load_optim(const dt_ckpt *c, const dt_ckpt_tensor *want, uint32_t n, uint32_t flags)
{
    return dt_safetensors_load(c->optim, want, n, flags);
}

const char *dt_ckpt_state(const dt_ckpt *c, size_t *bytes_p)
{
    const mapped *map = find_mapped(c, "state.json");
    *bytes_p = map != NULL ? map->n : 0;
    return map == NULL ? NULL : map->bytes != NULL ? map->bytes : "";
}

static uint64_t read_little_endian(const uint8_t *p, int n)
{
    uint64_t v = 0;
    for (int i = n - 1; i >= 0; i--) {
        v = v << 8 | p[i];
    }
    return v;
}

bool dt_ckpt_blob_find(const dt_ckpt *c, const char *name, dt_ckpt_blob *out_p)
{
    char file[DT_CKPT_NAME_BYTES + 40];
    if (snprintf(file, sizeof(file), "plugin-%s.bin", name) >= (int)sizeof(file)) {
        return false;
    }
    const mapped *map = find_mapped(c, file);
    if (map == NULL || map->n < 24 || memcmp(map->bytes, "dtblob1\n", 8) != 0) {
        return false;
    }
    const uint8_t *p = map->bytes;
    if (read_little_endian(p + 16, 8) != map->n - 24) {
        return false;
    }
    const dt_manifest_file *f = dt_manifest_find(&c->m, file);
    *out_p = (dt_ckpt_blob){
        .name = f->name, .version = (uint32_t)read_little_endian(p + 8, 4), .data = p + 24, .bytes = map->n - 24};
    return true;
}

/* One of n, where a checkpoint has it. */
static bool find_blob_part(const dt_ckpt *c, const char *name, uint32_t i, uint32_t n, dt_ckpt_blob *out_p)
{
    char numbered[DT_CKPT_NAME_BYTES + 24];
    const int bytes = n > 1 ? snprintf(numbered, sizeof(numbered), "%s-%05u-of-%05u", name, i + 1, n)
                            : snprintf(numbered, sizeof(numbered), "%s", name);
    return bytes < (int)sizeof(numbered) && dt_ckpt_blob_find(c, numbered, out_p);
}

uint32_t dt_ckpt_parts_find(const dt_ckpt *c, const char *name, dt_ckpt_blob *out)
{
    uint32_t n = 1;
    while (n <= DT_CKPT_MAX_SHARDS && !find_blob_part(c, name, 0, n, &out[0])) {
        n++;
    }
    for (uint32_t i = 1; i < n && n <= DT_CKPT_MAX_SHARDS; i++) {
        if (!find_blob_part(c, name, i, n, &out[i])) {
            return 0;
        }
    }
    return n <= DT_CKPT_MAX_SHARDS ? n : 0;
}

/* ---- looking ---- */

/* The manifest's info, or why there is none. Only a lack of memory is an error here. */
static dt_status read_info(const char *dir, dt_ckpt_info *out_p)
{
    dt_manifest *m = dt_alloc(sizeof(*m));
    if (m == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a manifest");
    }
    dt_status st = read_manifest(dir, m);
    if (st != DT_OK) {
        m->info = (dt_ckpt_info){.metric = (double)NAN};
        snprintf(m->info.path, sizeof(m->info.path), "%s", dir);
        snprintf(m->info.why, sizeof(m->info.why), "%s", dt_error_text());
        char name[32];
        last_path_part(dir, name, sizeof(name));
        int64_t step = 0;
        if (is_step_name(name) && dt_parse_i64(name + 5, &step)) {
            m->info.step = (uint64_t)step;
        }
    }
    *out_p = m->info;
    dt_manifest_fini(m);
    dt_free(m);
    return st == DT_ENOMEM ? st : DT_OK;
}

dt_status dt_ckpt_count(const char *run_dir, uint32_t *steps_p, uint32_t *damaged_p)
{
    char folder[DT_CKPT_PATH_BYTES], aside[DT_CKPT_PATH_BYTES];
    if (!join_path(run_dir, "checkpoints", folder) || !join_path(folder, "quarantine", aside)) {
        return fail_too_long(run_dir);
    }
    DT_TRY(count_names(folder, true, steps_p));
    return count_names(aside, false, damaged_p);
}

dt_status dt_ckpt_list(const char *path, dt_ckpt_info **out_p, uint32_t *n_p)
{
    bool is_step = false;
    char folder[DT_CKPT_PATH_BYTES], dir[DT_CKPT_PATH_BYTES], **names = NULL;
    size_t n = 1;
    DT_TRY(resolve_path(path, &is_step, folder));
    if (!is_step) {
        DT_TRY(list_steps(folder, &names, &n));
    }
    dt_status st = DT_OK;
    dt_ckpt_info *list = dt_alloc_n(n + 1, sizeof(*list));
    if (list == NULL) {
        st = DT_FAIL(DT_ENOMEM, "out of memory for a list of %zu checkpoints", n);
    }
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        if (is_step) {
            st = read_info(folder, &list[i]);
        } else {
            st = join_path(folder, names[i], dir) ? read_info(dir, &list[i]) : fail_too_long(folder);
        }
    }
    if (!is_step) {
        dt_fs_list_free(names, n);
    }
    if (st != DT_OK) {
        dt_free(list);
        return st;
    }
    *out_p = list;
    *n_p = (uint32_t)n;
    return DT_OK;
}

dt_status dt_ckpt_inspect(const char *path, dt_ckpt_info *out_p)
{
    dt_ckpt_info *list = NULL;
    uint32_t n = 0;
    bool is_step = false;
    char folder[DT_CKPT_PATH_BYTES];
    DT_TRY(resolve_path(path, &is_step, folder));
    DT_TRY(dt_ckpt_list(path, &list, &n));
    dt_status st = n == 0 ? fail_nothing_found(folder) : DT_EDATA;
    for (uint32_t i = n; i-- > 0;) {
        if (list[i].valid) {
            *out_p = list[i];
            st = DT_OK;
            break;
        }
    }
    if (n > 0 && st == DT_EDATA) {
        st = DT_FAIL(DT_EDATA, "none of the %u checkpoints in %s is valid: %s", n, path, list[n - 1].why);
    }
    dt_free(list);
    return st;
}

dt_status dt_ckpt_verify(const char *step_dir, dt_ckpt_info *out_p)
{
    dt_ckpt *c = NULL;
    if (!dt_fs_is_dir(step_dir)) {
        return DT_FAIL(DT_ENOTFOUND, "no checkpoint at %s", step_dir);
    }
    DT_TRY(open_step(step_dir, FOR_NOTHING, &c)); /* all of it */
    *out_p = c->m.info;
    dt_ckpt_close(c);
    return DT_OK;
}
