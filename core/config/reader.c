/* SPDX-License-Identifier: Apache-2.0
 *
 * Configuration files: libconfig's language, read by libconfig, with its three defects taken away beforehand.
 *
 * One scan over the characters (a) splices @include files in place, relative to the file that includes it, and keeps
 * for every line where it came from; (b) refuses integers that libconfig 1.5 would cut to 32 bits and numbers it would
 * read as infinite; (c) opens files itself, so that a missing one is reported with its reason. What libconfig then
 * parses is one text without includes, and its line numbers are translated back.
 * Grammar: libconfig manual 1.5, chapter 3.
 */
#include <config.h>

#include "config/syntax.h"
#include "config/tree.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/text.h"

#include <libconfig.h> /* this file alone */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE_BYTES = 16 << 20, MAX_INCLUDES = 10 };

typedef struct source_line {
    const char *file;
    int line;
} source_line;

typedef struct reader {
    dt_config *c;
    dt_layer layer;
    dt_str text;        /* spliced */
    source_line *lines; /* of text, [n_lines] */
    size_t n_lines, cap_lines;
    int depth; /* of includes */
} reader;

typedef enum scan_state { IN_CODE, IN_STRING, IN_LINE_COMMENT, IN_BLOCK_COMMENT } scan_state;

static dt_status record_line(reader *r, const char *file, int line)
{
    if (r->n_lines == r->cap_lines) {
        size_t cap = r->cap_lines == 0 ? 256 : r->cap_lines * 2;
        source_line *grown = dt_realloc(r->lines, cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "%s:%d: out of memory", file, line);
        }
        r->lines = grown;
        r->cap_lines = cap;
    }
    r->lines[r->n_lines++] = (source_line){file, line};
    return DT_OK;
}

static bool is_name_char(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_' || ch == '-' || ch == '*';
}

/* Bytes of the number that begins at p, 0 when none does. */
static size_t number_bytes(const char *p)
{
    const char *q = p + (*p == '+' || *p == '-');
    if (!isdigit((unsigned char)q[0]) && !(q[0] == '.' && isdigit((unsigned char)q[1]))) {
        return 0;
    }
    for (; isalnum((unsigned char)*q) || *q == '.'; q++) {
        bool is_hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
        if ((*q == 'e' || *q == 'E') && !is_hex && (q[1] == '+' || q[1] == '-')) {
            q++;
        }
    }
    return (size_t)(q - p);
}

/* What libconfig would silently read as another number. */
static dt_status check_number(const char *p, size_t bytes, const char *file, int line)
{
    char word[64];
    if (bytes >= sizeof(word)) {
        return DT_FAIL(DT_ECONFIG, "%s:%d: a number of %zu characters; at most %zu are read", file, line, bytes,
                       sizeof(word) - 1);
    }
    memcpy(word, p, bytes);
    word[bytes] = '\0';
    bool is_hex = word[0] == '0' && (word[1] == 'x' || word[1] == 'X');
    if (!is_hex && strpbrk(word, ".eE") != NULL) {
        char *end = NULL;
        double v = strtod(word, &end);
        if (*end == '\0' && __builtin_isinf(v)) {
            return DT_FAIL(DT_ECONFIG, "%s:%d: %s is too large for a number (limit 1.797e308)", file, line, word);
        }
        return DT_OK;
    }
    size_t digits = strspn(word, is_hex ? "0123456789abcdefABCDEFxX" : "+-0123456789");
    bool is_long = word[digits] == 'L';
    errno = 0;
    int64_t v = strtoll(word, NULL, is_hex ? 16 : 10);
    if (errno == ERANGE) {
        return DT_FAIL(DT_ECONFIG, "%s:%d: %s does not fit 64 bits (limit %" PRId64 ")", file, line, word, INT64_MAX);
    }
    if (!is_long && (v > INT32_MAX || v < INT32_MIN)) {
        return DT_FAIL(DT_ECONFIG, "%s:%d: %s does not fit 32 bits; write it as %.*sL", file, line, word, (int)digits,
                       word);
    }
    return DT_OK;
}

