# Checks that are part of `make check`, and scripts that are distributed.
checks =
checks += %D%/check-layers
checks += %D%/check-headers
checks += %D%/check-lists
checks += %D%/check-embed
TESTS += $(checks)
EXTRA_DIST += $(checks)
EXTRA_DIST += %D%/check-count
EXTRA_DIST += %D%/setup
EXTRA_DIST += %D%/build
EXTRA_DIST += %D%/test
EXTRA_DIST += %D%/test-long
EXTRA_DIST += %D%/demo
EXTRA_DIST += %D%/gpu-check
EXTRA_DIST += %D%/new-operator
EXTRA_DIST += %D%/validate.py %D%/validate.lua
EXTRA_DIST += %D%/bench %D%/bench-cuda %D%/bench.lua %D%/bench-pylops.py
EXTRA_DIST += %D%/bench_kirchhoff.cu %D%/bench_kirchhoff.cuh
EXTRA_DIST += %D%/bench_ops.lua %D%/bench_ops.py
EXTRA_DIST += %D%/bench_eikonal.lua %D%/bench_eikonal.py
EXTRA_DIST += %D%/bench_arrays.lua %D%/bench_arrays.py
EXTRA_DIST += %D%/bench_lift.lua %D%/bench_limits.lua %D%/bench_tables.lua
EXTRA_DIST += %D%/bench_four_ways.py %D%/bench_groups.lua
EXTRA_DIST += %D%/bench_sweep.lua
EXTRA_DIST += %D%/bench_survey.lua

# "N passed, N failed, N skipped" of the last run.
check-count:
	@$(SHELL) $(top_srcdir)/scripts/check-count $(wildcard $(TEST_LOGS:.log=.trs))
# For scripts/gpu-check.
print-programs:
	@echo $(check_PROGRAMS)
print-specs:
	@echo $(specs)
.PHONY: check-count print-programs print-specs
