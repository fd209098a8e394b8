/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/store/blocks.c, block_cache.c and packed.c: what is kept in fewer bits is off by no more
 * than is said, what is packed comes out again, slices are those of the whole, and damage is refused.
 */
#include "fixture.h"

#include "traffic/store/npy.h"
#include "traffic/store/merge_split.h"

#include <pthread.h>

enum { WIDTH = 3, ROWS = 50021 };
static float value[ROWS][WIDTH];
static const dt_packing way[] = {{.features = DT_KEPT_F16, .codec = DT_CODEC_NONE, .level = 0},
                                 {.features = DT_KEPT_I8, .codec = DT_CODEC_NONE, .level = 0},
                                 {.features = DT_KEPT_F32, .codec = DT_CODEC_ZSTD, .level = 1},
                                 {.features = DT_KEPT_F16, .codec = DT_CODEC_ZSTD, .level = 3},
                                 {.features = DT_KEPT_I8, .codec = DT_CODEC_ZSTD, .level = 19}};
enum { WAYS = sizeof(way) / sizeof(way[0]) };

static bool is_possible(const dt_packing *p)
{
    return p->codec != DT_CODEC_ZSTD || dt_blocks_has_zstd();
}

/* Positions far from the origin, speeds, and what is nearly always 0. */
static void draw_values(void)
{
    uint64_t x = 12345;
    for (int i = 0; i < ROWS; i++) {
        for (int d = 0; d < WIDTH; d++) {
            x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            const float u = (float)(x >> 40) * 0x1p-24f;
            value[i][d] = d == 0 ? 431000 + 800 * u : d == 1 ? 30 * u - 5 : u > 0.9f ? u : 0;
        }
    }
}

static void make_blocks(const char *name, const dt_packing *how, double error[WIDTH])
{
    dt_blocks_desc d = {.kind = how->features, .codec = how->codec, .width = WIDTH, .level = how->level};
    dt_blocks_writer *w = NULL;
    for (int k = 0; k < WIDTH; k++) {
        double min = 0, max = 0;
        for (int i = 0; i < ROWS; i++) {
            min = i == 0 || value[i][k] < min ? value[i][k] : min;
            max = i == 0 || value[i][k] > max ? value[i][k] : max;
        }
        d.column[k] = dt_block_column_of(d.kind, min, max);
    }
    assert_ok(dt_blocks_create(at(name), &d, &w));
    assert_ok(dt_blocks_append(w, value, 1));
    assert_ok(dt_blocks_append(w, value[1], ROWS - 1));
    for (uint32_t k = 0; k < WIDTH; k++) {
        error[k] = dt_blocks_error(w, k);
    }
    assert_ok(dt_blocks_close(w));
}

static void test_slices(void **state)
{
    static float got[ROWS][WIDTH];
    draw_values();
    for (size_t i = 0; i < WAYS; i++) {
        double error[WIDTH];
        dt_blocks b;
        dt_block_cache *c = NULL;
        if (!is_possible(&way[i])) {
            continue;
        }
        make_blocks("a.blocks", &way[i], error);
        assert_ok(dt_blocks_map(at("a.blocks"), &b));
        assert_int_equal(b.rows, ROWS);
        assert_true(b.n_blocks > 1);
        assert_ok(dt_block_cache_create(1, &c));
        assert_ok(dt_block_cache_read(c, &b, 0, "a", 0, ROWS, got));
        for (int r = 0; r < ROWS; r++) {
            for (int k = 0; k < WIDTH; k++) {
                assert_true(fabs((double)got[r][k] - (double)value[r][k]) <= error[k]);
            }
            assert_true(value[r][2] != 0 || got[r][2] == 0); /* nothing stays nothing */
        }
        const bool is_exact = way[i].features == DT_KEPT_F32;
        assert_true(is_exact == (error[0] == 0) && is_exact == (error[1] == 0));
        assert_true(error[0] <= 2 && error[1] <= 0.08); /* a step of 800 m / 253 and of 30 m/s / 253, halved */
        for (int r = 0; r + 777 < ROWS; r += 1913) {
            float slice[777][WIDTH];
            assert_ok(dt_block_cache_read(c, &b, 0, "a", r, 777, slice));
            assert_memory_equal(slice, got[r], sizeof(slice));
        }
        assert_ok(dt_block_cache_read(c, &b, 0, "a", ROWS, 0, got));
        dt_block_cache_destroy(c);
        dt_blocks_unmap(&b);
        assert_ok(dt_fs_remove_tree(at("a.blocks")));
    }
}