static dt_status splice_includes(reader *r, const char *path);

/* The file that an @include at p names, joined to the folder of the file that includes it; *end_p is after its line. */
static dt_status resolve_include(reader *r, const char *p, const char *file, int line, const char **end_p)
{
    p += strlen("@include");
    p += strspn(p, " \t");
    const char *close = *p == '"' ? strpbrk(p + 1, "\"\n") : NULL;
    if (close == NULL || *close != '"' || close == p + 1) {
        return DT_FAIL(DT_ECONFIG, "%s:%d: expected @include \"file\"", file, line);
    }
    const char *rest = close + 1;
    rest += strspn(rest, " \t\r;");
    if (*rest != '\0' && *rest != '\n' && *rest != '#' && strncmp(rest, "//", 2) != 0) {
        return DT_FAIL(DT_ECONFIG, "%s:%d: only a comment may follow @include \"file\" on its line", file, line);
    }
    if (r->layer == DT_FROM_RUN) { /* what dtrain writes there has none; a foreign one would open files of ours */
        return DT_FAIL(DT_ECONFIG, "%s:%d: the configuration of a run may not include other files", file, line);
    }
    if (r->depth >= MAX_INCLUDES) {
        return DT_FAIL(DT_ECONFIG, "%s:%d: includes nest deeper than %d; does a file include itself?", file, line,
                       MAX_INCLUDES);
    }
    const char *slash = strrchr(file, '/');
    dt_str path = {0};
    if (p[1] != '/' && slash != NULL) {
        dt_str_add_n(&path, file, (size_t)(slash - file) + 1);
    }
    dt_str_add_n(&path, p + 1, (size_t)(close - p - 1));
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        r->depth++;
        st = splice_includes(r, dt_str_text(&path));
        r->depth--;
        if (st == DT_ENOTFOUND || st == DT_EIO || st == DT_EDATA) {
            st = DT_CONTEXT(DT_ECONFIG, "%s:%d: @include", file, line);
        }
    }
    dt_str_fini(&path);
    *end_p = rest + strcspn(rest, "\n");
    return st;
}

/* One file into the text, its includes in place. Lines of the text keep their file and number. */
static dt_status scan_file(reader *r, const char *text, const char *file)
{
    scan_state state = IN_CODE;
    int line = 1;
    DT_TRY(record_line(r, file, line));
    bool at_line_start = true;
    for (const char *p = text; *p != '\0';) {
        size_t take = 1;
        if (state == IN_CODE && at_line_start && strncmp(p + strspn(p, " \t"), "@include", 8) == 0) {
            const char *end = NULL;
            r->n_lines--; /* the included file's first line takes this one's place */
            DT_TRY(resolve_include(r, p + strspn(p, " \t"), file, line, &end));
            p = end;
            if (r->text.bytes > 0 && dt_str_text(&r->text)[r->text.bytes - 1] != '\n') {
                dt_str_add(&r->text, "\n");
            } else {
                r->n_lines--; /* its last line is empty */
            }
            DT_TRY(record_line(r, file, line)); /* what is left of the line that includes */
            at_line_start = false;
            continue;
        }
        at_line_start = false;
        if (state == IN_CODE) {
            if (*p == '"') {
                state = IN_STRING;
            } else if (*p == '#' || strncmp(p, "//", 2) == 0) {
                state = IN_LINE_COMMENT;
            } else if (strncmp(p, "/*", 2) == 0) {
                state = IN_BLOCK_COMMENT;
                take = 2;
            } else if (number_bytes(p) > 0) {
                take = number_bytes(p);
                DT_TRY(check_number(p, take, file, line));
            } else if (isalpha((unsigned char)*p) || *p == '*') {
                while (is_name_char(p[take])) {
                    take++;
                }
            }
        } else if (state == IN_STRING) {
            if (*p == '\\' && p[1] != '\0' && p[1] != '\n') {
                take = 2;
            } else if (*p == '"') {
                state = IN_CODE;
            }
        } else if (state == IN_BLOCK_COMMENT && strncmp(p, "*/", 2) == 0) {
            state = IN_CODE;
            take = 2;
        }
        dt_str_add_n(&r->text, p, take);
        if (*p == '\n') {
            state = state == IN_LINE_COMMENT ? IN_CODE : state;
            at_line_start = true;
            DT_TRY(record_line(r, file, ++line));
        }
        p += take;
    }
    if (state == IN_STRING || state == IN_BLOCK_COMMENT) {
        return DT_FAIL(DT_ECONFIG, "%s:%d: the file ends inside a %s", file, line,
                       state == IN_STRING ? "string" : "comment");
    }
    return DT_OK;
}

