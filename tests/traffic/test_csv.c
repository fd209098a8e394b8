/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/text/csv.c and source.c: cells and line numbers, packed and plain, and streams that are
 * cut or damaged.
 */
#include "fixture.h"

#include <lzma.h>
#include <zlib.h>

#include "base/fault.h"
#include "traffic/text/csv.h"
#include "traffic/text/source.h"

/* All lines as "number:cell|cell;" and the last status. ahead_from: lines before a thread reads on; -1: none does. */
static dt_status flatten_by(const char *name, int ahead_from, dt_str *out)
{
    dt_csv *c = NULL;
    char *const *cell = NULL;
    int n = 0;
    bool is_ahead = false;
    dt_status st = dt_csv_open(at(name), &c);
    for (int k = 0; st == DT_OK; k++) {
        if (k == ahead_from) {
            dt_csv_read_ahead(c);
            is_ahead = true;
        }
        st = dt_csv_next(c, &cell, &n);
        if (st == DT_OK) {
            dt_str_addf(out, "%d:", (int)dt_csv_line(c));
        }
        for (int i = 0; i < n && st == DT_OK; i++) {
            dt_str_addf(out, "%s%s", i == 0 ? "" : "|", cell[i]);
        }
        dt_str_add(out, st == DT_OK ? ";" : "");
    }
    assert_true(!is_ahead || dt_csv_next(c, &cell, &n) == st); /* and so it stays */
    dt_csv_close(c);
    return st;
}

/* The same with and without a thread that reads ahead, what it says of errors too. */
static dt_status flatten(const char *name, dt_str *out)
{
    dt_str plain = {0};
    const dt_status want = flatten_by(name, -1, &plain);
    char said[512];
    snprintf(said, sizeof(said), "%s", want == DT_DONE ? "" : dt_error_text());
    for (int from = 1; from >= 0; from--) {
        dt_str ahead = {0};
        assert_int_equal(flatten_by(name, from, &ahead), want);
        assert_string_equal(dt_str_text(&ahead), dt_str_text(&plain));
        assert_string_equal(want == DT_DONE ? "" : dt_error_text(), said);
        dt_str_fini(&ahead);
    }
    dt_str_add(out, dt_str_text(&plain));
    dt_str_fini(&plain);
    return want;
}

/* Read to the end, whatever it says. */
static dt_status drain(const char *name)
{
    static char piece[1 << 16];
    dt_source *s = NULL;
    dt_status st = dt_source_open(at(name), &s);
    int64_t got = st == DT_OK ? 1 : 0;
    while (got > 0) {
        got = dt_source_read(s, piece, sizeof(piece));
    }
    dt_source_close(s);
    return st == DT_OK && got < 0 ? dt_error_status() : st;
}

static void expect(const char *text, const char *want)
{
    dt_str out = {0};
    put("t.csv", text);
    assert_int_equal(flatten("t.csv", &out), DT_DONE);
    assert_string_equal(dt_str_text(&out), want);
    dt_str_fini(&out);
}

static void test_cells(void **state)
{
    expect("a,b\n1,2\n", "1:a|b;2:1|2;");
    expect("a,b\r\n1,2\r\n", "1:a|b;2:1|2;");
    expect("a,b\n1,2", "1:a|b;2:1|2;"); /* no line end at the end */
    expect("\xef\xbb\xbf"
           "a,b\n",
           "1:a|b;");                     /* byte order mark */
    expect("a\n\n  \n\nb\n", "1:a;5:b;"); /* empty lines count, and are skipped */
    expect(",,\n", "1:||;");              /* three empty cells */
    expect("a,\n", "1:a|;");
    expect("  a ,\t b c \t,d\n", "1:a|b c|d;");
    expect("\"a,b\",\"say \"\"hi\"\"\" , \"\"\n", "1:a,b|say \"hi\"|;");
    /* line breaks within quotes: a row has the number of the line on which it begins */
    expect("a,b\n\"x\ny\",2\n3,\"\r\n\n\"\n5,6", "1:a|b;2:x\ny|2;4:3|\r\n\n;7:5|6;");
    expect("\"a\n,\"\"\n\";b\n 1 ; \" \n\"\n\n2;3\n", "1:a\n,\"\n|b;4:1| \n;7:2|3;");
    expect("# \"one\na,b\nc\"c,d\"\n1,2\n", "2:a|b;3:c\"c|d\";4:1|2;"); /* quotes that begin no cell */
    expect("#,\"one\na,b\n1,2\n", "2:a|b;3:1|2;");
}

