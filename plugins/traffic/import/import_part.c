/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/import/import_part.h"
#include "traffic/import/columns.h"
#include "traffic/text/json_reader.h"
#include "traffic/import/recording_meta.h"
#include "base/beneath.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PART_VERSION = 3, PIECE_BYTES = 1 << 18, TEXT_BYTES = 64 << 20, NAME_BYTES = 2048, DEPTH = 2 };

/* ---- key --------------------------------------------------------------------------------------------------------- */

static void add_stat(dt_str *out, const char *path, const struct stat *info)
{
    dt_str_addf(out, "%zu %s %lld %lld.%09ld\n", strlen(path), path, (long long)info->st_size,
                (long long)info->st_mtim.tv_sec, info->st_mtim.tv_nsec);
}

/* A file, or all files of a folder, so many levels deep. */
static dt_status add_file(dt_str *out, const char *path, int depth)
{
    struct stat info;
    char **names = NULL;
    size_t n = 0;
    if (dt_beneath_stat(path, &info) != 0) {
        return DT_FAIL(errno == ENOENT ? DT_ENOTFOUND : DT_EIO, "cannot examine %s: %s", path, strerror(errno));
    }
    if (!S_ISDIR(info.st_mode)) {
        add_stat(out, path, &info);
        return DT_OK;
    }
    if (depth == 0) {
        return DT_OK;
    }
    DT_TRY(dt_fs_list(path, &names, &n));
    dt_status st = DT_OK;
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        dt_str below = {0};
        dt_str_addf(&below, "%s/%s", path, names[i]);
        st = dt_str_status(&below);
        if (st == DT_OK) {
            st = add_file(out, dt_str_text(&below), depth - 1);
        }
        dt_str_fini(&below);
    }
    dt_fs_list_free(names, n);
    return st;
}

static dt_status add_named(dt_str *out, const char *what, const char *path)
{
    const bool is_given = path != NULL && path[0] != '\0';
    dt_str_addf(out, "%s %s\n", what, is_given ? path : "");
    return is_given ? add_file(out, path, DEPTH) : DT_OK;
}

/* The table next to a recording of highD, inD or rounD, where there is one. */
static dt_status add_meta(dt_str *out, const char *src)
{
    dt_str path = {0};
    dt_status st = dt_recording_meta_path(src, &path);
    if (st == DT_OK && dt_fs_is_file(dt_str_text(&path))) {
        st = add_file(out, dt_str_text(&path), 0);
    }
    dt_str_fini(&path);
    if (st == DT_ENOTFOUND) {
        dt_error_clear();
        return DT_OK;
    }
    return st;
}

static const char *text_or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static dt_status describe_sources(const char *const *src, uint32_t n_src, const dt_import_options *opt, dt_str *out)
{
    dt_str_addf(out, "dtrain %s part %d store %d\n", PACKAGE_VERSION, PART_VERSION, DT_STORE_VERSION);
    dt_str_addf(out, "columns %s\nsite %s\norigin %s\noffset %s\n", text_or_empty(opt->columns),
                text_or_empty(opt->site), text_or_empty(opt->map_origin), text_or_empty(opt->map_offset));
    dt_str_addf(out, "rate %a radius %a smooth %a neighbours %" PRIu32 " unordered %d\n", opt->frame_rate_hz,
                opt->radius_m, opt->smooth_s, opt->k_max, opt->is_unordered);
    DT_TRY(add_named(out, "map", opt->map));
    DT_TRY(add_named(out, "types", opt->types));
    for (uint32_t i = 0; i < n_src; i++) {
        DT_TRY(add_file(out, src[i], 0));
        DT_TRY(add_meta(out, src[i]));
    }
    return dt_str_status(out);
}

dt_status dt_part_key(const char *const *src, uint32_t n_src, const dt_import_options *opt, char key[DT_PART_KEY_BYTES])
{
    dt_str text = {0};
    const dt_status st = describe_sources(src, n_src, opt, &text);
    if (st == DT_OK) {
        dt_sha256 hash;
        uint8_t sum[32];
        dt_sha256_init(&hash);
        dt_sha256_add(&hash, text.text, text.bytes);
        dt_sha256_end(&hash, sum);
        dt_hex(sum, sizeof(sum), key);
    }
    dt_str_fini(&text);
    return st;
}

