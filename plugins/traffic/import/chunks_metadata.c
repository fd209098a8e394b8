/* SPDX-License-Identifier: Apache-2.0
 *
 * metadata.json of a recording in chunks, and opening its documents. See chunks.h.
 */
#include <config.h>

#include "traffic/import/chunks.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FILES_MAX = 1 << 17, SITES_MAX = 1 << 16 };

/* ---- a document -------------------------------------------------------------------------------------------------- */

void dt_chunks_close(dt_chunks_document *d)
{
    dt_json_close(d->json);
    dt_source_close(d->source);
    *d = (dt_chunks_document){0};
}

dt_status dt_chunks_open_text(const void *bytes, size_t n_bytes, const char *name, dt_chunks_document *d)
{
    *d = (dt_chunks_document){0};
    DT_TRY(bytes != NULL ? dt_source_open_mem(bytes, n_bytes, name, &d->source) : dt_source_open(name, &d->source));
    dt_status st = dt_json_open(dt_source_read, d->source, name, &d->json);
    if (st != DT_OK) {
        dt_chunks_close(d);
    }
    return st;
}

dt_status dt_chunks_open(const char *path, dt_chunks_document *d)
{
    return dt_chunks_open_text(NULL, 0, path, d);
}

dt_status dt_chunks_path(const dt_chunks *c, const char *name, char out[DT_CHUNKS_PATH_BYTES])
{
    int n = snprintf(out, DT_CHUNKS_PATH_BYTES, "%s/%s", c->folder, name);
    return n > 0 && n < DT_CHUNKS_PATH_BYTES ? DT_OK : DT_FAIL(DT_EDATA, "the path %s/%s is too long", c->folder, name);
}

dt_status dt_chunks_read_members(dt_json *j, const char *what, const char *const *keys,
                                 dt_status (*member)(dt_json *, int, dt_chunks *), dt_chunks *c)
{
    uint32_t seen = 0;
    int which = 0;
    dt_status st;
    DT_TRY(dt_expect_object(j, what));
    while ((st = dt_expect_known_key(j, keys, &seen, &which)) == DT_OK) {
        DT_TRY(member(j, which, c));
    }
    return st == DT_DONE ? dt_expect_end(j) : st;
}

/* ---- metadata.json ----------------------------------------------------------------------------------------------- */

static dt_status add_file(dt_chunks *c, const char *name, int64_t announced)
{
    if (c->n_files == c->files_cap) {
        if (c->n_files == FILES_MAX) {
            return DT_FAIL(DT_EDATA, "%s holds more than %d chunks", c->folder, FILES_MAX);
        }
        int64_t cap = c->files_cap == 0 ? 64 : 2 * c->files_cap;
        void *file = dt_realloc(c->file, (size_t)cap * DT_CHUNKS_PATH_BYTES);
        c->file = file == NULL ? c->file : file;
        int64_t *count = file == NULL ? NULL : dt_realloc(c->announced, (size_t)cap * sizeof(*count));
        if (count == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " chunk names", cap);
        }
        c->announced = count;
        c->files_cap = cap;
    }
    snprintf(c->file[c->n_files], DT_CHUNKS_PATH_BYTES, "%s", name);
    c->announced[c->n_files++] = announced;
    return DT_OK;
}

