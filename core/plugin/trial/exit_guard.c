/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plugin/trial/exit_guard.h"

#include "base/log.h"
#include "base/exit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile bool is_up;

static void fail_process_exit(void)
{
    if (is_up) {
        is_up = false;
        dt_log(DT_LOG_ERROR,
               "a plugin ended the process by exit(), which plugins must not call: a plugin returns a status. "
               "Checkpoints are as they were saved; dtrain check FILE names the call");
        fflush(NULL);
        _exit(DT_EXIT_PLUGIN);
    }
}

void dt_exit_guard_enable(void)
{
    static bool is_registered;
    if (!is_registered && atexit(fail_process_exit) == 0) {
        is_registered = true;
    }
    is_up = true;
}

void dt_exit_guard_disable(void)
{
    is_up = false;
}
