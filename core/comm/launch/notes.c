/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "comm/launch/notes.h"

#include "base/beneath.h"
#include "base/err.h"
#include "base/log.h"

#include <string.h>

enum { MOST_WAITING = 1 << 20 };
static const uint64_t MOST_BYTES = 16u << 20; /* of a file, of which the last three are kept */

static void append_note_line(dt_launch_notes *n, char *line)
{
    dt_mask_message(line);
    if (n->file != NULL) {
        dt_logfile_write_line(n->file, line);
    } else if (n->waiting.bytes < MOST_WAITING) {
        dt_str_addf(&n->waiting, "%s\n", line);
    }
}

static void write_log_line(void *user, int level, const char *line)
{
    dt_str copy = {0};
    dt_str_add(&copy, line);
    if (copy.text != NULL) {
        append_note_line(user, copy.text);
    }
    dt_str_fini(&copy);
}

void dt_launch_notes_add(void *user, const char *bytes, size_t count)
{
    dt_launch_notes *n = user;
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == '\r' || n->line.bytes > 4000) { /* a line that is drawn again; one without an end */
            dt_str_clear(&n->line);
        } else if (bytes[i] != '\n') {
            dt_str_add_n(&n->line, bytes + i, 1);
        } else if (n->line.bytes > 0) {
            append_note_line(n, n->line.text);
            dt_str_clear(&n->line);
        }
    }
}

void dt_launch_notes_begin(dt_launch_notes *n)
{
    dt_log_sink_set(write_log_line, n);
}

static dt_status open_note_file(const dt_str *path, const char *run, dt_logfile **out_p)
{
    const dt_logfile_opts o = {.max_bytes = MOST_BYTES, .keep = 3};
    DT_TRY(dt_str_status(path));
    DT_TRY(dt_beneath_guard(run));
    return dt_logfile_open(dt_str_text(path), &o, out_p);
}

void dt_launch_notes_open(dt_launch_notes *n, const char *run)
{
    dt_str path = {0};
    if (n->file != NULL || n->has_failed) {
        return;
    }
    dt_str_addf(&path, "%s/launch.log", run);
    const dt_status st = open_note_file(&path, run, &n->file);
    dt_str_fini(&path);
    if (st < 0) {
        n->has_failed = true;
        dt_log(DT_LOG_WARN, "no launch.log: %s", dt_error_text());
        dt_error_clear();
        return;
    }
    for (char *line = n->waiting.text; line != NULL && *line != '\0';) {
        char *end = strchr(line, '\n');
        *end = '\0';
        dt_logfile_write_line(n->file, line);
        line = end + 1;
    }
    dt_str_clear(&n->waiting);
}

void dt_launch_notes_end(dt_launch_notes *n)
{
    dt_log_sink_set(NULL, NULL);
    dt_logfile_close(n->file);
    dt_str_fini(&n->waiting);
    dt_str_fini(&n->line);
    n->file = NULL;
}
