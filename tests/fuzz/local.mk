# SPDX-License-Identifier: Apache-2.0
# Harnesses for what reads foreign bytes (README.md here says more). replay runs them over their corpora in every build;
# `make fuzz` builds each with libFuzzer, in a build folder of its own.
fuzz_shared = tests/fuzz/fuzz.c tests/fuzz/fuzz.h
fuzz_traffic = tests/fuzz/traffic.c tests/fuzz/traffic.h
fuzz_store = tests/fuzz/store.h tests/fuzz/store_base.c tests/fuzz/store_edit.c tests/fuzz/store_walk.c \
	tests/fuzz/store_windows.c $(trajectory_sources)
fuzz_harnesses = tests/fuzz/fuzz_blocks.c tests/fuzz/fuzz_chunks.c tests/fuzz/fuzz_commonroad.c tests/fuzz/fuzz_config.c tests/fuzz/fuzz_csv.c \
	tests/fuzz/fuzz_descriptor.c tests/fuzz/fuzz_elf.c tests/fuzz/fuzz_fcd.c tests/fuzz/fuzz_manifest.c \
	tests/fuzz/fuzz_map.c tests/fuzz/fuzz_metrics.c tests/fuzz/fuzz_roadnet.c tests/fuzz/fuzz_roads.c \
	tests/fuzz/fuzz_net.c tests/fuzz/fuzz_npy.c tests/fuzz/fuzz_policy.c tests/fuzz/fuzz_rollouts.c tests/fuzz/fuzz_routes.c \
	tests/fuzz/fuzz_safetensors.c tests/fuzz/fuzz_store.c tests/fuzz/fuzz_yaml.c
# files are what an input says they are: no harness reads another one
fuzz_ldflags = $(AM_LDFLAGS) -Wl,--wrap=dt_fs_read_all -Wl,--wrap=dt_fs_read_any \
	-Wl,--wrap=dt_fs_map -Wl,--wrap=dt_fs_unmap -Wl,--wrap=dt_fs_is_file -Wl,--wrap=madvise
fuzz_traffic_ldflags = $(fuzz_ldflags) -Wl,--wrap=scenario_build -Wl,--wrap=netfile_fini
fuzz_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(traffic_cppflags) -DDT_PLUGIN_NAME=data_trajectory
# what dtrain export wrote is read by a library of its own, whose sources are part of the host but for one
fuzz_policy = core/export/policy.c

check_PROGRAMS += tests/fuzz/replay
tests_fuzz_replay_SOURCES = tests/fuzz/replay.c tests/guarded.h tests/fuzz/harnesses.def $(fuzz_shared) $(fuzz_traffic) $(fuzz_policy) \
	$(fuzz_store) \
	$(fuzz_harnesses)