/* ---- digest ------------------------------------------------------------------------------------------------------ */

/* The next piece, whole unless the file ends; -1: errno. */
static ssize_t read_piece(int fd, unsigned char *room)
{
    size_t got = 0;
    ssize_t n = 1;
    while (got < PIECE_BYTES && n != 0) {
        n = read(fd, room + got, PIECE_BYTES - got);
        if (n < 0 && errno != EINTR) {
            return -1;
        }
        if (n > 0) {
            got += (size_t)n;
        }
    }
    return (ssize_t)got;
}

static dt_status hash_file(const char *path, unsigned char *room, uint64_t *hash)
{
    int fd = -1;
    ssize_t n = 0;
    DT_TRY(dt_fs_open(path, O_RDONLY, &fd));
    while ((n = read_piece(fd, room)) > 0) {
        *hash = dt_hash64(room, (size_t)n, *hash);
    }
    const int reason = errno;
    close(fd);
    return n == 0 ? DT_OK : DT_FAIL(DT_EIO, "cannot read %s: %s", path, strerror(reason));
}

static dt_status join_path(const char *folder, const char *name, dt_str *out)
{
    dt_str_clear(out);
    dt_str_addf(out, "%s/%s", folder, name);
    return dt_str_status(out);
}

/* The line that the file "digest" holds. */
static dt_status compute_digest_line(const char *folder, const char *key, dt_str *line)
{
    char **names = NULL;
    size_t n = 0;
    uint64_t hash = 0;
    dt_str path = {0};
    unsigned char *room = dt_alloc(PIECE_BYTES);
    dt_status st = room == NULL ? DT_FAIL(DT_ENOMEM, "no memory to read %s", folder) : dt_fs_list(folder, &names, &n);
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        if (strcmp(names[i], "digest") == 0) {
            continue;
        }
        hash = dt_hash64(names[i], strlen(names[i]), hash);
        st = join_path(folder, names[i], &path);
        if (st == DT_OK) {
            st = hash_file(dt_str_text(&path), room, &hash);
        }
    }
    dt_fs_list_free(names, n);
    dt_free(room);
    dt_str_fini(&path);
    dt_str_addf(line, "%s %016" PRIx64 "\n", key, hash);
    return st == DT_OK ? dt_str_status(line) : st;
}

