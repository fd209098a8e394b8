/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of what core/telemetry/metrics/{events,png}.c and core/telemetry/tensorboard/event_pictures.c count, draw and
 * write: records are taken apart by a reader that knows the format alone. tests/peers has TensorBoard read the files
 * themselves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/err.h"
#include "base/str.h"
#include "telemetry/metrics/events.h"
#include "telemetry/metrics/png.h"

#define dt_canvas_write_png   take_canvas
#define dt_events_write_image no_image
static dt_status take_canvas(const dt_canvas *c, dt_str *out);
static dt_status no_image(dt_events *e, uint64_t step, const char *tag, uint32_t width, uint32_t height,
                          const dt_str *png);
#include "../../../core/telemetry/tensorboard/event_pictures.c"
#undef dt_canvas_write_png
#undef dt_events_write_image

/* ---- a matrix ---------------------------------------------------------------------------------------------------- */

static uint8_t pixel[4], color[DT_CANVAS_COLORS][3];

static dt_status take_canvas(const dt_canvas *c, dt_str *out)
{
    assert_true(c->width == 2 && c->height == 2);
    memcpy(pixel, c->pixel, sizeof(pixel));
    memcpy(color, c->color, sizeof(color));
    return DT_OK;
}

static dt_status no_image(dt_events *e, uint64_t step, const char *tag, uint32_t width, uint32_t height,
                          const dt_str *png)
{
    (void)e, (void)step, (void)width, (void)height, (void)png;
    assert_string_equal(tag, "weights/world.w");
    return DT_OK;
}

/* From blue, the greatest magnitude below zero, over white, zero, to red. */
static void test_matrix(void **state)
{
    char name[] = "world.w";
    const dt_param p = {.name = name, .dim = {2, 2}, .n_dims = 2, .count = 4};
    static const float value[] = {-4, 2, 0, 1}, unknown[] = {NAN, 1, -1, 0};
    assert_int_equal(dt_event_write_matrix(NULL, 1, &p, value), DT_OK);
    assert_true(pixel[0] == 1 && pixel[1] == 192 && pixel[2] == 128 && pixel[3] == 160);
    static const struct {
        int at;
        uint8_t color[3];
    } expected[] = {{1, {0, 0, 180}}, {128, {255, 255, 255}}, {192, {217, 126, 126}}, {255, {180, 0, 0}}};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_memory_equal(color[expected[i].at], expected[i].color, 3);
    }
    assert_int_equal(dt_event_write_matrix(NULL, 1, &p, unknown), DT_OK);
    assert_true(pixel[0] == 128 && pixel[1] == 255 && pixel[2] == 1 && pixel[3] == 128);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void test_histogram(void **state)
{
    static const float x[] = {-1, 1, NAN, 0.5f, INFINITY}, y[] = {63};
    dt_histogram h;
    dt_histogram_begin(&h);
    dt_histogram_extend_range(&h, x, 5);
    dt_histogram_extend_range(&h, y, 1);
    dt_histogram_count_values(&h, x, 5);
    dt_histogram_count_values(&h, y, 1);
    assert_true(h.low == -1 && h.high == 63 && h.n == 4);
    assert_true(h.sum == 63.5 && h.squares == 1 + 1 + 0.25 + 63 * 63);
    assert_true(h.count[0] == 1); /* [-1, 0) */
    assert_true(h.count[1] == 1); /* 0.5 */
    assert_true(h.count[2] == 1); /* 1 begins the third part */
    assert_true(h.count[DT_HISTOGRAM_PARTS - 1] == 1);
    dt_histogram_begin(&h); /* all alike */
    dt_histogram_extend_range(&h, y, 1);
    dt_histogram_count_values(&h, y, 1);
    assert_true(h.low == 63 && h.high == 63 && h.count[0] == 1 && h.n == 1);
}

/* ---- a reader of event files ------------------------------------------------------------------------------------- */

enum { MOST_FILE = 1 << 16 };
static unsigned char file_bytes[MOST_FILE];
static size_t n_file_bytes;

/* CRC-32C bit by bit, rotated and shifted as TensorFlow's record_writer.cc does. */
static uint32_t checksum(const unsigned char *p, size_t n)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
        }
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static uint64_t little(const unsigned char *p, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++) {
        v |= (uint64_t)p[i] << (8 * i);
    }
    return v;
}

