/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/state/checkpoint/save.c, load.c and manifest.c: what was saved comes back bit by bit, what is damaged
 * or of another kind is refused, what is kept is what was asked for. test_ckpt_faults.c has calls that fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "state/checkpoint/manifest.h"
#include "state/checkpoint/sealed.h"
#include "state/checkpoint/shards.h"
#include "small_run.h"

static const int64_t dim_other[2] = {3, 4};

/* ---- saving and loading ---- */

static void test_what_was_saved_comes_back(void **state)
{
    dt_ckpt_info info;
    assert_int_equal(small_run_save(5, &info), DT_OK);
    assert_int_equal(small_run_save(12, &info), DT_OK);
    assert_true(strstr(info.path, "/checkpoints/step-000000000012") != NULL);
    static const char *const files[] = {"COMMIT",
                                        "MANIFEST.json",
                                        "config.cfg",
                                        "model.safetensors",
                                        "optim.safetensors",
                                        "plugin-phase1_world_model.bin",
                                        "state.json"};
    char **names = NULL;
    size_t n = 0;
    assert_int_equal(dt_fs_list(info.path, &names, &n), DT_OK);
    assert_int_equal(n, 7);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(names[i], files[i]);
    }
    dt_fs_list_free(names, n);

    char *hint = NULL;
    assert_int_equal(dt_fs_read_all(small_run_path("LATEST"), 100, &hint, &n), DT_OK);
    assert_string_equal(hint, "step-000000000012\n");
    dt_free(hint);

    /* by run, by folder, by step, with a slash at the end */
    static const char *const ways[] = {"", "/", "/checkpoints", "/checkpoints/step-000000000012",
                                       "/checkpoints/step-000000000012/"};
    for (size_t i = 0; i < 5; i++) {
        dt_ckpt *c = NULL;
        char path[512];
        snprintf(path, sizeof(path), "%s%s", run.dir, ways[i]);
        assert_int_equal(dt_ckpt_open(path, false, NULL, &c), DT_OK);
        assert_true(small_run_is_at(c, 12));
        const dt_ckpt_info *got = dt_ckpt_info_get(c);
        assert_string_equal(got->run, "demo-1");
        assert_string_equal(got->phase, "phase1_world_model");
        assert_string_equal(got->config_hash, "c0ffee");
        assert_string_equal(got->metric_name, "loss");
        assert_string_equal(got->plugins[0].version, "1.0.0");
        assert_string_equal(got->state_hash, info.state_hash);
        assert_string_equal(got->weights_hash, info.weights_hash);
        assert_true(got->metric == 1 && got->epoch == 1 && got->phase_index == 1 && got->leaves == 8 &&
                    got->ranks == 2);
        assert_true(got->bytes == info.bytes && got->bytes > 500 && got->n_plugins == 1 && !got->phase_end);
        dt_ckpt_blob blob;
        assert_false(dt_ckpt_blob_find(c, "other", &blob));
        assert_int_equal(dt_safetensors_count(dt_ckpt_model(c)), 2);
        dt_ckpt_close(c);
    }
    dt_ckpt *c = NULL;
    assert_int_equal(dt_ckpt_open(small_run_path("step-000000000005"), false, NULL, &c), DT_OK);
    assert_true(small_run_is_at(c, 5));
    dt_ckpt_close(c);
}

static void test_equal_hashes_mean_equal_bits(void **state)
{
    dt_ckpt_info a, b, other;
    assert_int_equal(small_run_save(7, &a), DT_OK);
    assert_int_equal(small_run_save(7, &b), DT_OK);
    assert_int_equal(small_run_save(8, &other), DT_OK);
    assert_string_equal(a.weights_hash, b.weights_hash);
    assert_string_equal(a.state_hash, b.state_hash);
    assert_string_not_equal(a.weights_hash, other.weights_hash);
    assert_string_not_equal(a.state_hash, other.state_hash);
    assert_int_equal(strlen(a.weights_hash), 16);
    /* the order of the list does not count, a bit of a value does */
    dt_ckpt_save_desc d = *small_run_describe(7);
    small_run_state r;
    small_run_fill(7, &r);
    dt_ckpt_tensor swapped[] = {d.model[1], d.model[0]};
    d.model = swapped;
    assert_int_equal(dt_ckpt_save(&d, &b), DT_OK);
    assert_string_equal(b.weights_hash, a.weights_hash);
    r.b[1] = nextafterf(r.b[1], 0);
    swapped[0].data = r.b;
    assert_int_equal(dt_ckpt_save(&d, &b), DT_OK);
    assert_string_not_equal(b.weights_hash, a.weights_hash);
}

