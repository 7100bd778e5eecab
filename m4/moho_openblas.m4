# MOHO_OPENBLAS: dense products of the CPU backend.
AC_DEFUN([MOHO_OPENBLAS], [MOHO_PKG([OPENBLAS], [openblas], [OpenBLAS], [libopenblas-dev])])
