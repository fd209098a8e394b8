/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/checkpoint/save.c, load.c and manifest.c: what was saved comes back bit by bit; whatever fails and
 * wherever the process is killed, the last committed checkpoint or the one before loads, never a mix; every flipped bit
 * and every cut is noticed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"

/* ---- a little training run: everything follows from the step ---- */

enum { N_W = 12, N_B = 3 };
static const int64_t dim_w[2] = {4, 3}, dim_b[1] = {3}, dim_other[2] = {3, 4};

typedef struct run_state {
    float w[N_W], b[N_B], m[N_W], v[N_W];
    char state[128], blob[40];
} run_state;

static void state_at(uint64_t step, run_state *r)
{
    for (int i = 0; i < N_W; i++) {
        r->w[i] = (float)i + (float)step * 0.25f;
        r->m[i] = r->w[i] * 3;
        r->v[i] = r->w[i] * r->w[i];
    }
    for (int i = 0; i < N_B; i++) {
        r->b[i] = -(float)i - (float)step;
    }
    snprintf(r->state, sizeof(r->state), "{\"step\":%llu,\"position\":%llu}", (unsigned long long)step,
             (unsigned long long)step * 64);
    snprintf(r->blob, sizeof(r->blob), "blob of step %llu", (unsigned long long)step);
}

static char run_dir[256];
static double metric = 1;
static uint32_t phase_index = 1;
static bool is_phase_end;

static dt_status save_step(uint64_t step, dt_ckpt_info *info_p)
{
    run_state r;
    state_at(step, &r);
    const dt_ckpt_tensor model[] = {{"world.w", dim_w, 2, r.w}, {"perception.b", dim_b, 1, r.b}};
    const dt_ckpt_tensor optim[] = {{"m.world.w", dim_w, 2, r.m}, {"v.world.w", dim_w, 2, r.v}};
    const dt_ckpt_blob blob = {.name = "phase1_world_model", .version = 3, .data = r.blob, .bytes = strlen(r.blob)};
    dt_ckpt_save_desc d = {.run_dir = run_dir,
                           .model = model,
                           .optim = optim,
                           .n_model = 2,
                           .n_optim = 2,
                           .n_blobs = 1,
                           .state_json = r.state,
                           .blobs = &blob,
                           .config = "seed = 42;\n"};
    d.info = (dt_ckpt_info){.run = "demo-1",
                            .phase = "phase1_world_model",
                            .config_hash = "c0ffee",
                            .build = "0.1.0",
                            .metric_name = "loss",
                            .metric = metric,
                            .step = step,
                            .epoch = step / 10,
                            .phase_index = phase_index,
                            .leaves = 8,
                            .ranks = 2,
                            .phase_end = is_phase_end,
                            .n_plugins = 1};
    d.info.plugins[0] = (dt_ckpt_plugin){"phase1_world_model", "1.0.0", "1.0"};
    return dt_ckpt_save(&d, info_p);
}

/* What is loaded from path is the run at this step, bit by bit. Returns false when it is not. */
static bool is_state_of(const dt_ckpt *c, uint64_t step)
{
    run_state want, got;
    state_at(step, &want);
    memset(&got, 0xff, sizeof(got));
    const dt_ckpt_tensor model[] = {{"perception.b", dim_b, 1, got.b}, {"world.w", dim_w, 2, got.w}};
    const dt_ckpt_tensor optim[] = {{"v.world.w", dim_w, 2, got.v}, {"m.world.w", dim_w, 2, got.m}};
    size_t bytes = 0, config_bytes = 0;
    const char *state = dt_ckpt_state(c, &bytes), *config = dt_ckpt_config(c, &config_bytes);
    dt_ckpt_blob blob;
    return dt_ckpt_info_get(c)->step == step && dt_ckpt_load_model(c, model, 2, DT_LOAD_EXACT) == DT_OK &&
           dt_ckpt_load_optim(c, optim, 2, DT_LOAD_EXACT) == DT_OK && memcmp(want.w, got.w, sizeof(want.w)) == 0 &&
           memcmp(want.b, got.b, sizeof(want.b)) == 0 && memcmp(want.m, got.m, sizeof(want.m)) == 0 &&
           memcmp(want.v, got.v, sizeof(want.v)) == 0 && bytes == strlen(want.state) &&
           memcmp(state, want.state, bytes) == 0 && config_bytes == 11 && memcmp(config, "seed = 42;\n", 11) == 0 &&
           dt_ckpt_blob_find(c, "phase1_world_model", &blob) && blob.version == 3 && blob.bytes == strlen(want.blob) &&
           memcmp(blob.data, want.blob, blob.bytes) == 0;
}

