/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "comm/launch/members.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "comm/launch/mpirun.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const double READ_S = 1, PROBE_S = 10; /* between looks at the hostfile; after which a probe has failed */

static void format_path(int fd, char path[64])
{
    snprintf(path, 64, "/proc/%ld/fd/%d", (long)getpid(), fd);
}

dt_status dt_members_init(const char *hostfile, dt_launch_range processes, dt_launch_range machines, dt_members *out)
{
    dt_members m = {.file = -1, .probe_file = -1, .read_s = dt_clock_s()};
    DT_TRY(dt_hosts_init(hostfile, processes, machines, &m.hosts));
    if (hostfile != NULL) {
        m.file = memfd_create("dtrain-hosts", MFD_CLOEXEC);
        m.probe_file = memfd_create("dtrain-probe", MFD_CLOEXEC);
        format_path(m.file, m.path);
    }
    if (hostfile != NULL && (m.file < 0 || m.probe_file < 0)) {
        const dt_status st = DT_FAIL(DT_EIO, "cannot make a file in memory for mpirun: %s", strerror(errno));
        dt_members_fini(&m);
        return st;
    }
    *out = m;
    return DT_OK;
}

/* mpirun, and what it started on this machine: they are a group. */
static void end_probe(dt_members *m)
{
    if (m->probe > 0) {
        kill(-m->probe, SIGKILL);
        waitpid(m->probe, NULL, 0);
        m->probe = 0;
    }
}

void dt_members_fini(dt_members *m)
{
    end_probe(m);
    dt_hosts_fini(&m->hosts);
    if (m->file >= 0) {
        close(m->file);
    }
    if (m->probe_file >= 0) {
        close(m->probe_file);
    }
}

static void read_hostfile(dt_members *m, double now)
{
    m->read_s = now;
    const bool is_unreadable = dt_hosts_read_again(&m->hosts, now) < 0;
    if (is_unreadable && !m->is_unreadable) {
        dt_log(DT_LOG_WARN, "the hosts stay as they were: %s", dt_error_text());
    }
    m->is_unreadable = is_unreadable;
    dt_error_clear();
}

static void finish_probe(dt_members *m, bool is_there, double now)
{
    const char *name = m->hosts.host[m->probed].line.name;
    m->probe = 0;
    dt_hosts_set_probed(&m->hosts, m->probed, is_there, now);
    if (is_there) {
        dt_log(DT_LOG_INFO, "host %s can be reached", name);
    } else if (m->hosts.host[m->probed].wait.wait_s < 2) { /* the first time */
        dt_log(DT_LOG_WARN, "host %s cannot be reached: it is left out until it can", name);
    }
}

static void update_probe(dt_members *m, double now)
{
    int status = 0;
    if (m->probe > 0 && waitpid(m->probe, &status, WNOHANG) == m->probe) {
        finish_probe(m, WIFEXITED(status) && WEXITSTATUS(status) == 0, now);
    } else if (m->probe > 0 && now - m->probe_s > PROBE_S) {
        end_probe(m);
        finish_probe(m, false, now);
    }
    const uint32_t i = m->probe > 0 ? UINT32_MAX : dt_hosts_find_probe(&m->hosts, now);
    if (i == UINT32_MAX) {
        return;
    }
    char path[64];
    format_path(m->probe_file, path);
    m->probed = i;
    m->probe_s = now;
    if (dt_hosts_write_one(&m->hosts, i, m->probe_file) < 0 || dt_mpirun_probe(path, &m->probe) < 0) {
        dt_log(DT_LOG_WARN, "%s", dt_error_text());
        dt_error_clear();
        finish_probe(m, false, now);
    }
}

void dt_members_update(dt_members *m)
{
    const double now = dt_clock_s();
    if (m->hosts.hostfile == NULL) {
        return;
    }
    if (now - m->read_s > READ_S) {
        read_hostfile(m, now);
    }
    update_probe(m, now);
}

bool dt_members_are_probed(const dt_members *m)
{
    return m->probe > 0 || dt_hosts_find_probe(&m->hosts, dt_clock_s()) != UINT32_MAX;
}

dt_status dt_members_choose(dt_members *m, uint32_t *n_p)
{
    const uint32_t n = dt_hosts_choose(&m->hosts, dt_clock_s());
    DT_TRY(n > 0 && m->hosts.hostfile != NULL ? dt_hosts_write(&m->hosts, m->file) : DT_OK);
    *n_p = n;
    return DT_OK;
}
