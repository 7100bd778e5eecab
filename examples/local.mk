# What is installed in pkgdatadir/examples, and a C program that uses the library alone.
examplesdir = $(pkgdatadir)/examples
dist_examples_DATA =
