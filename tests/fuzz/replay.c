/* SPDX-License-Identifier: Apache-2.0
 *
 * The harnesses without a fuzzer, a test of every build: all inputs of tests/fuzz/corpus, among them every one that a
 * fuzzer ever found, and of each some that are cut short or damaged, always the same ones.
 *   replay                the whole corpus
 *   replay NAME FILE...   one harness, these files: what `make fuzz` left behind
 */
#include <config.h>

#include "fuzz/fuzz.h"
#include "guarded.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 20, N_DAMAGED = 128 };

typedef int harness(const uint8_t *bytes, size_t n);
#define HARNESS(name) harness fuzz_##name;
#include "fuzz/harnesses.def"
#undef HARNESS

static const struct {
    const char *name;
    harness *run;
} harnesses[] = {
#define HARNESS(name) {#name, fuzz_##name},
#include "fuzz/harnesses.def"
#undef HARNESS
};
enum { N_HARNESSES = sizeof(harnesses) / sizeof(harnesses[0]) };

dt_status __real_dt_fs_read_all(const char *path, size_t max_bytes, char **out_p, size_t *bytes_p);

/* The input ends where a page without access begins: reading past its end ends the process in every build. */
static void run(harness *h, const uint8_t *bytes, size_t n)
{
    uint8_t *exact = guarded_take(n);
    fuzz_hold(exact != NULL);
    memcpy(exact, bytes, n);
    (void)h(exact, n);
    guarded_give(exact, n);
}

/* A seed cut to k / N_DAMAGED of its length, and whole with one byte changed there. */
static void run_damaged(harness *h, uint8_t *bytes, size_t n)
{
    static const uint8_t change[] = {0x01, 0x80, 0xff, 0x10};
    for (size_t k = 0; k < N_DAMAGED && n > 0; k++) {
        const size_t at = n * k / N_DAMAGED;
        run(h, bytes, at);
        bytes[at] ^= change[k % sizeof(change)];
        run(h, bytes, n);
        bytes[at] ^= change[k % sizeof(change)];
    }
}

static int replay_file(harness *h, const char *path, int is_seed)
{
    char *bytes = NULL;
    size_t n = 0;
    if (__real_dt_fs_read_all(path, MAX_BYTES, &bytes, &n) != DT_OK) {
        fprintf(stderr, "replay: %s\n", dt_error_text());
        return 1;
    }
    printf("%s: ", path); /* the last one is the one that did it */
    fflush(stdout);
    const size_t accepted = fuzz_n_accepted();
    run(h, (uint8_t *)bytes, n);
    printf("%s\n", fuzz_n_accepted() > accepted ? "accepted" : dt_error_text());
    if (is_seed) {
        run_damaged(h, (uint8_t *)bytes, n);
    }
    dt_free(bytes);
    return 0;
}

static int replay_folder(size_t i, const char *corpus)
{
    char folder[4096], path[8192];
    char **names = NULL;
    size_t n = 0;
    int failed = 0;
    snprintf(folder, sizeof(folder), "%s/%s", corpus, harnesses[i].name);
    if (dt_fs_list(folder, &names, &n) != DT_OK || n == 0) {
        fprintf(stderr, "replay: no inputs in %s: %s\n", folder, dt_error_text());
        return 1;
    }
    const size_t accepted = fuzz_n_accepted();
    for (size_t k = 0; k < n; k++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[k]);
        failed += replay_file(harnesses[i].run, path, 1);
    }
    if (fuzz_n_accepted() == accepted) {
        fprintf(stderr, "replay: %s accepts nothing, so it tests nothing\n", folder);
        failed++;
    }
    dt_fs_list_free(names, n);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    char corpus[2048];
    const char *source = getenv("DT_SRCDIR");
    snprintf(corpus, sizeof(corpus), "%s/tests/fuzz/corpus", source != NULL ? source : ".");
    for (size_t i = 0; i < N_HARNESSES; i++) {
        if (argc == 1) {
            failed += replay_folder(i, corpus);
        } else if (strcmp(argv[1], harnesses[i].name) == 0) {
            for (int k = 2; k < argc; k++) {
                failed += replay_file(harnesses[i].run, argv[k], 0);
            }
            return failed != 0;
        }
    }
    if (argc > 1) {
        fprintf(stderr, "replay: no harness %s\n", argv[1]);
        return 2;
    }
    return failed != 0;
}