static dt_status splice_includes(reader *r, const char *path)
{
    char *text = NULL;
    size_t bytes = 0;
    DT_TRY(dt_fs_read_any(path, MAX_FILE_BYTES, &text, &bytes));
    dt_status st = DT_OK;
    const char *file = dt_pool_dup(r->c, path, strlen(path));
    if (file == NULL) {
        st = DT_FAIL(DT_ENOMEM, "out of memory while reading %s", path);
    } else if (strlen(text) != bytes) {
        st = DT_FAIL(DT_ECONFIG, "%s: byte %zu is zero; a configuration is plain text", path, strlen(text));
    } else {
        st = scan_file(r, text + dt_utf8_mark(text, bytes), file);
    }
    dt_free(text);
    return st;
}

/* Line i (from 1) of the spliced text. */
static source_line source_of_line(const reader *r, unsigned i)
{
    if (r->n_lines == 0) {
        return (source_line){"", 0};
    }
    return r->lines[i == 0 ? 0 : i > r->n_lines ? r->n_lines - 1 : i - 1];
}

static dt_status from_setting(const reader *r, const dt_origin *fixed, config_setting_t *s, dt_node *parent);

/* One setting as a node; fixed: the origin of a command line value, NULL in files. */
static dt_status new_node(const reader *r, const dt_origin *fixed, config_setting_t *s, dt_node **out_p)
{
    dt_origin origin;
    if (fixed != NULL) {
        origin = *fixed;
    } else {
        source_line at = source_of_line(r, config_setting_source_line(s));
        origin = (dt_origin){r->layer, at.file, at.line};
    }
    char number[32] = "";
    const char *text = number;
    dt_node_kind kind = DT_NODE_GROUP;
    switch (config_setting_type(s)) {
    case CONFIG_TYPE_GROUP:
        text = NULL;
        break;
    case CONFIG_TYPE_ARRAY:
    case CONFIG_TYPE_LIST:
        kind = DT_NODE_LIST;
        text = NULL;
        break;
    case CONFIG_TYPE_BOOL:
        kind = DT_NODE_BOOL;
        text = config_setting_get_bool(s) ? "true" : "false";
        break;
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_INT64:
        kind = DT_NODE_INT;
        snprintf(number, sizeof(number), "%lld", (long long)config_setting_get_int64(s));
        break;
    case CONFIG_TYPE_FLOAT:
        kind = DT_NODE_FLOAT;
        dt_format_f64(config_setting_get_float(s), number);
        break;
    default:
        kind = DT_NODE_TEXT;
        text = config_setting_get_string(s);
        break;
    }
    DT_TRY(dt_node_new(r->c, kind, config_setting_name(s), text, &origin, out_p));
    if (kind == DT_NODE_GROUP || kind == DT_NODE_LIST) {
        return from_setting(r, fixed, s, *out_p);
    }
    return DT_OK;
}

static dt_status from_setting(const reader *r, const dt_origin *fixed, config_setting_t *s, dt_node *parent)
{
    for (int i = 0; i < config_setting_length(s); i++) {
        dt_node *n = NULL;
        DT_TRY(new_node(r, fixed, config_setting_get_elem(s, (unsigned)i), &n));
        dt_node_append(parent, n);
    }
    return DT_OK;
}

