# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/data/test_aside tests/data/test_csv tests/data/test_cut tests/data/test_elements tests/data/test_export_table tests/data/test_feature_stats tests/data/test_features tests/data/test_hdf5 \
	tests/data/test_import tests/data/test_import_chunks tests/data/test_import_commonroad tests/data/test_import_fcd tests/data/test_import_formats \
	tests/data/test_import_jobs tests/data/test_import_numpy tests/data/test_import_threads \
	tests/data/test_map_in tests/data/test_names tests/data/test_normalisation tests/data/test_npy tests/data/test_packed tests/data/test_pairs \
	tests/data/test_parts tests/data/test_roads tests/data/test_smooth tests/data/test_sort tests/data/test_store
EXTRA_DIST += tests/data/test_hdf5_foreign.c tests/data/damage.h tests/numbers.h tests/data/documented.h tests/data/elements.txt tests/data/fixture.h tests/data/import_rig.h tests/data/town.h
if HAVE_HDF5
EXTRA_tests_data_test_hdf5_DEPENDENCIES = core/data/hdf5/data_hdf5.la
dt_tests += tests/data/test_hdf5_foreign
tests_data_test_hdf5_foreign_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
tests_data_test_hdf5_foreign_LDADD = $(LDADD) $(HDF5_LIBS)
EXTRA_tests_data_test_hdf5_foreign_DEPENDENCIES = core/data/hdf5/data_hdf5.la
endif