static void test_the_same_step_is_replaced(void **state)
{
    assert_int_equal(small_run_save(7, NULL), DT_OK);
    run.metric = 0.5;
    dt_ckpt_info info;
    assert_int_equal(small_run_save(7, NULL), DT_OK);
    assert_int_equal(small_run_count("step-*"), 1);
    assert_int_equal(dt_ckpt_inspect(run.dir, &info), DT_OK);
    assert_true(info.metric == 0.5);
    assert_int_equal(small_run_step(), 7);
}

static void test_another_model_is_refused(void **state)
{
    assert_int_equal(small_run_save(7, NULL), DT_OK);
    dt_ckpt *c = NULL;
    float w[SMALL_RUN_W] = {0}, zero[SMALL_RUN_W] = {0};
    assert_int_equal(dt_ckpt_open(run.dir, false, NULL, &c), DT_OK);
    const dt_ckpt_tensor turned[] = {{"world.w", dim_other, 2, w}, {"controller.w", small_run_dim_b, 1, w}};
    assert_int_equal(dt_ckpt_load_model(c, turned, 2, DT_LOAD_EXACT), DT_ESHAPE);
    assert_non_null(strstr(dt_error_text(), "model.safetensors"));
    assert_non_null(strstr(dt_error_text(), "world.w"));
    assert_non_null(strstr(dt_error_text(), "controller.w"));
    assert_non_null(strstr(dt_error_text(), "perception.b"));
    assert_memory_equal(w, zero, sizeof(w));
    dt_ckpt_close(c);
    dt_ckpt_close(NULL);
}

static void test_none_and_none_valid_differ(void **state)
{
    dt_ckpt *c = NULL;
    dt_ckpt_info info, *list = NULL;
    uint32_t n = 9;
    assert_int_equal(rmdir(run.dir), 0);
    assert_int_equal(dt_ckpt_open(run.dir, true, NULL, &c), DT_ENOTFOUND);
    assert_non_null(strstr(dt_error_text(), "no run or checkpoint at"));
    assert_int_equal(dt_ckpt_list(run.dir, &list, &n), DT_ENOTFOUND);
    assert_int_equal(dt_fs_mkdirs(run.dir), DT_OK);
    assert_int_equal(dt_ckpt_open(run.dir, true, NULL, &c), DT_ENOTFOUND);
    assert_non_null(strstr(dt_error_text(), "no checkpoint in"));
    assert_int_equal(dt_ckpt_inspect(run.dir, &info), DT_ENOTFOUND);
    assert_int_equal(dt_ckpt_list(run.dir, &list, &n), DT_OK);
    assert_int_equal(n, 0);
    dt_free(list);
    assert_int_equal(dt_ckpt_verify(small_run_path("step-000000000001"), &info), DT_ENOTFOUND);

    assert_int_equal(small_run_save(1, NULL), DT_OK);
    assert_int_equal(small_run_save(2, NULL), DT_OK);
    assert_int_equal(unlink(small_run_path("step-000000000001/COMMIT")), 0);
    assert_int_equal(truncate(small_run_path("step-000000000002/model.safetensors"), 20), 0);
    assert_int_equal(dt_ckpt_open(run.dir, false, NULL, &c), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "none of the 2 checkpoints"));
    assert_non_null(strstr(dt_error_text(), "model.safetensors has 20 bytes")); /* why the newest is not */
    assert_int_equal(dt_ckpt_inspect(run.dir, &info), DT_EDATA);
    assert_int_equal(dt_ckpt_list(run.dir, &list, &n), DT_OK);
    assert_int_equal(n, 2);
    assert_false(list[0].valid || list[1].valid);
    assert_int_equal(list[1].step, 2);
    assert_non_null(strstr(list[0].why, "never committed"));
    dt_free(list);
    assert_int_equal(dt_ckpt_open(small_run_path("step-000000000001"), true, NULL, &c), DT_EDATA);
    assert_true(dt_fs_is_dir(small_run_path("step-000000000001"))); /* named by the user: it stays where it is */
}

