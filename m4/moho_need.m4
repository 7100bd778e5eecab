# MOHO_MISSING(WHAT, DEBIAN-PACKAGE)        notes a dependency that is not there
# MOHO_CHECK_MISSING                        stops with all of them at once, and the command that installs them
# MOHO_PKG(NAME, MODULES, WHAT, PACKAGE)    NAME_CFLAGS and NAME_LIBS from the first of the pkg-config modules there is
AC_DEFUN([MOHO_MISSING], [
  moho_missing="$moho_missing
    $1 (Debian package $2)"
  AS_CASE([" $moho_install "], [*" $2 "*], [], [moho_install="$moho_install $2"])])

AC_DEFUN([MOHO_CHECK_MISSING], [
  AS_IF([test -n "$moho_missing"], [AC_MSG_ERROR([what is needed and was not found:$moho_missing
  On Debian: apt-get install$moho_install])])])

AC_DEFUN([MOHO_PKG], [
  moho_found=no
  for moho_module in $2; do
    PKG_CHECK_EXISTS([$moho_module], [moho_found=$moho_module; break])
  done
  AS_IF([test "$moho_found" = no], [
    AC_MSG_CHECKING([for $3])
    AC_MSG_RESULT([no])
    MOHO_MISSING([$3], [$4])
  ], [
    PKG_CHECK_MODULES([$1], [$moho_found])
    AS_VAR_APPEND([moho_pc_requires], [" $moho_found"])
  ])
  AC_SUBST([$1_CFLAGS])
  AC_SUBST([$1_LIBS])])
