/* SPDX-License-Identifier: Apache-2.0
 *
 * See apart.h.
 */
#include <config.h>

#include "host/apart.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void dt_apart_say(dt_apart *a, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t n = write(a->fd, text, bytes);
        if (n < 0 && errno != EINTR) {
            return;
        }
        text += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
}

/* Takes what comes until the other side is done (true), or has shown no life for timeout_s. */
static bool listen_to(const dt_apart *a, int fd, double timeout_s, dt_str *out)
{
    unsigned beat = atomic_load(&a->beat);
    double since = dt_clock_s();
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        char text[1024];
        const ssize_t n = poll(&p, 1, 20) > 0 ? read(fd, text, sizeof(text)) : -1;
        if (n == 0) {
            return true;
        }
        if (n > 0) {
            dt_str_add_n(out, text, (size_t)n);
        }
        if (n > 0 || atomic_load(&a->beat) != beat) {
            beat = atomic_load(&a->beat);
            since = dt_clock_s();
        } else if (dt_clock_s() - since > timeout_s) {
            return false;
        }
    }
}

static dt_status end_of(pid_t pid, bool is_done, double timeout_s)
{
    int status = 0;
    if (!is_done) {
        kill(pid, SIGKILL);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!is_done) {
        return DT_FAIL(DT_EIO, "it did not return within %g s", timeout_s);
    }
    if (WIFSIGNALED(status)) {
        return DT_FAIL(DT_EIO, "it was killed by signal %d, %s", WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    return WEXITSTATUS(status) == 0 ? DT_OK : DT_FAIL(DT_EIO, "it ended the process with code %d", WEXITSTATUS(status));
}

dt_status dt_apart_do(void (*work)(void *user, dt_apart *a), void *user, double timeout_s, dt_str *out,
                      uint32_t count_p[4])
{
    int pair[2] = {-1, -1};
    dt_apart *a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(NULL); /* else the copy would write what is buffered once more */
    const pid_t pid = a != MAP_FAILED && pipe2(pair, O_CLOEXEC) == 0 ? fork() : -1;
    if (pid == 0) {
        a->fd = pair[1];
        work(user, a);
        _exit(0);
    }
    dt_status st = DT_OK;
    if (pid < 0) {
        st = DT_FAIL(DT_EUNSUPPORTED, "cannot start a process: %s", strerror(errno));
    }
    if (pair[1] >= 0) {
        close(pair[1]);
    }
    if (pid > 0) {
        const bool is_done = listen_to(a, pair[0], timeout_s, out);
        st = end_of(pid, is_done, timeout_s);
        memcpy(count_p, a->count, sizeof(a->count));
    }
    if (pair[0] >= 0) {
        close(pair[0]);
    }
    if (a != MAP_FAILED) {
        munmap(a, sizeof(*a));
    }
    return st;
}
