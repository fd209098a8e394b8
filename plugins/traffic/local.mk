# SPDX-License-Identifier: Apache-2.0
# Recordings of traffic: a plugin that is linked into the program. traffic_builtin lists it there, so programs that open
# stores through plugins have it among their sources.
traffic_builtin = plugins/traffic/plugin.c
noinst_LTLIBRARIES += plugins/traffic/libdttraffic.la
plugins_traffic_libdttraffic_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/plugins
plugins_traffic_libdttraffic_la_SOURCES = \
	plugins/traffic/text/csv.c plugins/traffic/text/csv.h plugins/traffic/text/json_reader.c \
	plugins/traffic/text/json_reader.h plugins/traffic/text/names.c plugins/traffic/text/names.h \
	plugins/traffic/text/source.c plugins/traffic/text/source.h plugins/traffic/text/values.c \
	plugins/traffic/text/values.h plugins/traffic/text/xml_reader.c plugins/traffic/text/xml_reader.h \
	plugins/traffic/features/features.c plugins/traffic/features/features.h plugins/traffic/features/features_graph.c \
	plugins/traffic/features/features_graph.h plugins/traffic/features/features_graph_set.h \
	plugins/traffic/features/nearby.c plugins/traffic/features/nearby.h plugins/traffic/features/pairs.c \
	plugins/traffic/features/pairs.h \
	plugins/traffic/map/bounds.c plugins/traffic/map/bounds.h plugins/traffic/map/commonroad_map.c \
	plugins/traffic/map/commonroad_map.h plugins/traffic/map/lane_builder.c plugins/traffic/map/lane_builder.h \
	plugins/traffic/map/lanelet2.h plugins/traffic/map/lanelet2_lanes.c plugins/traffic/map/map_argoverse.c \
	plugins/traffic/map/map_lanelet2.c plugins/traffic/map/map_reader.c plugins/traffic/map/map_reader.h \
	plugins/traffic/map/map_sumo.c plugins/traffic/map/roads.c plugins/traffic/map/roads.h plugins/traffic/map/utm.c \
	plugins/traffic/map/utm.h \
	plugins/traffic/store/arrays.def plugins/traffic/store/batches.c plugins/traffic/store/batches.h \
	plugins/traffic/store/block_cache.c plugins/traffic/store/block_cache.h plugins/traffic/store/blocks.c \
	plugins/traffic/store/blocks.h plugins/traffic/store/cut.c plugins/traffic/store/cut.h \
	plugins/traffic/store/feature_stats.c plugins/traffic/store/feature_stats.h plugins/traffic/store/merge_split.c \
	plugins/traffic/store/merge_split.h plugins/traffic/store/npy.c plugins/traffic/store/npy.h \
	plugins/traffic/store/packed.c plugins/traffic/store/packed.h plugins/traffic/store/regions.c \
	plugins/traffic/store/regions.h plugins/traffic/store/repeats.c plugins/traffic/store/repeats.h \
	plugins/traffic/store/smooth.c plugins/traffic/store/smooth.h plugins/traffic/store/staging.c \
	plugins/traffic/store/staging.h plugins/traffic/store/store.h plugins/traffic/store/store_arrays.h \
	plugins/traffic/store/store_check.c plugins/traffic/store/store_cut.c plugins/traffic/store/store_join.c \
	plugins/traffic/store/store_json_read.c plugins/traffic/store/store_json_write.c \
	plugins/traffic/store/store_open.c plugins/traffic/store/store_opened.h plugins/traffic/store/store_part.c \
	plugins/traffic/store/store_ranges.c plugins/traffic/store/store_read.c plugins/traffic/store/store_roads.c \
	plugins/traffic/store/store_roads.h plugins/traffic/store/store_tracks.c plugins/traffic/store/store_tracks.h \
	plugins/traffic/store/store_write.c plugins/traffic/store/store_writer.h plugins/traffic/store/tracker.c \
	plugins/traffic/store/tracker.h \
	plugins/traffic/import/chunks.h plugins/traffic/import/chunks_metadata.c \
	plugins/traffic/import/chunks_statistics.c plugins/traffic/import/column_cells.c \
	plugins/traffic/import/columns.c plugins/traffic/import/columns.h \
	plugins/traffic/import/import.c plugins/traffic/import/import.h plugins/traffic/import/import_chunks.c \
	plugins/traffic/import/import_commonroad.c plugins/traffic/import/import_fcd.c \
	plugins/traffic/import/import_files.c plugins/traffic/import/import_hdf5.c plugins/traffic/import/import_hdf5.h \
	plugins/traffic/import/import_jobs.c plugins/traffic/import/import_jobs.h plugins/traffic/import/import_numpy.c \
	plugins/traffic/import/import_part.c plugins/traffic/import/import_part.h plugins/traffic/import/import_table.c \
	plugins/traffic/import/lane_markings.c plugins/traffic/import/lane_markings.h \
	plugins/traffic/import/motion_check.c plugins/traffic/import/motion_check.h \
	plugins/traffic/import/recording_meta.c plugins/traffic/import/recording_meta.h plugins/traffic/import/rows.c \
	plugins/traffic/import/rows.h plugins/traffic/import/rows_names.c plugins/traffic/import/rows_report.c \
	plugins/traffic/import/sort.c plugins/traffic/import/sort.h plugins/traffic/import/units.c plugins/traffic/import/units_doubts.c \
	plugins/traffic/import/units.h \
	plugins/traffic/hdf5/hdf5_file.h plugins/traffic/hdf5/hdf5_roads.c plugins/traffic/hdf5/hdf5_roads.h \
	plugins/traffic/hdf5/open_module.c \
	plugins/traffic/export/export_hdf5.c plugins/traffic/export/export_hdf5.h plugins/traffic/export/export_table.c \
	plugins/traffic/export/export_table.h \
	plugins/traffic/roadnet/citybrain.c plugins/traffic/roadnet/cityflow.c plugins/traffic/roadnet/roadnet.c \
	plugins/traffic/roadnet/roadnet.h plugins/traffic/roadnet/roadnet_write.c \
	plugins/traffic/inspect/inspect.c plugins/traffic/inspect/inspect.h plugins/traffic/inspect/normalisation.c \
	plugins/traffic/inspect/normalisation.h plugins/traffic/inspect/on_lanes.c plugins/traffic/inspect/on_lanes.h \
	plugins/traffic/inspect/survey.c plugins/traffic/inspect/survey.h \
	plugins/traffic/foresight/foresight.c plugins/traffic/foresight/foresight.h \
	plugins/traffic/panels/futures.c plugins/traffic/panels/horizon.c plugins/traffic/panels/panels.c \
	plugins/traffic/panels/panels.h plugins/traffic/panels/trajectories.c \
	plugins/traffic/verbs/data.c plugins/traffic/verbs/data.h plugins/traffic/verbs/draw_scene.c \
	plugins/traffic/verbs/draw_scene.h \
	plugins/traffic/guide_keys.c plugins/traffic/guide_keys.def plugins/traffic/guide_keys.h \
	plugins/traffic/services.c plugins/traffic/services.h
