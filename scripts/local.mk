# Checks that are part of `make check`, and scripts that are distributed.
