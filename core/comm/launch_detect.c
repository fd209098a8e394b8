/* SPDX-License-Identifier: Apache-2.0
 *
 * The launcher of this process, and the module for MPI; see processes.h.
 */
#include <config.h>

#include "comm/processes.h"

#include "base/err.h"
#include "base/module.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PROCESSES = 1 << 20 };

static bool read_number(const char *name, uint32_t *out_p)
{
    const char *text = getenv(name);
    int64_t v = 0;
    if (text == NULL || !dt_parse_i64(text, &v) || v < 0 || v > MOST_PROCESSES) {
        return false;
    }
    *out_p = (uint32_t)v;
    return true;
}

bool dt_launch_detect(dt_launch *out)
{
    static const struct {
        const char *size, *rank, *by;
    } known[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpirun"},
                 {"PMI_SIZE", "PMI_RANK", "mpirun"},
                 {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun"}};
    *out = (dt_launch){.size = 1, .is_supervised = getenv(DT_BOARD_ENV) != NULL};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        uint32_t size = 0;
        if (read_number(known[i].size, &size) && (size > 1 || (size == 1 && out->is_supervised))) {
            out->size = size;
            out->by = known[i].by;
            (void)read_number(known[i].rank, &out->rank);
            out->local_rank = out->rank;
            if (i == 0 && read_number("OMPI_COMM_WORLD_LOCAL_SIZE", &out->n_local)) {
                (void)read_number("OMPI_COMM_WORLD_LOCAL_RANK", &out->local_rank);
            }
            return true;
        }
    }
    out->is_supervised = false;
    return false;
}

static const dt_transport_host host_table = {.struct_size = sizeof(host_table), .fail = dt_fail};

dt_status dt_processes_join(const dt_launch *l, dt_comm **out_p)
{
    const dt_module_desc d = {
        .file = "comm_mpi.so",
        .build = "core/comm/mpi",
        .entry = DT_TRANSPORT_ENTRY,
        .what = "MPI",
        .if_none =
            "build it with Open MPI installed (Debian: apt-get install libopenmpi-dev openmpi-bin, then configure "
            "again), or start one process",
        .if_wrong = "install the MPI that it was built with (Debian: apt-get install openmpi-bin), or build dtrain "
                    "with the one installed here"};
    dt_transport_module_fn *entry = NULL;
    DT_TRY(dt_module_open(&d, (void **)(void *)&entry));
    const dt_transport_ops *t = entry(&host_table);
    if (t == NULL || t->version != DT_TRANSPORT_VERSION || t->struct_size != sizeof(*t)) {
        return DT_FAIL(DT_EUNSUPPORTED, "%s belongs to another build of dtrain (version %u, this program expects %d)",
                       d.file, t != NULL ? t->version : 0, DT_TRANSPORT_VERSION);
    }
    return dt_processes_create(t, l, out_p);
}