tests_fuzz_replay_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_replay_LDFLAGS = $(fuzz_traffic_ldflags)
tests_fuzz_replay_LDADD = $(traffic_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(traffic_libs)
EXTRA_DIST += tests/fuzz/run.sh tests/fuzz/README.md tests/fuzz/corpus tests/fuzz/dict

fuzz_alone_cppflags = $(fuzz_cppflags) -DDT_FUZZ_ALONE
fuzz_alone_ldflags = $(fuzz_ldflags) -fsanitize=fuzzer
fuzz_programs = tests/fuzz/fuzz_blocks tests/fuzz/fuzz_chunks tests/fuzz/fuzz_commonroad tests/fuzz/fuzz_config tests/fuzz/fuzz_csv tests/fuzz/fuzz_descriptor \
	tests/fuzz/fuzz_elf tests/fuzz/fuzz_fcd tests/fuzz/fuzz_manifest tests/fuzz/fuzz_map tests/fuzz/fuzz_metrics tests/fuzz/fuzz_net tests/fuzz/fuzz_npy \
	tests/fuzz/fuzz_policy tests/fuzz/fuzz_roadnet tests/fuzz/fuzz_roads tests/fuzz/fuzz_rollouts tests/fuzz/fuzz_routes tests/fuzz/fuzz_safetensors tests/fuzz/fuzz_store tests/fuzz/fuzz_yaml
EXTRA_PROGRAMS += $(fuzz_programs)

tests_fuzz_fuzz_blocks_SOURCES = tests/fuzz/fuzz_blocks.c $(fuzz_shared)
tests_fuzz_fuzz_blocks_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_blocks_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_blocks_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

tests_fuzz_fuzz_chunks_SOURCES = tests/fuzz/fuzz_chunks.c $(fuzz_shared)
tests_fuzz_fuzz_chunks_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_chunks_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_chunks_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

tests_fuzz_fuzz_commonroad_SOURCES = tests/fuzz/fuzz_commonroad.c $(fuzz_shared)
tests_fuzz_fuzz_commonroad_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_commonroad_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_commonroad_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

tests_fuzz_fuzz_config_SOURCES = tests/fuzz/fuzz_config.c $(fuzz_shared)
tests_fuzz_fuzz_config_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_config_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_config_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

tests_fuzz_fuzz_csv_SOURCES = tests/fuzz/fuzz_csv.c $(fuzz_shared)
tests_fuzz_fuzz_csv_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_csv_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_csv_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

tests_fuzz_fuzz_descriptor_SOURCES = tests/fuzz/fuzz_descriptor.c $(fuzz_shared)
tests_fuzz_fuzz_descriptor_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_descriptor_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_descriptor_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

tests_fuzz_fuzz_elf_SOURCES = tests/fuzz/fuzz_elf.c $(fuzz_shared)
tests_fuzz_fuzz_elf_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_elf_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_elf_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

tests_fuzz_fuzz_fcd_SOURCES = tests/fuzz/fuzz_fcd.c $(fuzz_shared)
tests_fuzz_fuzz_fcd_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_fcd_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_fcd_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

tests_fuzz_fuzz_manifest_SOURCES = tests/fuzz/fuzz_manifest.c $(fuzz_shared)
tests_fuzz_fuzz_manifest_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_manifest_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_manifest_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

tests_fuzz_fuzz_map_SOURCES = tests/fuzz/fuzz_map.c $(fuzz_shared)
tests_fuzz_fuzz_map_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_map_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_map_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

tests_fuzz_fuzz_metrics_SOURCES = tests/fuzz/fuzz_metrics.c $(fuzz_shared)
tests_fuzz_fuzz_metrics_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_metrics_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_metrics_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

tests_fuzz_fuzz_net_SOURCES = tests/fuzz/fuzz_net.c $(fuzz_shared) $(fuzz_traffic)
tests_fuzz_fuzz_net_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_net_LDFLAGS = $(fuzz_traffic_ldflags) -fsanitize=fuzzer
tests_fuzz_fuzz_net_LDADD = $(traffic_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(traffic_libs)

tests_fuzz_fuzz_npy_SOURCES = tests/fuzz/fuzz_npy.c $(fuzz_shared)
tests_fuzz_fuzz_npy_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_npy_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_npy_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

tests_fuzz_fuzz_policy_SOURCES = tests/fuzz/fuzz_policy.c $(fuzz_shared) $(fuzz_policy)
tests_fuzz_fuzz_policy_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_policy_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_policy_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

tests_fuzz_fuzz_roadnet_SOURCES = tests/fuzz/fuzz_roadnet.c $(fuzz_shared)
tests_fuzz_fuzz_roadnet_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_roadnet_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_roadnet_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la
tests_fuzz_fuzz_roads_SOURCES = tests/fuzz/fuzz_roads.c $(fuzz_shared)
tests_fuzz_fuzz_roads_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_roads_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_roads_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

tests_fuzz_fuzz_rollouts_SOURCES = tests/fuzz/fuzz_rollouts.c $(fuzz_shared)
tests_fuzz_fuzz_rollouts_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_rollouts_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_rollouts_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

tests_fuzz_fuzz_routes_SOURCES = tests/fuzz/fuzz_routes.c $(fuzz_shared) $(fuzz_traffic)
tests_fuzz_fuzz_routes_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_routes_LDFLAGS = $(fuzz_traffic_ldflags) -fsanitize=fuzzer
tests_fuzz_fuzz_routes_LDADD = $(traffic_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(traffic_libs)

tests_fuzz_fuzz_safetensors_SOURCES = tests/fuzz/fuzz_safetensors.c $(fuzz_shared)
tests_fuzz_fuzz_safetensors_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_safetensors_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_safetensors_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

tests_fuzz_fuzz_store_SOURCES = tests/fuzz/fuzz_store.c $(fuzz_shared) $(fuzz_store)
tests_fuzz_fuzz_store_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_store_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_store_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

tests_fuzz_fuzz_yaml_SOURCES = tests/fuzz/fuzz_yaml.c $(fuzz_shared)
tests_fuzz_fuzz_yaml_CPPFLAGS = $(fuzz_alone_cppflags)
tests_fuzz_fuzz_yaml_LDFLAGS = $(fuzz_alone_ldflags)
tests_fuzz_fuzz_yaml_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la