/* Which step loads from the run, checked to be whole; 0 when none does. */
static uint64_t loads(void)
{
    dt_ckpt *c = NULL;
    if (dt_ckpt_open(run_dir, false, NULL, &c) != DT_OK) {
        return 0;
    }
    uint64_t step = dt_ckpt_info_get(c)->step;
    assert_true(is_state_of(c, step));
    dt_ckpt_close(c);
    return step;
}

static char path_text[1024];

static const char *in_run(const char *name)
{
    snprintf(path_text, sizeof(path_text), "%s/checkpoints/%s", run_dir, name);
    return path_text;
}

static size_t count_names(const char *pattern)
{
    char **names = NULL;
    size_t n = 0, n_found = 0;
    assert_int_equal(dt_fs_list(in_run(""), &names, &n), DT_OK);
    for (size_t i = 0; i < n; i++) {
        n_found += dt_glob_match(pattern, names[i]);
    }
    dt_fs_list_free(names, n);
    return n_found;
}

static int begin(void **state)
{
    (void)state;
    static int n_runs;
    dt_log_level_set(-1);
    dt_fault_reset(NULL);
    metric = 1;
    is_phase_end = false;
    snprintf(run_dir, sizeof(run_dir), "test_checkpoint.%ld.%d.tmp", (long)getpid(), n_runs++);
    return 0;
}

static int end(void **state)
{
    (void)state;
    dt_fault_reset(NULL);
    return dt_fs_remove_tree(run_dir);
}

/* ---- saving and loading ---- */

static void test_what_was_saved_comes_back(void **state)
{
    (void)state;
    dt_ckpt_info info;
    assert_int_equal(save_step(5, &info), DT_OK);
    assert_int_equal(save_step(12, &info), DT_OK);
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
    assert_int_equal(dt_fs_read_all(in_run("LATEST"), 100, &hint, &n), DT_OK);
    assert_string_equal(hint, "step-000000000012\n");
    dt_free(hint);

    /* by run, by folder, by step, with a slash at the end */
    static const char *const ways[] = {"", "/", "/checkpoints", "/checkpoints/step-000000000012",
                                       "/checkpoints/step-000000000012/"};
    for (size_t i = 0; i < 5; i++) {
        dt_ckpt *c = NULL;
        char path[512];
        snprintf(path, sizeof(path), "%s%s", run_dir, ways[i]);
        assert_int_equal(dt_ckpt_open(path, false, NULL, &c), DT_OK);
        assert_true(is_state_of(c, 12));
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
        assert_int_equal(dt_safetensors_count(dt_ckpt_optim(c)), 2);
        dt_ckpt_close(c);
    }
    dt_ckpt *c = NULL;
    assert_int_equal(dt_ckpt_open(in_run("step-000000000005"), false, NULL, &c), DT_OK);
    assert_true(is_state_of(c, 5));
    dt_ckpt_close(c);
}

static void test_equal_hashes_mean_equal_bits(void **state)
{
    (void)state;
    dt_ckpt_info a, b, other;
    char hash[17];
    assert_int_equal(save_step(7, &a), DT_OK);
    assert_int_equal(save_step(7, &b), DT_OK);
    assert_int_equal(save_step(8, &other), DT_OK);
    assert_string_equal(a.weights_hash, b.weights_hash);
    assert_string_equal(a.state_hash, b.state_hash);
    assert_string_not_equal(a.weights_hash, other.weights_hash);
    assert_string_not_equal(a.state_hash, other.state_hash);
    assert_int_equal(strlen(a.weights_hash), 16);
    run_state r;
    state_at(7, &r);
    /* the order of the list does not count, a bit of a value does */
    const dt_ckpt_tensor one[] = {{"world.w", dim_w, 2, r.w}, {"perception.b", dim_b, 1, r.b}};
    const dt_ckpt_tensor two[] = {{"perception.b", dim_b, 1, r.b}, {"world.w", dim_w, 2, r.w}};
    assert_int_equal(dt_ckpt_hash(one, 2, hash), DT_OK);
    assert_string_equal(hash, a.weights_hash);
    assert_int_equal(dt_ckpt_hash(two, 2, hash), DT_OK);
    assert_string_equal(hash, a.weights_hash);
    r.b[1] = nextafterf(r.b[1], 0);
    assert_int_equal(dt_ckpt_hash(two, 2, hash), DT_OK);
    assert_string_not_equal(hash, a.weights_hash);
}

