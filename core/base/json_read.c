/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON reader. See json.h.
 *
 * It keeps a window buf[pos..end) of the input with a NUL after it. That NUL stops every scanning loop, so
 * the loops look at one byte after the other without checking for the end; only a loop that stops at it reads more
 * input. Tokens are unescaped in place (the text never grows) and end in a NUL in the window itself: for a string this
 * replaces the closing quote, for a number the byte after it, which is kept in `held` until the next call.
 */
#include <config.h>

#include "base/json.h"
#include "base/err.h"
#include "base/number.h"
#include "base/mem.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum {
    WINDOW_BYTES = 64 * 1024,
    MAX_TOKEN_BYTES = 1024 * 1024,
    MAX_DEPTH = 64 /* bits of dt_json.stack */
};

typedef enum expect {
    EXPECT_VALUE,        /* top, or after ',' in an array */
    EXPECT_FIRST_VALUE,  /* after '[': a value or ']' */
    EXPECT_FIRST_KEY,    /* after '{': a key or '}' */
    EXPECT_COLON,        /* after a key */
    EXPECT_COMMA_OR_END, /* after a value inside an object or array */
    EXPECT_NOTHING       /* after the whole document */
} expect;

struct dt_json {
    dt_json_read *read;
    void *user;
    char *name;
    char *buf; /* cap + 1 bytes */
    size_t cap, pos, end;
    size_t mark;       /* first byte that must survive the next refill */
    int64_t base;      /* bytes of input before buf[0] */
    int64_t line;      /* 1-based */
    int64_t line_base; /* offset of the line's first byte in the input */
    int64_t token_line, token_column;
    uint64_t stack; /* bit d: the container at depth d+1 is an object */
    int depth;
    expect expect;
    bool is_eof, has_held;
    char held; /* the byte that the NUL after a number replaced */
    dt_status failed;
    const char *mem; /* dt_json_open_mem: what is left */
    size_t mem_bytes;
};

/* Byte classes. */
enum {
    PLAIN = 1, /* is an ordinary character inside a string */
    DIGIT = 2,
    SPACE = 4
};

/* clang-format off */
#define P8 PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN
static const uint8_t classes[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, SPACE, SPACE, 0, 0, SPACE, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    PLAIN | SPACE, PLAIN, 0 /* " */, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, P8,
    PLAIN | DIGIT, PLAIN | DIGIT, PLAIN | DIGIT, PLAIN | DIGIT, PLAIN | DIGIT, PLAIN | DIGIT, PLAIN | DIGIT,
    PLAIN | DIGIT, PLAIN | DIGIT, PLAIN | DIGIT, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN,
    P8, P8, P8, PLAIN, PLAIN, PLAIN, PLAIN, 0 /* \ */, PLAIN, PLAIN, PLAIN,
    P8, P8, P8, P8,
};
/* clang-format on */

static bool is_character_class(char c, int mask)
{
    return (classes[(uint8_t)c] & mask) != 0;
}

/* ---- opening and errors ---- */

static int64_t read_memory(void *user, char *buf, size_t bytes)
{
    dt_json *j = user;
    size_t n = bytes < j->mem_bytes ? bytes : j->mem_bytes;
    if (n > 0) {
        memcpy(buf, j->mem, n);
        j->mem += n;
        j->mem_bytes -= n;
    }
    return (int64_t)n;
}

static dt_status open_window(size_t cap, dt_json_read *read, void *user, const char *name, dt_json **out_p)
{
    dt_json *j = dt_alloc(sizeof(*j));
    if (j == NULL) {
        goto err_memory;
    }
    j->buf = dt_alloc(cap + 1);
    j->name = dt_strdup(name);
    if (j->buf == NULL || j->name == NULL) {
        goto err_memory;
    }
    j->cap = cap;
    j->read = read;
    j->user = user;
    j->line = j->token_line = j->token_column = 1;
    *out_p = j;
    return DT_OK;
err_memory:
    dt_json_close(j);
    return DT_FAIL(DT_ENOMEM, "%s: out of memory for a reader", name);
}