static void test_long_input(void **state)
{
    dt_str text = {0}, want = {0}, out = {0};
    for (int i = 0; i < 30000; i++) { /* many pieces of the reader */
        dt_str_addf(&text, "%d,%d.5\n", i, i);
        dt_str_addf(&want, "%d:%d|%d.5;", i + 1, i, i);
    }
    put("t.csv", dt_str_text(&text));
    assert_int_equal(flatten("t.csv", &out), DT_DONE);
    assert_string_equal(dt_str_text(&out), dt_str_text(&want));

    /* the same, packed: two gzip members, and xz */
    size_t half = text.bytes / 2;
    gzFile z = gzopen(at("t.gz"), "wb");
    assert_int_equal(gzwrite(z, text.text, (unsigned)half), half);
    assert_int_equal(gzclose(z), Z_OK);
    z = gzopen(at("t.gz"), "ab");
    assert_int_equal(gzwrite(z, text.text + half, (unsigned)(text.bytes - half)), text.bytes - half);
    assert_int_equal(gzclose(z), Z_OK);
    dt_str_clear(&out);
    assert_int_equal(flatten("t.gz", &out), DT_DONE);
    assert_string_equal(dt_str_text(&out), dt_str_text(&want));

    size_t room = lzma_stream_buffer_bound(text.bytes), packed = 0;
    uint8_t *xz = dt_alloc(room);
    assert_int_equal(
        lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, (uint8_t *)text.text, text.bytes, xz, &packed, room),
        LZMA_OK);
    put_bytes("t.xz", xz, packed);
    dt_str_clear(&out);
    assert_int_equal(flatten("t.xz", &out), DT_DONE);
    assert_string_equal(dt_str_text(&out), dt_str_text(&want));

    /* cut and damaged */
    put_bytes("cut.xz", xz, packed / 2);
    assert_fails(flatten("cut.xz", &out), DT_EDATA, "cut.xz: the xz stream is truncated");
    xz[packed / 2] ^= 0x55;
    put_bytes("bad.xz", xz, packed);
    assert_fails(drain("bad.xz"), DT_EDATA, "bad.xz: the xz stream is damaged");
    char *gz = NULL;
    assert_ok(dt_fs_read_all(at("t.gz"), 1 << 24, &gz, &packed));
    put_bytes("cut.gz", gz, packed - 20);
    assert_fails(flatten("cut.gz", &out), DT_EDATA, "cut.gz: the gzip stream is truncated");
    char *padded = dt_alloc(packed + 512);
    memcpy(padded, gz, packed);
    memset(padded + packed, 0, 512);
    put_bytes("padded.gz", padded, packed + 512); /* zeros after the last member are none */
    dt_str_clear(&out);
    assert_int_equal(flatten("padded.gz", &out), DT_DONE);
    assert_string_equal(dt_str_text(&out), dt_str_text(&want));
    dt_free(padded);
    gz[packed / 4] = (char)(gz[packed / 4] ^ 0x55);
    gz[packed / 4 + 1] = (char)(gz[packed / 4 + 1] ^ 0xff);
    put_bytes("bad.gz", gz, packed);
    assert_fails(drain("bad.gz"), DT_EDATA, "bad.gz: the gzip stream is damaged");
    dt_free(gz);
    dt_free(xz);
    dt_str_fini(&text);
    dt_str_fini(&want);
    dt_str_fini(&out);
}

