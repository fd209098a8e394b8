/* SPDX-License-Identifier: Apache-2.0 */
#include "xml.h"
#include "dtrain/checked.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <expat.h>
#include <zlib.h>

/* ---- lists and names --------------------------------------------------------------------------------------------- */

static const char blanks[] = " \t\r\n"; /* of XML */
enum { LIST_LEAST = 16, READ_BYTES = 65536 };
enum { INCLUDES_NESTED = 8, INCLUDES_MOST = 100 };
enum { ELEMENT_MOST = 4 << 20 }; /* bytes; expat begins an element again with every piece of it that comes */

dt_status list_add(const dt_host *h, list *l, size_t bytes, void *item_p)
{
    if (l->n == l->cap) {
        if (l->n == LIST_MOST) {
            return DT_FAIL_H(h, DT_ENOMEM, "a list of more than %d", LIST_MOST);
        }
        const int32_t cap = l->cap < LIST_LEAST ? LIST_LEAST : 2 * l->cap; /* a power of two, at most LIST_MOST */
        void *more = h->alloc(h, (uint64_t)cap * bytes);
        if (more == NULL) {
            return DT_FAIL_H(h, DT_ENOMEM, "no memory for a list of %d", (int)cap);
        }
        if (l->n > 0) {
            memcpy(more, l->items, (size_t)l->n * bytes);
        }
        h->release(h, l->items);
        l->items = more;
        l->cap = cap;
    }
    const void *item = (char *)l->items + (size_t)l->n++ * bytes;
    memcpy(item_p, &item, sizeof(item)); /* a pointer of any type */
    return DT_OK;
}

void list_fini(const dt_host *h, list *l)
{
    h->release(h, l->items);
    *l = (list){0};
}

/* As FNV-1a, but from numbers unknown to the author of a file: all names of it in one bucket would take for ever.
 * Nothing that is seen depends on them. */
static uint32_t hash_name(const names *n, const char *s)
{
    uint64_t x = n->secret[0];
    for (; *s != '\0'; s++) {
        x = (x ^ (uint8_t)*s) * (n->secret[1] | 1);
        x ^= x >> 32;
    }
    return (uint32_t)(x ^ x >> 29);
}

const char *names_get(const names *n, int32_t number)
{
    return (const char *)n->text.items + ((const int32_t *)n->start.items)[number];
}

/* The bucket of a name: one that holds number + 1, or an empty one. */
static int32_t *find_bucket(const names *n, const char *name)
{
    int32_t *bucket = n->bucket.items;
    const uint32_t last = (uint32_t)n->bucket.cap - 1;
    uint32_t k = hash_name(n, name) & last;
    while (bucket[k] != 0 && strcmp(names_get(n, bucket[k] - 1), name) != 0) {
        k = (k + 1) & last;
    }
    return &bucket[k];
}

int32_t names_find(const names *n, const char *name)
{
    return n->bucket.cap == 0 ? -1 : *find_bucket(n, name) - 1;
}

/* At least half of the buckets are empty. */
static dt_status make_buckets(const dt_host *h, names *n)
{
    if (2 * (n->start.n + 1) <= n->bucket.cap) {
        return DT_OK;
    }
    const int32_t cap = n->bucket.cap < LIST_LEAST ? LIST_LEAST : 2 * n->bucket.cap;
    int32_t *bucket = h->alloc(h, (uint64_t)cap * sizeof(*bucket));
    if (bucket == NULL) {
        return DT_FAIL_H(h, DT_ENOMEM, "no memory for %d names", (int)cap);
    }
    const void *random = (const void *)(uintptr_t)getauxval(AT_RANDOM); /* 16 bytes of this process */
    if (random != NULL) {
        memcpy(n->secret, random, sizeof(n->secret));
    }
    h->release(h, n->bucket.items);
    n->bucket = (list){.items = bucket, .cap = cap};
    for (int32_t k = 0; k < n->start.n; k++) {
        *find_bucket(n, names_get(n, k)) = k + 1;
    }
    return DT_OK;
}

dt_status names_add(const dt_host *h, names *n, const char *name, int32_t *number_p)
{
    DT_TRY_H(make_buckets(h, n));
    int32_t *bucket = find_bucket(n, name);
    if (*bucket == 0) {
        const int32_t at = n->text.n;
        for (const char *s = name;; s++) {
            char *c = NULL;
            DT_TRY_H(list_add(h, &n->text, 1, &c));
            *c = *s;
            if (*s == '\0') {
                break;
            }
        }
        int32_t *start;
        DT_TRY_H(list_add(h, &n->start, sizeof(*start), &start));
        *start = at;
        *bucket = n->start.n;
    }
    *number_p = *bucket - 1;
    return DT_OK;
}

