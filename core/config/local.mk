# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/config/config.h \
	core/config/options.h \
	core/config/schema.h
