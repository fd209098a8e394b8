/* SPDX-License-Identifier: Apache-2.0
 *
 * MANIFEST.json. See manifest.h. The two tables below name every field once, for writing and for reading.
 */
#include <config.h>

#include "state/checkpoint/manifest.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/print.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char format_name[] = "dtrain-checkpoint";

typedef struct text_field {
    const char *key;
    size_t offset, bytes;
} text_field;

#define TEXT(key, member)                                                                                              \
    {                                                                                                                  \
        key, offsetof(dt_ckpt_info, member), sizeof(((dt_ckpt_info *)0)->member)                                       \
    }
static const text_field text_fields[] = {
    TEXT("run", run),
    TEXT("phase", phase),
    TEXT("config_hash", config_hash),
    TEXT("phase_hash", phase_hash),
    TEXT("build", build),
    TEXT("cpu", cpu),
    TEXT("reduction", reduction),
    TEXT("metric_name", metric_name),
    TEXT("wall_time", wall_time),
    TEXT("weights_hash", weights_hash),
    TEXT("state_hash", state_hash),
};
enum { N_TEXTS = sizeof(text_fields) / sizeof(text_fields[0]) };

typedef struct number_field {
    const char *key;
    size_t offset;
    bool is_wide; /* uint64_t, else uint32_t */
} number_field;

static const number_field number_fields[] = {
    {"step", offsetof(dt_ckpt_info, step), true},         {"epoch", offsetof(dt_ckpt_info, epoch), true},
    {"phase_ms", offsetof(dt_ckpt_info, phase_ms), true}, {"phase_index", offsetof(dt_ckpt_info, phase_index), false},
    {"leaves", offsetof(dt_ckpt_info, leaves), false},    {"ranks", offsetof(dt_ckpt_info, ranks), false},
};
enum { N_NUMBERS = sizeof(number_fields) / sizeof(number_fields[0]) };

void dt_manifest_fini(dt_manifest *m)
{
    for (uint32_t i = 0; i < m->n_files; i++) {
        dt_free(m->file[i].crc);
    }
    m->n_files = 0;
}

dt_status dt_manifest_file_add_crc(dt_manifest_file *f, uint32_t crc)
{
    if (f->n_crc == f->cap_crc) {
        uint32_t cap = f->cap_crc == 0 ? 16 : f->cap_crc * 2;
        uint32_t *grown = dt_realloc(f->crc, cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for the checksums of %s", f->name);
        }
        f->crc = grown;
        f->cap_crc = cap;
    }
    f->crc[f->n_crc++] = crc;
    return DT_OK;
}

const dt_manifest_file *dt_manifest_find(const dt_manifest *m, const char *name)
{
    for (uint32_t i = 0; i < m->n_files; i++) {
        if (strcmp(m->file[i].name, name) == 0) {
            return &m->file[i];
        }
    }
    return NULL;
}

/* ---- writing ---- */

void dt_manifest_print(const dt_manifest *m, dt_str *out)
{
    const char *info = (const char *)&m->info;
    char hex[16];
    dt_json_out o = {.s = out};
    dt_json_obj(&o, NULL);
    dt_json_str(&o, "format", format_name);
    dt_json_i64(&o, "version", DT_MANIFEST_VERSION);
    for (int i = 0; i < N_NUMBERS; i++) {
        uint64_t wide = 0;
        uint32_t narrow = 0;
        memcpy(&wide, info + number_fields[i].offset, number_fields[i].is_wide ? sizeof(wide) : 0);
        memcpy(&narrow, info + number_fields[i].offset, number_fields[i].is_wide ? 0 : sizeof(narrow));
        dt_json_i64(&o, number_fields[i].key, (int64_t)(wide + narrow));
    }
    dt_json_bool(&o, "phase_end", m->info.phase_end);
    for (int i = 0; i < N_TEXTS; i++) {
        dt_json_str(&o, text_fields[i].key, info + text_fields[i].offset);
    }
    dt_json_f64(&o, "metric", m->info.metric);
    dt_json_arr(&o, "plugins");
    for (uint32_t i = 0; i < m->info.n_plugins; i++) {
        dt_json_obj(&o, NULL);
        dt_json_str(&o, "name", m->info.plugins[i].name);
        dt_json_str(&o, "version", m->info.plugins[i].version);
        dt_json_str(&o, "abi", m->info.plugins[i].abi);
        dt_json_end(&o, '}');
    }
    dt_json_end(&o, ']');
    dt_json_arr(&o, "files");
    for (uint32_t i = 0; i < m->n_files; i++) {
        const dt_manifest_file *f = &m->file[i];
        dt_json_obj(&o, NULL);
        dt_json_str(&o, "name", f->name);
        dt_json_i64(&o, "bytes", (int64_t)f->bytes);
        dt_json_str(&o, "sha256", f->sha256);
        dt_json_arr(&o, "crc32c");
        for (uint32_t k = 0; k < f->n_crc; k++) {
            snprintf(hex, sizeof(hex), "%08x", f->crc[k]);
            dt_json_str(&o, NULL, hex);
        }
        dt_json_end(&o, ']');
        dt_json_end(&o, '}');
    }
    dt_json_end(&o, ']');
    dt_json_end(&o, '}');
    dt_str_add(out, "\n");
}

