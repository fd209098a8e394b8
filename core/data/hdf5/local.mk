# SPDX-License-Identifier: Apache-2.0
# The module for HDF5, opened where such a file is read or written. It sees the headers of core but none of its code.
EXTRA_DIST += core/data/hdf5/module.c
if HAVE_HDF5
module_LTLIBRARIES += core/data/hdf5/data_hdf5.la
core_data_hdf5_data_hdf5_la_SOURCES = core/data/hdf5/module.c core/data/hdf5_file.h
core_data_hdf5_data_hdf5_la_CPPFLAGS = -I$(top_srcdir)/include -I$(top_srcdir)/core $(HDF5_CFLAGS)
core_data_hdf5_data_hdf5_la_CFLAGS = $(AM_CFLAGS)
core_data_hdf5_data_hdf5_la_LDFLAGS = -module -avoid-version -shared -no-undefined $(DT_ZDEFS) $(DT_SAN) \
	-export-symbols-regex '^dt_hdf5_module$$'
core_data_hdf5_data_hdf5_la_LIBADD = $(HDF5_LIBS)
endif
