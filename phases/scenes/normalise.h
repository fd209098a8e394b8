/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalisation of perception by its training recordings: its constants (traffic/ports.h) fitted once, before
 * the first step, to what features are like in the scenes of the training split (traffic/normalise.h). What came fitted
 * from a run before stays, as the weights after it were trained so. Threads: [main].
 */
#ifndef DTRAIN_PHASES_SCENES_NORMALISE_H
#define DTRAIN_PHASES_SCENES_NORMALISE_H

#include "prediction.h"

/* [collective] Before the first step, once weights of other runs are loaded. data: what is trained on. is_forced: also
 * where perception came fitted. A perception without these constants is left alone. Errors: DT_ECONFIG (is_forced, and
 * perception is frozen or has no constants), DT_EUNSUPPORTED (the data has no statistics of its features, or the host
 * does not), the data's error. */
dt_status normalise_fit(const prediction *p, const dt_train_api *train, dt_train *t, const dt_data *data,
                        int is_forced);

#endif
