/* SPDX-License-Identifier: Apache-2.0
 *
 * Configuration: files, the command line and the environment. The input is a file, then a file that it may include as
 * "more.cfg", then assignments of --set, a line each, then variables of the environment, with lines "----" between
 * them. A configuration that was read can be written, and what was written reads the same.
 */
#include <config.h>

#include "fuzz/fuzz.h"

#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "config/schema.h"
#include "config/tree.h"

#include <string.h>

enum { MOST_LINES = 16 };

static void add_sets(dt_config *c, char *lines)
{
    for (char *line = lines; line != NULL && *line != '\0';) {
        char *end = strchr(line, '\n');
        if (end != NULL) {
            *end = '\0';
        }
        if (dt_config_set(c, line) != DT_OK) {
            fuzz_hold(*dt_error_text() != '\0');
        }
        line = end != NULL ? end + 1 : NULL;
    }
}

static void add_environment(dt_config *c, char *lines)
{
    char *list[MOST_LINES + 1];
    size_t n = 0;
    for (char *line = lines; line != NULL && *line != '\0' && n < MOST_LINES;) {
        char *end = strchr(line, '\n');
        if (end != NULL) {
            *end = '\0';
        }
        list[n++] = line;
        line = end != NULL ? end + 1 : NULL;
    }
    list[n] = NULL;
    if (dt_config_read_env(c, list) != DT_OK) {
        fuzz_hold(*dt_error_text() != '\0');
    }
}

static void read_sections(dt_config *c)
{
    dt_root_opts root;
    dt_training_opts training;
    dt_evaluation_opts evaluation;
    dt_phase_opts phase;
    dt_stop_opts stop;
    (void)!dt_config_root(c, &root);
    for (int64_t i = -1; i < dt_config_n_phases(c) && i < 2; i++) {
        (void)!dt_config_training(c, i, &training);
        (void)!dt_config_evaluation(c, i, &evaluation);
        (void)!(i >= 0 ? dt_config_phase(c, i, &phase, &stop) : DT_OK);
        fuzz_touch_text(dt_config_plugin(c, i));
        fuzz_touch_text(dt_config_model(c, i, "world"));
    }
}

/* Written, read and written again: the same. */
static void check_written(dt_config *c)
{
    dt_config *again = NULL;
    dt_str text = {0}, text_again = {0}, origin = {0};
    char hash[65], hash_again[65];
    fuzz_hold(dt_config_write(c, &text) == DT_OK && dt_config_write_origin(c, NULL, NULL, &origin) == DT_OK);
    fuzz_hold(dt_config_hash(c, hash) == DT_OK);
    fuzz_no_files();
    fuzz_file("/run/effective.cfg", dt_str_text(&text), text.bytes);
    fuzz_hold(dt_config_create(&again) == DT_OK);
    fuzz_hold(dt_config_read_file(again, DT_FROM_FILE, "/run/effective.cfg") == DT_OK);
    fuzz_hold(dt_config_check(again, NULL) == DT_OK);
    fuzz_hold(dt_config_write(again, &text_again) == DT_OK && dt_config_hash(again, hash_again) == DT_OK);
    fuzz_hold(strcmp(dt_str_text(&text), dt_str_text(&text_again)) == 0 && strcmp(hash, hash_again) == 0);
    dt_str_fini(&text);
    dt_str_fini(&text_again);
    dt_str_fini(&origin);
    dt_config_destroy(again);
}

/* Everything that a session does with it. */
static void use(char *environment, char *sets)
{
    dt_config *c = NULL;
    fuzz_hold(dt_config_create(&c) == DT_OK);
    if (dt_config_read_file(c, DT_FROM_FILE, "/run/run.cfg") == DT_OK) {
        add_environment(c, environment);
        add_sets(c, sets);
        if (dt_config_check(c, NULL) == DT_OK) {
            read_sections(c);
            check_written(c);
            fuzz_accepted();
        } else {
            fuzz_hold(*dt_error_text() != '\0');
        }
    } else {
        fuzz_hold(*dt_error_text() != '\0');
    }
    dt_config_destroy(c);
}

DT_FUZZ(config)
{
    dt_config scratch = {.root = {.kind = DT_NODE_GROUP}};
    dt_node root = {.kind = DT_NODE_GROUP};
    size_t at = 0;
    fuzz_begin();
    const char *file = fuzz_text(bytes, n, &at), *more = fuzz_text(bytes, n, &at);
    char *sets = fuzz_text(bytes, n, &at), *environment = fuzz_text(bytes, n, &at);
    fuzz_file("/run/run.cfg", file, strlen(file));
    fuzz_file("/run/more.cfg", more != NULL ? more : "", more != NULL ? strlen(more) : 0);
    /* most inputs are no configurations: they need not know every section to be refused */
    const dt_status st = dt_reader_file(&scratch, DT_FROM_FILE, "/run/run.cfg", &root);
    dt_pool_fini(&scratch);
    fuzz_hold(st == DT_OK || *dt_error_text() != '\0');
    if (st == DT_OK && fuzz_is_chosen(bytes, n)) {
        use(environment, sets);
    }
    fuzz_end();
    return 0;
}
