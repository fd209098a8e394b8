/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines and cells of a comma-separated table. See csv.h.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "data/csv.h"
#include "data/source.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

enum { PIECE_BYTES = 1 << 14 };

struct dt_csv {
    dt_source *source;
    char *path;
    int64_t line;
    char piece[PIECE_BYTES]; /* read from the source, which holds more, and not handed out yet */
    size_t at, end;
    char text[DT_CSV_LINE_BYTES + 1]; /* the line, cut into cells */
    char *cell[DT_CSV_CELLS];
};

/* bytes NULL: the file of that name. */
static dt_status open_table(const void *bytes, size_t n_bytes, const char *name, dt_csv **out_p)
{
    dt_csv *c = dt_alloc(sizeof(*c));
    if (c == NULL || (c->path = dt_strdup(name)) == NULL) {
        dt_free(c);
        return DT_FAIL(DT_ENOMEM, "no memory to read %s", name);
    }
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

/* One line without its end into c->text. */
static dt_status read_line(dt_csv *c, size_t *bytes_p)
{
    size_t n = 0;
    bool is_any = false;
    for (;;) {
        if (c->at == c->end) {
            int64_t got = dt_source_read(c->source, c->piece, sizeof(c->piece));
            if (got < 0) {
                return DT_CONTEXT(dt_error_status(), "after line %" PRId64, c->line);
            }
            c->at = 0;
            c->end = (size_t)got;
            if (got == 0) {
                break;
            }
        }
        is_any = true;
        const char *from = c->piece + c->at;
        const char *stop = memchr(from, '\n', c->end - c->at);
        size_t bytes = stop == NULL ? c->end - c->at : (size_t)(stop - from);
        if (n + bytes > DT_CSV_LINE_BYTES) {
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": a line of more than %d bytes: not a table", c->path, c->line + 1,
                           DT_CSV_LINE_BYTES);
        }
        memcpy(c->text + n, from, bytes);
        n += bytes;
        c->at += bytes + (stop != NULL);
        if (stop != NULL) {
            break;
        }
    }
    if (!is_any) {
        return DT_DONE;
    }
    c->line++;
    if (n > 0 && c->text[n - 1] == '\r') {
        n--;
    }
    c->text[n] = '\0';
    *bytes_p = n;
    return memchr(c->text, '\0', n) == NULL
               ? DT_OK
               : DT_FAIL(DT_EDATA, "%s:%" PRId64 ": a NUL byte: not a table", c->path, c->line);
}

static char *skip_blanks(char *p)
{
    while (*p == ' ' || *p == '\t') {
        p++;
    }
    return p;
}

/* Cut off one cell that begins at p; *rest_p: after its comma, NULL at the end of the line. */
static char *cut_cell(char *p, char **rest_p)
{
    char *begin = skip_blanks(p), *to = begin, *from = begin;
    if (*begin == '"') {
        for (from++; *from != '\0' && !(from[0] == '"' && from[1] != '"'); from++) {
            from += *from == '"'; /* "" is one quote */
            *to++ = *from;
        }
        if (*from == '\0') {
            return NULL;
        }
        from = skip_blanks(from + 1);
        if (*from != ',' && *from != '\0') {
            return NULL;
        }
    } else {
        while (*from != ',' && *from != '\0') { /* cells are short: quicker than strcspn */
            from++;
        }
        for (to = from; to > begin && (to[-1] == ' ' || to[-1] == '\t'); to--) {
        }
    }
    *rest_p = *from == ',' ? from + 1 : NULL;
    *to = '\0';
    return begin;
}

dt_status dt_csv_next(dt_csv *c, char *const **cells_p, int *n_p)
{
    size_t bytes = 0;
    do {
        dt_status st = read_line(c, &bytes);
        if (st != DT_OK) {
            return st;
        }
    } while (*skip_blanks(c->text) == '\0');
    char *p = c->text;
    if (c->line == 1 && strncmp(p, "\xef\xbb\xbf", 3) == 0) {
        p += 3;
    }
    int n = 0;
    for (; p != NULL; n++) {
        if (n == DT_CSV_CELLS) {
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": more than %d cells", c->path, c->line, DT_CSV_CELLS);
        }
        c->cell[n] = cut_cell(p, &p);
        if (c->cell[n] == NULL) {
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": the quotes of cell %d are not closed", c->path, c->line, n + 1);
        }
    }
    *cells_p = c->cell;
    *n_p = n;
    return DT_OK;
}

int64_t dt_csv_line(const dt_csv *c)
{
    return c->line;
}

const char *dt_csv_path(const dt_csv *c)
{
    return c->path;
}

uint64_t dt_csv_taken(const dt_csv *c)
{
    return dt_source_taken(c->source);
}

void dt_csv_close(dt_csv *c)
{
    if (c == NULL) {
        return;
    }
    dt_source_close(c->source);
    dt_free(c->path);
    dt_free(c);
}
