/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of several processes, as the command line sees it: the launcher's part (--nproc), and a process that mpirun or
 * srun started. Only rank 0 speaks; the others write their own logs. Threads: [main].
 */
#ifndef DTRAIN_CORE_RUN_RANK_PROCESSES_H
#define DTRAIN_CORE_RUN_RANK_PROCESSES_H

#include "comm/launch/hosts.h"
#include "comm/processes.h"
#include "run/args.h"
#include "run/session.h"

/* "4" or "2:4" of --nproc and --nnodes; NULL: 0, 0. DT_ECONFIG. */
dt_status dt_processes_parse_range(const char *option, const char *text, dt_launch_range *out) DT_NODISCARD;
/* --nproc and --nnodes in a process that was started alone: supervises others until the run is over. */
dt_status dt_processes_launch(const dt_args *a, dt_launch_range processes, dt_launch_range machines, int *code_p)
    DT_NODISCARD;
/* Started by the launcher, with a number of processes that may change. */
bool dt_processes_may_vary(void);
/* How few that may be; 0: it does not change. */
uint32_t dt_processes_minimum(void);
/* Options of the launcher in a process that launches nothing. DT_ECONFIG: there are some. */
dt_status dt_processes_reject_single(const dt_args *a) DT_NODISCARD;
/* Joins the others, and checks that what is sent arrives; *out_p stays NULL where this process is alone. n: of --nproc,
 * {0, 0}: not given. */
dt_status dt_processes_begin(const dt_launch *l, dt_launch_range n, dt_comm **out_p) DT_NODISCARD;
/* All ranks were passed the same: program, plugins, configuration, steps, folders; else they would train to
 * what was not requested. And all
 * compute alike: device, arithmetic class, products in bf16; else their weights would drift apart.
 * [collective] Errors: DT_ECONFIG, on all of them, naming a rank and what differs. */
dt_status dt_processes_check_same_launch(dt_comm *c, const dt_session *s, const dt_args *a, uint64_t max_steps)
    DT_NODISCARD;
/* What became of the run, in one voice; may end the process. c: NULL where it is alone. */
dt_status dt_processes_end(const dt_launch *l, dt_comm *c, dt_status st, int *code_p);
/* Of a command by which the run continues: what precedes the program's name, and follows its words. Both are empty
 * where the process is alone (c: NULL). */
void dt_processes_list_command_words(const dt_comm *c, char *before, size_t n_before, char *after, size_t n_after);
/* Of the log, for what went wrong: a rank that timed out may be the only one left to report it. */
int dt_processes_log_level(const dt_comm *c, dt_status st);

#endif
