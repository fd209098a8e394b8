# SPDX-License-Identifier: Apache-2.0
# Programs that use what is installed: compiled here with everything else, and by installcheck with pkg-config alone.
exampledir = $(docdir)/examples
dist_example_DATA = examples/drive_env_traffic.c examples/traci_policy.py
noinst_PROGRAMS += examples/drive_env_traffic
examples_drive_env_traffic_SOURCES = examples/drive_env_traffic.c
examples_drive_env_traffic_CPPFLAGS = -I$(top_srcdir)/include
examples_drive_env_traffic_LDADD = libdtrain-policy.la
