# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/data/ahead.c core/data/ahead.h \
	core/data/arrays.def \
	core/data/aside.c core/data/aside.h \
	core/data/block_cache.c core/data/block_cache.h \
	core/data/blocks.c core/data/blocks.h \
	core/data/bounds.c core/data/bounds.h \
	core/data/chunks.h core/data/chunks_metadata.c core/data/chunks_statistics.c \
	core/data/columns.c core/data/columns.h \
	core/data/commonroad_map.c core/data/commonroad_map.h \
	core/data/csv.c core/data/csv.h \
	core/data/cut.c core/data/cut.h \
	core/data/export_table.c core/data/export_table.h \
	core/data/feature_stats.c core/data/feature_stats.h \
	core/data/normalisation.c core/data/normalisation.h \
	core/data/features.c core/data/features.h core/data/features_graph.c core/data/features_graph.h core/data/features_graph_set.h \
	core/data/hdf5_file.h core/data/hdf5_roads.c core/data/hdf5_roads.h core/data/hdf5_store.c core/data/hdf5_store.h \
	core/data/import.c core/data/import.h \
	core/data/import_chunks.c \
	core/data/import_commonroad.c \
	core/data/import_fcd.c \
	core/data/import_files.c \
	core/data/import_jobs.c core/data/import_jobs.h \
	core/data/import_part.c core/data/import_part.h \
	core/data/import_numpy.c \
	core/data/import_table.c \
	core/data/json_in.c core/data/json_in.h \
	core/data/lane_book.c core/data/lane_book.h \
	core/data/lane_markings.c core/data/lane_markings.h \
	core/data/lanelet2.h core/data/lanelet2_lanes.c \
	core/data/live.c core/data/live.h \
	core/data/map_argoverse.c \
	core/data/map_in.c core/data/map_in.h \
	core/data/map_lanelet2.c \
	core/data/map_sumo.c \
	core/data/names.c core/data/names.h \
	core/data/nearby.c core/data/nearby.h \
	core/data/npy.c core/data/npy.h \
	core/data/on_lanes.c core/data/on_lanes.h \
	core/data/packed.c core/data/packed.h \
	core/data/pairs.c core/data/pairs.h \
	core/data/parts.c core/data/parts.h \
	core/data/recording_meta.c core/data/recording_meta.h \
	core/data/regions.c core/data/regions.h \
	core/data/roads.c core/data/roads.h \
	core/data/repeats.c core/data/repeats.h \
	core/data/rows.c core/data/rows.h core/data/rows_names.c core/data/rows_tell.c \
	core/data/smooth.c core/data/smooth.h \
	core/data/sort.c core/data/sort.h \
	core/data/source.c core/data/source.h \
	core/data/units.c core/data/units.h \
	core/data/utm.c core/data/utm.h \
	core/data/values.c core/data/values.h \
	core/data/xml_in.c core/data/xml_in.h \
	core/data/survey.c core/data/survey.h core/data/store.h core/data/store_arrays.h \
	core/data/store_check.c core/data/store_cut.c core/data/store_join.c core/data/store_json_read.c core/data/store_json_write.c core/data/store_open.c \
	core/data/store_opened.h core/data/store_part.c core/data/store_ranges.c core/data/store_read.c core/data/store_roads.c core/data/store_roads.h \
	core/data/store_tracks.c core/data/store_tracks.h core/data/store_write.c core/data/store_writer.h
