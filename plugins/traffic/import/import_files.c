/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of an import, distinguished by what they hold. See import.h.
 */
#include <config.h>

#include "traffic/import/import.h"
#include "traffic/import/rows.h"
#include "traffic/text/source.h"
#include "traffic/text/xml_reader.h"
#include "base/err.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

static dt_status note_root(dt_xml *x)
{
    snprintf(x->user, DT_XML_TEXT_BYTES, "%s", x->element);
    return DT_DONE;
}

/* The root element of an XML file; "" of a file that does not begin with '<', as tables do not. */
static dt_status find_root(const char *path, char root[DT_XML_TEXT_BYTES])
{
    static const dt_xml_calls calls = {.begin = note_root};
    dt_source *source = NULL;
    char head[256];
    root[0] = '\0';
    DT_TRY(dt_source_open(path, &source));
    const int64_t n = dt_source_read(source, head, sizeof(head));
    dt_status st = n < 0 ? dt_error_status() : DT_OK;
    int64_t i = n > 0 ? (int64_t)dt_utf8_mark(head, (size_t)n) : 0;
    while (i < n && strchr(" \t\r\n", head[i]) != NULL && head[i] != '\0') {
        i++;
    }
    dt_source_close(source);
    if (st != DT_OK || i >= n || head[i] != '<') {
        return st;
    }
    DT_TRY(dt_source_open(path, &source));
    st = dt_xml_read(source, path, &calls, root);
    dt_source_close(source);
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_file(const char *path, const dt_import_options *opt, dt_str *notes, dt_rows *rows)
{
    char root[DT_XML_TEXT_BYTES];
    DT_TRY(find_root(path, root));
    if (root[0] == '\0') {
        return dt_table_read(path, opt, notes, rows);
    }
    if (strcmp(root, "fcd-export") == 0) {
        return dt_fcd_read(path, opt, notes, rows);
    }
    if (strcmp(root, "commonRoad") == 0) {
        return dt_commonroad_read(path, opt, notes, rows);
    }
    return DT_FAIL(
        DT_EDATA, "%s: XML of <%.60s>, which is not known: fcd-export (floating-car output of SUMO) and commonRoad are",
        path, root);
}

/* Types are of floating cars alone. */
dt_status dt_import_check(const char *const *src, uint32_t n_src, const dt_import_options *opt)
{
    if (opt->types == NULL || opt->types[0] == '\0') {
        return DT_OK;
    }
    for (uint32_t i = 0; i < n_src; i++) {
        char root[DT_XML_TEXT_BYTES];
        DT_TRY(find_root(src[i], root));
        if (strcmp(root, "fcd-export") == 0) {
            return DT_OK;
        }
    }
    return DT_FAIL(DT_ECONFIG, "%s is not floating-car output of SUMO, and import.types is %.200s: leave it out",
                   src[0], opt->types);
}

dt_status dt_import_read(const char *const *src, uint32_t n_src, const dt_import_options *opt, dt_str *notes,
                         dt_rows *rows)
{
    for (uint32_t i = 0; i < n_src; i++) {
        uint64_t bytes = 0;
        DT_TRY(dt_source_size(src[i], &bytes));
        DT_TRY(read_file(src[i], opt, notes, rows));
        dt_rows_file_end(rows, bytes);
    }
    return DT_OK;
}
