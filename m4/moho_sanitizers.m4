# MOHO_SANITIZERS: --enable-sanitizers builds with the address and undefined-behaviour checkers, --enable-werror with
# warnings as errors.
AC_DEFUN([MOHO_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers], [AS_HELP_STRING([--enable-sanitizers],
    [check addresses and undefined behaviour at run time])], [], [enable_sanitizers=no])
  SANITIZE=
  AS_IF([test "$enable_sanitizers" != no], [
    SANITIZE="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
    AX_CHECK_COMPILE_FLAG([$SANITIZE], [], [AC_MSG_ERROR([the compiler does not know $SANITIZE])])])
  AC_SUBST([SANITIZE])
  AM_CONDITIONAL([SANITIZERS], [test "$enable_sanitizers" != no])])

AC_DEFUN([MOHO_WARNINGS], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [treat warnings as errors])], [], [enable_werror=no])
  WARN=
  AX_APPEND_COMPILE_FLAGS([-Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat-security], [WARN])
  NVCC_WARN="-Wall -Wextra"
  AS_IF([test "$enable_werror" != no], [
    WARN="$WARN -Werror"
    NVCC_WARN="$NVCC_WARN -Werror=all-warnings"])
  AC_SUBST([WARN])
  AC_SUBST([NVCC_WARN])])
