/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/state/checkpoint/save.c, load.c and manifest.c where things go wrong: whatever fails and wherever the
 * process is killed, the last committed checkpoint or the one before loads, never a mix; every flipped bit and every
 * cut is noticed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/mem.h"
#include "small_run.h"

/* ---- faults ---- */

static void restart(void)
{
    assert_int_equal(dt_fs_remove_tree(run.dir), DT_OK);
    assert_int_equal(dt_fs_mkdir(run.dir), DT_OK);
}

/* One save of step 2 over step 1 with this fault; what loads then is step 1 or 2, whole. Returns whether it fired. */
static bool save_with_fault(const char *spec)
{
    restart();
    assert_int_equal(small_run_save(1, NULL), DT_OK);
    const uint64_t live = dt_alloc_live_bytes();
    dt_fault_reset(spec);
    dt_status st = small_run_save(2, NULL);
    bool fired = dt_fault_count() != 0;
    dt_fault_reset(NULL);
    assert_int_equal(dt_alloc_live_bytes(), live);
    uint64_t step = small_run_step();
    if (st == DT_OK) {
        assert_int_equal(step, 2);
    } else {
        assert_true(st == DT_EIO || st == DT_ENOMEM);
        assert_non_null(dt_error_text());
        assert_non_null(strstr(dt_error_text(), st == DT_ENOMEM ? "out of memory" : "saving step 2: "));
        assert_true(step == 1 || step == 2);
    }
    /* and the next save is not hindered by what the failed one left */
    assert_int_equal(small_run_save(3, NULL), DT_OK);
    const dt_ckpt_keep keep = {.last = 1};
    assert_int_equal(dt_ckpt_prune(run.dir, &keep), DT_OK);
    assert_int_equal(small_run_count("*"), 2); /* step 3 and LATEST */
    assert_int_equal(small_run_step(), 3);
    return fired;
}

/* Saves with the fault at its first, second ... place until there is none any more. Returns how many there are. */
static int faults_of_a_save(const char *format)
{
    char spec[32];
    int n = 1;
    do {
        snprintf(spec, sizeof(spec), format, n);
    } while (save_with_fault(spec) && ++n < 1000);
    return n - 1;
}

static void test_every_call_of_a_save_fails_once(void **state)
{
    const int n = faults_of_a_save("fs.*:%d");
    assert_true(n >= 30 && n < 200); /* about as many calls as a save has */
}

static void test_every_call_of_a_save_fails_from_then_on(void **state)
{
    const int n = faults_of_a_save("fs.*:%d+");
    assert_true(n >= 30 && n < 200);
}

static void test_every_allocation_of_a_save_fails(void **state)
{
    const int n = faults_of_a_save("alloc:%d");
    assert_true(n >= 20 && n < 500);
}

static void test_every_call_of_a_save_in_shards_fails(void **state)
{
    run.n_shards = 3;
    const int n = faults_of_a_save("fs.*:%d"), n_allocs = faults_of_a_save("alloc:%d");
    assert_true(n >= 40 && n < 250 && n_allocs >= 30 && n_allocs < 600);
}

static void test_a_full_disk_says_so(void **state)
{
    assert_int_equal(small_run_save(1, NULL), DT_OK);
    dt_fault_reset("fs.write:1");
    assert_int_equal(small_run_save(2, NULL), DT_EIO);
    assert_non_null(strstr(dt_error_text(), "saving step 2: cannot write to"));
    assert_non_null(strstr(dt_error_text(), "No space left"));
    assert_int_equal(small_run_step(), 1);
    assert_int_equal(small_run_count("*.tmp.*"), 0);
}

static void test_killed_at_every_call_of_a_save(void **state)
{
    int n_killed = 0, n_before = 0, n_after = 0;
    for (int n = 1;; n++) {
        restart();
        assert_int_equal(small_run_save(1, NULL), DT_OK);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            char spec[32];
            snprintf(spec, sizeof(spec), "fs.*:%d!", n);
            dt_fault_reset(spec);
            _exit(small_run_save(2, NULL) == DT_OK ? 0 : 1);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        uint64_t step = small_run_step();
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
        assert_int_equal(small_run_save(3, NULL), DT_OK);
        const dt_ckpt_keep keep = {.last = 1};
        assert_int_equal(dt_ckpt_prune(run.dir, &keep), DT_OK);
        assert_int_equal(small_run_count("*"), 2);
    }
    assert_true(n_killed > 30 && n_before > 20 && n_after > 2);
}

static void test_killed_at_every_call_of_a_save_in_shards(void **state)
{
    run.n_shards = 2;
    test_killed_at_every_call_of_a_save(state);
}

static void test_killed_at_every_call_of_replacing_the_same_step(void **state)
{
    int n_killed = 0;
    assert_int_equal(small_run_save(2, NULL), DT_OK);
    for (int n = 1;; n++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            char spec[32];
            snprintf(spec, sizeof(spec), "fs.*:%d!", n);
            dt_fault_reset(spec);
            _exit(small_run_save(2, NULL) == DT_OK ? 0 : 1);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(small_run_step(), 2); /* there is always one of the two */
        if (WIFEXITED(status)) {
            break;
        }
        n_killed++;
    }
    assert_true(n_killed > 30);
}

