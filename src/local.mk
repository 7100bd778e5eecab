# The library: core, operators, solvers, files, pictures. Compiled without LuaJIT's include path, so that none of it can
# come to need Lua. A new file is one more line.
lib_LTLIBRARIES += libmoho.la
libmoho_la_CPPFLAGS = $(AM_CPPFLAGS) $(FFTW_CFLAGS) $(FFTWF_CFLAGS) $(HDF5_CFLAGS) $(OPENBLAS_CFLAGS) $(PNG_CFLAGS) $(ZLIB_CFLAGS)
libmoho_la_LIBADD = $(HDF5_LIBS) $(SEGYIO_LIBS) $(PNG_LIBS) $(ZLIB_LIBS) $(FFTW_LIBS) $(FFTWF_LIBS) $(OPENBLAS_LIBS)
libmoho_la_LDFLAGS = $(SANITIZE) -version-info 0:0:0
libmoho_la_SOURCES =

mohoincludedir = $(includedir)/moho
mohoinclude_HEADERS =
mohoinclude_HEADERS += %D%/moho/moho.h
mohoinclude_HEADERS += %D%/moho/status.h
mohoinclude_HEADERS += %D%/moho/ctx.h
mohoinclude_HEADERS += %D%/moho/array.h
mohoinclude_HEADERS += %D%/moho/dlpack.h
mohoinclude_HEADERS += %D%/moho/op.h
mohoinclude_HEADERS += %D%/moho/eikonal.h
mohoinclude_HEADERS += %D%/moho/solve.h
mohoinclude_HEADERS += %D%/moho/io.h
mohoinclude_HEADERS += %D%/moho/plot.h

# core
libmoho_la_SOURCES += %D%/core/impl.h
libmoho_la_SOURCES += %D%/core/kernels.h
libmoho_la_SOURCES += %D%/core/status.c
libmoho_la_SOURCES += %D%/core/ctx.c
libmoho_la_SOURCES += %D%/core/pool.c
libmoho_la_SOURCES += %D%/core/transfer.c
libmoho_la_SOURCES += %D%/core/timeline.c
libmoho_la_SOURCES += %D%/core/pace.c
libmoho_la_SOURCES += %D%/core/nd.h
libmoho_la_SOURCES += %D%/core/nd.c
libmoho_la_SOURCES += %D%/core/array.c
libmoho_la_SOURCES += %D%/core/dlpack.c
libmoho_la_SOURCES += %D%/core/vec.c
libmoho_la_SOURCES += %D%/core/vec_map.c
libmoho_la_SOURCES += %D%/core/view.c
libmoho_la_SOURCES += %D%/core/op_impl.h
libmoho_la_SOURCES += %D%/core/params.c
libmoho_la_SOURCES += %D%/core/op.c
libmoho_la_SOURCES += %D%/core/dottest.c

