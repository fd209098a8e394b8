# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/loader/check.c core/loader/elf.c core/loader/elf.h core/loader/inner.h \
	core/loader/loader.c core/loader/loader.h \
	core/loader/search.c