dt_status dt_json_open(dt_json_read *read, void *user, const char *name, dt_json **out_p)
{
    return open_window(WINDOW_BYTES, read, user, name, out_p);
}

dt_status dt_json_open_mem(const char *text, size_t bytes, const char *name, dt_json **out_p)
{
    dt_json *j = NULL;
    /* records of a line each are opened by the thousand: a window of their size, and the byte that detects the end */
    DT_TRY(open_window(bytes < WINDOW_BYTES ? bytes + 1 : WINDOW_BYTES, read_memory, NULL, name, &j));
    j->user = j;
    j->mem = text;
    j->mem_bytes = bytes;
    *out_p = j;
    return DT_OK;
}

void dt_json_close(dt_json *j)
{
    if (j == NULL) {
        return;
    }
    dt_free(j->buf);
    dt_free(j->name);
    dt_free(j);
}

int dt_json_depth(const dt_json *j)
{
    return j->depth;
}

static int64_t column_of_position(const dt_json *j, size_t pos)
{
    return j->base + (int64_t)pos - j->line_base + 1;
}

/* The syntax is broken at buf[pos]. */
static dt_status fail_syntax_at(dt_json *j, size_t pos, const char *what)
{
    j->failed = DT_EDATA;
    return DT_FAIL(DT_EDATA, "%s:%lld:%lld: %s", j->name, (long long)j->line, (long long)column_of_position(j, pos),
                   what);
}

/* The byte at buf[pos] does not fit; it may be the end of the input. */
static dt_status fail_unexpected_byte(dt_json *j, size_t pos, const char *wanted)
{
    char what[128];
    uint8_t c = (uint8_t)j->buf[pos];
    if (pos == j->end) {
        snprintf(what, sizeof(what), "the text ends here, expected %s", wanted);
    } else if (c > ' ' && c < 0x7f) {
        snprintf(what, sizeof(what), "found '%c', expected %s", c, wanted);
    } else {
        snprintf(what, sizeof(what), "found byte 0x%02x, expected %s", c, wanted);
    }
    return fail_syntax_at(j, pos, what);
}

dt_status dt_json_fail(dt_json *j, const char *fmt, ...)
{
    char what[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return DT_FAIL(DT_EDATA, "%s:%lld:%lld: %s", j->name, (long long)j->token_line, (long long)j->token_column, what);
}

/* ---- the window ---- */

/* More input after end. What precedes mark is dropped, so mark becomes 0 and pos moves along.
 * *more_p: false at the end of the input. */
static dt_status refill_window(dt_json *j, bool *more_p)
{
    *more_p = false;
    if (j->is_eof) {
        return DT_OK;
    }
    if (j->mark > 0) {
        memmove(j->buf, j->buf + j->mark, j->end - j->mark);
        j->base += (int64_t)j->mark;
        j->pos -= j->mark;
        j->end -= j->mark;
        j->mark = 0;
    }
    if (j->end == j->cap) { /* one token fills the window */
        if (j->cap >= MAX_TOKEN_BYTES) {
            return fail_syntax_at(j, 0, "a key, string or number is longer than 1 MiB");
        }
        char *grown = dt_realloc(j->buf, j->cap * 2 + 1);
        if (grown == NULL) {
            j->failed = DT_ENOMEM;
            return DT_FAIL(DT_ENOMEM, "%s: out of memory for a token of %zu bytes", j->name, j->cap);
        }
        j->buf = grown;
        j->cap *= 2;
    }
    int64_t n = j->read(j->user, j->buf + j->end, j->cap - j->end);
    if (n < 0) {
        j->failed = dt_error_status() < 0 ? dt_error_status() : DT_EIO;
        return DT_CONTEXT(j->failed, "%s", j->name);
    }
    j->is_eof = n == 0;
    j->end += (size_t)n;
    j->buf[j->end] = '\0';
    *more_p = n > 0;
    return DT_OK;
}

/* At least n bytes from pos on, unless the input ends before. */
static dt_status require_bytes(dt_json *j, size_t n)
{
    bool more = true;
    while (j->end - j->pos < n && more) {
        DT_TRY(refill_window(j, &more));
    }
    return DT_OK;
}

static dt_status skip_space(dt_json *j)
{
    for (;;) {
        const char *p = j->buf + j->pos;
        while (is_character_class(*p, SPACE)) {
            if (*p == '\n') {
                j->line++;
                j->line_base = j->base + (p - j->buf) + 1;
            }
            p++;
        }
        j->pos = j->mark = (size_t)(p - j->buf);
        if (j->pos < j->end) {
            return DT_OK;
        }
        bool more = false;
        DT_TRY(refill_window(j, &more));
        if (!more) {
            return DT_OK;
        }
    }
}

/* ---- strings ---- */

static int parse_hex4(const char *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        int digit = p[i] >= '0' && p[i] <= '9'   ? p[i] - '0'
                    : p[i] >= 'a' && p[i] <= 'f' ? p[i] - 'a' + 10
                    : p[i] >= 'A' && p[i] <= 'F' ? p[i] - 'A' + 10
                                                 : -1;
        if (digit < 0) {
            return -1;
        }
        v = v * 16 + digit;
    }
    return v;
}

