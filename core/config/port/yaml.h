/* SPDX-License-Identifier: Apache-2.0
 *
 * A YAML file as a tree of texts: libyaml's events (YAML 1.1), with bounds on everything that a file controls. One
 * document, plain keys, no key twice, no tags but those of plain values, aliases and "<<" as copies that count. What a
 * text means is up to its reader: nothing is made a number here.
 *
 * Python's tuples are read as they were meant: in a flow mapping, { range: (-10, 10) } is range "(-10" and a key "10)"
 * to YAML, and becomes range "(-10, 10)" again. Only yaml.c knows libyaml; without it reading is refused. Threads: any,
 * an object belongs to one.
 */
#ifndef DTRAIN_CORE_CONFIG_PORT_YAML_H
#define DTRAIN_CORE_CONFIG_PORT_YAML_H

#include "dtrain/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum dt_yaml_kind { DT_YAML_VALUE, DT_YAML_LIST, DT_YAML_MAP } dt_yaml_kind;

typedef struct dt_yaml dt_yaml;
struct dt_yaml {
    dt_yaml_kind kind;
    const char *key;  /* NULL in a list and of the root */
    const char *text; /* of a value */
    bool is_quoted;
    bool is_repaired; /* a tuple that YAML had cut */
    int line, column; /* from 1 */
    dt_yaml *first, *last, *next;
};

typedef struct dt_yaml_doc dt_yaml_doc;

/* Errors: DT_ECONFIG "FILE:LINE:COLUMN: why", DT_ENOTFOUND, DT_EIO, DT_EDATA (too long), DT_ENOMEM; DT_EUNSUPPORTED:
 * built without libyaml. */
dt_status dt_yaml_read(const char *path, dt_yaml_doc **out_p) DT_NODISCARD;
void dt_yaml_close(dt_yaml_doc *d);
const dt_yaml *dt_yaml_root(const dt_yaml_doc *d); /* a mapping */

/* A copy that lives as long as the document; NULL: out of memory. */
char *dt_yaml_keep(dt_yaml_doc *d, const char *text);
/* Zeroed memory that does; NULL: out of memory. */
void *dt_yaml_alloc(dt_yaml_doc *d, size_t bytes);
/* DT_ECONFIG, "FILE:LINE:COLUMN: ..." */
dt_status dt_yaml_fail(const dt_yaml_doc *d, const dt_yaml *at, const char *fmt, ...) DT_PRINTF(3, 4);

#endif
