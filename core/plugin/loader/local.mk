# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/plugin/loader/check.c core/plugin/loader/elf.c core/plugin/loader/elf.h core/plugin/loader/inner.h \
	core/plugin/loader/loader.c core/plugin/loader/loader.h \
	core/plugin/loader/search.c
