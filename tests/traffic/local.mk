# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/traffic/test_staging tests/traffic/test_csv tests/traffic/test_cut tests/traffic/test_elements tests/traffic/test_export_table tests/traffic/test_feature_stats tests/traffic/test_features tests/traffic/test_foresight tests/traffic/test_hdf5 \
	tests/traffic/test_import tests/traffic/test_import_chunks tests/traffic/test_import_commonroad tests/traffic/test_import_fcd tests/traffic/test_import_formats \
	tests/traffic/test_import_jobs tests/traffic/test_import_numpy tests/traffic/test_import_threads \
	tests/traffic/test_map_reader tests/traffic/test_names tests/traffic/test_normalisation tests/traffic/test_npy tests/traffic/test_packed tests/traffic/test_pairs \
	tests/traffic/test_merge_split tests/traffic/test_roadnet tests/traffic/test_roads tests/traffic/test_smooth tests/traffic/test_sort tests/traffic/test_store
EXTRA_DIST += tests/traffic/test_hdf5_foreign.c tests/traffic/damage.h tests/numbers.h tests/traffic/documented.h tests/traffic/elements.txt tests/traffic/fixture.h tests/traffic/import_rig.h tests/traffic/town.h
if HAVE_HDF5
EXTRA_tests_traffic_test_hdf5_DEPENDENCIES = plugins/traffic/hdf5/data_hdf5.la
dt_tests += tests/traffic/test_hdf5_foreign
tests_traffic_test_hdf5_foreign_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_traffic_test_hdf5_foreign_LDADD = $(LDADD) $(HDF5_LIBS)
EXTRA_tests_traffic_test_hdf5_foreign_DEPENDENCIES = plugins/traffic/hdf5/data_hdf5.la
endif
