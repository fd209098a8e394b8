/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/text/xml_reader.h"
#include "traffic/text/values.h"
#include "base/err.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <expat.h>

enum { PIECE_BYTES = 1 << 16 };

typedef struct reader {
    dt_xml x; /* first: what calls see */
    XML_Parser parser;
    const dt_xml_calls *calls;
    dt_status status;
    size_t n_text;
    char text[DT_XML_TEXT_BYTES + 1];
} reader;

static void stop_with_status(reader *r, dt_status st)
{
    if (st != DT_OK) {
        r->status = st;
        XML_StopParser(r->parser, XML_FALSE);
    }
}

static void record_position(reader *r)
{
    r->x.line = (int64_t)XML_GetCurrentLineNumber(r->parser);
    r->x.column = (int64_t)XML_GetCurrentColumnNumber(r->parser) + 1;
}

static void forget_text(reader *r)
{
    r->n_text = 0;
    r->x.is_cut = false;
}

static void XMLCALL begin_element(void *data, const XML_Char *name, const XML_Char **attributes)
{
    reader *r = data;
    if (r->status != DT_OK) {
        return;
    }
    record_position(r);
    forget_text(r);
    r->x.element = name;
    r->x.attributes = attributes;
    r->x.text = "";
    if (r->x.depth == DT_XML_DEPTH) {
        stop_with_status(r,
                         DT_FAIL(DT_EDATA, DT_XML_AT "is nested more than %d deep", DT_XML_HERE(&r->x), DT_XML_DEPTH));
        return;
    }
    stop_with_status(r, r->calls->begin != NULL ? r->calls->begin(&r->x) : DT_OK);
    r->x.depth++;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void XMLCALL end_element(void *data, const XML_Char *name)
{
    static const char *const none[] = {NULL};
    reader *r = data;
    if (r->status != DT_OK) {
        return;
    }
    record_position(r);
    while (r->n_text > 0 && is_blank(r->text[r->n_text - 1])) {
        r->n_text--;
    }
    r->text[r->n_text] = '\0';
    r->x.text = r->text;
    r->x.element = name;
    r->x.attributes = none;
    r->x.depth--;
    stop_with_status(r, r->calls->end != NULL ? r->calls->end(&r->x) : DT_OK);
    forget_text(r);
}

static void XMLCALL append_text(void *data, const XML_Char *s, int n)
{
    reader *r = data;
    for (int i = 0; i < n; i++) {
        if (r->n_text == 0 && is_blank(s[i])) {
            continue;
        }
        if (r->n_text < DT_XML_TEXT_BYTES) {
            r->text[r->n_text++] = s[i];
        } else {
            r->x.is_cut |= !is_blank(s[i]);
        }
    }
}

/* What could be declared there makes small files large, or reads other files. */
static void XMLCALL reject_doctype(void *data, const XML_Char *name, const XML_Char *system_id,
                                   const XML_Char *public_id, int has_subset)
{
    reader *r = data;
    record_position(r);
    stop_with_status(r, DT_FAIL(DT_EDATA, "%s:%" PRId64 ":%" PRId64 ": a DOCTYPE: recordings have none", r->x.path,
                                r->x.line, r->x.column));
}

static dt_status parse_source(reader *r, dt_source *source)
{
    int64_t read = 0;
    for (int64_t n = 1; n > 0;) {
        void *room = XML_GetBuffer(r->parser, PIECE_BYTES);
        if (room == NULL) {
            return DT_FAIL(DT_ENOMEM, "%s: no memory to read it", r->x.path);
        }
        n = dt_source_read(source, room, PIECE_BYTES);
        if (n < 0) {
            return dt_error_status();
        }
        r->x.taken = dt_source_bytes_read(source);
        if (XML_ParseBuffer(r->parser, (int)n, n == 0) != XML_STATUS_OK) {
            if (r->status != DT_OK) {
                return r->status;
            }
            record_position(r);
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ":%" PRId64 ": %s", r->x.path, r->x.line, r->x.column,
                           n == 0 && r->x.depth > 0 ? "the file is truncated: copy it again"
                                                    : XML_ErrorString(XML_GetErrorCode(r->parser)));
        }
        read += n;
        /* expat begins an element again with every piece of it that comes: long ones would take for ever */
        if (read - XML_GetCurrentByteIndex(r->parser) > DT_XML_ELEMENT_BYTES) {
            record_position(r);
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": an element or comment of more than %d bytes", r->x.path,
                           r->x.line, DT_XML_ELEMENT_BYTES);
        }
    }
    return DT_OK;
}

