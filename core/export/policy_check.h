/* SPDX-License-Identifier: Apache-2.0
 *
 * Is a policy file one that can act, whatever it contains? Everything that a step of policy.c adds, multiplies, indexes
 * or copies is found here once, when the file is loaded, and held against the recorded graph: rows, history, masks,
 * indices and the arrays that they point into, heads, bounds, outputs, sizes. What passes needs no further check; a
 * step looks at its caller's numbers alone. Threads: [any].
 */
#ifndef DTRAIN_CORE_EXPORT_POLICY_CHECK_H
#define DTRAIN_CORE_EXPORT_POLICY_CHECK_H

#include "export/policy_file.h"

#include <stdbool.h>

typedef struct dt_policy_input { /* how an input is filled */
    int32_t symbol;              /* its rows: of this symbol */
    int32_t plus;                /* 1: row pointers */
    int32_t least;               /* of an index: -1 means none, where the graph takes that */
    uint32_t steps;              /* HISTORY, PRESENT, STEPS: the first dimension; else 1 */
    size_t row_bytes;            /* of one row; where there are steps, of one of these */
    size_t room_bytes;           /* that it needs, 0: the caller's rows are read as they are */
    size_t memory_bytes;         /* HISTORY: of its last rows */
} dt_policy_input;

typedef struct dt_policy_facts {
    int32_t A, B;       /* the symbols of places and of worlds; B -1: there are none */
    uint32_t places;    /* most rows of A */
    uint32_t window;    /* at least 1 */
    uint32_t n_choices; /* of all heads */
    size_t room_bytes;  /* of all inputs, their history too */
    dt_policy_input input[DT_BUNDLE_MAX_INPUTS];
} dt_policy_facts;

enum { DT_POLICY_MOST_PLACES = 1 << 20, DT_POLICY_MOST_CHOICES = 1 << 16, DT_POLICY_MOST_WINDOW = 4096 };
enum { DT_POLICY_DIMS_BYTES = 64 }; /* of an input's dims */
/* Of all rooms, the arena that the networks run in and what they keep. The size of the file justifies none of it: a few
 * weights may act on a million rows. */
#define DT_POLICY_MOST_BYTES ((size_t)1 << 30)

/* Errors: DT_EUNSUPPORTED (it does not act, reads what no environment shows, or needs more memory than that), DT_EDATA
 * (what contradicts what). */
dt_status dt_policy_check(const dt_policy_file *f, dt_policy_facts *out_p) DT_NODISCARD;

#endif