static void test_the_same_step_is_replaced(void **state)
{
    (void)state;
    assert_int_equal(save_step(7, NULL), DT_OK);
    metric = 0.5;
    dt_ckpt_info info;
    assert_int_equal(save_step(7, NULL), DT_OK);
    assert_int_equal(count_names("step-*"), 1);
    assert_int_equal(dt_ckpt_inspect(run_dir, &info), DT_OK);
    assert_true(info.metric == 0.5);
    assert_int_equal(loads(), 7);
}

static void test_another_model_is_refused(void **state)
{
    (void)state;
    assert_int_equal(save_step(7, NULL), DT_OK);
    dt_ckpt *c = NULL;
    float w[N_W] = {0}, zero[N_W] = {0};
    assert_int_equal(dt_ckpt_open(run_dir, false, NULL, &c), DT_OK);
    const dt_ckpt_tensor turned[] = {{"world.w", dim_other, 2, w}, {"controller.w", dim_b, 1, w}};
    assert_int_equal(dt_ckpt_load_model(c, turned, 2, DT_LOAD_EXACT), DT_ESHAPE);
    assert_non_null(strstr(dt_error_text(), "model.safetensors"));
    assert_non_null(strstr(dt_error_text(), "world.w is [4,3] in the file, the model has [3,4]"));
    assert_non_null(strstr(dt_error_text(), "controller.w [3] is not in the file"));
    assert_non_null(strstr(dt_error_text(), "perception.b [3] is in the file, the model has no such tensor"));
    assert_memory_equal(w, zero, sizeof(w));
    dt_ckpt_close(c);
    dt_ckpt_close(NULL);
}

static void test_none_and_none_valid_are_told_apart(void **state)
{
    (void)state;
    dt_ckpt *c = NULL;
    dt_ckpt_info info, *list = NULL;
    uint32_t n = 9;
    assert_int_equal(dt_ckpt_open(run_dir, true, NULL, &c), DT_ENOTFOUND);
    assert_non_null(strstr(dt_error_text(), "no run or checkpoint at"));
    assert_int_equal(dt_ckpt_list(run_dir, &list, &n), DT_ENOTFOUND);
    assert_int_equal(dt_fs_mkdirs(run_dir), DT_OK);
    assert_int_equal(dt_ckpt_open(run_dir, true, NULL, &c), DT_ENOTFOUND);
    assert_non_null(strstr(dt_error_text(), "no checkpoint in"));
    assert_int_equal(dt_ckpt_inspect(run_dir, &info), DT_ENOTFOUND);
    assert_int_equal(dt_ckpt_list(run_dir, &list, &n), DT_OK);
    assert_int_equal(n, 0);
    dt_free(list);
    assert_int_equal(dt_ckpt_verify(in_run("step-000000000001"), &info), DT_ENOTFOUND);

    assert_int_equal(save_step(1, NULL), DT_OK);
    assert_int_equal(save_step(2, NULL), DT_OK);
    assert_int_equal(unlink(in_run("step-000000000001/COMMIT")), 0);
    assert_int_equal(truncate(in_run("step-000000000002/model.safetensors"), 20), 0);
    assert_int_equal(dt_ckpt_open(run_dir, false, NULL, &c), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "none of the 2 checkpoints"));
    assert_non_null(strstr(dt_error_text(), "model.safetensors has 20 bytes")); /* why the newest is not */
    assert_int_equal(dt_ckpt_inspect(run_dir, &info), DT_EDATA);
    assert_int_equal(dt_ckpt_list(run_dir, &list, &n), DT_OK);
    assert_int_equal(n, 2);
    assert_false(list[0].valid || list[1].valid);
    assert_int_equal(list[1].step, 2);
    assert_non_null(strstr(list[0].why, "never committed"));
    dt_free(list);
    assert_int_equal(dt_ckpt_open(in_run("step-000000000001"), true, NULL, &c), DT_EDATA);
    assert_true(dt_fs_is_dir(in_run("step-000000000001"))); /* named by the user: it stays where it is */
}