/* Thousands of folders of nothing, as a third-party run may hold them, are a few lines. */
static void test_many_damaged_ones_are_counted(void **state)
{
    enum { MANY = 300 };
    assert_int_equal(small_run_save(1, NULL), DT_OK);
    for (int i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof(name), "step-%012d", 2 + i);
        assert_int_equal(mkdir(small_run_path(name), 0777), 0);
    }
    dt_str report = {0};
    dt_ckpt *c = NULL;
    assert_int_equal(dt_ckpt_open(run.dir, false, &report, &c), DT_OK);
    assert_true(small_run_is_at(c, 1));
    dt_ckpt_close(c);
    int n_lines = 0;
    for (const char *p = report.text; *p != '\0'; p++) {
        n_lines += *p == '\n';
    }
    assert_int_equal(n_lines, DT_CKPT_MAX_SKIPS_LISTED + 1);
    assert_non_null(strstr(report.text, "\n292 more skipped\n"));
    dt_str_fini(&report);
}

static void test_damaged_ones_are_quarantined_and_reported(void **state)
{
    for (uint64_t step = 1; step <= 3; step++) {
        assert_int_equal(small_run_save(step, NULL), DT_OK);
    }
    int fd = open(small_run_path("step-000000000003/optim.safetensors"), O_WRONLY);
    assert_int_equal(pwrite(fd, "\x55", 1, 200), 1);
    close(fd);
    assert_int_equal(unlink(small_run_path("step-000000000002/state.json")), 0);
    assert_int_equal(mkdir(small_run_path("step-000000000009.tmp.77"), 0777),
                     0); /* of a save that crashed: not looked at */
    dt_str report = {0};
    dt_ckpt *c = NULL;
    assert_int_equal(dt_ckpt_open(run.dir, false, &report, &c), DT_OK);
    assert_true(small_run_is_at(c, 1));
    dt_ckpt_close(c);
    assert_non_null(strstr(report.text, "step-000000000003 skipped: "));
    assert_non_null(strstr(report.text, "optim.safetensors"));
    assert_non_null(strstr(report.text, "step-000000000002 skipped: "));
    assert_non_null(strstr(report.text, "state.json"));
    assert_null(strstr(report.text, "quarantine"));
    assert_int_equal(small_run_count("step-*"), 4); /* looking moves nothing */
    dt_str_clear(&report);
    assert_int_equal(dt_ckpt_open(run.dir, true, &report, &c), DT_OK);
    assert_true(small_run_is_at(c, 1));
    dt_ckpt_close(c);
    assert_non_null(strstr(report.text, "moved to quarantine"));
    assert_int_equal(small_run_count("step-*"), 2);
    char **names = NULL;
    size_t n = 0;
    assert_int_equal(dt_fs_list(small_run_path("quarantine"), &names, &n), DT_OK);
    assert_int_equal(n, 2);
    assert_memory_equal(names[1], "step-000000000003.", 18);
    dt_fs_list_free(names, n);
    dt_str_clear(&report);
    assert_int_equal(dt_ckpt_open(run.dir, true, &report, &c), DT_OK);
    assert_string_equal(dt_str_text(&report), "");
    dt_ckpt_close(c);
    dt_str_fini(&report);
}

