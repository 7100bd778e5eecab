# What is installed in pkgdatadir/examples, and a C program that uses the library alone.
examplesdir = $(pkgdatadir)/examples
dist_examples_DATA =
dist_examples_DATA += %D%/lsm.lua
dist_examples_DATA += %D%/stack_migration.lua
dist_examples_DATA += %D%/four_ways.lua
dist_examples_DATA += %D%/deconvolution.lua
dist_examples_DATA += %D%/poststack.lua
dist_examples_DATA += %D%/interpolation_fk.lua
dist_examples_DATA += %D%/denoise_tv.lua
dist_examples_DATA += %D%/lsm_weights.lua
dist_examples_DATA += %D%/lsm_marmousi.lua
dist_examples_DATA += %D%/travel_times.lua
dist_examples_DATA += %D%/sweep_lsm.lua
dist_examples_DATA += %D%/sweep_slurm.sh

examplesembeddir = $(examplesdir)/embed
dist_examplesembed_DATA =
dist_examplesembed_DATA += %D%/embed/convolve.c
dist_examplesembed_DATA += %D%/embed/Makefile

check_PROGRAMS += %D%/embed/convolve

# The installed library is enough: the example is built from what was installed, and the installed program runs.
installcheck-local:
	rm -rf installcheck && $(MKDIR_P) installcheck
	cp $(DESTDIR)$(examplesembeddir)/convolve.c $(DESTDIR)$(examplesembeddir)/Makefile installcheck
	cd installcheck && PKG_CONFIG_PATH='$(DESTDIR)$(libdir)/pkgconfig' LD_LIBRARY_PATH='$(DESTDIR)$(libdir)' \
	  $(MAKE) CC='$(CC)' CFLAGS='$(CFLAGS) $(SANITIZE)' PKG_CONFIG='$(PKG_CONFIG) $(installcheck_sysroot)' convolve && \
	  LD_LIBRARY_PATH='$(DESTDIR)$(libdir)' ./convolve
	$(DESTDIR)$(bindir)/moho --version
	rm -rf installcheck
# DESTDIR: the paths in moho.pc are those of the final place.
installcheck_sysroot = $(if $(DESTDIR),--define-variable=prefix=$(DESTDIR)$(prefix),)
