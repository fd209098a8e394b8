/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines and cells of a comma-separated table. See csv.h.
 */
#include <config.h>

#include "traffic/text/csv.h"
#include "traffic/text/source.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

enum { PIECE_BYTES = 1 << 14, ROOM_BYTES = DT_CSV_LINE_BYTES + PIECE_BYTES };
enum { BLOCKS = 3, BLOCK_BYTES = 1 << 17, BLOCK_CELLS = 1 << 15, BLOCK_LINES = 1 << 12 }; /* of those read ahead */

typedef struct line {
    int64_t number;
    char **cell; /* [n] */
    int n;
} line;

/* Lines, cut into cells, and what came after them. */
typedef struct block {
    char *text;  /* [BLOCK_BYTES + ROOM_BYTES + 1] */
    char **cell; /* [BLOCK_CELLS and those of one line more] */
    line *line;  /* [BLOCK_LINES] */
    uint32_t n_cells, n_lines;
    int64_t end; /* number of the last line, empty ones and one that fails among them */
    uint64_t taken;
    dt_status st; /* after the lines: DT_OK: there are more blocks, DT_DONE: none, or error */
    dt_error error;
} block;

struct dt_csv {
    dt_source *source;
    char *path;
    int64_t line;   /* read last */
    int64_t record; /* the line on which the row read last begins: cells in quotes may hold line breaks */
    /* Lines are cut where they were read to: copies of them, looked at as soon as they are made, wait for the store. */
    char *room;                 /* [room_bytes + 1] own, or text of the block that is filled */
    size_t room_bytes, at, end; /* not handed out yet: [at, end) of it */
    bool has_ended;             /* there is no more in the source */
    bool has_nul, has_quote;    /* somewhere, in this line or another */
    char separator;             /* '\0': not known yet */
    bool has_header;            /* was it read? */
    char own[ROOM_BYTES + 1];
    char *cell[DT_CSV_CELLS]; /* with a thread, of the last line before */

    /* with a thread, which alone reads source, line and room */
    bool is_ahead;
    pthread_t thread;
    pthread_mutex_t mutex; /* of n_filled, n_taken, is_over */
    pthread_cond_t filled, taken;
    block block[BLOCKS];        /* a ring */
    uint64_t n_filled, n_taken; /* blocks, from the begin */
    bool is_over;
    uint32_t next;       /* line of the block that is handed out */
    int64_t handed_line; /* its number */
    uint64_t handed_taken;
};

/* bytes NULL: the file of that name. */
static dt_status open_table(const void *bytes, size_t n_bytes, const char *name, dt_csv **out_p)
{
    dt_csv *c = dt_alloc(sizeof(*c));
    if (c == NULL || (c->path = dt_strdup(name)) == NULL) {
        dt_free(c);
        return DT_FAIL(DT_ENOMEM, "no memory to read %s", name);
    }
    c->room = c->own;
    c->room_bytes = ROOM_BYTES;
    const dt_status st =
        bytes != NULL ? dt_source_open_mem(bytes, n_bytes, name, &c->source) : dt_source_open(name, &c->source);
    if (st != DT_OK) {
        dt_csv_close(c);
        return st;
    }
    *out_p = c;
    return DT_OK;
}

dt_status dt_csv_open(const char *path, dt_csv **out_p)
{
    return open_table(NULL, 0, path, out_p);
}

dt_status dt_csv_open_mem(const void *bytes, size_t n_bytes, const char *name, dt_csv **out_p)
{
    return open_table(bytes, n_bytes, name, out_p);
}

/* ---- lines and cells --------------------------------------------------------------------------------------------- */

/* What is not handed out yet, at the begin of a room, which may be the one where it is. */
static void move_to(dt_csv *c, char *room, size_t room_bytes)
{
    memmove(room, c->room + c->at, c->end - c->at);
    c->room = room;
    c->room_bytes = room_bytes;
    c->end -= c->at;
    c->at = 0;
}

