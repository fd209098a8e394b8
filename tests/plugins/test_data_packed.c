/* SPDX-License-Identifier: Apache-2.0
 *
 * data_trajectory over packed stores: every field of every sample is that of the plain store.
 */
#include "trajectory_bench.h"
#include "trajectory_recording.h"

/* Every field of every sample, one after the other. */
static unsigned char *read_everything(const char *store, const char *const *set, size_t *bytes_p)
{
    bench b;
    unsigned char *all = NULL;
    *bytes_p = 0;
    assert_int_equal(bench_open(&b, store, set), DT_OK);
    for (uint64_t i = 0; i + 1 < bench_count(&b); i += 2) {
        const uint64_t index[] = {i, i + 1}, key[] = {0, i};
        bench_read(&b, index, key, 2);
        for (uint32_t f = 0; f < b.n_fields; f++) {
            const size_t bytes = values_of(&b, b.field[f].dims) * bytes_of(b.field[f].dtype);
            all = realloc(all, *bytes_p + bytes + 1);
            memcpy(all + *bytes_p, b.out[f], bytes);
            *bytes_p += bytes;
        }
    }
    bench_close(&b);
    return all;
}

/* What is read of a packed store is what is read of a plain one, bit for bit; in fewer bits it is near. */
static void test_packed_stores(void **state)
{
    static const char *const set[] = {WINDOW, "pairs=true", "action_s=0.5", "hazard_ttc_s=3", "lanes=true", NULL};
    size_t bytes[4] = {0};
    unsigned char *all[4];
    write_store_of("s", 10, true, &(dt_packing){0});
    all[0] = read_everything("s", set, &bytes[0]);
    assert_true(bytes[0] > 100000);
    for (uint32_t i = 1; i < 4; i++) {
        static const dt_packing ways[4] = {{0},
                                           {.features = DT_KEPT_F32, .codec = DT_CODEC_ZSTD, .level = 3},
                                           {.features = DT_KEPT_F16, .codec = DT_CODEC_NONE, .level = 0},
                                           {.features = DT_KEPT_F16, .codec = DT_CODEC_ZSTD, .level = 9}};
        char name[8] = {'p', (char)('0' + i), '\0'};
        if (ways[i].codec == DT_CODEC_ZSTD && !dt_blocks_has_zstd()) {
            all[i] = NULL;
            continue;
        }
        write_store_of(name, 10, true, &ways[i]);
        all[i] = read_everything(name, set, &bytes[i]);
        assert_int_equal(bytes[i], bytes[0]);
    }
    if (dt_blocks_has_zstd()) {
        assert_memory_equal(all[1], all[0], bytes[0]);
        assert_memory_equal(all[3], all[2], bytes[0]);
    }
    assert_memory_not_equal(all[2], all[0], bytes[0]);
    for (int i = 0; i < 4; i++) {
        free(all[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_packed_stores, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