static void test_killed_at_every_call_of_pruning(void **state)
{
    const dt_ckpt_keep keep = {.last = 1};
    for (int n = 1;; n++) {
        restart();
        assert_int_equal(small_run_save(1, NULL), DT_OK);
        assert_int_equal(small_run_save(2, NULL), DT_OK);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            char spec[32];
            snprintf(spec, sizeof(spec), "fs.*:%d!", n);
            dt_fault_reset(spec);
            _exit(dt_ckpt_prune(run.dir, &keep) == DT_OK ? 0 : 1);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(small_run_step(), 2);
        dt_ckpt_info *list = NULL;
        uint32_t n_list = 0;
        assert_int_equal(dt_ckpt_list(run.dir, &list, &n_list), DT_OK);
        for (uint32_t i = 0; i < n_list; i++) {
            assert_true(list[i].valid); /* no half-deleted folder under a checkpoint's name */
        }
        dt_free(list);
        assert_int_equal(dt_ckpt_prune(run.dir, &keep), DT_OK);
        assert_int_equal(small_run_count("*"), 2);
        if (WIFEXITED(status)) {
            assert_true(n > 10);
            break;
        }
    }
}

static void test_every_call_of_loading_fails(void **state)
{
    assert_int_equal(small_run_save(1, NULL), DT_OK);
    assert_int_equal(small_run_save(2, NULL), DT_OK);
    static const char *const kinds[] = {"fs.*:%d", "alloc:%d"};
    for (int kind = 0; kind < 2; kind++) {
        const uint64_t live = dt_alloc_live_bytes();
        bool fired = true;
        for (int n = 1; fired; n++) {
            char spec[32];
            snprintf(spec, sizeof(spec), kinds[kind], n);
            dt_ckpt *c = NULL;
            dt_fault_reset(spec);
            dt_status st = dt_ckpt_open(run.dir, true, NULL, &c);
            fired = dt_fault_count() != 0;
            dt_fault_reset(NULL);
            if (st == DT_OK) { /* a read error falls back to the older one, and moves nothing */
                assert_true(small_run_is_at(c, fired ? 1 : 2));
                dt_ckpt_close(c);
            } else {
                assert_true(fired && (st == DT_EIO || st == DT_ENOMEM));
            }
            assert_int_equal(small_run_count("quarantine"), 0);
            assert_int_equal(dt_alloc_live_bytes(), live);
        }
    }
    assert_int_equal(small_run_step(), 2);
}

/* ---- damage ---- */

static void test_every_flipped_bit_and_every_cut_is_noticed(void **state)
{
    dt_ckpt_info info;
    assert_int_equal(small_run_save(1, &info), DT_OK);
    char **names = NULL, dir[1024];
    size_t n = 0, n_flips = 0;
    snprintf(dir, sizeof(dir), "%s", small_run_path("step-000000000001"));
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
    assert_int_equal(small_run_save(1, NULL), DT_OK);
    assert_int_equal(small_run_save(2, NULL), DT_OK);
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
        assert_int_equal(dt_fs_read_all(small_run_path(name), 100000, &stale, &n_stale), DT_OK);
        snprintf(name, sizeof(name), "step-000000000002/%s", files[i]);
        assert_int_equal(dt_fs_read_all(small_run_path(name), 100000, &own, &n_own), DT_OK);
        assert_int_equal(dt_fs_write_atomic(small_run_path(name), stale, n_stale), DT_OK);
        assert_int_equal(dt_ckpt_verify(small_run_path("step-000000000002"), &info), DT_EDATA);
        assert_int_equal(dt_fs_write_atomic(small_run_path(name), own, n_own), DT_OK);
        assert_int_equal(dt_ckpt_verify(small_run_path("step-000000000002"), &info), DT_OK);
        dt_free(stale);
        dt_free(own);
    }
}

int main(void)
{
    dt_fs_set_flush(false); /* thousands of saves: what a power loss would do is not looked at here */
#define CASE(name) cmocka_unit_test_setup_teardown(name, small_run_begin, small_run_end)
    const struct CMUnitTest tests[] = {
        CASE(test_every_call_of_a_save_fails_once),
        CASE(test_every_call_of_a_save_fails_from_then_on),
        CASE(test_every_allocation_of_a_save_fails),
        CASE(test_every_call_of_a_save_in_shards_fails),
        CASE(test_a_full_disk_says_so),
        CASE(test_killed_at_every_call_of_a_save),
        CASE(test_killed_at_every_call_of_a_save_in_shards),
        CASE(test_killed_at_every_call_of_replacing_the_same_step),
        CASE(test_killed_at_every_call_of_pruning),
        CASE(test_every_call_of_loading_fails),
        CASE(test_every_flipped_bit_and_every_cut_is_noticed),
        CASE(test_files_of_two_checkpoints_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
