# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/tensor/dtype.c core/tensor/dtype.h core/tensor/dtypes.def \
	core/tensor/shape.c core/tensor/shape.h