# operators
libmoho_la_SOURCES += %D%/ops/ops.def
libmoho_la_SOURCES += %D%/ops/op_chain.c
libmoho_la_SOURCES += %D%/ops/op_plus.c
libmoho_la_SOURCES += %D%/ops/op_conjugate.c
libmoho_la_SOURCES += %D%/ops/op_lift.c
libmoho_la_SOURCES += %D%/ops/op_func.c
libmoho_la_SOURCES += %D%/ops/groups.h
libmoho_la_SOURCES += %D%/ops/groups.c
libmoho_la_SOURCES += %D%/ops/op_block.c
libmoho_la_SOURCES += %D%/ops/leaf.h
libmoho_la_SOURCES += %D%/ops/leaf.c
libmoho_la_SOURCES += %D%/ops/sparse.h
libmoho_la_SOURCES += %D%/ops/sparse.c
libmoho_la_SOURCES += %D%/ops/stencil.h
libmoho_la_SOURCES += %D%/ops/stencil.c
libmoho_la_SOURCES += %D%/ops/terms.h
libmoho_la_SOURCES += %D%/ops/terms.c
libmoho_la_SOURCES += %D%/ops/view.h
libmoho_la_SOURCES += %D%/ops/view.c
libmoho_la_SOURCES += %D%/ops/op_identity.c
libmoho_la_SOURCES += %D%/ops/op_zero.c
libmoho_la_SOURCES += %D%/ops/op_diagonal.c
libmoho_la_SOURCES += %D%/ops/op_matrix.c
libmoho_la_SOURCES += %D%/ops/op_convolve1d.c
libmoho_la_SOURCES += %D%/ops/kirchhoff_op.h
libmoho_la_SOURCES += %D%/ops/survey.h
libmoho_la_SOURCES += %D%/ops/survey.c
libmoho_la_SOURCES += %D%/ops/travel_times.h
libmoho_la_SOURCES += %D%/ops/travel_times.c
libmoho_la_SOURCES += %D%/ops/kirchhoff_geometry.c
libmoho_la_SOURCES += %D%/ops/kirchhoff_split.c
libmoho_la_SOURCES += %D%/ops/kirchhoff_look.c
libmoho_la_SOURCES += %D%/ops/kirchhoff_times.c
libmoho_la_SOURCES += %D%/ops/kirchhoff_tables.c
libmoho_la_SOURCES += %D%/ops/kirchhoff_nodes.c
libmoho_la_SOURCES += %D%/ops/kirchhoff_wavelet.c
libmoho_la_SOURCES += %D%/ops/kirchhoff_weights.c
libmoho_la_SOURCES += %D%/ops/op_kirchhoff.c
libmoho_la_SOURCES += %D%/ops/op_fft.c
libmoho_la_SOURCES += %D%/ops/spectrum.h
libmoho_la_SOURCES += %D%/ops/spectrum.c
libmoho_la_SOURCES += %D%/ops/op_shift.c
libmoho_la_SOURCES += %D%/ops/op_interp.c
libmoho_la_SOURCES += %D%/ops/op_bilinear.c
libmoho_la_SOURCES += %D%/ops/op_regression.c
libmoho_la_SOURCES += %D%/ops/op_poststack_linear_modelling.c
libmoho_la_SOURCES += %D%/ops/op_convolvend.c
libmoho_la_SOURCES += %D%/ops/op_restriction.c
libmoho_la_SOURCES += %D%/ops/op_first_derivative.c
libmoho_la_SOURCES += %D%/ops/op_second_derivative.c
libmoho_la_SOURCES += %D%/ops/op_laplacian.c
libmoho_la_SOURCES += %D%/ops/op_gradient.c
libmoho_la_SOURCES += %D%/ops/op_pad.c
libmoho_la_SOURCES += %D%/ops/op_transpose.c
libmoho_la_SOURCES += %D%/ops/op_flip.c
libmoho_la_SOURCES += %D%/ops/op_roll.c
libmoho_la_SOURCES += %D%/ops/op_sum.c
libmoho_la_SOURCES += %D%/ops/op_symmetrize.c
libmoho_la_SOURCES += %D%/ops/op_real.c
libmoho_la_SOURCES += %D%/ops/op_imag.c
libmoho_la_SOURCES += %D%/ops/op_conj.c
libmoho_la_SOURCES += %D%/ops/op_causal_integration.c
libmoho_la_SOURCES += %D%/ops/op_smoothing1d.c
libmoho_la_SOURCES += %D%/ops/op_smoothing2d.c
libmoho_la_SOURCES += %D%/ops/op_spread.c
libmoho_la_SOURCES += %D%/ops/op_kronecker.c
libmoho_la_SOURCES += %D%/ops/op_memoize.c
libmoho_la_SOURCES += %D%/ops/op_first_directional_derivative.c
libmoho_la_SOURCES += %D%/ops/op_second_directional_derivative.c