/* ---- reading ---- */

/* The text that comes next, into a field of its own size. */
static dt_status read_text(dt_json *j, const char *key, char *out, size_t bytes)
{
    dt_json_token t;
    DT_TRY(dt_json_next(j, &t));
    if (t.kind != DT_JSON_STRING || t.bytes >= bytes) {
        return dt_json_fail(j, "%s must be a string of less than %zu bytes", key, bytes);
    }
    memcpy(out, t.text, t.bytes + 1);
    return DT_OK;
}

static dt_status read_count(dt_json *j, const char *key, uint64_t most, uint64_t *out_p)
{
    dt_json_token t;
    DT_TRY(dt_json_next(j, &t));
    if (t.kind != DT_JSON_NUMBER || !t.is_integer || t.integer < 0 || (uint64_t)t.integer > most) {
        return dt_json_fail(j, "%s must be a whole number from 0 to %llu", key, (unsigned long long)most);
    }
    *out_p = (uint64_t)t.integer;
    return DT_OK;
}

static dt_status open_list(dt_json *j, const char *key)
{
    dt_json_token t;
    DT_TRY(dt_json_next(j, &t));
    return t.kind == DT_JSON_ARRAY ? DT_OK : dt_json_fail(j, "%s must be a list", key);
}

static dt_status read_plugin(dt_json *j, dt_ckpt_plugin *p)
{
    dt_json_token t;
    for (;;) {
        DT_TRY(dt_json_next(j, &t));
        if (t.kind == DT_JSON_OBJECT_END) {
            return DT_OK;
        }
        if (strcmp(t.text, "name") == 0) {
            DT_TRY(read_text(j, "name", p->name, sizeof(p->name)));
        } else if (strcmp(t.text, "version") == 0) {
            DT_TRY(read_text(j, "version", p->version, sizeof(p->version)));
        } else if (strcmp(t.text, "abi") == 0) {
            DT_TRY(read_text(j, "abi", p->abi, sizeof(p->abi)));
        } else {
            DT_TRY(dt_json_skip(j));
        }
    }
}

static dt_status read_plugins(dt_json *j, dt_manifest *m)
{
    dt_json_token t;
    DT_TRY(open_list(j, "plugins"));
    for (;;) {
        DT_TRY(dt_json_next(j, &t));
        if (t.kind == DT_JSON_ARRAY_END) {
            return DT_OK;
        }
        if (t.kind != DT_JSON_OBJECT || m->info.n_plugins == DT_CKPT_MAX_PLUGINS) {
            return dt_json_fail(j, "plugins must be a list of at most %d objects", DT_CKPT_MAX_PLUGINS);
        }
        DT_TRY(read_plugin(j, &m->info.plugins[m->info.n_plugins++]));
    }
}

static bool parse_crc(const char *text, uint32_t *out_p)
{
    int64_t v = 0;
    char hex[16];
    if (strlen(text) != 8 || strspn(text, "0123456789abcdef") != 8) {
        return false;
    }
    snprintf(hex, sizeof(hex), "0x%s", text);
    *out_p = dt_parse_i64(hex, &v) ? (uint32_t)v : 0;
    return true;
}

static dt_status read_file(dt_json *j, dt_manifest_file *f)
{
    dt_json_token t;
    for (;;) {
        DT_TRY(dt_json_next(j, &t));
        if (t.kind == DT_JSON_OBJECT_END) {
            break;
        }
        if (strcmp(t.text, "name") == 0) {
            DT_TRY(read_text(j, "name", f->name, sizeof(f->name)));
        } else if (strcmp(t.text, "bytes") == 0) {
            DT_TRY(read_count(j, "bytes", INT64_MAX, &f->bytes));
        } else if (strcmp(t.text, "sha256") == 0) {
            DT_TRY(read_text(j, "sha256", f->sha256, sizeof(f->sha256)));
        } else if (strcmp(t.text, "crc32c") == 0) {
            DT_TRY(open_list(j, "crc32c"));
            for (;;) {
                uint32_t crc = 0;
                DT_TRY(dt_json_next(j, &t));
                if (t.kind == DT_JSON_ARRAY_END) {
                    break;
                }
                if (t.kind != DT_JSON_STRING || !parse_crc(t.text, &crc)) {
                    return dt_json_fail(j, "crc32c must be a list of strings of 8 hexadecimal digits");
                }
                DT_TRY(dt_manifest_file_add_crc(f, crc));
            }
        } else {
            DT_TRY(dt_json_skip(j));
        }
    }
    char shown[sizeof(f->name)];
    snprintf(shown, sizeof(shown), "%s", f->name);
    dt_mask_text(shown, true);
    if (f->name[0] == '\0' || f->name[0] == '.' || strchr(f->name, '/') != NULL || strcmp(shown, f->name) != 0) {
        return dt_json_fail(j, "\"%s\" is not a plain file name", f->name);
    }
    if (strlen(f->sha256) != 64 || f->n_crc != f->bytes / DT_MANIFEST_CHUNK + (f->bytes % DT_MANIFEST_CHUNK != 0)) {
        return dt_json_fail(j, "%s has %u checksums for %llu bytes", f->name, f->n_crc, (unsigned long long)f->bytes);
    }
    return DT_OK;
}