static void test_renamed_folders_and_other_formats_are_refused(void **state)
{
    dt_ckpt *c = NULL;
    assert_int_equal(small_run_save(1, NULL), DT_OK);
    char from[1024];
    snprintf(from, sizeof(from), "%s", small_run_path("step-000000000001"));
    assert_int_equal(dt_fs_rename(from, small_run_path("step-000000000099")), DT_OK);
    assert_int_equal(dt_ckpt_open(run.dir, false, NULL, &c), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "holds step 1: the folder was renamed"));

    static const char *const texts[][2] = {
        {"{\"format\":\"other\"}", "format is \"other\""},
        {"{\"format\":\"dtrain-checkpoint\",\"version\":2}", "checkpoint format 2, this dtrain reads format 1"},
        {"{}", "needs version and files"},
        {"[]", "must be an object"},
        {"{\"version\":1,\"files\":[{\"name\":\"../x\",\"bytes\":0,\"sha256\":\"\",\"crc32c\":[]}]}",
         "is not a plain file name"},
        {"{\"version\":1,\"files\":[{\"name\":\"x\\nerror y\",\"bytes\":0,\"sha256\":\"\",\"crc32c\":[]}]}",
         "\"x?error y\" is not a plain file name"},
        {"{\"version\":1,\"files\":[{\"name\":\"x\",\"bytes\":5,\"sha256\":\"\",\"crc32c\":[]}]}",
         "0 checksums for 5 bytes"},
        {"{\"version\":1,\"files\":[{\"crc32c\":[\"12\"]}]}", "8 hexadecimal digits"},
        {"{\"version\":1,\"step\":-1}", "step must be a whole number"},
        {"{\"version\":1,\"leaves\":4294967296}", "leaves must be a whole number from 0 to 4294967295"},
        {"{\"phase_end\":1}", "phase_end must be true or false"},
        {"{\"metric\":true}", "metric must be a number or null"},
        {"{\"plugins\":{}}", "plugins must be a list"},
        {"{\"plugins\":[1]}", "plugins must be a list"},
        {"{\"files\":[1]}", "files must be a list"},
        {"{\"wall_time\":\"012345678901234567890123456789012345678901234567890123456789\"}", "less than 32 bytes"},
    };
    dt_manifest *m = dt_alloc(sizeof(*m));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        memset(m, 0, sizeof(*m));
        assert_int_equal(dt_manifest_parse(texts[i][0], strlen(texts[i][0]), "M", m), DT_EDATA);
        if (strstr(dt_error_text(), texts[i][1]) == NULL) {
            fail_msg("%s: \"%s\" does not say \"%s\"", texts[i][0], dt_error_text(), texts[i][1]);
        }
    }
    dt_free(m);
}

/* ---- shards ---- */

static void test_shards_are_one_checkpoint(void **state)
{
    dt_ckpt_info whole, one, two, three;
    dt_ckpt *c = NULL;
    assert_int_equal(small_run_save(4, &whole), DT_OK);
    run.n_shards = 2;
    assert_int_equal(small_run_save(5, &one), DT_OK);
    assert_int_equal(small_run_save_apart(4, 0, &two), DT_OK); /* in the place of the whole one */
    run.n_shards = 3;                                          /* more than tensors: one is empty */
    assert_int_equal(small_run_save_apart(4, 0, &three), DT_OK);
    assert_string_equal(two.state_hash, whole.state_hash); /* whatever wrote it */
    assert_string_equal(three.state_hash, whole.state_hash);
    assert_string_equal(three.weights_hash, whole.weights_hash);
    assert_int_equal(small_run_count("step-*"), 2);
    for (uint64_t step = 4; step <= 5; step++) {
        char name[64];
        snprintf(name, sizeof(name), "step-%012d", (int)step);
        assert_int_equal(dt_ckpt_open(small_run_path(name), false, NULL, &c), DT_OK);
        assert_true(small_run_is_at(c, step));
        assert_true(dt_ckpt_info_get(c)->bytes == (step == 4 ? three.bytes : one.bytes));
        dt_ckpt_close(c);
    }
    /* other programs read the index and the files */
    char *index = NULL;
    size_t n = 0;
    assert_int_equal(dt_fs_read_all(small_run_path("step-000000000005/optim.safetensors.index.json"), 4096, &index, &n),
                     DT_OK);
    assert_string_equal(index, "{\"metadata\":{\"total_size\":96},\"weight_map\":{\"m.world.w\":"
                               "\"optim-00002-of-00002.safetensors\",\"v.world.w\":"
                               "\"optim-00002-of-00002.safetensors\"}}\n"); /* the first one has the model */
    dt_free(index);
    dt_safetensors *s = NULL;
    assert_int_equal(dt_safetensors_open(small_run_path("step-000000000005/optim-00002-of-00002.safetensors"), &s),
                     DT_OK);
    assert_int_equal(dt_safetensors_count(s), 2);
    assert_non_null(dt_safetensors_find(s, "m.world.w"));
    dt_safetensors_close(s);
}

