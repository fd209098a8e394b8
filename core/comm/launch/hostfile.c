/* SPDX-License-Identifier: Apache-2.0
 *
 * See hostfile.h.
 */
#include <config.h>

#include "comm/launch/hostfile.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What mpirun stumbles over, calling it an internal error of its own. */
static dt_status check_characters(const char *path, const char *text, size_t bytes)
{
    uint32_t line = 1;
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)text[i];
        line += c == '\n';
        if (c == '\r') {
            return DT_FAIL(DT_ECONFIG,
                           "--hostfile %s, line %u: it has Windows line endings; save it with Unix line endings", path,
                           line);
        }
        if ((c < 0x20 && c != '\n' && c != '\t') || c > 0x7e || strchr(";|&$`<>()'\"\\", c) != NULL) {
            return DT_FAIL(DT_ECONFIG,
                           "--hostfile %s, line %u: character 0x%02x; expected lines such as \"node1 slots=4\"", path,
                           line, c);
        }
    }
    return DT_OK;
}

/* "slots=4": what is known of it is a whole number of at least 1. */
static dt_status check_slots(const char *path, uint32_t line, const char *word, size_t bytes)
{
    static const char *const keys[] = {"slots=", "max_slots=", "max-slots=", "count="};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const size_t n = strlen(keys[i]);
        if (bytes < n || strncmp(word, keys[i], n) != 0) {
            continue;
        }
        char number[16] = "";
        int64_t value = 0;
        snprintf(number, sizeof(number), "%.*s", (int)(bytes - n < 15 ? bytes - n : 15), word + n);
        if (!dt_parse_whole(number, &value) || value < 1 || value > 65536) {
            return DT_FAIL(DT_ECONFIG, "--hostfile %s, line %u: %.*s: expected a whole number from 1 to 65536", path,
                           line, (int)bytes, word);
        }
    }
    return DT_OK;
}

/* The name of a host comes first, then what is said of it. */
static dt_status check_line(const char *path, uint32_t line, const char *at, size_t bytes)
{
    static const char blanks[] = " \t";
    bool is_first = true;
    for (size_t i = 0; i < bytes && at[i] != '#';) {
        size_t n = 0;
        while (i + n < bytes && strchr(blanks, at[i + n]) == NULL && at[i + n] != '#') {
            n++;
        }
        if (n == 0) {
            i++;
            continue;
        }
        if (is_first && memchr(at + i, '=', n) != NULL) {
            return DT_FAIL(DT_ECONFIG,
                           "--hostfile %s, line %u: \"%.*s\" is not a host; expected lines such as \"node1 slots=4\"",
                           path, line, (int)n, at + i);
        }
        if (!is_first && memchr(at + i, '=', bytes - i) == NULL && at[i - 1] != '=') {
            return DT_FAIL(DT_ECONFIG,
                           "--hostfile %s, line %u: \"%.*s\" after the host; expected lines such as \"node1 slots=4\"",
                           path, line, (int)n, at + i);
        }
        DT_TRY(is_first ? DT_OK : check_slots(path, line, at + i, n));
        is_first = false;
        i += n;
    }
    return DT_OK;
}

static dt_status check_lines(const char *path, const char *text, size_t bytes)
{
    uint32_t line = 1;
    for (size_t i = 0; i < bytes; line++) {
        const char *end = memchr(text + i, '\n', bytes - i);
        const size_t n = end != NULL ? (size_t)(end - text) - i : bytes - i;
        DT_TRY(check_line(path, line, text + i, n));
        i += n + 1;
    }
    return DT_OK;
}

dt_status dt_hostfile_check(const char *path)
{
    enum { MOST_BYTES = 1 << 20 };
    char *text = NULL;
    size_t bytes = 0;
    if (path == NULL) {
        return DT_OK;
    }
    if (!dt_fs_is_dir(path) && access(path, F_OK) == 0 && !dt_fs_is_file(path)) {
        return DT_FAIL(DT_ECONFIG, "--hostfile %s is not a regular file", path); /* a FIFO could block for ever */
    }
    if (dt_fs_read_any(path, MOST_BYTES, &text, &bytes) < 0) {
        return DT_CONTEXT(DT_ECONFIG, "--hostfile");
    }
    dt_status st = check_characters(path, text, bytes);
    if (st == DT_OK) {
        st = check_lines(path, text, bytes);
    }
    if (st < 0) {
        dt_free(text);
        return st;
    }
    bool names_any = false, is_begin = true;
    for (size_t i = 0; i < bytes && !names_any; i++) {
        names_any = is_begin && strchr("# \t\r\n", text[i]) == NULL;
        is_begin = text[i] == '\n' || (is_begin && text[i] != '#');
    }
    dt_free(text);
    return names_any
               ? DT_OK
               : DT_FAIL(DT_ECONFIG, "--hostfile %s names no host: expected lines such as \"node1 slots=4\"", path);
}
