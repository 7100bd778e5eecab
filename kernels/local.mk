# Backends. The CPU's is part of the library; CUDA's is a module, opened when a CUDA device is first asked for, so that one
# program starts on machines with and without it.
libmoho_la_SOURCES += %D%/kernels.def
libmoho_la_SOURCES += %D%/cpu.c
libmoho_la_SOURCES += %D%/moho_kernel.h
libmoho_la_SOURCES += %D%/random.h
libmoho_la_SOURCES += %D%/functions.h
libmoho_la_SOURCES += %D%/element.h
libmoho_la_SOURCES += %D%/element_body.h
libmoho_la_SOURCES += %D%/vec_slots.h
libmoho_la_SOURCES += %D%/vec_body.h
libmoho_la_SOURCES += %D%/vec.c
libmoho_la_SOURCES += %D%/fft_body.h
libmoho_la_SOURCES += %D%/fft_fftw.h
libmoho_la_SOURCES += %D%/fft_fftw.c
libmoho_la_SOURCES += %D%/fft_nd.h
libmoho_la_SOURCES += %D%/fft_nd_body.h
libmoho_la_SOURCES += %D%/fft_nd.c
libmoho_la_SOURCES += %D%/wide.h
libmoho_la_SOURCES += %D%/copy.h
libmoho_la_SOURCES += %D%/copy.c
libmoho_la_SOURCES += %D%/dense_body.h %D%/dense_column.h %D%/dense_pairs.h
libmoho_la_SOURCES += %D%/dense_blas.c
libmoho_la_SOURCES += %D%/axis_body.h
libmoho_la_SOURCES += %D%/axis.c

libmoho_la_SOURCES += %D%/kirchhoff.h %D%/kirchhoff_weights.h
libmoho_la_SOURCES += %D%/kirchhoff_plan.h
libmoho_la_SOURCES += %D%/kirchhoff.c
libmoho_la_SOURCES += %D%/kirchhoff_patch.c
libmoho_la_SOURCES += %D%/kirchhoff_traces.c

libmoho_la_SOURCES += %D%/eikonal.h
libmoho_la_SOURCES += %D%/eikonal_formula.h
libmoho_la_SOURCES += %D%/eikonal_scalar.h
libmoho_la_SOURCES += %D%/eikonal_tiles.h
libmoho_la_SOURCES += %D%/eikonal_plan.h
libmoho_la_SOURCES += %D%/eikonal.c
libmoho_la_SOURCES += %D%/isa.h

# Kirchhoff loops, the same body for several instruction sets; which one runs is decided when it runs. Each set is a library of
# its own, with its flags; other processors than x86-64 have what the compiler makes of the generic one.
kirchhoff_cflags = $(AM_CFLAGS) -fno-math-errno -fno-trapping-math -ftree-vectorize -fvect-cost-model=dynamic
noinst_LTLIBRARIES += libkirchhoff_generic.la
libkirchhoff_generic_la_CFLAGS = $(kirchhoff_cflags) -Wno-psabi
libkirchhoff_generic_la_SOURCES = %D%/kirchhoff_generic.c
libkirchhoff_generic_la_SOURCES += %D%/kirchhoff_body.h %D%/kirchhoff_isa.h %D%/kirchhoff_rows.h %D%/kirchhoff_coarse.h %D%/kirchhoff_near.h
libkirchhoff_generic_la_SOURCES += %D%/kirchhoff_aperture.h %D%/kirchhoff_illumination.h
libkirchhoff_generic_la_SOURCES += %D%/kirchhoff_adjoint.h %D%/kirchhoff_spread.h %D%/kirchhoff_forward.h %D%/kirchhoff_double.h
libmoho_la_LIBADD += libkirchhoff_generic.la
if X86_64
noinst_LTLIBRARIES += libkirchhoff_avx2.la
libkirchhoff_avx2_la_CFLAGS = $(kirchhoff_cflags) -mavx2 -mfma
libkirchhoff_avx2_la_SOURCES = %D%/kirchhoff_avx2.c
noinst_LTLIBRARIES += libkirchhoff_avx512.la
libkirchhoff_avx512_la_CFLAGS = $(kirchhoff_cflags) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512
libkirchhoff_avx512_la_SOURCES = %D%/kirchhoff_avx512.c
libmoho_la_LIBADD += libkirchhoff_avx2.la libkirchhoff_avx512.la
endif