static void test_a_shard_that_fails_or_lacks(void **state)
{
    dt_ckpt *c = NULL;
    run.n_shards = 3;
    assert_int_equal(small_run_save_apart(1, 0, NULL), DT_OK);
    assert_int_equal(small_run_save_apart(2, 2, NULL), DT_EIO);
    assert_non_null(strstr(dt_error_text(), "saving step 2: cannot write shard 2 of "));
    assert_int_equal(small_run_count("*"), 2); /* step 1 and LATEST */
    assert_int_equal(small_run_step(), 1);
    assert_int_equal(small_run_save_apart(3, 0, NULL), DT_OK);
    int fd = open(small_run_path("step-000000000003/optim-00003-of-00003.safetensors"), O_WRONLY);
    assert_int_equal(pwrite(fd, "\x55", 1, 20), 1);
    close(fd);
    dt_str report = {0};
    assert_int_equal(dt_ckpt_open(run.dir, false, &report, &c), DT_OK);
    assert_true(small_run_is_at(c, 1));
    dt_ckpt_close(c);
    assert_non_null(strstr(report.text, "optim-00003-of-00003.safetensors"));
    dt_str_fini(&report);
    assert_int_equal(unlink(small_run_path("step-000000000003/optim-00002-of-00003.safetensors")), 0);
    assert_int_equal(dt_ckpt_open(small_run_path("step-000000000003"), false, NULL, &c), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "optim-00002-of-00003.safetensors"));
}

/* A manifest that is sealed well and lists what does not belong together. */
static void test_manifests_of_wrong_shards(void **state)
{
    static const char *const lists[][3] = {
        {"optim-00001-of-00002.safetensors", "model.safetensors", "state.json"},
        {"optim-00001-of-00001.safetensors", "model.safetensors", "state.json"},
        {"optimum", "model.safetensors", "state.json"},
        {"config.cfg", "model.safetensors", "state.json"},
    };
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        dt_manifest *m = dt_alloc(sizeof(*m));
        for (; m->n_files < 3; m->n_files++) {
            snprintf(m->file[m->n_files].name, sizeof(m->file[0].name), "%s", lists[i][m->n_files]);
        }
        assert_int_equal(dt_manifest_count_shards(m), 0);
        snprintf(m->file[0].name, sizeof(m->file[0].name), "optim.safetensors");
        assert_int_equal(dt_manifest_count_shards(m), 1);
        dt_free(m);
    }
    run.n_shards = DT_CKPT_MAX_SHARDS + 1;
    assert_int_equal(small_run_save(1, NULL), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "limit is 256"));
    static const char *const names[] = {"", "../step-1.tmp.1", "step-000000000001", "step-1.tmp.1/x"};
    const dt_ckpt_save_desc d = {.run_dir = run.dir, .info = {.step = 1}, .state_json = "{}", .n_shards = 2};
    dt_ckpt_shard shard = {.bytes = 0};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(dt_ckpt_save_shard(&d, names[i], 1, &shard), DT_EINVAL);
        assert_non_null(strstr(dt_error_text(), "no checkpoint is written to \""));
    }
    assert_int_equal(dt_ckpt_save_shard(&d, "step-1.tmp.1", 2, &shard), DT_EINVAL);
}

static void test_joined_tensors(void **state)
{
    dt_safetensors *part[2] = {NULL}, *s = NULL;
    run.n_shards = 1;
    assert_int_equal(small_run_save(1, NULL), DT_OK);
    char path[1024];
    snprintf(path, sizeof(path), "%s", small_run_path("step-000000000001/optim.safetensors"));
    assert_int_equal(dt_safetensors_open(path, &part[0]), DT_OK);
    assert_int_equal(dt_safetensors_open(path, &part[1]), DT_OK);
    assert_int_equal(dt_safetensors_join(part, 2, "both", &s), DT_EDATA);
    assert_string_equal(dt_error_text(), "both: two tensors are called m.world.w");
}

