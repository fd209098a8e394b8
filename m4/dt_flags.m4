# SPDX-License-Identifier: Apache-2.0

# DT_CHECK_CFLAGS(FLAGS, [IF-YES], [IF-NO]): does the C compiler take FLAGS without a word?
AC_DEFUN([DT_CHECK_CFLAGS], [
  AS_VAR_PUSHDEF([dt_var], [dt_cv_cflags_$1])
  AC_CACHE_CHECK([whether $CC takes $1], [dt_var], [
    dt_saved_cflags=$CFLAGS
    CFLAGS="$CFLAGS -Werror $1"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [AS_VAR_SET([dt_var], [yes])], [AS_VAR_SET([dt_var], [no])])
    CFLAGS=$dt_saved_cflags
  ])
  AS_VAR_IF([dt_var], [yes], [$2], [$3])
  AS_VAR_POPDEF([dt_var])
])

# DT_WARN_CFLAGS(FLAG...): add each that the compiler takes to DT_WARN.
AC_DEFUN([DT_WARN_CFLAGS], [
  m4_foreach_w([dt_flag], [$1], [DT_CHECK_CFLAGS(m4_defn([dt_flag]), [DT_WARN="$DT_WARN dt_flag"])])
])

# DT_SWITCH(NAME, HELP): --enable-NAME, off by default; sets enable_NAME (with _ for -) to yes or no.
AC_DEFUN([DT_SWITCH], [
  AC_ARG_ENABLE([$1], [AS_HELP_STRING([--enable-$1], [$2])], [], [AS_VAR_SET([enable_]m4_translit([$1], [-], [_]), [no])])
])

# DT_NEED_MODULE(VAR, PKG-CONFIG-NAME, DEBIAN-PACKAGE, WHAT-FOR): a library that must be there.
AC_DEFUN([DT_NEED_MODULE], [
  PKG_CHECK_MODULES([$1], [$2], [],
    [AC_MSG_ERROR([$2 not found; dtrain needs it $4. Install it (Debian: apt-get install $3) or set $1_CFLAGS and $1_LIBS])])
])
