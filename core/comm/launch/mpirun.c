/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "comm/launch/mpirun.h"

#include "base/err.h"
#include "base/mem.h"
#include "comm/board.h"
#include "comm/launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { MOST_WORDS = 64 }; /* of the launcher's own */

static bool is_on_path(const char *name)
{
    const char *p = getenv("PATH");
    char path[PATH_MAX];
    while (p != NULL && *p != '\0') {
        const size_t n = strcspn(p, ":");
        snprintf(path, sizeof(path), "%.*s/%s", (int)n, p, name);
        if (n > 0 && access(path, X_OK) == 0) {
            return true;
        }
        p += n + (p[n] == ':');
    }
    return false;
}

/* mpirun keeps its own files there, and reports little when it cannot. */
static dt_status check_tmpdir(void)
{
    const char *dir = getenv("TMPDIR");
    if (dir == NULL || dir[0] == '\0' || access(dir, W_OK | X_OK) == 0) {
        return DT_OK;
    }
    return DT_FAIL(DT_EUNSUPPORTED,
                   "TMPDIR is %s, where mpirun cannot keep its files: %s; name a folder of this machine", dir,
                   strerror(errno));
}

/* mpirun talks to the other machines by TCP, and by default misses one that is gone for eight minutes. What the user
 * has set stays; names of Open MPI 4 and of 5. */
dt_status dt_mpirun_watch_machines(void)
{
    static const char *const words[][2] = {
        {"OMPI_MCA_oob_tcp_keepalive_time", "3"},   {"OMPI_MCA_oob_tcp_keepalive_intvl", "1"},
        {"OMPI_MCA_oob_tcp_keepalive_probes", "4"}, {"PRTE_MCA_oob_tcp_keepalive_time", "3"},
        {"PRTE_MCA_oob_tcp_keepalive_intvl", "1"},  {"PRTE_MCA_oob_tcp_keepalive_probes", "4"}};
    bool is_set = true;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        is_set = is_set && setenv(words[i][0], words[i][1], 0) == 0;
    }
    return is_set ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory");
}

dt_status dt_mpirun_check(void)
{
    if (!is_on_path("mpirun")) {
        return DT_FAIL(DT_EUNSUPPORTED,
                       "--nproc needs mpirun, which is not on the PATH: install Open MPI (Debian: apt-get install "
                       "openmpi-bin), or train with one process, which uses all cores by threads");
    }
    return check_tmpdir();
}

static void append_word(const char **word, uint32_t *n, const char *text)
{
    word[(*n)++] = text;
}

/* mpirun's own words. More processes than cores are what the user requested; mpirun rejects root without an option, and
 * starting dtrain as root was a decision. */
static uint32_t append_launcher_words(const dt_mpirun_desc *d, char count[16], const char **word)
{
    uint32_t n = 0;
    snprintf(count, 16, "%u", d->n);
    append_word(word, &n, "mpirun");
    append_word(word, &n, "-n");
    append_word(word, &n, count);
    append_word(word, &n, "--bind-to");
    append_word(word, &n, "none");
    if (geteuid() == 0) {
        append_word(word, &n, "--allow-run-as-root");
    }
    if (d->hostfile != NULL) {
        append_word(word, &n, "--hostfile");
        append_word(word, &n, d->hostfile);
        if (d->fills_hosts) {
            append_word(word, &n, "--map-by");
            append_word(word, &n, "slot");
        }
        append_word(word, &n, "-x");
        append_word(word, &n, DT_BOARD_ENV);
        append_word(word, &n, "-x");
        append_word(word, &n, DT_LAUNCH_WORDS);
    } else {
        append_word(word, &n, "--oversubscribe");
    }
    append_word(word, &n, d->program);
    return n;
}

static dt_status build_command(const dt_mpirun_desc *d, char count[16], const char ***out_p)
{
    const char **word = dt_alloc_n(d->n_arg + (size_t)MOST_WORDS, sizeof(*word));
    if (word == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a command line");
    }
    uint32_t n = append_launcher_words(d, count, word);
    for (uint32_t i = 0; i < d->n_arg; i++) {
        append_word(word, &n, d->arg[i]);
    }
    if (d->resume != NULL) {
        append_word(word, &n, "--resume");
        if (d->resume[0] != '\0') {
            append_word(word, &n, d->resume);
        }
    }
    *out_p = word;
    return DT_OK;
}

/* In the new process: a group of its own, so that the terminal's ^C comes to the launcher alone, and an end with it. */
static void exec_mpirun(const char **word, int err, pid_t launcher)
{
    static const int usual[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE, SIGXFSZ};
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        signal(usual[i], SIG_DFL);
    }
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != launcher) {
        _exit(127); /* it has ended before it could be asked for a signal at its end */
    }
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
    }
    dup2(err, STDERR_FILENO);
    execvp(word[0], (char *const *)word);
    _exit(127);
}

dt_status dt_mpirun_start(const dt_mpirun_desc *d, pid_t *pid_p, int *err_p)
{
    const char **word = NULL;
    char count[16];
    int end[2];
    DT_TRY(build_command(d, count, &word));
    if (pipe2(end, O_CLOEXEC) != 0) {
        dt_free(word);
        return DT_FAIL(DT_EIO, "cannot make a pipe: %s", strerror(errno));
    }
    fflush(NULL);
    const pid_t launcher = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
        exec_mpirun(word, end[1], launcher);
    }
    close(end[1]);
    dt_free(word);
    if (pid < 0) {
        close(end[0]);
        return DT_FAIL(DT_EIO, "cannot start mpirun: %s", strerror(errno));
    }
    *pid_p = pid;
    *err_p = end[0];
    return DT_OK;
}

dt_status dt_mpirun_probe(const char *hostfile, pid_t *pid_p)
{
    const bool is_root = geteuid() == 0;
    const char *word[] = {
        "mpirun", "-n", "1", "--hostfile", hostfile, is_root ? "--allow-run-as-root" : "true", is_root ? "true" : NULL,
        NULL};
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    fflush(NULL);
    const pid_t launcher = getpid(), pid = null >= 0 ? fork() : -1;
    if (pid == 0) {
        dup2(null, STDOUT_FILENO);
        exec_mpirun(word, null, launcher);
    }
    if (null >= 0) {
        close(null);
    }
    if (pid < 0) {
        return DT_FAIL(DT_EIO, "cannot start mpirun: %s", strerror(errno));
    }
    *pid_p = pid;
    return DT_OK;
}