void names_fini(const dt_host *h, names *n)
{
    list_fini(h, &n->text);
    list_fini(h, &n->start);
    list_fini(h, &n->bucket);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* Of a document and all that it includes. */
typedef struct includes {
    int n, nested;
} includes;

typedef struct reader {
    xml x; /* first: what calls see */
    includes *in;
    int is_including; /* the element <include> is open */
    XML_Parser parser;
    const xml_calls *calls;
    dt_status status;
    gzFile file;       /* NULL: it is in memory */
    uint64_t unpacked; /* of file */
    const char *at;    /* what is left of the memory */
    size_t left;
} reader;

static void stop_with_status(reader *r, dt_status st)
{
    if (st != DT_OK) {
        r->status = st;
        XML_StopParser(r->parser, XML_FALSE);
    }
}

static dt_status read_document(const dt_host *h, const xml_text *text, const xml_calls *calls, void *user,
                               includes *in);

/* The document of <include href>, whose path begins where this one is, as if its elements stood here. */
static dt_status read_include(const reader *r)
{
    const dt_host *h = r->x.h;
    const char *href, *slash = strrchr(r->x.path, '/');
    DT_TRY_H(xml_need(&r->x, "href", &href));
    if (r->file == NULL) {
        return DT_FAIL_H(h, DT_EDATA, XML_AT "is read only in files", XML_HERE(&r->x));
    }
    if (r->in->nested == INCLUDES_NESTED || r->in->n == INCLUDES_MOST) {
        return DT_FAIL_H(h, DT_EDATA, XML_AT "is nested more than %d deep, or one of more than %d", XML_HERE(&r->x),
                         INCLUDES_NESTED, INCLUDES_MOST);
    }
    const size_t folder = href[0] == '/' || slash == NULL ? 0 : (size_t)(slash + 1 - r->x.path);
    const size_t bytes = folder + strlen(href) + 1; /* both lie in memory */
    char *path = h->alloc(h, bytes);
    if (path == NULL) {
        return DT_FAIL_H(h, DT_ENOMEM, "no memory for a path of %zu bytes", bytes);
    }
    snprintf(path, bytes, "%.*s%s", (int)folder, r->x.path, href);
    r->in->n++;
    r->in->nested++;
    const dt_status st = read_document(h, &(xml_text){.path = path}, r->calls, r->x.user, r->in);
    r->in->nested--;
    h->release(h, path);
    return st;
}

static void XMLCALL begin_element(void *data, const XML_Char *name, const XML_Char **attributes)
{
    reader *r = data;
    if (r->status == DT_OK) {
        r->x.line = (int32_t)XML_GetCurrentLineNumber(r->parser);
        r->x.element = name;
        r->x.attributes = attributes;
        r->is_including |= r->x.depth == 1 && xml_is(&r->x, "include");
        if (!r->is_including) {
            stop_with_status(r, r->calls->begin(&r->x));
        } else if (r->x.depth == 1) {
            stop_with_status(r, read_include(r));
        }
        r->x.depth++;
    }
}

static void XMLCALL end_element(void *data, const XML_Char *name)
{
    static const char *const none[] = {NULL};
    reader *r = data;
    if (r->status == DT_OK) {
        r->x.line = (int32_t)XML_GetCurrentLineNumber(r->parser);
        r->x.element = name;
        r->x.attributes = none;
        r->x.depth--;
        stop_with_status(r, r->is_including ? DT_OK : r->calls->end(&r->x));
        r->is_including &= r->x.depth > 1;
    }
}

/* What could be declared there makes small files large; SUMO writes none. */
static void XMLCALL reject_doctype(void *data, const XML_Char *name, const XML_Char *system, const XML_Char *public,
                                   int has_subset)
{
    reader *r = data;
    stop_with_status(r, DT_FAIL_H(r->x.h, DT_EDATA, "%s:%d: a DOCTYPE; files of SUMO have none", r->x.path,
                                  (int)XML_GetCurrentLineNumber(r->parser)));
}

/* The next piece of the document into room; *n_p 0 at its end. */
static dt_status fill_buffer(reader *r, void *room, int *n_p)
{
    const dt_host *h = r->x.h;
    if (r->file == NULL) {
        const size_t n = r->left < READ_BYTES ? r->left : READ_BYTES;
        memcpy(room, r->at, n);
        r->at += n;
        r->left -= n;
        *n_p = (int)n;
        return DT_OK;
    }
    *n_p = gzread(r->file, room, READ_BYTES);
    if (*n_p < 0) {
        int code;
        return DT_FAIL_H(h, DT_EDATA, "%s: cannot be read: %s", r->x.path, gzerror(r->file, &code));
    }
    r->unpacked += (uint64_t)*n_p;
    const z_off_t packed = gzoffset(r->file);
    return packed < 0 || !dt_is_bomb((uint64_t)packed, r->unpacked)
               ? DT_OK
               : DT_FAIL_H(h, DT_EDATA,
                           "%s: %lld bytes unpack to more than %llu, over %d times as many: not a file of SUMO",
                           r->x.path, (long long)packed, (unsigned long long)r->unpacked, DT_UNPACK_MOST_RATIO);
}

static dt_status parse_document(reader *r)
{
    const dt_host *h = r->x.h;
    int64_t read = 0;
    for (int n = 1; n > 0;) {
        void *room = XML_GetBuffer(r->parser, READ_BYTES);
        if (room == NULL) {
            return DT_FAIL_H(h, DT_ENOMEM, "%s: no memory to read it", r->x.path);
        }
        DT_TRY_H(fill_buffer(r, room, &n));
        if (XML_ParseBuffer(r->parser, n, n == 0) != XML_STATUS_OK) {
            if (r->status == DT_OK && r->x.element == NULL) {
                return DT_FAIL_H(h, DT_EDATA,
                                 "%s:%d: not XML: %s; networks and demand of CityFlow or the City Brain Challenge are "
                                 "converted first: dtrain data convert ROADNET FLOW --out PREFIX",
                                 r->x.path, (int)XML_GetCurrentLineNumber(r->parser),
                                 XML_ErrorString(XML_GetErrorCode(r->parser)));
            }
            return r->status != DT_OK ? r->status
                                      : DT_FAIL_H(h, DT_EDATA, "%s:%d: not well-formed XML: %s", r->x.path,
                                                  (int)XML_GetCurrentLineNumber(r->parser),
                                                  XML_ErrorString(XML_GetErrorCode(r->parser)));
        }
        read += n;
        if (read - XML_GetCurrentByteIndex(r->parser) > ELEMENT_MOST) {
            return DT_FAIL_H(h, DT_EDATA, "%s:%d: an element or comment of more than %d bytes", r->x.path,
                             (int)XML_GetCurrentLineNumber(r->parser), ELEMENT_MOST);
        }
    }
    return DT_OK;
}

/* A plain file: others may have named it, and neither a pipe nor a device is waited for. */
static dt_status open_file(const dt_host *h, const char *path, gzFile *out_p)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno != ENXIO) { /* ENXIO: a socket, or a device that is not there */
        return DT_FAIL_H(h, errno == ENOENT ? DT_ENOTFOUND : DT_EIO, "%s: %s", path, strerror(errno));
    }
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        if (fd >= 0) {
            close(fd);
        }
        return DT_FAIL_H(h, DT_EDATA, "%s: is not a regular file, but a folder, a pipe, a socket or a device", path);
    }
    *out_p = gzdopen(fd, "rb");
    if (*out_p == NULL) {
        close(fd);
        return DT_FAIL_H(h, DT_ENOMEM, "%s: no memory to read it", path);
    }
    return DT_OK;
}