static void test_damaged_ones_are_quarantined_and_reported(void **state)
{
    (void)state;
    for (uint64_t step = 1; step <= 3; step++) {
        assert_int_equal(save_step(step, NULL), DT_OK);
    }
    int fd = open(in_run("step-000000000003/optim.safetensors"), O_WRONLY);
    assert_int_equal(pwrite(fd, "\x55", 1, 200), 1);
    close(fd);
    assert_int_equal(unlink(in_run("step-000000000002/state.json")), 0);
    assert_int_equal(mkdir(in_run("step-000000000009.tmp.77"), 0777), 0); /* of a save that crashed: not looked at */
    dt_str report = {0};
    dt_ckpt *c = NULL;
    assert_int_equal(dt_ckpt_open(run_dir, false, &report, &c), DT_OK);
    assert_true(is_state_of(c, 1));
    dt_ckpt_close(c);
    assert_non_null(strstr(report.text, "step-000000000003 skipped: "));
    assert_non_null(strstr(report.text, "optim.safetensors is damaged between bytes 0 and"));
    assert_non_null(strstr(report.text, "step-000000000002 skipped: "));
    assert_non_null(strstr(report.text, "state.json is missing"));
    assert_null(strstr(report.text, "quarantine"));
    assert_int_equal(count_names("step-*"), 4); /* looking moves nothing */
    dt_str_clear(&report);
    assert_int_equal(dt_ckpt_open(run_dir, true, &report, &c), DT_OK);
    assert_true(is_state_of(c, 1));
    dt_ckpt_close(c);
    assert_non_null(strstr(report.text, "moved to quarantine"));
    assert_int_equal(count_names("step-*"), 2);
    char **names = NULL;
    size_t n = 0;
    assert_int_equal(dt_fs_list(in_run("quarantine"), &names, &n), DT_OK);
    assert_int_equal(n, 2);
    assert_memory_equal(names[1], "step-000000000003.", 18);
    dt_fs_list_free(names, n);
    dt_str_clear(&report);
    assert_int_equal(dt_ckpt_open(run_dir, true, &report, &c), DT_OK);
    assert_string_equal(dt_str_text(&report), "");
    dt_ckpt_close(c);
    dt_str_fini(&report);
}

static void test_renamed_folders_and_other_formats_are_refused(void **state)
{
    (void)state;
    dt_ckpt *c = NULL;
    assert_int_equal(save_step(1, NULL), DT_OK);
    char from[1024];
    snprintf(from, sizeof(from), "%s", in_run("step-000000000001"));
    assert_int_equal(dt_fs_rename(from, in_run("step-000000000099")), DT_OK);
    assert_int_equal(dt_ckpt_open(run_dir, false, NULL, &c), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "holds step 1: the folder was renamed"));

    static const char *const texts[][2] = {
        {"{\"format\":\"other\"}", "format is \"other\""},
        {"{\"format\":\"dtrain-checkpoint\",\"version\":2}", "checkpoint format 2, this dtrain reads format 1"},
        {"{}", "needs version and files"},
        {"[]", "must be an object"},
        {"{\"version\":1,\"files\":[{\"name\":\"../x\",\"bytes\":0,\"sha256\":\"\",\"crc32c\":[]}]}",
         "is no plain file name"},
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

static void test_refused_descriptions(void **state)
{
    (void)state;
    float x[1] = {0};
    const int64_t negative[1] = {-1};
    dt_ckpt_save_desc d = {.run_dir = run_dir, .state_json = "{}"};
    d.info.step = 1000000000000;
    assert_int_equal(dt_ckpt_save(&d, NULL), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "above the limit of 999999999999"));
    d.info.step = 1;
    const dt_ckpt_blob blob = {.name = "../x", .data = "", .bytes = 0};
    d.blobs = &blob;
    d.n_blobs = 1;
    assert_int_equal(dt_ckpt_save(&d, NULL), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "cannot be called \"../x\""));
    d.n_blobs = 0;
    const dt_ckpt_tensor t = {"t", negative, 1, x};
    d.model = &t;
    d.n_model = 1;
    assert_int_equal(dt_ckpt_save(&d, NULL), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "tensor t has a shape"));
    assert_false(dt_fs_is_dir(run_dir));
    const dt_ckpt_keep keep = {.last = 0};
    assert_int_equal(dt_ckpt_prune(run_dir, &keep), DT_EINVAL);
}

