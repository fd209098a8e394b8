/* SPDX-License-Identifier: Apache-2.0
 *
 * The program's entrance: verbs, messages and exit codes. The only place that prints an error.
 */
#include <config.h>

#include "cli/cli.h"
#include "cli/plugin_verbs.h"

#include "engine/backend/kernel.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mapping.h"
#include "base/print.h"
#include "comm/processes.h"
#include "plugin/service/env_worker.h"
#include "base/exit.h"
#include "plugin/trial/exit_guard.h"
#include "rl/env/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void set_log_level(const dt_args *a)
{
    const char *name = getenv("DTRAIN_LOG_LEVEL");
    const int level = name != NULL ? dt_log_level_parse(name) : -1;
    if (level >= 0) {
        dt_log_level_set(level);
    }
    if (a->quiet) {
        dt_log_level_set(DT_LOG_WARN);
    }
    if (a->verbose) {
        dt_log_level_set(DT_LOG_DEBUG);
    }
}

static int report_exit_status(dt_status st, int code)
{
    if (code == 0) { /* whatever came of a file that was cut meanwhile */
        const dt_status lost = dt_mapping_check(0);
        st = lost < 0 ? lost : st;
    }
    if (st < 0) {
        const int c = code != 0 ? code : dt_exit_code(st);
        const char *text = dt_error_text()[0] != '\0' ? dt_error_text() : dt_status_text(st);
        dt_log_lines(DT_LOG_ERROR, text);
        dt_log(DT_LOG_DEBUG, "%s at %s, exit code %d", dt_status_name(st), dt_error_where(), c);
        return c;
    }
    return code;
}

/* A stream that the caller closed would be the first file that is opened, and be written to. */
static void open_missing_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY); /* fd, the lowest; to use it fails */
        }
    }
}

static bool has_pipe_reader_closed(void)
{
    struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&p, 1, 0) > 0 && (p.revents & POLLERR) != 0;
}

/* What was printed has arrived, or the command failed, however well the rest went. A reader that leaves (| head) has
 * what it needs: the work is completed, and the exit code is that of the work. */
static dt_status close_output(void)
{
    const bool has_failed = ferror(stdout) != 0, is_left = has_pipe_reader_closed();
    errno = 0;
    if ((fclose(stdout) == 0 && !has_failed) || is_left) {
        return DT_OK;
    }
    return DT_FAIL(DT_EIO, "cannot write to standard output: %s",
                   errno != 0 ? strerror(errno) : "the last output is lost");
}

static int print_version(int argc, char **argv)
{
    dt_print("dtrain %s\n", PACKAGE_VERSION);
    return 0;
}

static int print_help(int argc, char **argv)
{
    dt_cli_help(NULL);
    return 0;
}

static int print_verb_help(int argc, char **argv)
{
    if (!dt_cli_is_verb(argv[2])) {
        return -1;
    }
    dt_cli_help(argv[2]);
    return 0;
}

static int complete_word(int argc, char **argv) /* what completions of shells call */
{
    return report_exit_status(dt_cli_complete(argv[2], argc == 4 ? argv[3] : ""), 0);
}

/* First words that are no verbs, with as many arguments as they take. -1: none of them. */
static int run_special_word(int argc, char **argv)
{
    static const struct {
        const char *word;
        int least, most;
        int (*call)(int argc, char **argv);
    } special[] = {{"--version", 2, 2, print_version}, {"--help", 2, INT_MAX, print_help},
                   {"-h", 2, INT_MAX, print_help},     {"help", 2, 2, print_help},
                   {"help", 3, 3, print_verb_help},    {"--complete", 3, 4, complete_word}};
    for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
        if (argc >= special[i].least && argc <= special[i].most && strcmp(argv[1], special[i].word) == 0) {
            return special[i].call(argc, argv);
        }
    }
    return -1;
}

static int run_command(int argc, char **argv)
{
    dt_args a;
    int code = 0;
    if (argc == 1) {
        dt_cli_help(NULL);
        return DT_EXIT_USAGE;
    }
    const int special = run_special_word(argc, argv);
    if (special >= 0) {
        return special;
    }
    dt_status st = dt_cli_parse(argc, argv, &a);
    if (st < 0) {
        return report_exit_status(st, DT_EXIT_USAGE);
    }
    if (a.help) {
        dt_cli_help(a.verb);
        return 0;
    }
    set_log_level(&a);
    dt_launch launch;
    if (!dt_cli_is_for_all(&a) && dt_launch_detect(&launch) && launch.rank > 0) {
        return 0; /* one process is enough for all other verbs, and rank 0 is there */
    }
    if (!dt_cli_is_free(&a)) { /* check ends as the plugin does that it tries */
        dt_crash_install();
    }
    st = dt_cpu_isa_check();
    if (st < 0) {
        return report_exit_status(st, 0);
    }
    st = dt_cli_call(&a, &code);
    return report_exit_status(st, code);
}

int main(int argc, char **argv)
{
    open_missing_streams();
    setlocale(LC_ALL, "C");
    dt_mapping_install_guard();
    if (argc == 2 && strcmp(argv[1], DT_PROCESS_VERB) == 0) {
        return dt_env_run_worker(NULL);
    }
    signal(SIGXFSZ, SIG_IGN); /* a limit of file sizes is an error of a write, as a full disk is */
    signal(SIGPIPE, SIG_IGN); /* close_output */
    dt_exit_guard_enable();
    const int code = run_command(argc, argv);
    dt_plugin_verbs_close();
    dt_exit_guard_disable();
    const dt_status st = close_output();
    return code == 0 && st < 0 ? report_exit_status(st, 0) : code;
}
