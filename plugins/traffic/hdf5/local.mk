# SPDX-License-Identifier: Apache-2.0
# The module for HDF5, opened where such a file is read or written. It sees the headers of core but none of its code.
EXTRA_DIST += plugins/traffic/hdf5/module.c
if HAVE_HDF5
module_LTLIBRARIES += plugins/traffic/hdf5/data_hdf5.la
plugins_traffic_hdf5_data_hdf5_la_SOURCES = plugins/traffic/hdf5/module.c plugins/traffic/hdf5/hdf5_file.h
plugins_traffic_hdf5_data_hdf5_la_CPPFLAGS = -I$(top_srcdir)/include -I$(top_srcdir)/core -I$(top_srcdir)/plugins $(HDF5_CFLAGS)
plugins_traffic_hdf5_data_hdf5_la_CFLAGS = $(AM_CFLAGS)
plugins_traffic_hdf5_data_hdf5_la_LDFLAGS = -module -avoid-version -shared -no-undefined $(DT_ZDEFS) $(DT_SAN) \
	-export-symbols-regex '^dt_hdf5_module$$'
plugins_traffic_hdf5_data_hdf5_la_LIBADD = $(HDF5_LIBS)
endif
