/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "cli/study_command.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/document.h"
#include "plan/machine/limits.h"
#include "study/trainings.h"

#include <string.h>

/* The rest of the words is checked by the plan of the first training. */
static dt_status check_word(const dt_args *a, const char *word, bool *has_threads_p)
{
    static const char *const own[] = {"seed", "run-dir", "name", "resume", "dry-run", "json", "max-time", "help"};
    const size_t bytes = strcspn(word, "=");
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]) && bytes > 2; i++) {
        if (strlen(own[i]) == bytes - 2 && strncmp(word, "--", 2) == 0 && strncmp(word + 2, own[i], bytes - 2) == 0) {
            return DT_FAIL(DT_ECONFIG,
                           "--%s may not be among the arguments of each training: dtrain %s sets it itself, or has no "
                           "use for it",
                           own[i], a->verb);
        }
    }
    *has_threads_p =
        *has_threads_p || strncmp(word, "-t", 2) == 0 || (bytes == 9 && strncmp(word, "--threads", 9) == 0);
    return DT_OK;
}

dt_status dt_study_command_read(const dt_args *a, char *const *arg, uint32_t n, dt_study_command *out)
{
    const bool has_verb = n > 0 && strcmp(arg[0], "run") == 0;
    dt_study_command c = {.program = a->argv[0], .arg = arg + has_verb, .n = n - has_verb, .parallel = 1, .threads = 1};
    if (c.n == 0) {
        return DT_FAIL(DT_ECONFIG, "dtrain %s needs the arguments of a training, such as --plugin phase2_ppo", a->verb);
    }
    if (c.arg[0][0] != '-') {
        return DT_FAIL(DT_ECONFIG, "dtrain %s starts trainings: expected options of dtrain run, got \"%s\"", a->verb,
                       c.arg[0]);
    }
    for (uint32_t i = 0; i < c.n; i++) {
        DT_TRY(check_word(a, c.arg[i], &c.has_threads));
    }
    *out = c;
    return DT_OK;
}

/* Of the values of a file; of all its bytes where it is in another language, as YAML. */
static dt_status hash_content(const char *path, uint64_t *out)
{
    enum { MAX_BYTES = 16 << 20 };
    dt_document d = {0};
    char *text = NULL;
    size_t bytes = 0;
    *out = 0;
    if (dt_document_read(path, &d) == DT_OK) {
        for (uint32_t i = 0; i < d.n; i++) {
            *out = dt_hash64(d.item[i].path, strlen(d.item[i].path) + 1, *out);
            *out = dt_hash64(d.item[i].text, strlen(d.item[i].text) + 1, *out);
        }
        dt_document_fini(&d);
        return DT_OK;
    }
    dt_error_clear();
    DT_TRY(dt_fs_read_all(path, MAX_BYTES, &text, &bytes));
    *out = dt_hash64(text, bytes, 0);
    dt_free(text);
    return DT_OK;
}

dt_status dt_study_command_add_contents(const dt_study_command *c, dt_words *identity)
{
    static const char option[] = "--config";
    const size_t n = sizeof(option) - 1;
    for (uint32_t i = 0; i < c->n; i++) {
        const char *word = c->arg[i], *path = NULL;
        uint64_t hash = 0;
        if (strncmp(word, option, n) == 0 && word[n] == '=') {
            path = word + n + 1;
        } else if ((strcmp(word, option) == 0 || strcmp(word, "-c") == 0) && i + 1 < c->n) {
            path = c->arg[++i];
        } else if (strncmp(word, "-c", 2) == 0) {
            path = word + 2;
        }
        if (path != NULL && dt_fs_is_file(path)) { /* else the plan rejects it */
            DT_TRY(hash_content(path, &hash));
            dt_words_addf(identity, "content of %s = %016llx", path, (unsigned long long)hash);
        }
    }
    return dt_words_status(identity);
}

void dt_study_command_begin(const dt_study_command *c, dt_words *out)
{
    dt_words_add(out, c->program);
    dt_words_add(out, "run");
    for (uint32_t i = 0; i < c->n; i++) {
        dt_words_add(out, c->arg[i]);
    }
}

void dt_study_command_end(const dt_study_command *c, const char *run, dt_words *out)
{
    if (!c->has_threads) {
        dt_words_add(out, "--threads");
        dt_words_addf(out, "%u", c->threads);
    }
    dt_words_add(out, "--run-dir");
    dt_words_add(out, run);
    dt_words_add(out, "--resume");
    dt_words_add(out, "auto");
    dt_words_add(out, "--quiet");
}

static dt_status parse_parallel(const char *text, uint32_t *out)
{
    int64_t v = 0;
    if (!dt_parse_whole(text, &v) || v < 1 || v > DT_TRAININGS_MAX) {
        return DT_FAIL(DT_ECONFIG, "--parallel %s: expected a whole number from 1 to %d", text, DT_TRAININGS_MAX);
    }
    *out = (uint32_t)v;
    return DT_OK;
}

dt_status dt_study_command_plan(const dt_args *a, const dt_words *further, uint32_t n, dt_study_command *c, int *code_p)
{
    dt_words command = {0};
    dt_study_plan plan = {0};
    dt_limits room = {.cores = 1};
    uint32_t wanted = 0;
    DT_TRY(a->parallel != NULL ? parse_parallel(a->parallel, &wanted) : DT_OK);
    dt_study_command_begin(c, &command);
    for (uint32_t i = 0; i < further->n; i++) {
        dt_words_add(&command, further->word[i]);
    }
    if (!c->has_threads) {
        dt_words_add(&command, "--threads");
        dt_words_add(&command, "1");
    }
    dt_words_add(&command, "--quiet");
    const dt_status st = dt_study_plan_read(&command, &plan, code_p);
    dt_words_fini(&command);
    DT_TRY(st);
    (void)dt_limits_read("", &room);
    const uint32_t fit = dt_study_count_parallel(&plan, n, room.cores, room.memory);
    c->parallel = wanted > 0 ? wanted : fit;
    c->threads = room.cores > c->parallel ? room.cores / c->parallel : 1;
    if (wanted > fit && wanted <= n && plan.memory > 0 && (double)plan.memory * wanted > (double)room.memory) {
        dt_log(DT_LOG_WARN, "--parallel %u needs up to %.3g GB of memory, %.3g GB are free", wanted,
               (double)plan.memory * wanted / 1e9, (double)room.memory / 1e9);
    }
    return DT_OK;
}