static void test_refusals(void **state)
{
    dt_str out = {0};
    assert_fails(flatten("gone.csv", &out), DT_ENOTFOUND, "gone.csv");
    put("t.csv", "");
    assert_fails(flatten("t.csv", &out), DT_EDATA, "t.csv is empty");
    put("t.csv", "a\n\"b,c\n");
    assert_fails(flatten("t.csv", &out), DT_EDATA, "t.csv:2: the quotes of cell 1 are not closed");
    put("t.csv", "a\n\"b\nc\nd\n");
    assert_fails(flatten("t.csv", &out), DT_EDATA, "t.csv:2: ");
    put("t.csv", "a,\"b\"c\n");
    assert_fails(flatten("t.csv", &out), DT_EDATA, "t.csv:1: the quotes of cell 2");
    put_bytes("t.csv", "a\nb\0c\n", 6);
    assert_fails(flatten("t.csv", &out), DT_EDATA, "t.csv:2: a NUL byte");
#define FOREIGN(bytes, words)                                                                                          \
    put_bytes("f.csv", bytes, sizeof(bytes) - 1);                                                                      \
    assert_fails(flatten("f.csv", &out), DT_EDATA, words)
    FOREIGN("\xff\xfe"
            "a\0,\0b\0\n\0",
            "iconv -f UTF-16 ");
    FOREIGN("\xff\xfe\0\0"
            "a\0\0\0,\0\0\0",
            "iconv -f UTF-32 ");
    FOREIGN("a\0,\0b\0\n\0", "iconv -f UTF-16LE ");
    FOREIGN("\0a\0,\0b\0\n", "iconv -f UTF-16BE ");
    FOREIGN("\x28\xb5\x2f\xfd\x04\0", "zstd -d");
    FOREIGN("BZh91AY&SY", "bunzip2");
    FOREIGN("PK\x03\x04\x14\0", "unzip");
    FOREIGN("PAR1\x15", "parquet");
#undef FOREIGN
    char *line = dt_alloc(70000);
    memset(line, 'x', 69999);
    put("t.csv", line);
    assert_fails(flatten("t.csv", &out), DT_EDATA, "t.csv:1: a line of more than 65536 bytes: not a table");
    for (int i = 9; i < 69999; i += 10) { /* of an old Macintosh */
        line[i] = '\r';
    }
    put("t.csv", line);
    assert_fails(flatten("t.csv", &out), DT_EDATA, "more than 65536 bytes: it contains CR (\\r), as lines");
    for (int i = 1; i < 69999; i += 2) { /* quotes that nothing closes */
        line[i] = '\n';
    }
    line[0] = '"';
    put("t.csv", line);
    assert_fails(flatten("t.csv", &out), DT_EDATA, "t.csv:1: the quotes");
    memset(line, ',', 400);
    line[400] = '\0';
    put("t.csv", line);
    assert_fails(flatten("t.csv", &out), DT_EDATA, "t.csv:1: more than 256 cells");
    line[300] = '\r'; /* as few lines of one */
    put("t.csv", line);
    assert_fails(flatten("t.csv", &out), DT_EDATA, "t.csv:1: more than 256 cells: it contains CR (\\r)");
    line[300] = ',';
    line[3] = '\r';
    put("t.csv", line);
    assert_fails(flatten("t.csv", &out), DT_EDATA, "t.csv:1: more than 256 cells: it contains CR (\\r)");
    dt_free(line);
    dt_str_fini(&out);
}

/* Tables of many blocks, with lines of every length, that end well or at a wrong line; and one nobody reads on. */
static void test_many_blocks(void **state)
{
    enum { LINES = 30000, BAD = 23456 };
    dt_str text = {0}, out = {0};
    for (int i = 0; i < LINES; i++) {
        dt_str_addf(&text, i % 7 == 3 ? "\r\n" : "%d, \"a%d\"\"b\" ,%*d\n", i, i, 1 + i * 37 % 90, i);
        if (i == LINES / 2) {
            dt_str_addf(&text, "%60000d\n", i);
        }
    }
    put("t.csv", dt_str_text(&text));
    assert_int_equal(flatten("t.csv", &out), DT_DONE);
    assert_non_null(strstr(dt_str_text(&out), ";30001:29999|a29999\"b|29999;"));
    char *bad = text.text;
    for (int i = 0; i < BAD; i++) {
        bad = strchr(bad, '\n') + 1;
    }
    *strstr(bad, "\" ,") = ' ';
    put("t.csv", dt_str_text(&text));
    assert_fails(flatten("t.csv", &out), DT_EDATA, "t.csv:23457: the quotes of cell 2 are not closed");

    dt_csv *c = NULL;
    char *const *cell = NULL;
    int n = 0;
    assert_ok(dt_csv_open(at("t.csv"), &c));
    dt_csv_read_ahead(c);
    assert_ok(dt_csv_next(c, &cell, &n));
    assert_true(dt_csv_bytes_read(c) < text.bytes);
    dt_csv_close(c); /* while the thread has no room left */
    dt_str_fini(&text);
    dt_str_fini(&out);
}

