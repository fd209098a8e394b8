/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that plugins get from the host (dt_host.alloc, release), counted: what they hold, and what of it nothing
 * has touched yet, because a plan that counts resident memory alone would not see it. What a plugin takes by malloc is
 * resident like everything else once it is touched, and belongs to no one in particular. Threads: any.
 */
#ifndef DTRAIN_CORE_PLUGIN_SERVICE_PLUGIN_MEMORY_H
#define DTRAIN_CORE_PLUGIN_SERVICE_PLUGIN_MEMORY_H

#include <stdint.h>

void *dt_plugin_alloc(uint64_t bytes); /* as dt_alloc */
void dt_plugin_release(void *p);       /* NULL is fine */

uint64_t dt_plugin_memory_bytes(void); /* bytes held by all plugins of this process */
/* Bytes of whole pages of them that are not resident. Cost: a system call per block above 256 KiB and 16 MiB of it. */
uint64_t dt_plugin_memory_untouched_bytes(void);

#endif
