# SPDX-License-Identifier: Apache-2.0
profiledir = $(pkgdatadir)/profiles
dist_profile_DATA =
