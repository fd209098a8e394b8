/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads an XML file, plain or compressed by gzip, element by element, with messages that name file, line and element.
 * And what readers need on the way: names that become numbers, lists that grow. Parsing itself is expat's. Threads: one
 * per reader.
 */
#ifndef DTRAIN_ENV_TRAFFIC_XML_H
#define DTRAIN_ENV_TRAFFIC_XML_H

#include "dtrain/helpers.h"

/* ---- lists and names --------------------------------------------------------------------------------------------- */

enum { LIST_MOST = 1 << 28 };

typedef struct list {
    void *items; /* n of them, the caller knows their type */
    int32_t n, cap;
} list;

/* A new zeroed item of so many bytes at the end; the ones before it may move. A list counts to LIST_MOST. Errors:
 * DT_ENOMEM. */
dt_status list_add(const dt_host *h, list *l, size_t bytes, void *item_p);
void list_fini(const dt_host *h, list *l);

/* Names, numbered 0, 1, ... in the order in which they came. */
typedef struct names {
    list text, start, bucket;
    uint64_t secret[2]; /* of the hash */
} names;

/* The number of a name, a new one if it was not there. Errors: DT_ENOMEM. */
dt_status names_add(const dt_host *h, names *n, const char *name, int32_t *number_p);
int32_t names_find(const names *n, const char *name); /* -1: not there */
const char *names_get(const names *n, int32_t number);
void names_fini(const dt_host *h, names *n);

/* ---- files ------------------------------------------------------------------------------------------------------- */

typedef struct xml xml;
struct xml {
    const dt_host *h;
    const char *path;
    int32_t line, depth; /* of the element; the root has depth 0 */
    const char *element;
    const char *const *attributes;
    void *user;
};

/* Called for every element when it begins, and when it ends. */
typedef struct xml_calls {
    dt_status (*begin)(xml *x);
    dt_status (*end)(xml *x); /* without attributes */
} xml_calls;

/* A document that is in memory already, not compressed; path: what messages call it. bytes NULL: the file of that path,
 * of any size, made of elements and comments of at most 4 MB each. */
typedef struct xml_text {
    const char *path;
    const void *bytes;
    size_t n_bytes;
} xml_text;

/* An <include href="FILE"> below the root is read as if the elements of FILE stood there: begin sees its root at depth
 * 0, and path is that of FILE.
 * Errors: DT_ENOTFOUND (no such file), DT_EIO, DT_EDATA (not XML, a DOCTYPE, unpacks to more than dt_is_bomb allows),
 * DT_ENOMEM, those of the calls. */
dt_status xml_read(const dt_host *h, const xml_text *text, const xml_calls *calls, void *user);

int xml_is(const xml *x, const char *element);
const char *xml_get(const xml *x, const char *attribute); /* NULL: not there */
/* The same, but it must be there. Errors: DT_EDATA. */
dt_status xml_need(const xml *x, const char *attribute, const char **text_p);
/* The number that a text begins with, and what follows it; 0: it begins with none. The one reader of numbers here; the
 * same texts are numbers as in imports (tests/numbers.h). */
int xml_parse_number(const char *text, const char **rest_p, double *value_p);
/* Is it there and true, in any way in which SUMO reads that? */
int xml_flag(const xml *x, const char *attribute);
/* The same of an attribute; `other` where it is not there. Errors: DT_EDATA. */
dt_status xml_number(const xml *x, const char *attribute, double other, double low, double high, double *value_p);
dt_status xml_count(const xml *x, const char *attribute, int32_t other, int32_t low, int32_t high, int32_t *value_p);
/* The same of a time in seconds, in any way in which SUMO writes one: a number, H:MM:SS or D:HH:MM:SS (parts may have
 * decimals). Errors: DT_EDATA. */
#define XML_TIME_MOST 9e15 /* s, what SUMO counts to in milliseconds */
dt_status xml_time_of(const xml *x, const char *what, const char *text, double low, double high, double *value_p);
dt_status xml_time(const xml *x, const char *attribute, double other, double low, double high, double *value_p);
/* "file:line: <element> ...": for DT_FAIL_H and logs alike. */
#define XML_AT      "%s:%d: <%s> "
#define XML_HERE(x) (x)->path, (int)(x)->line, (x)->element

/* The next word of a list of words, separated by spaces: its length, 0 at the end; *at moves past it. */
size_t xml_word(const char **at, const char **word_p);

#endif