/* Columns of every kind: one value alone, large ones, small ones, zero at a border. */
static void test_bounds(void **state)
{
    static const double range[][2] = {{0, 0},   {7, 7},        {-3, -3},       {0, 1},     {-1, 1},   {4.99e6, 5.01e6},
                                      {0, 3e5}, {-1e38, 1e38}, {1e-30, 2e-30}, {0, 65504}, {-9, 3.2}, {65000, 66000}};
    for (size_t i = 0; i < sizeof(range) / sizeof(range[0]); i++) {
        for (uint32_t kind = DT_KEPT_F16; kind <= DT_KEPT_I8; kind++) {
            dt_blocks_desc d = {.kind = kind, .width = 1};
            dt_blocks_writer *w = NULL;
            dt_blocks b;
            d.column[0] = dt_block_column_of(kind, range[i][0], range[i][1]);
            assert_ok(dt_blocks_create(at("b"), &d, &w));
            for (int k = 0; k <= 1000; k++) {
                const float x = (float)(range[i][0] + (range[i][1] - range[i][0]) * k / 1000);
                assert_ok(dt_blocks_append(w, &x, 1));
            }
            const double error = dt_blocks_error(w, 0);
            const double bound = dt_block_column_bound(kind, &d.column[0], range[i][0], range[i][1]);
            if (!(error <= bound)) {
                fail_msg("kind %u, [%g, %g]: off by %g, said is %g", kind, range[i][0], range[i][1], error, bound);
            }
            assert_true(range[i][0] < range[i][1] || kind == DT_KEPT_F16 || error <= fabs(range[i][0]) * 1e-7);
            assert_ok(dt_blocks_close(w));
            assert_ok(dt_blocks_map(at("b"), &b));
            dt_blocks_unmap(&b);
            assert_ok(dt_fs_remove_tree(at("b")));
        }
    }
}

typedef struct reader {
    const dt_blocks *b;
    dt_block_cache *c;
    uint32_t number;
    bool is_right;
} reader;

static void *read_about(void *user)
{
    reader *r = user;
    uint64_t x = r->number + 1;
    r->is_right = true;
    for (int i = 0; i < 400; i++) {
        float slice[50][WIDTH];
        x = x * UINT64_C(6364136223846793005) + 1;
        const int64_t from = (int64_t)(x >> 33) % (ROWS - 50);
        r->is_right = r->is_right && dt_block_cache_read(r->c, r->b, 3, "a", from, 50, slice) == DT_OK &&
                      memcmp(slice, value[from], sizeof(slice)) == 0;
    }
    return NULL;
}

