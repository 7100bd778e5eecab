# MOHO_LUAJIT: the script language of the host. Only src/bind and src/host see its headers, so it is no part of moho.pc.
AC_DEFUN([MOHO_LUAJIT], [
  moho_keep_requires=$moho_pc_requires
  MOHO_PKG([LUAJIT], [luajit], [LuaJIT], [libluajit-5.1-dev])
  moho_pc_requires=$moho_keep_requires])