/* Another piece after what there is. DT_AGAIN: there is no room, and lines before at are to stay. */
static dt_status read_piece(dt_csv *c, bool stays)
{
    if (c->end == c->room_bytes) {
        if (stays) {
            return DT_AGAIN;
        }
        move_to(c, c->room, c->room_bytes);
    }
    const size_t left = c->room_bytes - c->end;
    const int64_t got = dt_source_read(c->source, c->room + c->end, left < PIECE_BYTES ? left : PIECE_BYTES);
    if (got < 0) {
        return DT_CONTEXT(dt_error_status(), "after line %" PRId64, c->line);
    }
    c->has_nul = c->has_nul || memchr(c->room + c->end, '\0', (size_t)got) != NULL;
    c->has_quote = c->has_quote || memchr(c->room + c->end, '"', (size_t)got) != NULL;
    c->end += (size_t)got;
    c->has_ended = got == 0;
    return DT_OK;
}

/* Of a line too long. */
static const char has_cr[] = "it contains CR (\\r), as lines that end in CR alone do; lines end in LF or CRLF: "
                             "convert it, for example with tr '\\r' '\\n'";

/* Of the first line: what it is encoded in where that is not UTF-8; NULL: it is. */
static const char *foreign_encoding(const char *text, size_t n)
{
    static const char little[4] = "\xff\xfe\0\0", big[4] = "\0\0\xfe\xff"; /* byte order marks */
    if (n >= 4 && (memcmp(text, little, 4) == 0 || memcmp(text, big, 4) == 0)) {
        return "UTF-32";
    }
    if (n >= 2 && (memcmp(text, little, 2) == 0 || memcmp(text, big + 2, 2) == 0)) {
        return "UTF-16";
    }
    if (n >= 4 && text[0] != 0 && text[1] == 0 && text[2] != 0 && text[3] == 0) {
        return "UTF-16LE";
    }
    return n >= 4 && text[0] == 0 && text[1] != 0 && text[2] == 0 && text[3] != 0 ? "UTF-16BE" : NULL;
}

/* Quotes of a row, as cut_cell reads them: is a place within a quoted cell? */
typedef enum quoting { AT_CELL, IN_CELL, IN_QUOTES, AFTER_QUOTE } quoting;

static bool may_separate(const dt_csv *c, char sign)
{
    return c->separator != '\0' ? sign == c->separator : sign == ',' || sign == ';' || sign == '\t' || sign == '|';
}

static quoting scan_quotes(const dt_csv *c, const char *text, size_t n, quoting q)
{
    for (const char *p = text; p < text + n; p++) {
        if (q == IN_QUOTES) {
            q = *p == '"' ? AFTER_QUOTE : IN_QUOTES;
        } else if (q == AFTER_QUOTE && *p == '"') {
            q = IN_QUOTES;
        } else if (may_separate(c, *p)) {
            q = AT_CELL;
        } else if (q == AT_CELL && *p == '"') {
            q = IN_QUOTES;
        } else if (q != AT_CELL || (*p != ' ' && *p != '\t')) {
            q = IN_CELL;
        }
    }
    return q;
}

/* Where the row at c->at ends, counted from there: at a line break outside quotes; *has_stop_p: or at the end of the
 * file. *n_lines_p: line breaks within it. A row that is longer than DT_CSV_LINE_BYTES is not read to its end. */
static dt_status find_row_end(dt_csv *c, bool stays, size_t *n_p, bool *has_stop_p, quoting *q, int64_t *n_lines_p)
{
    size_t from = 0; /* what was looked at */
    *q = AT_CELL;
    *n_lines_p = 0;
    for (;;) {
        const char *text = c->room + c->at, *stop = memchr(text + from, '\n', c->end - c->at - from);
        const size_t to = stop != NULL ? (size_t)(stop - text) : c->end - c->at;
        const bool is_comment = !c->has_header && *text == '#';
        *q = c->has_quote && to > from && !is_comment ? scan_quotes(c, text + from, to - from, *q) : *q;
        *has_stop_p = stop != NULL && *q != IN_QUOTES;
        *n_p = to;
        if (*has_stop_p || to > DT_CSV_LINE_BYTES || (stop == NULL && c->has_ended)) {
            return DT_OK;
        }
        from = to + (stop != NULL);
        *n_lines_p += stop != NULL;
        if (stop == NULL) {
            DT_TRY(read_piece(c, stays));
        }
    }
}

