# MOHO_SEGYIO: SEG-Y traces. The library has no pkg-config file.
AC_DEFUN([MOHO_SEGYIO], [
  moho_keep_LIBS=$LIBS
  moho_segyio=no
  AC_CHECK_HEADER([segyio/segy.h], [AC_CHECK_LIB([segyio], [segy_open], [moho_segyio=yes], [], [-lm])])
  LIBS=$moho_keep_LIBS
  SEGYIO_LIBS=
  AS_IF([test $moho_segyio = yes], [SEGYIO_LIBS="-lsegyio -lm"], [MOHO_MISSING([segyio], [libsegyio-dev])])
  AC_SUBST([SEGYIO_LIBS])])
