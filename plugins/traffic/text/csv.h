/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows and cells of a table (RFC 4180), streamed. LF or CRLF; quoted cells may hold line breaks. A byte order mark is
 * skipped, empty lines too, and lines before the header that begin with '#', unless such a line is the header itself
 * (four names or more). Cells are separated by what the header line has most of outside quotes: comma, semicolon, tab
 * or '|'; a first line "sep=X", as spreadsheets write it, names the separator. Threads: one object, one thread; one of
 * its own may read ahead.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_CSV_H
#define DTRAIN_PLUGINS_TRAFFIC_CSV_H

#include "dtrain/status.h"

enum { DT_CSV_LINE_BYTES = 1 << 16, DT_CSV_CELLS = 256 };

typedef struct dt_csv dt_csv;

dt_status dt_csv_open(const char *path, dt_csv **out_p) DT_NODISCARD;
/* The same of a file in memory, and stays there until close; name: what messages call it. */
dt_status dt_csv_open_mem(const void *bytes, size_t n_bytes, const char *name, dt_csv **out_p) DT_NODISCARD;
/* From here on a thread of its own unpacks, reads and cuts the lines that follow, some hundred kilobytes ahead; what is
 * handed out, in which order, and after which line an error comes, stays the same. The cells handed out last stay valid
 * until the next call. Once at most; where a thread or memory cannot be had nothing changes. */
void dt_csv_read_ahead(dt_csv *c);
/* The next line's cells, blanks around them removed; valid until the next call. DT_DONE at the end. DT_EDATA (a line
 * too long, too many cells, a NUL, an open quote,
 * UTF-16), DT_EIO. */
dt_status dt_csv_next(dt_csv *c, char *const **cells_p, int *n_p) DT_NODISCARD;
/* ',', ';', '\t' or '|'; ',' before the header was read. */
char dt_csv_separator(const dt_csv *c);
int64_t dt_csv_line(const dt_csv *c); /* of the row handed out last: that on which it begins, from 1 */
const char *dt_csv_path(const dt_csv *c);
uint64_t dt_csv_bytes_read(const dt_csv *c); /* as dt_source_bytes_read; with a thread, of all lines that it had cut */
void dt_csv_close(dt_csv *c);

#endif
