# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/launch/cause.c core/launch/cause.h \
	core/launch/hostfile.c core/launch/hostfile.h \
	core/launch/launch.c core/launch/launch.h \
	core/launch/listen.c core/launch/listen.h \
	core/launch/notes.c core/launch/notes.h
