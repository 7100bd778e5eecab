# Tests print TAP: C programs, specs run by the host (busted), and the checks in scripts/. A new one is one more line.
c_tests =
c_tests += %D%/test_backend
c_tests += %D%/test_fft
c_tests += %D%/test_dlpack
c_tests += %D%/test_norms
c_tests += %D%/test_dense
c_tests += %D%/test_solve
c_tests += %D%/test_sparse
c_tests += %D%/test_io
c_tests += %D%/test_plot
c_tests += %D%/test_kirchhoff
c_tests += %D%/test_eikonal
%C%_test_io_CPPFLAGS = $(AM_CPPFLAGS) $(HDF5_CFLAGS)
%C%_test_io_LDADD = libmoho.la $(HDF5_LIBS)
specs =
specs += %D%/array_spec.lua
specs += %D%/array_math_spec.lua
specs += %D%/array_numpy_spec.lua
specs += %D%/algebra_spec.lua
specs += %D%/device_spec.lua
specs += %D%/dlpack_spec.lua
specs += %D%/docs_spec.lua
specs += %D%/learn_spec.lua
specs += %D%/help_spec.lua
specs += %D%/lsm_spec.lua
specs += %D%/host_spec.lua
specs += %D%/io_spec.lua
specs += %D%/rsf_spec.lua
specs += %D%/file_command_spec.lua
specs += %D%/provenance_spec.lua
specs += %D%/repl_spec.lua
specs += %D%/script_spec.lua
specs += %D%/complete_spec.lua
specs += %D%/ops_spec.lua
specs += %D%/ops_axis_spec.lua
specs += %D%/signal_spec.lua
specs += %D%/solvers_spec.lua
specs += %D%/sparse_spec.lua
specs += %D%/sweep_spec.lua
specs += %D%/sweep_hostile_spec.lua
specs += %D%/sweep_machines_spec.lua
specs += %D%/checkpoint_spec.lua
specs += %D%/apply_spec.lua
specs += %D%/plot_spec.lua
specs += %D%/draw_spec.lua
specs += %D%/kirchhoff_spec.lua
specs += %D%/eikonal_spec.lua
specs += %D%/examples_spec.lua
specs += %D%/kirchhoff_weights_spec.lua
specs += %D%/kirchhoff_survey_spec.lua
specs += %D%/kirchhoff_groups_spec.lua
specs += %D%/kirchhoff_tables_spec.lua
specs += %D%/lift_spec.lua
specs += %D%/lanes_spec.lua
specs += %D%/lag_spec.lua

LDADD = libmoho.la
check_PROGRAMS += $(c_tests)
# What the specs of the program itself need: a user at a terminal, and how to run it.
check_PROGRAMS += %D%/ptyrun
EXTRA_DIST += %D%/program.lua %D%/dlpack_peer.lua
# What several specs share.
EXTRA_DIST += %D%/expect.lua %D%/kirchhoff_parts.lua %D%/crossing.lua %D%/sweeps.lua
# The host over a device whose copies lag behind, for the order of copies and waits: see lag.c.
check_PROGRAMS += %D%/moho_lag
%C%_moho_lag_SOURCES = %D%/lag.c
%C%_moho_lag_LDFLAGS = $(moho_LDFLAGS)
%C%_moho_lag_LDADD = $(moho_OBJECTS) $(moho_LDADD)
TESTS += $(c_tests) $(specs)
EXTRA_DIST += %D%/samples_axis.lua %D%/data/make_operators.py %D%/data/operators_more.h5
EXTRA_DIST += %D%/data/make_arrays.py %D%/data/arrays.h5
EXTRA_DIST += $(specs) %D%/samples.lua %D%/tap.h %D%/numbers.h %D%/dense.h %D%/valgrind.supp %D%/lsan.supp
EXTRA_DIST += %D%/data/kirchhoff.h5 %D%/data/lsm.h5 %D%/data/operators.h5
EXTRA_DIST += %D%/data/stored.npz %D%/data/deflated.npz %D%/data/make_npz.py
EXTRA_DIST += %D%/data/eikonal.h5 %D%/data/make_eikonal.py
EXTRA_DIST += %D%/data/signal.h5 %D%/data/make_signal.py
EXTRA_DIST += %D%/data/solvers.h5 %D%/data/make_solvers.py

TEST_EXTENSIONS = .lua
tap_driver = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_DRIVER = $(tap_driver)
LUA_LOG_DRIVER = $(tap_driver)
LUA_LOG_COMPILER = ./moho
AM_LUA_LOG_FLAGS = test -o TAP
# Specs find the sources and the build by these; test programs the CUDA module, which is not beside them.
AM_TESTS_ENVIRONMENT = \
  top_srcdir='$(abs_top_srcdir)'; top_builddir='$(abs_top_builddir)'; MOHO_MODULES='$(abs_top_builddir)'; \
  NM='$(NM)'; CC='$(CC)'; CXX='$(CXX)'; SANITIZE='$(SANITIZE)'; \
  LSAN_OPTIONS='suppressions=$(abs_top_srcdir)/tests/lsan.supp:print_suppressions=0'; \
  ASAN_OPTIONS='protect_shadow_gap=0'; UBSAN_OPTIONS='print_stacktrace=1'; \
  export top_srcdir top_builddir MOHO_MODULES NM CC CXX SANITIZE LSAN_OPTIONS ASAN_OPTIONS UBSAN_OPTIONS;

# Under valgrind: the programs, the specs and the programs that specs run (MOHO_RUNNER). Its findings end a test with status 99.
# With MOHO_MEMCHECK=1 the longest specs take fewer dtypes and smaller arrays. LuaJIT's compiler is off, as translating
# code that is made while it runs is what valgrind is slowest at; idle threads sleep, as it runs one thread at a time.
valgrind = $(VALGRIND) --quiet --error-exitcode=99 --leak-check=full \
  --show-leak-kinds=definite --errors-for-leak-kinds=definite --suppressions=$(abs_top_srcdir)/tests/valgrind.supp
memcheck = $(LIBTOOL) --mode=execute $(valgrind)
check-memcheck: all
	@test -n '$(VALGRIND)' || { echo 'valgrind was not found when configured (Debian package valgrind)'; exit 1; }
	MOHO_MEMCHECK=1 MOHO_RUNNER='$(valgrind)' OMP_WAIT_POLICY=passive $(MAKE) check \
	  TESTS='$(c_tests) $(specs)' TEST_SUITE_LOG=memcheck.log \
	  LOG_COMPILER='$(memcheck)' LUA_LOG_COMPILER='$(memcheck) ./moho -j off'
.PHONY: check-memcheck
CLEANFILES += memcheck.log