static size_t encode_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

/* An escape at buf[pos], which is a backslash; its character goes to buf[*write_p]. */
static dt_status read_escape(dt_json *j, size_t *write_p)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    size_t write_back = *write_p - j->mark; /* survives a refill, as mark becomes 0 */
    DT_TRY(require_bytes(j, 12));           /* the longest: a surrogate pair */
    size_t write = j->mark + write_back;
    const char *p = j->buf + j->pos;
    const char *letter = p[1] != '\0' ? strchr(letters, p[1]) : NULL;
    if (letter != NULL) {
        j->buf[write] = meanings[letter - letters];
        *write_p = write + 1;
        j->pos += 2;
        return DT_OK;
    }
    if (p[1] != 'u') {
        return j->pos + 1 == j->end ? fail_unexpected_byte(j, j->pos + 1, "an escape")
                                    : fail_syntax_at(j, j->pos, "unknown escape");
    }
    int c = parse_hex4(p + 2);
    if (c < 0) {
        return fail_syntax_at(j, j->pos, "\\u needs four hexadecimal digits");
    }
    size_t used = 6;
    if (c == 0) {
        return fail_syntax_at(j, j->pos, "\\u0000 is not accepted in a string");
    }
    if (c >= 0xD800 && c <= 0xDFFF) {
        int second = c < 0xDC00 && p[6] == '\\' && p[7] == 'u' ? parse_hex4(p + 8) : -1;
        if (second < 0xDC00 || second > 0xDFFF) {
            return fail_syntax_at(j, j->pos, "half of a surrogate pair");
        }
        c = 0x10000 + ((c - 0xD800) << 10) + (second - 0xDC00);
        used = 12;
    }
    *write_p = write + encode_utf8(j->buf + write, (uint32_t)c);
    j->pos += used;
    return DT_OK;
}

/* The string whose opening quote is buf[pos]. */
static dt_status read_string(dt_json *j, dt_json_token *t)
{
    j->mark = ++j->pos;
    size_t write = j->pos; /* equals pos until the first escape */
    for (;;) {
        /* plain bytes: nothing to do, or to move down after what escapes left */
        const char *p = j->buf + j->pos;
        if (write == j->pos) {
            while (is_character_class(*p, PLAIN)) {
                p++;
            }
            j->pos = write = (size_t)(p - j->buf);
        } else {
            char *out = j->buf + write;
            while (is_character_class(*p, PLAIN)) {
                *out++ = *p++;
            }
            j->pos = (size_t)(p - j->buf);
            write = (size_t)(out - j->buf);
        }

        uint8_t c = (uint8_t)*p;
        if (c == '"') {
            break;
        }
        if (c == '\\') {
            DT_TRY(read_escape(j, &write));
        } else if (j->pos == j->end) {
            bool more = false;
            size_t write_back = write - j->mark;
            DT_TRY(refill_window(j, &more));
            write = j->mark + write_back;
            if (!more) {
                return fail_unexpected_byte(j, j->pos, "the end of a string");
            }
        } else if (c < 0x20) {
            return fail_syntax_at(j, j->pos, "a control character must be escaped in a string");
        } else {
            size_t write_back = write - j->mark;
            DT_TRY(require_bytes(j, 4));
            write = j->mark + write_back;
            size_t n = dt_utf8_bytes(j->buf + j->pos);
            if (n == 0) {
                return fail_syntax_at(j, j->pos, "not valid UTF-8");
            }
            memmove(j->buf + write, j->buf + j->pos, n);
            write += n;
            j->pos += n;
        }
    }
    j->buf[write] = '\0';
    t->text = j->buf + j->mark;
    t->bytes = write - j->mark;
    j->pos++;
    return DT_OK;
}

