# MOHO_EDIT: the prompt's line editor (BSD licence, unlike readline). The host's alone.
AC_DEFUN([MOHO_EDIT], [
  moho_keep_requires=$moho_pc_requires
  MOHO_PKG([EDIT], [libedit], [libedit], [libedit-dev])
  moho_pc_requires=$moho_keep_requires])