static dt_status read_document(const dt_host *h, const xml_text *text, const xml_calls *calls, void *user, includes *in)
{
    reader r = {.x = {.h = h, .path = text->path, .user = user},
                .in = in,
                .calls = calls,
                .at = text->bytes,
                .left = text->n_bytes};
    if (text->bytes == NULL) {
        DT_TRY_H(open_file(h, text->path, &r.file));
    }
    dt_status st = DT_OK;
    r.parser = XML_ParserCreate(NULL);
    if (r.parser == NULL) {
        st = DT_FAIL_H(h, DT_ENOMEM, "%s: no memory to read it", text->path);
    } else {
        XML_SetUserData(r.parser, &r);
        XML_SetElementHandler(r.parser, begin_element, end_element);
        XML_SetStartDoctypeDeclHandler(r.parser, reject_doctype);
        st = parse_document(&r);
        XML_ParserFree(r.parser);
    }
    if (r.file != NULL) {
        gzclose(r.file);
    }
    return st;
}

dt_status xml_read(const dt_host *h, const xml_text *text, const xml_calls *calls, void *user)
{
    includes in = {0};
    return read_document(h, text, calls, user, &in);
}

int xml_is(const xml *x, const char *element)
{
    return strcmp(x->element, element) == 0;
}

const char *xml_get(const xml *x, const char *attribute)
{
    for (const char *const *a = x->attributes; *a != NULL; a += 2) {
        if (strcmp(*a, attribute) == 0) {
            return a[1];
        }
    }
    return NULL;
}

