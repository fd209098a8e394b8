#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What sums.sh does on virtual ranks, on processes: there the library that sums is MPI's.
. "${DT_SRCDIR:?}/tests/mpi_job.sh"
unset OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_binding_policy # of the launcher, which knows
DT_SUMS_BACKEND=mpi
export DT_SUMS_BACKEND
. "$DT_SRCDIR/tests/run/sums.sh"
