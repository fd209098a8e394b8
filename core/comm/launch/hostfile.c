/* SPDX-License-Identifier: Apache-2.0 */
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

static dt_status check_text(const char *path, const char *text, size_t bytes)
{
    DT_TRY(check_characters(path, text, bytes));
    DT_TRY(check_lines(path, text, bytes));
    bool names_any = false, is_begin = true;
    for (size_t i = 0; i < bytes && !names_any; i++) {
        names_any = is_begin && strchr("# \t\r\n", text[i]) == NULL;
        is_begin = text[i] == '\n' || (is_begin && text[i] != '#');
    }
    return names_any
               ? DT_OK
               : DT_FAIL(DT_ECONFIG, "--hostfile %s names no host: expected lines such as \"node1 slots=4\"", path);
}

static dt_status read_text(const char *path, char **text_p, size_t *bytes_p)
{
    enum { MOST_BYTES = 1 << 20 };
    if (!dt_fs_is_dir(path) && access(path, F_OK) == 0 && !dt_fs_is_file(path)) {
        return DT_FAIL(DT_ECONFIG, "--hostfile %s is not a regular file", path); /* a FIFO could block for ever */
    }
    if (dt_fs_read_any(path, MOST_BYTES, text_p, bytes_p) < 0) {
        return DT_CONTEXT(DT_ECONFIG, "--hostfile");
    }
    const dt_status st = check_text(path, *text_p, *bytes_p);
    if (st < 0) {
        dt_free(*text_p);
        *text_p = NULL;
    }
    return st;
}

dt_status dt_hostfile_check(const char *path)
{
    char *text = NULL;
    size_t bytes = 0;
    if (path == NULL) {
        return DT_OK;
    }
    DT_TRY(read_text(path, &text, &bytes));
    dt_free(text);
    return DT_OK;
}

/* ---- the hosts --------------------------------------------------------------------------------------------------- */

/* The next word of a line, which *at_p points to then; 0: there is none. '=' is a word of its own. */
static size_t next_word(const char **at_p, const char *end)
{
    const char *at = *at_p;
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    *at_p = at;
    if (at < end && *at == '=') {
        return 1;
    }
    size_t n = 0;
    while (at + n < end && strchr(" \t#=", at[n]) == NULL) {
        n++;
    }
    return n;
}

static void read_key(const char *key, const char *value, dt_host_line *out)
{
    const size_t used = strlen(out->words);
    int64_t slots = 0;
    if (strcmp(key, "slots") == 0 || strcmp(key, "count") == 0) {
        const bool is_number = dt_parse_whole(value, &slots) && slots > 0;
        out->slots = is_number && slots < DT_HOSTS_MOST ? (uint32_t)slots : DT_HOSTS_MOST;
    } else if (strncmp(key, "max", 3) != 0 && used + strlen(key) + strlen(value) + 3 < sizeof(out->words)) {
        snprintf(out->words + used, sizeof(out->words) - used, " %s=%s", key, value);
    }
}

/* A checked line. False: it names no host. */
static bool read_line(const char *at, const char *end, dt_host_line *out)
{
    *out = (dt_host_line){.slots = 1};
    size_t n = next_word(&at, end);
    if (n == 0 || n >= sizeof(out->name)) {
        return false;
    }
    snprintf(out->name, sizeof(out->name), "%.*s", (int)n, at);
    for (at += n; (n = next_word(&at, end)) > 0; at += n) {
        char key[32] = "", value[64] = "";
        snprintf(key, sizeof(key), "%.*s", (int)(n < sizeof(key) ? n : sizeof(key) - 1), at);
        at += n;
        n = next_word(&at, end); /* '=' */
        at += n;
        n = next_word(&at, end);
        snprintf(value, sizeof(value), "%.*s", (int)(n < sizeof(value) ? n : sizeof(value) - 1), at);
        read_key(key, value, out);
    }
    return true;
}

static void add_host(const dt_host_line *line, dt_host_line *all, uint32_t *n)
{
    for (uint32_t i = 0; i < *n; i++) {
        if (strcmp(all[i].name, line->name) == 0) {
            const uint32_t slots = all[i].slots + line->slots;
            all[i].slots = slots < DT_HOSTS_MOST ? slots : DT_HOSTS_MOST;
            return;
        }
    }
    all[(*n)++] = *line;
}

dt_status dt_hostfile_read(const char *path, dt_host_line **out_p, uint32_t *n_p)
{
    char *text = NULL;
    size_t bytes = 0;
    uint32_t n = 0;
    DT_TRY(read_text(path, &text, &bytes));
    dt_host_line *all = dt_alloc_n(DT_HOSTS_MOST, sizeof(*all)), line;
    for (size_t i = 0; i < bytes && all != NULL && n < DT_HOSTS_MOST;) {
        const char *end = memchr(text + i, '\n', bytes - i);
        end = end != NULL ? end : text + bytes;
        if (read_line(text + i, end, &line)) {
            add_host(&line, all, &n);
        }
        i = (size_t)(end - text) + 1;
    }
    dt_free(text);
    if (all == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the hosts of %s", path);
    }
    *out_p = all;
    *n_p = n;
    return DT_OK;
}