/* fields that hold messages; all others of their kind hold text */
static bool is_message(const char *path)
{
    static const char *const all[] = {
        ".5",           ".5.1",         ".5.1.4",         ".5.1.5",           ".5.1.8",
        ".5.1.8.2",     ".5.1.8.2.2",   ".5.1.9",         ".5.1.9.1",         ".5.1.9.1.2",
        ".5.1.9.1.2.3", ".5.1.9.1.2.4", ".5.1.9.1.2.3.1", ".5.1.9.1.2.3.1.2", ".7"};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(path, all[i]) == 0) {
            return true;
        }
    }
    return false;
}

static uint64_t varint(const unsigned char *p, size_t n, size_t *at)
{
    uint64_t v = 0;
    for (int shift = 0; *at < n; shift += 7) {
        v |= (uint64_t)(p[*at] & 0x7f) << shift;
        if ((p[(*at)++] & 0x80) == 0) {
            break;
        }
    }
    return v;
}

/* "1=2.5 5{...} 7=text " of a message; times are left out: "1=now" when they are the present */
static void dump(const unsigned char *p, size_t n, const char *path, dt_str *out)
{
    for (size_t at = 0; at < n;) {
        const uint64_t key = varint(p, n, &at);
        char inner[64];
        snprintf(inner, sizeof(inner), "%s.%d", path, (int)(key >> 3));
        dt_str_addf(out, "%d", (int)(key >> 3));
        if ((key & 7) == 0) {
            dt_str_addf(out, "=%lld ", (long long)varint(p, n, &at));
        } else if ((key & 7) == 1) {
            const uint64_t bits = little(p + at, 8);
            double v = 0;
            memcpy(&v, &bits, sizeof(v));
            at += 8;
            dt_str_addf(out, fabs(v - (double)time(NULL)) < 100 ? "=now " : "=%.9g ", v);
        } else if ((key & 7) == 5) {
            const uint32_t bits = (uint32_t)little(p + at, 4);
            float v = 0;
            memcpy(&v, &bits, sizeof(v));
            at += 4;
            dt_str_addf(out, "=%.9g ", (double)v);
        } else {
            assert_int_equal(key & 7, 2);
            const size_t bytes = varint(p, n, &at);
            assert_true(bytes <= n - at);
            if (is_message(inner)) {
                dt_str_add(out, "{");
                dump(p + at, bytes, inner, out);
                dt_str_add(out, "} ");
            } else {
                dt_str_addf(out, "='%.*s' ", (int)bytes, (const char *)p + at);
            }
            at += bytes;
        }
    }
}

/* All records of the only event file of a folder, one a line; checksums are held to. */
static void read_records(const char *path, dt_str *out)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    n_file_bytes = fread(file_bytes, 1, sizeof(file_bytes), f);
    fclose(f);
    dt_str_clear(out);
    for (size_t at = 0; at < n_file_bytes;) {
        const size_t bytes = (size_t)little(file_bytes + at, 8);
        assert_true(at + 16 + bytes <= n_file_bytes);
        assert_int_equal(little(file_bytes + at + 8, 4), checksum(file_bytes + at, 8));
        assert_int_equal(little(file_bytes + at + 12 + bytes, 4), checksum(file_bytes + at + 12, bytes));
        dump(file_bytes + at + 12, bytes, "", out);
        dt_str_add(out, "\n");
        at += 16 + bytes;
    }
}

static char folder[32];

/* The file of a folder whose name ends so; NULL ends all. */
static void path_of(const char *part, char *path, size_t room)
{
    DIR *d = opendir(folder);
    assert_non_null(d);
    path[0] = '\0';
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (strstr(e->d_name, part) != NULL) {
            snprintf(path, room, "%s/%s", folder, e->d_name);
        }
    }
    closedir(d);
    assert_true(path[0] != '\0');
}