/* Held are no more blocks than were asked for, and threads get what one alone gets. */
static void test_cache(void **state)
{
    double error[WIDTH];
    dt_blocks b;
    dt_block_cache *c = NULL;
    pthread_t thread[4];
    reader r[4];
    if (!dt_blocks_has_zstd()) {
        skip();
    }
    draw_values();
    make_blocks("a.blocks", &way[2], error);
    assert_ok(dt_blocks_map(at("a.blocks"), &b));
    assert_ok(dt_block_cache_create(0, &c));
    for (uint32_t i = 0; i < 4; i++) {
        r[i] = (reader){&b, c, i, false};
        assert_int_equal(pthread_create(&thread[i], NULL, read_about, &r[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_true(r[i].is_right);
    }
    const dt_block_cache_use u = dt_block_cache_use_of(c);
    assert_true(u.asked >= 1600 && u.unpacked < u.asked && u.bytes <= (uint64_t)8 * DT_BLOCKS_BYTES_MAX);
    dt_block_cache_destroy(c);
    dt_blocks_unmap(&b);
}

static void expect_refused(const char *bytes, size_t n, const char *words)
{
    dt_blocks b;
    put_bytes("bad", bytes, n);
    assert_fails(dt_blocks_map(at("bad"), &b), DT_EDATA, words);
}

/* Every byte of the header and of the index, changed: refused, or it means nothing else than rows that are read. */
static void test_damage(void **state)
{
    char *bytes = NULL;
    size_t n = 0;
    double error[WIDTH];
    draw_values();
    make_blocks("a.blocks", &way[1], error);
    assert_ok(dt_fs_read_all(at("a.blocks"), SIZE_MAX / 2, &bytes, &n));
    expect_refused("", 0, "");
    expect_refused(bytes, 63, "is not an array in blocks");
    expect_refused(bytes, 100, "do not make 100 bytes");
    expect_refused(bytes, n - 1, "do not make");
    bytes[0] ^= 1;
    expect_refused(bytes, n, "is not an array in blocks");
    bytes[0] ^= 1;
    bytes[8] = 2;
    expect_refused(bytes, n, "blocks of version 2, this program reads version 1");
    bytes[8] = 1;
    bytes[20] = 17;
    expect_refused(bytes, n, "the header is damaged");
    bytes[20] = WIDTH;
    bytes[32] ^= 1;
    expect_refused(bytes, n, "rows, expected");
    bytes[32] ^= 1;
    const double wrong = INFINITY, kept = *(double *)(void *)(bytes + 64);
    memcpy(bytes + 64, &wrong, sizeof(wrong));
    expect_refused(bytes, n, "column 0 has scale inf");
    memcpy(bytes + 64, &kept, sizeof(kept));
    bytes[n - 3] ^= 1;
    expect_refused(bytes, n, "runs from byte");
    bytes[n - 3] ^= 1;
    dt_free(bytes);
    if (!dt_blocks_has_zstd()) {
        return;
    }
    dt_blocks b;
    static unsigned char out[DT_BLOCKS_BYTES_MAX], room[DT_BLOCKS_BYTES_MAX];
    const void *p = NULL;
    make_blocks("z.blocks", &way[3], error);
    assert_ok(dt_fs_read_all(at("z.blocks"), SIZE_MAX / 2, &bytes, &n));
    bytes[300] ^= 1; /* in the first block: its checksum shows it */
    assert_ok(dt_blocks_open_bytes(bytes, n, "z", &b));
    assert_fails(dt_blocks_unpack(&b, "z", 0, out, room, &p), DT_EDATA, "z: block 0 is damaged");
    assert_ok(dt_blocks_unpack(&b, "z", 1, out, room, &p));
    dt_free(bytes);
}

/* ---- whole stores ------------------------------------------------------------------------------------------------ */

static void make_store(const char *name, const dt_packing *how)
{
    dt_store_writer *w = NULL;
    const dt_store_meta meta = {.frame_rate_hz = 5, .smooth_s = 0.4, .source = "t", .packing = *how};
    assert_ok(dt_store_create(at(name), &meta, &w));
    for (int s = 0; s < 3; s++) {
        char scene[8];
        assert_ok(dt_store_scene_begin(w));
        for (int f = 0; f < 40; f++) {
            dt_vehicle v[6];
            for (int i = 0; i < 6; i++) { /* numbers that floats keep whole, so that a merge makes the same of them */
                v[i] = (dt_vehicle){.id = 10 * i + s,
                                    .x = 400000 + 9.25 * i + f * (2 + 0.125 * i),
                                    .y = 3.5 * (i % 3),
                                    .heading = 0.25 * s,
                                    .speed = 10 + 0.5 * i - (f > 30 ? 1.5 * (f - 30) * (i == 5) : 0),
                                    .accel = NAN,
                                    .length = 4.5,
                                    .width = 2,
                                    .stop_distance = i == 1 ? 77.0 + 0.125 * f : NAN,
                                    .controlled = i == 1};
            }
            assert_ok(dt_store_frame(w, f, 0.2 * f, v, 6));
        }
        snprintf(scene, sizeof(scene), "s%d", s);
        assert_ok(dt_store_scene_end(w, scene, "x"));
    }
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
}

static void assert_near(const dt_store *s, const dt_store *plain, uint32_t array, int64_t n, int width,
                        const double *off)
{
    float *got = malloc((size_t)(n * width) * sizeof(float)), *want = malloc((size_t)(n * width) * sizeof(float));
    assert_ok(dt_store_read(s, array, 0, n, got));
    assert_ok(dt_store_read(plain, array, 0, n, want));
    for (int64_t i = 0; i < n * width; i++) {
        assert_true(fabs((double)got[i] - (double)want[i]) <= off[i % width]);
    }
    free(got);
    free(want);
}

/* The recording is the same, features are off by no more than is said, and a merge of it makes the plain store. */
static void test_stores(void **state)
{
    dt_str notes = {0};
    dt_store *plain = NULL, *s = NULL, *again = NULL;
    make_store("plain", &(dt_packing){0});
    assert_ok(dt_store_open(at("plain"), &plain));
    const dt_store_view *v = dt_store_view_of(plain);
    for (size_t i = 0; i < WAYS; i++) {
        if (!is_possible(&way[i])) {
            continue;
        }
        make_store("s", &way[i]);
        assert_ok(dt_store_open(at("s"), &s));
        const dt_packed *p = dt_store_packed(s);
        assert_int_equal(dt_store_digest(s), dt_store_digest(plain));
        assert_int_equal(p->how.features, way[i].features);
        assert_null(dt_store_view_of(s)->node);
        assert_int_equal(dt_store_view_of(s)->edge_src == NULL, way[i].codec == DT_CODEC_ZSTD);
        assert_near(s, plain, DT_STORE_NODE, v->n_rows, 9, p->errors.node);
        assert_near(s, plain, DT_STORE_EDGE, v->n_edges, 4, p->errors.edge);
        assert_true(dt_store_bytes(s) < dt_store_bytes(plain));
        float room[9];
        assert_fails(dt_store_read(s, DT_STORE_NODE, v->n_rows, 1, room), DT_EINVAL, "do not exist");
        assert_fails(dt_store_read(s, DT_STORE_EDGE, -1, 1, room), DT_EINVAL, "do not exist");
        assert_fails(dt_store_read(s, 3, 0, 1, room), DT_EINVAL, "of array 3");
        dt_store_close(s);
        assert_ok(dt_data_merge((const char *[]){at("s")}, 1, at("m"), NULL, &notes));
        assert_ok(dt_store_open(at("m"), &again));
        const dt_store_view *m = dt_store_view_of(again);
        assert_memory_equal(m->node, v->node, (size_t)v->n_rows * 9 * sizeof(float));
        assert_memory_equal(m->edge, v->edge, (size_t)v->n_edges * 4 * sizeof(float));
        assert_memory_equal(m->edge_src, v->edge_src, (size_t)v->n_edges * sizeof(int32_t));
        assert_memory_equal(m->risk, v->risk, (size_t)v->n_rows);
        dt_store_close(again);
        assert_ok(dt_fs_remove_tree(at("s")));
        assert_ok(dt_fs_remove_tree(at("m")));
    }
    dt_store_close(plain);
    dt_str_fini(&notes);
}

static void test_damaged_stores(void **state)
{
    dt_store *s = NULL;
    make_store("s", &way[1]);
    replace_in("s/store.json", "\"features\":\"i8\"", "\"features\":\"i9\"");
    assert_fails(dt_store_open(at("s"), &s), DT_EDATA, "features \"i9\" is not known");
    replace_in("s/store.json", "\"features\":\"i9\"", "\"features\":\"i8\"");
    replace_in("s/store.json", "\"compress\":\"none\"", "\"compress\":\"zstd\"");
    if (dt_blocks_has_zstd()) {
        assert_fails(dt_store_open(at("s"), &s), DT_EDATA, "node.blocks: ");
    }
    replace_in("s/store.json", "\"compress\":\"zstd\"", "\"compress\":\"none\"");
    replace_in("s/store.json", "\"errors\":{\"node\":[0", "\"errors\":{\"node\":[9");
    assert_fails(dt_store_open(at("s"), &s), DT_EDATA, "column 0 is said to be off by");
    replace_in("s/store.json", "\"errors\":{\"node\":[9", "\"errors\":{\"node\":[0");
    assert_ok(dt_store_open(at("s"), &s));
    dt_store_close(s);
    char *bytes = NULL;
    size_t n = 0;
    assert_ok(dt_fs_read_all(at("s/node.blocks"), SIZE_MAX / 2, &bytes, &n));
    double scale;
    memcpy(&scale, bytes + 64 + 16 * 2, sizeof(scale)); /* of speeds: twice as fast */
    scale *= 2;
    memcpy(bytes + 64 + 16 * 2, &scale, sizeof(scale));
    put_bytes("s/node.blocks", bytes, n);
    dt_free(bytes);
    assert_fails(dt_store_open(at("s"), &s), DT_EDATA, "outside [");
    assert_ok(dt_fs_remove_tree(at("s/node.blocks")));
    assert_fails(dt_store_open(at("s"), &s), DT_EDATA, "node.blocks is missing from the store");
    const dt_store_meta wrong = {.frame_rate_hz = 5, .packing = {.features = 7}};
    dt_store_writer *w = NULL;
    assert_fails(dt_store_create(at("w"), &wrong, &w), DT_EINVAL, "no way to keep a store");
    if (!dt_blocks_has_zstd()) {
        const dt_store_meta zstd = {.frame_rate_hz = 5, .packing = {.codec = DT_CODEC_ZSTD}};
        assert_fails(dt_store_create(at("w"), &zstd, &w), DT_EUNSUPPORTED, "built without zstd");
    }
}

/* Whatever fails while it is packed, nothing is left that looks like a store, and nothing leaks. */
static dt_status write_one(dt_store_writer **w_p)
{
    const dt_store_meta meta = {
        .frame_rate_hz = 5,
        .packing = {.features = DT_KEPT_I8, .codec = dt_blocks_has_zstd() ? DT_CODEC_ZSTD : DT_CODEC_NONE}};
    const dt_vehicle v = {.id = 1, .length = 4, .width = NAN, .stop_distance = NAN};
    DT_TRY(dt_store_create(at("s"), &meta, w_p));
    DT_TRY(dt_store_scene_begin(*w_p));
    DT_TRY(dt_store_frame(*w_p, 0, 0, &v, 1));
    DT_TRY(dt_store_scene_end(*w_p, "a", "x"));
    return dt_store_commit(*w_p);
}

static void test_interruptions(void **state)
{
    static const char *const point[] = {"alloc", "fs.*"};
    dt_fs_set_flush(false);
    const uint64_t live = dt_alloc_live_bytes();
    for (size_t p = 0; p < 2; p++) {
        for (int n = 1;; n += p == 0 ? 1 : 5) {
            char spec[64];
            dt_store_writer *w = NULL;
            snprintf(spec, sizeof(spec), "%s:%d", point[p], n);
            dt_fault_reset(spec);
            const dt_status st = write_one(&w);
            const bool is_over = dt_fault_count() == 0;
            dt_fault_reset(NULL);
            dt_store_destroy(w);
            assert_int_equal(dt_alloc_live_bytes(), live);
            assert_true(st == DT_OK || !dt_fs_is_dir(at("s")));
            assert_false(dt_fs_is_dir(at("s.partial")));
            assert_ok(dt_fs_remove_tree(at("s")));
            if (is_over) {
                assert_true(st == DT_OK && n > 20);
                break;
            }
        }
    }
    dt_fs_set_flush(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_slices, begin, end),
        cmocka_unit_test_setup_teardown(test_bounds, begin, end),
        cmocka_unit_test_setup_teardown(test_cache, begin, end),
        cmocka_unit_test_setup_teardown(test_damage, begin, end),
        cmocka_unit_test_setup_teardown(test_stores, begin, end),
        cmocka_unit_test_setup_teardown(test_damaged_stores, begin, end),
        cmocka_unit_test_setup_teardown(test_interruptions, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
