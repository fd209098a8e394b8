# SPDX-License-Identifier: Apache-2.0
# For scripts that run several processes: `. "$DT_SRCDIR/tests/mpi_job.sh"`, then `mpi N PROGRAM ...`. Skips, and says
# why, where this build or this machine has no MPI.
# shellcheck shell=sh

mpi_build=${DT_BUILDDIR:-.}
if [ ! -e "$mpi_build/core/comm/mpi/.libs/comm_mpi.so" ]; then
    echo "skipped: built without MPI (Debian: apt-get install libopenmpi-dev openmpi-bin)"
    exit 77
fi
if ! command -v mpirun >/dev/null; then
    echo "skipped: no mpirun here (Debian: apt-get install openmpi-bin)"
    exit 77
fi
if grep -q -e '-fsanitize=thread' "$mpi_build/config.status"; then
    echo "skipped: ThreadSanitizer does not know the locks of the MPI library"
    exit 77
fi

# Root is refused by mpirun unless it is allowed twice; more processes than cores are wanted here. On one machine nothing
# needs a network.
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_pml=ob1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe
export OMPI_MCA_hwloc_base_binding_policy OMPI_MCA_btl OMPI_MCA_btl_vader_single_copy_mechanism OMPI_MCA_pml
# the library keeps what it has until the process ends
LSAN_OPTIONS=${LSAN_OPTIONS:-}${LSAN_OPTIONS:+:}detect_leaks=0
export LSAN_OPTIONS
mpi_timeout=${mpi_timeout:-120}

# some places forbid what mpirun needs to start anything: that is theirs
if ! mpi_said=$(timeout -k 5 60 mpirun -q -n 2 true 2>&1); then
    echo "skipped: mpirun cannot start two processes here: $mpi_said"
    exit 77
fi

mpi() { # processes program...
    mpi_n=$1
    shift
    timeout -k 5 "$mpi_timeout" mpirun -q -n "$mpi_n" "$@"
}