# The eikonal loops, likewise.
eikonal_cflags = $(AM_CFLAGS) -fno-math-errno -fno-trapping-math -Wno-psabi
noinst_LTLIBRARIES += libeikonal_generic.la
libeikonal_generic_la_CFLAGS = $(eikonal_cflags)
libeikonal_generic_la_SOURCES = %D%/eikonal_generic.c
libeikonal_generic_la_SOURCES += %D%/eikonal_body.h %D%/eikonal_isa.h
libmoho_la_LIBADD += libeikonal_generic.la
if X86_64
noinst_LTLIBRARIES += libeikonal_avx2.la
libeikonal_avx2_la_CFLAGS = $(eikonal_cflags) -mavx2
libeikonal_avx2_la_SOURCES = %D%/eikonal_avx2.c
noinst_LTLIBRARIES += libeikonal_avx512.la
libeikonal_avx512_la_CFLAGS = $(eikonal_cflags) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512
libeikonal_avx512_la_SOURCES = %D%/eikonal_avx512.c
libmoho_la_LIBADD += libeikonal_avx2.la libeikonal_avx512.la
endif

# A module of another build is refused: the number that program and module compare is made of every header that they share, so that a
# changed table or struct can't be forgotten.
abi_headers = $(top_srcdir)/src/moho/status.h $(top_srcdir)/src/moho/ctx.h $(top_srcdir)/src/moho/array.h $(top_srcdir)/src/moho/op.h \
  $(top_srcdir)/src/core/impl.h $(top_srcdir)/src/core/kernels.h $(top_srcdir)/src/core/nd.h $(srcdir)/%D%/kernels.def $(srcdir)/%D%/cuda.h \
  $(srcdir)/%D%/kirchhoff.h $(srcdir)/%D%/eikonal.h
BUILT_SOURCES += %D%/abi.h
CLEANFILES += %D%/abi.h
%D%/abi.h: $(abi_headers)
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)sum=`cat $(abi_headers) | cksum | sed 's/ .*//'` && \
	  echo "#define MOHO_BACKEND_ABI $${sum}u" >$@.t && mv $@.t $@

# ---- CUDA -----------------------------------------------------------------------
# The only place that knows whether there is CUDA.
cuda_sources =
cuda_sources += %D%/cuda.cu
cuda_sources += %D%/cuda_host.cu
cuda_sources += %D%/cuda_library.cu
cuda_sources += %D%/kirchhoff_cuda.cu
cuda_sources += %D%/kirchhoff_cuda_tables.cu
cuda_sources += %D%/kirchhoff_cuda_fill.cu
cuda_sources += %D%/kirchhoff_cuda_coarse.cu
cuda_sources += %D%/kirchhoff_cuda_keep.cu
cuda_sources += %D%/kirchhoff_cuda_part.cu
cuda_sources += %D%/kirchhoff_cuda_weights.cu
cuda_sources += %D%/kirchhoff_cuda_plain.cu
cuda_sources += %D%/kirchhoff_cuda_few.cu
cuda_sources += %D%/kirchhoff_cuda_points.cu
cuda_sources += %D%/kirchhoff_cuda_illumination.cu
cuda_sources += %D%/kirchhoff_cuda_mend.cu
cuda_sources += %D%/kirchhoff_cuda_adjoint.cu
cuda_sources += %D%/kirchhoff_cuda_forward.cu
cuda_sources += %D%/kirchhoff_cuda_panels.cu
cuda_sources += %D%/kirchhoff_cuda_scale.cu
EXTRA_DIST += %D%/kirchhoff_cuda.cuh %D%/kirchhoff_cuda_aperture.cuh %D%/kirchhoff_cuda_panels.cuh %D%/kirchhoff_cuda_rows.cuh
EXTRA_DIST += %D%/kirchhoff_cuda_few.cuh
cuda_sources += %D%/eikonal_cuda.cu
EXTRA_DIST += %D%/eikonal_cuda_tile.cuh
EXTRA_DIST += %D%/kirchhoff_cuda_walk.cuh %D%/kirchhoff_cuda_weights.cuh %D%/kirchhoff_cuda_ring.cuh
EXTRA_DIST += %D%/kirchhoff_cuda_sweep.cuh %D%/kirchhoff_cuda_terms.cuh %D%/kirchhoff_cuda_times.cuh
EXTRA_DIST += %D%/kirchhoff_cuda_legs.cuh %D%/kirchhoff_cuda_near.cuh
cuda_sources += %D%/vec_cuda.cu
cuda_sources += %D%/axis_cuda.cu
cuda_sources += %D%/axis_cuda_scan.cu
cuda_sources += %D%/axis_cuda_stencil.cu
cuda_sources += %D%/vec_cuda_reduce.cu
cuda_sources += %D%/vec_cuda_axis.cu
cuda_sources += %D%/vec_cuda_threshold.cu
cuda_sources += %D%/fft_cufft.cu
cuda_sources += %D%/fft_conv_cuda.cu
cuda_sources += %D%/fft_grid_cuda.cu
cuda_sources += %D%/fft_filter_cuda.cu
cuda_sources += %D%/dense_cublas.cu
cuda_sources += %D%/dense_cuda.cu
cuda_sources += %D%/dense_few_cuda.cu
libmoho_la_SOURCES += %D%/fft_cufft.cuh
libmoho_la_SOURCES += %D%/cuda.h %D%/cuda_host.h %D%/cuda_library.h
EXTRA_DIST += %D%/vec_cuda.cuh %D%/axis_cuda.cuh %D%/scan_cuda.cuh %D%/index_cuda.cuh %D%/fft_number_cuda.cuh %D%/dense_cuda.cuh
EXTRA_DIST += $(cuda_sources) %D%/cuda_module.c %D%/nocuda.c

