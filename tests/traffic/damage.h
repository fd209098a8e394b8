/* SPDX-License-Identifier: Apache-2.0
 *
 * A sound store that is damaged in one place at a time, which every open reports. The test that includes this
 * says what the sound store is.
 */
#ifndef DTRAIN_TESTS_DATA_DAMAGE_H
#define DTRAIN_TESTS_DATA_DAMAGE_H

#include "fixture.h"

#include "traffic/store/npy.h"
#include "traffic/store/store.h"

static void make_sound(const char *name);

/* The sound store, copied: making one waits for the disk. */
static void restore(void)
{
    char **name = NULL, from[512], to[512];
    size_t n = 0;
    if (!dt_fs_is_dir(at("sound"))) {
        make_sound("sound");
    }
    assert_ok(dt_fs_remove_tree(at("s")));
    assert_ok(dt_fs_mkdirs(at("s")));
    assert_ok(dt_fs_list(at("sound"), &name, &n));
    for (size_t i = 0; i < n; i++) {
        char *text = NULL;
        size_t bytes = 0;
        snprintf(from, sizeof(from), "sound/%s", name[i]);
        snprintf(to, sizeof(to), "s/%s", name[i]);
        assert_ok(dt_fs_read_all(at(from), 1 << 20, &text, &bytes));
        put_bytes(to, text, bytes);
        dt_free(text);
    }
    dt_fs_list_free(name, n);
}

static void expect_refused(const char *words)
{
    dt_store *s = NULL;
    const uint64_t live = dt_alloc_live_bytes();
    assert_fails(dt_store_open(at("s"), &s), DT_EDATA, words);
    assert_int_equal(dt_alloc_live_bytes(), live);
    restore();
}

/* One value of an array changed in place: refused in these words. */
#define SPOIL(name, T, dtype, width, index, value, words)                                                              \
    do {                                                                                                               \
        dt_npy a_;                                                                                                     \
        assert_ok(dt_npy_map_rw(at("s/" name ".npy"), dtype, width, &a_));                                             \
        ((T *)(uintptr_t)a_.data)[index] = value;                                                                      \
        dt_npy_unmap(&a_);                                                                                             \
        expect_refused(words);                                                                                         \
    } while (0)

/* Words of store.json changed: refused in these. */
static void spoil_description(const char *from, const char *to, const char *words)
{
    replace_in("s/store.json", from, to);
    expect_refused(words);
}

#endif
