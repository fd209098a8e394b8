# SPDX-License-Identifier: Apache-2.0
# dtrain --profile NAME; a profile ranks above plugin defaults and below every configuration file.
profiledir = $(pkgdatadir)/profiles
dist_profile_DATA = \
	profiles/max.cfg \
	profiles/memory.cfg \
	profiles/normal.cfg \
	profiles/test.cfg \
	profiles/vram.cfg