/* One row without its end, where it was read to; stays: so do those before it. DT_AGAIN as above. */
static dt_status read_line(dt_csv *c, bool stays, char **text_p)
{
    size_t n = 0;
    int64_t n_breaks = 0;
    bool has_stop = false;
    quoting q = AT_CELL;
    DT_TRY(find_row_end(c, stays, &n, &has_stop, &q, &n_breaks));
    char *text = c->room + c->at;
    if (n > DT_CSV_LINE_BYTES) {
        return q == IN_QUOTES && n_breaks > 0
                   ? DT_FAIL(DT_EDATA,
                             "%s:%" PRId64 ": the quotes of a cell are not closed within the %d bytes that a row may "
                             "have",
                             c->path, c->line + 1, DT_CSV_LINE_BYTES)
                   : DT_FAIL(DT_EDATA, "%s:%" PRId64 ": a line of more than %d bytes: %s", c->path, c->line + 1,
                             DT_CSV_LINE_BYTES, memchr(text, '\r', n) != NULL ? has_cr : "not a table");
    }
    if (!has_stop && n == 0) {
        return DT_DONE;
    }
    c->record = c->line + 1;
    c->line += 1 + n_breaks;
    c->at += n + has_stop;
    const char *encoding = c->record == 1 ? foreign_encoding(text, n) : NULL;
    if (encoding != NULL) {
        return DT_FAIL(DT_EDATA,
                       "%s is %.6s, and tables are read as UTF-8: convert it, for example with iconv -f %s -t UTF-8",
                       c->path, encoding, encoding);
    }
    if (c->record == 1) {
        const size_t mark = dt_utf8_mark(text, n);
        text += mark;
        n -= mark;
    }
    if (n > 0 && text[n - 1] == '\r') {
        n--;
    }
    if (c->has_nul && memchr(text, '\0', n) != NULL) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": a NUL byte: not a table", c->path, c->record);
    }
    text[n] = '\0'; /* after the last line there is a byte of the room */
    *text_p = text;
    return DT_OK;
}

/* Tabs are blanks where they separate nothing. */
static char *skip_blanks(char *p, char separator)
{
    while ((*p == ' ' || *p == '\t') && *p != separator) {
        p++;
    }
    return p;
}

/* What separates the cells of a header. */
static char find_separator(const char *text)
{
    static const char known[] = {',', ';', '\t', '|'};
    size_t n[sizeof(known)] = {0};
    bool is_quoted = false;
    for (; *text != '\0'; text++) {
        is_quoted ^= *text == '"';
        for (size_t i = 0; i < sizeof(known) && !is_quoted; i++) {
            n[i] += *text == known[i];
        }
    }
    size_t best = 0;
    for (size_t i = 1; i < sizeof(known); i++) {
        best = n[i] > n[best] ? i : best;
    }
    return known[best];
}

/* "# id, frame, x, y": names between separators, and not the words of a comment. */
static bool is_header(const char *text)
{
    enum { LEAST = 4 };
    const char separator[] = {find_separator(text), '\0'};
    int n = 0;
    for (const char *at = text;; n++) {
        const char *begin = at + strspn(at, " ");
        const size_t bytes = strcspn(begin, separator);
        const size_t word = strcspn(begin, " ");
        if (bytes == 0 || (word < bytes && begin[word + strspn(begin + word, " ")] != separator[0])) {
            return false;
        }
        if (begin[bytes] == '\0') {
            return n + 1 >= LEAST;
        }
        at = begin + bytes + 1;
    }
}

/* Does the line name the separator? Such a line is none of the table. */
static bool take_separator(dt_csv *c, const char *text)
{
    static const char begin[] = "sep=";
    const size_t n = sizeof(begin) - 1;
    if (strncasecmp(text, begin, n) != 0 || text[n] == '\0' || strchr(",;\t|", text[n]) == NULL ||
        text[n + 1] != '\0') {
        return false;
    }
    c->separator = text[n];
    return true;
}