# solvers
libmoho_la_SOURCES += %D%/solve/solver.h
libmoho_la_SOURCES += %D%/solve/solve.c
libmoho_la_SOURCES += %D%/solve/cg.c
libmoho_la_SOURCES += %D%/solve/cgls.c
libmoho_la_SOURCES += %D%/solve/lsqr.c
libmoho_la_SOURCES += %D%/solve/checkpoint.c
libmoho_la_SOURCES += %D%/solve/state.h
libmoho_la_SOURCES += %D%/solve/state.c
libmoho_la_SOURCES += %D%/solve/fingerprint.c
libmoho_la_SOURCES += %D%/solve/apply.c
libmoho_la_SOURCES += %D%/solve/inner.c
libmoho_la_SOURCES += %D%/solve/lanczos.c
libmoho_la_SOURCES += %D%/solve/power_iteration.c
libmoho_la_SOURCES += %D%/solve/ista.c
libmoho_la_SOURCES += %D%/solve/irls.c
libmoho_la_SOURCES += %D%/solve/omp.c
libmoho_la_SOURCES += %D%/solve/split_bregman.c

# files
libmoho_la_SOURCES += %D%/io/file.h
libmoho_la_SOURCES += %D%/io/file.c
libmoho_la_SOURCES += %D%/io/newfile.c
libmoho_la_SOURCES += %D%/io/npy.c
libmoho_la_SOURCES += %D%/io/npz.c
libmoho_la_SOURCES += %D%/io/raw.c
libmoho_la_SOURCES += %D%/io/h5.h
libmoho_la_SOURCES += %D%/io/hdf5.c
libmoho_la_SOURCES += %D%/io/provenance.c
libmoho_la_SOURCES += %D%/io/hdf5_data.c
libmoho_la_SOURCES += %D%/io/hdf5_part.c
libmoho_la_SOURCES += %D%/io/hdf5_attr.c
libmoho_la_SOURCES += %D%/io/hdf5_table.c
libmoho_la_SOURCES += %D%/io/hdf5_driver.c
libmoho_la_SOURCES += %D%/io/segy.c
libmoho_la_SOURCES += %D%/io/su.c

# pictures
libmoho_la_SOURCES += %D%/io/png.c
libmoho_la_SOURCES += %D%/plot/plot.h
libmoho_la_SOURCES += %D%/plot/canvas.c
libmoho_la_SOURCES += %D%/plot/font.c
libmoho_la_SOURCES += %D%/plot/cmap.c
libmoho_la_SOURCES += %D%/plot/axis.c
libmoho_la_SOURCES += %D%/plot/grid.c
libmoho_la_SOURCES += %D%/plot/sixel.c
libmoho_la_SOURCES += %D%/plot/image.c
libmoho_la_SOURCES += %D%/plot/wiggle.c
libmoho_la_SOURCES += %D%/plot/curve.c

# The binding: the border to Lua. -fexceptions: clean-up handlers run when LuaJIT unwinds.
noinst_LTLIBRARIES += libmohobind.la
libmohobind_la_CPPFLAGS = $(AM_CPPFLAGS) $(LUAJIT_CFLAGS)
libmohobind_la_CFLAGS = $(AM_CFLAGS) -fexceptions
libmohobind_la_SOURCES =
libmohobind_la_SOURCES += %D%/bind/lmoho.h
libmohobind_la_SOURCES += %D%/bind/lmoho_error.c
libmohobind_la_SOURCES += %D%/bind/lmoho_value.c
libmohobind_la_SOURCES += %D%/bind/lmoho_array.h
libmohobind_la_SOURCES += %D%/bind/lmoho_array.c
libmohobind_la_SOURCES += %D%/bind/lmoho_arith.c
libmohobind_la_SOURCES += %D%/bind/lmoho_map.c
libmohobind_la_SOURCES += %D%/bind/lmoho_memory.c
libmohobind_la_SOURCES += %D%/bind/lmoho_foreign.c
libmohobind_la_SOURCES += %D%/bind/lmoho_op.c
libmohobind_la_SOURCES += %D%/bind/lmoho_op_new.c
libmohobind_la_SOURCES += %D%/bind/lmoho_ctx.c
libmohobind_la_SOURCES += %D%/bind/lmoho_eikonal.c
libmohobind_la_SOURCES += %D%/bind/lmoho_open.c
libmohobind_la_SOURCES += %D%/bind/lmoho_plot.c
libmohobind_la_SOURCES += %D%/bind/lmoho_process.c
libmohobind_la_SOURCES += %D%/bind/lmoho_folder.c
libmohobind_la_SOURCES += %D%/bind/lmoho_solve.c
libmohobind_la_SOURCES += %D%/bind/lmoho_apply.c
libmohobind_la_SOURCES += %D%/bind/lmoho_line.c
libmohobind_la_SOURCES += %D%/bind/lmoho_file.h
libmohobind_la_SOURCES += %D%/bind/lmoho_io.c
libmohobind_la_SOURCES += %D%/bind/lmoho_h5.c