static dt_status read_files(dt_json *j, dt_manifest *m)
{
    dt_json_token t;
    DT_TRY(open_list(j, "files"));
    for (;;) {
        DT_TRY(dt_json_next(j, &t));
        if (t.kind == DT_JSON_ARRAY_END) {
            return DT_OK;
        }
        if (t.kind != DT_JSON_OBJECT || m->n_files == DT_MANIFEST_MAX_FILES) {
            return dt_json_fail(j, "files must be a list of at most %d objects", DT_MANIFEST_MAX_FILES);
        }
        DT_TRY(read_file(j, &m->file[m->n_files++]));
        m->info.bytes += m->file[m->n_files - 1].bytes;
    }
}

/* The field whose key was just read. */
static dt_status read_field(dt_json *j, const char *key, dt_manifest *m, uint32_t *version_p)
{
    char *info = (char *)&m->info;
    char format[sizeof(format_name) + 8] = "";
    for (int i = 0; i < N_TEXTS; i++) {
        if (strcmp(key, text_fields[i].key) == 0) {
            return read_text(j, text_fields[i].key, info + text_fields[i].offset, text_fields[i].bytes);
        }
    }
    uint64_t v = 0;
    for (int i = 0; i < N_NUMBERS; i++) {
        if (strcmp(key, number_fields[i].key) == 0) {
            const bool is_wide = number_fields[i].is_wide;
            DT_TRY(read_count(j, number_fields[i].key, is_wide ? INT64_MAX : UINT32_MAX, &v));
            const uint32_t narrow = (uint32_t)v;
            memcpy(info + number_fields[i].offset, is_wide ? (const void *)&v : &narrow,
                   is_wide ? sizeof(v) : sizeof(narrow));
            return DT_OK;
        }
    }
    if (strcmp(key, "format") == 0) {
        DT_TRY(read_text(j, "format", format, sizeof(format)));
        return strcmp(format, format_name) == 0
                   ? DT_OK
                   : dt_json_fail(j, "format is \"%s\", expected \"%s\"", format, format_name);
    }
    if (strcmp(key, "version") == 0) {
        DT_TRY(read_count(j, "version", UINT32_MAX, &v));
        *version_p = (uint32_t)v;
        return v == DT_MANIFEST_VERSION ? DT_OK
                                        : dt_json_fail(j, "checkpoint format %llu, this dtrain reads format %d",
                                                       (unsigned long long)v, DT_MANIFEST_VERSION);
    }
    if (strcmp(key, "plugins") == 0) {
        return read_plugins(j, m);
    }
    if (strcmp(key, "files") == 0) {
        return read_files(j, m);
    }
    dt_json_token t;
    if (strcmp(key, "phase_end") == 0) {
        DT_TRY(dt_json_next(j, &t));
        m->info.phase_end = t.kind == DT_JSON_TRUE;
        return t.kind == DT_JSON_TRUE || t.kind == DT_JSON_FALSE ? DT_OK
                                                                 : dt_json_fail(j, "phase_end must be true or false");
    }
    if (strcmp(key, "metric") == 0) {
        DT_TRY(dt_json_next(j, &t));
        m->info.metric = t.kind == DT_JSON_NUMBER ? t.number : (double)NAN;
        return t.kind == DT_JSON_NUMBER || t.kind == DT_JSON_NULL ? DT_OK
                                                                  : dt_json_fail(j, "metric must be a number or null");
    }
    return dt_json_skip(j);
}

static dt_status parse_manifest(dt_json *j, dt_manifest *m)
{
    dt_json_token t;
    uint32_t version = 0;
    m->info.metric = (double)NAN;
    DT_TRY(dt_json_next(j, &t));
    if (t.kind != DT_JSON_OBJECT) {
        return dt_json_fail(j, "a manifest must be an object");
    }
    for (;;) {
        DT_TRY(dt_json_next(j, &t));
        if (t.kind == DT_JSON_OBJECT_END) {
            break;
        }
        char key[64];
        snprintf(key, sizeof(key), "%s", t.text);
        DT_TRY(read_field(j, key, m, &version));
    }
    DT_TRY(dt_json_next(j, &t));
    if (version == 0 || m->n_files == 0) {
        return dt_json_fail(j, "a manifest needs version and files");
    }
    return DT_OK;
}

dt_status dt_manifest_parse(const char *text, size_t bytes, const char *name, dt_manifest *m)
{
    dt_json *j = NULL;
    DT_TRY(dt_json_open_mem(text, bytes, name, &j));
    dt_status st = parse_manifest(j, m);
    dt_json_close(j);
    if (st != DT_OK) {
        dt_manifest_fini(m);
    }
    return st;
}