static void test_files_above_a_chunk(void **state)
{
    (void)state;
    const int64_t n = 700001; /* 2.67 MiB: three chunks, the last one short */
    const int64_t dim[1] = {n};
    float *x = dt_alloc_n((size_t)n, sizeof(*x)), *back = dt_alloc_n((size_t)n, sizeof(*x));
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)i * 0.5f;
    }
    const dt_ckpt_tensor t = {"big", dim, 1, x}, got = {"big", dim, 1, back};
    const dt_ckpt_save_desc d = {
        .run_dir = run_dir, .info = {.step = 4}, .model = &t, .n_model = 1, .state_json = "{}"};
    assert_int_equal(dt_ckpt_save(&d, NULL), DT_OK);
    dt_ckpt *c = NULL;
    assert_int_equal(dt_ckpt_open(run_dir, false, NULL, &c), DT_OK);
    assert_int_equal(dt_ckpt_load_model(c, &got, 1, DT_LOAD_EXACT), DT_OK);
    assert_memory_equal(x, back, (size_t)n * sizeof(*x));
    size_t bytes = 1;
    assert_null(dt_ckpt_config(c, &bytes)); /* it was saved without */
    assert_int_equal(bytes, 0);
    assert_true(isnan(dt_ckpt_info_get(c)->metric));
    dt_ckpt_close(c);
    int fd = open(in_run("step-000000000004/model.safetensors"), O_WRONLY);
    assert_int_equal(pwrite(fd, "\x55", 1, 1500000), 1);
    close(fd);
    assert_int_equal(dt_ckpt_open(run_dir, false, NULL, &c), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "damaged between bytes 1048576 and 2097152"));
    dt_free(x);
    dt_free(back);
}

/* ---- keeping ---- */

static void test_pruning(void **state)
{
    (void)state;
    for (uint64_t step = 1; step <= 9; step++) {
        metric = fabs((double)step - 2.2); /* best: 2, then 3, then 1 */
        is_phase_end = step == 4;
        assert_int_equal(save_step(step, NULL), DT_OK);
    }
    assert_int_equal(unlink(in_run("step-000000000005/COMMIT")), 0);        /* damaged: for the loader to move */
    assert_int_equal(mkdir(in_run("step-000000000003.tmp.12-3"), 0777), 0); /* crashed saves and prunings */
    assert_int_equal(mkdir(in_run("trash.step-000000000001.5"), 0777), 0);
    const dt_ckpt_keep keep = {.last = 2, .best = 2, .min = 2};
    assert_int_equal(dt_ckpt_prune(run_dir, &keep), DT_OK);
    static const char *const want[] = {"LATEST",
                                       "step-000000000002",
                                       "step-000000000003",
                                       "step-000000000004",
                                       "step-000000000005",
                                       "step-000000000008",
                                       "step-000000000009"};
    char **names = NULL;
    size_t n = 0;
    assert_int_equal(dt_fs_list(in_run(""), &names, &n), DT_OK);
    assert_int_equal(n, 7);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(names[i], want[i]);
    }
    dt_fs_list_free(names, n);
    const dt_ckpt_keep most = {.last = 1, .best = 1};
    assert_int_equal(dt_ckpt_prune(run_dir, &most), DT_OK);
    assert_int_equal(count_names("step-*"), 3); /* 4 as an end, 5 damaged, 9 newest and largest */
    assert_int_equal(loads(), 9);
    phase_index = 2; /* of another phase: measured by itself */
    metric = 100;
    assert_int_equal(save_step(10, NULL), DT_OK);
    assert_int_equal(save_step(11, NULL), DT_OK);
    phase_index = 1;
    assert_int_equal(dt_ckpt_prune(run_dir, &most), DT_OK);
    assert_int_equal(count_names("step-*"), 4); /* 4, 5, and the best of each: 9, and 11, the newer of equals */
}

