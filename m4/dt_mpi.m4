# SPDX-License-Identifier: Apache-2.0
# DT_MPI: --with-mpi[=MPICC]. Sets MPI_CPPFLAGS, MPI_LIBS, MPIRUN and the conditional HAVE_MPI: the library behind runs of
# several processes, which dtrain opens at run time through a module of its own.
AC_DEFUN([DT_MPI], [
  AC_ARG_WITH([mpi], [AS_HELP_STRING([--with-mpi@<:@=MPICC@:>@],
    [build the module for runs of several processes with the MPI that MPICC compiles for (default: when it is found)])],
    [], [with_mpi=guess])
  AC_ARG_VAR([MPICC], [compiler of the MPI library, asked for its flags (default: mpicc)])
  dt_mpi=no
  dt_mpi_why="not wanted"
  MPI_CPPFLAGS=
  MPI_LIBS=
  AS_CASE([$with_mpi], [no|yes|guess], [], [MPICC=$with_mpi])
  AS_IF([test "$with_mpi" != no], [
    AS_IF([test -z "$MPICC"], [AC_PATH_PROGS([MPICC], [mpicc.openmpi mpicc mpicc.mpich])])
    AC_MSG_CHECKING([for MPI])
    dt_mpi_why="MPI not found (Debian: apt-get install libopenmpi-dev openmpi-bin)"
    AS_IF([test -n "$MPICC"], [
      # Open MPI answers --showme:*, MPICH -compile_info and -link_info
      AS_IF([dt_mpi_words=`$MPICC --showme:compile 2>/dev/null`], [
        MPI_CPPFLAGS=$dt_mpi_words
        MPI_LIBS=`$MPICC --showme:link 2>/dev/null`
      ], [dt_mpi_words=`$MPICC -compile_info 2>/dev/null`], [
        MPI_CPPFLAGS=`AS_ECHO(["$dt_mpi_words"]) | $SED 's/^[[^ ]]* //; s/ -c\b//'`
        MPI_LIBS=`$MPICC -link_info 2>/dev/null | $SED 's/^[[^ ]]* //'`
      ])
      MPI_CPPFLAGS=`AS_ECHO([" $MPI_CPPFLAGS"]) | $SED 's/ -I/ -isystem /g'`
      dt_saved_cppflags=$CPPFLAGS dt_saved_libs=$LIBS
      CPPFLAGS="$CPPFLAGS $MPI_CPPFLAGS" LIBS="$MPI_LIBS $LIBS"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>
        #if MPI_VERSION < 3
        #error MPI 3 or later
        #endif]], [[MPI_Request r; return MPI_Ibarrier(MPI_COMM_WORLD, &r);]])],
        [dt_mpi=yes], [dt_mpi_why="$MPICC is there, but a program for MPI 3 does not link"])
      CPPFLAGS=$dt_saved_cppflags LIBS=$dt_saved_libs
    ])
    AC_MSG_RESULT([$dt_mpi])
    AS_IF([test "$dt_mpi" = no && test "$with_mpi" != guess],
      [AC_MSG_ERROR([--with-mpi=$with_mpi: $dt_mpi_why.
    Install Open MPI 4 or later with its headers, or leave it out (--without-mpi); without it a run has one process])])
  ])
  AM_CONDITIONAL([HAVE_MPI], [test "$dt_mpi" = yes])
  AC_SUBST([MPI_CPPFLAGS])
  AC_SUBST([MPI_LIBS])
])
