/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports that plugins hand over, before anything reads them. Threads: any.
 */
#ifndef DTRAIN_CORE_ENGINE_TENSOR_PORT_H
#define DTRAIN_CORE_ENGINE_TENSOR_PORT_H

#include "dtrain/plugin.h"

#include <stdbool.h>

enum { DT_PORT_MOST_DIMS = 127 }; /* bytes */

/* A list of n ports: names of DT_NAME_WORD, each once unless may_repeat; dims are tokens separated by one blank, each a
 * number of at least 1 (of optional ports 0), a symbol, or a symbol with +1; a dtype. Returns code with what is wrong,
 * as of "my_model" and its "input". */
dt_status dt_ports_check(dt_status code, const char *id, const char *what, const dt_port *port, uint32_t n,
                         bool may_repeat) DT_NODISCARD;

#endif
