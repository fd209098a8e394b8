# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/collective/test_board tests/collective/test_comm tests/collective/test_cost \
	tests/collective/test_peers tests/collective/test_stood tests/collective/test_tree \
	tests/collective/test_tree_shape tests/collective/test_world
# a simulated world of ranks: clock, links, losses and failures
world_sources = tests/collective/world.c tests/collective/world.h tests/collective/links.c tests/collective/links.h
tests_collective_test_world_SOURCES = tests/collective/test_world.c tests/collective/calls.c tests/collective/calls.h \
	$(world_sources)
tests_collective_test_cost_SOURCES = tests/collective/test_cost.c $(world_sources)
tests_collective_test_comm_SOURCES = tests/collective/test_comm.c tests/collective/calls.c tests/collective/calls.h
dt_scripts += tests/collective/mpi.sh tests/collective/faults.sh tests/collective/nccl_header.sh
EXTRA_DIST += tests/mpi_job.sh
if HAVE_MPI
EXTRA_PROGRAMS += tests/collective/processes
tests_collective_processes_SOURCES = tests/collective/processes.c tests/collective/calls.c tests/collective/calls.h
tests_collective_processes_LDADD = core/libdtcore.la
tests/collective/mpi.log: tests/collective/processes$(EXEEXT)
CLEANFILES += tests/collective/processes$(EXEEXT)
endif

# 300 seeds in every check, 10,000 behind check-faults
EXTRA_PROGRAMS += tests/collective/faults
tests_collective_faults_SOURCES = tests/collective/faults.c $(world_sources)
tests_collective_faults_LDADD = core/libdtcore.la
tests/collective/faults.log: tests/collective/faults$(EXEEXT)
CLEANFILES += tests/collective/faults$(EXEEXT)
.PHONY: check-faults
check-faults: tests/collective/faults$(EXEEXT)
	tests/collective/faults$(EXEEXT) 1 10000
