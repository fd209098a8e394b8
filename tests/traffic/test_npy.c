/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/store/npy.c: bytes as NumPy writes them, round trips, and every refusal.
 */
#include "fixture.h"

#include "base/mapping.h"
#include "traffic/store/npy.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void test_bytes(void **state)
{
    dt_npy_writer *w = NULL;
    const float rows[3][2] = {{1, 2}, {3, 4}, {5, 6}};
    assert_ok(dt_npy_create(at("a.npy"), DT_F32, 2, &w));
    assert_ok(dt_npy_append(w, rows, 1));
    assert_ok(dt_npy_append(w, rows[1], 2));
    assert_int_equal(dt_npy_rows(w), 3);
    assert_ok(dt_npy_close(w));
    char *text = NULL;
    size_t bytes = 0;
    assert_ok(dt_fs_read_all(at("a.npy"), 4096, &text, &bytes));
    assert_int_equal(bytes, 128 + 24);
    assert_memory_equal(text, "\x93NUMPY\x01\x00\x76\x00", 10);
    assert_non_null(strstr(text + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }"));
    assert_int_equal(text[127], '\n');
    assert_memory_equal(text + 128, rows, sizeof(rows));
    dt_free(text);
}

static void test_round_trips(void **state)
{
    enum { N = 70001 }; /* more than the writer's buffer */
    int64_t *x = dt_alloc_n(N, sizeof(*x));
    for (int64_t i = 0; i < N; i++) {
        x[i] = i * i - 5;
    }
    dt_npy_writer *w = NULL;
    dt_npy a;
    assert_ok(dt_npy_create(at("i.npy"), DT_I64, 0, &w));
    for (int64_t i = 0, n = 1; i < N; i += n, n *= 3) {
        assert_ok(dt_npy_append(w, x + i, n < N - i ? n : N - i));
    }
    assert_ok(dt_npy_close(w));
    assert_ok(dt_npy_map(at("i.npy"), DT_I64, 0, &a));
    assert_int_equal(a.rows, N);
    assert_int_equal((uintptr_t)a.data % 64, 0);
    assert_memory_equal(a.data, x, N * sizeof(*x));
    dt_npy_unmap(&a);
    dt_free(x);

    assert_ok(dt_npy_create(at("none.npy"), DT_U8, 0, &w)); /* no rows at all */
    assert_ok(dt_npy_close(w));
    assert_ok(dt_npy_map(at("none.npy"), DT_U8, 0, &a));
    assert_int_equal(a.rows, 0);
    assert_null(a.data);
    dt_npy_unmap(&a);

    assert_ok(dt_npy_create_mapped(at("m.npy"), DT_F64, 3, 4, &a));
    ((double *)(uintptr_t)a.data)[11] = 2.5;
    assert_ok(dt_npy_sync(&a, "m.npy"));
    dt_npy_unmap(&a);
    assert_ok(dt_npy_map_rw(at("m.npy"), DT_F64, 3, &a));
    assert_true(((const double *)a.data)[11] == 2.5 && ((const double *)a.data)[0] == 0);
    ((double *)(uintptr_t)a.data)[0] = 7;
    dt_npy_unmap(&a);
    assert_ok(dt_npy_map(at("m.npy"), DT_F64, 3, &a));
    assert_true(((const double *)a.data)[0] == 7);
    dt_npy_unmap(&a);
}

/* A file with this dictionary, version and so many bytes of data. */
static void forge(const char *dict, char major, size_t data)
{
    unsigned char file[1024] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)major, 0, 118, 0};
    memset(file + 10, ' ', 118);
    memcpy(file + 10, dict, strlen(dict));
    file[127] = '\n';
    put_bytes("f.npy", file, 128 + data);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *dict;
        size_t data;
        const char *words;
    } bad[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", 16, "values are '<f8', expected '<f4'"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", 8, "values are '>f4'"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", 8, "Fortran order"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", 16, "rows of 2 values, expected 0"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 12, "12 bytes of data, but 2 rows of 4"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 8, "8 bytes of data, but 3 rows of 4"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 8, "dictionary is damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 4), }", 8, "dictionary is damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 8, "dictionary is damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,), }", 8, "dictionary is damaged"},
        {"{'descr': '<f4', 'fortran_order': False, }", 8, "dictionary is damaged"},
        {"", 8, "dictionary is damaged"},
    };
    dt_npy a;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        forge(bad[i].dict, 1, bad[i].data);
        assert_fails(dt_npy_map(at("f.npy"), DT_F32, 0, &a), DT_EDATA, bad[i].words);
        assert_non_null(strstr(dt_error_text(), "f.npy"));
    }
    forge("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 1, 8);
    assert_ok(dt_npy_map(at("f.npy"), DT_F32, 0, &a));
    dt_npy_unmap(&a);
    forge("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 2, 8);
    assert_fails(dt_npy_map(at("f.npy"), DT_F32, 0, &a), DT_EDATA, "version 2.0");
    put("f.npy", "\x93NUMPY\x01");
    assert_fails(dt_npy_map(at("f.npy"), DT_F32, 0, &a), DT_EDATA, "not a .npy file");
    put_bytes("f.npy", "\x93NUMPY\x01\x00\xff\xff", 10);
    assert_fails(dt_npy_map(at("f.npy"), DT_F32, 0, &a), DT_EDATA, "does not fit");
    put("f.npy", "");
    assert_fails(dt_npy_map(at("f.npy"), DT_F32, 0, &a), DT_EDATA, "empty");
    assert_fails(dt_npy_map(at("gone.npy"), DT_F32, 0, &a), DT_ENOTFOUND, "gone.npy");
    assert_fails(dt_npy_map_rw(at("gone.npy"), DT_F32, 0, &a), DT_EIO, "gone.npy");
    dt_npy_writer *w = NULL;
    assert_fails(dt_npy_create(at("new.npy"), DT_BF16, 0, &w), DT_EINVAL, "dtype");
    assert_fails(dt_npy_create(at("f.npy"), DT_F32, 0, &w), DT_EINVAL, "f.npy");
    assert_fails(dt_npy_create_mapped(at("f.npy"), DT_F32, 0, 3, &a), DT_EINVAL, "f.npy");
    dt_fault_reset("alloc:1");
    assert_fails(dt_npy_create(at("new.npy"), DT_F32, 0, &w), DT_ENOMEM, "new.npy");
    dt_fault_reset(NULL);
}

/* A file in memory, whole, cut anywhere, and with any byte of its header changed. */
static void test_memory(void **state)
{
    enum { N = 128 + 8 };
    char *text = NULL;
    size_t bytes = 0;
    dt_npy a;
    dt_npy_writer *w = NULL;
    assert_ok(dt_npy_create(at("m.npy"), DT_F32, 0, &w));
    assert_ok(dt_npy_append(w, (const float[]){1, 2}, 2));
    assert_ok(dt_npy_close(w));
    assert_ok(dt_fs_read_all(at("m.npy"), 4096, &text, &bytes));
    assert_int_equal(bytes, N);
    assert_ok(dt_npy_open_bytes(text, bytes, "m", DT_F32, 0, &a));
    assert_int_equal(a.rows, 2);
    assert_true(((const float *)a.data)[1] == 2);
    for (size_t n = 0; n < N; n++) {
        char *cut = dt_alloc(n); /* no byte more */
        memcpy(cut, text, n);
        assert_int_equal(dt_npy_open_bytes(cut, n, "cut", DT_F32, 0, &a), DT_EDATA);
        dt_free(cut);
    }
    for (size_t k = 0; k < 128 * 8; k++) {
        text[k / 8] ^= (char)(1 << k % 8);
        if (dt_npy_open_bytes(text, bytes, "turned", DT_F32, 0, &a) == DT_OK) {
            assert_int_equal(a.rows, 2);
        }
        text[k / 8] ^= (char)(1 << k % 8);
    }
    dt_free(text);
    assert_fails(dt_npy_create_mapped(at("huge.npy"), DT_F64, 1 << 20, INT64_MAX / 4, &a), DT_EIO, "cannot reserve");
}

static void test_full_disk(void **state)
{
    dt_npy_writer *w = NULL;
    float row[4] = {0};
    assert_ok(dt_npy_create(at("a.npy"), DT_F32, 4, &w));
    assert_ok(dt_npy_append(w, row, 1));
    dt_fault_reset("fs.write:1");
    assert_fails(dt_npy_close(w), DT_EIO, "a.npy");
    dt_fault_reset(NULL);
    assert_ok(dt_npy_create(at("b.npy"), DT_F32, 4, &w));
    dt_npy_abandon(w);
    dt_npy_abandon(NULL);
}

/* In a process of its own: a mapped array is let go, and where it was lies a page that no file is behind any more. */
static void touch_after_unmap(void)
{
    dt_npy a;
    const size_t bytes = 4096;
    signal(SIGBUS, SIG_DFL); /* cmocka's own handler hides it */
    dt_mapping_install_guard();
    if (dt_npy_map(at("a.npy"), DT_F32, 4, &a) != DT_OK) {
        _exit(2);
    }
    void *before = (void *)(uintptr_t)a.map;
    dt_npy_unmap(&a);
    FILE *f = fopen(at("foreign"), "w+b");
    if (f == NULL || ftruncate(fileno(f), (off_t)bytes) != 0 ||
        mmap(before, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, fileno(f), 0) != before ||
        ftruncate(fileno(f), 0) != 0) {
        _exit(3);
    }
    _exit(4 + *(const volatile char *)before); /* read as zeros: a reader takes it for the array */
}

static void test_unmapped_is_forgotten(void **state)
{
    dt_npy_writer *w = NULL;
    const float row[4] = {0};
    int status = 0;
    assert_ok(dt_npy_create(at("a.npy"), DT_F32, 4, &w));
    assert_ok(dt_npy_append(w, row, 1));
    assert_ok(dt_npy_close(w));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        touch_after_unmap();
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bytes, begin, end),
        cmocka_unit_test_setup_teardown(test_round_trips, begin, end),
        cmocka_unit_test_setup_teardown(test_refusals, begin, end),
        cmocka_unit_test_setup_teardown(test_memory, begin, end),
        cmocka_unit_test_setup_teardown(test_full_disk, begin, end),
        cmocka_unit_test_setup_teardown(test_unmapped_is_forgotten, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
