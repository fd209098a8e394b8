/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plugin must never do, put into each of the plugins here by -DMISBEHAVE=n: `dtrain check` has to say so.
 *   1 ends the process   2 crashes   3 never returns   4 writes behind its own memory
 */
#ifndef THIRD_PARTY_MISBEHAVE_H
#define THIRD_PARTY_MISBEHAVE_H

#include <stdlib.h>
#ifndef MISBEHAVE
#    define MISBEHAVE 0
#endif

/* own: memory that the host gave, of so many bytes */
static inline void misbehave(void *own, size_t bytes)
{
    volatile char *behind = (volatile char *)own + bytes;
    volatile int forever = MISBEHAVE == 3;
    if (MISBEHAVE == 1) {
        exit(0);
    }
    if (MISBEHAVE == 2) {
        abort();
    }
    while (forever) {
    }
    if (MISBEHAVE == 4) {
        behind[16] = 1;
    }
}

#endif