dt_status xml_need(const xml *x, const char *attribute, const char **text_p)
{
    *text_p = xml_get(x, attribute);
    return *text_p != NULL ? DT_OK : DT_FAIL_H(x->h, DT_EDATA, XML_AT "has no %s", XML_HERE(x), attribute);
}

int xml_parse_number(const char *text, const char **rest_p, double *value_p)
{
    /* strtod would also take blanks, hexadecimal, infinities and not-a-numbers */
    const size_t n = strspn(text, "0123456789+-.eE");
    char *rest;
    const double value = strtod(text, &rest);
    if (n == 0 || rest == text || rest > text + n || !isfinite(value)) {
        return 0;
    }
    *rest_p = rest;
    *value_p = value;
    return 1;
}

int xml_flag(const xml *x, const char *attribute)
{
    static const char *const yes[] = {"true", "1", "yes", "on", "t", "x"};
    const char *text = xml_get(x, attribute);
    for (size_t k = 0; text != NULL && k < sizeof(yes) / sizeof(yes[0]); k++) {
        if (strcasecmp(text, yes[k]) == 0) {
            return 1;
        }
    }
    return 0;
}

/* A text as a finite number within [low, high]: the only way by which numbers come out of a file, so that each has its
 * bounds. what: its attribute, for messages. Errors: DT_EDATA. */
static dt_status xml_number_of(const xml *x, const char *what, const char *text, double low, double high,
                               double *value_p)
{
    const char *rest;
    double value;
    text += strspn(text, blanks);
    if (!xml_parse_number(text, &rest, &value) || rest[strspn(rest, blanks)] != '\0') {
        return DT_FAIL_H(x->h, DT_EDATA, XML_AT "%s \"%s\" is not a number", XML_HERE(x), what, text);
    }
    if (value < low || value > high) {
        return DT_FAIL_H(x->h, DT_EDATA, XML_AT "%s %s is outside %g ... %g", XML_HERE(x), what, text, low, high);
    }
    *value_p = value;
    return DT_OK;
}

dt_status xml_number(const xml *x, const char *attribute, double other, double low, double high, double *value_p)
{
    const char *text = xml_get(x, attribute);
    *value_p = other;
    return text == NULL ? DT_OK : xml_number_of(x, attribute, text, low, high, value_p);
}

/* "H:MM:SS" or "D:HH:MM:SS" as seconds; 0 where the text is neither. */
static int read_clock(const char *text, double *value_p)
{
    static const double second[] = {86400, 3600, 60, 1};
    enum { MOST = 4, LEAST = 3 };
    double part[MOST], sum = 0;
    const int is_negative = *text == '-';
    const char *at = text + is_negative;
    int n = 0;
    for (;; at++) {
        if (n == MOST || *at < '0' || *at > '9' || !xml_parse_number(at, &at, &part[n++])) {
            return 0;
        }
        if (*at != ':') {
            break;
        }
    }
    for (int k = 0; k < n; k++) {
        sum += part[k] * second[MOST - n + k];
    }
    *value_p = is_negative ? -sum : sum;
    return n >= LEAST && *at == '\0' && isfinite(sum);
}

dt_status xml_time_of(const xml *x, const char *what, const char *text, double low, double high, double *value_p)
{
    if (strchr(text, ':') == NULL) {
        return xml_number_of(x, what, text, low, high, value_p);
    }
    double value;
    if (!read_clock(text, &value)) {
        return DT_FAIL_H(x->h, DT_EDATA, XML_AT "%s \"%s\" is not a time: a number of seconds, H:MM:SS or D:HH:MM:SS",
                         XML_HERE(x), what, text);
    }
    if (value < low || value > high) {
        return DT_FAIL_H(x->h, DT_EDATA, XML_AT "%s %s is outside %g ... %g s", XML_HERE(x), what, text, low, high);
    }
    *value_p = value;
    return DT_OK;
}

dt_status xml_time(const xml *x, const char *attribute, double other, double low, double high, double *value_p)
{
    const char *text = xml_get(x, attribute);
    *value_p = other;
    return text == NULL ? DT_OK : xml_time_of(x, attribute, text, low, high, value_p);
}

dt_status xml_count(const xml *x, const char *attribute, int32_t other, int32_t low, int32_t high, int32_t *value_p)
{
    double value;
    DT_TRY_H(xml_number(x, attribute, other, low, high, &value));
    if (value != floor(value)) {
        return DT_FAIL_H(x->h, DT_EDATA, XML_AT "%s %g is not a whole number", XML_HERE(x), attribute, value);
    }
    *value_p = (int32_t)value;
    return DT_OK;
}

size_t xml_word(const char **at, const char **word_p)
{
    const char *s = *at + strspn(*at, blanks);
    const size_t n = strcspn(s, blanks);
    *word_p = s;
    *at = s + n;
    return n;
}