if CUDA
libmoho_la_SOURCES += %D%/cuda_module.c
moduleexecdir = $(pkglibdir)
moduleexec_DATA = moho-cuda.so

# nvcc takes only what the host compiler and it both know; libtool builds no shared objects by default, so both steps are
# our own. -MT: the rule must name the object that make knows.
cuda_objects = $(cuda_sources:.cu=.cuo)
AM_V_NVCC = $(am__v_NVCC_@AM_V@)
am__v_NVCC_ = $(am__v_NVCC_@AM_DEFAULT_V@)
am__v_NVCC_0 = @echo "  NVCC    " $@;
am__v_NVCC_1 =
NVCOMPILE = $(NVCC) -forward-unknown-to-host-compiler -std=c++20 $(NVCC_WARN) $(NVCCFLAGS) $(NVCC_FILE) $(NVCC_GENCODE) \
  $(AM_CPPFLAGS) $(CPPFLAGS) -fPIC -fvisibility=hidden -ffp-contract=off $(SANITIZE)
SUFFIXES = .cu .cuo
.cu.cuo:
	@$(MKDIR_P) $(@D)
	$(AM_V_NVCC)$(NVCOMPILE) -MMD -MP -MT $@ -MF $@.d -c $< -o $@
$(cuda_objects): | %D%/abi.h
# Where the CPU's bits are wanted, nothing is contracted to fused multiply-adds.
%D%/vec_cuda.cuo %D%/vec_cuda_reduce.cuo %D%/vec_cuda_axis.cuo %D%/vec_cuda_threshold.cuo %D%/eikonal_cuda.cuo: NVCC_FILE = -fmad=false
%D%/kirchhoff_cuda_weights.cuo %D%/kirchhoff_cuda_fill.cuo %D%/kirchhoff_cuda_coarse.cuo: NVCC_FILE = -fmad=false
# Where cuFFT and cuBLAS were when this was built, for when the loader does not find them.
%D%/cuda_library.cuo: NVCC_FILE = -DMOHO_CUDA_LIBDIR='"$(CUDA_LIBDIR)"'
-include $(wildcard $(cuda_objects:=.d) scripts/bench_kirchhoff.cuo.d)

moho-cuda.so: $(cuda_objects)
	$(AM_V_CCLD)$(CC) -shared $(CFLAGS) $(SANITIZE) $(LDFLAGS) -Wl,-Bsymbolic -Wl,--exclude-libs,ALL -o $@ $(cuda_objects) $(CUDA_LIBS)
CLEANFILES += moho-cuda.so $(cuda_objects) $(cuda_objects:=.d)

# Checks and times the Kirchhoff kernels by themselves, on a machine that has a card and a driver only.
bench_objects = scripts/bench_kirchhoff.cuo %D%/cuda_host.cuo $(filter %D%/kirchhoff_cuda%,$(cuda_objects))
scripts/bench_kirchhoff.cuo: NVCC_FILE = -fopenmp
scripts/bench_kirchhoff.cuo: | %D%/abi.h
bench_kirchhoff: $(bench_objects)
	$(AM_V_CCLD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(bench_objects) $(CUDA_LIBS) -lgomp
CLEANFILES += bench_kirchhoff scripts/bench_kirchhoff.cuo scripts/bench_kirchhoff.cuo.d
else
libmoho_la_SOURCES += %D%/nocuda.c
endif
libmoho_la_CPPFLAGS += -DMOHO_CUDA_WHY='"$(CUDA_WHY)"'