/* Runs of empty lines longer than a block that is read ahead, at the begin, in the middle and at the end. */
static void test_empty_lines(void **state)
{
    enum { EMPTY = 400000 };
    dt_str text = {0}, out = {0};
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < EMPTY; i++) {
            dt_str_add(&text, k == 1 ? "\r\n" : "\n");
        }
        dt_str_add(&text, k == 0 ? "a,b\n" : k == 1 ? "1,2\n" : "");
    }
    put("t.csv", dt_str_text(&text));
    assert_int_equal(flatten("t.csv", &out), DT_DONE);
    assert_string_equal(dt_str_text(&out), "400001:a|b;800002:1|2;");
    dt_str_fini(&text);
    dt_str_fini(&out);
}

/* A thread that there is no memory for is done without. */
static void test_no_memory(void **state)
{
    enum { BUFFERS = 9 };
    put("t.csv", "a,b\n1,2\n");
    for (int n = 1; n <= BUFFERS + 1; n++) {
        dt_csv *c = NULL;
        char *const *cell = NULL;
        char fault[32];
        int cells = 0;
        snprintf(fault, sizeof(fault), "alloc:%d", n);
        assert_ok(dt_csv_open(at("t.csv"), &c));
        dt_fault_reset(fault);
        dt_csv_read_ahead(c);
        assert_int_equal(dt_fault_count(), n <= BUFFERS);
        dt_fault_reset(NULL);
        assert_ok(dt_csv_next(c, &cell, &cells));
        assert_ok(dt_csv_next(c, &cell, &cells));
        assert_string_equal(cell[1], "2");
        assert_int_equal(dt_csv_next(c, &cell, &cells), DT_DONE);
        dt_csv_close(c);
    }
}

/* What lies in memory is read as a file is, packed or not. */
static void test_memory(void **state)
{
    static const char text[] = "a,b\n1,2\n";
    dt_csv *c = NULL;
    char *const *cell = NULL;
    int n = 0;
    assert_ok(dt_csv_open_mem(text, sizeof(text) - 1, "text", &c));
    assert_ok(dt_csv_next(c, &cell, &n));
    assert_ok(dt_csv_next(c, &cell, &n));
    assert_int_equal(n, 2);
    assert_string_equal(cell[1], "2");
    assert_int_equal(dt_csv_next(c, &cell, &n), DT_DONE);
    dt_csv_close(c);
    assert_fails(dt_csv_open_mem("", 0, "text", &c), DT_EDATA, "text is empty");
}

/* 300 MB of lines in 300 kB: no recording repeats itself so much. */
static void test_bomb(void **state)
{
    enum { PIECE = 1 << 20 };
    char *lines = dt_alloc(PIECE);
    for (size_t i = 0; i < PIECE; i++) {
        lines[i] = i % 64 == 63 ? '\n' : '1';
    }
    gzFile out = gzopen(at("t.csv"), "wb9");
    assert_non_null(out);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(gzwrite(out, lines, PIECE), PIECE);
    }
    assert_int_equal(gzclose(out), Z_OK);
    dt_free(lines);
    assert_fails(drain("t.csv"), DT_EDATA, "over 250 times as many: not a recording");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cells, begin, end),
        cmocka_unit_test_setup_teardown(test_long_input, begin, end),
        cmocka_unit_test_setup_teardown(test_refusals, begin, end),
        cmocka_unit_test_setup_teardown(test_many_blocks, begin, end),
        cmocka_unit_test_setup_teardown(test_empty_lines, begin, end),
        cmocka_unit_test_setup_teardown(test_no_memory, begin, end),
        cmocka_unit_test(test_memory),
        cmocka_unit_test_setup_teardown(test_bomb, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