static dt_status read_chunk_list(dt_json *j, dt_chunks *c)
{
    dt_status st;
    DT_TRY(dt_expect_array(j, "chunks"));
    while ((st = dt_expect_next_object(j, "a chunk")) == DT_OK) {
        static const char *const keys[] = {"file", "samples", NULL};
        char file[DT_CHUNKS_PATH_BYTES] = "";
        int64_t samples = -1;
        uint32_t seen = 0;
        int which = 0;
        while ((st = dt_expect_known_key(j, keys, &seen, &which)) == DT_OK) {
            DT_TRY(which == 0 ? dt_expect_str(j, keys[0], file, sizeof(file)) : dt_expect_i64(j, keys[1], &samples));
        }
        DT_TRY_DONE(st);
        if (file[0] == '\0' || file[0] == '/' || strstr(file, "..") != NULL) {
            return dt_json_fail(j, "the chunk's file \"%s\" is not a name inside the folder", file);
        }
        DT_TRY(add_file(c, file, samples));
    }
    c->has_list = true;
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_sites(dt_json *j, dt_chunks *c)
{
    char name[DT_CHUNKS_NAME_BYTES];
    dt_status st;
    DT_TRY(dt_expect_array(j, "sites"));
    while ((st = dt_expect_next_str(j, "a site", name, sizeof(name))) == DT_OK) {
        if (c->n_sites == c->sites_cap) {
            if (c->n_sites == SITES_MAX) {
                return dt_json_fail(j, "more than %d sites", SITES_MAX);
            }
            int64_t cap = c->sites_cap == 0 ? 16 : 2 * c->sites_cap;
            char **grown = dt_realloc(c->site, (size_t)cap * sizeof(*grown));
            if (grown == NULL) {
                return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " sites", cap);
            }
            c->site = grown;
            c->sites_cap = cap;
        }
        if ((c->site[c->n_sites] = dt_strdup(name)) == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for site %s", name);
        }
        c->n_sites++;
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_units(dt_json *j)
{
    static const char *const unit[][2] = {{"length", "m"}, {"speed", "m/s"}, {"angle", "rad"}};
    char key[DT_IN_KEY_BYTES], text[DT_CHUNKS_NAME_BYTES];
    dt_status st;
    DT_TRY(dt_expect_object(j, "units"));
    while ((st = dt_expect_key(j, key)) == DT_OK) {
        size_t i = 0;
        while (i < 3 && strcmp(key, unit[i][0]) != 0) {
            i++;
        }
        DT_TRY(dt_expect_str(j, key, text, sizeof(text)));
        if (i < 3 && strcmp(text, unit[i][1]) != 0) {
            return dt_json_fail(j, "the unit of %s is \"%s\", this layout supports only \"%s\"", key, text, unit[i][1]);
        }
    }
    return st == DT_DONE ? DT_OK : st;
}

enum { KEY_FORMAT, KEY_VERSION, KEY_RATE, KEY_UNITS, KEY_SITES, KEY_CHUNKS };
static const char *const metadata_keys[] = {"format", "version", "frame_rate_hz", "units", "sites", "chunks", NULL};

static dt_status read_metadata_member(dt_json *j, int which, dt_chunks *c)
{
    const char *key = metadata_keys[which];
    switch (which) {
    case KEY_FORMAT:
        return dt_expect_str(j, key, c->format, sizeof(c->format));
    case KEY_VERSION:
        DT_TRY(dt_expect_i64(j, key, &c->version));
        return c->version == 1 ? DT_OK
                               : dt_json_fail(j, "version %" PRId64 ", this program reads version 1", c->version);
    case KEY_RATE:
        DT_TRY(dt_expect_f64(j, key, &c->rate_hz, NULL));
        c->has_rate = true;
        return c->rate_hz >= DT_RATE_MIN_HZ && c->rate_hz <= DT_RATE_MAX_HZ
                   ? DT_OK
                   : dt_json_fail(j, "frame_rate_hz %g is outside [%g, %g]", c->rate_hz, DT_RATE_MIN_HZ,
                                  DT_RATE_MAX_HZ);
    case KEY_UNITS:
        return read_units(j);
    case KEY_SITES:
        return read_sites(j, c);
    default:
        return read_chunk_list(j, c);
    }
}

/* No list in metadata.json: every chunk_*.json of chunks/ or of the folder itself, in the order of their names. */
static dt_status list_folder(dt_chunks *c)
{
    char path[DT_CHUNKS_PATH_BYTES];
    DT_TRY(dt_chunks_path(c, "chunks", path));
    bool is_below = dt_fs_is_dir(path);
    char **names = NULL;
    size_t n = 0;
    dt_status st = dt_fs_list(is_below ? path : c->folder, &names, &n);
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        size_t bytes = strlen(names[i]);
        if (strncmp(names[i], "chunk_", 6) == 0 && bytes > 5 && strcmp(names[i] + bytes - 5, ".json") == 0) {
            char name[DT_CHUNKS_PATH_BYTES];
            snprintf(name, sizeof(name), "%s%s", is_below ? "chunks/" : "", names[i]);
            st = add_file(c, name, -1);
        }
    }
    dt_fs_list_free(names, n);
    return st;
}

dt_status dt_chunks_read_description(dt_chunks *c, dt_chunks_document *d, const char *path)
{
    dt_status st = dt_chunks_read_members(d->json, "metadata.json", metadata_keys, read_metadata_member, c);
    dt_chunks_close(d);
    DT_TRY(st);
    if (strcmp(c->format, "dtrain-chunks") != 0 || c->version == 0 || !c->has_rate) {
        return DT_FAIL(DT_EDATA,
                       "%s: needs \"format\":\"dtrain-chunks\", \"version\":1 and frame_rate_hz; format is "
                       "\"%s\"",
                       path, c->format);
    }
    return DT_OK;
}

dt_status dt_chunks_read_metadata(dt_chunks *c)
{
    char path[DT_CHUNKS_PATH_BYTES];
    dt_chunks_document d;
    DT_TRY(dt_chunks_path(c, "metadata.json", path));
    if (!dt_fs_is_file(path)) {
        return DT_FAIL(DT_EDATA,
                       "%s has no metadata.json, which a folder of chunks has, nor node_features.npy of arrays",
                       c->folder);
    }
    DT_TRY(dt_chunks_open(path, &d));
    DT_TRY(dt_chunks_read_description(c, &d, path));
    if (!c->has_list) {
        DT_TRY(list_folder(c));
    }
    return c->n_files > 0 ? DT_OK : DT_FAIL(DT_EDATA, "%s contains no data: there is no chunk", c->folder);
}
