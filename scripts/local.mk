# Checks that are part of `make check`, and scripts that are distributed.
checks =
checks += %D%/check-layers
checks += %D%/check-headers
TESTS += $(checks)
EXTRA_DIST += $(checks) %D%/check-count

# "N passed, N failed, N skipped" of the last run.
check-count:
	@$(SHELL) $(top_srcdir)/scripts/check-count $(wildcard $(TEST_LOGS:.log=.trs))
.PHONY: check-count
