# SPDX-License-Identifier: Apache-2.0
# dtrain --profile NAME; a profile ranks above plugin defaults and below every configuration file. The program looks
# below its own folder, so a build elsewhere has a link there.
profiledir = $(pkgdatadir)/profiles
dist_profile_DATA = \
	profiles/ipp.cfg \
	profiles/max.cfg \
	profiles/memory.cfg \
	profiles/normal.cfg \
	profiles/pendulum.cfg \
	profiles/recordings.cfg \
	profiles/snakes.cfg \
	profiles/test.cfg \
	profiles/vram.cfg
all-local: profiles-of-build
profiles-of-build:
	@test -e profiles || $(LN_S) $(abs_top_srcdir)/profiles profiles
distclean-local: distclean-profiles
distclean-profiles:
	@test ! -h profiles || rm -f profiles
.PHONY: profiles-of-build distclean-profiles