/* Line i (from 1) of the text is refused: where it came from, why, and the line itself. */
static dt_status reject_line(const reader *r, int i, const char *what, const char *why)
{
    enum { SHOWN = 120 };
    const char *begin = dt_str_text(&r->text);
    for (int k = 1; k < i; k++) {
        begin += strcspn(begin, "\n");
        begin += *begin != '\0';
    }
    begin += strspn(begin, " \t");
    const source_line at = source_of_line(r, (unsigned)i);
    const int bytes = (int)strcspn(begin, "\r\n");
    return DT_FAIL(DT_ECONFIG, "%s:%d: %s%s; the line: %.*s%s", at.file, at.line, what, why,
                   bytes < SHOWN ? bytes : SHOWN, begin, bytes < SHOWN ? "" : "...");
}

/* The spliced text by libconfig, which gets only what has a chance (syntax.h). */
static dt_status parse_spliced_text(const reader *r, config_t *lib)
{
    dt_str why = {0};
    int line = 1;
    dt_status st = DT_OK;
    if (dt_syntax_find_error(dt_str_text(&r->text), &line, &why)) {
        st = dt_str_status(&why);
        if (st == DT_OK) {
            st = reject_line(r, line, "syntax error: ", dt_str_text(&why));
        }
    }
    dt_str_fini(&why);
    if (st == DT_OK && !config_read_string(lib, dt_str_text(&r->text))) {
        const char *text = config_error_text(lib);
        st = reject_line(r, config_error_line(lib), "",
                         strcmp(text, "duplicate setting name") == 0
                             ? "duplicate setting name: the group has this key already"
                             : text);
    }
    return st;
}

/* What was not spliced in is in a string or a comment; libconfig, should it see that otherwise, would open files. */
static dt_status reject_unresolved_includes(const reader *r)
{
    unsigned line = 1;
    for (const char *p = dt_str_text(&r->text); *p != '\0'; line++) {
        if (strncmp(p + strspn(p, " \t\r\v\f"), "@include", 8) == 0) {
            const source_line at = source_of_line(r, line);
            return DT_FAIL(DT_ECONFIG, "%s:%d: a line inside a string or a comment begins with @include", at.file,
                           at.line);
        }
        p += strcspn(p, "\n");
        p += *p != '\0';
    }
    return DT_OK;
}

dt_status dt_reader_file(dt_config *c, dt_layer layer, const char *path, dt_node *into)
{
    reader r = {.c = c, .layer = layer};
    config_t lib;
    config_init(&lib);
    dt_status st = splice_includes(&r, path);
    if (st == DT_OK) {
        st = dt_str_status(&r.text);
    }
    if (st == DT_OK && layer == DT_FROM_RUN) {
        st = reject_unresolved_includes(&r);
    }
    if (st == DT_OK) {
        st = parse_spliced_text(&r, &lib);
    }
    if (st == DT_OK) {
        st = from_setting(&r, NULL, config_root_setting(&lib), into);
    }
    config_destroy(&lib);
    dt_str_fini(&r.text);
    dt_free(r.lines);
    return st;
}

dt_status dt_reader_value(dt_config *c, const char *text, const char *path, const dt_origin *origin, dt_node **out_p)
{
    reader r = {.c = c};
    config_t lib;
    config_init(&lib);
    dt_str line = {0}, why = {0};
    int where = 1;
    dt_str_addf(&line, "v = %s;", text);
    dt_status st = dt_str_status(&line);
    const bool is_refused = st == DT_OK && dt_syntax_find_error(dt_str_text(&line), &where, &why);
    if (is_refused || (st == DT_OK && !config_read_string(&lib, dt_str_text(&line)))) {
        st = DT_FAIL(DT_ECONFIG, "%s = %.80s from %s: %s; a list is ( 1, 2 ) or [ \"a\", \"b\" ], a group { key = 1; }",
                     path, text, origin->name, is_refused ? dt_str_text(&why) : config_error_text(&lib));
    }
    if (st == DT_OK) {
        st = new_node(&r, origin, config_lookup(&lib, "v"), out_p);
    }
    config_destroy(&lib);
    dt_str_fini(&line);
    dt_str_fini(&why);
    return st;
}
