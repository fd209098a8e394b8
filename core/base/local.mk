# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/base/clock.h \
	core/base/err.h \
	core/base/fault.h \
	core/base/fs.h \
	core/base/hash.h \
	core/base/json.h \
	core/base/log.h \
	core/base/mem.h \
	core/base/rng.h \
	core/base/str.h
