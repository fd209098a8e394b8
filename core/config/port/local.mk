# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/config/port/import.c \
	core/config/port/joint.c \
	core/config/port/porting.h \
	core/config/port/settings.c core/config/port/settings.h \
	core/config/port/template.c \
	core/config/port/write.c \
	core/config/port/yaml.c core/config/port/yaml.h
