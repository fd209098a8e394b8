/* SPDX-License-Identifier: Apache-2.0
 *
 * What snapshot.c writes into a checkpoint and snapshot_load.c reads: names of blobs and of members of its state.
 */
#ifndef DTRAIN_CORE_STATE_SNAPSHOT_SNAPSHOT_NAMES_H
#define DTRAIN_CORE_STATE_SNAPSHOT_SNAPSHOT_NAMES_H

#include "dtrain/svc/datasets.h"

#include <stdio.h>

#define BLOB_ROLLOUT    "rollout"
#define BLOB_NORMALISER "normaliser"
#define BLOB_POOL       "opponents"
#define BLOB_REPLAY     "replay"
#define BLOB_RECORDS    "replay-records"
#define KEY_LOADED      "loaded_roles"
#define KEY_STORES      "stores"
#define KEY_STREAM      "stream"
#define KEY_OWED        "owed"
#define KEY_ENV_STEPS   "env_steps"
#define KEY_GROUPS      "groups"
#define KEY_UPDATES     "group_updates"

enum { DIGEST_TEXT = 17 }; /* of a data set, in hexadecimal digits */

static inline void digest_of(const dt_dataset *d, char text[DIGEST_TEXT])
{
    snprintf(text, DIGEST_TEXT, "%016llx", (unsigned long long)d->digest);
}

#endif