dt_status dt_xml_read(dt_source *source, const char *path, const dt_xml_calls *calls, void *user)
{
    reader r = {.x = {.path = path, .user = user}, .calls = calls, .parser = XML_ParserCreate(NULL)};
    if (r.parser == NULL) {
        return DT_FAIL(DT_ENOMEM, "%s: no memory to read it", path);
    }
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, begin_element, end_element);
    XML_SetCharacterDataHandler(r.parser, append_text);
    XML_SetStartDoctypeDeclHandler(r.parser, reject_doctype);
    const dt_status st = parse_source(&r, source);
    XML_ParserFree(r.parser);
    return st;
}

bool dt_xml_is(const dt_xml *x, const char *element)
{
    return strcmp(x->element, element) == 0;
}

const char *dt_xml_get(const dt_xml *x, const char *attribute)
{
    for (const char *const *a = x->attributes; *a != NULL; a += 2) {
        if (strcmp(*a, attribute) == 0) {
            return a[1];
        }
    }
    return NULL;
}

dt_status dt_xml_require(const dt_xml *x, const char *attribute, const char **text_p)
{
    *text_p = dt_xml_get(x, attribute);
    return *text_p != NULL ? DT_OK : DT_FAIL(DT_EDATA, DT_XML_AT "has no %s", DT_XML_HERE(x), attribute);
}

/* A number with blanks around it, as XML Schema allows them. */
static bool parse_within_blanks(const char *text, double *out_p)
{
    char copy[64];
    while (is_blank(*text)) {
        text++;
    }
    size_t n = strlen(text);
    while (n > 0 && is_blank(text[n - 1])) {
        n--;
    }
    if (n >= sizeof(copy)) {
        return text[n] == '\0' && dt_parse_f64(text, out_p);
    }
    memcpy(copy, text, n);
    copy[n] = '\0';
    return dt_parse_f64(copy, out_p);
}

dt_status dt_xml_number(const dt_xml *x, const char *what, const char *number, double lo, double hi, double *out_p)
{
    double v = 0;
    if (!dt_parse_f64(number, &v) && !parse_within_blanks(number, &v)) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "%s is \"%.60s\", not a finite number", DT_XML_HERE(x), what, number);
    }
    if (!(v >= lo && v <= hi)) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "%s is %.60s, outside [%g, %g]", DT_XML_HERE(x), what, number, lo, hi);
    }
    *out_p = v;
    return DT_OK;
}

dt_status dt_xml_text_number(const dt_xml *x, const char *what, double lo, double hi, double *out_p)
{
    if (!isnan(*out_p)) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "%s is given twice", DT_XML_HERE(x), what);
    }
    return x->is_cut ? DT_FAIL(DT_EDATA, DT_XML_AT "%s is a text of more than %d bytes", DT_XML_HERE(x), what,
                               DT_XML_TEXT_BYTES)
                     : dt_xml_number(x, what, x->text, lo, hi, out_p);
}

dt_status dt_xml_id(const dt_xml *x, const char *what, const char *text, char *out, size_t bytes)
{
    int64_t id = 0;
    if (!dt_value_parse_id(text, &id)) {
        return DT_FAIL(DT_EDATA, DT_XML_AT "%s is \"%.60s\", not an integer of 64 bits", DT_XML_HERE(x), what, text);
    }
    snprintf(out, bytes, "%" PRId64, id);
    return DT_OK;
}

dt_status dt_xml_require_number(const dt_xml *x, const char *attribute, double lo, double hi, double *out_p)
{
    const char *number = NULL;
    DT_TRY(dt_xml_require(x, attribute, &number));
    return dt_xml_number(x, attribute, number, lo, hi, out_p);
}
