/* SPDX-License-Identifier: Apache-2.0
 *
 * See syntax.h. One function a rule of the grammar; each returns false once something is wrong, which was then
 * reported.
 */
#include <config.h>

#include "config/syntax.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* libconfig looks through all settings of a group for each new one, and so do we: what a group may hold is bounded. A
 * configuration has some hundred settings. */
enum { MAX_DEPTH = 64, MAX_KEYS = 1000, MAX_SETTINGS = 20000, SHOWN = 40 };

typedef enum kind { AT_END, WORD, STRING, SIGN } kind;
typedef enum scalar { IS_BOOL, IS_INT, IS_FLOAT, IS_STRING, IS_NONE } scalar;

typedef struct token {
    kind kind;
    const char *at;
    int bytes, line;
} token;

typedef struct parser {
    const char *p; /* after the token */
    int line, depth;
    int n_settings; /* and values of lists */
    token now;
    int *line_p;
    dt_str *why;
    int comma_line; /* of a comma before a closing bracket, which some versions of libconfig allow; 0: none */
} parser;

static bool parse_settings(parser *q, const token *opener);

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static void skip_blanks(parser *q)
{
    for (;;) {
        if (*q->p == '\n') {
            q->line++;
            q->p++;
        } else if (*q->p != '\0' && strchr(" \t\r\f", *q->p) != NULL) {
            q->p++;
        } else if (*q->p == '#' || strncmp(q->p, "//", 2) == 0) {
            q->p += strcspn(q->p, "\n");
        } else if (strncmp(q->p, "/*", 2) == 0) {
            for (q->p += 2; *q->p != '\0' && strncmp(q->p, "*/", 2) != 0; q->p++) {
                q->line += *q->p == '\n';
            }
            if (*q->p != '\0') {
                q->p += 2;
            }
        } else {
            return;
        }
    }
}

static size_t string_bytes(const char *p)
{
    size_t n = 1;
    while (p[n] != '\0' && p[n] != '"') {
        n += p[n] == '\\' && p[n + 1] != '\0' ? 2 : 1;
    }
    return n + (p[n] == '"');
}

/* Up to a blank, a sign or a comment. */
static size_t word_bytes(const char *p)
{
    size_t n = 0;
    while (p[n] != '\0' && strchr(" \t\r\n\f=:;,{}()[]\"#", p[n]) == NULL && strncmp(p + n, "//", 2) != 0 &&
           strncmp(p + n, "/*", 2) != 0) {
        n++;
    }
    return n;
}

static void next_token(parser *q)
{
    skip_blanks(q);
    size_t n = word_bytes(q->p);
    q->now = (token){.kind = WORD, .at = q->p, .line = q->line};
    if (*q->p == '\0') {
        q->now.kind = AT_END;
        n = 0;
    } else if (*q->p == '"') {
        q->now.kind = STRING;
        n = string_bytes(q->p);
    } else if (n == 0) {
        q->now.kind = SIGN;
        n = 1;
    }
    for (size_t i = 0; i < n; i++) { /* a string may go over several lines */
        q->line += q->p[i] == '\n';
    }
    q->now.bytes = (int)n;
    q->p += n;
}

static bool is_token_sign(const parser *q, const char *signs)
{
    return q->now.kind == SIGN && strchr(signs, *q->now.at) != NULL;
}

static bool fail_syntax(parser *q, int line, const char *fmt, ...) DT_PRINTF(3, 4);
static bool fail_syntax(parser *q, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    dt_str_addv(q->why, fmt, ap);
    va_end(ap);
    *q->line_p = line;
    return false;
}

static int shown_token_bytes(const token *t)
{
    const int line = (int)strcspn(t->at, "\n");
    const int n = t->bytes < line ? t->bytes : line;
    return n < SHOWN ? n : SHOWN;
}

/* The text at the token, for a message. */
#define FOUND(q)                                                                                                       \
    (q)->now.kind == AT_END ? 15 : shown_token_bytes(&(q)->now),                                                       \
        (q)->now.kind == AT_END ? "the file's end" : (q)->now.at

/* ---- the grammar ------------------------------------------------------------------------------------------------- */