bool dt_part_is_finished(const char *folder, const char *key)
{
    dt_str path = {0}, line = {0};
    char *text = NULL;
    size_t bytes = 0;
    dt_error kept;
    dt_error_save(&kept, DT_OK); /* why it is not finished is no error */
    dt_status st = join_path(folder, "digest", &path);
    if (st == DT_OK) {
        st = dt_fs_is_file(dt_str_text(&path)) ? dt_fs_read_all(dt_str_text(&path), NAME_BYTES, &text, &bytes)
                                               : DT_ENOTFOUND;
    }
    if (st == DT_OK && strncmp(text, key, strlen(key)) == 0) {
        st = compute_digest_line(folder, key, &line);
    }
    const bool is_so = st == DT_OK && strcmp(text, dt_str_text(&line)) == 0;
    (void)!dt_error_restore(&kept);
    dt_free(text);
    dt_str_fini(&path);
    dt_str_fini(&line);
    return is_so;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static dt_status write_text(const char *folder, const char *name, const dt_str *text)
{
    dt_str path = {0};
    dt_status st = join_path(folder, name, &path);
    if (st == DT_OK && text->bytes > 0) {
        st = dt_fs_write_text(&path, text);
    }
    dt_str_fini(&path);
    return st;
}

static const char *const checked_key[DT_UNITS_N] = {"checked_speed", "checked_heading", "checked_accel"},
                         *const off_key[DT_UNITS_N] = {"off_speed", "off_heading", "off_accel"};

static void write_part_record(const dt_rows *rows, const dt_rows_report *report, dt_str *text)
{
    dt_json_out o = {.s = text};
    dt_json_obj(&o, NULL);
    dt_json_i64(&o, "rows", dt_rows_count(rows));
    dt_json_f64(&o, "rate_hz", dt_rows_rate(rows));
    dt_json_str(&o, "layout", dt_rows_layout(rows));
    dt_json_i64(&o, "runs", report->runs);
    dt_json_i64(&o, "repeats", report->repeats);
    dt_json_i64(&o, "no_length", report->no_length);
    dt_json_i64(&o, "no_heading", report->no_heading);
    dt_json_i64(&o, "no_width", report->no_width);
    dt_json_i64(&o, "no_accel", report->no_accel);
    dt_json_i64(&o, "unknown_heading", report->unknown_heading);
    dt_json_i64(&o, "axis_heading", report->axis_heading);
    dt_json_i64(&o, "fronts", report->fronts);
    for (int q = 0; q < DT_UNITS_N; q++) {
        dt_json_i64(&o, checked_key[q], report->checked[q]);
        dt_json_i64(&o, off_key[q], report->off[q]);
    }
    if (report->has_heading_off) {
        dt_json_f64(&o, "heading_off", report->heading_off);
    }
    dt_json_bool(&o, "is_heading_fixed", report->is_heading_fixed);
    dt_json_arr(&o, "scenes");
    for (int32_t i = 0; i < dt_rows_scenes(rows); i++) {
        int32_t file = 0;
        dt_json_obj(&o, NULL);
        dt_json_str(&o, "name", dt_rows_scene_name(rows, i, &file));
        dt_json_i64(&o, "file", file);
        dt_json_end(&o, '}');
    }
    dt_json_end(&o, ']');
    dt_json_end(&o, '}');
    dt_str_add(text, "\n");
}

dt_status dt_part_seal(const char *folder, const char *key, const dt_rows *rows, const dt_rows_report *report,
                       const dt_str *notes)
{
    dt_str text = {0}, line = {0};
    write_part_record(rows, report, &text);
    dt_status st = dt_str_status(&text);
    if (st == DT_OK) {
        st = write_text(folder, "part.json", &text);
    }
    if (st == DT_OK) {
        st = write_text(folder, "notes.txt", notes);
    }
    if (st == DT_OK) {
        st = write_text(folder, "warnings.txt", &report->warnings);
    }
    if (st == DT_OK) {
        st = compute_digest_line(folder, key, &line);
    }
    if (st == DT_OK) {
        st = write_text(folder, "digest", &line);
    }
    dt_str_fini(&text);
    dt_str_fini(&line);
    return st;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static dt_status read_text(const char *folder, const char *name, dt_str *out)
{
    dt_str path = {0};
    char *text = NULL;
    size_t bytes = 0;
    dt_status st = join_path(folder, name, &path);
    if (st == DT_OK && dt_fs_is_file(dt_str_text(&path))) {
        st = dt_fs_read_all(dt_str_text(&path), TEXT_BYTES, &text, &bytes);
    }
    dt_str_add_n(out, text != NULL ? text : "", bytes);
    dt_free(text);
    dt_str_fini(&path);
    return st == DT_OK ? dt_str_status(out) : st;
}

static dt_status add_scene(dt_json *j, dt_part_record *p)
{
    char key[DT_IN_KEY_BYTES], name[NAME_BYTES] = "";
    int64_t file = 0;
    int32_t number = 0;
    bool is_new = false;
    dt_status st;
    while ((st = dt_expect_key(j, key)) == DT_OK) {
        DT_TRY(strcmp(key, "name") == 0 ? dt_expect_str(j, key, name, sizeof(name)) : dt_expect_i64(j, key, &file));
    }
    DT_TRY_DONE(st);
    if (p->scenes.n == p->files_cap) {
        const int32_t cap = p->files_cap == 0 ? 64 : 2 * p->files_cap; /* of dt_names: at most DT_NAMES_MOST */
        int32_t *grown = dt_realloc(p->file, (size_t)cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %" PRId32 " scenes", cap);
        }
        p->file = grown;
        p->files_cap = cap;
    }
    DT_TRY(dt_names_add(&p->scenes, name, &number, &is_new));
    p->file[number] = (int32_t)file;
    return is_new && file >= 0 && file <= INT32_MAX ? DT_OK
                                                    : dt_json_fail(j, "scene %.60s is not a scene of a part", name);
}

static dt_status read_member(dt_json *j, const char *key, dt_part_record *p)
{
    const struct {
        const char *name;
        int64_t *to;
    } number[] = {{"rows", &p->rows},
                  {"runs", &p->report.runs},
                  {"repeats", &p->report.repeats},
                  {"no_length", &p->report.no_length},
                  {"no_heading", &p->report.no_heading},
                  {"no_width", &p->report.no_width},
                  {"no_accel", &p->report.no_accel},
                  {"unknown_heading", &p->report.unknown_heading},
                  {"axis_heading", &p->report.axis_heading},
                  {"fronts", &p->report.fronts}};
    for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++) {
        if (strcmp(key, number[i].name) == 0) {
            return dt_expect_i64(j, key, number[i].to);
        }
    }
    for (int q = 0; q < DT_UNITS_N; q++) {
        if (strcmp(key, checked_key[q]) == 0 || strcmp(key, off_key[q]) == 0) {
            return dt_expect_i64(j, key, key[0] == 'c' ? &p->report.checked[q] : &p->report.off[q]);
        }
    }
    if (strcmp(key, "rate_hz") == 0) {
        return dt_expect_f64(j, key, &p->rate_hz, NULL);
    }
    if (strcmp(key, "heading_off") == 0) {
        p->report.has_heading_off = true;
        return dt_expect_f64(j, key, &p->report.heading_off, NULL);
    }
    if (strcmp(key, "layout") == 0) {
        return dt_expect_str(j, key, p->layout, sizeof(p->layout));
    }
    if (strcmp(key, "is_heading_fixed") == 0) {
        return dt_expect_bool(j, key, &p->report.is_heading_fixed);
    }
    if (strcmp(key, "scenes") != 0) {
        return dt_json_fail(j, "a part has no \"%s\"", key);
    }
    dt_status st;
    DT_TRY(dt_expect_array(j, key));
    while ((st = dt_expect_next_object(j, "a scene")) == DT_OK) {
        DT_TRY(add_scene(j, p));
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status parse_part_record(dt_json *j, dt_part_record *out)
{
    char key[DT_IN_KEY_BYTES];
    dt_status st;
    DT_TRY(dt_expect_object(j, "part.json"));
    while ((st = dt_expect_key(j, key)) == DT_OK) {
        DT_TRY(read_member(j, key, out));
    }
    return st == DT_DONE ? dt_expect_end(j) : st;
}

dt_status dt_part_read(const char *folder, dt_part_record *out, dt_str *notes)
{
    dt_str text = {0}, path = {0};
    dt_json *j = NULL;
    dt_status st = join_path(folder, "part.json", &path);
    if (st == DT_OK) {
        st = read_text(folder, "part.json", &text);
    }
    if (st == DT_OK) {
        st = dt_json_open_mem(dt_str_text(&text), text.bytes, dt_str_text(&path), &j);
    }
    if (st == DT_OK) {
        st = parse_part_record(j, out);
    }
    dt_json_close(j);
    dt_str_fini(&text);
    dt_str_fini(&path);
    DT_TRY(st);
    DT_TRY(read_text(folder, "warnings.txt", &out->report.warnings));
    st = read_text(folder, "notes.txt", &text);
    dt_columns_add_notes(notes, dt_str_text(&text));
    dt_str_fini(&text);
    return st;
}

void dt_part_record_fini(dt_part_record *p)
{
    dt_str_fini(&p->report.warnings);
    dt_names_fini(&p->scenes);
    dt_free(p->file);
    *p = (dt_part_record){.rows = 0};
}
