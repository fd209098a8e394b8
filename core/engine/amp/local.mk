# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/engine/amp/scaler.c core/engine/amp/scaler.h
