# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/comm/launch/cause.c core/comm/launch/cause.h \
	core/comm/launch/hostfile.c core/comm/launch/hostfile.h \
	core/comm/launch/hosts.c core/comm/launch/hosts.h \
	core/comm/launch/launch.c core/comm/launch/launch.h \
	core/comm/launch/listen.c core/comm/launch/listen.h \
	core/comm/launch/members.c core/comm/launch/members.h \
	core/comm/launch/mpirun.c core/comm/launch/mpirun.h \
	core/comm/launch/notes.c core/comm/launch/notes.h \
	core/comm/launch/wait.h
