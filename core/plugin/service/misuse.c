/* SPDX-License-Identifier: Apache-2.0
 *
 * What a callback did wrong in a call that returns no status: stage.c lets the callback fail after it returned.
 */
#include <config.h>

#include "plugin/service/stage.h"

#include "base/err.h"

#include <stdio.h>

void dt_stage_keep_misuse(dt_stage *s)
{
    if (s->misuse == DT_OK) {
        s->misuse = dt_error_status();
        (void)snprintf(s->misuse_text, sizeof(s->misuse_text), "%s", dt_error_text());
    }
}
