# SPDX-License-Identifier: Apache-2.0
# Benchmarks: bench/run NAME. The dtrain sides are compiled by `make benches`, and by `make check` so that they cannot
# rot; who only trains needs none. They lie next to dtrain itself and find plugins and the embedded recording as it does.
bench_programs = bench_phase1_step bench_trace bench_sumo bench_env_ipp bench_env_snakes bench_env_traffic
EXTRA_PROGRAMS += $(bench_programs)
benches: $(bench_programs)
check-local: $(bench_programs)
.PHONY: benches
CLEANFILES += $(bench_programs)

bench_phase1_step_SOURCES = $(traffic_builtin) bench/phase1_step/driver.c
bench_phase1_step_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

# the feed alone, as training reads it
bench_programs += bench_loader
bench_loader_SOURCES = $(traffic_builtin) bench/loader/driver.c
bench_loader_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la
EXTRA_DIST += bench/loader/loader.py

# spans of --profile-steps, off and on
bench_trace_SOURCES = bench/trace.c
bench_trace_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la

# sums over processes, compared with the library's own
if HAVE_MPI
bench_programs += bench_all_reduce
bench_all_reduce_SOURCES = bench/all_reduce/all_reduce.c
bench_all_reduce_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
bench_all_reduce_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la $(MPI_LIBS)
endif
EXTRA_DIST += bench/all_reduce/all_reduce.c

# env_sumo under simple rules: speed, and what they reach
bench_sumo_SOURCES = bench/sumo/driver.c
bench_sumo_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
bench_sumo_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la -ldl -lm

# env_ipp under its two rules: speed, and what they reach
bench_env_ipp_SOURCES = bench/env_ipp/driver.c
bench_env_ipp_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
bench_env_ipp_LDADD = $(mock_la) -ldl -lm

# the replay: what a draw of 10 million transitions costs
if HAVE_CMOCKA
bench_programs += bench_replay
bench_replay_SOURCES = bench/replay/driver.c $(rollout_worlds)
bench_replay_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/rl/buffer
bench_replay_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS)
endif
EXTRA_DIST += bench/replay/driver.c

# env_gym: what a step of a Python environment costs, compared with Gymnasium's own loops
bench_programs += bench_env_gym
bench_env_gym_SOURCES = bench/env_gym/driver.c
bench_env_gym_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
bench_env_gym_LDADD = $(mock_la) -ldl -lm
EXTRA_DIST += bench/env_gym/env_gym.py

# env_snakes: joint steps per second, compared with the original's
bench_env_snakes_SOURCES = bench/env_snakes/driver.c $(snakes_sources)
bench_env_snakes_LDADD = -lm
EXTRA_DIST += bench/env_snakes/original.py

# an environment that computes nothing: what a step costs the host, in threads and in worker processes
bench_programs += bench_env_speed
bench_env_speed_SOURCES = bench/env_speed/driver.c
bench_env_speed_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la
EXTRA_DIST += bench/env_speed/peers.py

# env_traffic: vehicle updates per second, and numbers to compare with SUMO's
bench_env_traffic_SOURCES = bench/env_traffic/driver.c
bench_env_traffic_CPPFLAGS = $(AM_CPPFLAGS) $(traffic_cppflags)
bench_env_traffic_CFLAGS = $(AM_CFLAGS) $(traffic_cflags)
bench_env_traffic_LDADD = $(traffic_la) $(traffic_libs)
EXTRA_DIST += bench/junctions/junctions.py bench/agreement/agreement.py bench/env_traffic/sumo.py bench/recompute/recompute.py

EXTRA_DIST += bench/run bench/phase1_step/batch.py bench/phase1_step/model.py bench/phase1_step/peer.py bench/gpu/ceilings.py \
	bench/gpu/peer.py bench/gpu/steps.py \
	bench/phase1_ranks/ddp.py bench/phase1_ranks/ranks.py

# make bench/kernels: speed of the CPU kernels; wants oneDNN to compare with (Debian: libdnnl-dev)
EXTRA_PROGRAMS += bench/kernels
bench_kernels_SOURCES = bench/kernels.c
bench_kernels_LDADD = plugins/traffic/libdttraffic.la core/libdtcore.la -ldnnl -lgomp

EXTRA_DIST += \
	bench/check/check.py \
	bench/common.py \
	bench/import/import.py \
	bench/import_large/large.py \
	bench/mbpo/mbpo.py \
	bench/offpolicy/offpolicy.py \
	bench/offpolicy/rltools.cpp \
	bench/phase1_folds/folds.py \
	bench/phase2_classic/classic.py \
	bench/policy_act/peer.py \
	bench/ppo_overlap/overlap.py \
	bench/sweep/sweep.py \
	bench/rl_speed/rl_speed.py \
	bench/rl_speed/rltools.cpp \
	bench/rl_speed/sb3.py \
	bench/phase2_shield/shield.py \
	bench/shield_shapes/shapes.py \
	bench/store_bits/bits.py \
	bench/store_memory/memory.py \
	bench/sums/steps.py \
	bench/world_at_work/world_at_work.py \
	bench/phase2_sumo_cost/cost.py \
	bench/phase2_sumo/sumo.py \
	bench/phase3_barrier/barrier.py \
	bench/phase3_exact/exact.py \
	bench/phase3_traffic/traffic.py
# the whole folder
EXTRA_DIST += bench/results
