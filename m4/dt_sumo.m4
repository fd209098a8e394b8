# SPDX-License-Identifier: Apache-2.0

# DT_SUMO: --with-sumo[=PREFIX]. Sets SUMO_CPPFLAGS, SUMO_LIBS and the conditional HAVE_SUMO: the C++ library of SUMO,
# which env_sumo opens at run time through a module of its own. Needs CXX_CHECK, a C++ compiler.
AC_DEFUN([DT_SUMO], [
  AC_ARG_WITH([sumo], [AS_HELP_STRING([--with-sumo@<:@=PREFIX@:>@],
    [build the module for SUMO with libsumo at PREFIX (default: when it is found)])], [], [with_sumo=guess])
  AC_ARG_VAR([CXXFLAGS], [flags for the module of SUMO, the one part in C++])
  dt_sumo=no
  dt_sumo_why="not wanted"
  SUMO_CPPFLAGS=
  SUMO_LIBS=-lsumocpp
  AS_CASE([$with_sumo], [no|yes|guess], [],
    [SUMO_CPPFLAGS="-isystem $with_sumo/include"; SUMO_LIBS="-L$with_sumo/lib -Wl,-rpath,$with_sumo/lib -lsumocpp"])
  AS_IF([test "$with_sumo" != no], [
    AC_MSG_CHECKING([for libsumo])
    AS_CASE([$with_sumo], [yes|guess], [dt_sumo_there=yes],
      [AS_IF([test -e "$with_sumo/include/libsumo/libsumo.h"], [dt_sumo_there=yes], [dt_sumo_there=no])])
    AS_IF([test -z "$CXX_CHECK"], [dt_sumo_why="no C++ compiler found"],
      [test "$dt_sumo_there" = no], [dt_sumo_why="$with_sumo/include/libsumo/libsumo.h is not there"], [
      cat >conftest.cpp <<DT_END
#include <libsumo/libsumo.h>
int main() { return libsumo::Simulation::isLoaded() ? 1 : 0; }
DT_END
      AS_IF([$CXX_CHECK -std=c++17 $SUMO_CPPFLAGS -o conftest-sumo conftest.cpp $SUMO_LIBS >&AS_MESSAGE_LOG_FD 2>&1],
        [dt_sumo=yes], [dt_sumo_why="libsumo not found (Debian: apt-get install sumo)"])
      rm -f conftest.cpp conftest-sumo
    ])
    AC_MSG_RESULT([$dt_sumo])
    AS_IF([test "$dt_sumo" = no && test "$with_sumo" != guess],
      [AC_MSG_ERROR([--with-sumo=$with_sumo: $dt_sumo_why.
    Install SUMO 1.15 or later with its C++ library and headers, or leave it out (--without-sumo); without it env_sumo
    says what is missing and everything else works])])
  ])
  AM_CONDITIONAL([HAVE_SUMO], [test "$dt_sumo" = yes])
  AC_SUBST([SUMO_CPPFLAGS])
  AC_SUBST([SUMO_LIBS])
])
