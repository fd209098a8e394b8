/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "comm/suspension.h"

#include "base/signals.h"

#include <stdio.h>

static const double LEAST_S = 1; /* less is ignored, since Slurm sends SIGCONT to processes it never stopped */

double dt_suspension_check(dt_suspension *s, double now)
{
    const double went_on = dt_signals_continued_s(), since = s->seen_s;
    s->seen_s = now;
    if (since <= 0 || went_on - since < LEAST_S) {
        return 0;
    }
    s->for_s += went_on - since;
    s->until_s = went_on;
    return went_on - since;
}

void dt_suspension_reset(dt_suspension *s)
{
    s->for_s = s->until_s = 0;
}

void dt_suspension_text(const dt_suspension *s, double now, char out[DT_SUSPENSION_TEXT_BYTES])
{
    out[0] = '\0';
    if (s->until_s > 0) {
        snprintf(out, DT_SUSPENSION_TEXT_BYTES,
                 "; this rank itself was stopped by a signal (SIGSTOP) for up to %.0f s, until %.1f s ago", s->for_s,
                 now - s->until_s);
    }
}
