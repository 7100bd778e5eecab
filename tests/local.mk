# Tests print TAP: C programs, specs run by the host (busted), and the checks in scripts/. A new one is one more line.
c_tests =
specs =

test_ldadd = libmoho.la
check_PROGRAMS += $(c_tests)
TESTS += $(c_tests) $(specs)
EXTRA_DIST += $(specs) %D%/tap.h %D%/valgrind.supp %D%/lsan.supp
EXTRA_DIST += %D%/data/kirchhoff.h5 %D%/data/lsm.h5 %D%/data/operators.h5

TEST_EXTENSIONS = .lua
tap_driver = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_DRIVER = $(tap_driver)
LUA_LOG_DRIVER = $(tap_driver)
LUA_LOG_COMPILER = ./moho
AM_LUA_LOG_FLAGS = test -o TAP
AM_TESTS_ENVIRONMENT = \
  top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' MOHO_MODULES='$(abs_top_builddir)' \
  LSAN_OPTIONS='suppressions=$(abs_top_srcdir)/tests/lsan.supp:print_suppressions=0' \
  NM='$(NM)' CC='$(CC)' CXX='$(CXX)'; export top_srcdir top_builddir MOHO_MODULES LSAN_OPTIONS NM CC CXX;