/* Cut off one cell that begins at p; *rest_p: after its separator, NULL at the end of the line. */
static char *cut_cell(char *p, char separator, char **rest_p)
{
    char *begin = skip_blanks(p, separator), *to = begin, *from = begin;
    if (*begin == '"') {
        for (from++; *from != '\0' && !(from[0] == '"' && from[1] != '"'); from++) {
            from += *from == '"'; /* "" is one quote */
            *to++ = *from;
        }
        if (*from == '\0') {
            return NULL;
        }
        from = skip_blanks(from + 1, separator);
        if (*from != separator && *from != '\0') {
            return NULL;
        }
    } else {
        while (*from != separator && *from != '\0') { /* cells are short: quicker than strcspn */
            from++;
        }
        for (to = from; to > begin && (to[-1] == ' ' || to[-1] == '\t'); to--) {
        }
    }
    *rest_p = *from == separator ? from + 1 : NULL;
    *to = '\0';
    return begin;
}

/* The next line that is not empty, its cells into cell [DT_CSV_CELLS]; stays, and DT_AGAIN, as read_line. */
static dt_status next_line(dt_csv *c, bool stays, char **cell, int *n_p)
{
    char *p = NULL;
    do {
        DT_TRY(read_line(c, stays, &p));
    } while (*skip_blanks(p, '\0') == '\0' ||
             (!c->has_header && ((*p == '#' && !is_header(p + 1)) || take_separator(c, p))));
    if (!c->has_header) {
        p += *p == '#';
        c->separator = c->separator != '\0' ? c->separator : find_separator(p);
        c->has_header = true;
    }
    int n = 0;
    for (; p != NULL; n++) {
        if (n == DT_CSV_CELLS) {
            bool is_cr = strchr(p, '\r') != NULL;
            for (int i = 0; i < n; i++) {
                is_cr = is_cr || strchr(cell[i], '\r') != NULL;
            }
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": more than %d cells%s%s", c->path, c->record, DT_CSV_CELLS,
                           is_cr ? ": " : "", is_cr ? has_cr : "");
        }
        cell[n] = cut_cell(p, c->separator, &p);
        if (cell[n] == NULL) {
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": the quotes of cell %d are not closed", c->path, c->record, n + 1);
        }
    }
    *n_p = n;
    return DT_OK;
}

/* ---- ahead ------------------------------------------------------------------------------------------------------- */

static void fill_block(dt_csv *c, block *b)
{
    move_to(c, b->text, BLOCK_BYTES + ROOM_BYTES);
    b->n_cells = b->n_lines = 0;
    b->st = DT_OK;
    while (b->st == DT_OK && c->at < BLOCK_BYTES && b->n_cells < BLOCK_CELLS && b->n_lines < BLOCK_LINES) {
        line *l = &b->line[b->n_lines];
        l->cell = b->cell + b->n_cells;
        b->st = next_line(c, true, l->cell, &l->n);
        if (b->st == DT_OK) {
            l->number = c->record;
            b->n_cells += (uint32_t)l->n;
            b->n_lines++;
        }
    }
    b->st = b->st == DT_AGAIN ? DT_OK : b->st; /* the next block has room */
    b->end = c->record;
    b->taken = dt_source_bytes_read(c->source);
    if (b->st != DT_OK && b->st != DT_DONE) {
        dt_error_save(&b->error, b->st);
    }
}