/* A run directory that was removed while it was trained in does not come back. */
static void test_a_run_that_is_gone(void **state)
{
    assert_int_equal(small_run_save(1, NULL), DT_OK);
    assert_int_equal(dt_fs_remove_tree(run.dir), DT_OK);
    assert_int_equal(small_run_save(2, NULL), DT_EIO);
    assert_false(dt_fs_is_dir(run.dir));
    assert_int_equal(dt_fs_mkdir(run.dir), DT_OK);
    assert_int_equal(small_run_save(3, NULL), DT_OK);
    assert_int_equal(small_run_step(), 3);
}

static void test_refused_descriptions(void **state)
{
    float x[1] = {0};
    const int64_t negative[1] = {-1};
    dt_ckpt_save_desc d = {.run_dir = run.dir, .state_json = "{}"};
    d.info.step = 1000000000000;
    assert_int_equal(dt_ckpt_save(&d, NULL), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "999999999999"));
    d.info.step = 1;
    const dt_ckpt_blob blob = {.name = "../x", .data = "", .bytes = 0};
    d.blobs = &blob;
    d.n_blobs = 1;
    assert_int_equal(dt_ckpt_save(&d, NULL), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "../x"));
    d.n_blobs = 0;
    const dt_ckpt_tensor t = {"t", negative, 1, x};
    d.model = &t;
    d.n_model = 1;
    assert_int_equal(dt_ckpt_save(&d, NULL), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "tensor t has a shape"));
    assert_int_equal(rmdir(run.dir), 0); /* nothing was left in it */
    const dt_ckpt_keep keep = {.last = 0};
    assert_int_equal(dt_ckpt_prune(run.dir, &keep), DT_EINVAL);
}

static void test_files_above_a_chunk(void **state)
{
    const int64_t n = 700001; /* 2.67 MiB: three chunks, the last one short */
    const int64_t dim[1] = {n};
    float *x = dt_alloc_n((size_t)n, sizeof(*x)), *back = dt_alloc_n((size_t)n, sizeof(*x));
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)i * 0.5f;
    }
    const dt_ckpt_tensor t = {"big", dim, 1, x}, got = {"big", dim, 1, back};
    const dt_ckpt_save_desc d = {
        .run_dir = run.dir, .info = {.step = 4}, .model = &t, .n_model = 1, .state_json = "{}"};
    assert_int_equal(dt_ckpt_save(&d, NULL), DT_OK);
    dt_ckpt *c = NULL;
    assert_int_equal(dt_ckpt_open(run.dir, false, NULL, &c), DT_OK);
    assert_int_equal(dt_ckpt_load_model(c, &got, 1, DT_LOAD_EXACT), DT_OK);
    assert_memory_equal(x, back, (size_t)n * sizeof(*x));
    assert_true(isnan(dt_ckpt_info_get(c)->metric));
    dt_ckpt_close(c);
    int fd = open(small_run_path("step-000000000004/model.safetensors"), O_WRONLY);
    assert_int_equal(pwrite(fd, "\x55", 1, 1500000), 1);
    close(fd);
    assert_int_equal(dt_ckpt_open(run.dir, false, NULL, &c), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "1048576 and 2097152"));
    dt_free(x);
    dt_free(back);
}

/* ---- keeping ---- */