/* ---- faults ---- */

/* One save of step 2 over step 1 with this fault; what loads then is step 1 or 2, whole. Returns whether it fired. */
static bool save_with_fault(const char *spec)
{
    assert_int_equal(dt_fs_remove_tree(run_dir), DT_OK);
    assert_int_equal(save_step(1, NULL), DT_OK);
    const uint64_t live = dt_alloc_live_bytes();
    dt_fault_reset(spec);
    dt_status st = save_step(2, NULL);
    bool fired = dt_fault_fired() != 0;
    dt_fault_reset(NULL);
    assert_int_equal(dt_alloc_live_bytes(), live);
    uint64_t step = loads();
    if (st == DT_OK) {
        assert_int_equal(step, 2);
    } else {
        assert_true(st == DT_EIO || st == DT_ENOMEM);
        assert_non_null(strstr(dt_error_text() != NULL ? dt_error_text() : "", ""));
        assert_true(step == 1 || step == 2);
    }
    /* and the next save is not hindered by what the failed one left */
    assert_int_equal(save_step(3, NULL), DT_OK);
    const dt_ckpt_keep keep = {.last = 1};
    assert_int_equal(dt_ckpt_prune(run_dir, &keep), DT_OK);
    assert_int_equal(count_names("*"), 2); /* step 3 and LATEST */
    assert_int_equal(loads(), 3);
    return fired;
}

static void test_every_call_of_a_save_fails_once(void **state)
{
    (void)state;
    char spec[32];
    int n = 1;
    do {
        snprintf(spec, sizeof(spec), "fs.*:%d", n);
    } while (save_with_fault(spec) && ++n < 1000);
    assert_true(n > 30 && n < 200); /* about as many calls as a save has */
}

static void test_every_call_of_a_save_fails_from_then_on(void **state)
{
    (void)state;
    char spec[32];
    int n = 1;
    do {
        snprintf(spec, sizeof(spec), "fs.*:%d+", n);
    } while (save_with_fault(spec) && ++n < 1000);
    assert_true(n > 30 && n < 200);
}

static void test_every_allocation_of_a_save_fails(void **state)
{
    (void)state;
    char spec[32];
    int n = 1;
    do {
        snprintf(spec, sizeof(spec), "alloc:%d", n);
    } while (save_with_fault(spec) && ++n < 1000);
    assert_true(n > 20 && n < 500);
}

static void test_a_full_disk_says_so(void **state)
{
    (void)state;
    assert_int_equal(save_step(1, NULL), DT_OK);
    dt_fault_reset("fs.write:1");
    assert_int_equal(save_step(2, NULL), DT_EIO);
    assert_non_null(strstr(dt_error_text(), "saving step 2: cannot write to"));
    assert_non_null(strstr(dt_error_text(), "No space left"));
    assert_int_equal(loads(), 1);
    assert_int_equal(count_names("*.tmp.*"), 0);
}

static void test_killed_at_every_call_of_a_save(void **state)
{
    (void)state;
    int n_killed = 0, n_before = 0, n_after = 0;
    for (int n = 1;; n++) {
        assert_int_equal(dt_fs_remove_tree(run_dir), DT_OK);
        assert_int_equal(save_step(1, NULL), DT_OK);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            char spec[32];
            snprintf(spec, sizeof(spec), "fs.*:%d!", n);
            dt_fault_reset(spec);
            _exit(save_step(2, NULL) == DT_OK ? 0 : 1);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        uint64_t step = loads();
        assert_true(step == 1 || step == 2);
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            assert_int_equal(step, 2);
            break;
        }
        assert_int_equal(WTERMSIG(status), SIGKILL);
        n_killed++;
        n_before += step == 1;
        n_after += step == 2;
        assert_int_equal(save_step(3, NULL), DT_OK);
        const dt_ckpt_keep keep = {.last = 1};
        assert_int_equal(dt_ckpt_prune(run_dir, &keep), DT_OK);
        assert_int_equal(count_names("*"), 2);
    }
    assert_true(n_killed > 30 && n_before > 20 && n_after > 2);
}

