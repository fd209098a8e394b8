# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/engine/tensor/dtype.c core/engine/tensor/dtype.h core/engine/tensor/port.c core/engine/tensor/port.h core/engine/tensor/dtypes.def \
	core/engine/tensor/shape.c core/engine/tensor/shape.h