static void test_pruning(void **state)
{
    for (uint64_t step = 1; step <= 9; step++) {
        run.metric = fabs((double)step - 2.2); /* best: 2, then 3, then 1 */
        run.is_phase_end = step == 4;
        assert_int_equal(small_run_save(step, NULL), DT_OK);
    }
    assert_int_equal(unlink(small_run_path("step-000000000005/COMMIT")), 0); /* damaged: for the loader to move */
    assert_int_equal(mkdir(small_run_path("step-000000000003.tmp.12-3"), 0777), 0); /* crashed saves and prunings */
    assert_int_equal(mkdir(small_run_path("trash.step-000000000001.5"), 0777), 0);
    const dt_ckpt_keep keep = {.last = 2, .best = 2, .min = 2};
    assert_int_equal(dt_ckpt_prune(run.dir, &keep), DT_OK);
    static const char *const want[] = {"LATEST",
                                       "step-000000000002",
                                       "step-000000000003",
                                       "step-000000000004",
                                       "step-000000000005",
                                       "step-000000000008",
                                       "step-000000000009"};
    char **names = NULL;
    size_t n = 0;
    assert_int_equal(dt_fs_list(small_run_path(""), &names, &n), DT_OK);
    assert_int_equal(n, 7);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(names[i], want[i]);
    }
    dt_fs_list_free(names, n);
    const dt_ckpt_keep most = {.last = 1, .best = 1};
    assert_int_equal(dt_ckpt_prune(run.dir, &most), DT_OK);
    assert_int_equal(small_run_count("step-*"), 3); /* 4 as an end, 5 damaged, 9 newest and largest */
    assert_int_equal(small_run_step(), 9);
    run.phase_index = 2; /* of another phase: measured by itself */
    run.metric = 100;
    assert_int_equal(small_run_save(10, NULL), DT_OK);
    assert_int_equal(small_run_save(11, NULL), DT_OK);
    run.phase_index = 1;
    assert_int_equal(dt_ckpt_prune(run.dir, &most), DT_OK);
    assert_int_equal(small_run_count("step-*"), 4); /* 4, 5, and the best of each: 9, and 11, the newer of equals */
}

/* Files that nothing reads may be of any size and content: they are checked by verify alone. For weights the optimizer
 * is none that is read. */
static void test_what_is_not_read(void **state)
{
    static const char *const damaged[] = {"plugin-nothing.bin", "optim.safetensors"};
    float x[2] = {1, 2};
    const int64_t dim[1] = {2};
    const dt_ckpt_tensor t = {"t", dim, 1, x};
    const dt_ckpt_blob blob = {.name = "nothing", .data = "bytes", .bytes = 5};
    const dt_ckpt_save_desc d = {.run_dir = run.dir,
                                 .model = &t,
                                 .optim = &t,
                                 .n_model = 1,
                                 .n_optim = 1,
                                 .n_blobs = 1,
                                 .blobs = &blob,
                                 .state_json = "{}",
                                 .info = {.phase = "p", .step = 1}};
    for (int i = 0; i < 2; i++) {
        char path[128];
        dt_ckpt *c = NULL;
        dt_ckpt_info info;
        dt_ckpt_blob found;
        assert_int_equal(dt_ckpt_save(&d, NULL), DT_OK);
        snprintf(path, sizeof(path), "step-000000000001/%s", damaged[i]);
        FILE *f = fopen(small_run_path(path), "r+");
        assert_non_null(f);
        assert_int_equal(fseek(f, -1, SEEK_END), 0);
        assert_int_equal(fputc('X', f), 'X');
        assert_int_equal(fclose(f), 0);
        assert_int_equal(dt_ckpt_open_weights(run.dir, NULL, &c), DT_OK);
        assert_int_equal(dt_safetensors_count(dt_ckpt_model(c)), 1);
        dt_ckpt_close(c);
        c = NULL;
        assert_int_equal(dt_ckpt_open(run.dir, false, NULL, &c), i == 0 ? DT_OK : DT_EDATA);
        assert_false(c != NULL && dt_ckpt_blob_find(c, "nothing", &found));
        dt_ckpt_close(c);
        assert_int_equal(dt_ckpt_verify(small_run_path("step-000000000001"), &info), DT_EDATA);
        dt_error_clear();
    }
}

/* As many valid ones stay as keep_last says, however many damaged ones are newer. */
static void test_damaged_ones_do_not_count(void **state)
{
    for (uint64_t step = 1; step <= 4; step++) {
        assert_int_equal(small_run_save(step, NULL), DT_OK);
    }
    assert_int_equal(unlink(small_run_path("step-000000000004/COMMIT")), 0);
    const dt_ckpt_keep keep = {.last = 2};
    assert_int_equal(dt_ckpt_prune(run.dir, &keep), DT_OK);
    assert_int_equal(small_run_count("step-*"), 3); /* 2, 3, and 4, which is damaged */
    assert_int_equal(small_run_count("step-000000000002"), 1);
    assert_int_equal(small_run_step(), 3);
}