static bool is_name_token(const token *t)
{
    if (t->kind != WORD || (!isalpha((unsigned char)*t->at) && *t->at != '*')) {
        return false;
    }
    for (int i = 1; i < t->bytes; i++) {
        if (!isalnum((unsigned char)t->at[i]) && strchr("-_*", t->at[i]) == NULL) {
            return false;
        }
    }
    return true;
}

static scalar scalar_of(const token *t)
{
    char text[64];
    char *end = NULL;
    if (t->kind == STRING) {
        return IS_STRING;
    }
    if (t->kind != WORD || t->bytes >= (int)sizeof(text)) {
        return IS_NONE;
    }
    memcpy(text, t->at, (size_t)t->bytes);
    text[t->bytes] = '\0';
    if (strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0) {
        return IS_BOOL;
    }
    const bool is_number = isdigit((unsigned char)text[0]) || (text[0] != '\0' && strchr("+-.", text[0]) != NULL);
    if (!is_number) {
        return IS_NONE;
    }
    (void)strtoll(text, &end, strncasecmp(text, "0x", 2) == 0 ? 16 : 10);
    if (*end == 'L') {
        end += 1 + (end[1] == 'L');
    }
    if (*end == '\0' && end != text) {
        return IS_INT;
    }
    (void)strtod(text, &end);
    return *end == '\0' && end != text ? IS_FLOAT : IS_NONE;
}

static bool reject_value(parser *q, const char *after, int after_bytes)
{
    if (q->now.kind == WORD && *q->now.at == '\'') {
        return fail_syntax(q, q->now.line, "strings need double quotes, not single ones: %.*s", FOUND(q));
    }
    if (q->now.kind == WORD && (isdigit((unsigned char)*q->now.at) || strchr("+-.", *q->now.at) != NULL)) {
        return fail_syntax(q, q->now.line, "%.*s is not a number; strings need double quotes: \"%.*s\"", FOUND(q),
                           FOUND(q));
    }
    if (q->now.kind == WORD) {
        return fail_syntax(q, q->now.line, "strings need double quotes: \"%.*s\"", FOUND(q));
    }
    return fail_syntax(q, q->now.line, "a value is missing after %.*s, before %.*s", after_bytes, after, FOUND(q));
}

static bool parse_value(parser *q, const char *after, int after_bytes);
static bool count_element(parser *q, int most, int *n_p, const char *what);

/* The content of brackets: [ ] plain values of one kind, ( ) anything. The opening one is the token. */
static bool parse_values(parser *q)
{
    const token opener = q->now;
    const bool is_array = *opener.at == '[';
    const char *close = is_array ? "]" : ")";
    scalar first = IS_NONE;
    int n_values = 0;
    next_token(q);
    while (!is_token_sign(q, close)) {
        const scalar is = scalar_of(&q->now);
        if (q->now.kind == AT_END) {
            return fail_syntax(q, opener.line, "the %.1s is never closed: %s is missing", opener.at, close);
        }
        if (is_array && is_token_sign(q, "{([")) {
            return fail_syntax(q, q->now.line, "[ ] contains plain values; put groups, lists and arrays into ( )");
        }
        if (is_array && first != IS_NONE && is != IS_NONE && is != first) {
            return fail_syntax(q, q->now.line,
                               "the values of [ ] must have one type, and %.*s has another; ( ) mixes them", FOUND(q));
        }
        first = is;
        if (!count_element(q, is_array ? MAX_SETTINGS : MAX_KEYS, &n_values, "entries in one list") ||
            !parse_value(q, opener.at, 1)) {
            return false;
        }
        if (is_token_sign(q, close)) {
            break;
        }
        if (!is_token_sign(q, ",")) {
            if (q->now.kind == AT_END || is_token_sign(q, ";}])")) {
                return fail_syntax(q, opener.line, "the %.1s is not closed before %.*s: %s is missing", opener.at,
                                   FOUND(q), close);
            }
            return fail_syntax(q, q->now.line, "a comma is missing before %.*s, or %s before it", FOUND(q), close);
        }
        const int line = q->now.line;
        next_token(q);
        q->comma_line = is_token_sign(q, close) && q->comma_line == 0 ? line : q->comma_line;
    }
    next_token(q);
    return true;
}

