/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys that configured the systems before this one, and ours for them: guide.def as a table. Read by the importer
 * (porting/), by messages about unknown keys, and by the test of docs/reference/guide-keys.md. Threads: any.
 */
#ifndef DTRAIN_CORE_CONFIG_GUIDE_H
#define DTRAIN_CORE_CONFIG_GUIDE_H

#include "base/str.h"

typedef enum dt_guide_act {
    DT_GUIDE_TAKE,   /* the value, for every target */
    DT_GUIDE_EACH,   /* a list, an element for each target */
    DT_GUIDE_LAYERS, /* a list of equal widths: the width, and how many */
    DT_GUIDE_ROLES,  /* names of models: roles */
    DT_GUIDE_PASSES, /* epochs; of phases 2 and 3 rounds, which are many passes */
    DT_GUIDE_SET,    /* the assignments, where the value is the one that is meant */
    DT_GUIDE_BATCH,  /* one batch from devices, steps and sizes */
    DT_GUIDE_ENVS,   /* how many environments, from workers and limits */
    DT_GUIDE_ROUND,  /* samples of a round and of a fragment, which have to fit */
    DT_GUIDE_ABOUT,  /* which phases there are */
    DT_GUIDE_SAME,   /* is so always */
    DT_GUIDE_NONE,   /* has no counterpart */
    DT_GUIDE_WRONG   /* was a mistake */
} dt_guide_act;

typedef struct dt_guide {
    const char *key, *phases;
    dt_guide_act act;
    const char *target, *words, *note;
} dt_guide;

extern const dt_guide dt_guide_table[]; /* ends with a key of NULL */

/* The row of a key in a phase (0: beside the phases, -1: in any), NULL: none. */
const dt_guide *dt_guide_find(const char *key, int phase);
/* For a message about a key or a group of keys that stands in a configuration of ours: "here training.epochs", which
 * keys a group has here, or that there is nothing like it. False, and nothing added: the guides have no such key. */
bool dt_guide_tell(const char *key, dt_str *out);
/* Is it a group of keys there, "amp" or "amp.loss_scale"? */
bool dt_guide_is_group(const char *key);

#endif