/* ---- numbers ---- */

/* The number that starts at buf[pos]. */
static dt_status read_number(dt_json *j, dt_json_token *t)
{
    j->mark = j->pos;
    dt_number n = dt_number_scan(j->buf + j->pos);
    for (bool more = true; more && n.end == j->buf + j->end;) { /* it may continue past the window */
        DT_TRY(refill_window(j, &more));
        n = dt_number_scan(j->buf + j->pos);
    }
    if (n.wanted != NULL) {
        return fail_unexpected_byte(j, (size_t)(n.end - j->buf), n.wanted);
    }

    /* end the text in place */
    j->pos = (size_t)(n.end - j->buf);
    j->held = j->buf[j->pos];
    j->has_held = true;
    j->buf[j->pos] = '\0';
    t->text = j->buf + j->mark;
    t->bytes = j->pos - j->mark;

    if (!dt_number_f64(&n, t->text, &t->number)) {
        return fail_syntax_at(j, j->mark, "a number beyond the range of double");
    }
    t->is_integer = dt_number_i64(&n, &t->integer);
    return DT_OK;
}

/* ---- tokens ---- */

static void finish_value(dt_json *j)
{
    j->expect = j->depth > 0 ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
}

static bool is_in_object(const dt_json *j)
{
    return (j->stack >> (j->depth - 1) & 1) != 0;
}

static dt_status open_container(dt_json *j, bool is_object, dt_json_token *t)
{
    if (j->depth == MAX_DEPTH) {
        return fail_syntax_at(j, j->pos, "objects and arrays nested more than 64 deep");
    }
    uint64_t bit = (uint64_t)1 << j->depth;
    j->stack = is_object ? j->stack | bit : j->stack & ~bit;
    j->depth++;
    j->pos++;
    j->expect = is_object ? EXPECT_FIRST_KEY : EXPECT_FIRST_VALUE;
    t->kind = is_object ? DT_JSON_OBJECT : DT_JSON_ARRAY;
    return DT_OK;
}

static dt_status close_container(dt_json *j, dt_json_token *t)
{
    t->kind = is_in_object(j) ? DT_JSON_OBJECT_END : DT_JSON_ARRAY_END;
    j->depth--;
    j->pos++;
    finish_value(j);
    return DT_OK;
}

static dt_status read_literal(dt_json *j, const char *word, dt_json_kind kind, dt_json_token *t)
{
    size_t n = strlen(word);
    DT_TRY(require_bytes(j, n));
    if (strncmp(j->buf + j->pos, word, n) != 0) {
        return fail_syntax_at(j, j->pos, "unknown word, expected a value (strings need quotes)");
    }
    t->kind = kind;
    j->pos += n;
    finish_value(j);
    return DT_OK;
}

static dt_status read_key(dt_json *j, const char *wanted, dt_json_token *t)
{
    if (j->buf[j->pos] != '"') {
        return fail_unexpected_byte(j, j->pos, wanted);
    }
    t->kind = DT_JSON_KEY;
    j->expect = EXPECT_COLON;
    return read_string(j, t);
}

