# SPDX-License-Identifier: Apache-2.0
# Recordings of traffic: a plugin that is linked into the program. traffic_builtin lists it there, so programs that open
# stores through plugins have it among their sources.
traffic_builtin = plugins/traffic/plugin.c
noinst_LTLIBRARIES += plugins/traffic/libdttraffic.la
plugins_traffic_libdttraffic_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/plugins
plugins_traffic_libdttraffic_la_SOURCES = \
	plugins/traffic/import/ahead.c plugins/traffic/import/ahead.h \
	plugins/traffic/store/arrays.def \
	plugins/traffic/store/aside.c plugins/traffic/store/aside.h \
	plugins/traffic/store/block_cache.c plugins/traffic/store/block_cache.h \
	plugins/traffic/store/blocks.c plugins/traffic/store/blocks.h \
	plugins/traffic/map/bounds.c plugins/traffic/map/bounds.h \
	plugins/traffic/import/chunks.h plugins/traffic/import/chunks_metadata.c plugins/traffic/import/chunks_statistics.c \
	plugins/traffic/import/columns.c plugins/traffic/import/columns.h \
	plugins/traffic/map/commonroad_map.c plugins/traffic/map/commonroad_map.h \
	plugins/traffic/import/csv.c plugins/traffic/import/csv.h \
	plugins/traffic/store/cut.c plugins/traffic/store/cut.h \
	plugins/traffic/export/export_table.c plugins/traffic/export/export_table.h \
	plugins/traffic/store/feature_stats.c plugins/traffic/store/feature_stats.h \
	plugins/traffic/store/normalisation.c plugins/traffic/store/normalisation.h \
	plugins/traffic/features/features.c plugins/traffic/features/features.h plugins/traffic/features/features_graph.c plugins/traffic/features/features_graph.h plugins/traffic/features/features_graph_set.h \
	plugins/traffic/foresight/foresight.c plugins/traffic/foresight/foresight.h \
	plugins/traffic/export/hdf5_file.h plugins/traffic/export/hdf5_roads.c plugins/traffic/export/hdf5_roads.h plugins/traffic/export/hdf5_store.c plugins/traffic/export/hdf5_store.h \
	plugins/traffic/import/import.c plugins/traffic/import/import.h \
	plugins/traffic/import/import_chunks.c \
	plugins/traffic/import/import_commonroad.c \
	plugins/traffic/import/import_fcd.c \
	plugins/traffic/import/import_files.c \
	plugins/traffic/import/import_jobs.c plugins/traffic/import/import_jobs.h \
	plugins/traffic/import/import_part.c plugins/traffic/import/import_part.h \
	plugins/traffic/import/import_numpy.c \
	plugins/traffic/import/import_table.c \
	plugins/traffic/import/json_in.c plugins/traffic/import/json_in.h \
	plugins/traffic/map/lane_book.c plugins/traffic/map/lane_book.h \
	plugins/traffic/map/lane_markings.c plugins/traffic/map/lane_markings.h \
	plugins/traffic/map/lanelet2.h plugins/traffic/map/lanelet2_lanes.c \
	plugins/traffic/store/live.c plugins/traffic/store/live.h \
	plugins/traffic/map/map_argoverse.c \
	plugins/traffic/map/map_in.c plugins/traffic/map/map_in.h \
	plugins/traffic/map/map_lanelet2.c \
	plugins/traffic/map/map_sumo.c \
	plugins/traffic/import/motion_check.c plugins/traffic/import/motion_check.h \
	plugins/traffic/import/names.c plugins/traffic/import/names.h \
	plugins/traffic/features/nearby.c plugins/traffic/features/nearby.h \
	plugins/traffic/store/npy.c plugins/traffic/store/npy.h \
	plugins/traffic/map/on_lanes.c plugins/traffic/map/on_lanes.h \
	plugins/traffic/store/packed.c plugins/traffic/store/packed.h \
	plugins/traffic/features/pairs.c plugins/traffic/features/pairs.h \
	plugins/traffic/store/parts.c plugins/traffic/store/parts.h \
	plugins/traffic/import/recording_meta.c plugins/traffic/import/recording_meta.h \
	plugins/traffic/store/regions.c plugins/traffic/store/regions.h \
	plugins/traffic/map/roads.c plugins/traffic/map/roads.h \
	plugins/traffic/store/repeats.c plugins/traffic/store/repeats.h \
	plugins/traffic/import/rows.c plugins/traffic/import/rows.h plugins/traffic/import/rows_names.c plugins/traffic/import/rows_tell.c \
	plugins/traffic/import/smooth.c plugins/traffic/import/smooth.h \
	plugins/traffic/import/sort.c plugins/traffic/import/sort.h \
	plugins/traffic/import/source.c plugins/traffic/import/source.h \
	plugins/traffic/import/units.c plugins/traffic/import/units.h \
	plugins/traffic/map/utm.c plugins/traffic/map/utm.h \
	plugins/traffic/import/values.c plugins/traffic/import/values.h \
	plugins/traffic/import/xml_in.c plugins/traffic/import/xml_in.h \
	plugins/traffic/store/survey.c plugins/traffic/store/survey.h plugins/traffic/store/store.h plugins/traffic/store/store_arrays.h \
	plugins/traffic/store/store_check.c plugins/traffic/store/store_cut.c plugins/traffic/store/store_join.c plugins/traffic/store/store_json_read.c plugins/traffic/store/store_json_write.c plugins/traffic/store/store_open.c \
	plugins/traffic/store/store_opened.h plugins/traffic/store/store_part.c plugins/traffic/store/store_ranges.c plugins/traffic/store/store_read.c plugins/traffic/store/store_roads.c plugins/traffic/store/store_roads.h \
	plugins/traffic/store/store_tracks.c plugins/traffic/store/store_tracks.h plugins/traffic/store/store_write.c plugins/traffic/store/store_writer.h \
	plugins/traffic/panels/futures.c plugins/traffic/panels/horizon.c plugins/traffic/panels/panels.c \
	plugins/traffic/panels/panels.h plugins/traffic/panels/trajectories.c \
	plugins/traffic/services.c plugins/traffic/services.h \
	plugins/traffic/verbs/data.c plugins/traffic/verbs/data.h \
	plugins/traffic/verbs/draw_scene.c plugins/traffic/verbs/draw_scene.h
