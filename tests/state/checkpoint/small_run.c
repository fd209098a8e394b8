/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "small_run.h"

const int64_t small_run_dim_w[2] = {4, 3}, small_run_dim_b[1] = {3};
small_run run = {.metric = 1, .phase_index = 1};

void small_run_fill(uint64_t step, small_run_state *r)
{
    for (int i = 0; i < SMALL_RUN_W; i++) {
        r->w[i] = (float)i + (float)step * 0.25f;
        r->m[i] = r->w[i] * 3;
        r->v[i] = r->w[i] * r->w[i];
    }
    for (int i = 0; i < SMALL_RUN_B; i++) {
        r->b[i] = -(float)i - (float)step;
    }
    snprintf(r->state, sizeof(r->state), "{\"step\":%llu,\"position\":%llu}", (unsigned long long)step,
             (unsigned long long)step * 64);
    snprintf(r->blob, sizeof(r->blob), "blob of step %llu", (unsigned long long)step);
}

const dt_ckpt_save_desc *small_run_describe(uint64_t step)
{
    static small_run_state r;
    static dt_ckpt_tensor model[2], optim[2];
    static dt_ckpt_blob blob;
    static dt_ckpt_save_desc d;
    small_run_fill(step, &r);
    model[0] = (dt_ckpt_tensor){"world.w", small_run_dim_w, 2, r.w};
    model[1] = (dt_ckpt_tensor){"perception.b", small_run_dim_b, 1, r.b};
    optim[0] = (dt_ckpt_tensor){"m.world.w", small_run_dim_w, 2, r.m};
    optim[1] = (dt_ckpt_tensor){"v.world.w", small_run_dim_w, 2, r.v};
    blob = (dt_ckpt_blob){.name = "phase1_world_model", .version = 3, .data = r.blob, .bytes = strlen(r.blob)};
    d = (dt_ckpt_save_desc){.run_dir = run.dir,
                            .model = model,
                            .optim = optim,
                            .n_model = 2,
                            .n_optim = 2,
                            .n_blobs = 1,
                            .state_json = r.state,
                            .blobs = &blob,
                            .config = "seed = 42;\n",
                            .n_shards = run.n_shards};
    d.info = (dt_ckpt_info){.run = "demo-1",
                            .phase = "phase1_world_model",
                            .config_hash = "c0ffee",
                            .build = "0.1.0",
                            .metric_name = "loss",
                            .metric = run.metric,
                            .step = step,
                            .epoch = step / 10,
                            .phase_index = run.phase_index,
                            .leaves = 8,
                            .ranks = 2,
                            .phase_end = run.is_phase_end,
                            .n_plugins = 1};
    d.info.plugins[0] = (dt_ckpt_plugin){"phase1_world_model", "1.0.0", "1.0"};
    return &d;
}

dt_status small_run_save(uint64_t step, dt_ckpt_info *info_p)
{
    return dt_ckpt_save(small_run_describe(step), info_p);
}

dt_status small_run_save_apart(uint64_t step, uint32_t failing, dt_ckpt_info *info_p)
{
    enum { MOST = 8 };
    const dt_ckpt_save_desc *d = small_run_describe(step);
    dt_ckpt_shard shard[MOST] = {{.bytes = 0}};
    dt_ckpt_saver *saver = NULL;
    assert_true(d->n_shards <= MOST);
    dt_status st = dt_ckpt_saver_create(d, &saver);
    assert_int_equal(st, DT_OK);
    for (uint32_t i = d->n_shards - 1; i > 0 && st == DT_OK; i--) { /* the others may be faster than the first */
        dt_fault_reset(i == failing ? "ckpt.shard:1" : NULL);
        st = dt_ckpt_save_shard(d, dt_ckpt_saver_folder_name(saver), i, &shard[i - 1]);
    }
    if (st == DT_OK) {
        assert_int_equal(dt_ckpt_saver_write_files(saver), DT_OK);
        st = dt_ckpt_saver_commit(saver, shard, info_p);
    } else {
        dt_ckpt_saver_abandon(saver);
    }
    for (uint32_t i = 0; i < MOST; i++) {
        dt_free(shard[i].crc);
    }
    return st;
}

static bool has_config(const dt_ckpt *c)
{
    char path[DT_CKPT_PATH_BYTES + 16], *text = NULL;
    size_t bytes = 0;
    snprintf(path, sizeof(path), "%s/config.cfg", dt_ckpt_info_get(c)->path);
    const bool is_same = dt_fs_read_all(path, 100, &text, &bytes) == DT_OK && strcmp(text, "seed = 42;\n") == 0;
    dt_free(text);
    return is_same;
}

bool small_run_is_at(const dt_ckpt *c, uint64_t step)
{
    small_run_state want, got;
    small_run_fill(step, &want);
    memset(&got, 0xff, sizeof(got));
    const dt_ckpt_tensor model[] = {{"perception.b", small_run_dim_b, 1, got.b},
                                    {"world.w", small_run_dim_w, 2, got.w}};
    const dt_ckpt_tensor optim[] = {{"v.world.w", small_run_dim_w, 2, got.v}, {"m.world.w", small_run_dim_w, 2, got.m}};
    size_t bytes = 0;
    const char *state = dt_ckpt_state(c, &bytes);
    dt_ckpt_blob blob;
    return dt_ckpt_info_get(c)->step == step && dt_ckpt_load_model(c, model, 2, DT_LOAD_EXACT) == DT_OK &&
           dt_ckpt_load_optim(c, optim, 2, DT_LOAD_EXACT) == DT_OK && memcmp(want.w, got.w, sizeof(want.w)) == 0 &&
           memcmp(want.b, got.b, sizeof(want.b)) == 0 && memcmp(want.m, got.m, sizeof(want.m)) == 0 &&
           memcmp(want.v, got.v, sizeof(want.v)) == 0 && bytes == strlen(want.state) &&
           memcmp(state, want.state, bytes) == 0 && has_config(c) &&
           dt_ckpt_blob_find(c, "phase1_world_model", &blob) && blob.version == 3 && blob.bytes == strlen(want.blob) &&
           memcmp(blob.data, want.blob, blob.bytes) == 0;
}

uint64_t small_run_step(void)
{
    dt_ckpt *c = NULL;
    if (dt_ckpt_open(run.dir, false, NULL, &c) != DT_OK) {
        return 0;
    }
    uint64_t step = dt_ckpt_info_get(c)->step;
    assert_true(small_run_is_at(c, step));
    dt_ckpt_close(c);
    return step;
}

const char *small_run_path(const char *name)
{
    static char path_text[1024];
    snprintf(path_text, sizeof(path_text), "%s/checkpoints/%s", run.dir, name);
    return path_text;
}

size_t small_run_count(const char *pattern)
{
    char **names = NULL;
    size_t n = 0, n_found = 0;
    assert_int_equal(dt_fs_list(small_run_path(""), &names, &n), DT_OK);
    for (size_t i = 0; i < n; i++) {
        n_found += dt_glob_match(pattern, names[i]);
    }
    dt_fs_list_free(names, n);
    return n_found;
}

int small_run_begin(void **state)
{
    static int n_runs;
    dt_log_level_set(-1);
    dt_fault_reset(NULL);
    run.metric = 1;
    run.is_phase_end = false;
    run.n_shards = 1;
    snprintf(run.dir, sizeof(run.dir), "small_run.%ld.%d.tmp", (long)getpid(), n_runs++);
    return mkdir(run.dir, 0777);
}

int small_run_end(void **state)
{
    dt_fault_reset(NULL);
    return dt_fs_remove_tree(run.dir);
}
