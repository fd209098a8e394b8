/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "base/call_watch.h"

_Thread_local dt_call_slot *dt_call_here;
atomic_bool dt_call_has_pulsed;
