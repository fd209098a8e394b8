# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/config/config.c core/config/config.h \
	core/config/guide.c core/config/guide.h \
	core/config/differ.c core/config/errors.c core/config/evaluation_env.c core/config/evaluation_env.h \
	core/config/layers.c \
	core/config/document.c core/config/document.h \
	core/config/mix.c core/config/mix.h \
	core/config/options.c core/config/options.h \
	core/config/reader.c core/config/roles.c \
	core/config/schema.c core/config/schema.h \
	core/config/synonym.c core/config/synonym.h \
	core/config/syntax.c core/config/syntax.h \
	core/config/tree.c core/config/tree.h \
	core/config/writer.c
