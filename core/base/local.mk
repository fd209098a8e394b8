# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/base/activity.c core/base/activity.h \
	core/base/beneath.c core/base/beneath.h \
	core/base/call_watch.c core/base/call_watch.h \
	core/base/choices.h \
	core/base/clock.c core/base/clock.h \
	core/base/err.c core/base/err.h \
	core/base/exit.h \
	core/base/fault.c core/base/fault.h \
	core/base/fence.c core/base/fence.h core/base/fp_mode.c core/base/fp_mode.h \
	core/base/fs.c core/base/fs.h core/base/fs_internal.h core/base/fs_read.c core/base/fs_space.c \
	core/base/hash.c core/base/hash.h \
	core/base/json.h core/base/number.c core/base/number.h \
	core/base/json_read.c core/base/json_write.c \
	core/base/lock.c core/base/lock.h \
	core/base/log.c core/base/log.h \
	core/base/logfile.c core/base/logfile.h \
	core/base/crash.c core/base/crash.h \
	core/base/mapping.c core/base/mapping.h \
	core/base/mem.c core/base/mem.h \
	core/base/module.c core/base/module.h core/base/name.c core/base/name.h \
	core/base/plugin_call.h \
	core/base/print.c core/base/print.h \
	core/base/protobuf.h \
	core/base/rng.c core/base/rng.h \
	core/base/signals.c core/base/signals.h \
	core/base/str.c core/base/str.h \
	core/base/text.c core/base/text.h \
	core/base/trace.c core/base/trace.h
