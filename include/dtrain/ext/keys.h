/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "dtrain.keys/1" of a plugin: configuration keys of other programs and their counterparts here. `dtrain
 * config import` converts YAML files by these tables, `dtrain config keys` lists them, and messages about unknown keys
 * suggest counterparts. Returned by dt_plugin.extension, not by a component's; the host uses the first table that it
 * finds. The table and all texts are the plugin's, constant for the life of the process, and read without calling it:
 * there is nothing that can fail. Sizes, units and conversions are those of the keys of both sides; values are
 * translated as text. An import rejects what it cannot translate (DT_ECONFIG). Threads: [any]. Source: none; plugins/
 * traffic/guide_keys.def is an example.
 */
#ifndef DTRAIN_EXT_KEYS_H
#define DTRAIN_EXT_KEYS_H

#include "dtrain/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_EXT_KEYS "dtrain.keys/1"

enum { DT_KEYS_PHASES = 3 };

/* What an import does with a key. */
enum {
    DT_KEYS_TAKE,       /* sets every target to the value */
    DT_KEYS_EACH,       /* a list: sets each target to an element */
    DT_KEYS_LAYERS,     /* a list of equal widths: the targets are the width and the number of layers */
    DT_KEYS_ROLES,      /* names of models, translated by dt_keys_ext.roles */
    DT_KEYS_PASSES,     /* epochs; in phases 2 and 3 multiplied by the passes of a round */
    DT_KEYS_SET,        /* if the value is `words`: makes the assignments of target */
    DT_KEYS_IMPLY,      /* if the key is present and the first assignment's key is not set: makes the assignments. A
                         * second row of a key; not listed */
    DT_KEYS_BATCH,      /* part of data.batch, computed from devices, accumulation and sizes */
    DT_KEYS_ENVS,       /* part of env.instances, computed from workers */
    DT_KEYS_ENVS_LIMIT, /* maximum of env.instances */
    DT_KEYS_ROUND,      /* samples of a round and of a fragment, made to fit each other */
    DT_KEYS_ABOUT,      /* which phases the file describes */
    DT_KEYS_SAME,       /* always the case here */
    DT_KEYS_NONE,       /* no counterpart */
    DT_KEYS_WRONG       /* a mistake in the files */
};

/* A key. An import applies rows in order: of two keys for one target the first one in the table wins. The table ends
 * with key == NULL. No pointer but words is NULL in the other rows. */
typedef struct dt_key_row {
    const char *key;    /* "training.num_epochs" */
    const char *phases; /* in which it is read so: of "123"; "0": next to the phases of a file of several */
    uint32_t act;       /* DT_KEYS_* */
    uint32_t reserved;
    const char *target; /* keys here separated by blanks, "@.key" of the phase's plugin; "key=value" is an assignment */
    const char *words;  /* translations of values, "theirs=ours ...", or the value of SET; NULL: none */
    const char *note;   /* why, for the imported file; "": no reason given */
} dt_key_row;

typedef struct dt_keys_ext {
    uint32_t struct_size, reserved;
    const char *phase[DT_KEYS_PHASES]; /* ids of the phases that files call 1, 2 and 3; none is NULL */
    const dt_key_row *rows;            /* at least the row that ends them */
    const char *roles;                 /* "theirs=role ...", for DT_KEYS_ROLES; "": none */
    const char *groups; /* "group=phase ...": the first group that a file has determines its phase; else 1 */
    const char *const
        *synonyms; /* "theirs=ours", NULL at the end: keys in messages only; ours "key" or "section.key" */
} dt_keys_ext;

#ifdef __cplusplus
}
#endif
#endif
