/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of a dt_config, shared by the files of this room alone: nodes, the pool they live in, and placing by layer.
 *
 * Nodes and strings are taken from a pool and die with the configuration; a replaced node is only unlinked.
 */
#ifndef DTRAIN_CORE_CONFIG_TREE_H
#define DTRAIN_CORE_CONFIG_TREE_H

#include "config/config.h"
#include "dtrain/ext/keys.h"
#include "dtrain/plugin.h"

typedef enum dt_node_kind {
    DT_NODE_GROUP,
    DT_NODE_LIST,
    DT_NODE_BOOL,  /* "true" "false" */
    DT_NODE_INT,   /* decimal */
    DT_NODE_FLOAT, /* shortest decimal that reads back equal */
    DT_NODE_TEXT,  /* a string */
    DT_NODE_PLAIN  /* a string of unknown type, from --set, the environment or a default: the option decides */
} dt_node_kind;

typedef struct dt_node dt_node;
struct dt_node {
    dt_node_kind kind;
    const char *key;  /* NULL in a list */
    const char *text; /* of a value */
    dt_origin origin; /* a group's: where it was first named */
    dt_node *first, *last, *next;
};

typedef struct dt_section dt_section;
struct dt_section { /* a declared section; name "" holds the keys outside any section */
    const char *name, *plugin;
    const dt_option *table;
    bool is_phase;  /* of a phase's plugin: holds groups too */
    bool is_spread; /* they are in its phases, and are checked there */
    dt_section *next;
};

struct dt_config {
    dt_node root;
    dt_section *sections, **sections_end;
    struct dt_pool_block *pool;
    dt_str errors; /* kept ones, a line each */
    uint32_t n_errors;
    bool is_trusted;                        /* dt_config_trust_code */
    const char *wired[DT_CONFIG_MAX_ROLES]; /* beyond those of the section; in the pool or static */
    uint32_t n_wired;
    const dt_keys_ext *keys; /* of other programs; NULL: none */
};

void *dt_pool_alloc(dt_config *c, size_t bytes); /* zeroed; NULL when out of memory */
char *dt_pool_dup(dt_config *c, const char *text, size_t bytes);
void dt_pool_fini(dt_config *c);

dt_status dt_node_new(dt_config *c, dt_node_kind kind, const char *key, const char *text, const dt_origin *origin,
                      dt_node **out_p) DT_NODISCARD; /* copies key and text, not the origin's name */
void dt_node_append(dt_node *parent, dt_node *child);
void dt_node_remove(dt_node *parent, const dt_node *child);
dt_status dt_node_resolve_path(dt_config *c, dt_node *n) DT_NODISCARD; /* absolute, from where it was set */
int64_t dt_node_count(const dt_node *parent);
dt_node *dt_node_find(const dt_node *parent, const char *key); /* parent may be NULL */
dt_node *dt_node_at(const dt_node *parent, int64_t i);

/* Put child into parent by the rules of layers; groups merge. path: parent's, for messages. */
dt_status dt_node_place(dt_node *parent, dt_node *child, const char *path) DT_NODISCARD;
/* Put leaf at a dotted path below the root; "phases.0.init" reaches into lists. */
dt_status dt_config_place(dt_config *c, const char *path, dt_node *leaf) DT_NODISCARD;

bool dt_same_plugin(const char *a, const char *b); /* whatever their folders, with .so or without */
dt_section *dt_section_find(const dt_config *c, const char *name);
dt_node *dt_config_phase_node(const dt_config *c, int64_t phase); /* NULL when there is none */

/* libconfig text to nodes: a file below into, or one value of the command line. */
dt_status dt_reader_file(dt_config *c, dt_layer layer, const char *path, dt_node *into) DT_NODISCARD;
dt_status dt_reader_value(dt_config *c, const char *text, const char *path, const dt_origin *origin, dt_node **out_p)
    DT_NODISCARD;

/* Check a value against its option and bring it to its canonical form (typed, path absolute). Twice is fine. */
dt_status dt_option_normalise(dt_config *c, const dt_option *o, const char *path, dt_node *value) DT_NODISCARD;
/* One value of a section; what its table lacks is refused. path: the group's. */
dt_status dt_section_normalise_one(dt_config *c, const dt_section *s, dt_node *value, const char *path) DT_NODISCARD;

/* A group that is no section (an entry of phases, its stop) into a struct; group may be NULL: all defaults. */
dt_status dt_group_read(dt_config *c, const dt_option *table, const dt_node *group, const char *path, void *out,
                        uint64_t bytes) DT_NODISCARD;

/* Host sections: the tables, and the rules across keys and about what this version can do. */
dt_status dt_schema_declare(dt_config *c) DT_NODISCARD;
dt_status dt_schema_check(dt_config *c, int64_t phase) DT_NODISCARD; /* keeps its errors */
extern const dt_option dt_schema_phase[], dt_schema_stop[];          /* an entry of phases, and its stop group */

/* Of the value for all phases and a phase's own, either may be NULL: the one that holds. */
dt_node *dt_node_select_stronger(dt_node *common, dt_node *own);
/* The value that holds in a phase: the stronger of the one for all phases and the phase's own; NULL when none. */
dt_node *dt_config_effective(const dt_config *c, int64_t phase, const char *section, const char *key);

void dt_format_f64(double v, char out[32]); /* shortest text that reads back equal, with a point or an exponent */

/* Every value that influences results, as dt_config_hash has them; o: its option, NULL where none is declared. */
typedef void dt_config_visit(void *user, const char *path, const dt_node *n, const dt_option *o);
void dt_config_each_result(const dt_config *c, dt_config_visit *fn, void *user);

/* What is refused now is only counted: its message needs no names that are near, nor what else would be right. */
bool dt_config_has_max_errors(const dt_config *c);

/* DT_ECONFIG with "<key path> = <value> <origin>: <fmt>". */
dt_status dt_node_fail(const dt_node *n, const char *path, const char *fmt, ...) DT_PRINTF(3, 4);

#endif
