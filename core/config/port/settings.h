/* SPDX-License-Identifier: Apache-2.0
 *
 * What an import has collected: settings of ours, and remarks about keys of theirs; and how they are written. Inside of
 * this room. Everything lives as long as the document.
 */
#ifndef DTRAIN_CORE_CONFIG_PORT_SETTINGS_H
#define DTRAIN_CORE_CONFIG_PORT_SETTINGS_H

#include "config/guide.h"
#include "config/port/porting.h"
#include "config/port/yaml.h"

typedef enum dt_remark_kind { DT_REMARK_WRONG, DT_REMARK_NONE, DT_REMARK_SAME, DT_REMARK_UNKNOWN } dt_remark_kind;
enum { DT_REMARK_KINDS = 4 };

typedef struct dt_setting_in dt_setting_in; /* one value of ours */
struct dt_setting_in {
    int phase; /* 0: of the run */
    const char *section, *name, *value;
    const char *from; /* their key */
    const char *note;
    int line;
    dt_setting_in *next;
};

typedef struct dt_remark dt_remark;
struct dt_remark {
    dt_remark_kind kind;
    int phase, line;
    const char *key, *value, *note;
    dt_remark *next;
};

typedef struct dt_leaf { /* a value of theirs, in the phase that is being read */
    const char *key;
    const dt_yaml *node;
    bool is_done;
} dt_leaf;

typedef struct dt_porting {
    dt_yaml_doc *d;
    const dt_keys_ext *keys;
    const dt_config *known;
    dt_setting_in *settings, **settings_end;
    dt_remark *remarks, **remarks_end;
    int phase; /* of leaf; 0: next to the phases */
    dt_leaf *leaf;
    int n_leaves, cap_leaves, n_unknown;
    int listed[DT_KEYS_PHASES], n_listed; /* entries of phases */
    bool is_guessed;                      /* nothing in the file shows which phase it is of */
    dt_ported ported;
} dt_porting;

/* The leaf of a key, NULL: the file does not have it, or has None. */
const dt_leaf *dt_leaf_find(const dt_porting *p, const char *key);
bool dt_leaf_is_none(const dt_leaf *l);
/* A value for people: of one line, no control characters, cut where it is long; NULL: out of memory. */
const char *dt_leaf_text(const dt_porting *p, const dt_leaf *l);

/* A value of ours from one of theirs. target: "section.key", "@.key", "key". A second value for one target becomes a
 * remark, the first one holds. */
dt_status dt_porting_set(dt_porting *p, const char *target, const char *text, const dt_leaf *from, const char *note)
    DT_NODISCARD;
dt_status dt_porting_remark(dt_porting *p, dt_remark_kind kind, const dt_leaf *of, const char *note) DT_NODISCARD;
/* The option of a target, NULL: its section is not declared. */
const dt_option *dt_porting_option(const dt_porting *p, const char *target);

/* Values that follow from several keys (joint.c); before the rows of the table. */
dt_status dt_porting_joint(dt_porting *p) DT_NODISCARD;

/* All of it, as a file. */
dt_status dt_porting_write(const dt_porting *p, const char *path, dt_str *out) DT_NODISCARD;

#endif
