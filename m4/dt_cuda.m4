# SPDX-License-Identifier: Apache-2.0

# DT_CUDA: --with-cuda[=PATH], --with-nvcc-gencode=FLAGS. Sets NVCC, NVCC_GENCODE, CUDA_CFLAGS, CUDA_LIBS, CUDA_LIBDIR and the
# conditional HAVE_CUDA. CUDA 11.8 to 13 are known to lay files out like this.
AC_DEFUN([DT_CUDA], [
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda@<:@=PATH@:>@],
    [build the module for NVIDIA GPUs with the CUDA toolkit at PATH (default: when one is found)])],
    [], [with_cuda=guess])
  AC_ARG_WITH([nvcc-gencode], [AS_HELP_STRING([--with-nvcc-gencode=FLAGS],
    [code for which GPUs, as nvcc says it (default: -gencode for those of sm_75 80 86 89 90 100 120 that nvcc knows, and PTX for later ones)])],
    [], [with_nvcc_gencode=])
  AC_ARG_VAR([NVCC], [CUDA compiler])
  AC_SUBST([CUDA_ARCHS], ["75 80 86 89 90 100 120"])
  dt_cuda=no
  dt_cuda_why="not wanted"
  AS_IF([test "$with_cuda" != no], [
    AS_CASE([$with_cuda],
      [yes|guess], [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH:/usr/local/cuda/bin:/opt/cuda/bin])],
      [AC_PATH_PROG([NVCC], [nvcc], [], [$with_cuda/bin])])
    AS_IF([test -n "$NVCC"], [DT_CUDA_PARTS], [dt_cuda_why="no nvcc found"])
    AS_IF([test "$dt_cuda" = no && test "$with_cuda" != guess],
      [AC_MSG_ERROR([--with-cuda=$with_cuda: $dt_cuda_why.
    Install the CUDA toolkit 11.8 or later with cuBLAS, say where it is (--with-cuda=/usr/local/cuda), or leave it out
    (--without-cuda); without it dtrain trains on the CPU])])
  ])
  AM_CONDITIONAL([HAVE_CUDA], [test "$dt_cuda" = yes])
  AC_SUBST([NVCC_GENCODE])
  AC_SUBST([CUDA_CFLAGS])
  AC_SUBST([CUDA_LIBS])
  AC_SUBST([CUDA_LIBDIR])
  AC_SUBST([CUDA_VERSION], [$dt_cuda_version])
])

# Where nvcc lies says where the rest does.
AC_DEFUN([DT_CUDA_PARTS], [
  dt_cuda_version=`"$NVCC" --version | $SED -n 's/.*release \([[0-9]]*\.[[0-9]]*\).*/\1/p'`
  dt_cuda_root=`dirname "$NVCC"`/..
  dt_cuda_root=`cd "$dt_cuda_root" && pwd`
  CUDA_LIBDIR=
  for dt_dir in "$dt_cuda_root/lib64" "$dt_cuda_root/targets/x86_64-linux/lib" "$dt_cuda_root/lib" \
      "/usr/lib/$host_cpu-linux-gnu"; do
    AS_IF([test -z "$CUDA_LIBDIR" && test -e "$dt_dir/libcudart.so" && test -e "$dt_dir/libcublasLt.so"],
      [CUDA_LIBDIR=$dt_dir])
  done
  AC_MSG_CHECKING([for the CUDA toolkit])
  AS_CASE([$dt_cuda_version],
    [11.8|12.*|13.*], [AS_IF([test -n "$CUDA_LIBDIR"], [dt_cuda=yes],
      [dt_cuda_why="$dt_cuda_root has no libcudart.so with libcublasLt.so beside it"])],
    [dt_cuda_why="$NVCC is CUDA ${dt_cuda_version:-of unknown version}, 11.8 to 13 are possible"])
  AS_IF([test "$dt_cuda" = yes], [
    AC_MSG_RESULT([$dt_cuda_version in $dt_cuda_root])
    CUDA_LIBS="-L$CUDA_LIBDIR -lcublasLt -lcudart"
    NVCC_GENCODE=$with_nvcc_gencode
    AS_IF([test -z "$NVCC_GENCODE"], [
      dt_known=`"$NVCC" --list-gpu-arch | tr '\n' ' '`
      for dt_arch in $CUDA_ARCHS; do
        AS_CASE([" $dt_known "], [*" compute_$dt_arch "*], [
          NVCC_GENCODE="$NVCC_GENCODE -gencode=arch=compute_$dt_arch,code=sm_$dt_arch"
          dt_last=$dt_arch
        ])
      done
      NVCC_GENCODE="$NVCC_GENCODE -gencode=arch=compute_$dt_last,code=compute_$dt_last"
    ])
  ], [AC_MSG_RESULT([no: $dt_cuda_why])])
])