/* One more of the elements between one pair of brackets, or of the text: n_p of it so far. */
static bool count_element(parser *q, int most, int *n_p, const char *what)
{
    if (*n_p == most) {
        return fail_syntax(q, q->now.line, "more than %d %s; is this a dtrain configuration?", most, what);
    }
    ++*n_p;
    return q->n_settings++ < MAX_SETTINGS ||
           fail_syntax(q, q->now.line, "more than %d settings and values in all; is this a dtrain configuration?",
                       MAX_SETTINGS);
}

/* The token begins a value; afterwards it is the one after it. */
static bool parse_value(parser *q, const char *after, int after_bytes)
{
    if (scalar_of(&q->now) == IS_STRING) {
        while (q->now.kind == STRING) { /* pieces of one text */
            next_token(q);
        }
        return true;
    }
    if (scalar_of(&q->now) != IS_NONE) {
        next_token(q);
        return true;
    }
    if (!is_token_sign(q, "{([")) {
        return reject_value(q, after, after_bytes);
    }
    if (q->depth == MAX_DEPTH) {
        return fail_syntax(q, q->now.line, "groups and lists nest deeper than %d", MAX_DEPTH);
    }
    q->depth++;
    const token opener = q->now;
    bool ok = true;
    if (*opener.at == '{') {
        next_token(q);
        ok = parse_settings(q, &opener);
    } else {
        ok = parse_values(q);
    }
    q->depth--;
    return ok;
}

static bool parse_setting(parser *q)
{
    const token key = q->now;
    if (!is_name_token(&key)) {
        if (key.kind == STRING) {
            return fail_syntax(q, key.line, "expected a key = value, found %.*s; a key has no quotes", FOUND(q));
        }
        if (key.kind == WORD && memchr(key.at, '.', (size_t)key.bytes) != NULL && isalpha((unsigned char)*key.at)) {
            const int section = (int)strcspn(key.at, ".");
            return fail_syntax(q, key.line,
                               "%.*s: in a file a section is a group, %.*s = { %.*s = ...; }; dots are for --set",
                               FOUND(q), section, key.at, key.bytes - section - 1, key.at + section + 1);
        }
        return fail_syntax(
            q, key.line,
            "expected a key = value, found %.*s; put several values of one key into [ ], a key begins with a "
            "letter",
            FOUND(q));
    }
    next_token(q);
    if (!is_token_sign(q, "=:")) {
        return fail_syntax(q, key.line, "= is missing after %.*s", shown_token_bytes(&key), key.at);
    }
    const int bytes = (int)(q->p - key.at);
    next_token(q);
    if (!parse_value(q, key.at, bytes < SHOWN ? bytes : SHOWN)) {
        return false;
    }
    if (is_token_sign(q, ";,")) {
        next_token(q);
    }
    return true;
}

static bool parse_settings(parser *q, const token *opener)
{
    for (int n_keys = 0;;) {
        if (q->now.kind == AT_END) {
            return opener == NULL ||
                   fail_syntax(q, opener->line, "the group that begins here is never closed: } is missing");
        }
        if (is_token_sign(q, "}")) {
            if (opener == NULL) {
                return fail_syntax(q, q->now.line, "this } closes nothing: its { is missing, or it is one too many");
            }
            next_token(q);
            return true;
        }
        if (is_token_sign(q, ";,")) {
            return fail_syntax(q, q->now.line, "there is nothing before this %.*s", FOUND(q));
        }
        if (is_token_sign(q, ")]") && opener != NULL) {
            return fail_syntax(q, opener->line, "the group that begins here is not closed before %.*s: } is missing",
                               FOUND(q));
        }
        if (!count_element(q, MAX_KEYS, &n_keys, "keys in one group") || !parse_setting(q)) {
            return false;
        }
    }
}

bool dt_syntax_find_error(const char *text, int *line_p, dt_str *why)
{
    parser q = {.p = text, .line = 1, .line_p = line_p, .why = why};
    next_token(&q);
    if (parse_settings(&q, NULL) && q.comma_line > 0) {
        fail_syntax(&q, q.comma_line, "no comma is allowed after the last value");
    }
    return why->bytes > 0 || why->failed;
}
