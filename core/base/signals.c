/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "base/signals.h"

#include "base/clock.h"
#include "base/exit.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static atomic_int stop_signal;
static atomic_int save_wanted;
static atomic_bool leaves_at_once, hands_on, stands;
static atomic_int n_stops;
static _Atomic double continued_s;

static void handle_stop_signal(int number)
{
    static const char text[] =
        "\ndtrain: stopping after this step and saving; press Ctrl-C again to exit immediately\n";
    int none = 0;
    atomic_fetch_add(&n_stops, 1);
    if (atomic_load(&hands_on)) {
        atomic_store(&stop_signal, number);
        return;
    }
    if (!atomic_compare_exchange_strong(&stop_signal, &none, number)) {
        _exit(128 + number);
    }
    if (atomic_load(&leaves_at_once)) {
        _exit(atomic_load(&stands) ? DT_EXIT_INTERRUPTED : 128 + number);
    }
    if (isatty(STDERR_FILENO)) {
        ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
        (void)ignored;
    }
}

/* A terminal that closes may signal it twice, by itself and by its shell: the second time does not request an immediate
 * stop. */
static void handle_hangup_signal(int number)
{
    if (atomic_load(&stop_signal) == 0 || atomic_load(&hands_on)) {
        handle_stop_signal(number);
    }
}

/* Ignored under nohup. */
static void install_hangup(void)
{
    struct sigaction a;
    if (sigaction(SIGHUP, NULL, &a) == 0 && a.sa_handler != SIG_IGN) {
        memset(&a, 0, sizeof(a));
        sigemptyset(&a.sa_mask);
        a.sa_flags = SA_RESTART;
        a.sa_handler = handle_hangup_signal;
        sigaction(SIGHUP, &a, NULL);
    }
}

static void handle_save_signal(int number)
{
    atomic_store(&save_wanted, 1);
}

static void handle_continue_signal(int number)
{
    atomic_store(&continued_s, dt_clock_s());
}

void dt_signals_install(void)
{
    struct sigaction a;
    memset(&a, 0, sizeof(a));
    sigemptyset(&a.sa_mask);
    a.sa_flags = SA_RESTART;
    a.sa_handler = handle_stop_signal;
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGUSR2, &a, NULL);
    install_hangup();
    a.sa_handler = handle_save_signal;
    sigaction(SIGUSR1, &a, NULL);
    a.sa_handler = handle_continue_signal;
    sigaction(SIGCONT, &a, NULL);
    a.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &a, NULL);
}

void dt_signals_set_nothing_to_save(bool is_so)
{
    atomic_store(&leaves_at_once, is_so);
}

void dt_signals_mark_saved(void)
{
    atomic_store(&stands, true);
}

void dt_signals_forward(void)
{
    atomic_store(&hands_on, true);
    install_hangup(); /* a process that forwards signals outlives the terminal as long as the others need */
}

int dt_signals_stop_count(void)
{
    return atomic_load(&n_stops);
}

int dt_signals_stop(void)
{
    return atomic_load(&stop_signal);
}

bool dt_signals_take_save_request(void)
{
    return atomic_exchange(&save_wanted, 0) != 0;
}

double dt_signals_continued_s(void)
{
    return atomic_load(&continued_s);
}