/* Tensors of 60, 50, 50 and 30 numbers over two files, the first of which has a model of 100 already: the largest
 * first, each to where less is, equals by name: 240 to 1, 200 to 1 (240 < 400), 200 to 0 (400 < 440) and
 * 120 to 1 (440 < 600). */
static void test_shards_are_balanced(void **state)
{
    static const int64_t of_model[] = {10, 10}, of_d[] = {30}, of_c[] = {5, 10}, of_a[] = {60}, of_b[] = {50};
    const dt_ckpt_tensor model[] = {{.name = "m", .dim = of_model, .n_dims = 2}};
    const dt_ckpt_tensor optim[] = {{.name = "d", .dim = of_d, .n_dims = 1},
                                    {.name = "c", .dim = of_c, .n_dims = 2},
                                    {.name = "a", .dim = of_a, .n_dims = 1},
                                    {.name = "b", .dim = of_b, .n_dims = 1}};
    static const uint32_t want[] = {1, 0, 1, 1};
    const dt_ckpt_save_desc d = {.model = model, .n_model = 1, .optim = optim, .n_optim = 4, .n_shards = 2};
    const dt_ckpt_tensor *list[4];
    dt_shard_map map;
    assert_int_equal(dt_shard_map_make(&d, &map), DT_OK);
    assert_int_equal(map.n, 2);
    assert_memory_equal(map.shard, want, sizeof(want));
    assert_int_equal(dt_shard_list_tensors(&d, &map, 1, list), 3);
    assert_string_equal(list[0]->name, "d"); /* in the order of the list */
    assert_string_equal(list[2]->name, "b");
    assert_int_equal(dt_shard_list_tensors(&d, &map, 0, list), 1);
    assert_string_equal(list[0]->name, "c");
    dt_shard_map_fini(&map);
}

/* A blob's file: magic, version, zero and size, little endian, then the bytes. */
static void test_blob_on_disk(void **state)
{
    static const uint8_t want[] = {'d', 't', 'b', 'l', 'o', 'b', '1', '\n', 4, 3, 2, 1, 0, 0,
                                   0,   0,   3,   0,   0,   0,   0,   0,    0, 0, 7, 8, 9};
    static const uint8_t data[] = {7, 8, 9};
    const dt_ckpt_blob blob = {.name = "x", .version = 0x01020304, .data = data, .bytes = sizeof(data)};
    uint8_t got[64] = {0};
    char path[400];
    dt_sealed s;
    dt_manifest_file file;
    assert_int_equal(dt_sealed_init(&s), DT_OK);
    assert_int_equal(dt_sealed_write_blob(&s, run.dir, "x.bin", &blob, &file), DT_OK);
    snprintf(path, sizeof(path), "%s/x.bin", run.dir);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(got, 1, sizeof(got), f), sizeof(want));
    fclose(f);
    assert_memory_equal(got, want, sizeof(want));
    assert_int_equal(file.bytes, sizeof(want));
    dt_free(file.crc);
    dt_sealed_fini(&s);
}

int main(void)
{
    dt_fs_set_flush(false); /* what a power loss would do is not looked at here */
#define CASE(name) cmocka_unit_test_setup_teardown(name, small_run_begin, small_run_end)
    const struct CMUnitTest tests[] = {
        CASE(test_shards_are_balanced),
        CASE(test_blob_on_disk),
        CASE(test_what_was_saved_comes_back),
        CASE(test_equal_hashes_mean_equal_bits),
        CASE(test_the_same_step_is_replaced),
        CASE(test_another_model_is_refused),
        CASE(test_none_and_none_valid_differ),
        CASE(test_many_damaged_ones_are_counted),
        CASE(test_damaged_ones_are_quarantined_and_reported),
        CASE(test_renamed_folders_and_other_formats_are_refused),
        CASE(test_shards_are_one_checkpoint),
        CASE(test_a_shard_that_fails_or_lacks),
        CASE(test_manifests_of_wrong_shards),
        CASE(test_joined_tensors),
        CASE(test_a_run_that_is_gone),
        CASE(test_refused_descriptions),
        CASE(test_files_above_a_chunk),
        CASE(test_pruning),
        CASE(test_damaged_ones_do_not_count),
        CASE(test_what_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
