# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/porting/import.c \
	core/porting/joint.c \
	core/porting/porting.h \
	core/porting/settings.c core/porting/settings.h \
	core/porting/template.c \
	core/porting/write.c \
	core/porting/yaml.c core/porting/yaml.h