static void test_killed_at_every_call_of_replacing_the_same_step(void **state)
{
    (void)state;
    int n_killed = 0;
    assert_int_equal(save_step(2, NULL), DT_OK);
    for (int n = 1;; n++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            char spec[32];
            snprintf(spec, sizeof(spec), "fs.*:%d!", n);
            dt_fault_reset(spec);
            _exit(save_step(2, NULL) == DT_OK ? 0 : 1);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(loads(), 2); /* there is always one of the two */
        if (WIFEXITED(status)) {
            break;
        }
        n_killed++;
    }
    assert_true(n_killed > 30);
}

static void test_killed_at_every_call_of_pruning(void **state)
{
    (void)state;
    const dt_ckpt_keep keep = {.last = 1};
    for (int n = 1;; n++) {
        assert_int_equal(dt_fs_remove_tree(run_dir), DT_OK);
        assert_int_equal(save_step(1, NULL), DT_OK);
        assert_int_equal(save_step(2, NULL), DT_OK);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            char spec[32];
            snprintf(spec, sizeof(spec), "fs.*:%d!", n);
            dt_fault_reset(spec);
            _exit(dt_ckpt_prune(run_dir, &keep) == DT_OK ? 0 : 1);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(loads(), 2);
        dt_ckpt_info *list = NULL;
        uint32_t n_list = 0;
        assert_int_equal(dt_ckpt_list(run_dir, &list, &n_list), DT_OK);
        for (uint32_t i = 0; i < n_list; i++) {
            assert_true(list[i].valid); /* no half-deleted folder under a checkpoint's name */
        }
        dt_free(list);
        assert_int_equal(dt_ckpt_prune(run_dir, &keep), DT_OK);
        assert_int_equal(count_names("*"), 2);
        if (WIFEXITED(status)) {
            assert_true(n > 10);
            break;
        }
    }
}

static void test_every_call_of_loading_fails(void **state)
{
    (void)state;
    assert_int_equal(save_step(1, NULL), DT_OK);
    assert_int_equal(save_step(2, NULL), DT_OK);
    static const char *const kinds[] = {"fs.*:%d", "alloc:%d"};
    for (int kind = 0; kind < 2; kind++) {
        const uint64_t live = dt_alloc_live_bytes();
        bool fired = true;
        for (int n = 1; fired; n++) {
            char spec[32];
            snprintf(spec, sizeof(spec), kinds[kind], n);
            dt_ckpt *c = NULL;
            dt_fault_reset(spec);
            dt_status st = dt_ckpt_open(run_dir, true, NULL, &c);
            fired = dt_fault_fired() != 0;
            dt_fault_reset(NULL);
            if (st == DT_OK) { /* a read error falls back to the older one, and moves nothing */
                assert_true(is_state_of(c, fired ? 1 : 2));
                dt_ckpt_close(c);
            } else {
                assert_true(fired && (st == DT_EIO || st == DT_ENOMEM));
            }
            assert_int_equal(count_names("quarantine"), 0);
            assert_int_equal(dt_alloc_live_bytes(), live);
        }
    }
    assert_int_equal(loads(), 2);
}

/* ---- damage ---- */