static void make_folder(void)
{
    snprintf(folder, sizeof(folder), "/tmp/dtrain-events-XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static void remove_folder(void)
{
    DIR *d = opendir(folder);
    char path[512];
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        unlink(path);
    }
    closedir(d);
    assert_int_equal(rmdir(folder), 0);
}

#define HEAD "1=now 2=0 3='brain.Event:2' \n"

static void test_records(void **state)
{
    dt_events *e = NULL;
    dt_str text = {0}, png = {0};
    char path[512];
    make_folder();
    dt_str_add(&png, "PNG");
    assert_int_equal(dt_events_open(folder, 41, &e), DT_OK);
    dt_events_begin(e, 42);
    dt_events_add_scalar(e, "loss", 0.1);
    dt_events_add_scalar(e, "unknown", NAN); /* is left out */
    dt_events_add_scalar(e, "most", INFINITY);
    dt_events_add_scalar(e, "zero", 0);
    assert_int_equal(dt_events_end(e), DT_OK);
    dt_events_begin(e, 300); /* nothing of the record before */
    dt_events_add_scalar(e, "loss", -2.5);
    assert_int_equal(dt_events_end(e), DT_OK);
    assert_int_equal(dt_events_write_text(e, 7, "config", "a = 1\n\n  b\n"), DT_OK);
    assert_int_equal(dt_events_write_text(e, 8, "config", "no end"), DT_OK);
    assert_int_equal(dt_events_write_image(e, 9, "map", 640, 480, &png), DT_OK);
    dt_events_hparam_number(e, "rate", 0.25);
    dt_events_hparam_bool(e, "on", true);
    dt_events_hparam_bool(e, "off", false);
    dt_events_hparam_text(e, "kind", "adam");
    assert_int_equal(dt_events_write_hparams(e, "run 1"), DT_OK);
    dt_events_hparam_number(e, "rate", 0.5);
    assert_int_equal(dt_events_write_hparams(e, "run 2"), DT_OK); /* those before are not repeated */
    assert_int_equal(dt_events_write_session_end(e, true), DT_OK);
    assert_int_equal(dt_events_write_session_end(e, false), DT_OK); /* said once */
    dt_events_close(e);
    path_of(".tfevents.", path, sizeof(path));
    read_records(path, &text);
#define SESSION(TAG) "1=now 2=0 5{1{1='_hparams_/session_" TAG "_info' 9{1{1='hparams' 2{"
#define EMPTY        "} } } 8{1=1 2{2{1=0 } } } } } \n"
    assert_string_equal(
        dt_str_text(&text), HEAD
        "1=now 2=41 7{1=1 } \n"
        "1=now 2=42 5{1{1='loss' 2=0.100000001 } 1{1='most' 2=inf } 1{1='zero' 2=0 } } \n"
        "1=now 2=300 5{1{1='loss' 2=-2.5 } } \n"
        "1=now 2=7 5{1{1='config' 9{1{1='text' } } 8{1=7 2{2{1=1 } } 8='    a = 1\n    \n      b\n' } } "
        "} \n"
        "1=now 2=8 5{1{1='config' 9{1{1='text' } } 8{1=7 2{2{1=1 } } 8='    no end\n' } } } \n"
        "1=now 2=9 5{1{1='map' 4{1=480 2=640 3=3 4='PNG' } } } \n" SESSION(
            "start") "3{1{1='rate' 2{2=0.25 } } 1{1='on' 2{4=1 } } 1{1='off' 2{4=0 } } 1{1='kind' 2{3='adam' } } "
                     "4='run 1' 5=now } " EMPTY SESSION("start") "3{1{1='rate' 2{2=0.5 } } 4='run 2' 5=now } " EMPTY
                         SESSION("end") "4{1=1 2=now } " EMPTY);
    dt_str_fini(&text);
    dt_str_fini(&png);
    remove_folder();
}

/* Limits are upper ends of equal parts, the last one the greatest value itself. */
static void test_histogram_record(void **state)
{
    static const float x[] = {-1, 0, 1, 1, 3};
    dt_events *e = NULL;
    dt_histogram h;
    char path[512];
    dt_str text = {0};
    make_folder();
    assert_int_equal(dt_events_open(folder, 0, &e), DT_OK);
    dt_histogram_begin(&h);
    assert_int_equal(dt_events_write_histogram(e, 1, "none", &h), DT_OK); /* no record */
    dt_histogram_extend_range(&h, x, 5);
    dt_histogram_count_values(&h, x, 5);
    assert_int_equal(dt_events_write_histogram(e, 2, "weights", &h), DT_OK);
    dt_events_close(e);
    path_of(".tfevents.", path, sizeof(path));
    read_records(path, &text);
    const char *want = "1=now 2=0 7{1=1 } \n1=now 2=2 5{1{1='weights' 5{1=-1 2=3 3=5 4=4 5=12 6='";
    assert_non_null(strstr(dt_str_text(&text), want));
    assert_null(strstr(dt_str_text(&text), "none"));
    const unsigned char *at = NULL; /* two packed fields of 64 doubles each end the record: key, length, numbers */
    for (size_t i = 0; i + 2 * (512 + 3) + 4 <= n_file_bytes; i++) {
        at = file_bytes[i] == (6 << 3 | 2) && file_bytes[i + 1] == 0x80 && file_bytes[i + 2] == 4 ? file_bytes + i : at;
    }
    assert_non_null(at);
    assert_true(at[515] == (7 << 3 | 2) && at[516] == 0x80 && at[517] == 4);
    double limit[64], count[64];
    memcpy(limit, at + 3, sizeof(limit));
    memcpy(count, at + 518, sizeof(count));
    for (int i = 0; i < 64; i++) {
        assert_true(fabs(limit[i] - (-1 + 4.0 / 64 * (i + 1))) < 1e-12);
        assert_true(count[i] == (i == 0 || i == 16 || i == 63 ? 1 : i == 32 ? 2 : 0));
    }
    assert_true(limit[63] == 3);
    dt_str_fini(&text);
    remove_folder();
}

/* ---- sessions that go on ----------------------------------------------------------------------------------------- */

static size_t size_of(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    const long n = ftell(f);
    fclose(f);
    return (size_t)n;
}

static void append(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "ab");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* Opens once more and takes the new file away; what it did to those before stays. */
static void go_on(const char *old)
{
    dt_events *e = NULL;
    char kept[600];
    snprintf(kept, sizeof(kept), "%s/kept.tfevents.1", folder);
    if (strcmp(old, kept) != 0) {
        assert_int_equal(rename(old, kept), 0);
    }
    assert_int_equal(dt_events_open(folder, 5, &e), DT_OK);
    dt_events_close(e);
    char path[512];
    path_of("events.out.tfevents.", path, sizeof(path));
    unlink(path);
}

static void test_end_is_taken_off(void **state)
{
    static const char tag[] = "_hparams_/session_end_info";
    dt_events *e = NULL;
    char path[512], kept[600];
    make_folder();
    snprintf(kept, sizeof(kept), "%s/kept.tfevents.1", folder);
    assert_int_equal(dt_events_open(folder, 0, &e), DT_OK);
    dt_events_begin(e, 1);
    dt_events_add_scalar(e, "loss", 1);
    assert_int_equal(dt_events_end(e), DT_OK);
    dt_events_close(e);
    path_of(".tfevents.", path, sizeof(path));
    const size_t whole = size_of(path);
    go_on(path); /* there is no end */
    assert_int_equal(size_of(kept), whole);

    unsigned char record[12 + 600 + 4] = {0}; /* checksums are not looked at */
    static const size_t length[] = {60, 255, 256, 600};
    for (int i = 0; i < 4; i++) { /* the end of a session is short */
        memset(record, 'x', sizeof(record));
        memset(record, 0, 8);
        record[0] = (unsigned char)length[i];
        record[1] = (unsigned char)(length[i] >> 8);
        memcpy(record + 12 + length[i] - strlen(tag), tag, strlen(tag));
        append(kept, record, length[i] + 16);
        go_on(kept);
        assert_int_equal(size_of(kept), i < 2 ? whole : whole + length[i] + 16);
        assert_int_equal(truncate(kept, (off_t)whole), 0);
    }
    record[0] = 60, record[1] = 0;
    memcpy(record + 12, tag, strlen(tag));
    append(kept, record, 60 + 16);
    append(kept, record, 11); /* half a head after it is nothing */
    go_on(kept);
    assert_int_equal(size_of(kept), whole);
    append(kept, record, 12 + 40); /* an end that is half written */
    go_on(kept);
    assert_int_equal(size_of(kept), whole);
    append(kept, record, 60 + 16);
    memset(record + 12, 'x', 60);
    append(kept, record, 60 + 16); /* a record after the end */
    go_on(kept);
    assert_int_equal(size_of(kept), whole + 2 * 76);
    assert_int_equal(truncate(kept, (off_t)whole), 0);
    for (int i = 6; i < 8; i++) { /* a length that no file has */
        memset(record, 0, 12);
        record[i] = 1;
        memcpy(record + 12, tag, strlen(tag));
        append(kept, record, 76);
        go_on(kept);
        assert_int_equal(size_of(kept), whole + 76);
        assert_int_equal(truncate(kept, (off_t)whole), 0);
    }
    unlink(kept);
    snprintf(path, sizeof(path), "%s/notes.txt", folder); /* other files are not touched */
    memset(record, 0, 12);
    record[0] = 60;
    memcpy(record + 12, tag, strlen(tag));
    append(path, record, 76);
    assert_int_equal(dt_events_open(folder, 0, &e), DT_OK);
    dt_events_close(e);
    assert_int_equal(size_of(path), 76);
    remove_folder();
}

/* Phases that begin within one second have files of their own. */
static void test_files(void **state)
{
    dt_events *e[3] = {NULL, NULL, NULL};
    make_folder();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dt_events_open(folder, 0, &e[i]), DT_OK);
    }
    for (int i = 0; i < 3; i++) {
        dt_events_close(e[i]);
    }
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *f = readdir(d); f != NULL; f = readdir(d)) {
        n += strncmp(f->d_name, "events.out.tfevents.", 20) == 0;
    }
    closedir(d);
    assert_int_equal(n, 3);
    remove_folder();
    assert_int_equal(dt_events_open("/dev/null/x", 0, &e[0]), DT_EIO);
    dt_events_close(NULL);
}

