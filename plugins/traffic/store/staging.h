/* SPDX-License-Identifier: Apache-2.0
 *
 * What is written under a temporary name and renamed when it is complete: a store, a folder of stores, a table, an HDF5
 * file. For OUT there is a folder OUT.partial meanwhile, with "out", which becomes OUT, and "dtrain.lock", which the
 * process that writes holds (base/lock.h): a second process is rejected, and what a process left that died, kill -9
 * included, is known by that lock, removed and begun again. Any other OUT.partial is the user's and is left as it is.
 * OUT itself must not be there, not even as a link that leads nowhere; neither OUT.partial nor anything in it may be a
 * link.
 *
 * A lock belongs to the open file, which nothing that is started inherits, and holds between threads too: each of them
 * may have staging folders of its own. Threads: one staging, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_STAGING_H
#define DTRAIN_PLUGINS_TRAFFIC_STAGING_H

#include "dtrain/status.h"

typedef struct dt_staging dt_staging;

typedef enum dt_staging_kind {
    DT_STAGING_FILE,  /* the folder that it will lie in is there; "out" is still to be created */
    DT_STAGING_FOLDER /* with the folders that it will lie in; "out" is there, empty */
} dt_staging_kind;

/* Whether OUT could be written, before any work: nothing is changed. DT_EINVAL reports what is in the way. */
dt_status dt_staging_check(const char *out, dt_staging_kind kind) DT_NODISCARD;
/* Takes OUT for this process; slashes at the end of a folder's name count for nothing. DT_EINVAL (OUT is there, is no
 * name of something new, is being written, or OUT.partial is not ours), DT_EUNSUPPORTED (no locks), DT_EIO,
 * DT_ENOMEM. */
dt_status dt_staging_open(const char *out, dt_staging_kind kind, dt_staging **out_p) DT_NODISCARD;
const char *dt_staging_path(const dt_staging *a); /* where it is written, as long as a is */
const char *dt_staging_out(const dt_staging *a);  /* what it will be called, without slashes at the end */
/* Gives it its name; its content is flushed already. Still to be closed. DT_EINVAL (another process has put
 * something there meanwhile, or has taken OUT.partial away), DT_EIO. */
dt_status dt_staging_commit(dt_staging *a) DT_NODISCARD;
void dt_staging_close(dt_staging *a); /* without a commit nothing is left; NULL is fine; the error record stays */

#endif
