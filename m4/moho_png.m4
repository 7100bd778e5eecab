# MOHO_PNG: pictures; zlib for deflated files.
AC_DEFUN([MOHO_PNG], [
  MOHO_PKG([PNG], [libpng], [libpng], [libpng-dev])
  MOHO_PKG([ZLIB], [zlib], [zlib], [zlib1g-dev])])
