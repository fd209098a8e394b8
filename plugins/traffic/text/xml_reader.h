/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading XML whose layout is known, element by element, with messages that name file, line, column and element. It is
 * parsed by expat. A DOCTYPE is refused, so there are no entities but XML's own five; elements nest DT_XML_DEPTH deep
 * at most and are DT_XML_ELEMENT_BYTES long at most. Threads: one reader, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_XML_READER_H
#define DTRAIN_PLUGINS_TRAFFIC_XML_READER_H

#include "traffic/text/source.h"

#include <inttypes.h>

enum { DT_XML_DEPTH = 64, DT_XML_ELEMENT_BYTES = 1 << 20, DT_XML_TEXT_BYTES = 256 };

typedef struct dt_xml {
    const char *path;
    int64_t line, column; /* of the event, from 1 */
    int depth;            /* of the element: 0 for the root */
    const char *element;
    const char *const *attributes; /* name, value, ..., NULL; of an end there are none */
    /* at an end: the text since the last tag, without blanks around it; longer than DT_XML_TEXT_BYTES: cut, is_cut */
    const char *text;
    bool is_cut;
    uint64_t taken; /* as dt_source_bytes_read */
    void *user;
} dt_xml;

/* Either may be NULL. DT_DONE ends the reading, and dt_xml_read returns it. */
typedef struct dt_xml_calls {
    dt_status (*begin)(dt_xml *x);
    dt_status (*end)(dt_xml *x);
} dt_xml_calls;

/* From a source that was just opened. path: what messages call it. Errors: DT_EDATA (not XML, cut short, a DOCTYPE, too
 * deep, too long), DT_EIO, DT_ENOMEM, those of the calls. */
dt_status dt_xml_read(dt_source *source, const char *path, const dt_xml_calls *calls, void *user) DT_NODISCARD;

/* "file:line:column: <element>" at the begin of every message */
#define DT_XML_AT      "%s:%" PRId64 ":%" PRId64 ": <%s> "
#define DT_XML_HERE(x) (x)->path, (x)->line, (x)->column, (x)->element

bool dt_xml_is(const dt_xml *x, const char *element);
const char *dt_xml_get(const dt_xml *x, const char *attribute); /* NULL: not there */
dt_status dt_xml_require(const dt_xml *x, const char *attribute, const char **text_p) DT_NODISCARD; /* DT_EDATA */
/* A text as a finite number in [lo, hi], with blanks around it or without; what: its name in messages. The one reader
 * of numbers in XML: tests/numbers.h has what is one. DT_EDATA. */
dt_status dt_xml_number(const dt_xml *x, const char *what, const char *text, double lo, double hi, double *out_p)
    DT_NODISCARD;
/* The same of the text of an element that ends. */
/* *out_p is NAN before: else the element is there twice, DT_EDATA. */
dt_status dt_xml_text_number(const dt_xml *x, const char *what, double lo, double hi, double *out_p) DT_NODISCARD;
/* A text as an integer of 64 bits, written the way integers are: 5 for 05. DT_EDATA. */
dt_status dt_xml_id(const dt_xml *x, const char *what, const char *text, char *out, size_t bytes) DT_NODISCARD;
/* The same of an attribute that must be there. */
dt_status dt_xml_require_number(const dt_xml *x, const char *attribute, double lo, double hi, double *out_p)
    DT_NODISCARD;

#endif