static void test_every_flipped_bit_and_every_cut_is_noticed(void **state)
{
    (void)state;
    dt_ckpt_info info;
    assert_int_equal(save_step(1, &info), DT_OK);
    char **names = NULL, dir[1024];
    size_t n = 0, n_flips = 0;
    snprintf(dir, sizeof(dir), "%s", in_run("step-000000000001"));
    assert_int_equal(dt_fs_list(dir, &names, &n), DT_OK);
    for (size_t i = 0; i < n; i++) {
        char path[2048], *bytes = NULL;
        size_t n_bytes = 0;
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        assert_int_equal(dt_fs_read_all(path, 100000, &bytes, &n_bytes), DT_OK);
        int fd = open(path, O_RDWR);
        assert_true(fd >= 0);
        for (size_t at = 0; at < n_bytes; at++) {
            for (int bit = 0; bit < 8; bit++) {
                char flipped = (char)(bytes[at] ^ 1 << bit);
                assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
                assert_int_equal(dt_ckpt_verify(dir, &info), DT_EDATA);
                n_flips++;
            }
            assert_int_equal(pwrite(fd, &bytes[at], 1, (off_t)at), 1);
        }
        for (size_t cut = n_bytes; cut-- > 0;) {
            assert_int_equal(ftruncate(fd, (off_t)cut), 0);
            assert_int_equal(dt_ckpt_verify(dir, &info), DT_EDATA);
        }
        assert_int_equal(pwrite(fd, bytes, n_bytes, 0), n_bytes);
        assert_int_equal(pwrite(fd, "", 1, (off_t)n_bytes), 1); /* a byte too many */
        assert_int_equal(dt_ckpt_verify(dir, &info), DT_EDATA);
        assert_int_equal(ftruncate(fd, (off_t)n_bytes), 0);
        close(fd);
        assert_int_equal(dt_ckpt_verify(dir, &info), DT_OK);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(dt_ckpt_verify(dir, &info), DT_EDATA);
        assert_int_equal(dt_fs_write_atomic(path, bytes, n_bytes), DT_OK);
        dt_free(bytes);
    }
    dt_fs_list_free(names, n);
    assert_int_equal(dt_ckpt_verify(dir, &info), DT_OK);
    assert_true(n_flips > 10000);
}

static void test_files_of_two_checkpoints_do_not_mix(void **state)
{
    (void)state;
    assert_int_equal(save_step(1, NULL), DT_OK);
    assert_int_equal(save_step(2, NULL), DT_OK);
    static const char *const files[] = {"COMMIT",
                                        "MANIFEST.json",
                                        "model.safetensors",
                                        "optim.safetensors",
                                        "state.json",
                                        "plugin-phase1_world_model.bin"};
    dt_ckpt_info info;
    for (size_t i = 0; i < 6; i++) {
        char *stale = NULL, *own = NULL, name[128];
        size_t n_stale = 0, n_own = 0;
        snprintf(name, sizeof(name), "step-000000000001/%s", files[i]);
        assert_int_equal(dt_fs_read_all(in_run(name), 100000, &stale, &n_stale), DT_OK);
        snprintf(name, sizeof(name), "step-000000000002/%s", files[i]);
        assert_int_equal(dt_fs_read_all(in_run(name), 100000, &own, &n_own), DT_OK);
        assert_int_equal(dt_fs_write_atomic(in_run(name), stale, n_stale), DT_OK);
        assert_int_equal(dt_ckpt_verify(in_run("step-000000000002"), &info), DT_EDATA);
        assert_int_equal(dt_fs_write_atomic(in_run(name), own, n_own), DT_OK);
        assert_int_equal(dt_ckpt_verify(in_run("step-000000000002"), &info), DT_OK);
        dt_free(stale);
        dt_free(own);
    }
}

int main(void)
{
    dt_fs_flush_set(false); /* thousands of saves: what a power loss would do is not looked at here */
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(test_what_was_saved_comes_back),
        CASE(test_equal_hashes_mean_equal_bits),
        CASE(test_the_same_step_is_replaced),
        CASE(test_another_model_is_refused),
        CASE(test_none_and_none_valid_are_told_apart),
        CASE(test_damaged_ones_are_quarantined_and_reported),
        CASE(test_renamed_folders_and_other_formats_are_refused),
        CASE(test_refused_descriptions),
        CASE(test_files_above_a_chunk),
        CASE(test_pruning),
        CASE(test_every_call_of_a_save_fails_once),
        CASE(test_every_call_of_a_save_fails_from_then_on),
        CASE(test_every_allocation_of_a_save_fails),
        CASE(test_a_full_disk_says_so),
        CASE(test_killed_at_every_call_of_a_save),
        CASE(test_killed_at_every_call_of_replacing_the_same_step),
        CASE(test_killed_at_every_call_of_pruning),
        CASE(test_every_call_of_loading_fails),
        CASE(test_every_flipped_bit_and_every_cut_is_noticed),
        CASE(test_files_of_two_checkpoints_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