/* Records of a file that is removed meanwhile are lost: an error, which is reported. */
static void test_removed(void **state)
{
    dt_events *e = NULL;
    char path[512];
    make_folder();
    assert_int_equal(dt_events_open(folder, 0, &e), DT_OK);
    path_of(".tfevents.", path, sizeof(path));
    for (int i = 0; i < 2; i++) {
        dt_events_begin(e, 1);
        dt_events_add_scalar(e, "loss", 1);
        assert_int_equal(dt_events_end(e), i == 0 ? DT_OK : DT_EIO);
        (void)unlink(path);
    }
    assert_non_null(strstr(dt_error_text(), "was removed"));
    dt_error_clear();
    dt_events_close(e);
    remove_folder();
}

static uint32_t number_at(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void test_png(void **state)
{
    dt_canvas c;
    dt_str png = {0};
    assert_int_equal(dt_canvas_init(&c, 0, 4), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "0 by 4"));
    assert_int_equal(dt_canvas_init(&c, 5, 4097), DT_EINVAL);
    assert_int_equal(dt_canvas_init(&c, 5, 3), DT_OK);
    dt_canvas_draw_line(&c, 0.5, 1.5, 3.5, 1.5, 0.4, 7);
    dt_canvas_draw_disc(&c, 4.5, 2.5, 0.6, 9);
    dt_canvas_draw_line(&c, -50, -50, -20, -9, 3, 1); /* outside: nothing */
    dt_canvas_draw_line(&c, NAN, 0, 3, 3, 1, 1);
    static const uint8_t want[] = {0, 0, 0, 0, 0, 7, 7, 7, 7, 0, 0, 0, 0, 0, 9};
    assert_memory_equal(c.pixel, want, sizeof(want));
    assert_int_equal(dt_canvas_write_png(&c, &png), DT_OK);
    assert_memory_equal(png.text, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\5\0\0\0\3\x8\x3\0\0\0", 29);
    size_t at = 8;
    for (int chunk = 0; chunk < 4; chunk++) {
        const uint32_t bytes = number_at(png.text + at);
        assert_int_equal(number_at(png.text + at + 8 + bytes), crc32(0, (const Bytef *)png.text + at + 4, bytes + 4));
        if (memcmp(png.text + at + 4, "IDAT", 4) == 0) {
            uint8_t rows[18];
            uLongf n = sizeof(rows);
            assert_int_equal(uncompress(rows, &n, (const Bytef *)png.text + at + 8, bytes), Z_OK);
            assert_int_equal(n, sizeof(rows));
            for (int j = 0; j < 3; j++) {
                assert_int_equal(rows[6 * j], 0);
                assert_memory_equal(rows + 6 * j + 1, want + 5 * j, 5);
            }
        }
        at += 12 + bytes;
    }
    assert_int_equal(at, png.bytes);
    dt_str_fini(&png);
    dt_canvas_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_histogram_record),
        cmocka_unit_test(test_end_is_taken_off),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_removed),
        cmocka_unit_test(test_png),
        cmocka_unit_test(test_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
