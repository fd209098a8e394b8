/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/child.h"

#include "base/err.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void exec_child(const dt_words *command, int out_fd, int err_fd, pid_t parent)
{
    static const int usual[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT, SIGPIPE, SIGXFSZ};
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        signal(usual[i], SIG_DFL);
    }
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(127); /* it ended before the signal at its end was requested */
    }
    if (out_fd >= 0) {
        (void)dup2(out_fd, STDOUT_FILENO);
    }
    if (err_fd >= 0) {
        (void)dup2(err_fd, STDERR_FILENO);
    }
    execv("/proc/self/exe", command->word);
    _exit(127);
}

dt_status dt_child_start(const dt_words *command, int out_fd, int err_fd, pid_t *pid_p)
{
    DT_TRY(dt_words_status(command));
    fflush(NULL);
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        exec_child(command, out_fd, err_fd, parent);
    }
    if (pid < 0) {
        return DT_FAIL(DT_EIO, "cannot start a process: %s", strerror(errno));
    }
    *pid_p = pid;
    return DT_OK;
}

bool dt_child_ended(pid_t pid, bool waits, int *code_p)
{
    int status = 0;
    pid_t got = 0;
    do {
        got = waitpid(pid, &status, waits ? 0 : WNOHANG);
    } while (got < 0 && errno == EINTR);
    if (got == 0) {
        return false;
    }
    *code_p = got < 0 ? 127 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
}
