# SPDX-License-Identifier: Apache-2.0
# Benchmarks: bench/run NAME. The dtrain sides are compiled with everything else, so that they cannot rot.
noinst_PROGRAMS = bench/phase1_step/driver
bench_phase1_step_driver_SOURCES = bench/phase1_step/driver.c
bench_phase1_step_driver_LDADD = core/libdtcore.la

EXTRA_DIST += bench/run bench/phase1_step/batch.py bench/phase1_step/model.py bench/phase1_step/peer.py

# make bench/kernels: speed of the CPU kernels
EXTRA_PROGRAMS = bench/kernels
bench_kernels_SOURCES = bench/kernels.c
bench_kernels_LDADD = core/libdtcore.la
