/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin that must not be opened: it leaves a mark when the dynamic loader loads it, before its descriptor is read.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void leave_mark(void)
{
    const char *path = getenv("INTRUDER_MARK");
    const int fd = path != NULL ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (fd >= 0) {
        close(fd);
    }
}