# The host: the program, with the Lua modules inside.
bin_PROGRAMS += moho
moho_CPPFLAGS = $(AM_CPPFLAGS) -I%D% $(LUAJIT_CFLAGS) $(EDIT_CFLAGS) $(HDF5_CFLAGS) $(FFTW_CFLAGS)
# Lua's C modules (lfs, term) look for Lua's names in the program.
moho_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
moho_LDADD = libmohobind.la libmoho.la $(LUAJIT_LIBS) $(EDIT_LIBS)
moho_SOURCES =
moho_SOURCES += %D%/host/embedded.h
moho_SOURCES += %D%/host/main.c
moho_SOURCES += %D%/host/options.c %D%/host/options.h
moho_SOURCES += %D%/host/state.c %D%/host/state.h
moho_SOURCES += %D%/host/signals.c %D%/host/signals.h
moho_SOURCES += %D%/host/report.c %D%/host/report.h
moho_SOURCES += %D%/host/repl.c %D%/host/repl.h
moho_SOURCES += %D%/host/editor.c %D%/host/editor.h
moho_SOURCES += %D%/host/terminal.c %D%/host/terminal.h
moho_SOURCES += %D%/host/history.c %D%/host/history.h
moho_SOURCES += %D%/host/version.c %D%/host/version.h
nodist_moho_SOURCES = %D%/host/embedded.c

# The build's own program: Lua sources to one C file.
noinst_PROGRAMS += embed
embed_SOURCES = %D%/host/embed.c
embed_CPPFLAGS = $(AM_CPPFLAGS) $(LUAJIT_CFLAGS)
embed_LDADD = $(LUAJIT_LIBS)

%D%/host/embedded.c: embed$(EXEEXT) $(lua_modules)
	@$(MKDIR_P) %D%/host
	$(AM_V_GEN)./embed$(EXEEXT) $@ $(lua_modules:%=$(top_srcdir)/%)
CLEANFILES += %D%/host/embedded.c

# What `moho --version` says of the build. Written anew each time, moved into place only when it says something else.
%D%/host/build.h: always
	@$(MKDIR_P) %D%/host
	@if test -e $(top_srcdir)/.git; then git=`git -C $(top_srcdir) describe --always --dirty 2>/dev/null`; fi; \
	  flags=`echo '$(CC) $(CFLAGS)' | sed 's/[\\"]/\\\\&/g'`; \
	  { echo "#define MOHO_GIT \"$${git:-release}\""; echo "#define MOHO_BUILD_FLAGS \"$$flags\""; \
	    echo '#define MOHO_CUDA_VERSION "$(CUDA_VERSION)"'; } > $@-t
	@if cmp -s $@-t $@; then rm -f $@-t; else mv -f $@-t $@; fi
%D%/host/moho-version.$(OBJEXT): %D%/host/build.h
always:
.PHONY: always
CLEANFILES += %D%/host/build.h