static void *fill_blocks(void *user)
{
    dt_csv *c = user;
    bool is_last = false;
    pthread_mutex_lock(&c->mutex);
    while (!c->is_over && !is_last) {
        if (c->n_filled - c->n_taken == BLOCKS) {
            pthread_cond_wait(&c->taken, &c->mutex);
            continue;
        }
        block *b = &c->block[c->n_filled % BLOCKS];
        pthread_mutex_unlock(&c->mutex);
        fill_block(c, b);
        is_last = b->st != DT_OK;
        pthread_mutex_lock(&c->mutex);
        c->n_filled++;
        pthread_cond_signal(&c->filled);
    }
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

static bool reserve_blocks(dt_csv *c)
{
    bool has_all = true;
    for (int i = 0; i < BLOCKS; i++) {
        block *b = &c->block[i];
        b->text = dt_alloc_n(BLOCK_BYTES + ROOM_BYTES + 1, 1);
        b->cell = dt_alloc_n(BLOCK_CELLS + DT_CSV_CELLS, sizeof(*b->cell));
        b->line = dt_alloc_n(BLOCK_LINES, sizeof(*b->line));
        has_all = has_all && b->text != NULL && b->cell != NULL && b->line != NULL;
    }
    return has_all;
}

/* Of a thread that is over, or was not to be had. */
static void release_ahead(dt_csv *c)
{
    pthread_mutex_destroy(&c->mutex);
    pthread_cond_destroy(&c->filled);
    pthread_cond_destroy(&c->taken);
    for (int i = 0; i < BLOCKS; i++) {
        dt_free(c->block[i].text);
        dt_free(c->block[i].cell);
        dt_free(c->block[i].line);
        c->block[i] = (block){.text = NULL};
    }
}

void dt_csv_read_ahead(dt_csv *c)
{
    c->handed_line = c->record;
    c->handed_taken = dt_source_bytes_read(c->source);
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->filled, NULL);
    pthread_cond_init(&c->taken, NULL);
    c->is_ahead = reserve_blocks(c) && pthread_create(&c->thread, NULL, fill_blocks, c) == 0;
    if (!c->is_ahead) {
        release_ahead(c);
    }
}

static void end_thread(dt_csv *c)
{
    pthread_mutex_lock(&c->mutex);
    c->is_over = true;
    pthread_cond_signal(&c->taken);
    pthread_mutex_unlock(&c->mutex);
    pthread_join(c->thread, NULL);
    release_ahead(c);
}

/* The block whose lines are handed out, filled. */
static block *wait_for_block(dt_csv *c)
{
    pthread_mutex_lock(&c->mutex);
    while (c->n_filled == c->n_taken) {
        pthread_cond_wait(&c->filled, &c->mutex);
    }
    pthread_mutex_unlock(&c->mutex);
    return &c->block[c->n_taken % BLOCKS];
}

static dt_status next_ahead(dt_csv *c, char *const **cells_p, int *n_p)
{
    block *b = c->next == 0 ? wait_for_block(c) : &c->block[c->n_taken % BLOCKS];
    while (c->next == b->n_lines) {
        c->handed_line = b->end;
        c->handed_taken = b->taken;
        if (b->st != DT_OK) { /* and so it stays: this block is not returned */
            return b->st == DT_DONE ? DT_DONE : dt_error_restore(&b->error);
        }
        pthread_mutex_lock(&c->mutex);
        c->n_taken++;
        pthread_cond_signal(&c->taken);
        pthread_mutex_unlock(&c->mutex);
        c->next = 0;
        b = wait_for_block(c);
    }
    const line *l = &b->line[c->next++];
    c->handed_line = l->number;
    *cells_p = l->cell;
    *n_p = l->n;
    return DT_OK;
}

/* ---- handed out -------------------------------------------------------------------------------------------------- */

dt_status dt_csv_next(dt_csv *c, char *const **cells_p, int *n_p)
{
    if (c->is_ahead) {
        return next_ahead(c, cells_p, n_p);
    }
    *cells_p = c->cell;
    return next_line(c, false, c->cell, n_p);
}

int64_t dt_csv_line(const dt_csv *c)
{
    return c->is_ahead ? c->handed_line : c->record;
}

char dt_csv_separator(const dt_csv *c)
{
    return c->separator != '\0' ? c->separator : ',';
}

const char *dt_csv_path(const dt_csv *c)
{
    return c->path;
}

uint64_t dt_csv_bytes_read(const dt_csv *c)
{
    return c->is_ahead ? c->handed_taken : dt_source_bytes_read(c->source);
}

void dt_csv_close(dt_csv *c)
{
    if (c == NULL) {
        return;
    }
    if (c->is_ahead) {
        end_thread(c);
    }
    dt_source_close(c->source);
    dt_free(c->path);
    dt_free(c);
}
