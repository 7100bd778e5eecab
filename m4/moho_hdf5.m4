# MOHO_HDF5: the serial library; Debian names the module hdf5-serial and keeps hdf5 as an alternative.
AC_DEFUN([MOHO_HDF5], [MOHO_PKG([HDF5], [hdf5-serial hdf5], [HDF5], [libhdf5-dev])])
