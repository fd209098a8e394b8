/* SPDX-License-Identifier: Apache-2.0
 *
 * Is this a shared object that the dynamic loader can be given? It trusts what it opens: a damaged header, segment,
 * table of symbols, versions or relocations makes it read and write anywhere, and a cut file kills the process where
 * a page of its mapping has no file backing. What it follows before the first line of the plugin's own code runs is
 * followed here first, within the bytes. What the code then does is not checked: a plugin is trusted once opened.
 * Sources: System V ABI, chapters 4 and 5; the GNU extensions as glibc 2.36 reads them (elf/dl-load.c, dl-lookup.c,
 * dl-version.c, dl-reloc.c). Bounded: reads no byte outside, allocates nothing, linear in n but for hash chains, whose
 * steps are counted. Threads: any.
 */
#ifndef DTRAIN_CORE_PLUGIN_LOADER_ELF_H
#define DTRAIN_CORE_PLUGIN_LOADER_ELF_H

#include "dtrain/status.h"

#include <stddef.h>
#include <stdint.h>

/* A whole file's bytes, of any origin: this is what a fuzzer calls. DT_EPLUGIN with the reason, without the file's
 * name. */
dt_status dt_elf_check(const uint8_t *bytes, size_t n) DT_NODISCARD;

#endif