static void set_token_position(dt_json *j, dt_json_token *t)
{
    t->line = j->token_line = j->line;
    t->column = j->token_column = column_of_position(j, j->pos);
}

static dt_status read_value(dt_json *j, dt_json_token *t)
{
    dt_status st = DT_OK;
    switch (j->buf[j->pos]) {
    case '"':
        t->kind = DT_JSON_STRING;
        st = read_string(j, t);
        finish_value(j);
        return st;
    case '{':
        return open_container(j, true, t);
    case '[':
        return open_container(j, false, t);
    case 't':
        return read_literal(j, "true", DT_JSON_TRUE, t);
    case 'f':
        return read_literal(j, "false", DT_JSON_FALSE, t);
    case 'n':
        return read_literal(j, "null", DT_JSON_NULL, t);
    default:
        if (j->buf[j->pos] != '-' && !is_character_class(j->buf[j->pos], DIGIT)) {
            return fail_unexpected_byte(j, j->pos, "a value");
        }
        t->kind = DT_JSON_NUMBER;
        st = read_number(j, t);
        finish_value(j);
        return st;
    }
}

static dt_status skip_byte_order_mark(dt_json *j)
{
    DT_TRY(require_bytes(j, 3));
    j->pos = j->mark = dt_utf8_mark(j->buf, j->end);
    return DT_OK;
}

dt_status dt_json_next(dt_json *j, dt_json_token *out_p)
{
    if (j->failed != DT_OK) {
        return DT_FAIL(j->failed, "%s: reading continued after an error", j->name);
    }
    if (j->has_held) {
        j->buf[j->pos] = j->held;
        j->has_held = false;
    }
    dt_json_token t = {.kind = DT_JSON_END, .text = ""};
    if (j->base == 0 && j->end == 0 && !j->is_eof) {
        DT_TRY(skip_byte_order_mark(j));
    }
    DT_TRY(skip_space(j));
    if (j->expect == EXPECT_COLON) {
        if (j->buf[j->pos] != ':') {
            return fail_unexpected_byte(j, j->pos, "':' after a key");
        }
        j->pos++;
        j->expect = EXPECT_VALUE;
        DT_TRY(skip_space(j));
    } else if (j->expect == EXPECT_COMMA_OR_END && j->buf[j->pos] == ',') {
        j->pos++;
        DT_TRY(skip_space(j));
        set_token_position(j, &t);
        DT_TRY(is_in_object(j) ? read_key(j, "a key in quotes", &t) : read_value(j, &t));
        *out_p = t;
        return DT_OK;
    }
    set_token_position(j, &t);
    const char c = j->buf[j->pos];
    dt_status st = DT_OK;
    switch (j->expect) {
    case EXPECT_NOTHING:
        st = j->pos == j->end ? DT_OK : fail_unexpected_byte(j, j->pos, "nothing after the document");
        break;
    case EXPECT_FIRST_KEY:
        st = c == '}' ? close_container(j, &t) : read_key(j, "a key in quotes or '}'", &t);
        break;
    case EXPECT_FIRST_VALUE:
        st = c == ']' ? close_container(j, &t) : read_value(j, &t);
        break;
    case EXPECT_COMMA_OR_END:
        if (c != (is_in_object(j) ? '}' : ']')) {
            st = fail_unexpected_byte(j, j->pos, is_in_object(j) ? "',' or '}'" : "',' or ']'");
        } else {
            st = close_container(j, &t);
        }
        break;
    default:
        st = read_value(j, &t);
        break;
    }
    DT_TRY(st);
    *out_p = t;
    return DT_OK;
}

dt_status dt_json_skip(dt_json *j)
{
    dt_json_token t;
    const int depth = j->depth;
    DT_TRY(dt_json_next(j, &t));
    if (j->depth < depth || t.kind == DT_JSON_END || t.kind == DT_JSON_KEY) {
        return DT_FAIL(DT_EINVAL, "%s: there is no value to skip", j->name);
    }
    while (j->depth > depth) {
        DT_TRY(dt_json_next(j, &t));
    }
    return DT_OK;
}
