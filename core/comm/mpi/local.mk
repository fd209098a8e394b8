# SPDX-License-Identifier: Apache-2.0
# The module for MPI, opened where a run has several processes. It sees the headers of core but none of its code.
EXTRA_DIST += core/comm/mpi/module.c
if HAVE_MPI
module_LTLIBRARIES += core/comm/mpi/comm_mpi.la
core_comm_mpi_comm_mpi_la_SOURCES = core/comm/mpi/module.c core/comm/transport.h
core_comm_mpi_comm_mpi_la_CPPFLAGS = -I$(top_srcdir)/include -I$(top_srcdir)/core $(MPI_CPPFLAGS)
core_comm_mpi_comm_mpi_la_CFLAGS = $(AM_CFLAGS)
core_comm_mpi_comm_mpi_la_LDFLAGS = -module -avoid-version -shared -no-undefined $(DT_ZDEFS) $(DT_SAN) \
	-export-symbols-regex '^dt_transport_module$$'
core_comm_mpi_comm_mpi_la_LIBADD = $(MPI_LIBS)
endif
