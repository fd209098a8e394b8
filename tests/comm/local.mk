# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/comm/test_board tests/comm/test_comm tests/comm/test_cost \
	tests/comm/test_peers tests/comm/test_suspension tests/comm/test_tree \
	tests/comm/test_tree_shape tests/comm/test_world
# a simulated world of ranks: clock, links, losses and failures
world_sources = tests/comm/world.c tests/comm/world.h tests/comm/links.c tests/comm/links.h
tests_comm_test_world_SOURCES = tests/comm/test_world.c tests/comm/calls.c tests/comm/calls.h \
	$(world_sources)
tests_comm_test_cost_SOURCES = tests/comm/test_cost.c $(world_sources)
tests_comm_test_comm_SOURCES = tests/comm/test_comm.c tests/comm/calls.c tests/comm/calls.h
dt_scripts += tests/comm/mpi.sh tests/comm/faults.sh tests/comm/nccl_header.sh
EXTRA_DIST += tests/mpi_job.sh tests/check.inc
if HAVE_MPI
EXTRA_PROGRAMS += tests/comm/processes
tests_comm_processes_SOURCES = tests/comm/processes.c tests/comm/calls.c tests/comm/calls.h
tests_comm_processes_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la
tests/comm/mpi.log: tests/comm/processes$(EXEEXT)
CLEANFILES += tests/comm/processes$(EXEEXT)
endif

# 300 seeds in every check, 10,000 behind check-faults
EXTRA_PROGRAMS += tests/comm/faults
tests_comm_faults_SOURCES = tests/comm/faults.c $(world_sources)
tests_comm_faults_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la
tests/comm/faults.log: tests/comm/faults$(EXEEXT)
CLEANFILES += tests/comm/faults$(EXEEXT)
.PHONY: check-faults
check-faults: tests/comm/faults$(EXEEXT)
	tests/comm/faults$(EXEEXT) 1 10000
